//! `stencilc bench` of a program: how long a step takes by each plan.

use super::{Args, open};
use crate::args::program::{parse_steps, plan_kind};
use crate::input::Input;
use crate::terminal::{self, Progress};
use rayon::prelude::*;
use serde_json::json;
use stencilc_compiler::ir::Program;
use stencilc_compiler::plan::Choices;
use stencilc_runtime::Device;
use stencilc_runtime::program::measure::{Compiled, Outcome, ProgramMethod, candidates, compiled, copy};
use stencilc_runtime::program::plan::PlanKind;
use stencilc_runtime::program::{ProgramProblem, of_program};
use stencilc_runtime::verify::program::Reference;
use stencilc_runtime::{Error, Result};

/// Options of `bench` that are about programs.
#[derive(clap::Args)]
pub struct ProgramArgs {
    /// Which program of the file
    #[arg(long, value_name = "NAME", conflicts_with = "stencil")]
    pub program: Option<String>,
    /// Of a program: the plans to measure; all if not given
    #[arg(long, value_name = "PLAN,...", value_delimiter = ',', value_parser = plan_kind())]
    pub fuse: Vec<PlanKind>,
    /// Of a program: steps of a loop that one kernel computes
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [1, 2, 3, 4], value_parser = parse_steps)]
    steps: Vec<usize>,
    /// Of a program: steps of its loop in one measurement
    #[arg(long, value_name = "N", default_value_t = 96, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub times: u32,
    /// Of a program: start each kernel by itself, and not those of many steps at once, as a CUDA graph
    #[arg(long)]
    no_graph: bool,
}

/// Steps that are compared with the interpreter: not a multiple of those that a kernel computes.
const COMPARED: usize = 13;

/// Plans that are compiled together, a core.
const TOGETHER: usize = 4;

/// Measures the plans of a program.
///
/// # Errors
/// A plan differs from the interpreter; or something is wrong with the call, the grid or the device.
pub fn bench(args: &Args, input: &Input, program: &Program, json: bool) -> Result<()> {
    let (device, no_gpu) = Device::choose(args.kernels.device);
    if let Some(error) = no_gpu {
        terminal::note(&format!("no plan is measured: {}; --device emulate tries the call", error.message));
    }
    let platform = open(device)?;
    let facade = program.facade();
    let method = args.method.method();
    let own = &args.of_program;
    let kinds = if own.fuse.is_empty() { &PlanKind::ALL[..] } else { &own.fuse[..] };
    let (mut cases, mut wrong) = (Vec::new(), 0);
    for precision in args.kernels.precisions() {
        let all = args.kernels.choices(&args.blocks, precision)?;
        // Of many kernels that differ in blocks alone, the usual one is enough where nobody asks for more.
        let choices: Vec<Choices> = if args.kernels.is_open() {
            let usual = |access: &str| all.iter().find(|own| own.storage == "regular" && own.access == access).cloned();
            ["idxvar", "tile"].into_iter().filter_map(usual).collect()
        } else {
            all
        };
        let plans = candidates(kinds, &own.steps, &choices, !own.no_graph);
        for grid in args.kernels.grids(&platform)? {
            let problem = args.kernels.problem(input, &facade, precision, &grid);
            let problem = problem.map_err(|error| of_program(program, error))?;
            let problem = ProgramProblem::of(program, problem, choices.first().is_none_or(|own| own.contract))?;
            let limit = copy(&problem, &platform, method.runs)?;
            let compared = if method.verify { COMPARED } else { 0 };
            let known = if compared > 0 { Some(Reference::new(problem.with_times(compared))?) } else { None };
            let method = ProgramMethod { times: own.times as usize, runs: method.runs, compared };
            let progress = Progress::new(plans.len(), "measuring");
            let mut found = Vec::new();
            let mut refused = 0;
            // On all cores, before anything is measured: the thread that launches kernels should not wait for one.
            for plans in plans.chunks(TOGETHER * rayon::current_num_threads()) {
                let compile = |plan| compiled(&problem, plan, &platform, method.times);
                let all: Vec<Compiled> = plans.par_iter().map(compile).collect::<Result<_>>()?;
                for (plan, compiled) in plans.iter().zip(all) {
                    let outcome = match compiled {
                        Compiled::Ready(ready) => ready.measured(&platform, known.as_ref(), method)?,
                        Compiled::Not(outcome) => outcome,
                    };
                    match outcome {
                        Outcome::Measured(times) => found.push((plan.to_string(), times)),
                        Outcome::Refused(_) => refused += 1,
                        Outcome::Differs(what) => {
                            wrong += 1;
                            progress.aside(|| terminal::error(&Error::check(format!("{plan}: {what}"))));
                        }
                    }
                    progress.advance(1);
                }
            }
            drop(progress);
            found.sort_by(|a, b| a.1.median_us.total_cmp(&b.1.median_us));
            let copied = limit.as_ref().map(|limit| limit.statistics.median_us);
            let cells = problem.outer.grid.columns() * problem.outer.grid.nk;
            if json {
                cases.push(json!({
                    "program": program.name,
                    "precision": precision,
                    "grid": grid.name,
                    "cells": cells,
                    "copy": limit,
                    "refused": refused,
                    "plans": found.iter().map(|(plan, times)| json!({
                        "plan": plan,
                        "us_a_step": times,
                        "of_copy": copied.map(|copied| copied / times.median_us),
                        "steps_a_second": 1e6 / times.median_us,
                    })).collect::<Vec<_>>(),
                }));
                continue;
            }
            let mut text = format!("{} {} {}", program.name, precision.name(), grid.name);
            if let Some(limit) = &limit {
                text.push_str(&format!(
                    "; the limit: a copy that reads {} and writes {} takes {:.2} us, {:.0} GB/s",
                    terminal::count(limit.reads, "field"),
                    limit.writes,
                    limit.statistics.median_us,
                    limit.gb_per_s
                ));
            }
            text.push('\n');
            let mut rows =
                vec![["us a step", "quartiles", "of copy", "steps a second", "plan"].map(str::to_owned).to_vec()];
            for (plan, times) in found.iter().take(args.top) {
                rows.push(vec![
                    format!("{:.2}", times.median_us),
                    format!("{:.2}..{:.2}", times.lower_quartile_us, times.upper_quartile_us),
                    copied.map_or("-".to_owned(), |copied| format!("{:.3}", copied / times.median_us)),
                    format!("{:.0}", 1e6 / times.median_us),
                    plan.clone(),
                ]);
            }
            text.push_str(&terminal::table(&rows, &[0, 1, 2, 3]));
            if refused > 0 {
                text.push_str(&format!("{} cannot compute this program\n", terminal::count(refused, "plan")));
            }
            terminal::print(&text)?;
        }
    }
    if json {
        terminal::json(&json!({ "machine": platform.facts(), "cases": cases }))?;
    }
    match wrong {
        0 => Ok(()),
        wrong => Err(Error::check(format!(
            "{} from the interpreter",
            if wrong == 1 { "a plan differs".to_owned() } else { format!("{wrong} plans differ") }
        ))),
    }
}
