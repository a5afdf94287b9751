//! What came of all ways to compute one thing, as text and as JSON, with the calls that show again what failed.

use super::Args;
use super::label::Label;
use super::totals::{Totals, refusals, told};
use crate::input::Input;
use crate::terminal;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use stencilc_compiler::diagnostic::Diagnostic;
use stencilc_compiler::grid::{Grid, Region};
use stencilc_compiler::ir::Precision;
use stencilc_compiler::source::Span;
use stencilc_compiler::text::ShellWord;
use stencilc_runtime::verify::{Mismatch, Verdict};
use stencilc_runtime::{Fault, Result};

/// A stencil or a program on a grid or a mesh, in one precision, and what came of all ways to compute it.
#[derive(Serialize)]
pub struct Case {
    pub file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stencil: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mesh: Option<String>,
    pub precision: Precision,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grid: Option<Grid>,
    /// The options that choose the grid.
    #[serde(skip)]
    pub grid_words: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<Region>,
    /// Of a stencil over a mesh: whether what is added to starts from 0, and not from what was there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_zero: Option<bool>,
    pub seed: u64,
    /// Of a program: how often each outermost loop is run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// Of a program that is cut into parts: how many there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<usize>,
    /// Why nothing can be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Of a stencil on a grid: sides of conditions that were never taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untaken: Option<Vec<Untaken>>,
    #[serde(flatten)]
    pub ways: Ways,
}

/// A side of a condition.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct Untaken {
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

/// One way to compute something, and what came of it.
#[derive(Serialize)]
pub struct Tried {
    #[serde(flatten)]
    pub label: Label,
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// All ways to compute something.
#[derive(Default)]
pub struct Ways {
    pub tried: Vec<Tried>,
    /// Whether they are plans, of which those that were refused are counted, not listed.
    pub are_plans: bool,
}

impl Serialize for Ways {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Refused<'a> {
            reason: &'a str,
            plans: usize,
        }
        let mut map = to.serialize_map(None)?;
        if self.are_plans {
            let is_refused = |tried: &Tried| matches!(tried.verdict, Verdict::Refused { .. });
            let plans: Vec<&Tried> = self.tried.iter().filter(|tried| !is_refused(tried)).collect();
            let refused = refusals(self.verdicts()).into_iter().map(|(reason, plans)| Refused { reason, plans });
            map.serialize_entry("plans", &plans)?;
            map.serialize_entry("refused", &refused.collect::<Vec<_>>())?;
        } else {
            map.serialize_entry("combinations", &self.tried)?;
        }
        map.end()
    }
}

impl Ways {
    /// What came of each.
    pub fn verdicts(&self) -> impl Iterator<Item = &Verdict> {
        self.tried.iter().map(|tried| &tried.verdict)
    }
}

impl Case {
    /// What it is compared with; nothing, and the case says why, if that would prove nothing.
    ///
    /// # Errors
    /// It could not be computed.
    pub fn worth<T>(&mut self, expected: Result<T>) -> Result<Option<T>> {
        match expected {
            Ok(expected) => Ok(Some(expected)),
            Err(error) if error.fault == Fault::Check => {
                self.error = Some(error.to_string());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Keeps the sides of conditions that were never taken.
    pub fn note_untaken(&mut self, input: &Input, untaken: &[(Span, bool)]) {
        let source = &input.source;
        let untaken = untaken.iter().map(|&(span, side)| {
            let (line, column) = source.position(span.start);
            let file = (!source.is_own(span)).then(|| source.file_name(span.start).to_owned());
            Untaken { place: span, file, span: source.local(span), line, column, side }
        });
        self.untaken = Some(untaken.collect());
    }

    /// How many ways came to what.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        totals.add(self.ways.verdicts(), self.error.is_some());
        totals
    }

    /// `laplap f64 37x29x9: 8 equal`, or `flow f32 on airfoil.npz, 7 times: 36 equal`, and what failed.
    pub fn text(&self, args: &Args) -> String {
        let name = self.stencil.iter().chain(&self.program).map(String::as_str).collect::<String>();
        let on = match (&self.mesh, &self.grid) {
            (Some(mesh), _) => format!("on {mesh}"),
            (None, Some(grid)) => grid.to_string(),
            (None, None) => String::new(),
        };
        let start = if self.from_zero == Some(true) { ", from zero" } else { "" };
        let often = self.times.map(|times| format!(", {}", terminal::count(times as usize, "time")));
        let (often, totals) = (often.unwrap_or_default(), self.totals());
        let parts = self.gpus.map_or(String::new(), |gpus| format!(", in {gpus} parts"));
        let mut text = format!("{name} {} {on}{start}{often}{parts}: {totals}\n", self.precision.name());
        if let Some(error) = &self.error {
            text.push_str(&format!("  {error}\n"));
        }
        let differences = self.ways.verdicts().filter_map(|verdict| match verdict {
            Verdict::Different { cells, differing, units } => Some((units, differing, cells)),
            Verdict::Equal { .. } | Verdict::Within { .. } | Verdict::Compiled | Verdict::Skipped => None,
            Verdict::Refused { .. } | Verdict::Failed { .. } => None,
        });
        if let Some((units, differing, cells)) = differences.max() {
            let units = match *units {
                u64::MAX => "NaN beside a number".to_owned(),
                units => format!("by up to {} in the last place", terminal::count(units as usize, "unit")),
            };
            text.push_str(&format!("  the device's functions differ in {differing} of {cells} values, {units}\n"));
        }
        for Tried { label, verdict } in &self.ways.tried {
            if let Some(failure) = self.failure(&label.name(), verdict) {
                text.push_str(&format!("{failure}    again: {}\n", self.again(label, args)));
            }
        }
        if self.ways.are_plans && (args.of_programs.tells_refusals() || totals.has_only_refusals()) {
            text.push_str(&told(&refusals(self.ways.verdicts())));
        }
        text
    }

    /// What failed of a way with this name, in lines; nothing of one that did not.
    fn failure(&self, name: &str, verdict: &Verdict) -> Option<String> {
        let Verdict::Failed { order, mismatches, damage } = verdict else { return None };
        let order = order.map_or(String::new(), |order| format!(", threads in {order} order"));
        let what = if self.mesh.is_some() { "number" } else { "cell" };
        let mut text = format!("  {name}{order}:\n");
        for Mismatch { field, cell, cells, expected, expected_bits, found, found_bits } in mismatches {
            let cells = terminal::count(*cells, what);
            text.push_str(&format!("    {field} differs first at {cell}, in all in {cells}:\n"));
            text.push_str(&format!("      interpreter {expected_bits} {expected:?}\n"));
            text.push_str(&format!("      kernel      {found_bits} {found:?}\n"));
        }
        damage.iter().for_each(|damage| text.push_str(&format!("    {damage}\n")));
        Some(text)
    }

    /// The call that computes one way again.
    fn again(&self, label: &Label, args: &Args) -> String {
        let mut again = format!("stencilc verify {}", ShellWord::path(&self.file));
        let mut add = |option: &str, value: &str| again.push_str(&format!(" --{option} {value}"));
        self.stencil.iter().for_each(|name| add("stencil", name));
        self.program.iter().for_each(|name| add("program", name));
        if let Some(mesh) = &self.mesh {
            add("mesh", &ShellWord::path(mesh).to_string());
            add("precision", self.precision.name());
        }
        again.push_str(&format!(" {}{}", label.words(), self.grid_words));
        let mut add = |option: &str, value: &str| again.push_str(&format!(" --{option} {value}"));
        self.times.iter().for_each(|times| add("times", &times.to_string()));
        self.gpus.iter().for_each(|gpus| add("gpus", &gpus.to_string()));
        add("seed", &self.seed.to_string());
        if self.mesh.is_some() {
            args.levels.iter().for_each(|levels| add("levels", &levels.to_string()));
            if !args.launch.code.contract {
                add("contract", "off");
            }
        }
        args.set.iter().for_each(|pair| add("set", &ShellWord::new(pair.to_string()).to_string()));
        again
    }
}

/// Tells of the sides of conditions that no case of a stencil took: equal says nothing about them.
pub fn warn(input: &Input, cases: &[Case]) {
    let untaken = |case: &Case| case.untaken.clone().unwrap_or_default();
    let Some((first, others)) = cases.split_first() else { return };
    let never = untaken(first).into_iter().filter(|side| others.iter().all(|case| untaken(case).contains(side)));
    let warnings = never.map(|untaken| {
        Diagnostic::warning(untaken.place, "one branch was never taken, so nothing is known about it")
            .label(format!("the condition was {} everywhere", !untaken.side))
            .help("declare ranges for the inputs that decide it, as in `in rho = 0.5..1.5`, or give --set or --seed")
    });
    terminal::diagnostics(&warnings.collect::<Vec<_>>(), &input.source);
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use stencilc_compiler::plan::Choices;

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
        let choices = Choices { storage: "compressed".into(), access: "naive".into(), ..Choices::default() };
        let label = Label::of_kernel(&args.launch.choices(choices, Precision::F32));
        let tried = vec![Tried { label, verdict: failed }];
        let case = Case {
            file: args.files[0].clone(),
            stencil: Some("laplap".into()),
            program: None,
            mesh: None,
            precision: Precision::F32,
            grid: Some(Grid::rows(37, 29, 9)),
            grid_words: " --grid 37x29x9".into(),
            region: None,
            from_zero: None,
            seed: 0,
            times: None,
            gpus: None,
            error: None,
            untaken: None,
            ways: Ways { tried, are_plans: false },
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
