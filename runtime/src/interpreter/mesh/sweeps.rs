//! Stencils with sweeps over a mesh: phase after phase, and the levels of a sweep one after the other, as on grids.

use super::super::sweeps::plain;
use super::{MeshJob, interpret_mesh, len};
use crate::problem::element_of;
use crate::{Data, Result};
use stencilc_compiler::analysis::levels::swept;
use stencilc_compiler::ir::{Direction, Handle, Role, needed};

/// Computes a stencil with sweeps by plain ones.
pub(super) fn run(job: &MeshJob, outputs: &mut [Option<Data>], progress: &(dyn Fn(usize) + Sync)) -> Result<()> {
    let whole = job.stencil.with(needed(&job.stencil.stencil));
    let (elements, levels) = (job.mesh.size(whole.set()), swept(&whole.stencil, job.levels));
    // By field: all that sweeps have computed.
    let carried = whole.stencil.fields.iter().map(|(_, field)| {
        let fresh = || Data::fresh(element_of(field.stored, job.precision), len(field.place, job.mesh, job.levels));
        (field.role == Role::Carried).then(fresh)
    });
    let mut carried: Vec<Option<Data>> = carried.collect();
    for (direction, phase) in whole.phases() {
        let (stencil, planes) = plain(&phase.stencil);
        let mut plain = phase.clone();
        let mut own: Vec<Option<Data>> = outputs.iter_mut().map(Option::take).collect();
        for &(_, plane) in &planes {
            own.resize(plane.index(), None);
            own.push(Some(Data::fresh(element_of(stencil.fields[plane].stored, job.precision), elements)));
        }
        own.resize(stencil.fields.len(), None);
        // As many stores as before, of the same numbers.
        plain.stencil = stencil;
        let runs = match direction {
            None => vec![job.computed.clone()],
            Some(Direction::Up) => (0..levels).map(|level| level..level + 1).collect(),
            Some(Direction::Down) => (0..levels).rev().map(|level| level..level + 1).collect(),
        };
        let mut done = Ok(());
        for run in runs {
            let mut inputs: Vec<Option<&Data>> = job.inputs.to_vec();
            inputs.resize(plain.stencil.fields.len(), None);
            for (input, carried) in inputs.iter_mut().zip(&carried) {
                *input = carried.as_ref().or(*input);
            }
            done = interpret_mesh(
                &MeshJob { stencil: &plain, computed: &run, inputs: &inputs, ..*job },
                &mut own,
                None,
                progress,
            );
            if done.is_err() {
                break;
            }
            for &(field, plane) in &planes {
                if let (Some(all), Some(plane)) = (&mut carried[field.index()], &own[plane.index()]) {
                    all.replace(run.start * elements, plane);
                }
            }
        }
        // What was taken goes back, whatever came of it.
        outputs.iter_mut().zip(own).for_each(|(output, own)| *output = own);
        done?;
    }
    Ok(())
}
