//! The textual IR, as `--emit ir` prints it.

use super::mesh::{How, Mesh};
use super::{
    Binary, Body, FieldId, Handle, Kind, Levels, MeshStencil, Node, NodeId, Path, Place, Relation, Role, Stencil,
    Stored,
};
use std::fmt;

impl fmt::Display for Stencil {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "stencil {} {{", self.name)?;
        write_all(f, self, None)
    }
}

impl fmt::Display for MeshStencil {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = &self.mesh.sets[self.set()].name;
        writeln!(f, "stencil {} over {}.{set} {{", self.stencil.name, self.mesh.name)?;
        write_all(f, &self.stencil, Some(self))
    }
}

/// Everything after the head of a stencil, which may be part of one over a mesh.
fn write_all(f: &mut fmt::Formatter<'_>, own: &Stencil, over: Option<&MeshStencil>) -> fmt::Result {
    let text = |body| Text { stencil: own, body, mesh: over.map(|over| &over.mesh) };
    for (_, field) in own.own_fields() {
        let home = field.place.home.filter(|home| home.parts > 1).map(|home| format!("[{}]", home.parts));
        let place = over.map_or_else(|| field.place.to_string(), |over| over.mesh.place(field.place));
        let parts = home.unwrap_or_default();
        write!(f, "    {} {}: {}{parts}{place}", field.role.name(), field.name, field.stored)?;
        match field.range {
            Some((low, high)) => writeln!(f, " = {low:?}..{high:?}")?,
            None => writeln!(f)?,
        }
    }
    for (_, param) in own.params.iter() {
        write!(f, "    param {}: {}", param.name, param.kind.name())?;
        match &param.default {
            Some(default) => writeln!(f, " = {}", text(default))?,
            None => writeln!(f)?,
        }
    }
    for bound in &own.within {
        writeln!(f, "    within {} {} {}", bound.axis, bound.is.relation().name(), text(&bound.body))?;
    }
    for (id, def) in own.defs.iter() {
        let set = over.zip(def.over).map(|(over, set)| format!(" on {}", over.mesh.sets[set].name)).unwrap_or_default();
        let (name, kind) = (&def.name, def.body.kind().name());
        writeln!(f, "    let {name}.{}: {kind}{set} = {}", id.index(), text(&def.body))?;
    }
    for (number, store) in own.stores.iter().enumerate() {
        if let Some(sweep) = store.sweep {
            write!(f, "    sweep.{} k {}", sweep.index(), own.sweeps[sweep].direction.name())?;
        }
        let name = own.name_of(store.field);
        let written = over.map(|over| (over, &over.writes[number]));
        let part = written.filter(|_| own.fields[store.field].place.home.is_some_and(|home| home.width > 1));
        let part = part.map(|(_, write)| format!(".{}", write.part)).unwrap_or_default();
        let (at, how) = match written.map(|(over, write)| (over, &write.how)) {
            None | Some((_, How::Assign)) => (String::new(), "=".to_owned()),
            Some((over, How::Add(path))) => (over.mesh.written(path), "+=".to_owned()),
            Some((_, How::Reduce(fold))) => (String::new(), format!("= {} of", fold.name())),
        };
        writeln!(f, "    {name}{at}{part} {how} {}", text(&store.body))?;
    }
    for print in &own.prints {
        writeln!(f, "    print({:?}, {})", print.label.as_told(), text(&print.body))?;
    }
    writeln!(f, "}}")
}

impl Stencil {
    /// What a field is called: a carried one is no field of the user's, and may be called like one.
    fn name_of(&self, field: FieldId) -> String {
        let own = &self.fields[field];
        if own.role == Role::Carried { format!("{}.{}", own.name, own.role.name()) } else { own.name.clone() }
    }
}

impl fmt::Display for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// ` on (k+1)`, or nothing for a field on every cell.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.horizontal, self.levels) {
            (true, Levels::Full) => "",
            (true, Levels::None) => " on (i, j)",
            (true, Levels::Interfaces) => " on (i, j, k+1)",
            (false, Levels::Full) => " on (k)",
            (false, Levels::Interfaces) => " on (k+1)",
            (false, Levels::None) => " on ()",
        })
    }
}

/// A body on one line, but for what is long and used more than once.
struct Text<'a> {
    stencil: &'a Stencil,
    body: &'a Body,
    /// Which names paths have, if they lead through a mesh.
    mesh: Option<&'a Mesh>,
}

impl Text<'_> {
    fn path(&self, path: &Path) -> String {
        self.mesh.map_or_else(|| path.to_string(), |mesh| mesh.written(path))
    }
}

/// How tightly an expression holds together; parentheses stand where a looser one is an operand of a tighter one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    /// `a || b`
    Or,
    /// `a && b`
    And,
    /// `a == b`
    Equality,
    /// `a < b`
    Comparison,
    /// `a + b`
    Sum,
    /// `a * b`
    Product,
    /// `-a`
    Sign,
    /// A name, a number, a call.
    Atom,
}

/// Texts of the nodes of one body. Operands come first, so each text is ready when it is needed; the last user takes it, so
/// that a chain of n operations costs n.
struct Texts {
    texts: Vec<(String, Binding)>,
    uses: Vec<usize>,
}

impl Texts {
    /// No texts yet.
    fn new(body: &Body) -> Self {
        Self { texts: Vec::with_capacity(body.len()), uses: body.times_used() }
    }

    /// The text of an operand, in parentheses if it is `loose`.
    fn operand(&mut self, id: NodeId, loose: impl Fn(Binding) -> bool) -> String {
        let uses = &mut self.uses[id.index()];
        *uses = uses.saturating_sub(1);
        let (text, own) = &mut self.texts[id.index()];
        let text = if *uses == 0 { std::mem::take(text) } else { text.clone() };
        if loose(*own) { format!("({text})") } else { text }
    }

    /// `a op b`, left to right.
    fn infix(&mut self, a: NodeId, (symbol, binding): (&str, Binding), b: NodeId) -> (String, Binding) {
        let mut text = self.operand(a, |own| own < binding);
        let right = self.operand(b, |own| own <= binding);
        text.push_str(&format!(" {symbol} {right}"));
        (text, binding)
    }

    /// `name(a, b)`
    fn call(&mut self, name: &str, operands: &[NodeId]) -> (String, Binding) {
        let operands: Vec<String> = operands.iter().map(|&id| self.operand(id, |_| false)).collect();
        (format!("{name}({})", operands.join(", ")), Binding::Atom)
    }

    /// `-a`; a number or sign below gets parentheses, since `--a` reads as something else.
    fn prefix(&mut self, symbol: &str, a: NodeId) -> (String, Binding) {
        let operand = self.operand(a, |own| own < Binding::Sign);
        let text =
            if operand.starts_with(symbol) { format!("{symbol}({operand})") } else { format!("{symbol}{operand}") };
        (text, Binding::Sign)
    }
}

/// A node that is used more than once and whose text is longer than this gets a line of its own, so that a body of n nodes has a
/// text of the order of n.
const LONG: usize = 200;

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut texts = Texts::new(self.body);
        let mut lines = String::new();
        for (id, node) in self.body.iter() {
            let (text, binding) = match node {
                Node::Real(x) => (format!("{x:?}"), if x.is_sign_negative() { Binding::Sign } else { Binding::Atom }),
                Node::Int(x) => (x.to_string(), if *x < 0 { Binding::Sign } else { Binding::Atom }),
                Node::Bool(x) => (x.to_string(), Binding::Atom),
                Node::Param(param) => (self.stencil.params[*param].name.clone(), Binding::Atom),
                Node::Level => ("k".to_owned(), Binding::Atom),
                Node::Count(axis) => (format!("n{axis}"), Binding::Atom),
                Node::Read { field, path, part, by } => {
                    let place = self.stencil.fields[*field].place;
                    let part = place.home.filter(|home| home.width > 1).map(|_| format!(".{part}"));
                    let path = self.path(path);
                    let name = format!("{}{path}{}", self.stencil.name_of(*field), part.unwrap_or_default());
                    match by {
                        None => (name, Binding::Atom),
                        Some(by) => match &self.body[*by] {
                            Node::Binary(Binary::Sub, _, level) if self.body[*level] == Node::Level => {
                                let by = texts.operand(*by, |_| false);
                                (format!("{name}.level({})", by.strip_suffix(" - k").unwrap_or(&by)), Binding::Atom)
                            }
                            _ => texts.call(&format!("{name}.moved"), &[*by]),
                        },
                    }
                }
                Node::InZone(zones) => (format!("in_zone({}..={})", zones.first, zones.last), Binding::Atom),
                Node::Present { path } => (format!("present{}", self.path(path)), Binding::Atom),
                Node::Use { def, path } => {
                    let path = self.path(path);
                    (format!("{}.{}{path}", self.stencil.defs[*def].name, def.index()), Binding::Atom)
                }
                Node::ToReal(a) => texts.call(Kind::Real.name(), &[*a]),
                Node::ToSingle(a) => texts.call("f32", &[*a]),
                Node::Negate(a) => texts.prefix("-", *a),
                Node::Not(a) => texts.prefix("!", *a),
                Node::Binary(op, a, b) => texts.infix(*a, (op.name(), op.binding()), *b),
                Node::Compare(relation, a, b) => texts.infix(*a, (relation.name(), relation.binding()), *b),
                Node::And(a, b) => texts.infix(*a, ("&&", Binding::And), *b),
                Node::Or(a, b) => texts.infix(*a, ("||", Binding::Or), *b),
                Node::Call(function, operands) => texts.call(function.name(), operands),
                Node::Choose { condition, yes, no } => texts.call("if", &[*condition, *yes, *no]),
            };
            if texts.uses[id.index()] > 1 && text.len() > LONG {
                let name = format!("%{}", id.index());
                lines += &format!("        {name} = {text}\n");
                texts.texts.push((name, Binding::Atom));
            } else {
                texts.texts.push((text, binding));
            }
        }
        let (text, _) = texts.texts.pop().unwrap_or((String::new(), Binding::Atom));
        if lines.is_empty() { f.write_str(&text) } else { write!(f, "{{\n{lines}        {text}\n    }}") }
    }
}

impl Binary {
    /// How tightly it holds its operands.
    fn binding(self) -> Binding {
        match self {
            Binary::Add | Binary::Sub => Binding::Sum,
            Binary::Mul | Binary::Div | Binary::Rem => Binding::Product,
        }
    }
}

impl Relation {
    /// How tightly it holds its operands.
    fn binding(self) -> Binding {
        match self {
            Relation::Lt | Relation::Le | Relation::Gt | Relation::Ge => Binding::Comparison,
            Relation::Eq | Relation::Ne => Binding::Equality,
        }
    }
}
