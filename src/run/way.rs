//! What a program does on its way, from step to step: what is written, told and kept.

use super::Args;
use super::animate::{self, Animation};
use super::kept::Kept;
use super::outputs::{Held, Target};
use super::picture::Look;
use super::together::Together;
use crate::print::{self, Cells};
use crate::terminal::{self, Progress};
use serde::Serialize;
use serde_json::{Value, json};
use std::time::Instant;
use stencilc_compiler::source::Source;
use stencilc_runtime::files::Pattern;
use stencilc_runtime::job::{ByRows, Checked, Run};
use stencilc_runtime::plot::save_png;
use stencilc_runtime::{Array, Result};

/// What a number was after a step.
#[derive(Serialize)]
pub struct Record {
    step: u64,
    name: String,
    value: f64,
}

/// How fast steps of the outermost loops were. The first ones wait for tables and kernels to be made.
#[derive(Serialize)]
pub struct Pace {
    /// How many were first: as many as one launch computes.
    pub first_steps: u64,
    /// What these took.
    pub first_seconds: f64,
    /// Of all later ones, with what is written on the way; nothing if there are none.
    pub steps_per_second: Option<f64>,
}

/// What is written on the way, and at the end.
pub struct Written {
    /// Files of fields.
    pub files: Vec<Target>,
    /// Pictures.
    pub pictures: Vec<(Look, Pattern)>,
    /// Moving pictures.
    pub animations: Vec<Animation>,
    /// Outputs that are numbers.
    pub numbers: Vec<String>,
    /// Fields that have a value from the beginning.
    pub given: Vec<String>,
}

/// What happens after each step.
pub struct Way<'a> {
    /// What was asked for.
    pub args: &'a Args,
    /// What is computed.
    pub checked: &'a Checked,
    /// What is written.
    pub written: &'a Written,
    /// The checkpoint.
    pub kept: &'a Kept,
    /// Where prints are shown.
    pub cells: &'a Cells,
    /// The text that these stand in.
    pub source: &'a Source,
    /// What shows how far it is.
    pub progress: &'a Progress,
    /// Whether nothing but JSON is printed.
    pub json: bool,
    /// Steps in all, if that is known before.
    pub total: Option<u64>,
    /// When it began to be compiled.
    pub since: Instant,
    /// The processes that compute it together.
    pub others: &'a Together,
}

/// What became of it.
pub struct Done {
    /// Steps that were done now.
    pub steps: u64,
    /// What was told on the way.
    pub told: Vec<Record>,
    /// What was printed on the way.
    pub printed: Vec<Value>,
    /// Whether the last of that is what the end prints, too.
    pub has_shown_end: bool,
    /// How fast it was; nothing of a program without a step.
    pub pace: Option<Pace>,
}

impl Way<'_> {
    /// Runs it to its end.
    ///
    /// # Errors
    /// A kernel has failed, or something cannot be written.
    pub fn run(&self, run: &mut Run) -> Result<Done> {
        let every = self.args.of_program.every;
        if every.is_some() && self.args.of_program.resume.is_none() {
            // What is only computed has no value yet.
            self.write(&Holding { run, among: Some(&self.written.given) }, 0)?;
        }
        let (mut told, mut printed, mut steps, mut first) = (Vec::new(), Vec::new(), 0, None);
        let mut shown = None;
        loop {
            let until = every.map_or(u64::MAX, |every| every - run.done() % every);
            let Some(times) = run.advance(until)? else { break };
            steps += times;
            if first.is_none() {
                run.wait()?;
                first = Some((self.since.elapsed().as_secs_f64(), times));
            }
            self.after(run, times)?;
            if every.is_some_and(|every| run.done().is_multiple_of(every)) {
                self.tell(run, &mut told)?;
                printed.extend(self.show(run)?);
                shown = Some(run.done());
            }
        }
        run.wait()?;
        let seconds = self.since.elapsed().as_secs_f64();
        let pace = first.map(|(first_seconds, times)| Pace {
            first_steps: times,
            first_seconds,
            steps_per_second: (steps > times).then(|| (steps - times) as f64 / (seconds - first_seconds)),
        });
        self.write(&Holding { run, among: None }, run.done())?;
        self.kept.keep(run)?;
        Ok(Done { steps, told, printed, has_shown_end: shown == Some(run.done()), pace })
    }

    /// After a step, or several.
    fn after(&self, run: &Run, times: u64) -> Result<()> {
        let done = run.done();
        self.progress.advance(times as usize);
        if self.args.of_program.every.is_some_and(|every| done.is_multiple_of(every)) {
            // What the end holds is written there.
            if self.total != Some(done) {
                self.write(&Holding { run, among: None }, done)?;
            }
        }
        self.kept.after(run, self.others)
    }

    /// Tells what the numbers are.
    fn tell(&self, run: &Run, told: &mut Vec<Record>) -> Result<()> {
        let step = run.done();
        let mut line = format!("{step:>8}");
        for name in &self.written.numbers {
            if let Some(array) = run.held(name)? {
                let value = array.data.get(0);
                line.push_str(&format!("  {name} {}", scientific(value)));
                told.push(Record { step, name: name.clone(), value });
            }
        }
        if !self.json && line.len() > 8 {
            self.progress.aside(|| terminal::print(&format!("{line}\n")))?;
        }
        Ok(())
    }

    /// Shows what was printed.
    fn show(&self, run: &Run) -> Result<Option<Value>> {
        let printed = run.printed(&|print| self.cells.of(print))?;
        if printed.is_empty() {
            return Ok(None);
        }
        let step = run.done();
        if !self.json {
            let table = print::table(&printed, self.cells, self.source, Some(step));
            self.progress.aside(|| terminal::print(&table))?;
        }
        Ok(Some(json!({ "step": step, "prints": print::json(&printed, self.source) })))
    }

    /// Writes the fields that are asked for.
    fn write(&self, holding: &Holding, step: u64) -> Result<()> {
        let held: &Held = &|name| holding.held(name);
        for file in &self.written.files {
            let rows = &|name: &str| holding.by_rows(name);
            file.write(self.args, self.checked, (held, rows), self.others.writes(), step)?;
        }
        if !self.others.writes() {
            // What the one that writes holds, all of them bring together.
            let pictures = self.written.pictures.iter().map(|(look, _)| look.field.as_str());
            let animated = self.written.animations.iter().map(Animation::field);
            return pictures.chain(animated).try_for_each(|name| held(name).map(drop));
        }
        for (look, pattern) in &self.written.pictures {
            if let Some(array) = held(&look.field)? {
                save_png(&pattern.at(step), &look.shown(&array.data)?.picture())?;
            }
        }
        self.written.animations.iter().try_for_each(|own| own.take(held, step))?;
        // How many frames there will be was not known before where numbers of the program say how often it repeats something.
        animate::check_room(&self.written.animations, step, animate::frames(&self.written.animations))
    }
}

/// What fields hold after a step.
struct Holding<'a> {
    run: &'a Run,
    /// Those that have a value, if not all have.
    among: Option<&'a [String]>,
}

impl Holding<'_> {
    fn has(&self, name: &str) -> bool {
        self.among.is_none_or(|among| among.iter().any(|own| own == name))
    }

    fn held(&self, name: &str) -> Result<Option<Array>> {
        if self.has(name) { self.run.held(name) } else { Ok(None) }
    }

    fn by_rows(&self, name: &str) -> Result<Option<ByRows>> {
        if self.has(name) { self.run.by_rows(name) } else { Ok(None) }
    }
}

/// A number as C's `%.5e` writes it.
fn scientific(value: f64) -> String {
    let text = format!("{value:.5e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let exponent: i32 = exponent.parse().unwrap_or(0);
            format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::scientific;

    #[test]
    fn numbers_are_written_as_in_c() {
        assert_eq!([4.254_06e-4, 1.0, -2.5e10].map(scientific), ["4.25406e-04", "1.00000e+00", "-2.50000e+10"]);
    }
}
