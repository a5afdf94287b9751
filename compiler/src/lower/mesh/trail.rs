//! Names of maps and slots: `cells.0`, `edges.cells`, `e`, `e.nodes.1`.

use crate::ast::{Expr, ExprId, Name};
use crate::diagnostic::{Diagnostic, guess, wrong};
use crate::ir::mesh::Mesh;
use crate::ir::{Hop, MapId, Path, SetId};
use crate::lower::scope::Binding;
use crate::lower::{Found, Lowering};
use crate::source::Span;

/// The most terms of a sum over maps.
const TERMS: usize = 1_000;

impl<'a> Lowering<'a> {
    /// The names of an expression that is nothing but names and numbers with points between them.
    pub(super) fn trail_of(&self, expr: ExprId) -> Option<Vec<Name>> {
        match &self.file.exprs[expr] {
            Expr::Name(text) => Some(vec![Name { text: text.clone(), span: self.span(expr) }]),
            Expr::Component(base, part) => {
                let mut names = self.trail_of(*base)?;
                names.push(part.clone());
                Some(names)
            }
            _ => None,
        }
    }

    /// Whether names begin with a map of the stencil's own set, or with a counter over one.
    pub(super) fn is_trail(&self, names: &[Name]) -> bool {
        let Some((mesh, set)) = self.site() else { return false };
        let Some(first) = names.first() else { return false };
        matches!(self.scope.binding(&first.text), Some(Binding::Slot(_))) || mesh.map_named(set, &first.text).is_some()
    }

    /// The one path that names lead along.
    pub(super) fn one_path(&mut self, names: &[Name], span: Span) -> Found<Path> {
        let paths = self.paths(names)?;
        match <[Path; 1]>::try_from(paths) {
            Ok([path]) => Some(path),
            Err(paths) => {
                let (mesh, _) = self.site()?;
                let written = |path: Option<&Path>| path.map(|path| mesh.written(path)).unwrap_or_default();
                let (text, first, last) = (joined(names), written(paths.first()), written(paths.last()));
                let found = Diagnostic::error(span, format!("`{text}` leads to {} elements", paths.len()));
                self.report(found.label("which of them?").help(format!(
                    "one of them is `{first}` to `{last}`; all of them are met by `sum(n in {text}) {{ ...[n] }}`"
                )))
            }
        }
    }

    /// All paths that names lead along: those of the first slot of the first map first.
    pub(super) fn paths(&mut self, names: &[Name]) -> Found<Vec<Path>> {
        let (mesh, own) = self.site()?;
        let (mut paths, mut set) = (vec![Path::default()], own);
        let mut rest = names;
        if let Some(first) = names.first()
            && let Some(path) = self.counter(&first.text)
        {
            set = mesh.end(own, &path);
            paths = vec![path];
            rest = &names[1..];
        }
        while let Some((name, after)) = rest.split_first() {
            let map = self.map_named(set, name, &names[..names.len() - rest.len()])?;
            let arity = mesh.maps[map].arity;
            let number = match after.first() {
                Some(next) if mesh.map_named(mesh.maps[map].to, &next.text).is_none() => self.number_of_slot(next),
                Some(_) | None => None,
            };
            let slots = match (after.first(), number) {
                (Some(next), Some(number)) => {
                    let slot = self.slot(map, number, next)?;
                    slot..slot + 1
                }
                _ => 0..arity,
            };
            let through = |path: &Path, slot| path.then(&Path::through([Hop { map, slot }]));
            paths = paths.iter().flat_map(|path| slots.clone().map(move |slot| through(path, slot))).collect();
            if paths.len() > TERMS {
                let found = wrong(name.span, format!("these are more than {TERMS} elements"), "a sum is written out");
                return self.report(found);
            }
            set = mesh.maps[map].to;
            rest = if number.is_some() { &after[1..] } else { after };
        }
        Some(paths)
    }

    /// The map of a set with a name, which follows others.
    fn map_named(&mut self, set: SetId, name: &Name, before: &[Name]) -> Found<MapId> {
        let (mesh, _) = self.site()?;
        if let Some(map) = mesh.map_named(set, &name.text) {
            return Some(map);
        }
        if let Some(found) = self.no_map(name, before) {
            return self.report(found);
        }
        let from = &mesh.sets[set].name;
        let elsewhere = mesh.maps.iter().find(|(_, map)| map.name == name.text);
        let (found, guess, maps) = no_map(mesh, set, name);
        self.report(found.meant(guess, |found| match elsewhere {
            Some((_, other)) => {
                found.label(format!("here are elements of `{from}`")).note(other.span, "this one is another set's")
            }
            None if maps.is_empty() => {
                found.label(format!("no map leads from `{from}`")).help("maps are declared in the mesh")
            }
            None => found.label(format!("its maps are {}", maps.join(", "))),
        }))
    }

    /// The number that digits, or the name of a whole constant, stand for.
    fn number_of_slot(&mut self, text: &Name) -> Option<i64> {
        match text.text.bytes().all(|byte| byte.is_ascii_digit()) {
            // One that is too large for a number is no slot.
            true => Some(text.text.parse().unwrap_or(i64::MAX)),
            false => self.slot_named(text).map(i64::from),
        }
    }

    fn slot(&mut self, map: MapId, number: i64, written: &Name) -> Found<u32> {
        let (mesh, _) = self.site()?;
        let arity = mesh.maps[map].arity;
        if let Some(slot) = u32::try_from(number).ok().filter(|&slot| slot < arity) {
            return Some(slot);
        }
        let is_number = written.text.bytes().all(|byte| byte.is_ascii_digit());
        let told = if is_number { written.text.clone() } else { format!("{number}, which `{}` is", written.text) };
        let what = format!("`{}` has no slot {told}", mesh.full_name(map));
        let has = if arity == 1 { "its only slot is 0".to_owned() } else { format!("slots are 0 to {}", arity - 1) };
        self.report_number(wrong(written.span, what, has).note(mesh.maps[map].span, "declared here"))
    }
}

/// Names with points between them.
pub(super) fn joined(names: &[Name]) -> String {
    names.iter().map(|name| name.text.as_str()).collect::<Vec<_>>().join(".")
}

/// The error of a name that is no map of a set, what was probably meant, and the maps that there are.
pub(super) fn no_map<'a>(mesh: &'a Mesh, set: SetId, name: &Name) -> (Diagnostic, Option<&'a str>, Vec<&'a str>) {
    let maps: Vec<&str> =
        mesh.maps.iter().filter(|(_, map)| map.from == set).map(|(_, map)| map.name.as_str()).collect();
    let found = Diagnostic::error(name.span, format!("the set `{}` has no map `{}`", mesh.sets[set].name, name.text));
    (found, guess(&name.text, maps.iter().copied()), maps)
}
