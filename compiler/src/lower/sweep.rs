//! Sweeps: values that are made of others at the levels before.
//!
//! A name of a sweep can be read above the line that defines it, at a level that was done before. What it is (a whole
//! number, a vector) is then not known yet, so it is taken to be something, and the sweep is read again until it comes out
//! as that.

use super::declare::new_field;
use super::mesh::Over;
use super::moved::Leads;
use super::rounding::Rounding;
use super::scope::{Binding, Global};
use super::value::{Alias, Bound, Value};
use super::{Found, Lowering};
use crate::ast::{self, Expr, ExprId, Infix, Name, Prefix, Statement};
use crate::diagnostic::{Diagnostic, wrong};
use crate::ir::mesh::Write;
use crate::ir::{
    Body, DefId, Direction, FieldId, Handle, Kind, Node, Origin, Path, Place, Print, Role, Store, Stored, Sweep,
    SweepId,
};
use crate::source::Span;
use crate::text::FreeText;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The most sweeps of one stencil.
const SWEEPS: usize = 16;

/// What is known of the sweeps of a stencil.
#[derive(Clone, Default)]
pub(super) struct Sweeps {
    /// The one being written.
    current: Option<Current>,
    /// How each definition depends on them.
    ties: Vec<Tie>,
    /// The field of each definition that is read at another level, or after its sweep.
    carried: HashMap<DefId, FieldId>,
    /// The sweep that each of these fields, and of those read ahead of their names, belongs to.
    fields: HashMap<FieldId, SweepId>,
    /// The values of outputs that sweeps assign.
    outputs: HashMap<FieldId, DefId>,
    /// Fields read ahead of their names, of which it is not known yet how they are rounded.
    unsure: HashSet<FieldId>,
}

/// How a definition depends on sweeps; what depends on several does so as on the last of these.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tie {
    /// Not at all.
    Free,
    /// On some that are done.
    After,
    /// It is computed level by level in one of them.
    In(SweepId),
}

/// The sweep being written.
#[derive(Clone)]
struct Current {
    id: SweepId,
    direction: Direction,
    names: BTreeMap<String, Ahead>,
    /// The name that the statement being written defines, if it defines one alone.
    defining: Option<String>,
}

/// A name that a sweep defines.
#[derive(Clone)]
struct Ahead {
    /// Where it stands.
    span: Span,
    /// What it is taken to be.
    assumed: Value<Kind>,
    /// How it is taken to be rounded, if it is real.
    rounding: Rounding,
    /// What it turned out to be.
    found: Option<Value<Kind>>,
    /// How it turned out to be rounded.
    rounded: Rounding,
    /// Its fields, if it was read before it was defined.
    fields: Option<Value<FieldId>>,
    /// Whether anything but its own value was made of it before.
    is_used: bool,
}

impl<'a> Lowering<'a> {
    /// `sweep k up { ... }`
    pub(super) fn sweep(&mut self, sweep: &'a ast::Sweep) {
        if self.lacks_levels() {
            // That outputs are not assigned would be the same error again.
            let names = sweep.statements.iter().flat_map(defined);
            self.scope.assigned.extend(names.map(|(name, _)| (name.text.clone(), name.span)));
            return self.no_levels(sweep.span, "there is nothing to sweep through").unwrap_or_default();
        }
        if sweep.axis.text != "k" {
            let found = wrong(sweep.axis.span, "a sweep goes along `k`", "write `k`");
            self.tell(found.help("on an unstructured grid, the levels alone have an order"));
        }
        if self.stencil.sweeps.len() >= SWEEPS {
            let found = wrong(sweep.span, format!("a stencil has at most {SWEEPS} sweeps"), "one too many");
            return self.tell(found.help("split the stencil in two, and store what is between them"));
        }
        let mut assumed: BTreeMap<String, Value<Kind>> = BTreeMap::new();
        // Where numbers of single precision are about, a value that is made of itself and of these is one: first it takes what it meets.
        let start = if self.file.names_single { Rounding::Any } else { Rounding::Real };
        let mut roundings: BTreeMap<String, Rounding> = BTreeMap::new();
        let mut rounds = 2 * sweep.statements.len() + 3;
        loop {
            let mut attempt = self.clone();
            let names = attempt.attempt(sweep, &assumed, &roundings, start);
            let is_unsettled = |ahead: &Ahead| {
                let is_other = ahead.found.as_ref().is_some_and(|found| *found != ahead.assumed);
                let is_unsure = match ahead.rounding {
                    Rounding::Any => true,
                    Rounding::Single => ahead.rounded != Rounding::Single,
                    Rounding::Real => false,
                };
                ahead.fields.is_some() && ahead.found.is_some() && (is_other || is_unsure)
            };
            let unsettled = names.values().find(|ahead| is_unsettled(ahead)).map(|ahead| ahead.span);
            rounds -= 1;
            if unsettled.is_none() || rounds == 0 {
                *self = attempt;
                if let Some(place) = unsettled {
                    let found = wrong(place, "what kind of value this is cannot be told", "it is made of itself");
                    self.tell(found.help("make one branch a `real`, as in `0.0`"));
                }
                return;
            }
            for (name, ahead) in names {
                let rounding = match (ahead.rounding, ahead.rounded) {
                    (Rounding::Any | Rounding::Single, Rounding::Single) => Rounding::Single,
                    _ => Rounding::Real,
                };
                roundings.insert(name.clone(), rounding);
                assumed.extend(ahead.found.map(|found| (name, found)));
            }
        }
    }

    /// Writes a sweep, with names taken to be what is assumed.
    fn attempt(
        &mut self,
        sweep: &'a ast::Sweep,
        assumed: &BTreeMap<String, Value<Kind>>,
        roundings: &BTreeMap<String, Rounding>,
        start: Rounding,
    ) -> BTreeMap<String, Ahead> {
        let direction = sweep.direction;
        let id = self.stencil.sweeps.add(Sweep { direction, span: sweep.span });
        let mut names = BTreeMap::new();
        for (name, value) in sweep.statements.iter().flat_map(defined) {
            let assumed = assumed.get(&name.text).cloned().unwrap_or_else(|| self.guess(value));
            let rounding = self.rounding_said(name, &sweep.statements);
            let rounding = rounding.unwrap_or_else(|| roundings.get(&name.text).copied().unwrap_or(start));
            let (span, rounded) = (name.span, Rounding::Real);
            let ahead = Ahead { span, assumed, rounding, found: None, rounded, fields: None, is_used: false };
            names.entry(name.text.clone()).or_insert(ahead);
        }
        self.sweeps.current = Some(Current { id, direction, names, defining: None });
        for statement in &sweep.statements {
            if let Some(current) = &mut self.sweeps.current {
                let defined = defined(statement);
                current.defining = if let [(only, _)] = &defined[..] { Some(only.text.clone()) } else { None };
            }
            if self.is_given_up() {
                break;
            }
            self.refuse_place(statement);
            match statement {
                Statement::Let(binding) if self.lets_an_output(binding, &sweep.statements) => {}
                Statement::Let(binding) => self.define_let(binding),
                Statement::Assign(assign) => self.assign(assign),
                Statement::Print(print) => self.print(print),
                Statement::Param(params) => {
                    self.no_part_of_a_sweep(params.names.first().map_or(sweep.span, |name| name.span))
                }
                Statement::Field(ast::Fields { role: name, .. })
                | Statement::Constant(ast::Constant { name, .. })
                | Statement::Function(ast::Function { name, .. }) => self.no_part_of_a_sweep(name.span),
                Statement::Sweep(inner) => {
                    self.no_part_of_a_sweep(inner.span);
                    // That outputs are not assigned would be the same error again.
                    let names = inner.statements.iter().flat_map(defined);
                    self.scope.assigned.extend(names.map(|(name, _)| (name.text.clone(), name.span)));
                }
                Statement::Repeat(ast::Repeat { span, .. })
                | Statement::Boundary(ast::Boundary { span, .. })
                | Statement::Reduce(ast::Reduce { span, .. })
                | Statement::Within(ast::Within { span, .. })
                | Statement::Zones(ast::Zones { span, .. })
                | Statement::SumsByLevel(span) => self.no_part_of_a_sweep(*span),
            }
        }
        let names = self.sweeps.current.take().map(|current| current.names).unwrap_or_default();
        // What is read above its definition is read all the same.
        for (name, _) in names.iter().filter(|(_, ahead)| ahead.is_used) {
            self.scope.use_name(name);
        }
        names
    }

    /// How a statement of a sweep says that a value is rounded, if it does.
    fn rounding_said(&self, name: &Name, statements: &[Statement]) -> Option<Rounding> {
        let of_type = |stored: Stored| match stored {
            Stored::F32 => Rounding::Single,
            Stored::Real | Stored::F64 | Stored::Int | Stored::Bool => Rounding::Real,
        };
        if let Some(field) = self.field_at(&name.text) {
            let is_single = self.stencil.fields[field].is_single;
            return Some(if is_single { Rounding::Single } else { Rounding::Real });
        }
        statements.iter().find_map(|statement| match statement {
            Statement::Let(ast::Let { names, typed: Some(typed), .. }) => {
                names.iter().any(|own| own.text == name.text).then(|| of_type(typed.stored))
            }
            _ => None,
        })
    }

    fn no_part_of_a_sweep(&mut self, place: Span) {
        let found = wrong(place, "a sweep holds `let`, assignments and `print` alone", "this stands before it");
        self.tell(found.help("sweeps follow each other; none stands inside another"));
    }

    /// What an expression is likely to be: the first guess of what it turns out to be.
    fn guess(&self, expr: ExprId) -> Value<Kind> {
        let (mut expr, file) = (expr, self.file);
        // Functions may call each other in a circle.
        for _ in 0..super::CALLS {
            expr = match &file.exprs[expr] {
                Expr::Truth(_) | Expr::Prefix(Prefix::Not, _) => return Value::One(Kind::Bool),
                Expr::Infix(Infix::Compare(_) | Infix::And | Infix::Or, ..) => return Value::One(Kind::Bool),
                Expr::Vector(parts) => return Value::Many(vec![Kind::Int; parts.len()]),
                Expr::Name(name) => return self.guess_of_name(name),
                Expr::Group(inner) | Expr::Level(inner) | Expr::Index(inner, _) => *inner,
                Expr::Block(block) => block.value,
                // A branch that is the name itself, at another level, says nothing.
                Expr::Choose(arms, otherwise) => match arms.first().map(|(_, block)| block.value) {
                    Some(first) if !matches!(file.exprs[first], Expr::Index(..)) => first,
                    _ => otherwise.value,
                },
                Expr::Call(Name { text, .. }, _) => {
                    match (self.scope.binding(text).cloned(), self.globals.find(text)) {
                        (Some(Binding::Function(own)), _) | (_, Some(Global::Function(own))) => own.body.value,
                        _ => return Value::One(Kind::Int),
                    }
                }
                Expr::Real(_) | Expr::Int(_) | Expr::Prefix(Prefix::Negate, _) => return Value::One(Kind::Int),
                Expr::Infix(Infix::Arithmetic(_) | Infix::Power, ..) | Expr::Component(..) | Expr::Fold(..) => {
                    return Value::One(Kind::Int);
                }
            };
        }
        Value::One(Kind::Int)
    }

    fn guess_of_name(&self, name: &str) -> Value<Kind> {
        match self.scope.binding(name) {
            Some(Binding::Field(field)) => Value::One(self.stencil.fields[*field].stored.kind()),
            Some(Binding::Param(param)) => Value::One(self.stencil.params[*param].kind),
            Some(Binding::Value(bound)) => bound.clone().map(|alias| self.kind_of_alias(&alias)),
            Some(Binding::Constant(_) | Binding::Function(_) | Binding::Variable(_)) => Value::One(Kind::Int),
            Some(Binding::Slot(_) | Binding::Broken) | None => Value::One(Kind::Int),
        }
    }

    /// What a value that has a name is.
    pub(super) fn kind_of_alias(&self, alias: &Alias) -> Kind {
        match alias {
            Alias::Field(field, ..) | Alias::Slots(field, ..) | Alias::Ahead(field, _) => {
                self.stencil.fields[*field].stored.kind()
            }
            Alias::Def(def, _) => self.stencil.defs[*def].body.kind(),
            Alias::Param(param) => self.stencil.params[*param].kind,
            Alias::Int(_) => Kind::Int,
        }
    }

    /// How what has a name is rounded, if it is real.
    fn rounding_of_alias(&self, alias: &Alias) -> Rounding {
        match alias {
            Alias::Field(field, ..) | Alias::Slots(field, ..) | Alias::Ahead(field, _) => {
                if self.stencil.fields[*field].is_single { Rounding::Single } else { Rounding::Real }
            }
            Alias::Def(def, _) => self.size.rounding(*def),
            Alias::Param(param) if self.stencil.params[*param].is_single => Rounding::Single,
            Alias::Param(_) => Rounding::Real,
            Alias::Int(_) => Rounding::Any,
        }
    }

    /// Whether it is not known yet how a value of a sweep is rounded.
    pub(super) fn is_unsure(&self, field: FieldId) -> bool {
        self.sweeps.unsure.contains(&field)
    }

    /// Whether a name stands for a value that the sweep being written defines below.
    pub(super) fn is_ahead(&self, name: &str) -> bool {
        let ahead = self.sweeps.current.as_ref().and_then(|current| current.names.get(name));
        ahead.is_some_and(|ahead| ahead.found.is_none()) && self.calls.is_empty() && self.constants.depth == 0
    }

    /// The value of a name that the sweep being written defines below.
    pub(super) fn ahead(&mut self, name: &str) -> Found<Bound> {
        if !self.is_ahead(name) {
            return None;
        }
        let current = self.sweeps.current.as_mut()?;
        let is_own = current.defining.as_deref() == Some(name);
        let (id, ahead) = (current.id, current.names.get_mut(name)?);
        ahead.is_used |= !is_own;
        let known = ahead.fields.clone();
        let (assumed, span, rounding) = (ahead.assumed.clone(), ahead.span, ahead.rounding);
        let fields = known.unwrap_or_else(|| assumed.map(|kind| self.add_carried(name, kind, span, id)));
        for field in fields.clone().into_parts() {
            self.stencil.fields[field].is_single = rounding == Rounding::Single;
            if rounding == Rounding::Any {
                self.sweeps.unsure.insert(field);
            }
        }
        self.sweeps.current.as_mut()?.names.get_mut(name)?.fields = Some(fields.clone());
        Some(fields.map(|field| Alias::Ahead(field, Path::default())))
    }

    fn add_carried(&mut self, name: &str, kind: Kind, span: Span, sweep: SweepId) -> FieldId {
        let place = self.over.as_ref().map_or(Place::CELLS, Over::place);
        let field = self.stencil.fields.add(new_field(name, Role::Carried, place, Stored::of(kind), span));
        self.sweeps.fields.insert(field, sweep);
        field
    }

    /// Notes what a name of the sweep being written turned out to be; nothing if it is broken.
    pub(super) fn sweep_defines(&mut self, name: &str, bound: Option<&Bound>) {
        let kinds = bound.map(|bound| bound.clone().map(|alias| self.kind_of_alias(&alias)));
        let parts = bound.cloned().map(Value::into_parts).unwrap_or_default();
        let all = |rounding: Rounding| parts.iter().all(|alias| self.rounding_of_alias(alias) == rounding);
        let rounded = if all(Rounding::Single) { Rounding::Single } else { Rounding::Real };
        let Some(current) = &mut self.sweeps.current else { return };
        let id = current.id;
        let Some(ahead) = current.names.get_mut(name).filter(|ahead| ahead.found.is_none()) else { return };
        ahead.found = Some(kinds.unwrap_or_else(|| ahead.assumed.clone()));
        ahead.rounded = rounded;
        let fields = ahead.fields.clone();
        let (Some(fields), Some(bound)) = (fields, bound.cloned()) else { return };
        for (field, alias) in fields.into_parts().into_iter().zip(bound.into_parts()) {
            let span = self.stencil.fields[field].span;
            if let Alias::Def(def, path) = &alias
                && path.is_here()
            {
                self.sweeps.carried.entry(*def).or_insert(field);
            }
            // If it was taken for something else, all is read again.
            if self.kind_of_alias(&alias) == self.stencil.fields[field].stored.kind()
                && let Some(Value::One(body)) = self.bodies(|own| own.place_value(Value::One(alias), span))
            {
                self.add_store(Store { field, body, sweep: Some(id) });
            }
        }
    }

    /// The field of a definition that a sweep computes.
    fn carried(&mut self, def: DefId, sweep: SweepId) -> FieldId {
        if let Some(&field) = self.sweeps.carried.get(&def) {
            return field;
        }
        let own = &self.stencil.defs[def];
        let (name, kind, span) = (own.name.clone(), own.body.kind(), own.body.span_of(own.body.root()));
        let field = self.add_carried(&name, kind, span, sweep);
        self.stencil.fields[field].is_single = self.size.rounding(def) == Rounding::Single;
        let body = single(Node::Use { def, path: Path::default() }, kind, span);
        self.add_store(Store { field, body, sweep: Some(sweep) });
        self.sweeps.carried.insert(def, field);
        field
    }

    pub(super) fn current_sweep(&self) -> Option<SweepId> {
        self.sweeps.current.as_ref().map(|current| current.id)
    }

    /// Remembers how the next definition depends on sweeps.
    pub(super) fn tie(&mut self, body: &Body) {
        let current = self.current_sweep();
        let ties = body.iter().map(|(_, node)| match node {
            Node::Read { field, .. } => match self.sweeps.fields.get(field) {
                Some(&sweep) if Some(sweep) == current => Tie::In(sweep),
                Some(_) => Tie::After,
                None => Tie::Free,
            },
            Node::Use { def, .. } => self.sweeps.ties[def.index()],
            _ => Tie::Free,
        });
        let tie = ties.max().unwrap_or(Tie::Free);
        self.sweeps.ties.push(tie);
    }

    /// Whether a field is a value of a sweep.
    pub(super) fn is_carried(&self, field: FieldId) -> bool {
        self.sweeps.fields.contains_key(&field)
    }

    /// The value of an output that a sweep assigned, or will.
    pub(super) fn swept_output(&mut self, field: FieldId, name: &str) -> Found<Bound> {
        match self.sweeps.outputs.get(&field) {
            Some(&def) => Some(Value::One(Alias::Def(def, Path::default()))),
            None => self.ahead(name),
        }
    }

    /// Assigns an output, in a sweep or not.
    pub(super) fn store(&mut self, field: FieldId, mut body: Body) {
        let sweep = self.current_sweep();
        let declared = self.stencil.fields[field].clone();
        if sweep.is_some() && declared.role == Role::Out {
            let (root, span) = (body.root(), body.span_of(body.root()));
            // What is read of it is what is stored.
            if declared.stored == Stored::F32 {
                body.add(Node::ToSingle(root), Kind::Real, span);
            }
            let kind = body.kind();
            let rounding = if self.stencil.fields[field].is_single { Rounding::Single } else { Rounding::Real };
            let Some(def) = self.add_def(body, rounding, &declared.name, Origin::Let) else { return };
            self.sweeps.outputs.insert(field, def);
            self.sweep_defines(&declared.name, Some(&Value::One(Alias::Def(def, Path::default()))));
            body = single(Node::Use { def, path: Path::default() }, kind, span);
        }
        self.add_store(Store { field, body, sweep });
    }

    /// Adds a store, which assigns a plain number.
    fn add_store(&mut self, store: Store) {
        self.stencil.stores.push(store);
        if let Some(over) = &mut self.over {
            over.writes.push(Write::default());
        }
    }

    /// A print of a sweep's values, which shows what they are when all is done.
    pub(super) fn show(&mut self, label: String, span: Span, mut body: Body) {
        if let Some(current) = self.current_sweep() {
            let (kind, at) = (body.kind(), body.span_of(body.root()));
            let Some(def) = self.add_def(body, Rounding::Real, "printed", Origin::Let) else { return };
            let path = Path::default();
            let node = match self.sweeps.ties[def.index()] {
                Tie::In(_) => Node::Read { field: self.carried(def, current), path, part: 0, by: None },
                Tie::Free | Tie::After => Node::Use { def, path },
            };
            body = single(node, kind, at);
        }
        self.stencil.prints.push(Print { label: FreeText::new(label), span, body });
    }

    /// The node that stands for a definition's value at the end of a path.
    pub(super) fn use_of(&mut self, def: DefId, path: Path, span: Span) -> Found<Node> {
        let current = self.sweeps.current.as_ref().map(|current| (current.id, current.direction));
        let tie = self.sweeps.ties[def.index()];
        let name = self.stencil.defs[def].name.clone();
        if tie != Tie::Free && path.is_away() {
            return self.beside(&name, &path, span);
        }
        let Tie::In(sweep) = tie else { return Some(Node::Use { def, path }) };
        if let Some((_, direction)) = current.filter(|(own, _)| *own == sweep) {
            if path.levels() == 0 {
                return Some(Node::Use { def, path });
            }
            if direction.before(path.levels()) == 0 {
                return self.too_late(&name, direction, span);
            }
        }
        Some(Node::Read { field: self.carried(def, sweep), path, part: 0, by: None })
    }

    /// The node that stands for the value of a name that is defined below, where its path leads.
    pub(super) fn read_ahead(&mut self, field: FieldId, path: Path, span: Span) -> Found<Node> {
        let own = &self.stencil.fields[field];
        let (name, defined) = (own.name.clone(), own.span);
        let direction = self.sweeps.current.as_ref()?.direction;
        if path.is_away() {
            return self.beside(&name, &path, span);
        }
        match path.levels() {
            0 => {
                let example = if direction == Direction::Up { "k-1" } else { "k+1" };
                let label = if defined.start < span.start { "used in its own definition" } else { "defined below" };
                let found = wrong(span, format!("`{name}` is not known here at its own level"), label);
                let found = found.note(defined, "defined here");
                self.report(found.help(format!("at the level before, it is `{name}[{example}]`")))
            }
            shift if direction.before(shift) > 0 => Some(Node::Read { field, path, part: 0, by: None }),
            _ => self.too_late(&name, direction, span),
        }
    }

    fn beside<T>(&mut self, name: &str, path: &Path, span: Span) -> Found<T> {
        let column = path.clone().without_levels();
        let message = match &self.over {
            None => format!("`{name}` comes of a sweep: it is not known in the column `{column}`"),
            Some(over) => format!("`{name}` comes of a sweep: it is not known at `{}`", over.written(&column)),
        };
        let found = wrong(span, message, "each column is computed by itself");
        self.report(found.help(format!("assign `{name}` to an output, and read that in another stencil")))
    }

    fn too_late<T>(&mut self, name: &str, direction: Direction, span: Span) -> Found<T> {
        let (known, guess) = match direction {
            Direction::Up => ("smaller", "k-1"),
            Direction::Down => ("larger", "k+1"),
        };
        let message = format!("a sweep `k {}` knows its values at levels of {known} k only", direction.name());
        let found = Diagnostic::error(span, message).label(format!("did you mean `{name}[{guess}]`?"));
        let help = "what is needed at levels that come later belongs into a sweep of its own, after this one";
        self.report(found.help(help))
    }

    /// Reports a read of an `inout`, at a level that the sweep being written has assigned already.
    pub(super) fn is_ambiguous(&mut self, field: FieldId, path: &Path, leads: Option<Leads>, span: Span) -> bool {
        let own = &self.stencil.fields[field];
        let Some(current) = &self.sweeps.current else { return false };
        let is_assigned = current.names.contains_key(&own.name);
        let is_level = leads.is_some_and(Leads::is_level);
        if own.role != Role::InOut || !is_assigned || current.direction.before(path.levels()) == 0 && !is_level {
            return false;
        }
        let (name, shift) = (own.name.clone(), path.levels());
        let found =
            Diagnostic::error(span, format!("`{name}` is assigned in this sweep: which of its values is meant?"))
                .label("the one before, or the new one?");
        let read = if is_level { "before[level n]".to_owned() } else { format!("before[k{shift:+}]") };
        let found =
            found.help(format!("the one before: name it ahead of the sweep, `let before = {name}`, and read `{read}`"));
        if is_level {
            self.tell(
                found.help("the new one is known on all levels when the sweep is over: read it in another stencil"),
            );
            return true;
        }
        self.tell(found.help(format!(
            "the new one: name it, `let next = ...`, assign `{name} = next`, and read `next[k{shift:+}]`"
        )));
        true
    }
}

/// A body of one node.
pub(super) fn single(node: Node, kind: Kind, span: Span) -> Body {
    let mut body = Body::new();
    body.add(node, kind, span);
    body
}

/// The names that a statement of a sweep defines, and their value.
fn defined(statement: &Statement) -> Vec<(&ast::Name, ExprId)> {
    match statement {
        Statement::Let(binding) => binding.names.iter().map(|name| (name, binding.value)).collect(),
        Statement::Assign(assign) => assign.targets.iter().map(|target| (&target.name, assign.value)).collect(),
        Statement::Field(_) | Statement::Param(_) | Statement::Constant(_) | Statement::Function(_) => Vec::new(),
        Statement::Print(_) | Statement::Sweep(_) | Statement::Repeat(_) => Vec::new(),
        Statement::Boundary(_) | Statement::Reduce(_) => Vec::new(),
        Statement::SumsByLevel(_) | Statement::Within(_) | Statement::Zones(_) => Vec::new(),
    }
}
