//! What stands in brackets: `[cells.0]`, `[e, k-1]`, `[2]`.

use super::mistaken::first_slot;
use super::trail::joined;
use super::zone::IN_ZONE;
use crate::ast::{Expr, ExprId};
use crate::diagnostic::{Diagnostic, wrong};
use crate::ir::{FieldId, Levels, Path, SetId};
use crate::lower::moved::{Leads, LevelOffset};
use crate::lower::value::{Alias, Bound, Nodes, Value};
use crate::lower::{Found, Lowering};
use crate::source::Span;

impl<'a> Lowering<'a> {
    /// `q[cells.0]`, `u[e, k-1]`, or a part of a vector.
    pub(in crate::lower) fn mesh_index(&mut self, base: ExprId, parts: &[ExprId], span: Span) -> Found<Nodes> {
        if matches!(&self.file.exprs[base], Expr::Call(function, _) if function.text == IN_ZONE) {
            return self.in_zone_of(base, parts, span);
        }
        let bound = self.base(base)?;
        let (mut hops, mut levels) = (None, None);
        for &part in parts {
            let at = self.span(part);
            let names = self.trail_of(part);
            if let Some(by) = self.level_said(part) {
                if levels.replace(by?).is_some() {
                    return self.level_twice(part);
                }
                continue;
            }
            if let Some(names) = names.as_ref().filter(|names| self.is_trail(names)) {
                if hops.is_some() {
                    let found = wrong(at, "this leads away a second time", "one way too many");
                    return self.report(found.help("maps follow each other with points, as in `a[edges.0.cells.1]`"));
                }
                hops = Some(self.one_path(names, at)?);
            } else if self.begins_with(part, &["k"]) {
                let by = self.level_offset(part)?;
                if levels.replace(by).is_some() {
                    return self.level_twice(part);
                }
            } else if self.begins_with(part, &["i", "j"]) {
                return self.no_axes(at, "leads nowhere");
            } else if let (Some(names), false) = (&names, matches!(bound, Value::Many(_))) {
                // What it should be, `paths` tells.
                self.paths(names)?;
            } else if let Value::Many(items) = bound {
                return self.part(items, parts, span);
            } else {
                return self.is_no_slot(part);
            }
        }
        let LevelOffset { by, leads } = levels.unwrap_or_default();
        let (mesh, own) = self.site()?;
        if levels.is_some() && !mesh.levels {
            let is_said = leads.is_some_and(Leads::is_level);
            return self.no_levels(span, if is_said { "a level" } else { "an offset along k" });
        }
        let path = hops.unwrap_or_default().then(&Path::levels_only(by));
        self.check_holes(&path, span)?;
        self.check_moves(base, &bound, &path, span)?;
        if let Expr::Name(name) = &self.file.exprs[base] {
            self.check_varies(name, &path, span)?;
            self.check_home(&bound, name, mesh.end(own, &path), &path, span)?;
        }
        let moved = bound.map(|alias| self.moved_to(alias, &path, span)).collected()?;
        let placed = match leads {
            None => self.place_value(moved, span)?,
            Some(leads) => moved.try_map(|alias| self.read_led(&alias, leads, span))?,
        };
        placed.map(|node| self.through_holes(node, &path, span)).collected()
    }

    /// Reports what leads nowhere: perhaps a slot in brackets or parentheses.
    fn is_no_slot<T>(&mut self, part: ExprId) -> Found<T> {
        let found = Diagnostic::error(self.span(part), "this is no slot of a map");
        let base = match &self.file.exprs[part] {
            Expr::Index(base, inner) => self.trail_of(*base).zip(inner.first().copied()),
            Expr::Call(name, inner) => Some(vec![name.clone()]).zip(inner.first().map(|own| own.value)),
            _ => None,
        };
        if let Some((names, slot)) = base.filter(|(names, _)| self.is_trail(names))
            && let Expr::Int(slot) = &self.file.exprs[slot]
        {
            return self.report(found.label(format!("write `{}.{slot}`", joined(&names))));
        }
        if let Expr::Index(base, _) = &self.file.exprs[part]
            && let Expr::Name(name) = &self.file.exprs[*base]
        {
            let found = found.label("expected a map and a slot, or a level");
            return self.report(found.help(format!(
                "`a[cells.0, k + {name}]` reads as many levels further as the whole number `{name}` of the element says, and `a[cells.0, level {name}]` that level; `{name}[cells.0]` is the neighbour's"
            )));
        }
        self.report(found.label("expected a map and a slot, as in `cells.0`, or `k` plus or minus a whole constant"))
    }

    /// The set where a value is at home; nothing if it is the same everywhere.
    fn home(&self, alias: &Alias) -> Option<SetId> {
        let (mesh, own) = self.site()?;
        match alias {
            Alias::Field(field, path, _) | Alias::Slots(field, path, _) => match path.hops().first() {
                Some(hop) => Some(mesh.maps[hop.map].from),
                None => self.stencil.fields[*field].place.home.map(|home| home.set),
            },
            Alias::Def(def, _) if !self.size.varies(*def) => None,
            Alias::Def(def, path) => match path.hops().first() {
                Some(hop) => Some(mesh.maps[hop.map].from),
                None => Some(self.stencil.defs[*def].over.unwrap_or(self.over.as_ref()?.set?)),
            },
            Alias::Ahead(..) => Some(own),
            Alias::Param(_) | Alias::Int(_) => None,
        }
    }

    /// Whether a value can be looked at where a path leads to elements of `set`.
    fn check_home(&mut self, bound: &Bound, name: &str, set: SetId, path: &Path, span: Span) -> Found<()> {
        let (mesh, _) = self.site()?;
        let first = match bound {
            Value::One(alias) => Some(alias),
            Value::Many(aliases) => aliases.first(),
        };
        // On a map, the way ends with one of its slots.
        if let (Some(Alias::Slots(field, own, _)), Some(last)) = (first, path.hops().last())
            && own.hops().is_empty()
            && self.stencil.fields[*field].place.home.is_some_and(|home| home.map != Some(last.map))
        {
            let field = *field;
            return self.no_slot(field, span);
        }
        // On a map, the last slot is one of the value's own.
        let set = match (first, path.hops().split_last()) {
            (Some(Alias::Slots(..)), Some((last, _))) => mesh.maps[last.map].from,
            _ => set,
        };
        let Some(home) = first.and_then(|alias| self.home(alias)) else { return Some(()) };
        if home == set {
            return Some(());
        }
        let (there, here) = (&mesh.sets[set].name, &mesh.sets[home].name);
        let message = match mesh.written(path).as_str() {
            "" => format!("`{name}` lives on `{here}`, and this is computed on `{there}`"),
            way => format!("`{name}` lives on `{here}`, `{way}` leads to `{there}`"),
        };
        let help = match (first, self.site()) {
            // Where nothing is said a field lives on the set of its stencil.
            (Some(Alias::Field(_, own, _)), Some((_, over))) if home == over && own.hops().is_empty() => {
                format!(
                    "without an index it is that of this `{here}`; what each `{there}` has is declared `on {there}`"
                )
            }
            _ => self.ways(home),
        };
        self.report(wrong(span, message, format!("an element of `{there}`")).help(help))
    }

    /// How the elements of a set are reached.
    pub(super) fn ways(&self, to: SetId) -> String {
        let Some((mesh, own)) = self.site() else { return String::new() };
        let direct = mesh.maps.iter().find(|(_, map)| map.from == own && map.to == to);
        let (own, to) = (&mesh.sets[own].name, &mesh.sets[to].name);
        match direct {
            Some((_, map)) => format!("from `{own}`, `[{}]` leads to `{to}`", first_slot(map)),
            None => format!("no map leads from `{own}` to `{to}` at once; maps follow each other with points"),
        }
    }

    /// What `alias` is where `path` leads.
    pub(super) fn moved_to(&mut self, alias: Alias, path: &Path, span: Span) -> Found<Alias> {
        match alias {
            Alias::Slots(field, own, part) => {
                let place = self.stencil.fields[field].place;
                let way = path.clone().then(&own);
                let way = if place.levels == Levels::None { way.without_levels() } else { way };
                let (home, last) = (place.home?, way.hops().last().copied());
                let Some(last) = last.filter(|last| Some(last.map) == home.map) else {
                    return self.no_slot(field, span);
                };
                let before = Path::through(&way.hops()[..way.hops().len() - 1]).then(&Path::levels_only(way.levels()));
                Some(Alias::Field(field, before, last.slot * home.parts + part))
            }
            other => Some(self.moved(other, path)),
        }
    }

    /// Reports a value on a map that is looked at without a slot of it.
    fn no_slot<T>(&mut self, field: FieldId, span: Span) -> Found<T> {
        let (mesh, own) = self.site()?;
        let own_field = &self.stencil.fields[field];
        let map = own_field.place.home?.map?;
        let (name, map, full_name) = (&own_field.name, &mesh.maps[map], mesh.full_name(map));
        let found = Diagnostic::error(span, format!("`{name}` has one value for each slot of `{full_name}`"));
        let found = found.note(own_field.span, "declared here");
        let found = if map.from == own {
            let slot = first_slot(map);
            found
                .label("which slot?")
                .help(format!("write `{name}[{slot}]`, or `{name}[e]` in `sum(e in {})`", map.name))
        } else {
            found.label("the way ends with another map").help(format!("its last step goes through `{full_name}`"))
        };
        self.report(found)
    }

    /// Reports a value that is used here, but lives elsewhere.
    pub(in crate::lower) fn check_here(&mut self, alias: &Alias, span: Span) -> Found<()> {
        let Some((_, own)) = self.site() else { return Some(()) };
        if let Alias::Slots(field, ..) = alias {
            return self.no_slot(*field, span);
        }
        let Some(home) = self.home(alias) else { return Some(()) };
        if home == own {
            return Some(());
        }
        let name = match alias {
            Alias::Field(field, path, _) if path.hops().is_empty() => format!("`{}`", self.stencil.fields[*field].name),
            Alias::Def(def, _) => format!("`{}`", self.stencil.defs[*def].name),
            _ => "this".to_owned(),
        };
        self.lives_elsewhere(&name, home, span)
    }

    /// Reports what lives on another set than that at whose elements is computed.
    fn lives_elsewhere(&mut self, what: &str, home: SetId, span: Span) -> Found<()> {
        let (mesh, own) = self.site()?;
        let (there, here) = (&mesh.sets[home].name, &mesh.sets[own].name);
        let found = Diagnostic::error(span, format!("{what} lives on `{there}`, and this is computed on `{here}`"));
        self.report(found.label(format!("of which `{there}`?")).help(self.ways(home)))
    }

    /// The same of what has a name, which may stand for a field elsewhere.
    pub(in crate::lower) fn check_named_here(&mut self, name: &str, bound: &Bound, span: Span) -> Found<()> {
        let Some((_, own)) = self.site() else { return Some(()) };
        let first = match bound {
            Value::One(alias) => Some(alias),
            Value::Many(aliases) => aliases.first(),
        };
        let Some(alias) = first.filter(|alias| !matches!(alias, Alias::Slots(..))) else { return Some(()) };
        match self.home(alias).filter(|&home| home != own) {
            Some(home) => self.lives_elsewhere(&format!("`{name}`"), home, span),
            None => Some(()),
        }
    }

    /// The values that a field's name stands for.
    pub(in crate::lower) fn field_value(&self, field: FieldId) -> Bound {
        let home = self.stencil.fields[field].place.home;
        let alias = |part: u32| match home {
            Some(home) if home.map.is_some() => Alias::Slots(field, Path::default(), part),
            _ => Alias::Field(field, Path::default(), part),
        };
        match home {
            Some(home) if home.parts > 1 => Value::Many((0..home.parts).map(alias).collect()),
            _ => Value::One(alias(0)),
        }
    }
}
