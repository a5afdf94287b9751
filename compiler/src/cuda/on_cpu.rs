//! What a launcher calls where there is no GPU: the same struct of arguments, and the kernel for CPUs, in a text of C++ that needs
//! nothing else.

use super::host::{Host, HostTexts, helpers};
use super::prelude::Helpers;
use super::{Cells, Kernel, again, cells, made, printed_with, render};
use crate::device;
use crate::diagnostic::Refusal;
use crate::plan::{self, Choices, Open, Plan};
use crate::storage::fields::Fields;
use crate::text::Comment;
use serde::Serialize;

#[derive(Serialize)]
struct Texts {
    head: Vec<Comment>,
    /// The words of CUDA C++ on a CPU.
    words: &'static str,
    /// The kernel, with the functions that it needs.
    text: String,
    #[serde(flatten)]
    host: HostTexts,
}

/// How results stay the same in every bit. GCC 12, putting two sums side by side, leaves out that each is rounded to single precision
/// before the next is added; and it makes `0.0 - double(n)` to `-double(n)`, which is -0 where n is 0.
const EXACT: &str = "Exact only with -ffp-contract=off -frounding-math -fno-tree-slp-vectorize, and faster with -O3 -march=native -fopenmp.";

/// C++ that launches a plan's stencil on the CPU, for those who include the header of the plan.
///
/// # Errors
/// The plan's arrays are no plain ones; or a template is broken, which is a fault of the compiler.
pub fn on_cpu(plan: &Plan, words: &str) -> Result<String, Refusal> {
    plain(plan)?;
    let (choices, _) = plan.choices.clone().on_cpu(Open::Kernel);
    let mut own = plan::plan(&plan.stencil, &choices.suiting(&plan.stencil), None)?;
    if let Some(known) = &plan.known_grid {
        own = own.knowing(known.clone())?;
    }
    let Cells { mut kernel, .. } = cells(&own)?;
    (kernel.made, kernel.doc) = (None, Vec::new());
    let others: Helpers = helpers(&own);
    let kernel: Kernel = printed_with(&kernel, &others, own.choices.precision)?;
    let mut host = Host::new(&own, &kernel).texts();
    host.is_on_cpu = true;
    let mut head = vec![Comment::new(format!(
        "{} on the CPU: {} access, {}.",
        own.stencil.told(),
        own.choices.access,
        own.choices.precision.name()
    ))];
    head.extend(own.stencil.doc.comments());
    head.extend([Comment::new(""), made(&format!("{}{words}", again(plan))), Comment::new(EXACT)]);
    render("launch.cpp.tera", &Texts { head, words: device::CPU, text: kernel.text, host })
}

/// Whether the arrays of a plan are plain ones: each of its own, in rows, i fastest, with nothing between that others could not have.
///
/// # Errors
/// They are not.
pub(super) fn plain(plan: &Plan) -> Result<(), Refusal> {
    let Choices { storage, fastest, fields, .. } = &plan.choices;
    if !plan.choices.has_rows() {
        let why = format!("`{storage}` storage with {} fastest is none of plain arrays in rows", fastest.name());
        return Err(Refusal::new(why)
            .help("launchers for the CPU and for Fortran take these alone: leave --storage and --fastest out"));
    }
    if *fields != Fields::Soa {
        return Err(
            Refusal::new("launchers for the CPU and for Fortran take an array a field").help("leave --fields out")
        );
    }
    let is_plain = |known: &plan::KnownGrid| {
        known.layout.sizes == [known.grid.ni * known.grid.nj, known.grid.ni] && known.adjacency.is_none()
    };
    if plan.known_grid.as_ref().is_some_and(|known| !is_plain(known)) {
        return Err(Refusal::new(
            "arrays of a grid that is known have room between rows and planes, and plain ones have none",
        )
        .help("leave --grid out: launchers take extents and strides from their arguments"));
    }
    Ok(())
}
