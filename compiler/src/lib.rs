//! From the text of a stencil to the text of its CUDA kernel.
//!
//! One way, no back and forth:
//!
//! ```text
//! text -> parse -> ast -> lower -> ir -> contract, fold, share, split -> analysis, plan -> kernel -> cuda
//! ```
//!
//! [`check`] goes as far as the IR, and [`compile`] all the way:
//!
//! ```
//! use stencilc_compiler::{compile, plan::Choices, source::Source};
//!
//! let source = Source::new("mean.stn", "stencil mean { in a; out b; b = 0.5 * (a[i-1] + a[i+1]) }");
//! let choices = Choices { access: "naive".into(), ..Choices::default() };
//! let built = compile(&source, None, &choices, None)?;
//! assert!(built.source.contains("b[c] = 0.5 * (a[i - 1 + j * row + k * plane] + a[i + 1 + j * row + k * plane]);"));
//! assert!(built.header.contains("int mean_launch(const mean_args* args, struct CUstream_st* stream);"));
//! # Ok::<(), stencilc_compiler::diagnostic::Failure>(())
//! ```
//!
//! What is wrong is an error, with the place in the text and a guess at what was meant:
//!
//! ```
//! use stencilc_compiler::{compile, plan::Choices, source::Source};
//!
//! let source = Source::new("mean.stn", "stencil mean { in field; out b; b = feild }");
//! let failure = compile(&source, None, &Choices::default(), None).unwrap_err();
//! assert!(failure.to_string().contains("did you mean `field`?"), "{failure}");
//! ```
//!
//! Nothing here does input or output, needs CUDA or starts a thread, but for the one on whose stack a text is read ([`depth`]); nothing
//! panics, whatever the text.

pub mod access;
pub mod analysis;
pub mod ast;
pub mod cells;
pub mod cuda;
pub mod depth;
pub mod device;
pub mod diagnostic;
mod foreign;
pub mod fuse;
pub mod gpu;
pub mod grid;
pub mod import;
pub mod ir;
pub mod kernel;
pub mod lower;
mod math;
pub mod mesh;
mod named;
pub mod names;
pub mod parse;
pub mod plan;
mod precision;
pub mod program;
pub mod registry;
mod sections;
pub mod source;
pub mod step;
pub mod storage;
pub mod text;

use cuda::Built;
use diagnostic::{Failure, Refusal, Severity, guess};
use plan::{Choices, Target};
use source::Source;

/// Makes the CUDA of a stencil, its launcher and the launcher's header: of the stencil of that name, or of the only one that the text
/// has. For the grid of the target, whose extents become constants, or for any grid.
///
/// # Errors
/// The text is wrong, or has no such stencil; or what was chosen does not exist, or does not suit the stencil or the grid.
pub fn compile(
    source: &Source,
    name: Option<&str>,
    choices: &Choices,
    target: Option<Target>,
) -> Result<Built, Failure> {
    let lowered = check(source);
    if lowered.diagnostics.iter().any(|told| told.severity == Severity::Error) {
        return Err(Failure::wrong(lowered.diagnostics, source));
    }
    let stencil = chosen(&lowered.stencils, name)?;
    let prepared = plan::prepare(stencil, choices.precision, choices.contract);
    let plan = plan::plan(&prepared, choices, target)?;
    Ok(cuda::build(&plan)?)
}

/// The stencil of a name, or the only one.
fn chosen<'a>(stencils: &'a [ir::Stencil], name: Option<&str>) -> Result<&'a ir::Stencil, Refusal> {
    let names = || stencils.iter().map(|own| own.name.as_str());
    let list = names().collect::<Vec<_>>().join(", ");
    match (name, stencils) {
        (None, [own]) => Ok(own),
        (None, []) => Err(Refusal::new("the text has no stencil on a grid")),
        (None, _) => {
            Err(Refusal::new(format!("the text has {} stencils: {list}", stencils.len())).help("name one of them"))
        }
        (Some(name), _) => stencils.iter().find(|own| own.name == name).ok_or_else(|| {
            let refusal = Refusal::new(format!("the text has no stencil `{name}`"));
            match guess(name, names()) {
                Some(guess) => refusal.help(format!("did you mean `{guess}`?")),
                None if stencils.is_empty() => refusal,
                None => refusal.help(format!("it has {list}")),
            }
        }),
    }
}

/// Reads a source text as far as the IR of its stencils.
pub fn check(source: &Source) -> lower::Lowered {
    match parse::parse(source) {
        Ok(file) => lower::lower(&file, &source.name),
        Err(told) => lower::Lowered { diagnostics: vec![told], ..lower::Lowered::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stencil_is_chosen_by_its_name_or_is_the_only_one() {
        let text = "stencil one { in a; out b; b = a }\nstencil two { in a; out b; b = 2*a }";
        let source = Source::new("both.stn", text);
        let told = |name: Option<&str>| match compile(&source, name, &Choices::default(), None) {
            Ok(built) => built.kernel.name.to_string(),
            Err(failure) => failure.to_string(),
        };
        assert_eq!(told(Some("two")), "two_kernel");
        assert_eq!(told(None), "the text has 2 stencils: one, two; name one of them");
        assert_eq!(told(Some("tow")), "the text has no stencil `tow`; did you mean `two`?");
        assert_eq!(told(Some("laplacian")), "the text has no stencil `laplacian`; it has one, two");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let source = Source::new("one.stn", "stencil one { in a; out b; b = a }");
        let choices = Choices { access: "shared".into(), ..Choices::default() };
        let failure = compile(&source, None, &choices, None).unwrap_err();
        assert!(matches!(failure, Failure::Refused(_)), "{failure}");
    }
}
