//! The values that a stencil's prints have at chosen cells.
//!
//! Each print is computed by a stencil of its own ([`Stencil::of_print`]), after the stencil itself and on the same
//! device: so a print changes neither what the stencil computes nor where.

use crate::array::Data;
use crate::error::Result;
use crate::problem::{Problem, check_divisors, check_memory, element_of};
use std::collections::BTreeMap;
use stencilc_compiler::analysis;
use stencilc_compiler::grid::Region;
use stencilc_compiler::ir::{Arena, Handle, Stencil};

/// What one print shows.
#[derive(Clone, Debug)]
pub struct Printed {
    /// Which of the stencil's prints.
    pub number: usize,
    /// The cells on which its value can be computed; else why there is none.
    pub region: std::result::Result<Region, String>,
    /// Of each chosen cell the value; nothing where the print would read outside the grid.
    pub values: Vec<Option<Shown>>,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// As it is written in the language.
    pub text: String,
    /// As a double, which holds every value.
    pub number: f64,
    /// Its bits, of any NaN always the same.
    pub bits: u64,
}

/// Computes the outputs of a problem.
pub type Compute<'a> = dyn FnMut(&mut Problem) -> Result<Vec<Option<Data>>> + 'a;

/// What the prints of a problem's stencil show at `cells`, which lie inside the grid and are given as (i, j, k). Outputs
/// of the stencil are not needed for it, and may be gone.
///
/// # Errors
/// A parameter is 0 and a print divides by it, memory does not suffice, or a print cannot be computed.
pub fn printed(problem: &mut Problem, cells: &[[usize; 3]], compute: &mut Compute) -> Result<Vec<Printed>> {
    let mut all = Vec::new();
    for number in 0..problem.stencil.prints.len() {
        let Some((stencil, field)) = problem.stencil.of_print(number) else { continue };
        check_divisors(&stencil, &problem.params)?;
        let (precision, grid, adjacency) = (problem.precision, problem.grid, problem.adjacency.clone());
        let region = match analysis::region(&stencil, precision, grid, adjacency.as_deref(), &problem.params) {
            Ok(region) => region,
            Err(refusal) => {
                all.push(Printed { number, region: Err(refusal.message), values: vec![None; cells.len()] });
                continue;
            }
        };
        if !cells.iter().any(|cell| inside(&region, cell)) {
            all.push(Printed { number, region: Ok(region), values: vec![None; cells.len()] });
            continue;
        }
        // Everything else is there already.
        let mut own = Arena::new();
        own.add(stencil.fields[field].clone());
        check_memory(
            &Stencil { fields: own, ..Stencil::default() },
            problem.precision,
            problem.grid,
            &BTreeMap::new(),
        )?;
        let element = element_of(stencil.fields[field].stored, problem.precision);
        let len = problem.grid.columns() * problem.grid.nk;
        let mut outputs: Vec<Option<Data>> = vec![None; stencil.fields.len()];
        outputs[field.index()] = Some(Data::fresh(element, len));
        // The same inputs, without the fields that are only written or carried, which have none.
        let mut inputs: Vec<Option<Data>> = Vec::new();
        for (data, (_, field)) in problem.inputs.iter_mut().zip(problem.stencil.fields.iter()) {
            if field.role.is_read() {
                inputs.push(data.take());
            }
        }
        inputs.resize(stencil.fields.len(), None);
        let mut derived = Problem {
            stencil,
            precision,
            grid,
            adjacency,
            region,
            sharing: None,
            params: problem.params.clone(),
            inputs,
            outputs,
            drawn: Vec::new(),
        };
        let computed = compute(&mut derived);
        let mut back = derived.inputs.drain(..);
        for (data, (_, field)) in problem.inputs.iter_mut().zip(problem.stencil.fields.iter()) {
            if field.role.is_read() {
                *data = back.next().flatten();
            }
        }
        drop(back);
        let computed = computed?;
        let data = computed.get(field.index()).and_then(Option::as_ref);
        let value = |cell: &[usize; 3]| {
            let [i, j, k] = *cell;
            let index = (k * problem.grid.nj + j) * problem.grid.ni + i;
            let data = data.filter(|_| inside(&derived.region, cell))?;
            Some(Shown { text: data.text(index), number: data.get(index), bits: data.bits(index) })
        };
        let values = cells.iter().map(value).collect();
        all.push(Printed { number, region: Ok(derived.region.clone()), values });
    }
    Ok(all)
}

fn inside(region: &Region, &[i, j, k]: &[usize; 3]) -> bool {
    let in_column = match &region.cells {
        Some(cells) => j == 0 && u32::try_from(i).is_ok_and(|cell| cells.binary_search(&cell).is_ok()),
        None => region.i.contains(&i) && region.j.contains(&j),
    };
    in_column && region.k.contains(&k)
}
