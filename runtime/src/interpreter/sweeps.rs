//! Stencils with sweeps: phase after phase, and the levels of a sweep one after the other.
//!
//! Of each phase and level a plain stencil is made. What a sweep carries is an input of it, as far as it is known; what the
//! level adds to that is an output on its plane alone, which is copied to the others of its kind when the level is done.

use super::Job;
use crate::problem::element_of;
use crate::{Data, Result};
use stencilc_compiler::analysis::levels::swept;
use stencilc_compiler::grid::Region;
use stencilc_compiler::ir::{
    Direction, Field, FieldId, Handle, Levels, Phase, Place, Role, Stencil, Store, needed, phases,
};

/// Computes a plain stencil; the last argument says whether it is the last one.
pub(super) type Compute<'a> = dyn FnMut(&Job, &mut [Option<Data>], bool) -> Result<()> + 'a;

/// Computes a stencil with sweeps by plain ones.
pub(super) fn run(job: &Job, outputs: &mut [Option<Data>], compute: &mut Compute) -> Result<()> {
    let stencil = needed(job.stencil);
    let (columns, levels) = (job.grid.columns(), swept(&stencil, job.grid.nk));
    // By field: all that sweeps have computed.
    let fresh = |field: &Field| {
        let all = field.place.levels.count(job.grid.nk).max(levels);
        Data::fresh(element_of(field.stored, job.precision), columns * all)
    };
    let carried = stencil.fields.iter().map(|(_, field)| (field.role == Role::Carried).then(|| fresh(field)));
    let mut carried: Vec<Option<Data>> = carried.collect();
    let phases = phases(&stencil);
    for (number, Phase { direction, stencil: phase }) in phases.iter().enumerate() {
        let is_last = number + 1 == phases.len();
        let (plain, planes) = plain(phase);
        // Levels that nobody asked for may be needed by others.
        let stores = plain.stores.iter().filter(|store| planes.iter().any(|(_, plane)| *plane == store.field));
        let silent = Stencil { stores: stores.cloned().collect(), ..plain.clone() };
        let mut own: Vec<Option<Data>> = outputs.iter_mut().map(Option::take).collect();
        for &(_, plane) in &planes {
            own.resize(plane.index(), None);
            own.push(Some(Data::fresh(element_of(plain.fields[plane].stored, job.precision), columns)));
        }
        own.resize(plain.fields.len(), None);
        let runs = match direction {
            None => vec![job.region.k.clone()],
            Some(Direction::Up) => (0..levels).map(|level| level..level + 1).collect(),
            Some(Direction::Down) => (0..levels).rev().map(|level| level..level + 1).collect(),
        };
        let mut done = Ok(());
        for run in runs {
            let mut inputs: Vec<Option<&Data>> = job.inputs.to_vec();
            inputs.resize(plain.fields.len(), None);
            for (input, carried) in inputs.iter_mut().zip(&carried) {
                *input = carried.as_ref().or(*input);
            }
            let region = Region { k: run.clone(), ..job.region.clone() };
            let stencil = if job.region.k.contains(&run.start) { &plain } else { &silent };
            done = compute(&Job { stencil, region: &region, inputs: &inputs, ..*job }, &mut own, is_last);
            if done.is_err() {
                break;
            }
            for &(field, plane) in &planes {
                if let (Some(all), Some(plane)) = (&mut carried[field.index()], &own[plane.index()]) {
                    all.replace(run.start * columns, plane);
                }
            }
        }
        // What was taken goes back, whatever came of it.
        outputs.iter_mut().zip(own).for_each(|(output, own)| *output = own);
        done?;
    }
    Ok(())
}

/// A phase as a plain stencil, which reads what is carried; and by carried field that it computes the output for a plane.
pub(super) fn plain(phase: &Stencil) -> (Stencil, Vec<(FieldId, FieldId)>) {
    let mut plain = phase.clone();
    plain.sweeps = Default::default();
    let mut planes = Vec::new();
    for field in plain.fields.values_mut().filter(|field| field.role == Role::Carried) {
        field.role = Role::In;
    }
    for Store { field, sweep, .. } in &mut plain.stores {
        if phase.fields[*field].role == Role::Carried {
            let own = &phase.fields[*field];
            let place = Place { levels: Levels::None, ..own.place };
            let plane = plain.fields.add(Field { role: Role::Out, place, ..own.clone() });
            planes.push((*field, plane));
            *field = plane;
        }
        *sweep = None;
    }
    (plain, planes)
}
