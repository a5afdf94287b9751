//! Values: reads, definitions and bodies, where some path leads.

use super::Writer;
use crate::ir::program::GridAxis;
use crate::ir::{Binary, Body, DefId, FieldId, Handle, Hop, Kind, Levels, Node, NodeId, Path, Relation, Role};
use crate::kernel::build::Computing;
use crate::kernel::{Function, Meaning, Operation, ValueId};
use crate::mesh::ends::Ends;
use crate::mesh::quotient;

/// A body that is being written, where `at` leads.
struct Begun<'a> {
    /// The definition whose body it is, if it is one's.
    def: Option<DefId>,
    body: &'a Body,
    at: Path,
    /// The values of the nodes so far.
    values: Vec<ValueId>,
}

impl Writer<'_> {
    /// A quotient.
    fn quotient(&mut self, a: ValueId, b: ValueId) -> ValueId {
        let kind = self.computing(Kind::Real);
        let literal = match self.own.kernel().values[b].operation {
            Operation::Real(bits) => Some(f64::from_bits(bits)),
            _ => None,
        };
        let known = literal.and_then(|number| quotient::inverse_of(number, self.task.precision));
        let b = if literal.is_some() || self.is_name(b) { b } else { self.own.name("divisor", b) };
        let inverse = match (known, self.find(|scope| scope.inverses.get(&b))) {
            (Some(inverse), _) => self.scalar().real(&mut self.own, inverse),
            (None, Some(known)) => known,
            (None, None) => {
                let wish = self.told_name(b).map_or_else(|| "inverse".to_owned(), |name| format!("over_{name}"));
                let inverse = self.own.call(Function::Inverse, vec![b], kind);
                let inverse = self.own.name(&wish, inverse);
                self.scope().inverses.insert(b, inverse);
                inverse
            }
        };
        self.own.call(Function::Quotient, vec![a, b, inverse], kind)
    }

    /// What a value is called in the code, if that is a name.
    fn told_name(&self, value: ValueId) -> Option<String> {
        let kernel = self.own.kernel();
        let own = &kernel.values[value];
        match (&own.name, &own.operation) {
            (Some(name), _) => Some(name.to_string()),
            (None, Operation::Argument(argument)) => Some(kernel.arguments[*argument].name.to_string()),
            (None, Operation::Variable(variable)) => Some(kernel.variables[*variable].name.to_string()),
            _ => None,
        }
    }

    fn is_name(&self, value: ValueId) -> bool {
        self.told_name(value).is_some()
    }

    /// A number of a field where `at` leads.
    pub fn read(&mut self, field: FieldId, at: &Path, part: u32) -> ValueId {
        let own = self.field(field);
        if own.role == Role::Carried {
            return self.carried(field, at.levels());
        }
        // What has no levels is the same on all of them.
        let at = &if own.place.levels == Levels::None { at.clone().without_levels() } else { at.clone() };
        let key = (field, at.clone(), part);
        if let Some(known) = self.find(|scope| scope.reads.get(&key)) {
            return known;
        }
        let (stored, place) = (own.stored, own.place);
        let (array, wish) = (self.input(field), self.read_name(field, at));
        let element = place.horizontal.then(|| self.index(at.hops()));
        // On a map, each slot is looked at by itself.
        if place.home.is_some_and(|home| home.map.is_some()) {
            let index = self.index_at(field, (element, at.levels()), part as usize);
            let number = self.own.load(array, index);
            let number = self.scalar().read(&mut self.own, number, stored);
            let number = self.own.name(&format!("{wish}_{part}"), number);
            self.remember(key, number);
            return number;
        }
        let count = self.levels_at_once(field) as i32;
        if let (Some(element), 2.., true) = (element, count, (0..self.levels as i32).contains(&at.levels())) {
            let here = at.clone().without_levels();
            let first = at.levels() / count * count;
            let wish = self.read_name(field, &here.then(&Path::levels_only(first)));
            for (level, value) in (first..).zip(self.load_levels(array, field, element, first, &wish)) {
                let at = here.then(&Path::levels_only(level));
                let value = self.own.name(&self.read_name(field, &at), value);
                self.remember((field, at, 0), value);
            }
            return self.find(|scope| scope.reads.get(&key)).unwrap_or_else(|| self.own.int(0));
        }
        let values = self.load(array, field, (element, at.levels()), &wish, false);
        for (part, value) in values.iter().enumerate() {
            self.remember((field, at.clone(), part as u32), *value);
        }
        values[part as usize]
    }

    /// A number of a field where `at` leads, so many levels further as data says; of what lies beyond its levels, the nearest.
    fn read_moved(&mut self, field: FieldId, at: &Path, part: u32, by: ValueId) -> ValueId {
        let own = self.field(field);
        let (stored, place) = (own.stored, own.place);
        let Some(k) = self.k else { return self.read(field, at, part) };
        let last = place.levels.count(self.task.levels) as i32 - 1;
        let level = self.own.level_away(k, at.levels(), by, last);
        let level = self.own.name(&format!("level_of_{}", self.read_name(field, &at.clone().without_levels())), level);
        let (array, wish) = (self.input(field), self.read_name(field, at));
        let element = place.horizontal.then(|| self.index(at.hops()));
        let index = self.index_on(field, element, level, part as usize);
        let number = self.own.load(array, index);
        let number = self.scalar().read(&mut self.own, number, stored);
        self.own.name(&format!("{wish}_moved"), number)
    }

    /// Says what a number of a field is known to be.
    pub fn remember(&mut self, key: (FieldId, Path, u32), value: ValueId) {
        self.scope().reads.insert(key, value);
    }

    /// `q_cells_0`, for names.
    pub fn read_name(&self, field: FieldId, at: &Path) -> String {
        let name = &self.field(field).name;
        let level = level_name(at.levels());
        match self.hops_name(at.hops()).as_str() {
            "" => format!("{name}_here{level}"),
            hops => format!("{name}_{hops}{level}"),
        }
    }

    /// A definition where `at` leads.
    pub fn value(&mut self, def: DefId, at: &Path) -> ValueId {
        let mut body = Body::new();
        body.add(Node::Use { def, path: Path::default() }, Kind::Real, Default::default());
        self.body(&body, at)
    }

    /// Gives a definition's value a name, where `at` leads.
    pub(super) fn name_value(&mut self, def: DefId, at: Path, value: ValueId) {
        let is_number = matches!(
            self.own.kernel().values[value].operation,
            Operation::Int(_) | Operation::Real(_) | Operation::Bool(_)
        );
        // Numbers and names stay as they are.
        let value = if is_number || self.is_name(value) {
            value
        } else {
            let own = &self.task.stencil.stencil.defs[def];
            let wish = match self.hops_name(at.hops()).as_str() {
                "" => own.name.clone(),
                hops => format!("{}_{hops}", own.name),
            };
            self.own.name(&wish, value)
        };
        self.scope().values.insert((def, at), value);
    }

    /// The value of a body where `at` leads. A definition that it uses is written when it is met, and then the body goes on.
    pub fn body(&mut self, body: &Body, at: &Path) -> ValueId {
        let task = self.task;
        self.go_through_places(body, at);
        let mut begun = vec![Begun { def: None, body, at: at.clone(), values: Vec::new() }];
        loop {
            let Some(mut last) = begun.pop() else { return self.own.int(0) };
            if let Some((def, at)) = self.go_on(&mut last) {
                let body = &task.stencil.stencil.defs[def].body;
                begun.push(last);
                begun.push(Begun { def: Some(def), body, at, values: Vec::new() });
                continue;
            }
            let value = last.values[last.body.root().index()];
            match last.def {
                Some(def) => self.name_value(def, last.at, value),
                None => return value,
            }
        }
    }

    /// Writes the nodes of a body, up to the first use of a definition that is not known yet.
    fn go_on(&mut self, begun: &mut Begun) -> Option<(DefId, Path)> {
        let at = begun.at.clone();
        for (id, node) in begun.body.iter().skip(begun.values.len()) {
            let value = match node {
                Node::Read { field, path, part, by } => {
                    let is_horizontal = self.field(*field).place.horizontal;
                    let at = at.then(path);
                    let at = if is_horizontal { at } else { Path::levels_only(at.levels()) };
                    match by {
                        None => self.read(*field, &at, *part),
                        Some(by) => self.read_moved(*field, &at, *part, begun.values[by.index()]),
                    }
                }
                Node::Use { def, path } => {
                    let key = (*def, at.then(path));
                    let Some(known) = self.find(|scope| scope.values.get(&key)) else { return Some(key) };
                    known
                }
                Node::InZone(zones) => self.in_zone(*zones, at.hops()),
                Node::Present { path } => self.present(node, at.then(path).hops()),
                Node::Param(param) => {
                    let own = &self.task.stencil.stencil.params[*param];
                    self.number(&own.name, self.computing(own.kind), Meaning::Param(*param))
                }
                Node::Level => {
                    let level = self.k.map_or(at.levels().into(), |k| k.plus(at.levels()));
                    self.own.term(level)
                }
                Node::Count(GridAxis::K) => self.own.int(self.task.levels as i64),
                _ => self.operation(begun.body, id, &begun.values),
            };
            begun.values.push(value);
        }
        None
    }

    /// Whether there is an element where hops lead.
    fn present(&mut self, node: &Node, hops: &[Hop]) -> ValueId {
        if let (true, Some(turn)) = (asks_for_second(node, self.ends), self.turn) {
            return turn.is_second;
        }
        if !self.can_miss(hops) {
            return self.own.truth(true);
        }
        let raw = self.raw(hops);
        self.own.term(raw.is(Relation::Ge, 0))
    }

    /// A number, or an operation whose operands are known.
    fn operation(&mut self, body: &Body, id: NodeId, values: &[ValueId]) -> ValueId {
        let of = |node: NodeId| values[node.index()];
        match &body[id] {
            Node::Binary(Binary::Div, a, b)
                if self.own.kernel().attempt.is_some() && body.kind_of(id) == Kind::Real =>
            {
                self.quotient(of(*a), of(*b))
            }
            Node::Choose { condition, yes, no } if is_turned(body, self.ends, *condition, *yes, *no) => {
                let Some(turn) = self.turn else { return of(*no) };
                self.own.call(Function::Turned, vec![of(*no), turn.bit], self.computing(Kind::Real))
            }
            _ => {
                let value = self.scalar().value(&mut self.own, body, id, &of);
                value.unwrap_or_else(|| self.own.int(0))
            }
        }
    }
}

/// `_down1`, for names of what is read on another level.
pub fn level_name(levels: i32) -> String {
    match levels {
        0 => String::new(),
        1.. => format!("_down{levels}"),
        _ => format!("_up{}", -levels),
    }
}

/// Whether a node asks if the own element stands at the second place.
fn asks_for_second(node: &Node, ends: Option<Ends>) -> bool {
    matches!((node, ends), (Node::Present { path }, Some(ends)) if path.hops() == [ends.second])
}

/// Whether a choice is a change of sign where the target stands at the second place: there is a shorter text for it.
fn is_turned(body: &Body, ends: Option<Ends>, condition: NodeId, yes: NodeId, no: NodeId) -> bool {
    asks_for_second(&body[condition], ends) && body[yes] == Node::Negate(no) && body.kind_of(no) == Kind::Real
}
