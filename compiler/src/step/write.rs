//! Names and texts that step kernels are made of.

use super::flow::{Flow, Source, Use, used};
use super::{Parameter, Subject};
use crate::cuda::expression::{Helpers, computing_type, read_as, stored_as, written};
use crate::cuda::rows;
use crate::ir::{Binding, Body, FieldId, Kind, Levels, Node, ParamId, Precision, Role, Store};
use crate::kernel::Meaning;
use crate::names::{Identifier, Names};
use crate::plan::{Math, stored_type};
use crate::text::Comment;
use std::collections::BTreeMap;

/// Writes the parts of one kernel.
pub struct Writer<'a> {
    /// What the kernel computes.
    pub subject: &'a Subject<'a>,
    /// Names given out.
    pub names: Names,
    /// Functions of the prelude that are called.
    pub helpers: Helpers,
    /// What the kernel takes.
    pub parameters: Vec<Parameter>,
    inputs: BTreeMap<FieldId, Identifier>,
    outputs: BTreeMap<FieldId, Identifier>,
    params: BTreeMap<ParamId, Identifier>,
    /// Names of rows and uniform values.
    sources: BTreeMap<Source, String>,
}

impl<'a> Writer<'a> {
    /// A writer for a kernel of these rows. The user's names come first, so that they stay as they are.
    pub fn new(subject: &'a Subject<'a>, flow: &Flow) -> Self {
        let Subject { stencil, precision, .. } = *subject;
        let mut names = Names::default();
        let (mut inputs, mut outputs, mut params) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for (id, field) in stencil.own_fields() {
            let name = names.declared(&field.name);
            if field.role.is_read() {
                inputs.insert(id, name);
            } else {
                outputs.insert(id, name);
            }
        }
        for (id, param) in stencil.params.iter() {
            params.insert(id, names.declared(&param.name));
        }
        for (id, field) in stencil.fields.iter().filter(|(_, field)| field.role == Role::InOut) {
            outputs.insert(id, names.declared(&format!("{}_new", field.name)));
        }
        let mut sources = BTreeMap::new();
        for &source in flow.uniforms.iter().chain(flow.rows.iter().map(|row| &row.source)) {
            let (name, shift, is_row) = match source {
                // Names of a field's rows begin as its own.
                Source::Field(field, 0) if stencil.fields[field].place.horizontal => {
                    sources.insert(source, inputs[&field].to_string());
                    continue;
                }
                Source::Field(field, shift) => (inputs[&field].to_string(), shift, false),
                Source::Def(def, shift) => (stencil.defs[def].name.clone(), shift, true),
            };
            let wish = match shift {
                0 if is_row => name,
                0 => format!("{name}_here"),
                1.. => format!("{name}_up{shift}"),
                _ => format!("{name}_down{}", shift.unsigned_abs()),
            };
            sources.insert(source, names.fresh(&wish));
        }
        // A field that nobody reads is no input of the kernel.
        let is_read =
            |id: FieldId| sources.keys().any(|source| matches!(source, Source::Field(field, _) if *field == id));
        let mut parameters = Vec::new();
        for (id, field) in stencil.fields.iter() {
            let c_type = stored_type(field.stored, precision);
            if let Some(name) = inputs.get(&id).filter(|_| is_read(id)) {
                let c_type = format!("const {c_type}*");
                parameters.push(Parameter { name: name.clone(), c_type, meaning: Meaning::Input(id) });
            }
            if let Some(name) = outputs.get(&id) {
                let c_type = format!("{c_type}*");
                parameters.push(Parameter { name: name.clone(), c_type, meaning: Meaning::Output(id) });
            }
        }
        let bodies = || stencil.bodies().flat_map(Body::iter);
        for (id, param) in stencil.params.iter() {
            if bodies().any(|(_, node)| *node == Node::Param(id)) {
                let c_type = computing_type(param.kind, precision).to_owned();
                parameters.push(Parameter { name: params[&id].clone(), c_type, meaning: Meaning::Param(id) });
            }
        }
        Self { subject, names, helpers: Helpers::new(), parameters, inputs, outputs, params, sources }
    }

    /// The pointer of a field that is read.
    pub fn input(&self, field: FieldId) -> &str {
        self.inputs.get(&field).map_or("", |name| &**name)
    }

    /// The pointer of a field that is written.
    pub fn output(&self, field: FieldId) -> &str {
        self.outputs.get(&field).map_or("", |name| &**name)
    }

    /// What a value is called; names of its rows begin with that.
    pub fn name(&self, source: Source) -> &str {
        self.sources.get(&source).map_or("", String::as_str)
    }

    /// What a value is.
    pub fn kind(&self, source: Source) -> Kind {
        let stencil = self.subject.stencil;
        match source {
            Source::Field(field, _) => stencil.fields[field].stored.kind(),
            Source::Def(def, _) => stencil.defs[def].body.kind(),
        }
    }

    /// The type that a value is computed in.
    pub fn c_type(&self, source: Source) -> &'static str {
        computing_type(self.kind(source), self.subject.precision)
    }

    /// `const double weight = ...;`: what is the same on all columns of level `k`.
    pub fn uniforms(&mut self, flow: &Flow) -> Vec<String> {
        let Subject { stencil, precision, .. } = *self.subject;
        let mut lines = Vec::new();
        for &source in &flow.uniforms {
            let text = match source {
                Source::Field(field, shift) => {
                    let own = &stencil.fields[field];
                    let index = match (own.place.levels, shift) {
                        (Levels::None, _) => "0".to_owned(),
                        (_, 0) => self.names.internal("k"),
                        (_, _) => format!("{} + {shift}", self.names.internal("k")),
                    };
                    let element = format!("{}[{index}]", self.inputs[&field]);
                    read_as(element, own.stored, precision)
                }
                Source::Def(def, shift) => {
                    let body = &stencil.defs[def].body;
                    self.expression(body, shift, &|_| None)
                }
            };
            lines.push(format!("const {} {} = {text};", self.c_type(source), self.name(source)));
        }
        lines
    }

    /// The text of a body that is evaluated so many levels away. `element` names what is looked at that differs from column to
    /// column, and nothing else.
    pub fn expression(&mut self, body: &Body, shift: i32, element: &dyn Fn(Use) -> Option<String>) -> String {
        let stencil = self.subject.stencil;
        let [k, nk] = [self.names.internal("k"), self.subject.extents[2].to_string()];
        let (params, sources) = (&self.params, &self.sources);
        let leaf = |node: &Node| match node {
            Node::Param(param) => (params.get(param).map(Identifier::to_string).unwrap_or_default(), Binding::Atom),
            Node::Level => match shift {
                0 => (k.clone(), Binding::Atom),
                1.. => (format!("{k} + {shift}"), Binding::Sum),
                _ => (format!("{k} - {}", shift.unsigned_abs()), Binding::Sum),
            },
            Node::LevelCount => (nk.clone(), Binding::Atom),
            _ => {
                let text = |used: Use| element(used).or_else(|| sources.get(&used.source).cloned());
                (used(stencil, node, shift).and_then(text).unwrap_or_default(), Binding::Atom)
            }
        };
        written(body, self.subject.precision, Math::Own, &mut self.helpers, &leaf)
    }

    /// The text of what an output is assigned, as it is stored.
    pub fn stored(&mut self, store: &Store, element: &dyn Fn(Use) -> Option<String>) -> String {
        let Subject { stencil, precision, .. } = *self.subject;
        let text = self.expression(&store.body, 0, element);
        stored_as(text, stencil.fields[store.field].stored, precision)
    }

    /// The first lines of a kernel's comment, which says what it is.
    pub fn comment(&self, how: String) -> Vec<Comment> {
        super::lower::comment(self.subject, how)
    }

    /// Takes the pointer of a field that would not be needed otherwise.
    pub fn need(&mut self, field: FieldId) {
        let stored = stored_type(self.subject.stencil.fields[field].stored, self.subject.precision);
        let has = |own: &Self, meaning: Meaning| own.parameters.iter().any(|parameter| parameter.meaning == meaning);
        if let Some(name) = self.inputs.get(&field).cloned().filter(|_| !has(self, Meaning::Input(field))) {
            self.parameters.push(Parameter {
                name,
                c_type: format!("const {stored}*"),
                meaning: Meaning::Input(field),
            });
        }
    }

    /// `const double* __restrict__ phi`, one a parameter. Without `restrict` nothing is loaded long before it is used.
    pub fn signature(&self, restrict: bool) -> Vec<String> {
        let text = |parameter: &Parameter| match parameter.c_type.strip_suffix('*') {
            Some(_) if restrict => format!("{} __restrict__ {}", parameter.c_type, parameter.name),
            Some(_) => format!("{} {}", parameter.c_type, parameter.name),
            None => format!("const {} {}", parameter.c_type, parameter.name),
        };
        self.parameters.iter().map(text).collect()
    }
}

/// `statement` for each element of a row.
pub fn each(e: &str, count: usize, statement: &str) -> Vec<String> {
    vec![
        "#pragma unroll".to_owned(),
        format!("for (int {e} = 0; {e} < {count}; ++{e}) {{"),
        format!("    {statement}"),
        "}".to_owned(),
    ]
}

/// The most elements of `bytes` bytes each that one instruction moves, if they come in groups of `together`, and groups
/// begin at multiples of all of `at`.
pub fn width(bytes: usize, together: usize, at: &[usize]) -> usize {
    let mut width = (16 / bytes).max(1);
    while width > 1 && (!together.is_multiple_of(width) || at.iter().any(|at| !at.is_multiple_of(width))) {
        width /= 2;
    }
    width
}

/// Bytes of a real, and of what is computed with it.
pub fn register_bytes(kind: Kind, precision: Precision) -> usize {
    match kind {
        Kind::Real => precision.bytes(),
        Kind::Int | Kind::Bool => 4,
    }
}

/// The lines of the functions on rows that are called, and of those that these call.
pub fn functions(calls: &[&Vec<String>]) -> Vec<String> {
    let is_called = |name: &&str| {
        let mut lines = calls.iter().copied().flatten();
        lines.any(|line| line.contains(&format!("{name}<")) || line.contains(&format!("{name}(")))
    };
    rows::lines(&rows::with_used(rows::names().filter(is_called).collect()))
}
