//! What all kernels of whole steps are made of: arguments by the user's names, planes of arrays, values of bodies.

use super::flow::{Flow, Source, Use, used};
use super::{Kernel, Launch, StepTask};
use crate::cuda;
use crate::diagnostic::Refusal;
use crate::ir::{Body, FieldId, Handle, Levels, Node, ParamId, Role, Store};
use crate::kernel::build::Builder;
use crate::kernel::scalar::Scalar;
use crate::kernel::simplify::simplify;
use crate::kernel::{Array, ArrayId, Contents, Math, Meaning, Space, Type, ValueId};
use crate::names::{Identifier, Names};
use crate::text::Comment;
use std::collections::BTreeMap;

/// How a kernel is made beside what it computes.
pub struct Frame {
    /// How its name ends.
    pub ending: &'static str,
    /// Threads of a block.
    pub threads: usize,
    /// Whether its arrays may be the same memory, or change while it runs. Else elements are loaded long before they are used.
    pub aliased: bool,
    /// What it does, for the head.
    pub how: String,
}

/// Makes one kernel.
pub struct Lowering<'a> {
    /// What the kernel computes.
    pub task: &'a StepTask<'a>,
    /// The kernel so far.
    pub own: Builder,
    scalar: Scalar,
    aliased: bool,
    /// What fields that are read are called.
    read: BTreeMap<FieldId, Identifier>,
    inputs: BTreeMap<FieldId, ArrayId>,
    outputs: BTreeMap<FieldId, ArrayId>,
    params: BTreeMap<ParamId, ValueId>,
    /// What rows and uniform values are called.
    names: BTreeMap<Source, String>,
    /// Those of these names that nothing has yet.
    free: BTreeMap<Source, Identifier>,
    uniforms: BTreeMap<Source, ValueId>,
    /// The level at hand.
    level: Option<ValueId>,
}

impl<'a> Lowering<'a> {
    /// The beginning of a kernel of these rows. The user's names come first, so that they stay as they are.
    pub fn new(task: &'a StepTask<'a>, flow: &Flow, frame: Frame) -> Self {
        let StepTask { stencil, precision, .. } = *task;
        let mut names = Names::default();
        let (mut read, mut written) = (BTreeMap::new(), BTreeMap::new());
        for (id, field) in stencil.own_fields() {
            let name = names.declared(&field.name);
            if field.role.is_read() {
                read.insert(id, name)
            } else {
                written.insert(id, name)
            };
        }
        let param_names: Vec<Identifier> =
            stencil.params.iter().map(|(_, param)| names.declared(&param.name)).collect();
        for (id, field) in stencil.fields.iter().filter(|(_, field)| field.role == Role::InOut) {
            written.insert(id, names.declared(&format!("{}_new", field.name)));
        }
        let (mut sources, mut free) = (BTreeMap::new(), BTreeMap::new());
        for &source in flow.uniforms.iter().chain(flow.rows.iter().map(|row| &row.source)) {
            let wish = match wish(task, &read, source) {
                Ok(wish) => wish,
                Err(own) => {
                    sources.insert(source, own);
                    continue;
                }
            };
            let name = names.declared(&wish);
            sources.insert(source, name.to_string());
            free.insert(source, name);
        }
        let name = names.declared(&format!("{}_{}", stencil.name, frame.ending));
        let own = Builder::with_names(names, name, frame.threads as u32, comment(task, frame.how));
        let mut made = Self {
            task,
            own,
            scalar: Scalar { precision, math: Math::Own },
            aliased: frame.aliased,
            read,
            inputs: BTreeMap::new(),
            outputs: BTreeMap::new(),
            params: BTreeMap::new(),
            names: sources,
            free,
            uniforms: BTreeMap::new(),
            level: None,
        };
        // A field that nobody reads is no input of the kernel, and so it is with parameters.
        let is_read =
            |id: FieldId| flow.sources().any(|source| matches!(source, Source::Field(field, _) if field == id));
        for id in stencil.fields.handles() {
            if is_read(id) {
                made.need(id);
            }
            if let Some(name) = written.get(&id) {
                let array = made.array(id, name.clone(), true);
                made.outputs.insert(id, array);
            }
        }
        let bodies = || stencil.bodies().flat_map(Body::iter);
        for ((id, param), name) in stencil.params.iter().zip(param_names) {
            if bodies().any(|(_, node)| *node == Node::Param(id)) {
                let value = made.own.argument(name, Type::computing(param.kind, precision), Meaning::Param(id));
                made.params.insert(id, value);
            }
        }
        made
    }

    fn array(&mut self, field: FieldId, name: Identifier, is_written: bool) -> ArrayId {
        let element = Type::stored(self.task.stencil.fields[field].stored, self.task.precision);
        let space = Space::Global { aliased: self.aliased };
        let meaning = if is_written { Meaning::Output(field) } else { Meaning::Input(field) };
        self.own.add_array(Array { name, element, space, is_written, watched: None }, meaning)
    }

    /// Takes the array of a field that is read, or would not be needed otherwise.
    pub fn need(&mut self, field: FieldId) {
        if let Some(name) = self.read.get(&field).cloned().filter(|_| !self.inputs.contains_key(&field)) {
            let array = self.array(field, name, false);
            self.inputs.insert(field, array);
        }
    }

    /// The array of a field that is read.
    pub fn input(&self, field: FieldId) -> Option<ArrayId> {
        self.inputs.get(&field).copied()
    }

    /// The array of a field that is written.
    pub fn output(&self, field: FieldId) -> Option<ArrayId> {
        self.outputs.get(&field).copied()
    }

    /// What a value is called; names of its rows begin with that.
    pub fn name(&self, source: Source) -> &str {
        self.names.get(&source).map_or("", String::as_str)
    }

    /// Computes a value here by its name.
    pub fn named(&mut self, source: Source, value: ValueId) -> ValueId {
        match self.free.remove(&source) {
            Some(name) => self.own.named(name, value),
            None => {
                let wish = self.name(source).to_owned();
                self.own.name(&wish, value)
            }
        }
    }

    /// An array by the name of a row's values: so many elements that a thread has for itself from here on.
    pub fn local(&mut self, source: Source, count: usize) -> ArrayId {
        let name = self.free.remove(&source).unwrap_or_else(|| {
            let wish = self.names.get(&source).map_or("", String::as_str);
            self.own.names().declared(wish)
        });
        let element = self.kind(source);
        let array = Array { name, element, space: Space::Local(count), is_written: true, watched: None };
        self.own.make(array, Contents::Unset)
    }

    /// The type that a value is computed in.
    pub fn kind(&self, source: Source) -> Type {
        let StepTask { stencil, precision, .. } = *self.task;
        let kind = match source {
            Source::Field(field, _) => stencil.fields[field].stored.kind(),
            Source::Def(def, _) => stencil.defs[def].body.kind(),
        };
        Type::computing(kind, precision)
    }

    /// Says which level it is that is computed from now on.
    pub fn at_level(&mut self, k: ValueId) {
        self.level = Some(k);
    }

    /// A level some levels away from the one at hand.
    pub fn level(&mut self, shift: i32) -> ValueId {
        let by = self.own.int(i64::from(shift));
        match self.level {
            Some(k) => self.own.add(k, by),
            None => by,
        }
    }

    /// Where the plane of a level begins in an array.
    pub fn plane(&mut self, levels: Levels, shift: i32) -> ValueId {
        let rows = self.task.rows;
        let [first, plane] = [rows.first, rows.plane].map(|size| self.own.literal(size as i64, Type::I64));
        if levels == Levels::None {
            return first;
        }
        let level = self.level(shift);
        let level = self.own.convert(level, Type::I64);
        let before = self.own.mul(plane, level);
        self.own.add(before, first)
    }

    /// Names what is the same on all columns of the level at hand.
    pub fn uniforms(&mut self, flow: &Flow) {
        let stencil = self.task.stencil;
        for &source in &flow.uniforms {
            let value = match source {
                Source::Field(field, shift) => {
                    let Some(array) = self.input(field) else { continue };
                    let index = match stencil.fields[field].place.levels {
                        Levels::None => self.own.int(0),
                        Levels::Full | Levels::Interfaces => self.level(shift),
                    };
                    let element = self.own.load(array, index);
                    self.element(source, element)
                }
                Source::Def(def, shift) => self.value(&stencil.defs[def].body, shift, &|_| None),
            };
            let value = self.named(source, value);
            self.uniforms.insert(source, value);
        }
    }

    /// An element of a row, as it is kept, as the value that it is: a field's as it is stored, a definition's as it is computed.
    pub fn element(&mut self, source: Source, element: ValueId) -> ValueId {
        match source {
            Source::Field(field, _) => {
                let stored = self.task.stencil.fields[field].stored;
                self.scalar.read(&mut self.own, element, stored)
            }
            Source::Def(..) => element,
        }
    }

    /// The value of a body that is evaluated so many levels away. `element` is what is looked at that differs from column to column,
    /// and nothing else.
    pub fn value(&mut self, body: &Body, shift: i32, element: &dyn Fn(Use) -> Option<ValueId>) -> ValueId {
        let stencil = self.task.stencil;
        let level = self.level(shift);
        let mut values: Vec<ValueId> = Vec::with_capacity(body.len());
        for (id, node) in body.iter() {
            let value = match node {
                Node::Param(param) => self.params.get(param).copied(),
                Node::Level => Some(level),
                Node::LevelCount => Some(self.own.int(self.task.extents[2] as i64)),
                _ => match used(stencil, node, shift) {
                    Some(used) => element(used).or_else(|| self.uniforms.get(&used.source).copied()),
                    None => self.scalar.value(&mut self.own, body, id, &|operand| values[operand.index()]),
                },
            };
            values.push(value.unwrap_or(level));
        }
        values.get(body.root().index()).copied().unwrap_or(level)
    }

    /// What an output is assigned, as it is stored.
    pub fn stored(&mut self, store: &Store, element: &dyn Fn(Use) -> Option<ValueId>) -> ValueId {
        let value = self.value(&store.body, 0, element);
        let stored = self.task.stencil.fields[store.field].stored;
        self.scalar.stored(&mut self.own, value, stored)
    }

    /// The kernel, when all is said.
    ///
    /// # Errors
    /// The template is broken, which is a fault of the compiler.
    pub fn finish(self, launch: Launch) -> Result<Kernel, Refusal> {
        let kernel = simplify(self.own.finish());
        let shared = kernel.dynamic_bytes() as u32;
        let cuda::Kernel { name, text, parameters, .. } = cuda::printed(&kernel, self.task.precision)?;
        Ok(Kernel { name, text, parameters, launch: Launch { shared, ..launch }, code: kernel })
    }
}

/// What a row or a uniform value is to be called, or, of a field's row, what it is called already.
fn wish(task: &StepTask, read: &BTreeMap<FieldId, Identifier>, source: Source) -> Result<String, String> {
    let stencil = task.stencil;
    let (name, shift, is_row) = match source {
        Source::Field(field, shift) => {
            let name = read.get(&field).map(Identifier::to_string).unwrap_or_default();
            // Names of a field's rows begin as its own.
            if shift == 0 && stencil.fields[field].place.horizontal {
                return Err(name);
            }
            (name, shift, false)
        }
        Source::Def(def, shift) => (stencil.defs[def].name.clone(), shift, true),
    };
    Ok(match shift {
        0 if is_row => name,
        0 => format!("{name}_here"),
        1.. => format!("{name}_up{shift}"),
        _ => format!("{name}_down{}", shift.unsigned_abs()),
    })
}

/// The first lines of a kernel's comment, which says what it is.
pub(super) fn comment(task: &StepTask, how: String) -> Vec<Comment> {
    let StepTask { stencil, precision, extents: [ni, nj, nk], .. } = *task;
    let [along_i, along_j] = task.edges.map(|edge| edge.name());
    let grid = format!("Grid {ni}x{nj}x{nk}, {along_i} along i and {along_j} along j, {}.", precision.name());
    let mut lines = vec![Comment::new(format!("{}: {how}.", stencil.name))];
    lines.extend(stencil.doc.comments());
    lines.push(Comment::new(grid));
    lines
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
