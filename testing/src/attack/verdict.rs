//! What is said of a text under attack.

use super::code::{READINGS, without_comments};
use super::texts::Case;
use super::through::{Processed, take};
use std::panic::catch_unwind;

/// The stack of a thread that a text is taken through: that of threads that nobody chose one for.
const STACK: usize = 2 << 20;

/// What became of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was refused, with a message.
    Refused,
    /// It was accepted, and so many texts were made of it.
    Made(usize),
}

/// Attacks the compiler with a text, on a thread of its own. A stack that overflows takes the process with it.
///
/// # Errors
/// What should not be.
pub fn attack(case: &Case) -> Result<Outcome, String> {
    let case = case.clone();
    let work = move || catch_unwind(|| answer(&case)).unwrap_or_else(|why| Err(format!("a panic: {}", said(&*why))));
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(work);
    thread.map_err(|error| error.to_string())?.join().unwrap_or_else(|why| Err(format!("a panic: {}", said(&*why))))
}

/// What a panic said.
fn said(why: &(dyn std::any::Any + Send)) -> &str {
    let text = why.downcast_ref::<&str>().copied();
    text.or_else(|| why.downcast_ref::<String>().map(String::as_str)).unwrap_or("nothing")
}

fn answer(case: &Case) -> Result<Outcome, String> {
    let own = take(&case.name, &case.text, case.seed)?;
    if case.text == case.plain && case.name == "a.stn" {
        return Ok(outcome(&own));
    }
    let plain = take("a.stn", &case.plain, case.seed)?;
    // Some comments hold characters that no text may hold, and then nothing is made.
    if own.is_right == plain.is_right && !own.made.is_empty() {
        same_code(&own, &plain)?;
    }
    Ok(outcome(&own))
}

fn outcome(taken: &Processed) -> Outcome {
    if taken.is_right { Outcome::Made(taken.made.len()) } else { Outcome::Refused }
}

/// Whether compilers see the same in what was made of two texts that differ in comments.
fn same_code(own: &Processed, plain: &Processed) -> Result<(), String> {
    if own.made.len() != plain.made.len() {
        return Err(format!("{} texts are made, and {} without the comments", own.made.len(), plain.made.len()));
    }
    for ((name, own), (_, plain)) in own.made.iter().zip(&plain.made) {
        for reading in READINGS {
            let (own, plain) = (without_comments(own, reading), without_comments(plain, reading));
            if own != plain {
                let differs = own.lines().zip(plain.lines()).find(|(own, plain)| own != plain);
                let line = differs.map_or("more lines", |(own, _)| own);
                return Err(format!("a comment becomes code in {name}, {reading:?}: {line}"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_that_becomes_code_is_told() {
        let made = |text: &str| Processed { is_right: true, made: vec![("a.cu".to_owned(), text.to_owned())] };
        assert_eq!(same_code(&made("/* x */ int y;"), &made("/* z */ int y; // more")), Ok(()));
        let told = same_code(&made("/* x */ int z; /* */ int y;"), &made("/* x */ int y;")).unwrap_err();
        assert!(told.contains("a comment becomes code in a.cu") && told.ends_with("int z; int y;"), "{told}");
        let told = same_code(&made("// x \\\nint y;\nint z;"), &made("// x\nint y;\nint z;")).unwrap_err();
        assert!(told.contains("trigraphs: false"), "{told}");
        assert!(same_code(&made("// x ??/\nint y;"), &made("// x\nint y;")).unwrap_err().contains("trigraphs: true"));
    }

    #[test]
    fn panics_are_told() {
        assert_eq!(said(&"why"), "why");
        assert_eq!(said(&"why".to_owned()), "why");
        assert_eq!(said(&1), "nothing");
    }
}
