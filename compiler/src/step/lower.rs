//! What all kernels of whole steps are made of: arguments by the user's names, planes of arrays, values of bodies.

use super::flow::{Flow, REACH, Source, Use, used};
use super::{Kernel, Launch, StepTask};
use crate::cuda;
use crate::diagnostic::Refusal;
use crate::ir::program::GridAxis;
use crate::ir::{Body, FieldId, Handle, Levels, Node, ParamId, Relation, Role, Store};
use crate::kernel::build::{Builder, Computing, Making, Term};
use crate::kernel::scalar::Scalar;
use crate::kernel::simplify::simplify;
use crate::kernel::{Array, ArrayId, Contents, Math, Meaning, Operand, Routine, Space, StepData, Type, ValueId};
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
    /// Whose functions are called where devices round differently.
    pub math: Math,
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
    /// What the arrays of fields that are read and written are called.
    read: BTreeMap<FieldId, Identifier>,
    written: BTreeMap<FieldId, Identifier>,
    /// The arrays that are read and written.
    pub inputs: BTreeMap<FieldId, ArrayId>,
    pub outputs: BTreeMap<FieldId, ArrayId>,
    params: BTreeMap<ParamId, ValueId>,
    /// What rows and uniform values are called.
    names: BTreeMap<Source, String>,
    /// Those of these names that nothing has yet.
    free: BTreeMap<Source, Identifier>,
    uniforms: BTreeMap<Source, ValueId>,
    /// The level at hand.
    level: Option<ValueId>,
    /// The first level that is computed.
    first_level: usize,
    /// Whether the last level has the first one beyond it, and the other way round.
    is_circle: bool,
}

/// An element of a row that is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// By whom it is looked at.
    pub used: Use,
    /// The row.
    pub row: ArrayId,
    /// How far it is from the present element.
    pub on: i64,
    /// Whether it is as it is stored.
    pub is_stored: bool,
}

/// What is looked at, as values.
pub type Looks<'a> = &'a dyn Fn(Use) -> Option<ValueId>;

impl Making for Lowering<'_> {
    fn own(&mut self) -> &mut Builder {
        &mut self.own
    }
}

impl<'a> Lowering<'a> {
    /// The beginning of a kernel that looks at these. The user's names come first, so that they stay as they are.
    pub fn new(task: &'a StepTask<'a>, looked_at: &[Source], frame: Frame) -> Self {
        let StepTask { stencil, precision, .. } = *task;
        let mut names = Names::default();
        let (mut read, mut written) = (BTreeMap::new(), BTreeMap::new());
        for (id, field) in stencil.own_fields() {
            let name = names.declared(&field.name);
            let own = if field.role.is_read() { &mut read } else { &mut written };
            own.insert(id, name);
        }
        let param_names: Vec<Identifier> =
            stencil.params.iter().map(|(_, param)| names.declared(&param.name)).collect();
        for (id, field) in stencil.fields.iter().filter(|(_, field)| field.role == Role::InOut) {
            written.insert(id, names.declared(&format!("{}_new", field.name)));
        }
        let (mut sources, mut free) = (BTreeMap::new(), BTreeMap::new());
        for &source in looked_at {
            let (wish, is_taken) = wish(task, &read, source);
            if !is_taken {
                free.insert(source, names.declared(&wish));
            }
            let name = free.get(&source).map_or(wish, Identifier::to_string);
            sources.insert(source, name);
        }
        let name = names.declared(&format!("{}_{}", stencil.name, frame.ending));
        let own = Builder::with_names(names, name, frame.threads as u32, comment(task, frame.how));
        let mut made = Self {
            task,
            own,
            scalar: Scalar { precision, math: frame.math },
            aliased: frame.aliased,
            read,
            written,
            inputs: BTreeMap::new(),
            outputs: BTreeMap::new(),
            params: BTreeMap::new(),
            names: sources,
            free,
            uniforms: BTreeMap::new(),
            level: None,
            first_level: 0,
            is_circle: false,
        };
        // A field that nobody reads is no input of the kernel, and so it is with parameters.
        let is_read =
            |id: FieldId| looked_at.iter().any(|source| matches!(source, Source::Field(field, _) if *field == id));
        for id in stencil.fields.handles() {
            if is_read(id) {
                made.need(id);
            }
            if let Some(name) = made.written.get(&id).cloned() {
                let array = made.argument(name, task.stored(id), true, Meaning::Output(id));
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

    fn argument(&mut self, name: Identifier, element: Type, is_written: bool, meaning: Meaning) -> ArrayId {
        let space = Space::Global { aliased: self.aliased };
        self.own.add_array(Array { name, element, space, is_written, watched: None }, meaning)
    }

    /// Takes the array of a field that is read, or would not be needed otherwise.
    pub fn need(&mut self, field: FieldId) {
        if let Some(name) = self.read.get(&field).cloned().filter(|_| !self.inputs.contains_key(&field)) {
            let array = self.argument(name, self.task.stored(field), false, Meaning::Input(field));
            self.inputs.insert(field, array);
        }
    }

    /// An array that a kernel of many steps takes beside fields.
    pub fn beside(&mut self, wish: &str, element: Type, what: StepData) -> ArrayId {
        let name = self.own.declared(wish);
        self.argument(name, element, true, Meaning::Step(what))
    }

    /// The number of steps, which such a kernel takes.
    pub fn steps(&mut self) -> ValueId {
        let name = self.own.declared("steps");
        self.own.argument(name, Type::I32, Meaning::Step(StepData::Count))
    }

    /// What the array of a field that is read is called.
    pub fn read_name(&self, field: FieldId) -> &str {
        self.read.get(&field).map_or("", |name| name)
    }

    /// What the array of an output is called.
    pub fn written_name(&self, field: FieldId) -> &str {
        self.written.get(&field).map_or("", |name| name)
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
            self.own.declared(wish)
        });
        let element = self.task.kind(source);
        let array = Array { name, element, space: Space::Local(count), is_written: true, watched: None };
        self.own.make(array, Contents::Unset)
    }

    /// Says which level it is that is computed from now on.
    pub fn at_level(&mut self, k: ValueId) {
        self.level = Some(k);
    }

    /// Lets levels be computed from one on, and what is read beyond the last level be of the first one, and the other way round. What `k`
    /// is stays as it is.
    pub fn walk_levels(&mut self, first: usize) {
        (self.first_level, self.is_circle) = (first, true);
    }

    /// A level some levels away from the one at hand.
    pub fn level(&mut self, shift: i32) -> ValueId {
        let level = self.level.map_or(shift.into(), |k| k.plus(shift));
        self.own.term(level)
    }

    /// The same of a field that has so many.
    fn level_of(&mut self, shift: i32, count: usize) -> ValueId {
        let level = self.level(shift);
        if self.is_circle { self.own.term(circled(level, count)) } else { level }
    }

    /// Where the plane of a field begins in its array, some levels away from the one at hand.
    pub fn plane(&mut self, field: FieldId, shift: i32) -> ValueId {
        let StepTask { rows, extents: [_, _, nk], .. } = *self.task;
        let plane = match self.task.stencil.fields[field].place.levels {
            Levels::None => rows.first.to(Type::I64),
            levels @ (Levels::Full | Levels::Interfaces) => {
                rows.plane.times(self.level_of(shift, levels.count(nk)).to(Type::I64)).plus(rows.first)
            }
        };
        self.own.term(plane)
    }

    /// The plane of a row of a field, from a cell on; nothing if it is read from no array.
    pub fn view_from(&mut self, source: Source, cell: impl Into<Term>) -> Option<ArrayId> {
        let Source::Field(field, shift) = source else { return None };
        let input = *self.inputs.get(&field)?;
        let first = self.plane(field, shift).plus(cell);
        let wish = format!("{}_from", self.name(source));
        Some(self.own.view(&wish, input, first))
    }

    /// The plane of an output some levels away, from a cell on.
    pub fn view_to(&mut self, field: FieldId, shift: i32, cell: impl Into<Term>) -> Option<ArrayId> {
        let output = *self.outputs.get(&field)?;
        let first = self.plane(field, shift).plus(cell);
        let wish = format!("{}_to", self.written_name(field));
        Some(self.own.view(&wish, output, first))
    }

    /// Some truths by which an output is written, some levels away: one on no levels is, besides, on the first level that is computed alone.
    pub fn guard(&mut self, field: FieldId, shift: i32, truths: impl IntoIterator<Item = ValueId>) -> Option<ValueId> {
        let has_levels = self.task.stencil.fields[field].place.levels != Levels::None;
        let level = (self.level.is_some() && !has_levels).then(|| self.level(shift));
        let is_first = level.map(|k| self.own.term(k.is(Relation::Eq, self.first_level)));
        self.own.all(truths.into_iter().chain(is_first))
    }

    /// Names what is the same on all columns of the level at hand.
    pub fn uniforms(&mut self, flow: &Flow) {
        let stencil = self.task.stencil;
        for &source in &flow.uniforms {
            let value = match source {
                Source::Field(..) => match self.uniform(source) {
                    Some(value) => value,
                    None => continue,
                },
                Source::Def(def, shift) => self.value(&stencil.defs[def].body, shift, &|_| None),
            };
            let value = self.named(source, value);
            self.uniforms.insert(source, value);
        }
    }

    /// The element of a field that is the same on all columns.
    pub fn uniform(&mut self, source: Source) -> Option<ValueId> {
        let Source::Field(field, shift) = source else { return None };
        let array = *self.inputs.get(&field)?;
        let nk = self.task.extents[2];
        let index = match self.task.stencil.fields[field].place.levels {
            Levels::None => self.own.int(0),
            levels @ (Levels::Full | Levels::Interfaces) => self.level_of(shift, levels.count(nk)),
        };
        let element = self.own.load(array, index);
        Some(self.element(source, element))
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
    pub fn value(&mut self, body: &Body, shift: i32, element: Looks) -> ValueId {
        let stencil = self.task.stencil;
        let level = self.level(shift);
        let mut values: Vec<ValueId> = Vec::with_capacity(body.len());
        for (id, node) in body.iter() {
            let value = match node {
                Node::Param(param) => self.params.get(param).copied(),
                Node::Level => Some(level),
                Node::Count(GridAxis::K) => Some(self.own.int(self.task.extents[2] as i64)),
                _ => match used(stencil, node, shift) {
                    Some(used) => element(used).or_else(|| self.uniforms.get(&used.source).copied()),
                    None => self.scalar.value(&mut self.own, body, id, &|operand| values[operand.index()]),
                },
            };
            values.push(value.unwrap_or(level));
        }
        values.get(body.root().index()).copied().unwrap_or(level)
    }

    /// What an output is assigned some levels away, as it is stored.
    pub fn stored(&mut self, store: &Store, shift: i32, element: Looks) -> ValueId {
        let value = self.value(&store.body, shift, element);
        let stored = self.task.stencil.fields[store.field].stored;
        self.scalar.stored(&mut self.own, value, stored)
    }

    /// Computes each element of a row of so many, of what is looked at from there.
    pub fn elements(
        &mut self,
        row: ArrayId,
        count: usize,
        looks: &[Look],
        value: impl FnOnce(&mut Self, Looks) -> ValueId,
    ) {
        self.unrolled("e", (0, count), |lower, e| {
            let mut found = BTreeMap::new();
            for &Look { used, row, on, is_stored } in looks {
                let element = lower.own.load(row, e.plus(on));
                found.insert(used, if is_stored { lower.element(used.source, element) } else { element });
            }
            let value = value(lower, &|used| found.get(&used).copied());
            lower.own.store(row, e, value);
        });
    }

    /// Copies a row of a lane, with so many columns before and after it that neighbouring lanes have.
    pub fn widened(&mut self, lane: ValueId, to: Operand, from: Operand, halo: [usize; 2]) {
        match halo {
            [0, 0] => self.own.perform(Routine::CopyRow, vec![to, from]),
            [before, after] => {
                self.own.perform(Routine::WidenRow(before, after), vec![to, from, Operand::Value(lane)]);
            }
        }
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

/// A number from about 0 on to about an extent, or once around, as one of those below the extent.
pub fn circled(number: impl Into<Term>, extent: usize) -> Term {
    let by = (2 * REACH as usize).next_multiple_of(extent);
    number.into().plus(by).to(Type::U32).rem(extent).to(Type::I32)
}

/// What a row or a uniform value is to be called, and whether it is called so already, as a field's row is by its field.
fn wish(task: &StepTask, read: &BTreeMap<FieldId, Identifier>, source: Source) -> (String, bool) {
    let stencil = task.stencil;
    let (name, shift, here) = match source {
        Source::Field(field, shift) => {
            let is_row = stencil.fields[field].place.horizontal;
            (read.get(&field).map_or("", |name| name), shift, if is_row { "" } else { "_here" })
        }
        Source::Def(def, shift) => (stencil.defs[def].name.as_str(), shift, ""),
    };
    let ending = match shift {
        0 => here.to_owned(),
        1.. => format!("_up{shift}"),
        _ => format!("_down{}", shift.unsigned_abs()),
    };
    let is_taken = matches!(source, Source::Field(..)) && ending.is_empty();
    (format!("{name}{ending}"), is_taken)
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
