//! Where a stencil says that it computes, in launchers: numbers that they find from their arguments.

use super::super::levels;
use super::Host;
use crate::analysis::levels::goes_on;
use crate::ir::program::GridAxis;
use crate::ir::{Bound, Bounding};
use crate::names::{Identifier, Names};
use crate::plan::Plan;
use crate::text::Comment;
use serde::Serialize;

/// A function that says where what is computed begins or ends.
#[derive(Serialize)]
pub(super) struct Text {
    name: Identifier,
    doc: Comment,
    parameters: String,
    lines: Vec<String>,
}

/// The bounds that a launcher looks at: all for any grid, and on one that is known those of levels that depend on parameters. Columns that do
/// belong to no grid that is known.
fn bounds(plan: &Plan) -> impl Iterator<Item = &Bound> {
    let is_any = plan.known_grid.is_none();
    let is_open = move |bound: &&Bound| {
        let written = || levels::write_bound(&plan.stencil, plan.choices.precision, bound);
        is_any || bound.axis == GridAxis::K && !written().params.is_empty()
    };
    GridAxis::ALL.into_iter().flat_map(|axis| plan.stencil.bounds(axis)).filter(is_open)
}

/// What the functions are called.
pub(super) fn names(plan: &Plan) -> Vec<Identifier> {
    let mut names = Names::default();
    let all = bounds(plan).enumerate();
    all.map(|(number, _)| names.declared(&format!("{}_within_{number}", plan.stencil.name))).collect()
}

/// The functions of the prelude that they need.
pub(super) fn helpers(plan: &Plan) -> impl Iterator<Item = &'static str> {
    bounds(plan).flat_map(|bound| levels::write_bound(&plan.stencil, plan.choices.precision, bound).helpers)
}

impl<'a> Host<'a> {
    /// The functions.
    pub(super) fn within_texts(&self, args: &Identifier) -> Vec<Text> {
        let (stencil, precision) = (&self.plan.stencil, self.plan.choices.precision);
        let text = |(bound, name): (&Bound, &Identifier)| {
            let (lines, [parameters, _]) = self.function(levels::write_bound(stencil, precision, bound), args);
            let what = format!("What `{}` is, of {}", bound.text.as_told(), bound.axis);
            Text { name: name.clone(), doc: Comment::new(what), parameters, lines }
        };
        bounds(self.plan).zip(&self.within).map(text).collect()
    }

    /// Where what is computed begins or ends: what a launcher calls the number, of which bound, and by which function it finds it.
    pub(super) fn bounds(&self) -> Vec<(String, &'a Bound, String)> {
        let plan = self.plan;
        let precision = plan.choices.precision;
        let count = |axis: GridAxis| self.count(axis);
        let bounds = bounds(plan).zip(&self.within).enumerate();
        bounds
            .map(|(number, (bound, name))| {
                let takes = !levels::write_bound(&plan.stencil, precision, bound).params.is_empty();
                let args = if takes { "args, " } else { "" };
                // Columns in tables have no rows to count, and nobody asks for them.
                let has_none = plan.storage.has_tables() && plan.known_grid.is_none();
                let across = |axis| if has_none { "0".to_owned() } else { count(axis) };
                let [ni, nj] = GridAxis::ACROSS.map(across);
                (format!("bound_{number}"), bound, format!("{name}({args}{ni}, {nj}, {})", count(GridAxis::K)))
            })
            .collect()
    }

    /// How many cells there are along an axis.
    fn count(&self, axis: GridAxis) -> String {
        match &self.plan.known_grid {
            Some(known) => match axis {
                GridAxis::I => known.grid.ni.to_string(),
                GridAxis::J => known.grid.nj.to_string(),
                GridAxis::K => known.grid.nk.to_string(),
            },
            None => format!("args->{}", self.member(&format!("n{axis}"))),
        }
    }

    /// Conditions under which a bound lies outside the grid, or less can be computed than is said.
    pub(super) fn bound_checks(&self) -> Vec<String> {
        let (plan, bounds) = (self.plan, self.bounds());
        let mut checks = Vec::new();
        for axis in GridAxis::ALL {
            let own = || bounds.iter().filter(|(_, bound, _)| bound.axis == axis);
            if own().next().is_none() {
                continue;
            }
            let count = match axis == GridAxis::K && goes_on(&plan.stencil) {
                true => format!("{} + 1", self.count(axis)),
                false => self.count(axis),
            };
            for (name, bound, _) in own() {
                // Where something ends there need be nothing.
                let last = if bound.is == Bounding::Only { ">=" } else { ">" };
                checks.push(format!("{name} < 0 || {name} {last} {count}"));
            }
            let (first, end) = match axis {
                GridAxis::I | GridAxis::J => plan.bounds()[axis as usize],
                GridAxis::K => ("k_first", "k_end"),
            };
            let begins = own().filter(|(_, bound, _)| bound.is != Bounding::End);
            let begins: Vec<String> = begins.map(|(name, ..)| format!("{first} > {name}")).collect();
            let ends = own().filter_map(|(name, bound, _)| match bound.is {
                Bounding::First => None,
                Bounding::Only => Some(format!("{end} < {name} + 1")),
                Bounding::End => Some(format!("{end} < {name}")),
            });
            let all = [begins, ends.collect()].into_iter().filter(|own| !own.is_empty());
            checks.extend(all.map(|own| if own.len() > 1 { format!("({})", own.join(" && ")) } else { own.join("") }));
        }
        checks
    }
}

/// Lets the first and the end of what is computed be no further out than a bound.
pub(super) fn clip([first, end]: &mut [String; 2], bound: &str, is: Bounding) {
    if is != Bounding::End {
        *first = format!("({bound} > {first} ? {bound} : {first})");
    }
    match is {
        Bounding::Only => *end = format!("({bound} < {end} ? {bound} + 1 : {end})"),
        Bounding::First => {}
        Bounding::End => *end = format!("({bound} < {end} ? {bound} : {end})"),
    }
}
