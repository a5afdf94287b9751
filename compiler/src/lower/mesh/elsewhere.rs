//! Values at the elements of other sets than the stencil's: `let g on edge = ...`, and places that are passed to functions.

use crate::ast::{self, ExprId, Name, PlaceOn};
use crate::diagnostic::wrong;
use crate::ir::{Path, SetId};
use crate::lower::scope::Binding;
use crate::lower::value::{Alias, Bound, Value};
use crate::lower::{Found, Lowering};
use crate::source::Span;

impl<'a> Lowering<'a> {
    /// `let g on edge = ...`: a value that each element of a set has, computed where it is looked at.
    pub(in crate::lower) fn bind_on(&mut self, binding: &'a ast::Let, name: &Name, place: &'a PlaceOn) -> Found<Bound> {
        let set = self.set_of_let(name, place)?;
        if self.current_sweep().is_some() {
            let found = wrong(name.span, "a value of another set is no part of a sweep", "in a sweep");
            return self.report(found.help("it stands before the sweep, which may read it through a map"));
        }
        let span = self.span(binding.value);
        self.at_elements(set, |own| {
            let bound = own.bind_let(binding, name)?;
            // Another name for what lives elsewhere would live there, too.
            bound.try_map(|alias| own.check_here(&alias, span).map(|()| alias))
        })
    }

    /// The set that `on edge` names.
    fn set_of_let(&mut self, name: &Name, place: &'a PlaceOn) -> Found<SetId> {
        let span = place_span(place);
        let Some((mesh, _)) = self.site() else {
            let label = "on a grid a `let` has a value at every cell";
            return self.only_over_mesh(span, "sets and maps belong to meshes", label);
        };
        let (trail, along) = match place {
            PlaceOn::Mesh(trail, along) => (trail, along),
            PlaceOn::Axes(..) => {
                let found = wrong(span, "a `let` lives on a set of the mesh", "no set");
                return self.report(found.help("leave this out, or name a set, as in `let g on edge = ...`"));
            }
        };
        if along.is_some() {
            let found =
                wrong(span, "a `let` has all levels, of which those that it needs are computed", "too much is said");
            return self.report(found.help("name the set alone, as in `let g on edge = ...`"));
        }
        match trail.names.as_slice() {
            [set] => self.set_named(mesh, set),
            [_, map, ..] => {
                let text = &name.text;
                let found = wrong(span, "a `let` lives on a set", "here are slots of a map");
                self.report(found.help(format!(
                    "what each slot has is a function of it: `fn {text}(e) = ...[e]`, used as `sum(e in {}) {{ {text}(e) }}`",
                    map.text
                )))
            }
            [] => None,
        }
    }

    /// Does something at an element of a set, of which nothing else is known.
    pub(super) fn at_elements<T>(&mut self, set: SetId, then: impl FnOnce(&mut Self) -> T) -> T {
        let there = self.over.as_mut().map(|over| {
            let elsewhere = Some(set).filter(|&set| over.set != Some(set));
            (std::mem::replace(&mut over.elsewhere, elsewhere), std::mem::take(&mut over.present))
        });
        let value = then(self);
        if let (Some(over), Some(before)) = (&mut self.over, there) {
            (over.elsewhere, over.present) = before;
        }
        value
    }

    /// The set at whose elements what is being written has a value, unless that is the stencil's own.
    pub(in crate::lower) fn other_set(&self) -> Option<SetId> {
        self.over.as_ref()?.elsewhere
    }

    /// The place that an argument is, as `edges.0`, or the counter of a sum over a map.
    pub(in crate::lower) fn place_argument(&mut self, expr: ExprId) -> Option<Found<Path>> {
        let names = self.trail_of(self.ungrouped(expr)).filter(|names| self.is_trail(names))?;
        let first = names.first()?;
        // What has a value is passed by that, be it called as a map is.
        let is_value = self.scope.find(&first.text).is_some_and(|symbol| !matches!(symbol.binding, Binding::Slot(_)));
        (!is_value).then(|| self.one_path(&names, self.span(expr)))
    }

    /// The slot that a name behind a map stands for: a whole constant, a counter, an argument.
    pub(super) fn slot_named(&mut self, name: &Name) -> Option<i32> {
        let is_constant = self.names_a_constant(&name.text)
            || matches!(self.scope.binding(&name.text), Some(Binding::Value(Value::One(Alias::Int(_)))));
        match is_constant.then(|| self.resolve(&name.text, name.span))?? {
            Value::One(Alias::Int(slot)) => Some(slot),
            Value::One(_) | Value::Many(_) => None,
        }
    }

    /// A place as it is told of an argument.
    pub(in crate::lower) fn place_text(&self, path: &Path) -> String {
        self.over.as_ref().map(|over| over.written(path)).unwrap_or_default()
    }

    /// Reports the set or the type of a `let` that names no value of a stencil.
    pub(in crate::lower) fn refuse_said(&mut self, binding: &ast::Let, where_it_is: &str) -> Found<()> {
        let (place, what) = match (&binding.place, binding.typed) {
            (Some(place), _) => (place_span(place), "on which set it lives"),
            (None, Some(typed)) => (typed.span, "of which type it is"),
            (None, None) => return Some(()),
        };
        let found = wrong(place, format!("a `let` of a stencil says {what}"), where_it_is);
        self.report(found.help("leave this out"))
    }
}

/// Where a place is written.
fn place_span(place: &PlaceOn) -> Span {
    match place {
        PlaceOn::Axes(_, span) => *span,
        PlaceOn::Mesh(trail, _) => trail.span,
    }
}
