//! Whether what a call reads beyond an edge is said for all that it reads there.

use super::Programmer;
use crate::analysis::extents::reaches;
use crate::diagnostic::Diagnostic;
use crate::ir::program::{Call, GridAxis};
use crate::ir::{Handle, Precision, Stencil, fold, needed};
use crate::lower::Found;

impl Programmer<'_, '_> {
    /// Reports a read beyond an edge that has a rule for another field of the call, and none for this one. Along k, and where a part of an
    /// axis is computed, this depends on which, and is found out when that is known.
    pub(super) fn check_edges(&mut self, stencil: &Stencil, call: &Call) -> Found<()> {
        // What a constant rules out is not read, nor what a sweep computes for no output.
        let reaches = reaches(&needed(&fold(stencil, Precision::F64)));
        let mut fine = Some(());
        let called = &self.program.stencils[call.stencil];
        let all: Vec<GridAxis> = GridAxis::ACROSS.into_iter().filter(|&axis| !called.says(axis)).collect();
        for (axis, side) in GridAxis::ends().filter(|(axis, _)| all.contains(axis)) {
            let ruled = call.reads().chain(call.writes()).find(|&id| self.program.variables[id].edges.has(axis, side));
            let Some(ruled) = ruled else { continue };
            for (id, field) in stencil.fields.iter() {
                let (Some(read), Some(reach)) = (call.fields[id.index()].read, reaches[id.index()]) else { continue };
                let by = reach.along(axis)[side as usize];
                let variable = &self.program.variables[read];
                if by == 0 || !field.place.horizontal || variable.edges.has(axis, side) {
                    continue;
                }
                let (name, declared) = (variable.name.clone(), variable.span);
                let other = &self.program.variables[ruled];
                let found = format!(
                    "`{name}` is read beyond its edge: `{}` reads `{}` as far as `{axis}{by:+}`, and `{name}` has no boundary there",
                    stencil.name, field.name
                );
                let found = Diagnostic::error(call.span, found)
                    .label(format!("`{}` has a boundary along `{axis}`, so every cell is computed", other.name))
                    .note(declared, "declared here")
                    .note(field.span, "read as this");
                fine = self.report(found.help(format!(
                    "say what lies there: `boundary {name} {{ {axis}: periodic }}`, or `copy`, `mirror`, `-mirror`, `value(x)`"
                )));
            }
        }
        fine
    }
}
