//! Fields on sets and maps, vectors, reductions.

use crate::ast;
use crate::diagnostic::Diagnostic;
use crate::ir::mesh::Home;
use crate::ir::{Field, Levels, Place, Role, Stored};
use crate::lower::scope::Binding;
use crate::lower::{Found, Lowering};
use crate::source::Span;
use crate::text::FreeText;

impl<'a> Lowering<'a> {
    /// `on cell.edges, no k`, and how many numbers there are each time.
    pub(in crate::lower) fn mesh_place(
        &mut self,
        place: Option<&ast::PlaceOn>,
        typed: Option<&ast::Typed>,
        at: Span,
    ) -> Found<Place> {
        let over = self.over.as_ref()?;
        let (mesh, own) = (over.mesh(), over.set);
        let parts = match typed.and_then(|typed| typed.parts) {
            Some((number, at)) => self.width(number, at, "a vector has 1 to 64 parts")?,
            None => 1,
        };
        let all = if mesh.levels { Levels::Full } else { Levels::None };
        let on = |home, levels| Some(Place { horizontal: true, levels, home: Some(home) });
        let plain = |set| Home { set, map: None, parts, width: parts };
        let (trail, none) = match place {
            None => {
                return match own {
                    Some(set) => on(plain(set), all),
                    None => self.report(
                        Diagnostic::error(at, "a field of a program lives on a set")
                            .label("on which?")
                            .help("as in `in q: real[4] on cell`; `on ()` is a single number"),
                    ),
                };
            }
            Some(ast::PlaceOn::Axes(axes, span)) => {
                let names: Vec<&str> = axes.iter().map(|axis| axis.text.as_str()).collect();
                let levels = match names.as_slice() {
                    [] => Levels::None,
                    ["k"] if mesh.levels => Levels::Full,
                    ["k"] => {
                        let found = Diagnostic::error(*span, format!("the mesh `{}` has no levels", mesh.name));
                        return self
                            .report(found.label("there is no `k`").help("declare them in the mesh: `levels k`"));
                    }
                    _ => {
                        let found = Diagnostic::error(*span, "a mesh has no axes `i` and `j`");
                        return self.report(found.label("name a set, as in `on cell`"));
                    }
                };
                if parts > 1 {
                    let found = Diagnostic::error(*span, "a vector lives on a set").label("these are single numbers");
                    return self.report(found.help("as in `in x: real[2] on node`"));
                }
                return Some(Place { horizontal: false, levels, home: None });
            }
            Some(ast::PlaceOn::Mesh(trail, none)) => (trail, none),
        };
        let levels = match none {
            Some(axis) if axis.text != "k" => {
                let found = Diagnostic::error(axis.span, "a field can lack its levels: `no k`");
                return self.report(found.label("nothing else can be left out"));
            }
            Some(_) => Levels::None,
            None => all,
        };
        let set = self.set_named(mesh, trail.names.first()?)?;
        match trail.names.as_slice() {
            [_] => on(plain(set), levels),
            [_, name] => {
                let Some(map) = mesh.map_named(set, &name.text) else {
                    let set_name = mesh.sets[set].name.clone();
                    let maps = mesh.maps.iter().filter(|(_, map)| map.from == set);
                    let maps: Vec<&str> = maps.map(|(_, map)| map.name.as_str()).collect();
                    let found =
                        Diagnostic::error(name.span, format!("the set `{set_name}` has no map `{}`", name.text));
                    return self.report(match crate::diagnostic::guess(&name.text, maps.iter().copied()) {
                        Some(guess) => found.label(format!("did you mean `{guess}`?")),
                        None => found.label(format!("its maps are {}", maps.join(", "))),
                    });
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

    /// Whether a field may be written where it lives.
    pub(in crate::lower) fn check_written(&mut self, role: Role, place: Place, span: Span) -> Found<()> {
        let Some((mesh, own)) = self.site() else { return Some(()) };
        match (role, place.home) {
            (Role::In | Role::Carried | Role::Reduce, _) => Some(()),
            (Role::Out | Role::InOut | Role::Inc, None) => {
                let found = Diagnostic::error(span, format!("an `{}` lives on a set", role.name()));
                self.report(
                    found
                        .label("one number for all elements")
                        .help("what all elements come to is a reduction: `reduce total: sum`, with `total += ...`"),
                )
            }
            (Role::Out | Role::InOut | Role::Inc, Some(home)) if home.map.is_some() => {
                let found = Diagnostic::error(span, format!("an `{}` lives on a set", role.name()));
                self.report(found.label("on a map").help("values on a map are inputs: `in weight on cell.edges`"))
            }
            (Role::Out | Role::InOut, Some(home)) if home.set != own => {
                let (there, here) = (self.set_name(home.set), self.set_name(own));
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
                let found = Diagnostic::error(span, "an `inc` has the levels of its stencil");
                self.report(
                    found.label("no levels").help("what all levels come to is summed up in a program, or a reduction"),
                )
            }
            (Role::Out | Role::InOut | Role::Inc, Some(_)) => Some(()),
        }
    }

    /// `reduce change: sum`
    pub(in crate::lower) fn declare_reductions(&mut self, reduce: &'a ast::Reduce) {
        if !self.is_over_mesh() {
            self.report::<()>(
                Diagnostic::error(reduce.span, "a reduction goes over the elements of a mesh")
                    .label("in a grid stencil")
                    .help("`run` prints the least, mean and largest value of every output"),
            );
            // That it is assigned would be the next error.
            return reduce.names.iter().for_each(|name| self.define(name, Binding::Broken));
        }
        for name in &reduce.names {
            let known = self.scope.find(&name.text).is_some();
            if known {
                self.define(name, Binding::Broken);
                continue;
            }
            let (role, stored, doc) = (Role::Reduce, Stored::Real, FreeText::new(&reduce.doc));
            let place = Place { horizontal: false, levels: Levels::None, home: None };
            let field = Field { name: name.text.clone(), doc, role, place, stored, range: None, span: name.span };
            let id = self.stencil.fields.add(field);
            self.reductions.push((id, reduce));
            self.define(name, Binding::Field(id));
        }
    }
}
