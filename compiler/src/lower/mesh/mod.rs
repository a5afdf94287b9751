//! Stencils over the elements of a mesh: sets and maps, fields on them, gathers, increments and reductions.

mod declare;
mod elsewhere;
mod fold;
mod hole;
mod index;
mod mistaken;
mod trail;
mod write;
mod zone;

pub use hole::{PRESENT, SIZE};
pub use zone::IN_ZONE;

use super::scope::Binding;
use super::{Found, Lowering};
use crate::ast::{self, ExprId, MapHoles, MeshPart};
use crate::diagnostic::{Diagnostic, guess, wrong};
use crate::ir::mesh::{Home, Map, Mesh, Missing, Set, Write};
use crate::ir::{Handle, Levels, MapId, MeshStencil, NodeId, Path, Place, Program, SetId, Stencil};
use crate::source::Span;
use crate::text::FreeText;

/// The most slots of a map, and the most parts of a vector: each is written out.
const WIDTH: i32 = 64;

/// A mesh of the file.
#[derive(Clone, Debug)]
pub struct Declared {
    /// What it is.
    pub mesh: Mesh,
    /// What is read through the holes of each map, where that is a number.
    values: Vec<Option<ExprId>>,
}

/// Over what a stencil or program runs.
#[derive(Clone)]
pub struct Over<'a> {
    /// The mesh.
    pub declared: &'a Declared,
    /// The set over whose elements a stencil runs.
    pub set: Option<SetId>,
    /// The set at whose elements what is being written has a value, if that is another one.
    elsewhere: Option<SetId>,
    /// Paths that lead to an element, as far as is known where something is being written.
    present: Vec<Path>,
    /// What is done with the stores so far.
    pub writes: Vec<Write>,
}

impl<'a> Over<'a> {
    /// What runs over the elements of a set.
    pub fn new(declared: &'a Declared, set: SetId) -> Self {
        Self { declared, set: Some(set), elsewhere: None, present: Vec::new(), writes: Vec::new() }
    }

    /// Where a number at every element lives.
    pub fn place(&self) -> Place {
        let levels = if self.mesh().levels { Levels::Full } else { Levels::None };
        let home = self.set.map(|set| Home { set, map: None, parts: 1, width: 1 });
        Place { horizontal: true, levels, home }
    }

    fn mesh(&self) -> &'a Mesh {
        &self.declared.mesh
    }

    /// A path as it is written.
    pub fn written(&self, path: &Path) -> String {
        self.mesh().written(path)
    }

    /// The stencils that a program calls, by their numbers there.
    pub fn called(&self, program: &Program, stencils: &[MeshStencil]) -> Vec<MeshStencil> {
        let own = |inner: &Stencil| {
            let name = inner.whole_name();
            Some(stencils.iter().find(|own| own.stencil.name == name)?.with(inner.clone()))
        };
        program.stencils.iter().filter_map(own).collect()
    }

    /// The stencil over the mesh whose values are those of `stencil`.
    pub fn stencil(self, stencil: Stencil) -> MeshStencil {
        MeshStencil { stencil, mesh: self.declared.mesh.clone(), over: self.set, writes: self.writes }
    }
}

impl<'a> Lowering<'a> {
    /// The meshes of the file; what is wrong with them is reported.
    pub(super) fn meshes(&mut self) -> Vec<Declared> {
        let file = self.file;
        let own = file.items.iter().filter_map(|item| if let ast::Item::Mesh(mesh) = item { Some(mesh) } else { None });
        own.map(|mesh| self.mesh(mesh)).collect()
    }

    fn mesh(&mut self, mesh: &'a ast::Mesh) -> Declared {
        let (name, doc, span) = (mesh.name.text.clone(), FreeText::new(&mesh.doc), mesh.name.span);
        let mut declared = Declared { mesh: Mesh { name, doc, span, ..Mesh::default() }, values: Vec::new() };
        for part in &mesh.parts {
            match part {
                MeshPart::Set(names) => names.iter().for_each(|name| self.add_set(&mut declared.mesh, name)),
                MeshPart::Map(_) | MeshPart::Zones(..) => {}
                MeshPart::Levels(axis) if axis.text != "k" => {
                    self.tell(wrong(axis.span, "the levels of a mesh are called `k`", "write `levels k`"));
                }
                MeshPart::Levels(_) => declared.mesh.levels = true,
            }
        }
        for part in &mesh.parts {
            match part {
                MeshPart::Map(map) => self.add_map(&mut declared, map),
                MeshPart::Zones(names, set) => self.add_zones(&mut declared.mesh, names, set),
                MeshPart::Set(_) | MeshPart::Levels(_) => None,
            };
        }
        declared
    }

    fn add_set(&mut self, mesh: &mut Mesh, name: &ast::Name) {
        if let Some(before) = mesh.set_named(&name.text) {
            let found = Diagnostic::error(name.span, format!("the mesh `{}` has two sets `{}`", mesh.name, name.text));
            return self.tell(found.label("again here").note(mesh.sets[before].span, "first here"));
        }
        mesh.sets.add(Set { name: name.text.clone(), zones: Vec::new(), span: name.span });
    }

    fn add_map(&mut self, declared: &mut Declared, map: &'a ast::MeshMap) -> Found<()> {
        let (from, to) = (self.set_named(&declared.mesh, &map.from), self.set_named(&declared.mesh, &map.to));
        let (from, to) = (from?, to?);
        let mesh = &declared.mesh;
        if let Some(before) = mesh.map_named(from, &map.name.text) {
            let (text, before) = (mesh.full_name(before), mesh.maps[before].span);
            let found = wrong(map.name.span, format!("there are two maps `{text}`"), "again here");
            return self.report(found.note(before, "first here"));
        }
        let arity = match map.arity {
            Some((number, at)) => self.width(number, at, "a map has 1 to 64 slots")?,
            None => 1,
        };
        let (missing, value) = match map.missing {
            None => (Missing::Never, None),
            Some(MapHoles::Skip) => (Missing::Skip, None),
            Some(MapHoles::Value(value)) => {
                // Looked at here, so that what is wrong is told even if nobody reads through the map.
                self.constant_body(value, None, "value")?;
                (Missing::Value, Some(value))
            }
        };
        let (name, doc, span) = (map.name.text.clone(), FreeText::new(&map.doc), map.name.span);
        declared.mesh.maps.add(Map { name, doc, from, to, arity, missing, span });
        declared.values.push(value);
        Some(())
    }

    /// How many slots or parts there are: a small whole number.
    fn width(&mut self, number: ExprId, at: Span, what: &str) -> Found<u32> {
        let width = self.whole_constant(number)?;
        match u32::try_from(width) {
            Ok(width) if (1..=WIDTH as u32).contains(&width) => Some(width),
            _ => self.report(Diagnostic::error(at, what).label(format!("here are {width}"))),
        }
    }

    /// The set called `name`.
    fn set_named(&mut self, mesh: &Mesh, name: &ast::Name) -> Found<SetId> {
        mesh.set_named(&name.text).or_else(|| {
            let names: Vec<&str> = mesh.sets.iter().map(|(_, set)| set.name.as_str()).collect();
            let found = Diagnostic::error(name.span, format!("the mesh `{}` has no set `{}`", mesh.name, name.text));
            self.report(found.meant(guess(&name.text, names.iter().copied()), |found| match names.is_empty() {
                true => found.label("it has no sets").help("declare them: `set node, edge, cell`"),
                false => found.label(format!("its sets are {}", names.join(", "))),
            }))
        })
    }

    /// The mesh called `name`.
    fn mesh_named(&mut self, meshes: &'a [Declared], name: &ast::Name) -> Found<&'a Declared> {
        meshes.iter().find(|own| own.mesh.name == name.text).or_else(|| {
            let names: Vec<&str> = meshes.iter().map(|own| own.mesh.name.as_str()).collect();
            let found = Diagnostic::error(name.span, format!("there is no mesh `{}`", name.text));
            let with = meshes.iter().find(|own| own.mesh.set_named(&name.text).is_some());
            self.report(found.meant(guess(&name.text, names.iter().copied()), |found| match with {
                Some(own) => found.label(format!("did you mean `{}.{}`?", own.mesh.name, name.text)),
                None if names.is_empty() => {
                    found.label("this file has no mesh").help(format!(
                        "declare it: `mesh {} {{ set node, cell; map cell.nodes -> node[3] }}`",
                        name.text
                    ))
                }
                None => found.label(format!("in this file: {}", names.join(", "))),
            }))
        })
    }

    /// `over airfoil.edge` of a stencil.
    pub(super) fn over_set(&mut self, meshes: &'a [Declared], trail: &ast::Trail) -> Found<Over<'a>> {
        let declared = self.mesh_named(meshes, trail.names.first()?)?;
        let sets: Vec<&str> = declared.mesh.sets.iter().map(|(_, set)| set.name.as_str()).collect();
        let [_, set] = trail.names.as_slice() else {
            let found = Diagnostic::error(trail.span, "a stencil runs over one set of a mesh");
            let (mesh, first) = (&declared.mesh.name, sets.first().copied().unwrap_or("cell"));
            return self.report(found.label(format!("as in `over {mesh}.{first}`")));
        };
        let set = self.set_named(&declared.mesh, set)?;
        Some(Over::new(declared, set))
    }

    /// `over airfoil` of a program.
    pub(super) fn over_mesh(&mut self, meshes: &'a [Declared], trail: &ast::Trail) -> Found<Over<'a>> {
        let declared = self.mesh_named(meshes, trail.names.first()?)?;
        if trail.names.len() > 1 {
            let found = Diagnostic::error(trail.span, "a program runs over a whole mesh");
            let found = found.label(format!("write `over {}`", declared.mesh.name));
            return self.report(found.help("the stencils that it calls run over sets"));
        }
        Some(Over { declared, set: None, elsewhere: None, present: Vec::new(), writes: Vec::new() })
    }

    /// Whether what is being lowered runs over a mesh.
    pub(super) fn is_over_mesh(&self) -> bool {
        self.over.is_some()
    }

    /// The mesh, and the set at whose elements what is being written has a value.
    fn site(&self) -> Found<(&'a Mesh, SetId)> {
        let over = self.over.as_ref()?;
        Some((over.mesh(), over.elsewhere.or(over.set)?))
    }

    /// `missing value(x)`: x, in the body being written.
    fn hole_value(&mut self, map: MapId) -> Found<NodeId> {
        let value = self.over.as_ref()?.declared.values.get(map.index()).copied().flatten()?;
        self.within(0, |own| own.as_constant(|own| own.scalar(value)))
    }

    /// The path that the counter of a sum over a map stands for.
    fn counter(&mut self, name: &str) -> Option<Path> {
        let Binding::Slot(path) = self.scope.binding(name)?.clone() else { return None };
        self.scope.use_name(name);
        Some(path)
    }
}
