//! A program over a mesh, cut: the mesh of each part, and which elements go from whom to whom.
//!
//! A part has the elements that it owns, and those that it needs to compute what is written there: the elements that add to its own, and
//! whatever both look at. They stand in the user's order, so that what is added to an element is added in that order. What a part
//! computes at elements of others may be wrong, since not all that leads on from there is in the part: nobody looks at it
//! before it is brought.

use super::super::MeshProblem;
use super::super::live::Step;
use super::owners::Owners;
use super::reach::{Reach, foreign};
use crate::array::Data;
use crate::error::Result;
use crate::mesh::order::{Cuts, Ordering};
use crate::mesh::{Bound, Field, HOLE, Map, Mesh, Set, ZONE};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use stencilc_compiler::ir::mesh::Missing;
use stencilc_compiler::ir::{FieldId, Handle, Hop, MapId, MeshProgram, SetId};
use stencilc_compiler::mesh::{Chain, Merge, MeshChoices};

/// How a program is cut into parts.
#[derive(Clone)]
pub struct Cut {
    pub(super) whole: Arc<MeshProblem>,
    pub(super) parts: Vec<Part>,
    pub(super) messages: Arc<[Message]>,
    /// By stencil or chain: the fields that it reads at elements of other parts.
    pub(super) foreign: Arc<[BTreeSet<FieldId>]>,
}

/// A part of a program.
#[derive(Clone)]
pub struct Part {
    /// The same program over the part of the mesh.
    pub problem: Arc<MeshProblem>,
    /// By set.
    pub(super) elements: Arc<[Elements]>,
}

/// The elements of a set in a part.
pub struct Elements {
    /// The user's number of each, in ascending order.
    pub users: Vec<u32>,
    /// The places of those that the part owns.
    pub owned: Vec<u32>,
}

/// Elements of a set that a part brings from their owner.
pub struct Message {
    /// Which message it is, of all.
    pub number: usize,
    /// The part that brings them.
    pub to: usize,
    /// The part that owns them.
    pub from: usize,
    /// Of which set they are.
    pub set: SetId,
    /// Their places in the one and in the other.
    pub places: Vec<[u32; 2]>,
}

impl Part {
    /// How many elements it owns, of all sets.
    pub fn owned(&self) -> usize {
        self.elements.iter().map(|own| own.owned.len()).sum()
    }
}

impl Cut {
    /// A program in the parts of owners.
    ///
    /// # Errors
    /// The mesh of a part is none, which is a fault of ours.
    pub fn new(whole: Arc<MeshProblem>, owners: &Owners) -> Result<Self> {
        let elements = needed(&whole, owners);
        let meshes: Vec<(Mesh, BTreeSet<MapId>)> = elements.iter().map(|own| mesh_of(&whole, own)).collect();
        // Where a map leads out of a part there is nothing, and kernels have to know that there may be.
        let open = meshes.iter().flat_map(|(_, open)| open.iter().copied()).collect();
        let program = with_holes(&whole, &open);
        let part = |((mesh, _), elements): ((Mesh, _), Vec<Elements>)| {
            let MeshProblem { steps, precision, levels, params, .. } = &*whole;
            let (program, chains) = program.clone();
            let problem = MeshProblem {
                bound: Bound::new(&program.mesh, &mesh)?,
                program,
                steps: steps.clone(),
                chains,
                precision: *precision,
                levels: *levels,
                mesh,
                params: params.clone(),
                initial: BTreeMap::new(),
                drawn: Vec::new(),
                came_along: Vec::new(),
            };
            Ok(Part { problem: Arc::new(problem), elements: elements.into() })
        };
        let parts: Vec<Part> = meshes.into_iter().zip(elements).map(part).collect::<Result<_>>()?;
        let foreign: Vec<_> =
            (0..whole.program.stencils.len() + whole.chains.len()).map(|number| foreign(&whole, number)).collect();
        let messages = messages(&whole, &parts, &foreign, owners).into();
        Ok(Self { whole, parts, messages, foreign: foreign.into() })
    }

    /// The parts.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The same, and how each part is computed, where choices say which calls one kernel computes: all parts decide that alike.
    pub fn chosen(self, choices: MeshChoices) -> (Self, MeshChoices) {
        let (Self { whole, parts, .. }, count) = (&self, self.parts.len());
        let merges = |chain: &Chain| {
            let set = chain.stages.last().map_or(0, |own| whole.bound.size(own.set()));
            choices.merges(chain, whole.precision, set / count * whole.levels)
        };
        let is_merged: Vec<bool> = whole.chains.iter().map(merges).collect();
        let of_all = |merge: Merge| MeshChoices { merge, ..choices };
        if !is_merged.contains(&true) {
            return (self, of_all(Merge::Never));
        }
        if !is_merged.contains(&false) {
            return (self, of_all(Merge::Always));
        }
        let first = whole.program.stencils.len();
        let decided = |problem: &Arc<MeshProblem>| {
            let steps = apart(&problem.steps, &|number| is_merged[number - first]);
            Arc::new(MeshProblem { steps, ..(**problem).clone() })
        };
        let part = |own: &Part| Part { problem: decided(&own.problem), elements: Arc::clone(&own.elements) };
        let (whole, parts) = (decided(whole), parts.iter().map(part).collect());
        (Self { whole, parts, ..self }, of_all(Merge::Always))
    }

    /// Whether the calls of a chain are computed by one kernel, once that was chosen.
    pub fn merges(&self, chain: &Chain, choices: MeshChoices) -> bool {
        choices.merges(chain, self.whole.precision, 0)
    }

    /// The names of the stencils of each chain that is computed by one kernel, once that was chosen.
    pub fn merged(&self, choices: MeshChoices) -> Vec<Vec<String>> {
        let (mut left, mut merged): (Vec<&Step>, _) = (self.whole.steps.iter().rev().collect(), Vec::new());
        while let Some(step) = left.pop() {
            match step {
                Step::Chain { call, .. } if self.merges(self.whole.chain(call), choices) => {
                    let stages = self.whole.stages(call.stencil).iter();
                    merged.push(stages.map(|own| own.stencil.name.clone()).collect());
                }
                Step::Chain { apart: steps, .. } | Step::Repeat { steps, .. } => left.extend(steps.iter().rev()),
                Step::Call { .. } | Step::Rename { .. } | Step::Number { .. } => {}
            }
        }
        merged
    }

    /// The order of a part's elements that follows one of all.
    pub fn ordering(&self, part: usize, whole: &Ordering) -> Ordering {
        let (mesh, declared) = (&self.whole.mesh, &self.whole.program.mesh);
        let mut of_part = Ordering { orders: vec![Vec::new(); mesh.sets.len()], cuts: None };
        for ((id, set), own) in declared.sets.iter().zip(&*self.parts[part].elements) {
            let Some(number) = mesh.set_named(&set.name) else { continue };
            let places = places(own, self.whole.bound.size(id));
            let order = &whole.orders[number];
            let is_there = |user: &&u32| places[**user as usize] != NOWHERE;
            of_part.orders[number] = order.iter().filter(is_there).map(|&user| places[user as usize]).collect();
            if let Some(Cuts { set, starts }) = whole.cuts.as_ref().filter(|cuts| cuts.set == number) {
                let mut before = vec![0; order.len() + 1];
                for (at, user) in order.iter().enumerate() {
                    before[at + 1] = before[at] + u32::from(is_there(&user));
                }
                let starts = starts.iter().map(|&start| before[start as usize]).collect();
                of_part.cuts = Some(Cuts { set: *set, starts });
            }
        }
        of_part
    }
}

/// The place of an element that is not in a part.
const NOWHERE: u32 = u32::MAX;

/// By user's number, the place of each element in a part.
fn places(elements: &Elements, size: usize) -> Vec<u32> {
    let mut places = vec![NOWHERE; size];
    (0..).zip(&elements.users).for_each(|(place, &user)| places[user as usize] = place);
    places
}

/// By part and set, the elements that it needs to compute what is written at its own.
fn needed(whole: &MeshProblem, owners: &Owners) -> Vec<Vec<Elements>> {
    let (declared, bound) = (&whole.program.mesh, &whole.bound);
    let sets: Vec<SetId> = declared.sets.handles().collect();
    let mut more: Vec<Vec<Vec<u32>>> = vec![vec![Vec::new(); sets.len()]; owners.parts()];
    for stencil in &whole.program.stencils {
        let (reach, mut parts) = (Reach::new(stencil), Vec::new());
        for element in 0..bound.size(reach.set) {
            if reach.zones.is_some_and(|zones| !zones.contain(bound.zone(reach.set, element))) {
                continue;
            }
            // Who computes it: its owner, and the owners of what it adds to.
            parts.clear();
            parts.push(owners.of(reach.set, element));
            for hops in &reach.adds {
                let Some((set, target)) = walk(whole, reach.set, element, hops, &mut |_, _| {}) else { continue };
                parts.push(owners.of(set, target));
            }
            parts.sort_unstable();
            parts.dedup();
            for &part in &parts {
                let mut need = |set: SetId, element: usize| {
                    if owners.of(set, element) != part {
                        more[part][set.index()].push(element as u32);
                    }
                };
                need(reach.set, element);
                for hops in reach.reads.iter().chain(&reach.adds) {
                    walk(whole, reach.set, element, hops, &mut need);
                }
            }
        }
        more.iter_mut().flatten().for_each(|all| {
            all.sort_unstable();
            all.dedup();
        });
    }
    let elements = |(part, more): (usize, Vec<Vec<u32>>)| {
        let of_set = |(&set, mut users): (&SetId, Vec<u32>)| {
            users.extend(owners.owned(set, part));
            users.sort_unstable();
            let is_own = |(_, user): &(u32, &u32)| owners.of(set, **user as usize) == part;
            let owned = (0..).zip(&users).filter(is_own).map(|(place, _)| place).collect();
            Elements { users, owned }
        };
        sets.iter().zip(more).map(of_set).collect()
    };
    more.into_iter().enumerate().map(elements).collect()
}

/// Goes from an element along hops, tells of each element that it comes to, and returns the last; nothing if there is a hole.
fn walk(
    whole: &MeshProblem,
    from: SetId,
    element: usize,
    hops: &[Hop],
    tell: &mut dyn FnMut(SetId, usize),
) -> Option<(SetId, usize)> {
    let mut at = (from, element);
    for &hop in hops {
        let to = usize::try_from(whole.bound.hop(at.1 as i32, hop)).ok()?;
        at = (whole.program.mesh.maps[hop.map].to, to);
        tell(at.0, at.1);
    }
    Some(at)
}

/// The mesh of a part: the declared sets and maps of all, and zones. With it the maps that lead out of the part.
fn mesh_of(whole: &MeshProblem, elements: &[Elements]) -> (Mesh, BTreeSet<MapId>) {
    let (declared, all, bound) = (&whole.program.mesh, &whole.mesh, &whole.bound);
    let sets = all.sets.iter().map(|set| {
        let own = declared.set_named(&set.name);
        Set { name: set.name.clone(), size: own.map_or(0, |own| elements[own.index()].users.len()) }
    });
    let mut mesh = Mesh { origin: all.origin.clone(), sets: sets.collect(), ..Mesh::default() };
    let places: Vec<Vec<u32>> =
        declared.sets.handles().zip(elements).map(|(set, own)| places(own, bound.size(set))).collect();
    let mut open = BTreeSet::new();
    for (id, map) in declared.maps.iter() {
        let [from, to] = [map.from, map.to].map(|set| all.set_named(&declared.sets[set].name));
        let (Some(from), Some(to)) = (from, to) else { continue };
        let (table, arity) = bound.map(id);
        let mut own = Vec::with_capacity(elements[map.from.index()].users.len() * arity);
        for &user in &elements[map.from.index()].users {
            own.extend(table[user as usize * arity..][..arity].iter().map(|&target| {
                let place = usize::try_from(target).map(|target| places[map.to.index()][target]);
                match place {
                    Err(_) => HOLE,
                    Ok(NOWHERE) => {
                        open.insert(id);
                        HOLE
                    }
                    Ok(place) => place as i32,
                }
            }));
        }
        mesh.maps.push(Map { name: map.name.clone(), from, to, arity, table: own });
    }
    for (id, set) in declared.sets.iter().filter(|(_, set)| !set.zones.is_empty()) {
        let Some(number) = all.set_named(&set.name) else { continue };
        let zone = |&user: &u32| i32::from(bound.zone(id, user as usize));
        let data = Data::I32(elements[id.index()].users.iter().map(zone).collect());
        mesh.fields.push(Field { name: ZONE.to_owned(), set: number, map: None, parts: 1, data });
    }
    (mesh, open)
}

/// The program and its chains, where maps that lead out of some part may have holes.
fn with_holes(whole: &MeshProblem, open: &BTreeSet<MapId>) -> (MeshProgram, Vec<Chain>) {
    let (mut program, mut chains) = (whole.program.clone(), whole.chains.clone());
    let stages = chains.iter_mut().flat_map(|chain| &mut chain.stages);
    let meshes = program.stencils.iter_mut().chain(stages).map(|own| &mut own.mesh);
    for mesh in meshes.chain([&mut program.mesh]) {
        for &map in open {
            let missing = &mut mesh.maps[map].missing;
            if *missing == Missing::Never {
                *missing = Missing::Skip;
            }
        }
    }
    (program, chains)
}

/// Steps where chains that are not computed by one kernel are their calls by themselves.
fn apart(steps: &[Step], is_merged: &dyn Fn(usize) -> bool) -> Vec<Step> {
    let mut all = Vec::new();
    for step in steps {
        match step {
            Step::Chain { call, apart: calls, .. } if !is_merged(call.stencil) => {
                all.append(&mut apart(calls, is_merged))
            }
            Step::Repeat { times, counter, steps } => {
                let steps = apart(steps, is_merged);
                all.push(Step::Repeat { times: times.clone(), counter: *counter, steps });
            }
            Step::Call { .. } | Step::Chain { .. } | Step::Rename { .. } | Step::Number { .. } => {
                all.push(step.clone())
            }
        }
    }
    all
}

/// Who brings which elements from whom: those of sets with fields that are read at elements of other parts.
fn messages(whole: &MeshProblem, parts: &[Part], foreign: &[BTreeSet<FieldId>], owners: &Owners) -> Vec<Message> {
    let of_number = |(number, fields): (usize, &BTreeSet<FieldId>)| {
        let own = &whole.stages(number)[0].stencil.fields;
        fields.iter().filter_map(|field| Some(own[*field].place.home?.set)).collect::<Vec<_>>()
    };
    let sets: BTreeSet<SetId> = foreign.iter().enumerate().flat_map(of_number).collect();
    let mut all: Vec<Message> = Vec::new();
    for (to, part) in parts.iter().enumerate() {
        for &set in &sets {
            let mut by_owner: BTreeMap<usize, Vec<[u32; 2]>> = BTreeMap::new();
            for (place, &user) in (0..).zip(&part.elements[set.index()].users) {
                let from = owners.of(set, user as usize);
                if from == to {
                    continue;
                }
                // Its owner has it.
                let there = parts[from].elements[set.index()].users.partition_point(|&other| other < user);
                by_owner.entry(from).or_default().push([place, there as u32]);
            }
            let first = all.len();
            let numbered = by_owner.into_iter().zip(first..);
            all.extend(numbered.map(|((from, places), number)| Message { number, to, from, set, places }));
        }
    }
    all
}
