//! The order in which the elements of a mesh stand on a machine.

use super::super::MeshProblem;
use super::super::pieces::Pieces;
use super::super::tables::InverseMap;
use crate::Result;
use crate::mesh::order::{Cuts, Ordering};
use crate::mesh::{Bound, zone};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use stencilc_compiler::ir::mesh::{How, Zones};
use stencilc_compiler::ir::{Handle, Path, SetId};
use stencilc_compiler::mesh::{Cut, Group};

/// Who leads where: from which set, of which of its zones, along which paths.
type Leading = (SetId, Option<Zones>, Vec<Path>);

/// A mesh whose elements stand in some order on machines. Any number of threads may use it at once.
pub struct Renumbered {
    /// The sets and maps, with the machine's numbers.
    pub(super) bound: Bound,
    /// By set: the user's number of each element.
    pub(super) users: Vec<Vec<u32>>,
    /// By set: the number of each element of the user's.
    pub(super) news: Vec<Vec<u32>>,
    /// What is known of increments.
    inverse: Mutex<HashMap<Leading, Arc<InverseMap>>>,
    /// What was cut, where that could be done.
    pieces: Mutex<HashMap<Piece, Option<Arc<Pieces>>>>,
    /// A set that the ordering has cut into parts, and where they begin.
    parts: Option<(SetId, Cuts)>,
}

/// What is cut: who leads where along which paths, and how.
type Piece = (Leading, Cut);

impl Renumbered {
    /// The elements of a problem's mesh in some order.
    ///
    /// # Errors
    /// The order is not one of the mesh.
    pub fn new(problem: &MeshProblem, ordering: &Ordering) -> Result<Self> {
        let (declared, bare) = (&problem.program.mesh, problem.mesh.bare());
        ordering.check(&bare)?;
        let mut ordering = ordering.clone();
        let mut bound = Bound::new(declared, &ordering.renumbered(&bare))?;
        let by_targets = ordering != Ordering::kept(&bare) && sort_by_targets(problem, &bound, &mut ordering);
        let by_zones = zone::sort(declared, &problem.bound, &bare, &mut ordering);
        if by_targets || by_zones {
            bound = Bound::new(declared, &ordering.renumbered(&bare))?;
        }
        let users = declared.sets.iter().map(|(_, set)| {
            problem.mesh.set_named(&set.name).map(|number| ordering.orders[number].clone()).unwrap_or_default()
        });
        let users: Vec<Vec<u32>> = users.collect();
        let news = users.iter().map(|users| crate::mesh::order::inverse(users)).collect();
        let parts = ordering.cuts.as_ref().and_then(|cuts| {
            let name = &problem.mesh.sets.get(cuts.set)?.name;
            Some((declared.set_named(name)?, cuts.clone()))
        });
        Ok(Self { bound, users, news, inverse: Mutex::default(), pieces: Mutex::default(), parts })
    }

    /// The order in which the elements of a problem's mesh stand; those of sets that the program does not declare as they are.
    pub fn ordering(&self, problem: &MeshProblem) -> Ordering {
        let mut ordering = Ordering::kept(&problem.mesh);
        for ((_, set), users) in problem.program.mesh.sets.iter().zip(&self.users) {
            if let Some(number) = problem.mesh.set_named(&set.name) {
                ordering.orders[number].clone_from(users);
            }
        }
        ordering.cuts = self.parts.as_ref().map(|(_, cuts)| cuts.clone());
        ordering
    }

    /// The user's numbers of the elements of a set. If zones are named, their elements are counted alone, in the order of these numbers.
    pub(super) fn users_of(&self, set: SetId, zones: Option<Zones>) -> Vec<i32> {
        let users = &self.users[set.index()];
        let own = self.bound.range(set, zones);
        if own.len() == users.len() {
            return users.iter().map(|&user| user as i32).collect();
        }
        let mut elements: Vec<usize> = own.collect();
        elements.sort_unstable_by_key(|&element| users[element]);
        let mut numbers = vec![-1; users.len()];
        elements.into_iter().zip(0..).for_each(|(element, number)| numbers[element] = number);
        numbers
    }

    /// Who leads to the targets of a group.
    pub(super) fn inverse(&self, group: &Group) -> Result<Arc<InverseMap>> {
        let key = leading(group);
        if let Some(known) = locked(&self.inverse).get(&key) {
            return Ok(Arc::clone(known));
        }
        let own = Arc::new(InverseMap::new(&self.bound, group, &self.users[group.from.index()])?);
        locked(&self.inverse).insert(key, Arc::clone(&own));
        Ok(own)
    }

    /// Those who lead to the targets of a group, in pieces. Nothing if a piece is too large for numbers of 16 bits.
    pub(super) fn pieces(&self, group: &Group, cut: Cut) -> Result<Option<Arc<Pieces>>> {
        let Group { from, target, .. } = group;
        let key = (leading(group), cut);
        if let Some(known) = locked(&self.pieces).get(&key) {
            return Ok(known.clone());
        }
        let inverse = self.inverse(group)?;
        let set = match cut {
            Cut::Tiles { .. } => target,
            Cut::Blocks { .. } => from,
        };
        let parts = self.parts.as_ref().filter(|(own, _)| own == set).map(|(_, cuts)| &cuts.starts[..]);
        let own = inverse.pieces(cut, &self.users[from.index()], parts).ok().map(Arc::new);
        locked(&self.pieces).insert(key, own.clone());
        Ok(own)
    }
}

/// Who leads to the targets of a group.
fn leading(group: &Group) -> Leading {
    (group.from, group.zones, group.paths.clone())
}

/// What is known already: whoever panicked has left it whole.
fn locked<T>(known: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Puts elements that add to those of another set in the order of the first that they add to, so that neighbours in memory
/// add to the same ones. Says whether there are any.
fn sort_by_targets(problem: &MeshProblem, bound: &Bound, ordering: &mut Ordering) -> bool {
    let mut sorted: Vec<SetId> = Vec::new();
    for stencil in &problem.program.stencils {
        let set = stencil.set();
        let paths: Vec<&Path> = stencil
            .writes
            .iter()
            .filter_map(|write| match &write.how {
                How::Add(path) if !path.is_here() && stencil.mesh.end(set, path) != set => Some(path),
                _ => None,
            })
            .collect();
        let Some(number) = problem.mesh.set_named(&stencil.mesh.sets[set].name) else { continue };
        // Blocks stay as they were cut.
        let is_cut = ordering.cuts.as_ref().is_some_and(|cuts| cuts.set == number);
        if paths.is_empty() || is_cut || sorted.contains(&set) {
            continue;
        }
        let first = |element: usize| {
            let targets = paths.iter().map(|path| bound.walk(element as i32, path.hops()));
            targets.filter(|&target| target >= 0).min().unwrap_or(i32::MAX)
        };
        let mut elements: Vec<(i32, u32)> =
            (0..bound.size(set)).map(|element| (first(element), element as u32)).collect();
        elements.sort_unstable();
        let old = &ordering.orders[number];
        ordering.orders[number] = elements.into_iter().map(|(_, element)| old[element as usize]).collect();
        sorted.push(set);
    }
    !sorted.is_empty()
}
