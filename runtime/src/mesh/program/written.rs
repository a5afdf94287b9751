//! Which numbers of a variable a program computes: those of the zones and levels of its calls.

use super::MeshProblem;
use super::numbers::Scope;
use crate::mesh::Bound;
use std::ops::Range;
use stencilc_compiler::ir::mesh::Zones;
use stencilc_compiler::ir::program::{Action, Call};
use stencilc_compiler::ir::{FieldId, Handle, Levels, Role, SetId, VariableId};

/// What a call computes of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The set over which it runs.
    set: SetId,
    pub zones: Option<Zones>,
    pub levels: Range<usize>,
}

/// Of which numbers of an array it is known that they are computed.
pub struct Written<'a> {
    mesh: &'a Bound,
    /// How many levels the array has, elements, and numbers of an element on a level.
    extents: [usize; 3],
    /// What calls compute; nothing if all numbers count.
    parts: Option<Vec<Part>>,
}

impl Written<'_> {
    /// Whether the number at a place of the array is computed.
    pub fn holds(&self, index: usize) -> bool {
        let Some(parts) = &self.parts else { return true };
        let [_, elements, inner] = self.extents;
        let (level, element) = (index / (elements * inner), index / inner % elements);
        parts.iter().any(|part| part.levels.contains(&level) && part.has(self.mesh, element))
    }
}

impl Part {
    /// Whether it has an element of its set, on its levels.
    pub fn has(&self, mesh: &Bound, element: usize) -> bool {
        self.zones.is_none_or(|zones| zones.contain(mesh.zone(self.set, element)))
    }
}

impl MeshProblem {
    /// Which numbers of a variable are computed. What is added to, and what gets the values of another variable, counts as a whole; of levels that depend
    /// on numbers which change all count.
    pub fn written(&self, variable: VariableId) -> Written<'_> {
        let place = self.program.program.variables[variable].place;
        let elements = place.home.map_or(1, |home| self.bound.size(home.set)).max(1);
        let inner = place.home.map_or(1, |home| home.width as usize).max(1);
        let mut renamed = false;
        let mut open: Vec<&Action> = self.program.program.actions.iter().collect();
        let mut calls: Vec<&Call> = Vec::new();
        while let Some(action) = open.pop() {
            match action {
                Action::Call(call) => calls.push(call),
                Action::Rename(own) => renamed |= own.to == variable,
                Action::Repeat(own) => open.extend(&own.actions),
                Action::Number(_) => {}
            }
        }
        let parts = calls.into_iter().flat_map(|call| self.parts_of(call, variable));
        let parts = if renamed { None } else { parts.collect() };
        Written { mesh: &self.bound, extents: [place.levels.count(self.levels), elements, inner], parts }
    }

    /// What a call computes of a variable, for each field of its stencil that is written there; nothing inside if that is all of it.
    fn parts_of(&self, call: &Call, variable: VariableId) -> Vec<Option<Part>> {
        let fields = self.program.stencils[call.stencil].stencil.fields.handles();
        let written = fields.filter(|id| call.fields[id.index()].written == Some(variable));
        written.map(|field| self.part(call, field)).collect()
    }

    /// What a call computes of a field that it writes; nothing if that is all of it.
    pub(super) fn part(&self, call: &Call, field: FieldId) -> Option<Part> {
        let own = &self.program.stencils[call.stencil];
        let field = &own.stencil.fields[field];
        let levels = match field.place.levels {
            Levels::None => 0..1,
            levels if !own.mesh.levels || !self.is_known(call) => 0..levels.count(self.levels),
            Levels::Full | Levels::Interfaces => self.computed(call.stencil, &self.params_of(call)).ok()?,
        };
        let is_own = matches!(field.role, Role::Out | Role::InOut);
        is_own.then(|| Part { set: own.set(), zones: own.stencil.zones, levels })
    }

    /// Whether the parameters of a call depend on no number that is computed on the way.
    pub(super) fn is_known(&self, call: &Call) -> bool {
        let scope =
            Scope { program: &self.program, precision: self.precision, levels: self.levels, params: &self.params };
        call.params.iter().flatten().all(|body| scope.reads(body).is_empty())
    }
}
