//! Which part owns which element: it computes what is written there.

use super::super::MeshProblem;
use crate::error::{Error, Result};
use crate::mesh::order;
use crate::mesh::{Bound, HOLE};
use stencilc_compiler::ir::mesh::Map;
use stencilc_compiler::ir::{Handle, Mesh as Declared, SetId};

/// The owner of each element of each set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owners {
    /// How many parts there are.
    parts: usize,
    /// By set, by element.
    of: Vec<Vec<u32>>,
}

impl Owners {
    /// Parts with few neighbours outside of the set that a program has the most numbers on. Elements of the other sets belong to whom
    /// they are tied to: by a map of theirs, that is the owner of the first element where it leads, and by a map to them, that of the first
    /// that leads there.
    ///
    /// # Errors
    /// That set has fewer elements than there are to be parts, or it is too large to be divided.
    pub fn new(problem: &MeshProblem, parts: usize) -> Result<Self> {
        let (declared, bound) = (&problem.program.mesh, &problem.bound);
        let lead = most_numbers(problem).ok_or_else(|| Error::call("there is no set to cut into parts"))?;
        let (name, size) = (&declared.sets[lead].name, bound.size(lead));
        if size < parts {
            let program = &problem.program.program.name;
            let there = if size == 1 { "1 element is".to_owned() } else { format!("{size} elements are") };
            let error = Error::input(format!(
                "{there} too few for {parts} parts: `{program}` has most of its numbers on `{name}`, and each part has at least one"
            ));
            return Err(error.help(match size {
                0 | 1 => "leave out --gpus, or give a larger mesh".to_owned(),
                _ => format!("give at most --gpus {size}, or a larger mesh"),
            }));
        }
        let number =
            problem.mesh.set_named(name).ok_or_else(|| Error::check(format!("the mesh lost its set `{name}`")))?;
        let mut of: Vec<Option<Vec<u32>>> = vec![None; declared.sets.len()];
        of[lead.index()] = Some(order::parts(&problem.mesh, number, parts)?);
        while let Some((set, tied)) = next_tied(declared, bound, &of) {
            of[set.index()] = Some(filled(tied, parts));
        }
        let alone =
            |(set, own): (SetId, Option<Vec<u32>>)| own.unwrap_or_else(|| filled(vec![None; bound.size(set)], parts));
        Ok(Self { parts, of: declared.sets.handles().zip(of).map(alone).collect() })
    }

    /// A hash of who owns what.
    pub fn hash(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        for own in &self.of {
            hasher.update(&(own.len() as u64).to_le_bytes()).update(bytemuck::cast_slice(own));
        }
        *hasher.finalize().as_bytes()
    }

    /// Those that somebody says: by set of the declared mesh, by element.
    ///
    /// # Errors
    /// They are not those of a problem's elements.
    pub fn given(problem: &MeshProblem, parts: usize, of: Vec<Vec<u32>>) -> Result<Self> {
        let sets = &problem.program.mesh.sets;
        let fits = of.len() == sets.len()
            && sets.handles().zip(&of).all(|(set, own)| {
                own.len() == problem.bound.size(set) && own.iter().all(|&owner| (owner as usize) < parts)
            });
        if fits { Ok(Self { parts, of }) } else { Err(Error::call("the owners are not those of the mesh")) }
    }

    /// How many parts there are.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// Who owns an element of a set.
    pub fn of(&self, set: SetId, element: usize) -> usize {
        self.of[set.index()][element] as usize
    }

    /// The elements of a set that a part owns, in their order.
    pub fn owned(&self, set: SetId, part: usize) -> impl Iterator<Item = u32> {
        let all = (0..).zip(&self.of[set.index()]);
        all.filter(move |(_, owner)| **owner as usize == part).map(|(element, _)| element)
    }
}

/// The set that a program has the most numbers on, each as often as a call looks at it.
fn most_numbers(problem: &MeshProblem) -> Option<SetId> {
    let mut numbers = vec![0_u128; problem.program.mesh.sets.len()];
    for call in problem.outline().calls(&|_| false) {
        for (_, field) in problem.stages(call.stencil)[0].stencil.fields.iter() {
            let Some(home) = field.place.home else { continue };
            let each = u128::from(home.width) * field.place.levels.count(problem.levels) as u128;
            numbers[home.set.index()] += problem.bound.size(home.set) as u128 * each;
        }
    }
    let most = *numbers.iter().max()?;
    problem.program.mesh.sets.handles().find(|set| numbers[set.index()] == most)
}

/// A set whose elements have no owner yet, and those that its ties to a set give them.
fn next_tied(declared: &Declared, bound: &Bound, of: &[Option<Vec<u32>>]) -> Option<(SetId, Vec<Option<u32>>)> {
    let known = |set: SetId| of[set.index()].as_deref();
    let maps = || declared.maps.iter();
    if let Some((id, Map { from, to, .. })) =
        maps().find(|(_, map)| known(map.from).is_none() && known(map.to).is_some())
    {
        let ((table, arity), owners) = (bound.map(id), known(*to)?);
        let first = |row: &[i32]| row.iter().find(|&&to| to != HOLE).map(|&to| owners[to as usize]);
        return Some((*from, table.chunks(arity.max(1)).map(first).collect()));
    }
    let (id, Map { from, to, .. }) = maps().find(|(_, map)| known(map.from).is_some() && known(map.to).is_none())?;
    let ((table, arity), owners) = (bound.map(id), known(*from)?);
    let mut tied = vec![None; bound.size(*to)];
    for (row, &owner) in table.chunks(arity.max(1)).zip(owners) {
        for &to in row.iter().filter(|&&to| to != HOLE) {
            tied[to as usize].get_or_insert(owner);
        }
    }
    Some((*to, tied))
}

/// The same, where those that are tied to nobody go to all parts, as many to each.
fn filled(tied: Vec<Option<u32>>, parts: usize) -> Vec<u32> {
    let alone = tied.iter().filter(|own| own.is_none()).count();
    let mut met = 0;
    let owner = |own: Option<u32>| {
        own.unwrap_or_else(|| {
            met += 1;
            ((met - 1) * parts / alone.max(1)) as u32
        })
    };
    tied.into_iter().map(owner).collect()
}
