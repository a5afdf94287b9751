//! What random programs of every subject have in common: how one is computed in every way, and made small if it fails.

use std::collections::HashSet;
use std::fmt;
use std::time::Instant;
use stencilc_runtime::Result;
use stencilc_runtime::build::Build;
use stencilc_runtime::emulate::Source;
use stencilc_runtime::verify::{self, Sites, Tools, Verdict};

/// Smaller cases that are tried at once: their kernels are compiled together.
const TOGETHER: usize = 16;

/// A random program, and all that is chosen for it.
pub trait Case: Clone {
    /// What it is about, in a word.
    const NAME: &'static str;
    /// What interpreter and evaluator agree on, for kernels to be compared with.
    type Ready;

    /// The case of a seed.
    fn new(seed: u64) -> Self;

    /// Where it comes from.
    fn seed(&self) -> u64;

    /// Its text, headed by what is chosen for it.
    fn text(&self) -> String;

    /// Computes it by the interpreter, and by an evaluator that shares nothing with the compiler but, for some, the parser.
    ///
    /// # Errors
    /// There is not enough memory.
    fn prepare(&self) -> Result<Outcome<Self::Ready>>;

    /// What comes of the kernels of each, which are compiled together; on no tools nothing does.
    ///
    /// # Errors
    /// The device itself fails.
    fn compare(ready: &[Self::Ready], tools: &Tools) -> Result<Vec<Verdict>>;

    /// What of the language it has, and what was chosen.
    fn has(ready: &Self::Ready) -> Vec<String>;

    /// In which way its kernels compute.
    fn way(ready: &Self::Ready) -> String;

    /// Cases that are one step smaller, the greatest steps first.
    fn smaller(&self) -> Vec<Self>;
}

/// What became of a case on the CPU.
pub enum Outcome<R> {
    /// Interpreter and evaluator agree to the last bit.
    Ready(R),
    /// Both say that it computes nothing, or it is beyond what the compiler takes.
    Nothing,
    /// Something is wrong.
    Failed(Failure),
}

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A program with a meaning is rejected: what the compiler says.
    Rejected(String),
    /// A program without one is not: what the evaluator says.
    Accepted(String),
    /// Interpreter and evaluator compute different cells: what each says.
    Region(String),
    /// Interpreter and evaluator compute different values: where.
    Value(String),
    /// What is fused differs from what is not: how, and where.
    Fused(String),
    /// No kernel can be made, it does not compile or run, or it writes where it may not: why.
    Kernel(String),
    /// A kernel computes something else than the interpreter: where.
    Device(String),
}

impl Failure {
    /// What is wrong with kernels, if something is.
    pub fn of(verdict: &Verdict) -> Option<Self> {
        match verdict {
            Verdict::Failed { mismatches, damage, .. } if mismatches.is_empty() => {
                Some(Failure::Kernel(damage.join("\n")))
            }
            Verdict::Failed { order, mismatches, damage } => {
                let mismatches: Vec<String> = mismatches.iter().map(ToString::to_string).collect();
                Some(Failure::Device(format!("{order:?} {} {damage:?}", mismatches.join("; "))))
            }
            // Every case has the language's own functions.
            Verdict::Different { .. } => Some(Failure::Device("by functions of the device".to_owned())),
            Verdict::Equal { .. }
            | Verdict::Within { .. }
            | Verdict::Compiled
            | Verdict::Skipped
            | Verdict::Refused { .. } => None,
        }
    }

    /// Whether another failure is of the same kind; of two rejections, for the same reason, whatever the names and numbers.
    pub fn is_like(&self, other: &Failure) -> bool {
        let reason = |message: &str| -> String {
            let line = message.lines().find(|line| line.starts_with("error")).unwrap_or(message);
            line.chars().filter(|own| !own.is_ascii_digit()).collect()
        };
        match (self, other) {
            (Failure::Rejected(own), Failure::Rejected(other)) => reason(own) == reason(other),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Rejected(message) => write!(f, "the compiler rejects it: {message}"),
            Failure::Accepted(message) => write!(f, "the compiler accepts it, the evaluator does not: {message}"),
            Failure::Region(message) => write!(f, "other cells are computed: {message}"),
            Failure::Value(message) => write!(f, "interpreter and evaluator differ: {message}"),
            Failure::Fused(message) => write!(f, "fusing changes bits: {message}"),
            Failure::Kernel(message) => write!(f, "no kernel, or a wrong one: {message}"),
            Failure::Device(message) => write!(f, "kernels differ from the interpreter: {message}"),
        }
    }
}

/// How a case fails, if it does.
///
/// # Errors
/// The device itself fails.
pub fn failure_of<C: Case>(case: &C, tools: &Tools) -> Result<Option<Failure>> {
    Ok(match case.prepare()? {
        Outcome::Ready(ready) => C::compare(&[ready], tools)?.first().and_then(Failure::of),
        Outcome::Nothing => None,
        Outcome::Failed(failure) => Some(failure),
    })
}

/// A small case that fails as `case` does, found before `deadline` if there is one; and how it fails. Whether what is left of
/// a program is correct, the checker decides.
///
/// # Errors
/// The device itself fails.
pub fn shrink<C: Case>(
    mut case: C,
    mut failure: Failure,
    tools: &Tools,
    deadline: Option<Instant>,
) -> Result<(C, Failure)> {
    // What was tried is not tried again: steps that lead back to where they began would never end.
    let mut tried = HashSet::from([case.text()]);
    'smaller: loop {
        let mut left: Vec<C> = case.smaller();
        left.retain(|own| !tried.contains(&own.text()));
        for some in left.chunks(TOGETHER) {
            if deadline.is_some_and(|deadline| Instant::now() > deadline) {
                break 'smaller;
            }
            if let Some(found) = first_alike(some, &failure, tools)? {
                (case, failure) = found;
                tried.insert(case.text());
                continue 'smaller;
            }
            tried.extend(some.iter().map(C::text));
        }
        break;
    }
    Ok((case, failure))
}

fn first_alike<C: Case>(candidates: &[C], failure: &Failure, tools: &Tools) -> Result<Option<(C, Failure)>> {
    let (mut ready, mut of) = (Vec::new(), Vec::new());
    for case in candidates {
        match case.prepare()? {
            Outcome::Failed(own) if own.is_like(failure) => return Ok(Some((case.clone(), own))),
            Outcome::Ready(own) => {
                ready.push(own);
                of.push(case);
            }
            Outcome::Failed(_) | Outcome::Nothing => {}
        }
    }
    if !matches!(failure, Failure::Device(_) | Failure::Kernel(_)) {
        return Ok(None);
    }
    let failures = C::compare(&ready, tools)?.into_iter().map(|verdict| Failure::of(&verdict));
    let mut alike = of.into_iter().zip(failures).filter_map(|(case, own)| Some((case, own?)));
    Ok(alike.find(|(_, own)| own.is_like(failure)).map(|(case, own)| (case.clone(), own)))
}

/// Several subjects of verification, whose kernels are compiled together. A way is one of one of them.
pub struct Many<'a, S>(pub Vec<&'a S>);

impl<S: verify::Subject> verify::Subject for Many<'_, S> {
    type Way = (usize, S::Way);
    type Planned = (usize, S::Planned);

    fn plan(&self, (of, way): &Self::Way) -> Result<Self::Planned> {
        Ok((*of, self.0[*of].plan(way)?))
    }

    fn texts<'a>(&self, (of, planned): &'a Self::Planned) -> Vec<Source<'a>> {
        self.0[*of].texts(planned)
    }

    fn run<M: Build>(&self, (of, planned): &Self::Planned, sites: &Sites<M>) -> Result<Verdict> {
        self.0[*of].run(planned, sites)
    }
}

#[cfg(test)]
mod tests {
    use super::{Case as _, *};
    use crate::case::Case;

    #[test]
    fn a_failing_program_is_made_small() {
        // The second evaluator gets one function wrong.
        let tools = Tools::default();
        let failing = (0..500).map(|seed| Case { faulty: true, ..Case::new(seed) }).find_map(|case| {
            let failure = failure_of(&case, &tools).expect("nothing to fail")?;
            (Case::program(case.seed).size() > 40).then_some((case, failure))
        });
        let (case, failure) = failing.expect("some program of some size uses the function");
        assert!(matches!(failure, Failure::Value(_)), "{failure}");
        let (small, failure) = shrink(case, failure, &tools, None).expect("nothing to fail");
        println!("{failure}\n{}\n{}", small.command("small.stn"), small.text);
        assert!(matches!(failure, Failure::Value(_)), "{failure}");
        // An output and an assignment of the function, and what it needs.
        assert!(small.text.contains("ceil("), "{}", small.text);
        assert!(small.text.lines().count() <= 7 && small.text.len() < 120, "{}", small.text);
        assert!(failure_of(&small, &tools).expect("nothing to fail").is_some_and(|own| own.is_like(&failure)));
    }
}
