//! `stencilc bench` of a program: how long a step takes by each plan.

use super::{Args, open, scaling, with_kernels};
use crate::args::program::{parse_steps, plan_kind};
use crate::input::Input;
use crate::terminal::{self, Progress, bar};
use serde_json::json;
use stencilc_compiler::ir::Program;
use stencilc_runtime::measure::STEPS;
use stencilc_runtime::program::measure::{Plans, candidates, enough};
use stencilc_runtime::program::plan::PlanKind;
use stencilc_runtime::program::{ProgramProblem, of_program};
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
    pub steps: Vec<usize>,
    /// Of a program: steps of its loop in one measurement
    #[arg(long, value_name = "N", default_value_t = 96, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub times: u32,
    /// Of a program: start each kernel by itself, and not those of many steps at once, as a CUDA graph
    #[arg(long)]
    pub no_graph: bool,
    /// Of a program: how it scales, by one plan on 1, 2, 4 and so on to N GPUs, each of which has some rows of a grid or a part of a mesh
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=1024))]
    pub gpus: Option<u16>,
}

/// Measures the plans of a program.
///
/// # Errors
/// A plan differs from the interpreter; or something is wrong with the call, the grid or the device.
pub fn bench(args: &Args, input: &Input, program: &Program, json: bool) -> Result<()> {
    let of_stencils = [("--output", args.output.is_some()), ("--csv", args.csv.is_some())];
    if let Some((option, _)) = of_stencils.into_iter().find(|(_, is_given)| *is_given) {
        return Err(Error::call(format!("{option} is for kernels of stencils, and `{}` is a program", program.name))
            .help("--json has all that is measured"));
    }
    if let Some(gpus) = args.of_program.gpus {
        return scaling::on_grids(args, input, program, gpus, json);
    }
    let platform = open(with_kernels(args.kernels.device, "measure")?)?;
    let facade = program.facade();
    let method = args.method.method();
    let own = &args.of_program;
    let kinds = if own.fuse.is_empty() { &PlanKind::ALL[..] } else { &own.fuse[..] };
    let (mut cases, mut wrong) = (Vec::new(), 0);
    for precision in args.kernels.precisions() {
        let all = args.kernels.choices(&args.blocks, precision)?;
        for grid in args.kernels.grids(&platform)? {
            let problem = args.kernels.problem(input, &facade, precision, &grid);
            let problem = problem.map_err(|error| of_program(program, error))?;
            let choices = if args.kernels.is_open() { enough(&all, problem.grid.form) } else { all.clone() };
            let plans = candidates(kinds, &own.steps, &choices, !own.no_graph);
            let problem = ProgramProblem::of(program, problem, choices.first().is_none_or(|own| own.contract))?;
            let times = own.times as usize;
            let plans = Plans::new(&problem, &platform, method, times, plans, bar("interpreting"))?;
            let progress = Progress::new(plans.plans.len() * STEPS, "measuring");
            let (found, came) = plans.bench(&|steps| progress.advance(steps))?;
            drop(progress);
            for (&plan, what) in &came.wrong {
                terminal::error(&Error::check(format!("{}: {what}", plans.plans[plan])));
            }
            wrong += came.wrong.len();
            let (limit, refused) = (&plans.copy, came.refused.len());
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
                        "plan": plans.plans[*plan].to_string(),
                        "us_a_step": times,
                        "of_copy": plans.of_copy(times),
                        "steps_a_second": 1e6 / times.median_us,
                    })).collect::<Vec<_>>(),
                }));
                continue;
            }
            let mut text = format!("{} {} {}", program.name, precision.name(), grid.name);
            if let Some(limit) = limit {
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
                    plans.of_copy(times).map_or("-".to_owned(), |part| format!("{part:.3}")),
                    format!("{:.0}", 1e6 / times.median_us),
                    plans.plans[*plan].to_string(),
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
