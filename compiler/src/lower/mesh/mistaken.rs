//! What is taken for something else in a stencil over a mesh: maps and sets for values, counters for slots.

use super::trail::joined;
use crate::ast::Name;
use crate::diagnostic::{Diagnostic, wrong};
use crate::ir::mesh::Map;
use crate::ir::{FieldId, Levels, Path, Place, Role};
use crate::lower::scope::Binding;
use crate::lower::value::{Alias, Value};
use crate::lower::{Found, Lowering};
use crate::source::Span;

impl Lowering<'_> {
    /// Whether it runs over a mesh without levels.
    pub(in crate::lower) fn lacks_levels(&self) -> bool {
        self.over.as_ref().is_some_and(|over| !over.mesh().levels)
    }

    /// Reports levels of a mesh that has none.
    pub(in crate::lower) fn no_levels<T>(&mut self, span: Span, label: &str) -> Found<T> {
        let name = self.over.as_ref().map_or("", |over| &over.mesh().name);
        let found = wrong(span, format!("the mesh `{name}` has no levels"), label);
        self.report(found.help("declare them in the mesh: `levels k`"))
    }

    /// Reports an axis of grids.
    pub(in crate::lower) fn no_axes<T>(&mut self, span: Span, label: &str) -> Found<T> {
        self.report(Diagnostic::error(span, "a mesh has no axes `i` and `j`").label(label).help(
            "neighbours are reached through maps, as in `q[cells.0]`; coordinates are a field: `in x: real[2] on node`",
        ))
    }

    /// Reports a read of what is added to, or of what all elements come to.
    pub(in crate::lower) fn unreadable<T>(&mut self, field: FieldId, span: Span) -> Found<T> {
        let own = &self.stencil.fields[field];
        let (name, declared) = (own.name.clone(), own.span);
        self.report(if own.role == Role::Reduce {
            wrong(span, format!("`{name}` is a reduction: it cannot be read"), "known when all elements are done")
                .note(declared, "declared as `reduce` here")
                .help("a program passes it to the next stencil, as a parameter")
        } else {
            Diagnostic::error(span, format!("`{name}` is incremented: it cannot be read"))
                .label("some elements have added to it, others have not")
                .note(declared, "declared as `inc` here")
                .help(format!("read it in a stencil that is called after this one, or pass what was there before as `in {name}_before`"))
        })
    }

    /// Reports a field that is looked at elsewhere, where it is the same: other levels of one without, other elements of one on
    /// no set.
    pub(super) fn check_varies(&mut self, name: &str, path: &Path, span: Span) -> Found<()> {
        let Some(field) = self.field_at(name) else { return Some(()) };
        let own = self.stencil.fields[field].clone();
        let lacks = match own.place {
            Place { levels: Levels::None, .. } if path.levels() != 0 => "levels",
            Place { horizontal: false, .. } if !path.hops().is_empty() => "elements",
            _ => return Some(()),
        };
        let place = self.over.as_ref().map_or(String::new(), |over| over.mesh().place(own.place));
        let found = Diagnostic::error(span, format!("`{name}` has no {lacks}: it is{place}"))
            .label("looked at elsewhere, where it is the same")
            .note(own.span, "declared here");
        let without = format!("write `{name}` without the map");
        self.report(found.help(if lacks == "levels" { "leave the level out" } else { &without }))
    }

    /// What a name of the mesh is, where a value is needed.
    pub(in crate::lower) fn part_of_mesh(&self, name: &str, span: Span) -> Option<Diagnostic> {
        let mesh = self.over.as_ref()?.mesh();
        let own = self.over.as_ref().and_then(|over| over.set);
        if let Some(map) = own.and_then(|own| mesh.map_named(own, name)) {
            let slot = first_slot(&mesh.maps[map]);
            let found = Diagnostic::error(span, format!("`{name}` is a map, no value")).label("stands in brackets");
            return Some(found.help(format!("as in `a[{slot}]`; `present({slot})` asks whether it leads somewhere")));
        }
        mesh.set_named(name)?;
        let found = Diagnostic::error(span, format!("`{name}` is a set, no value")).label("not a value");
        Some(found.help(format!("a program knows how large it is: `size({name})`")))
    }

    /// What a name that is no map means, if it means something.
    pub(super) fn no_map(&mut self, name: &Name, before: &[Name]) -> Option<Diagnostic> {
        let binding = self.scope.use_name(&name.text)?.binding;
        let (text, way) = (&name.text, joined(before));
        let map = if way.is_empty() { "nodes" } else { &way };
        let (what, label, help) = match binding {
            Binding::Slot(_) => ("a place of its own", "needs no map before it", format!("write `[{text}]`")),
            Binding::Value(Value::One(Alias::Int(_))) => {
                let help = format!("`sum({text} in {map}) {{ ...[{text}] }}` goes through the slots of a map");
                ("a number, no slot", "a number of a range", help)
            }
            Binding::Field(_) | Binding::Value(_) | Binding::Param(_) | Binding::Constant(_) => {
                let help = "slots are numbers known when compiling, as in `a[nodes.0]`".to_owned();
                ("a value, no map", "a map or slot is expected", help)
            }
            Binding::Function(_) | Binding::Variable(_) | Binding::Broken => return None,
        };
        Some(Diagnostic::error(name.span, format!("`{text}` is {what}")).label(label).help(help))
    }
}

/// `edges.0`, or `cell` of a map that leads to one element.
pub(super) fn first_slot(map: &Map) -> String {
    if map.arity == 1 { map.name.clone() } else { format!("{}.0", map.name) }
}
