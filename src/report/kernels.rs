//! The CUDA of rows: rows keep the stencil and all that was chosen, so their kernels can be printed again. What is shown is
//! what was measured, or nothing: each text has to have the hash that the row keeps.

use super::cases::Case;
use super::commands::file_of;
use crate::input::{self, Input};
use crate::kernel;
use crate::terminal::Progress;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use stencilc_compiler::analysis::levels::Known;
use stencilc_compiler::analysis::reached::classes;
use stencilc_compiler::analysis::reuse::evaluate;
use stencilc_compiler::analysis::{self, bounds, levels};
use stencilc_compiler::grid::{Adjacency, Form, Region};
use stencilc_compiler::ir::Stencil;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::plan::{self, Choices, Plan, Target};
use stencilc_compiler::source::Source;
use stencilc_compiler::storage::layouts::Layouts;
use stencilc_compiler::storage::sharing::Sharing;
use stencilc_compiler::{check, cuda};
use stencilc_runtime::bench::rows::{Row, Subject};
use stencilc_runtime::bench::{hash, hash_of_neighbours};
use stencilc_runtime::grid::{self, patches};
use stencilc_runtime::memory;

/// Bytes a column that the tables of a layout take at most while they are made, roughly.
const ROOM: u128 = 1 << 10;

/// What can be told of rows whose stencil is known.
#[derive(Default)]
pub struct Kernels {
    /// Texts of kernels, each once, those of one case together.
    pub texts: Vec<String>,
    /// For each row its text's number, or why it has none.
    pub of_rows: BTreeMap<usize, Result<usize, String>>,
    /// Pictures of grids whose patches some kernels compute, as PNG files, each once.
    pub pictures: Vec<Vec<u8>>,
    /// For each row that has one its picture's number.
    pub pictures_of_rows: BTreeMap<usize, usize>,
    /// For each case what its stencil says.
    pub of_cases: Vec<Facts>,
}

/// What a case's stencil says.
#[derive(Default)]
pub struct Facts {
    /// Floating-point operations a cell, a mean over all that are computed.
    pub flops: Option<f64>,
    /// Parameters that decide which levels are computed.
    pub sets: Option<Vec<String>>,
    /// How many stencils its file has.
    pub stencils: Option<usize>,
}

impl Kernels {
    /// Rows that have their text.
    pub fn shown(&self) -> usize {
        self.of_rows.values().filter(|text| text.is_ok()).count()
    }

    /// Why rows have none, and how many.
    pub fn missing(&self) -> BTreeMap<&str, usize> {
        let mut missing = BTreeMap::new();
        for reason in self.of_rows.values().filter_map(|text| text.as_ref().err()) {
            *missing.entry(reason.as_str()).or_default() += 1;
        }
        missing
    }
}

/// Kernels, each once, however often it was measured: by the hash of its text one of its rows, and the numbers of all.
type Once<'a> = BTreeMap<&'a str, (&'a Row, Vec<usize>)>;

/// Prints the kernels of all rows again, unless that is not wanted.
pub fn again(cases: &[Case], no_cuda: bool) -> Kernels {
    let mut all = Kernels::default();
    let progress = Progress::new(cases.iter().map(|case| case.rows.len()).sum(), "printing kernels");
    for case in cases {
        let known = progress.aside(|| Text::new(case.subject()));
        all.of_cases.push(known.as_ref().ok().and_then(|known| known.facts(case)).unwrap_or_default());
        if no_cuda {
            all.of_rows.extend(case.rows.iter().map(|(number, _)| (*number, Err(LEFT_OUT.to_owned()))));
            continue;
        }
        for ((contract, share), kernels) in all.alike(case) {
            let input = known.as_ref().map_err(String::clone);
            let input =
                input.and_then(|known| progress.aside(|| PlanInput::new(known, case.subject(), contract, share)));
            let mut kernels: Vec<(&Row, Vec<usize>)> = kernels.into_values().collect();
            // As they were measured: those next to each other are alike, which compresses well.
            kernels.sort_by_key(|(_, numbers)| numbers.first().copied());
            let printed: Vec<Result<Printed, String>> = kernels
                .par_iter()
                .map(|(row, numbers)| {
                    let text = input.as_ref().map_err(String::clone).and_then(|input| input.print(row));
                    progress.advance(numbers.len());
                    text
                })
                .collect();
            for ((_, numbers), text) in kernels.iter().zip(printed) {
                all.add(numbers, text);
            }
        }
    }
    all
}

impl Kernels {
    /// The kernels of a case, those together that are prepared alike; the interpreter has none.
    fn alike<'a>(&mut self, case: &Case<'a>) -> BTreeMap<(bool, &'a [String]), Once<'a>> {
        let mut alike: BTreeMap<_, Once> = BTreeMap::new();
        for (number, row) in &case.rows {
            match (&row.kernel.choices, &row.kernel.plan) {
                (Some(choices), Some(plan)) => {
                    let likes = alike.entry((choices.contract, choices.share.as_slice())).or_default();
                    likes.entry(plan.as_str()).or_insert((row, Vec::new())).1.push(*number);
                }
                _ => drop(self.of_rows.insert(*number, Err("the interpreter has no kernel".to_owned()))),
            }
        }
        alike
    }

    fn add(&mut self, numbers: &[usize], printed: Result<Printed, String>) {
        let place = printed.map(|Printed { text, picture }| {
            if let Some(picture) = picture {
                let known = self.pictures.iter().position(|own| *own == picture);
                let place = known.unwrap_or(self.pictures.len());
                self.pictures.extend(known.is_none().then_some(picture));
                self.pictures_of_rows.extend(numbers.iter().map(|&number| (number, place)));
            }
            self.texts.push(text);
            self.texts.len() - 1
        });
        self.of_rows.extend(numbers.iter().map(|&number| (number, place.clone())));
    }
}

/// What is shown of a kernel.
struct Printed {
    text: String,
    /// The patches that it computes, if it does and it is known where they are.
    picture: Option<Vec<u8>>,
}

const LEFT_OUT: &str = "the page was made without kernels (--no-cuda)";

/// A subject's file, which is as it was.
struct Text {
    input: Input,
}

impl Text {
    fn new(subject: &Subject) -> Result<Self, String> {
        let is_same = |source: &Source| hash(&[source.text.as_bytes()]) == subject.source;
        let own = subject.text.as_ref().map(|text| Source::whole(&subject.file, text));
        let source = match own.filter(is_same) {
            Some(source) => source,
            None => input::open(&subject.file).ok().filter(is_same).ok_or_else(|| {
                format!("the rows do not hold the stencil, and `{}` is gone or has changed", subject.file)
            })?,
        };
        let lowered = check(&source);
        if !lowered.is_ok() {
            return Err(format!("this version of stencilc refuses `{}`", subject.file));
        }
        let (stencils, programs, tests) = (lowered.stencils, lowered.programs, lowered.tests);
        Ok(Self {
            input: Input {
                source,
                stencils,
                programs,
                mesh_stencils: Vec::new(),
                mesh_programs: Vec::new(),
                tests,
                mesh_tests: Vec::new(),
                parse_seconds: 0.0,
                lower_seconds: 0.0,
            },
        })
    }

    fn stencil(&self, subject: &Subject) -> Result<&Stencil, String> {
        let found = self.input.stencil(Some(&subject.stencil));
        found.map_err(|error| error.message)
    }

    fn facts(&self, case: &Case) -> Option<Facts> {
        let subject = case.subject();
        let contract = case.rows.iter().find_map(|(_, row)| row.kernel.choices.as_ref()).is_none_or(|own| own.contract);
        let stencil = plan::prepare(self.stencil(subject).ok()?, subject.precision, contract);
        let depends = levels::depend_on_params(&stencil) || bounds::columns_depend_on_params(&stencil);
        let names = stencil.params.iter().map(|(_, param)| param.name.clone());
        let sets = Some(if depends { names.collect() } else { Vec::new() });
        let (params, _) =
            kernel::parameters(&stencil, subject.precision, contract, subject.parameters.clone(), true).ok()?;
        Some(Facts { flops: flops(&stencil, subject, &params), sets, stencils: Some(self.input.stencils.len()) })
    }
}

/// Floating-point operations a cell, a mean over the computed levels; every value computed once.
fn flops(stencil: &Stencil, subject: &Subject, params: &[Value]) -> Option<f64> {
    let nk = subject.extents.nk.min(analysis::LEVELS);
    let known = Known::new(stencil, subject.precision, nk, params);
    let (mut flops, mut levels) = (0.0, 0);
    for class in classes(stencil, &known, nk) {
        let here = class.levels_in(&subject.region.k);
        flops += evaluate(stencil, &class.reached).once.flops() as f64 * here as f64;
        levels += here;
    }
    (levels > 0).then(|| flops / levels as f64)
}

/// What kernels are planned for.
struct PlanInput {
    stencil: Stencil,
    adjacency: Option<Adjacency>,
    region: Region,
    sharing: Option<Sharing>,
    /// Layouts that kernels have between them.
    layouts: Layouts,
    /// Pictures of patches, by their columns along i and j; nothing where nobody knows where cells are.
    pictures: Mutex<BTreeMap<[u32; 2], Option<Vec<u8>>>>,
}

impl PlanInput {
    fn new(known: &Text, subject: &Subject, contract: bool, share: &[String]) -> Result<Self, String> {
        let message = |error: stencilc_runtime::Error| error.message;
        let Subject { precision, extents, .. } = *subject;
        let columns = (extents.ni as u128).saturating_mul(extents.nj as u128);
        memory::check(columns.saturating_mul(ROOM), "tables of neighbours take up to", "").map_err(message)?;
        let stencil = plan::prepare(known.stencil(subject)?, precision, contract);
        let settings = subject.parameters.clone();
        let (params, _) = kernel::parameters(&stencil, precision, contract, settings, true).map_err(message)?;
        let adjacency = adjacency(subject)?;
        let region = analysis::region(&stencil, precision, extents, adjacency.as_ref(), &params);
        let region = region.map_err(|refusal| refusal.message)?;
        if (Region { cells: None, ..region.clone() }) != subject.region {
            return Err(OTHER.to_owned());
        }
        let sharing = known.input.sharing(share).map_err(message)?.map(|stencils| {
            let prepared: Vec<Stencil> = stencils.iter().map(|own| plan::prepare(own, precision, contract)).collect();
            Sharing::new(&prepared, precision, extents, adjacency.as_ref())
        });
        Ok(Self { stencil, adjacency, region, sharing, layouts: Layouts::default(), pictures: Mutex::default() })
    }

    fn print(&self, row: &Row) -> Result<Printed, String> {
        let Some(choices) = &row.kernel.choices else { return Err(OTHER.to_owned()) };
        let target = Target {
            grid: row.subject.extents,
            adjacency: self.adjacency.as_ref(),
            region: &self.region,
            levels_known: true,
            sharing: self.sharing.as_ref(),
            layouts: Some(&self.layouts),
        };
        let plan = plan::plan(&self.stencil, choices, Some(target)).map_err(|refusal| refusal.message)?;
        let text = cuda::print(&plan).map_err(|refusal| refusal.message)?.text;
        if row.kernel.plan.as_ref() != Some(&hash(&[text.as_bytes()])) {
            return Err(why_other(row, choices));
        }
        Ok(Printed { text, picture: self.picture(&plan, &row.subject.grid) })
    }

    /// The picture of a plan's patches, if it has any and it is known where they are.
    fn picture(&self, plan: &Plan, grid: &str) -> Option<Vec<u8>> {
        let (adjacency, _) = (self.adjacency.as_ref()?, plan.patches.as_ref()?);
        let title = format!("patches of {} on {grid}", self.stencil.name);
        let drawn = || patches::picture(plan, adjacency, &title).ok();
        let mut pictures = self.pictures.lock().unwrap_or_else(PoisonError::into_inner);
        pictures.entry(plan.tile.columns).or_insert_with(drawn).clone()
    }
}

const OTHER: &str = "this version of stencilc makes another kernel of it";

fn why_other(row: &Row, choices: &Choices) -> String {
    let (theirs, own) = (&row.machine.stencilc, env!("CARGO_PKG_VERSION"));
    match (choices.share.is_empty(), theirs == own) {
        (true, true) => OTHER.to_owned(),
        (true, false) => format!("it was made by stencilc {theirs}, and {own} makes another kernel of it"),
        (false, _) => format!("the kernel is another one now: {} may have changed since", choices.share.join(", ")),
    }
}

/// Which cells are neighbours, if they stand in no rows: as they were when the rows were measured.
fn adjacency(subject: &Subject) -> Result<Option<Adjacency>, String> {
    let (Form::Cells, Some(file)) = (subject.extents.form, file_of(subject)) else { return Ok(None) };
    let adjacency = grid::load(Path::new(file)).map_err(|error| format!("the grid is gone: {}", error.message))?;
    match subject.neighbours.as_ref() == Some(&hash_of_neighbours(&adjacency)) {
        true => Ok(Some(adjacency)),
        false => Err(format!("the grid `{file}` has changed")),
    }
}
