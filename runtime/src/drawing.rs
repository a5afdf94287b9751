//! What is drawn at random where it is not given, and what is an error instead.

use crate::array::{Data, Element};
use crate::error::{Error, Result};
use crate::random;
use stencilc_compiler::diagnostic::guess;

/// What is drawn at random where it is not given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drawing {
    /// Nothing: every input is given, or missing.
    Nothing,
    /// The inputs of these names, whether or not a file has them.
    Named(Vec<String>),
    /// Every input that is not given.
    Inputs,
    /// Parameters without a value, too, and what outputs hold before: for what measures or compares.
    Everything,
}

impl Drawing {
    /// Whether an input of this name was asked for by its name.
    pub fn names(&self, input: &str) -> bool {
        match self {
            Drawing::Named(names) => names.iter().any(|name| name == input),
            Drawing::Nothing | Drawing::Inputs | Drawing::Everything => false,
        }
    }

    /// Whether all that names can be drawn; `inputs` are those that there are, `given` those that were given by their names.
    /// `subject` has them: "stencil `laplap`".
    ///
    /// # Errors
    /// A name is no input's, or that of an input that was given.
    pub fn check(&self, subject: &str, inputs: &[&str], given: impl Fn(&str) -> bool) -> Result<()> {
        let Drawing::Named(names) = self else { return Ok(()) };
        for name in names {
            if !inputs.contains(&name.as_str()) {
                let error = Error::call(format!("{subject} has no input `{name}` to draw"));
                return Err(match guess(name, inputs.iter().copied()) {
                    Some(guess) => error.help(format!("did you mean `{guess}`?")),
                    None if inputs.is_empty() => error.help("it has none"),
                    None => error.help(format!("its inputs are {}", inputs.join(", "))),
                });
            }
            if given(name) {
                return Err(
                    Error::call(format!("--draw names `{name}`, which --in gives")).help("leave out one of the two")
                );
            }
        }
        Ok(())
    }

    /// Whether an input that is not given is drawn.
    pub fn draws(&self, name: &str) -> bool {
        match self {
            Drawing::Nothing | Drawing::Named(_) => self.names(name),
            Drawing::Inputs | Drawing::Everything => true,
        }
    }

    /// Whether inputs that nobody gave can all be drawn. `beside` is where else they might have been: ", and `m.npz` has none".
    ///
    /// # Errors
    /// Some are not to be drawn; the error names them all.
    pub fn check_missing(&self, missing: &[&str], beside: &str) -> Result<()> {
        let is_drawn = match self {
            Drawing::Nothing | Drawing::Named(_) => false,
            Drawing::Inputs | Drawing::Everything => true,
        };
        let missing: Vec<&str> = missing.iter().copied().filter(|name| !is_drawn && !self.names(name)).collect();
        let files: Vec<String> = missing.iter().map(|name| format!("--in {name}={name}.npy")).collect();
        let files = files.join(" ");
        // Who has named some means those, too.
        let named = match self {
            Drawing::Named(names) => names.iter().map(String::as_str).collect(),
            Drawing::Nothing | Drawing::Inputs | Drawing::Everything => Vec::new(),
        };
        let drawn = [named.as_slice(), missing.as_slice()].concat().join(",");
        Err(match missing.as_slice() {
            [] => return Ok(()),
            [one] => Error::call(format!("the input `{one}` is not given{beside}")).help(match named.is_empty() {
                true => format!("give it: {files}; or let it be drawn at random: --draw"),
                false => format!("give it: {files}; or let it be drawn at random, too: --draw={drawn}"),
            }),
            all => Error::call(format!("the inputs `{}` are not given{beside}", all.join("`, `")))
                .help(format!("give them: {files}; or let them be drawn at random: --draw, or --draw={drawn}")),
        })
    }
}

/// Random numbers for a field, `len` of them: in the range that it declares, or the usual one.
///
/// # Errors
/// Its type has no number in the range, or not all of it.
pub(crate) fn draw(range: Option<(f64, f64)>, element: Element, len: usize, seed: u64, name: &str) -> Result<Data> {
    draw_some(range, element, (len, &|index| index), seed, name)
}

/// The same for some elements of the field alone: so many, with the indices that they have there.
///
/// # Errors
/// As [`draw`].
pub(crate) fn draw_some(
    range: Option<(f64, f64)>,
    element: Element,
    some: (usize, &(dyn Fn(usize) -> usize + Sync)),
    seed: u64,
    name: &str,
) -> Result<Data> {
    let (low, high) = range.unwrap_or(if element == Element::I32 { (0.0, 10.0) } else { (-1.0, 1.0) });
    check_range(low, high, element, name)?;
    Ok(random::fill_some(element, some, (low, high), seed, name))
}

/// Whether a type has numbers from `low` on and below `high`, and reaches to both.
fn check_range(low: f64, high: f64, element: Element, name: &str) -> Result<()> {
    let ends = |most: f64| low < -most || high > most;
    let (is_beyond, is_empty, what, least) = match element {
        Element::F64 | Element::Bool => return Ok(()),
        Element::F32 => {
            let single = low as f32;
            let first = if f64::from(single) < low { single.next_up() } else { single };
            (ends(f32::MAX.into()), f64::from(first) >= high, "single precision", "its numbers end at 3.4e38")
        }
        // The upper bound is not drawn.
        Element::I32 => {
            let is_beyond = low < i32::MIN.into() || high > f64::from(i32::MAX) + 1.0;
            (is_beyond, low.ceil() >= high, "an `int`", "it has 32 bits")
        }
    };
    let error = || Error::input(format!("`{name}` is drawn from {low:?}..{high:?}, which is no range of {what}"));
    let help = match element {
        Element::F32 => "declare another range, or take --precision f64 if the field is `real`",
        Element::F64 | Element::I32 | Element::Bool => "declare another range",
    };
    match (is_beyond, is_empty) {
        (false, false) => Ok(()),
        (true, _) => Err(error().help(format!("{least}: {help}"))),
        (false, true) => Err(error().help(format!("it has no number there: {help}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_unless_it_is_drawn() {
        let named = |names: &[&str]| Drawing::Named(names.iter().map(|name| (*name).to_owned()).collect());
        let said = |drawing: &Drawing| drawing.check_missing(&["b", "c"], "").map_err(|error| error.message);
        assert_eq!(said(&Drawing::Nothing), Err("the inputs `b`, `c` are not given".to_owned()));
        assert_eq!(said(&named(&["b"])), Err("the input `c` is not given".to_owned()));
        let advice = |drawing: &Drawing| drawing.check_missing(&["b", "c"], "").unwrap_err().help.unwrap_or_default();
        assert!(advice(&Drawing::Nothing).ends_with("--draw, or --draw=b,c"));
        assert!(advice(&named(&["b"])).ends_with("too: --draw=b,c"));
        for drawing in [named(&["c", "b"]), Drawing::Inputs, Drawing::Everything] {
            assert_eq!(said(&drawing), Ok(()));
        }
        let check = |names: &[&str]| {
            let checked = named(names).check("stencil `s`", &["a", "long_name"], |name| name == "a");
            checked.map_err(|error| (error.message, error.help.unwrap_or_default()))
        };
        assert_eq!(check(&["long_name"]), Ok(()));
        assert!(check(&["a"]).unwrap_err().0.contains("which --in gives"));
        assert_eq!(check(&["long_nam"]).unwrap_err().1, "did you mean `long_name`?");
    }

    #[test]
    fn ranges_are_those_of_the_type() {
        let can = |element, low, high| draw(Some((low, high)), element, 3, 1, "a").is_ok();
        let largest = f64::from(f32::MAX);
        for (element, low, high, expected) in [
            (Element::F64, -1e300, 1e300, true),
            (Element::F32, -1e38, 1e38, true),
            (Element::F32, -largest, largest, true),
            (Element::F32, 1e39, 1e40, false),
            (Element::F32, 0.0, 1e39, false),
            (Element::F32, -1e39, 0.0, false),
            (Element::F32, 1e-60, 2e-60, false),
            (Element::F32, 0.0, 1e-60, true),
            (Element::F32, 1.0 + 1e-12, 1.0 + 2e-12, false),
            (Element::F32, 1.0, 1.0 + 1e-12, true),
            (Element::I32, 0.2, 0.8, false),
            (Element::I32, 0.2, 1.2, true),
            (Element::I32, 0.0, 3e9, false),
            (Element::I32, -2147483648.0, 2147483648.0, true),
            (Element::I32, 3e9, 4e9, false),
        ] {
            assert_eq!(can(element, low, high), expected, "{element:?} {low}..{high}");
        }
    }
}
