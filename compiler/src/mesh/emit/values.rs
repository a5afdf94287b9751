//! Values: reads, definitions and bodies, each a constant with a name, where some path leads.

use super::{At, Emitter};
use crate::cuda::expression::{computing_type, read_as, real, written};
use crate::ir::{Binary, Binding, Body, DefId, FieldId, Handle, Hop, Kind, Node, NodeId, Path, Texts};
use crate::mesh::ends::Ends;
use crate::mesh::{What, quotient};
use crate::plan::Math;

/// A body that is being written, where `at` leads.
struct Begun<'a> {
    /// The definition whose body it is, if it is one's.
    def: Option<DefId>,
    body: &'a Body,
    at: At,
    /// The node that comes next.
    next: usize,
    /// What the nodes before it look at, and its text.
    leaves: Vec<(Node, String, Binding)>,
}

impl Emitter<'_> {
    /// The text of a quotient.
    fn quotient(&mut self, a: &str, b: &str) -> String {
        let (is_quick, is_usual) = (self.names.internal("is_quick"), self.names.internal("is_usual"));
        let c_type = self.c_type(Kind::Real);
        let is_name = b.chars().all(|c| c.is_alphanumeric() || c == '_');
        let literal = quotient::inverse_of(b, self.subject.precision);
        let named = |own: &mut Self, wish: &str, text: String| {
            let name = own.names.fresh(wish);
            own.line(format!("const {c_type} {name} = {text};"));
            name
        };
        let b = if is_name || literal.is_some() { b.to_owned() } else { named(self, "divisor", b.to_owned()) };
        let inverse = match (literal, self.find(|scope| scope.inverses.get(&b))) {
            (Some(inverse), _) => real(inverse, self.subject.precision).0,
            (None, Some(known)) => known.clone(),
            (None, None) => {
                let name = named(self, &format!("over_{b}"), format!("real_inverse({b}, {is_usual})"));
                if let Some(scope) = self.scopes.last_mut() {
                    scope.inverses.insert(b.clone(), name.clone());
                }
                name
            }
        };
        format!("real_quotient({a}, {b}, {inverse}, {is_quick}, {is_usual})")
    }

    /// A number of a field where `at` leads.
    pub fn read(&mut self, field: FieldId, at: &At, part: u32) -> String {
        let key = (field, at.clone(), part);
        if let Some(known) = self.find(|scope| scope.reads.get(&key)) {
            return known.clone();
        }
        let own = &self.subject.stencil.stencil.fields[field];
        let (stored, place) = (own.stored, own.place);
        let (array, wish) = (self.input(field), self.read_name(field, at));
        let element = if place.horizontal { self.index(&at.0) } else { String::new() };
        // On a map, each slot is looked at by itself.
        if place.home.is_some_and(|home| home.map.is_some()) {
            let text = self.number_at(&array, field, &element, at.1, part);
            let (text, c_type) =
                (read_as(text, stored, self.subject.precision), computing_type(stored.kind(), self.subject.precision));
            let name = self.names.fresh(&format!("{wish}_{part}"));
            self.line(format!("const {c_type} {name} = {text};"));
            self.remember(key, &name);
            return name;
        }
        let names = self.load(&array, field, &element, at.1, &wish);
        for (part, name) in names.iter().enumerate() {
            self.remember((field, at.clone(), part as u32), name);
        }
        names[part as usize].clone()
    }

    /// Says by which name a number of a field is known.
    pub fn remember(&mut self, key: (FieldId, At, u32), name: &str) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.reads.insert(key, name.to_owned());
        }
    }

    /// `q_cells_0`, for names.
    pub fn read_name(&self, field: FieldId, at: &At) -> String {
        let name = &self.subject.stencil.stencil.fields[field].name;
        let level = match at.1 {
            0 => String::new(),
            1.. => format!("_down{}", at.1),
            _ => format!("_up{}", -at.1),
        };
        match self.hops_name(&at.0).as_str() {
            "" => format!("{name}_here{level}"),
            hops => format!("{name}_{hops}{level}"),
        }
    }

    /// A definition where `at` leads.
    pub fn value(&mut self, def: DefId, at: &At) -> String {
        let mut body = Body::new();
        body.add(Node::Use { def, path: Path::default() }, Kind::Real, Default::default());
        self.body(&body, at)
    }

    /// Gives a definition's value a name, where `at` leads.
    fn name_value(&mut self, def: DefId, at: At, text: String) {
        let own = &self.subject.stencil.stencil.defs[def];
        // Numbers and names stay as they are.
        let is_short = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
        let name = if is_short {
            text
        } else {
            let wish = match self.hops_name(&at.0).as_str() {
                "" => own.name.clone(),
                hops => format!("{}_{hops}", own.name),
            };
            let name = self.names.fresh(&wish);
            let c_type = computing_type(own.body.kind(), self.subject.precision);
            self.line(format!("const {c_type} {name} = {text};"));
            name
        };
        if let Some(scope) = self.scopes.last_mut() {
            scope.values.insert((def, at), name);
        }
    }

    /// The text of a body where `at` leads; what it is made of gets names before. A definition that it uses is written when it is
    /// met, and then the body goes on.
    pub fn body(&mut self, body: &Body, at: &At) -> String {
        let subject = self.subject;
        let mut begun = vec![Begun { def: None, body, at: at.clone(), next: 0, leaves: Vec::new() }];
        loop {
            let Some(last) = begun.last_mut() else { return String::new() };
            if let Some((def, at)) = self.go_on(last) {
                let body = &subject.stencil.stencil.defs[def].body;
                begun.push(Begun { def: Some(def), body, at, next: 0, leaves: Vec::new() });
            } else if let Some(Begun { def, body, at, leaves, .. }) = begun.pop() {
                let text = self.text_of(body, &leaves);
                match def {
                    Some(def) => self.name_value(def, at, text),
                    None => return text,
                }
            }
        }
    }

    /// Writes what a body looks at, up to the first definition that has no name yet.
    fn go_on(&mut self, begun: &mut Begun) -> Option<(DefId, At)> {
        let moved = |path: &Path| {
            let hops: Vec<Hop> = begun.at.0.iter().chain(path.hops()).copied().collect();
            (hops, begun.at.1 + path.levels())
        };
        for (id, node) in begun.body.iter().skip(begun.next) {
            begun.next = id.index();
            if begun.leaves.iter().any(|(known, ..)| known == node) {
                continue;
            }
            let (text, binding) = match node {
                Node::Read { field, path, part } => {
                    let at = moved(path);
                    let at = if self.subject.stencil.stencil.fields[*field].place.horizontal {
                        at
                    } else {
                        (Vec::new(), at.1)
                    };
                    (self.read(*field, &at, *part), Binding::Atom)
                }
                Node::Use { def, path } => {
                    let key = (*def, moved(path));
                    match self.find(|scope| scope.values.get(&key)) {
                        Some(known) => (known.clone(), Binding::Atom),
                        None => return Some(key),
                    }
                }
                node if asks_for_second(node, self.ends) => (self.names.internal("is_second"), Binding::Atom),
                Node::Present { path } => {
                    let (hops, _) = moved(path);
                    match self.can_miss(&hops) {
                        true => (format!("{} >= 0", self.raw(&hops)), Binding::Comparison),
                        false => ("true".to_owned(), Binding::Atom),
                    }
                }
                Node::Param(param) => {
                    let own = &self.subject.stencil.stencil.params[*param];
                    let (name, c_type) = (own.name.clone(), computing_type(own.kind, self.subject.precision));
                    (self.parameter(&name, c_type, What::Param(*param)), Binding::Atom)
                }
                Node::Level if !self.subject.stencil.mesh.levels => (begun.at.1.to_string(), Binding::Atom),
                Node::Level => match begun.at.1 {
                    0 => (self.k.clone(), Binding::Atom),
                    1.. => (format!("{} + {}", self.k, begun.at.1), Binding::Sum),
                    _ => (format!("{} - {}", self.k, -begun.at.1), Binding::Sum),
                },
                Node::LevelCount => (self.subject.levels.to_string(), Binding::Atom),
                _ => continue,
            };
            begun.leaves.push((node.clone(), text, binding));
        }
        None
    }

    /// The text of a body, given those of what it looks at.
    fn text_of(&mut self, body: &Body, leaves: &[(Node, String, Binding)]) -> String {
        let leaf = |node: &Node| {
            let found = leaves.iter().find(|(known, ..)| known == node);
            found.map_or((String::new(), Binding::Atom), |(_, text, binding)| (text.clone(), *binding))
        };
        let mut helpers = std::mem::take(&mut self.helpers);
        let precision = self.subject.precision;
        let ends = self.ends;
        let mut other = |id: NodeId, texts: &mut Texts| match &body[id] {
            Node::Binary(Binary::Div, a, b) if self.is_quick && body.kind_of(id) == Kind::Real => {
                let (a, b) = (texts.operand(*a, Binding::Choice), texts.operand(*b, Binding::Choice));
                Some((self.quotient(&a, &b), Binding::Atom))
            }
            Node::Choose { condition, yes, no } if is_turned(body, ends, *condition, *yes, *no) => {
                let text = texts.operand(*no, Binding::Choice);
                Some((format!("real_turned({text}, {})", self.names.internal("turn")), Binding::Atom))
            }
            _ => None,
        };
        let text = written(body, precision, Math::Own, &mut helpers, &leaf, &mut other);
        self.helpers = helpers;
        text
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
