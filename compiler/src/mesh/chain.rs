//! Calls of a program that become one kernel, a thread an element: what some add to it, and what others make of that.
//!
//! First come calls that add to the elements of a set, and nothing else: as owners, elements gather what is added, which stays in
//! registers. Then calls over that set itself; of what the calls before them gave, they read their own element's alone. So
//! each value is computed as it would be by itself, and what nobody looks at later is never written.
//!
//! The stencils of a chain become stencils over the same fields and parameters, those of a call that stands for all of them.

use super::group::{groups, has_own};
use crate::analysis::footprint::Footprint;
use crate::analysis::levels::leaves_levels;
use crate::ir::program::{Call, FieldBinding};
use crate::ir::{
    Body, Field, FieldId, Handle, Levels, MeshProgram, MeshStencil, Node, Param, ParamId, Precision, Role, SetId,
    Stages, Stencil, Store, VariableId, Verify,
};
use std::collections::{BTreeMap, BTreeSet};

/// The most calls of a kernel. It is called by the names of all of them: of 200 the name was longer than that of a file can be.
const MOST: usize = 16;

/// Calls that are one kernel.
#[derive(Clone, Debug)]
pub struct Chain {
    /// Their stencils, all over the same fields and parameters: first those that add, then those over the elements themselves.
    pub stages: Vec<MeshStencil>,
    /// Fields that are given from one to another and have no array.
    pub internal: BTreeSet<FieldId>,
    /// What the fields and parameters are. Its stencil is none of the program's.
    pub call: Call,
}

/// A call of a program, prepared.
#[derive(Clone, Copy)]
pub struct Link<'a> {
    /// The call.
    pub call: &'a Call,
    /// What it reads that nobody looks at later.
    pub last: &'a BTreeSet<VariableId>,
}

impl Chain {
    /// The longest chain that begins with the first of some calls, and how many of them it takes: at most `MOST`.
    pub fn first(program: &MeshProgram, precision: Precision, links: &[Link]) -> Option<(Chain, usize)> {
        let (mut builder, mut longest) = (Builder::new(program, precision), None);
        for (number, link) in links.iter().take(MOST).enumerate() {
            let Some(longer) = builder.with(link) else { break };
            builder = longer;
            if number > 0 && builder.is_whole() {
                longest = Some((builder.clone(), number + 1));
            }
        }
        longest.map(|(builder, count)| (builder.finish(&links[..count]), count))
    }

    /// The share of the bytes of fields that is neither written nor read, since values stay in registers: of the fields on the elements
    /// themselves, by each call once.
    pub fn saved(&self, precision: Precision) -> f64 {
        let [mut all, mut saved] = [0, 0];
        for stage in &self.stages {
            let footprint = Footprint::new(stage, 0..stage.stencil.stores.len());
            let read: BTreeSet<FieldId> = footprint.reads.keys().map(|(field, _)| *field).collect();
            let written = stage.stencil.stores.iter().map(|store| store.field).collect::<BTreeSet<_>>();
            for field in read.iter().chain(&written) {
                let own = &stage.stencil.fields[*field];
                let bytes = own.place.home.map_or(1, |home| home.width as usize) * own.stored.bytes(precision);
                all += bytes;
                // What one call has given another is not read, even where somebody else looks at it later.
                let is_given = matches!(own.role, Role::Inc | Role::Out) && read.contains(field);
                saved += if is_given || self.internal.contains(field) { bytes } else { 0 };
            }
        }
        saved as f64 / all.max(1) as f64
    }
}

/// A chain under construction.
#[derive(Clone)]
struct Builder<'a> {
    program: &'a MeshProgram,
    precision: Precision,
    /// Over whose elements its threads are.
    set: Option<SetId>,
    /// The fields and parameters of all.
    whole: Stencil,
    bindings: Vec<FieldBinding>,
    params: Vec<Option<Body>>,
    stages: Vec<MeshStencil>,
    /// Variables that a call has given a value, in which field, and which call.
    given: BTreeMap<VariableId, (FieldId, usize)>,
    /// Variables that are read as they were before.
    inputs: BTreeMap<VariableId, FieldId>,
    /// How many calls add to others.
    adding: usize,
}

impl<'a> Builder<'a> {
    fn new(program: &'a MeshProgram, precision: Precision) -> Self {
        Self {
            program,
            precision,
            set: None,
            whole: Stencil::default(),
            bindings: Vec::new(),
            params: Vec::new(),
            stages: Vec::new(),
            given: BTreeMap::new(),
            inputs: BTreeMap::new(),
            adding: 0,
        }
    }

    /// Whether it ends with a call over the elements themselves.
    fn is_whole(&self) -> bool {
        self.stages.len() > self.adding
    }

    /// The same with one more call, if that can be of the chain.
    fn with(&self, link: &Link) -> Option<Self> {
        let stencil = &self.program.stencils[link.call.stencil];
        let adds = groups(stencil);
        let set = match adds.as_slice() {
            [] => stencil.set(),
            [group] if !has_own(stencil) && !self.is_whole() => group.target,
            _ => return None,
        };
        // A kernel's threads are elements and levels: all of them.
        let skips_levels = stencil.mesh.levels && leaves_levels(&stencil.stencil);
        let skips_elements = stencil.stencil.zones.is_some();
        // A thread that sweeps goes through its levels by itself.
        let sweeps = !stencil.stencil.sweeps.is_empty();
        let is_other = self.set.is_some_and(|own| own != set);
        let is_unordered = adds.iter().any(|group| !group.is_in_order());
        if is_other || skips_levels || skips_elements || sweeps || is_unordered || self.needs_number(link.call) {
            return None;
        }
        let mut longer = self.clone();
        let footprint = Footprint::new(stencil, 0..stencil.stencil.stores.len());
        let (mut reads, mut writes, mut results) = (Vec::new(), Vec::new(), Vec::new());
        for ((id, field), binding) in stencil.stencil.fields.iter().zip(&link.call.fields) {
            let (read, written) = match field.role {
                Role::Inc => (None, Some(longer.sum(self, link, field, *binding)?)),
                role => {
                    let mut reads = footprint.reads.keys().filter(|(read, _)| *read == id);
                    let mut is_here = || !footprint.is_moved(id) && reads.all(|(_, hops)| hops.is_empty());
                    let read = match binding.read.filter(|_| role.is_read()) {
                        None => None,
                        Some(variable) => Some(match self.given.get(&variable) {
                            None => longer.input(variable, field),
                            Some((own, _)) if adds.is_empty() && is_here() && self.is_alike(*own, field) => *own,
                            Some(_) => return None,
                        }),
                    };
                    let role = if role == Role::Reduce { Role::Reduce } else { Role::Out };
                    (read, field.role.is_written().then(|| longer.field(field, role, FieldBinding::default())))
                }
            };
            results.extend(binding.written.zip(written));
            reads.push(read);
            writes.push(written);
        }
        let params = longer.parameters(stencil, link.call);
        let number = longer.stages.len();
        longer.stages.push(moved(stencil, &reads, &writes, &params));
        longer.set = Some(set);
        longer.adding += usize::from(!adds.is_empty());
        // All at once: a call reads what there was before it.
        longer.given.extend(results.into_iter().map(|(variable, field)| (variable, (field, number))));
        Some(longer)
    }

    /// The field that a call adds to: one more of the chain, or that of calls before, if nobody else looks at what these have added.
    fn sum(&mut self, before: &Self, link: &Link, field: &Field, binding: FieldBinding) -> Option<FieldId> {
        let known = binding.read.and_then(|variable| Some((variable, before.given.get(&variable)?.0)));
        let Some((variable, sum)) = known else {
            // What is stored in more bits than it is computed in stays as it was where nothing is added.
            let is_wide = field.stored.bytes(self.precision) > self.precision.bytes();
            let is_possible = self.is_everywhere(field) && (binding.read.is_none() || !is_wide);
            let binding = FieldBinding { written: None, ..binding };
            return is_possible.then(|| self.field(field, Role::Inc, binding));
        };
        let is_seen = binding.written != Some(variable) && !link.last.contains(&variable);
        // Not of two fields of one call.
        let is_free = self.given.remove(&variable).is_some();
        let is_sum = before.whole.fields[sum].role == Role::Inc && before.is_alike(sum, field);
        (!is_seen && is_free && is_sum).then_some(sum)
    }

    /// Whether a parameter of a call is made of numbers that the chain folds.
    fn needs_number(&self, call: &Call) -> bool {
        let folded = |field: FieldId| {
            let variable = self.program.numbers.get(field.index());
            variable.is_some_and(|variable| self.given.contains_key(variable))
        };
        call.params.iter().flatten().any(|body| self.program.program.numbers_in(body).into_iter().any(folded))
    }

    /// Whether a field of the chain is what a stencil reads.
    fn is_alike(&self, own: FieldId, field: &Field) -> bool {
        let own = &self.whole.fields[own];
        field.place.home.is_some() && self.is_everywhere(field) && is_stored_alike(own, field)
    }

    /// Whether each thread has a number of its own: what has no levels on a mesh that has some is written once for all of them.
    fn is_everywhere(&self, field: &Field) -> bool {
        field.place.levels == Levels::Full || !self.program.mesh.levels
    }

    /// A new field, which has an array of its own.
    fn field(&mut self, field: &Field, role: Role, binding: FieldBinding) -> FieldId {
        let name = free(&field.name, &|name| self.whole.fields.iter().any(|(_, own)| own.name == name));
        self.bindings.push(binding);
        self.whole.fields.add(Field { name, role, ..field.clone() })
    }

    /// The field of a variable as it was before the chain.
    fn input(&mut self, variable: VariableId, field: &Field) -> FieldId {
        if let Some(&known) = self.inputs.get(&variable)
            && is_stored_alike(&self.whole.fields[known], field)
        {
            return known;
        }
        let own = self.field(field, Role::In, FieldBinding { read: Some(variable), written: None });
        self.inputs.insert(variable, own);
        own
    }

    /// The parameters of a call, as those of the whole.
    fn parameters(&mut self, stencil: &MeshStencil, call: &Call) -> Vec<ParamId> {
        let mut own = Vec::new();
        for ((_, param), given) in stencil.stencil.params.iter().zip(&call.params) {
            let name = free(&param.name, &|name| self.whole.params.iter().any(|(_, own)| own.name == name));
            own.push(self.whole.params.add(Param { name, ..param.clone() }));
            self.params.push(given.clone());
        }
        own
    }

    fn finish(mut self, links: &[Link]) -> Chain {
        let mut seen: BTreeSet<FieldId> = BTreeSet::new();
        for (&variable, &(field, number)) in &self.given {
            let is_dead = links[number + 1..].iter().any(|later| later.last.contains(&variable));
            if !is_dead {
                self.bindings[field.index()].written = Some(variable);
                seen.insert(field);
            }
        }
        let is_internal = |field: &Field| matches!(field.role, Role::Inc | Role::Out);
        let fields = self.whole.fields.iter();
        let internal: BTreeSet<FieldId> =
            fields.filter(|(id, own)| is_internal(own) && !seen.contains(id)).map(|(id, _)| id).collect();
        let span = links.first().map(|link| link.call.span).unwrap_or_default();
        let call = Call { stencil: usize::MAX, fields: self.bindings, params: self.params, span };
        for stage in &mut self.stages {
            stage.stencil.fields = self.whole.fields.clone();
            stage.stencil.params = self.whole.params.clone();
        }
        Stages(&self.stages).verified("chaining calls");
        Chain { stages: needed(&self.stages, &internal), internal, call }
    }
}

/// Stages without what they give to nobody: `internal` fields that no later one reads, since a later call gives the variable another
/// value. What the last stage gives is no internal field, so it stays.
fn needed(stages: &[MeshStencil], internal: &BTreeSet<FieldId>) -> Vec<MeshStencil> {
    let (mut all, mut read): (Vec<MeshStencil>, BTreeSet<FieldId>) = Default::default();
    for stage in stages.iter().rev() {
        let mut own = stage.clone();
        let is_needed = |field: FieldId| !internal.contains(&field) || read.contains(&field);
        let stores = stage.stores().filter(|(store, _)| is_needed(store.field));
        (own.stencil.stores, own.writes) = stores.map(|(store, write)| (store.clone(), write.clone())).unzip();
        if !own.stencil.stores.is_empty() {
            let Footprint { reads, .. } = Footprint::new(&own, 0..own.stencil.stores.len());
            read.extend(reads.keys().map(|(field, _)| *field));
            all.push(own);
        }
    }
    all.reverse();
    all
}

/// Whether the arrays of two fields are alike.
fn is_stored_alike(a: &Field, b: &Field) -> bool {
    (a.place, a.stored) == (b.place, b.stored)
}

/// A name that is not taken.
fn free(name: &str, is_taken: &dyn Fn(&str) -> bool) -> String {
    let wishes = [name.to_owned(), format!("{name}_new")].into_iter();
    wishes.chain((2..).map(|n| format!("{name}_{n}"))).find(|name| !is_taken(name)).unwrap_or_default()
}

/// A stencil whose fields and parameters are those of the whole.
fn moved(
    stencil: &MeshStencil,
    reads: &[Option<FieldId>],
    writes: &[Option<FieldId>],
    params: &[ParamId],
) -> MeshStencil {
    let body = |body: &Body| {
        let mut own = Body::new();
        for (id, node) in body.iter() {
            let node = match node {
                Node::Read { field, path, part, by } => Node::Read {
                    field: reads[field.index()].unwrap_or(*field),
                    path: path.clone(),
                    part: *part,
                    by: *by,
                },
                Node::Param(param) => Node::Param(params[param.index()]),
                node => node.clone(),
            };
            own.add(node, body.kind_of(id), body.span_of(id));
        }
        own
    };
    let mut inner = stencil.stencil.map_bodies(body);
    let own = |store: Store| Store { field: writes[store.field.index()].unwrap_or(store.field), ..store };
    inner.stores = inner.stores.into_iter().map(own).collect();
    stencil.with(inner)
}
