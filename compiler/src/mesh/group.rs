//! What a stencil adds to which elements.

use super::MeshTask;
use crate::diagnostic::Refusal;
use crate::ir::mesh::{How, Zones};
use crate::ir::{Body, FieldId, Kind, MeshStencil, Node, Path, SetId};
use std::collections::BTreeSet;

/// What is added to the elements of one set.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its number among those whose kernels are made together.
    pub number: usize,
    /// Who adds.
    pub from: SetId,
    /// Those of which of its zones alone; all if nothing is said.
    pub zones: Option<Zones>,
    /// To which set.
    pub target: SetId,
    /// The paths along which it is reached, in the order in which they are first met.
    pub paths: Vec<Path>,
    /// What is added, in the order written.
    pub adds: Vec<Add>,
}

/// Something that is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Add {
    /// Which of the stencil's stores.
    pub store: usize,
    /// To which field.
    pub field: FieldId,
    /// To which of its numbers.
    pub part: u32,
    /// Along which of the group's paths.
    pub path: usize,
}

/// The groups of a stencil, one for each set that something is added to.
pub fn groups(stencil: &MeshStencil) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (store, (own, write)) in stencil.stores().enumerate() {
        let How::Add(path) = &write.how else { continue };
        let target = stencil.mesh.end(stencil.set(), path);
        let number = groups.iter().position(|group| group.target == target).unwrap_or_else(|| {
            let (from, zones, number) = (stencil.set(), stencil.stencil.zones, groups.len());
            groups.push(Group { number, from, zones, target, paths: Vec::new(), adds: Vec::new() });
            number
        });
        let group = &mut groups[number];
        let path = group.paths.iter().position(|known| known == path).unwrap_or_else(|| {
            group.paths.push(path.clone());
            group.paths.len() - 1
        });
        group.adds.push(Add { store, field: own.field, part: write.part, path });
    }
    groups
}

/// Whether a real number is the negative of another; nothing if neither that nor the same.
fn negative_of(a: &Body, b: &Body) -> Option<bool> {
    let bare = |body: &Body| match body[body.root()] {
        Node::Negate(inner) if body.kind() == Kind::Real => (body.clone().rooted(inner), true),
        _ => (body.pruned(), false),
    };
    let ((x, x_is_negative), (y, y_is_negative)) = (bare(a), bare(b));
    let same = x.iter().map(|(_, node)| node).eq(y.iter().map(|(_, node)| node));
    same.then_some(x_is_negative != y_is_negative)
}

/// Whether a stencil writes at its own elements.
pub fn has_own(stencil: &MeshStencil) -> bool {
    stencil.writes.iter().any(|write| !matches!(write.how, How::Add(_)))
}

impl Group {
    /// How many values of what kind an element writes between the two steps, for a stencil's group with a number.
    pub fn between(stencil: &MeshStencil, number: usize) -> (usize, Kind) {
        let groups = groups(stencil);
        let Some(own) = groups.get(number) else { return (0, Kind::Real) };
        let each = (0..own.paths.len()).map(|path| own.along(path).len()).max().unwrap_or(0);
        let kind = own.adds.first().map_or(Kind::Real, |add| stencil.stencil.stores[add.store].body.kind());
        (if own.turned(stencil).is_some() { each } else { each * own.paths.len() }, kind)
    }

    /// What is added along a path.
    pub fn along(&self, path: usize) -> Vec<Add> {
        self.adds.iter().copied().filter(|add| add.path == path).collect()
    }

    /// Whether the same numbers are added to along every path.
    pub fn is_alike(&self) -> bool {
        let of = |path: usize| self.along(path).iter().map(|add| (add.field, add.part)).collect::<Vec<_>>();
        (1..self.paths.len()).all(|path| of(path) == of(0))
    }

    /// Of groups that add the same numbers along every path: by path, whether what is added to the number `n` of them is the negative
    /// of what is added along the first path; nothing if it differs in more than the sign.
    pub fn signs(&self, stencil: &MeshStencil, n: usize) -> Option<Vec<bool>> {
        let body = |path: usize| self.along(path).get(n).map(|add| &stencil.stencil.stores[add.store].body);
        let first = body(0)?;
        (0..self.paths.len()).map(|path| negative_of(body(path)?, first)).collect()
    }

    /// The signs of all numbers, if several paths differ in nothing else.
    pub fn turned(&self, stencil: &MeshStencil) -> Option<Vec<Vec<bool>>> {
        if self.paths.len() < 2 || !self.is_alike() {
            return None;
        }
        (0..self.along(0).len()).map(|n| self.signs(stencil, n)).collect()
    }

    /// The fields that are added to.
    pub fn fields(&self) -> Vec<FieldId> {
        let mut fields: Vec<FieldId> = Vec::new();
        for add in &self.adds {
            if !fields.contains(&add.field) {
                fields.push(add.field);
            }
        }
        fields
    }

    /// Whether what comes along paths to one target comes in the order of the paths, for each number.
    pub fn is_in_order(&self) -> bool {
        self.out_of_order().is_none()
    }

    /// The first field to which something is added along a path after one that comes later.
    fn out_of_order(&self) -> Option<FieldId> {
        self.fields().into_iter().find(|&field| {
            let parts = self.adds.iter().filter(|add| add.field == field).map(|add| add.part);
            parts.collect::<BTreeSet<_>>().into_iter().any(|part| {
                let own = self.adds.iter().filter(|add| add.field == field && add.part == part);
                !own.map(|add| add.path).is_sorted()
            })
        })
    }

    /// Refuses what cannot be gathered path by path: if an element leads to one target along two paths, the order of
    /// what it adds has to be that of the paths.
    ///
    /// # Errors
    /// It is not.
    pub fn check_order(&self, task: &MeshTask) -> Result<(), Refusal> {
        let Some(field) = self.out_of_order() else { return Ok(()) };
        if !task.counts.repeats(self) {
            return Ok(());
        }
        let own = &task.stencil.stencil;
        let name = &own.fields[field].name;
        Err(Refusal::new(format!(
            "elements of this mesh lead to one place along several slots, and `{}` adds to `{name}` in another order than that in \
             which it first names these slots",
            own.name
        ))
        .help("write the increments in one order of slots, or take a strategy that adds in no order, such as global-colouring"))
    }
}
