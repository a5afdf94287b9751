//! The values that prints have at chosen cells.
//!
//! Each print is computed by a stencil of its own ([`Stencil::of_print`]), on the same device: so a print changes neither what a stencil
//! computes nor where. Of a stencil by itself that is done after it ([`printed`]); a program calls these stencils like all others
//! ([`Program::with_prints`](stencilc_compiler::ir::Program::with_prints)), and a [`Run`](crate::job::Run) hands out what they computed.

use crate::array::Data;
use crate::error::Result;
use crate::problem::{Problem, check_divisors, check_memory, element_of};
use std::collections::BTreeMap;
use stencilc_compiler::analysis;
use stencilc_compiler::grid::{Grid, Region};
use stencilc_compiler::ir::{Arena, Field, Handle, Place, ShownPrint, Stencil};
use stencilc_compiler::source::Span;
use stencilc_compiler::text::FreeText;

/// A print, and where it has values.
#[derive(Clone, Debug)]
pub struct Print {
    /// The stencil that it stands in.
    pub stencil: String,
    /// What to call it.
    pub label: FreeText,
    /// Where it is written.
    pub span: Span,
    /// Where a program calls the stencil.
    pub call: Option<Span>,
    /// Over a mesh: the set on whose elements it has values.
    pub set: Option<String>,
    /// The cells that there are; of a set its elements.
    pub grid: Grid,
    /// Those on which its value can be computed; else why there is none.
    pub region: std::result::Result<Region, String>,
}

/// What a print shows.
#[derive(Clone, Debug)]
pub struct Printed {
    /// Which.
    pub print: Print,
    /// The chosen cells, as (i, j, k).
    pub cells: Vec<[usize; 3]>,
    /// Of each its value; nothing where the print would read outside the grid, or was not computed yet.
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

impl Print {
    /// A print of a program's call, on a grid or over a set.
    pub fn of(own: &ShownPrint, grid: Grid, region: std::result::Result<Region, String>) -> Self {
        let ShownPrint { stencil, label, span, call, .. } = own.clone();
        let region = region.map_err(|why| about(&why, &own.computed_by, "it"));
        Self { stencil, label, span, call: Some(call), set: None, grid, region }
    }

    /// What it shows at cells, where `data` is what was computed of it.
    pub fn at(self, cells: &[[usize; 3]], data: Option<&Data>) -> Printed {
        let Grid { ni, nj, .. } = self.grid;
        let region = self.region.as_ref().ok();
        let value = |cell: &[usize; 3]| {
            let data = data.filter(|_| region.is_some_and(|region| inside(region, cell)))?;
            let [i, j, k] = *cell;
            let index = (k * nj + j) * ni + i;
            Some(Shown { text: data.text(index), number: data.get(index), bits: data.bits(index) })
        };
        let values = cells.iter().map(value).collect();
        Printed { print: self, cells: cells.to_vec(), values }
    }
}

/// What the prints of a problem's stencil show at cells that are chosen for each, as (i, j, k). Outputs of the stencil are not needed for
/// it, and may be gone.
///
/// # Errors
/// A parameter is 0 and a print divides by it, memory does not suffice, or a print cannot be computed.
pub fn printed(
    problem: &mut Problem,
    cells: &dyn Fn(&Print) -> Vec<[usize; 3]>,
    compute: &mut Compute,
) -> Result<Vec<Printed>> {
    let numbers = 0..problem.stencil.prints.len();
    numbers.map(|number| one(problem, number, cells, compute)).filter_map(Result::transpose).collect()
}

fn one(
    problem: &mut Problem,
    number: usize,
    cells: &dyn Fn(&Print) -> Vec<[usize; 3]>,
    compute: &mut Compute,
) -> Result<Option<Printed>> {
    let Some((stencil, field)) = problem.stencil.of_print(number, Place::CELLS) else { return Ok(None) };
    check_divisors(&stencil, &problem.params)?;
    let (precision, grid, adjacency) = (problem.precision, problem.grid, problem.adjacency.clone());
    let region = analysis::region(&stencil, precision, grid, adjacency.as_deref(), &problem.params);
    let own = &problem.stencil.prints[number];
    let print = Print {
        stencil: problem.stencil.name.clone(),
        label: own.label.clone(),
        span: own.span,
        call: None,
        set: None,
        grid,
        region: region.map_err(|refusal| about(&refusal.message, &stencil.name, "what it reads")),
    };
    let cells = &cells(&print);
    let region = match &print.region {
        Ok(region) if cells.iter().any(|cell| inside(region, cell)) => region.clone(),
        _ => return Ok(Some(print.at(cells, None))),
    };
    // Everything else is there already.
    let mut own: Arena<_, Field> = Arena::new();
    own.add(stencil.fields[field].clone());
    check_memory(&Stencil { fields: own, ..Stencil::default() }, precision, grid, None, |_| false)?;
    let (element, levels) = (element_of(stencil.fields[field].stored, precision), stencil.fields[field].place.levels);
    let mut outputs: Vec<Option<Data>> = vec![None; stencil.fields.len()];
    outputs[field.index()] = Some(Data::fresh(element, grid.columns() * levels.count(grid.nk)));
    // The same inputs, without the fields that are only written or carried, which have none.
    let seen: Vec<usize> = problem.stencil.seen_by_prints().map(Handle::index).collect();
    let mut inputs: Vec<Option<Data>> = seen.iter().map(|&place| problem.inputs[place].take()).collect();
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
        part: None,
        seen: BTreeMap::new(),
    };
    let computed = compute(&mut derived);
    for (place, data) in seen.into_iter().zip(derived.inputs) {
        problem.inputs[place] = data;
    }
    let computed = computed?;
    Ok(Some(print.at(cells, computed.get(field.index()).and_then(Option::as_ref))))
}

/// A refusal of the stencil that computes a print, told of the print.
fn about(why: &str, stencil: &str, told: &str) -> String {
    why.replace(&format!("stencil `{stencil}`"), told).replace(&format!("`{stencil}`"), told)
}

fn inside(region: &Region, &[i, j, k]: &[usize; 3]) -> bool {
    let in_column = match &region.cells {
        Some(cells) => j == 0 && u32::try_from(i).is_ok_and(|cell| cells.binary_search(&cell).is_ok()),
        None => region.i.contains(&i) && region.j.contains(&j),
    };
    in_column && region.k.contains(&k)
}
