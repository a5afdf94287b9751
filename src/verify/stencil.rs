//! `stencilc verify` of stencils on grids: every kernel against the interpreter.

use super::Args;
use super::bench::Bench;
use super::outcome::{Outcome, Totals};
use crate::args::Chosen;
use crate::drawn::Drawn;
use crate::input::Input;
use crate::terminal::{self, Progress};
use serde::Serialize;
use stencilc_compiler::cuda;
use stencilc_compiler::diagnostic::Diagnostic;
use stencilc_compiler::grid::{Grid, Region};
use stencilc_compiler::ir::{Precision, Stencil};
use stencilc_compiler::plan::Choices;
use stencilc_compiler::source::Span;
use stencilc_compiler::storage::fields::Fields;
use stencilc_compiler::storage::neighbors::Neighbors;
use stencilc_compiler::text::ShellWord;
use stencilc_runtime::emulate::{Compiler, Settings};
use stencilc_runtime::problem::Problem;
use stencilc_runtime::verify::{self, Verdict, expect, plan_for, verify_emulated};
use stencilc_runtime::{Error, Fault, Result};

/// One problem, and what came of all its kernels.
#[derive(Serialize)]
pub struct Case {
    file: String,
    stencil: String,
    precision: Precision,
    grid: Grid,
    region: Region,
    seed: u64,
    /// Why nothing can be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Sides of conditions that were never taken.
    untaken: Vec<Untaken>,
    combinations: Vec<Combination>,
}

#[derive(Clone, PartialEq, Eq, Serialize)]
struct Untaken {
    /// In the whole text.
    #[serde(skip)]
    place: Span,
    /// The file, where it is an imported one.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    span: Span,
    line: usize,
    column: usize,
    side: bool,
}

/// One kernel.
#[derive(Serialize)]
struct Combination {
    storage: String,
    access: String,
    neighbors: Neighbors,
    layout: String,
    fields: Fields,
    /// The options that choose it.
    options: String,
    #[serde(flatten)]
    outcome: Outcome,
}

impl Combination {
    fn new(choices: Choices, outcome: Outcome) -> Self {
        let options = choices.words();
        let Choices { storage, access, neighbors, layout, fields, .. } = choices;
        Self { storage, access, neighbors, layout, fields, options, outcome }
    }

    /// `compressed storage, naive access`, and what is not usual.
    fn name(&self) -> String {
        let usual = Choices::default();
        let mut name = format!("{} storage, {} access", self.storage, self.access);
        if self.neighbors != usual.neighbors {
            name.push_str(&format!(", {} neighbours", self.neighbors.name()));
        }
        if self.layout != usual.layout {
            name.push_str(&format!(", {} layout", self.layout));
        }
        if self.fields != usual.fields {
            name.push_str(&format!(", {}", self.fields.name()));
        }
        name
    }
}

impl Bench {
    /// What comes of every choice, in their order.
    fn try_all(
        &self,
        problem: &Problem,
        expected: &verify::Expected,
        choices: &[Choices],
        progress: &Progress,
    ) -> Result<Vec<Outcome>> {
        let mut outcomes = Vec::new();
        for choices in choices {
            outcomes.push(self.try_one(problem, expected, choices)?);
            progress.advance(usize::from(self.emulator.is_none()));
        }
        let Some(compiler) = &self.emulator else { return Ok(outcomes) };
        let verdicts = emulated(problem, expected, choices, compiler)?;
        for (outcome, verdict) in outcomes.iter_mut().zip(verdicts) {
            // What NVRTC does not take has failed, wherever else it runs.
            if !matches!(outcome, Outcome::Done(Verdict::Failed { .. })) {
                *outcome = Outcome::Done(verdict);
            }
        }
        progress.advance(choices.len());
        Ok(outcomes)
    }

    /// What comes of a choice through NVRTC, and on a GPU where there is one.
    fn try_one(&self, problem: &Problem, expected: &verify::Expected, choices: &Choices) -> Result<Outcome> {
        if self.has_nvrtc {
            return match verify::verify(problem, expected, choices, self.gpu.as_deref(), &self.arch) {
                Ok(verdict) => Ok(Outcome::Done(verdict)),
                Err(error) if error.fault == Fault::Check => Ok(Outcome::Done(failed(error))),
                Err(error) => Err(error),
            };
        }
        match plan_for(problem, choices) {
            Err(error) => Ok(Outcome::Done(Verdict::Refused { reason: error.message })),
            Ok(plan) => {
                cuda::print(&plan)?;
                Ok(Outcome::Skipped { status: "skipped" })
            }
        }
    }
}

/// What comes of every choice on the emulator.
fn emulated(
    problem: &Problem,
    expected: &verify::Expected,
    choices: &[Choices],
    compiler: &Compiler,
) -> Result<Vec<Verdict>> {
    let settings = Settings { optimise: 1, ..Settings::default() };
    let together = verify_emulated(problem, expected, choices, compiler, &settings);
    let Err(error) = &together else { return together };
    if error.fault != Fault::Check {
        return together;
    }
    // One that does not compile is no reason to know nothing of the others.
    let alone = |one: &Choices| match verify_emulated(problem, expected, std::slice::from_ref(one), compiler, &settings)
    {
        Err(error) if error.fault == Fault::Check => Ok(vec![failed(error)]),
        verdicts => verdicts,
    };
    Ok(choices.iter().map(alone).collect::<Result<Vec<_>>>()?.concat())
}

fn failed(error: Error) -> Verdict {
    Verdict::Failed { order: None, mismatches: Vec::new(), damage: vec![error.message] }
}

/// Verifies every kernel of one problem.
pub fn verify(
    args: &Args,
    bench: &Bench,
    progress: &Progress,
    input: &Input,
    stencil: &Stencil,
    precision: Precision,
    grid: &Chosen,
) -> Result<Case> {
    let (share, set, seed) = (&args.shared.share[..], &args.set[..], args.seed);
    let contract = args.launch.code.contract;
    let problem = Drawn { stencil, precision, contract, grid, share, set, seed }.problem(input)?;
    let mut case = Case {
        file: input.source.name.clone(),
        stencil: stencil.name.clone(),
        precision,
        grid: problem.grid,
        region: problem.region.clone(),
        seed: args.seed,
        error: None,
        untaken: Vec::new(),
        combinations: Vec::new(),
    };
    let expected = match expect(&problem, &|_| {}) {
        Ok(expected) => expected,
        Err(error) if error.fault == Fault::Check => {
            case.error = Some(error.to_string());
            progress.advance(args.combinations(precision).len());
            return Ok(case);
        }
        Err(error) => return Err(error),
    };
    let choices = args.combinations(precision);
    let outcomes = bench.try_all(&problem, &expected, &choices, progress)?;
    let combinations = choices.into_iter().zip(outcomes);
    case.combinations.extend(combinations.map(|(choices, outcome)| Combination::new(choices, outcome)));
    let untaken = expected.untaken.iter().map(|&(span, side)| {
        let source = &input.source;
        let (line, column) = source.position(span.start);
        let file = (!source.is_own(span)).then(|| source.file_name(span.start).to_owned());
        Untaken { place: span, file, span: source.local(span), line, column, side }
    });
    case.untaken = untaken.collect();
    Ok(case)
}

/// Tells of the sides of conditions that no case of a stencil took: equal says nothing about them.
pub fn warn(input: &Input, cases: &[Case]) {
    let Some((first, others)) = cases.split_first() else { return };
    let never = first.untaken.iter().filter(|side| others.iter().all(|case| case.untaken.contains(side)));
    let warnings = never.map(|untaken| {
        Diagnostic::warning(untaken.place, "one branch was never taken, so nothing is known about it")
            .label(format!("the condition was {} everywhere", !untaken.side))
            .help("declare ranges for the inputs that decide it, as in `in rho = 0.5..1.5`, or give --set or --seed")
    });
    terminal::diagnostics(&warnings.collect::<Vec<_>>(), &input.source);
}

impl Case {
    /// What came of its kernels.
    pub fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        self.combinations.iter().map(|combination| &combination.outcome)
    }

    /// `laplap f64 37x29x9: 8 equal`, and what failed.
    pub fn text(&self, args: &Args) -> String {
        let Case { file, stencil, precision, grid, .. } = self;
        let mut totals = Totals::default();
        totals.add(self.outcomes(), self.error.is_some());
        let mut text = format!("{stencil} {} {grid}: {totals}\n", precision.name());
        if let Some(error) = &self.error {
            text.push_str(&format!("  {error}\n"));
        }
        let differences = self.combinations.iter().filter_map(|combination| match combination.outcome {
            Outcome::Done(Verdict::Different { cells, differing, units }) => Some((units, differing, cells)),
            Outcome::Done(_) | Outcome::Skipped { .. } => None,
        });
        if let Some((units, differing, cells)) = differences.max() {
            let units = match units {
                u64::MAX => "NaN beside a number".to_owned(),
                units => format!("by up to {} in the last place", terminal::count(units as usize, "unit")),
            };
            text.push_str(&format!("  the device's functions differ in {differing} of {cells} values, {units}\n"));
        }
        for combination in &self.combinations {
            let Some(failure) = combination.outcome.failure(&combination.name()) else { continue };
            text.push_str(&failure);
            let mut again = format!(
                "stencilc verify {} --stencil {stencil} {} --grid {grid} --seed {}",
                ShellWord::path(file),
                combination.options,
                self.seed
            );
            args.set.iter().for_each(|pair| again.push_str(&format!(" --set {}", ShellWord::new(pair.to_string()))));
            text.push_str(&format!("    again: {again}\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use stencilc_runtime::verify::Mismatch;

    #[derive(Parser)]
    struct Call {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn a_mismatch_is_told_with_its_bits_and_the_call_that_shows_it_again() {
        let call = "verify,my file.stn,--block,32x1x1,--index,64,--set,dt=0.5";
        let Call { args } = Call::try_parse_from(call.split(',')).unwrap();
        let mismatch = Mismatch {
            field: "res".into(),
            cell: "i=3, j=4, k=0".into(),
            cells: 2,
            expected: 1.0,
            expected_bits: "0x3f800000".into(),
            found: 1.5,
            found_bits: "0x3fc00000".into(),
        };
        let failed = Verdict::Failed {
            order: None,
            mismatches: vec![mismatch],
            damage: vec!["`res`: padding was overwritten".into()],
        };
        let case = Case {
            file: args.files[0].clone(),
            stencil: "laplap".into(),
            precision: Precision::F32,
            grid: super::super::GRIDS[0],
            region: Region::rows(2..35, 2..27, 0..9),
            seed: 0,
            error: None,
            untaken: Vec::new(),
            combinations: vec![Combination::new(
                args.launch.choices(
                    Choices { storage: "compressed".into(), access: "naive".into(), ..Choices::default() },
                    Precision::F32,
                ),
                Outcome::Done(failed),
            )],
        };
        insta::assert_snapshot!(case.text(&args), @"
        laplap f32 37x29x9: 1 failed
          compressed storage, naive access:
            res differs first at i=3, j=4, k=0, in all in 2 cells:
              interpreter 0x3f800000 1.0
              kernel      0x3fc00000 1.5
            `res`: padding was overwritten
            again: stencilc verify 'my file.stn' --stencil laplap --access naive --storage compressed --precision f32 --block 32x1x1 --index 64 --grid 37x29x9 --seed 0 --set dt=0.5
        ");
    }
}
