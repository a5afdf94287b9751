//! The levels that a stencil computes, as a C++ function: for kernels built before grid and parameters are known.

use super::computing_type;
use super::expression::{Helpers, operation};
use crate::analysis::levels::{Judge, Rules};
use crate::depth::needed_first;
use crate::ir::{Binding, Body, DefId, FieldId, Handle, Kind, Levels, Node, NodeId, Precision, Stencil, Texts};
use crate::plan::Math;
use std::collections::HashMap;

/// The body of `static bool computed(int k, int nk, params...)`.
pub struct Written {
    /// Lines; the last returns.
    pub lines: Vec<String>,
    /// Functions of the prelude that they call.
    pub helpers: Helpers,
    /// Whether parameters decide.
    pub uses_params: bool,
}

/// Writes down on which levels every output of `stencil` can be computed. Parameters are called by `param`.
pub fn write(stencil: &Stencil, precision: Precision, param: &dyn Fn(&str) -> String) -> Written {
    let writer = Writer {
        stencil,
        precision,
        param,
        written: Written { lines: Vec::new(), helpers: Helpers::new(), uses_params: false },
        names: HashMap::new(),
    };
    let mut rules = Rules::new(stencil, writer);
    let truth = rules.computed();
    let mut written = rules.into_judge().written;
    written.lines.push(format!("return {};", truth.text));
    written
}

struct Writer<'a> {
    stencil: &'a Stencil,
    precision: Precision,
    param: &'a dyn Fn(&str) -> String,
    written: Written,
    /// What definitions, so many levels away, are called.
    names: HashMap<(DefId, i32), String>,
}

/// A condition as text, holding together tightly enough for `&&` and `||`.
#[derive(Clone, PartialEq)]
struct Truth {
    text: String,
}

impl Truth {
    fn is(&self, constant: bool) -> bool {
        self.text == if constant { "true" } else { "false" }
    }
}

/// Longer conditions get a name, so that nothing is written twice.
const LONG: usize = 60;

impl Writer<'_> {
    fn named(&mut self, kind: &str, text: String) -> String {
        let name = format!("v{}", self.written.lines.len());
        self.written.lines.push(format!("const {kind} {name} = {text};"));
        name
    }

    fn short(&mut self, text: String) -> Truth {
        let text = if text.len() > LONG { self.named("bool", text) } else { text };
        Truth { text }
    }

    /// The text of a known node, `shift` levels away.
    fn known(&mut self, body: &Body, root: NodeId, shift: i32) -> String {
        let body = body.rooted(root);
        let stencil = self.stencil;
        let unnamed = |(def, shift): &(DefId, i32)| self.unnamed(&stencil.defs[*def].body, *shift);
        for (def, shift) in needed_first(self.unnamed(&body, shift), unnamed) {
            let own = &stencil.defs[def].body;
            let text = self.text(own, shift);
            let name = self.named(computing_type(own.kind(), self.precision), text);
            self.names.insert((def, shift), name);
        }
        self.text(&body, shift)
    }

    /// The definitions that a body uses, and where, which have no names yet.
    fn unnamed(&self, body: &Body, shift: i32) -> Vec<(DefId, i32)> {
        let uses = body.iter().filter_map(|(_, node)| match node {
            Node::Use { def, path } => Some((*def, shift.saturating_add(path.levels()))),
            _ => None,
        });
        uses.filter(|key| !self.names.contains_key(key)).collect()
    }

    /// The text of a body whose definitions have names.
    fn text(&mut self, body: &Body, shift: i32) -> String {
        let mut texts = Texts::new(body);
        for (id, node) in body.iter() {
            let (text, binding) = match node {
                Node::Param(param) => {
                    self.written.uses_params = true;
                    ((self.param)(&self.stencil.params[*param].name), Binding::Atom)
                }
                Node::Level if shift == 0 => ("k".into(), Binding::Atom),
                Node::Level => (format!("(k + {shift})"), Binding::Atom),
                Node::LevelCount => ("nk".into(), Binding::Atom),
                Node::Use { def, path } => {
                    (self.names[&(*def, shift.saturating_add(path.levels()))].clone(), Binding::Atom)
                }
                // A known node reads nothing.
                Node::Read { .. } => continue,
                _ => operation(body, id, self.precision, Math::Own, &mut texts, &mut self.written.helpers),
            };
            texts.add(text, binding);
        }
        texts.finish().0
    }
}

impl Judge for Writer<'_> {
    type Truth = Truth;

    fn constant(&mut self, truth: bool) -> Truth {
        Truth { text: truth.to_string() }
    }

    fn and(&mut self, a: &Truth, b: &Truth) -> Truth {
        match () {
            () if a.is(false) || b.is(true) || a == b => a.clone(),
            () if a.is(true) || b.is(false) => b.clone(),
            // The same condition again adds nothing. (Without parentheses, what stands between `&&` is a condition.)
            () if !b.text.contains('(') => {
                let known: Vec<&str> = a.text.split(" && ").collect();
                let new: Vec<&str> = b.text.split(" && ").filter(|part| !known.contains(part)).collect();
                if new.is_empty() { a.clone() } else { self.short(format!("{} && {}", a.text, new.join(" && "))) }
            }
            () => self.short(format!("{} && {}", a.text, b.text)),
        }
    }

    fn or(&mut self, a: &Truth, b: &Truth) -> Truth {
        match () {
            () if a.is(true) || b.is(false) || a == b => a.clone(),
            () if a.is(false) || b.is(true) => b.clone(),
            () => self.short(format!("({} || {})", grouped(a), grouped(b))),
        }
    }

    fn not(&mut self, a: &Truth) -> Truth {
        match () {
            () if a.is(true) => self.constant(false),
            () if a.is(false) => self.constant(true),
            () => self.short(format!("!({})", a.text)),
        }
    }

    fn exists(&mut self, _: FieldId, shift: i32, levels: Levels) -> Truth {
        let text = match (shift, levels) {
            (0, _) | (_, Levels::None) => "true".into(),
            (1, Levels::Interfaces) => "true".into(),
            (..0, _) => format!("k >= {}", shift.unsigned_abs()),
            (_, Levels::Interfaces) => format!("k < nk - {}", shift - 1),
            (_, Levels::Full) => format!("k < nk - {shift}"),
        };
        Truth { text }
    }

    fn condition(&mut self, body: &Body, node: NodeId, shift: i32) -> Truth {
        debug_assert_eq!(body.kind_of(node), Kind::Bool);
        let text = self.known(body, node, shift);
        let simple = matches!(body[node], Node::Compare(..) | Node::Bool(_) | Node::Param(_));
        let text = if simple { text } else { format!("({text})") };
        self.short(text)
    }

    fn found(&mut self, def: DefId, _: i32, truth: Truth) -> Truth {
        debug_assert!(def.index() < self.stencil.defs.len());
        truth
    }
}

/// In parentheses if it is a conjunction.
fn grouped(truth: &Truth) -> String {
    if truth.text.contains(" && ") { format!("({})", truth.text) } else { truth.text.clone() }
}
