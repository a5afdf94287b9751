//! Fields on sets and maps, vectors, reductions.

use super::trail::no_map;
use crate::ast;
use crate::diagnostic::{Diagnostic, wrong};
use crate::ir::mesh::Home;
use crate::ir::{Field, Levels, Place, Role, Stored};
use crate::lower::declare::new_field;
use crate::lower::{Found, Lowering};
use crate::source::Span;
use crate::text::FreeText;

impl<'a> Lowering<'a> {
    /// `on cell.edges, no k`, and how many numbers there are each time.
    pub(in crate::lower) fn mesh_place(&mut self, fields: &ast::Fields) -> Found<Place> {
        let over = self.over.as_ref()?;
        let (mesh, own) = (over.mesh(), over.set);
        let parts = match fields.typed.as_ref().and_then(|typed| typed.parts) {
            Some((number, at)) => self.width(number, at, "a vector has 1 to 64 parts")?,
            None => 1,
        };
        let all = if mesh.levels { Levels::Full } else { Levels::None };
        let on = |home, levels| Some(Place { horizontal: true, levels, home: Some(home) });
        let plain = |set| Home { set, map: None, parts, width: parts };
        let (trail, along) = match &fields.place {
            None => {
                let Some(set) = own else {
                    let found = wrong(fields.role.span, "a field of a program lives on a set", "on which?");
                    return self.report(found.help("as in `in q: real[4] on cell`; `on ()` is a single number"));
                };
                return on(plain(set), all);
            }
            Some(ast::PlaceOn::Axes(axes, span)) => {
                let names: Vec<&str> = axes.iter().map(|axis| axis.text.as_str()).collect();
                let levels = match names.as_slice() {
                    [] => Levels::None,
                    ["k"] if mesh.levels => Levels::Full,
                    ["k+1"] if mesh.levels => Levels::Interfaces,
                    ["k" | "k+1"] => return self.no_levels(*span, "there is no `k`"),
                    [set, ..] if mesh.set_named(set).is_some() => {
                        let found =
                            wrong(*span, "sets stand without parentheses", format!("write `on {}`", names.join(", ")));
                        return self.report(found);
                    }
                    _ => {
                        let found = wrong(*span, "a mesh has no axes `i` and `j`", "name a set, as in `on cell`");
                        return self.report(found);
                    }
                };
                if parts > 1 {
                    let found = wrong(*span, "a vector lives on a set", "these are single numbers");
                    return self.report(found.help("as in `in x: real[2] on node`"));
                }
                return Some(Place { levels, ..Place::NOWHERE });
            }
            Some(ast::PlaceOn::Mesh(trail, along)) => (trail, along),
        };
        let levels = match along {
            Some(along) => self.levels_along(along)?,
            None => all,
        };
        let set = self.set_named(mesh, trail.names.first()?)?;
        match trail.names.as_slice() {
            [_] => on(plain(set), levels),
            [_, name] => {
                let Some(map) = mesh.map_named(set, &name.text) else {
                    let (found, guess, maps) = no_map(mesh, set, name);
                    return self
                        .report(found.meant(guess, |found| found.label(format!("its maps are {}", maps.join(", ")))));
                };
                let width = parts * mesh.maps[map].arity;
                on(Home { set, map: Some(map), parts, width }, levels)
            }
            _ => {
                let found = Diagnostic::error(trail.span, "a field lives on a set or on a map");
                self.report(found.label("as in `on cell` or `on cell.edges`"))
            }
        }
    }

    /// What a place on a set says of its levels.
    fn levels_along(&mut self, along: &ast::Along) -> Found<Levels> {
        match along {
            ast::Along::No(axis) if axis.text == "k" => Some(Levels::None),
            ast::Along::No(axis) => {
                self.report(wrong(axis.span, "a field can lack its levels: `no k`", "nothing else can be left out"))
            }
            ast::Along::Axis(axis) => match axis.text.as_str() {
                "k" | "k+1" if self.lacks_levels() => self.no_levels(axis.span, "there is no `k`"),
                "k" => Some(Levels::Full),
                "k+1" => Some(Levels::Interfaces),
                _ => {
                    let found = wrong(axis.span, "a set has levels along `k` alone", "not known here");
                    self.report(found.help("write `k+1` for the interfaces of levels, `no k` for none"))
                }
            },
        }
    }

    /// Whether a field may be written where it lives.
    pub(in crate::lower) fn check_written(&mut self, role: Role, place: Place, span: Span) -> Found<()> {
        let Some((mesh, own)) = self.site() else { return Some(()) };
        let on_a_set = Diagnostic::error(span, format!("an `{}` lives on a set", role.name()));
        match (role, place.home) {
            (Role::In | Role::Carried | Role::Reduce, _) => Some(()),
            (Role::Out | Role::InOut | Role::Inc, None) => self.report(
                on_a_set
                    .label("one number for all elements")
                    .help("what all elements come to is a reduction: `reduce total: sum`, with `total += ...`"),
            ),
            (Role::Out | Role::InOut | Role::Inc, Some(home)) if home.map.is_some() => {
                self.report(on_a_set.label("on a map").help("values on a map are inputs: `in weight on cell.edges`"))
            }
            (Role::Out | Role::InOut, Some(home)) if home.set != own => {
                let (there, here) = (&mesh.sets[home.set].name, &mesh.sets[own].name);
                let several = mesh.maps.iter().any(|(_, map)| map.from == own && map.to == home.set);
                let found = Diagnostic::error(span, format!("an `{}` lives on the set of its stencil", role.name()))
                    .label(format!("lives on `{there}`, the stencil runs over `{here}`"));
                self.report(if several {
                    found.help(format!(
                        "several elements of `{here}` may lead to the same `{there}`, and who writes last would be a race: \
                         declare it as `inc` and add to it, or run the stencil over `{there}`"
                    ))
                } else {
                    found.help(format!("run the stencil over `{there}`"))
                })
            }
            (Role::Inc, Some(_)) if place.levels == Levels::None && mesh.levels => {
                let found = wrong(span, "an `inc` has the levels of its stencil", "no levels");
                self.report(found.help("what all levels come to is summed up in a program, or a reduction"))
            }
            (Role::Out | Role::InOut | Role::Inc, Some(_)) => Some(()),
        }
    }

    /// `reduce change: sum`
    pub(in crate::lower) fn declare_reductions(&mut self, reduce: &'a ast::Reduce) {
        if !self.is_over_mesh() {
            let found = wrong(reduce.span, "a reduction goes over the elements of a mesh", "in a grid stencil");
            self.tell(found.help("`run` prints the least, mean and largest value of every output"));
            // That it is assigned would be the next error.
            return self.define_broken(&reduce.names);
        }
        for name in &reduce.names {
            let field = new_field(&name.text, Role::Reduce, Place::NOWHERE, Stored::Real, name.span);
            let id = self.add_field(name, Field { doc: FreeText::new(&reduce.doc), ..field });
            self.reductions.extend(id.map(|id| (id, reduce)));
        }
    }
}
