//! Where a stencil says that it computes along i and j, in a launcher for any grid: numbers that it finds from its arguments.

use super::super::levels;
use super::Host;
use crate::ir::program::GridAxis;
use crate::ir::{Bound, Bounding};
use crate::names::{Identifier, Names};
use crate::plan::Plan;
use crate::text::Comment;
use serde::Serialize;

/// A function that says where what is computed begins or ends along i or j.
#[derive(Serialize)]
pub(super) struct Text {
    name: Identifier,
    doc: Comment,
    parameters: String,
    lines: Vec<String>,
}

/// The bounds along i and j that a launcher looks at: those of a plan for any grid.
fn of_columns(plan: &Plan) -> impl Iterator<Item = &Bound> {
    let is_any = plan.known_grid.is_none();
    GridAxis::ACROSS.into_iter().flat_map(|axis| plan.stencil.bounds(axis)).filter(move |_| is_any)
}

/// What the functions are called.
pub(super) fn names(plan: &Plan) -> Vec<Identifier> {
    let mut names = Names::default();
    let all = of_columns(plan).enumerate();
    all.map(|(number, _)| names.declared(&format!("{}_within_{number}", plan.stencil.name))).collect()
}

/// The functions of the prelude that they need.
pub(super) fn helpers(plan: &Plan) -> impl Iterator<Item = &'static str> {
    of_columns(plan).flat_map(|bound| levels::write_bound(&plan.stencil, plan.choices.precision, bound).helpers)
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
        of_columns(self.plan).zip(&self.within).map(text).collect()
    }

    /// Where what is computed begins or ends along i and j: what a launcher calls the number, of which bound, and by which function it finds it.
    pub(super) fn bounds(&self) -> Vec<(String, &'a Bound, String)> {
        let plan = self.plan;
        let precision = plan.choices.precision;
        let [ni, nj, nk] = ["ni", "nj", "nk"].map(|name| format!("args->{}", self.member(name)));
        let bounds = of_columns(plan).zip(&self.within).enumerate();
        bounds
            .map(|(number, (bound, name))| {
                let takes = !levels::write_bound(&plan.stencil, precision, bound).params.is_empty();
                let args = if takes { "args, " } else { "" };
                (format!("bound_{number}"), bound, format!("{name}({args}{ni}, {nj}, {nk})"))
            })
            .collect()
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
