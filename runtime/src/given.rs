//! What users give to compute with: arrays for fields, and texts for parameters. Every number from outside goes through here,
//! whichever way it comes: `--in`, the file of a mesh or of a grid, `--set`. It is taken as it is or refused, unless somebody
//! said that it may lose precision; then it still has to be a number of its field's type.

use crate::array::{Array, Data, Element};
use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::str::FromStr;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Kind, Param, Precision};

/// What may happen to the numbers of an array whose type is not its field's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cast {
    /// Nothing: each stays the number that it is.
    Exact,
    /// They may be rounded to single precision: for what measures or compares, and chooses the precision itself.
    Rounded,
    /// They may lose precision, since the user says so.
    Allowed,
}

/// Which array is meant, for messages.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// The field that it is for.
    pub field: &'a str,
    /// What holds its numbers: "the array", or a file.
    pub holder: &'a str,
}

/// Whether arrays have as many numbers as their shapes say: before anybody looks at the shapes.
///
/// # Errors
/// One has not.
pub fn lengths(arrays: &BTreeMap<String, Array>) -> Result<()> {
    arrays.iter().try_for_each(|(name, array)| array.check(&format!("the array of `{name}`")))
}

/// The numbers of an array as those of a field.
///
/// # Errors
/// It has more or fewer than its shape says; its type has numbers that the field's has not, and `cast` does not let them change; or the array holds one that is none of the
/// field's type even if precision is lost: NaN in a whole field, 1e39 in single precision.
pub fn array(array: Array, given: Given, element: Element, cast: Cast) -> Result<Data> {
    rows(array, 0, given, element, cast)
}

/// The same of some rows of an array, from this one on: messages tell places in all of it.
///
/// # Errors
/// As [`array`].
pub(crate) fn rows(array: Array, first: usize, given: Given, element: Element, cast: Cast) -> Result<Data> {
    array.check(&format!("the array of `{}`", given.field))?;
    let Array { shape, data } = array;
    let own = data.element();
    if own == element {
        return Ok(data);
    }
    let is_exact = matches!((own, element), (Element::F32 | Element::I32, Element::F64));
    let is_rounded = matches!((own, element), (Element::F64 | Element::I32, Element::F32));
    let may_be = match cast {
        Cast::Exact => is_exact,
        Cast::Rounded => is_exact || is_rounded,
        Cast::Allowed => true,
    };
    if !may_be {
        return Err(another_type(given, own, element, cast));
    }
    let numbers = || (0..data.len()).map(|index| data.get(index));
    if let Some(at) = numbers().position(|number| !has(element, number)) {
        return Err(no_such_number(given, data.get(at), &index(at, &shape, first), element));
    }
    Ok(match element {
        Element::F32 => Data::F32(numbers().map(|x| x as f32).collect()),
        Element::F64 => Data::F64(numbers().collect()),
        Element::I32 => Data::I32(numbers().map(|x| x as i32).collect()),
        Element::Bool => Data::Bool(numbers().map(|x| u8::from(x != 0.0)).collect()),
    })
}

/// Whether a type has a number, or one beside it that lacks nothing but digits.
fn has(element: Element, number: f64) -> bool {
    match element {
        Element::F64 => true,
        Element::F32 => !number.is_finite() || (number as f32).is_finite(),
        Element::I32 => (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number.trunc()),
        Element::Bool => number.is_finite(),
    }
}

fn another_type(Given { field, holder }: Given, own: Element, element: Element, cast: Cast) -> Error {
    let error = Error::input(format!("`{field}` is stored as {}, {holder} holds {}", element.name(), own.name()));
    error.help(match (own, element) {
        _ if cast == Cast::Rounded => "declare it as it is there, or save it as it is declared",
        (_, Element::Bool) => {
            "save it as truth values, in NumPy by `.astype(bool)`; or give --cast, which takes 0 for false"
        }
        (Element::F64, Element::F32) => "give --cast to round it; or --precision f64, if the field is `real`",
        (Element::F32 | Element::F64, Element::I32) => "give --cast to convert it, which cuts fractions off",
        _ => "give --cast to convert it, which may round",
    })
}

fn no_such_number(Given { field, .. }: Given, number: f64, place: &str, element: Element) -> Error {
    let (what, help) = match element {
        Element::F32 | Element::F64 => (
            "single precision ends at 3.4e38",
            "scale the numbers, or store the field in double precision: --precision f64, if it is `real`",
        ),
        Element::I32 => ("an `int` is a whole number of 32 bits", OTHERS),
        Element::Bool => ("a `bool` is true or false", OTHERS),
    };
    Error::input(format!("`{field}` holds {number:?} at {place}, and {what}")).help(help)
}

const OTHERS: &str = "precision may be lost by --cast, and no more: put other numbers there before saving";

/// The place of an element as NumPy writes it, `[0, 3, 7]`, of an array whose rows are those from one on.
fn index(at: usize, shape: &[usize], first_row: usize) -> String {
    let mut left = at;
    let mut places: Vec<String> = Vec::new();
    for (axis, &length) in shape.iter().rev().enumerate() {
        let before = if axis == 1 { first_row } else { 0 };
        places.push((before + left % length.max(1)).to_string());
        left /= length.max(1);
    }
    places.reverse();
    format!("[{}]", places.join(", "))
}

/// The value of a parameter, from its text, in the precision that is chosen.
///
/// # Errors
/// The text is no value of the parameter's kind, is not finite, or is a number that the precision makes infinite or 0.
pub fn parameter(param: &Param, text: &str, precision: Precision) -> Result<Value> {
    let text = text.trim();
    let none = |expected: &str| {
        let error = Error::call(format!("`{text}` is no value for the parameter `{}`", param.name));
        error.help(match fraction(text) {
            // Of large numbers not every digit.
            Some(value) if param.kind == Kind::Real => format!("nothing is computed here: give {value:?}"),
            Some(value) if param.kind == Kind::Int && f64::from(value as i32) == value => {
                format!("nothing is computed here: give {value}")
            }
            _ => format!("give {expected}"),
        })
    };
    match param.kind {
        Kind::Real => {
            let number = text.parse().map_err(|_| none("a number such as 0.5"))?;
            let precision = if param.is_single { Precision::F32 } else { precision };
            real(param, text, number, precision).map(Value::Real)
        }
        Kind::Int => text.parse().map(Value::Int).map_err(|_| none("a whole number of 32 bits such as 3")),
        Kind::Bool => text.parse().map(Value::Bool).map_err(|_| none("true or false")),
    }
}

/// Refuses what a test sets a parameter to, where the precision that is chosen makes it infinite.
///
/// # Errors
/// The number is not finite.
pub fn set(name: &str, value: Value, precision: Precision) -> Result<()> {
    match value {
        Value::Real(number) if !number.is_finite() => {
            let (what, bounds) = bounds(precision);
            Err(Error::input(format!("what the test sets the parameter `{name}` to is not finite in {what}"))
                .help(format!("set it to a number in its range: {bounds}")))
        }
        _ => Ok(()),
    }
}

/// The name of a precision, and the positive numbers that it has.
fn bounds(precision: Precision) -> (&'static str, &'static str) {
    match precision {
        Precision::F64 => ("double precision", "from about 5e-324 to 1.8e308"),
        Precision::F32 => ("single precision", "from about 1e-45 to 3.4e38; or --precision f64"),
    }
}

/// A real number of a text file: one that double precision has, be it after rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Real(pub f64);

impl FromStr for Real {
    type Err = ();

    fn from_str(text: &str) -> std::result::Result<Self, ()> {
        let number: f64 = text.parse().map_err(|_| ())?;
        let is_written_as_number = mantissa(text).contains(|c: char| c.is_ascii_digit());
        let is_lost = !number.is_finite() && is_written_as_number || number == 0.0 && !is_zero(text);
        if is_lost { Err(()) } else { Ok(Self(number)) }
    }
}

fn mantissa(text: &str) -> &str {
    text.split(['e', 'E']).next().unwrap_or_default()
}

/// Whether a number that was written so is 0, and not only rounded to it.
fn is_zero(text: &str) -> bool {
    !mantissa(text).contains(|c: char| c.is_ascii_digit() && c != '0')
}

/// The value of `1/3`.
fn fraction(text: &str) -> Option<f64> {
    let (above, below) = text.split_once('/')?;
    let number = |text: &str| text.trim().parse::<f64>().ok();
    Some(number(above)? / number(below)?).filter(|value| value.is_finite())
}

/// A real number that was written as `text`, rounded to the precision.
fn real(param: &Param, text: &str, number: f64, precision: Precision) -> Result<f64> {
    let name = &param.name;
    if !number.is_finite() && !mantissa(text).contains(|c: char| c.is_ascii_digit()) {
        return Err(Error::call(format!("`{text}` is no value for the parameter `{name}`: it is not finite"))
            .help("give a number such as 0.5"));
    }
    let (what, bounds) = bounds(precision);
    let rounded = match precision {
        Precision::F64 => number,
        Precision::F32 => f64::from(number as f32),
    };
    let lost = match rounded {
        x if !x.is_finite() => "large",
        0.0 if !is_zero(text) => "small",
        _ => return Ok(rounded),
    };
    Err(Error::call(format!("`{text}` is too {lost} for the parameter `{name}` in {what}"))
        .help(format!("give a number in its range: {bounds}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stencilc_compiler::source::Span;

    fn taken(data: Data, element: Element, cast: Cast) -> std::result::Result<Data, String> {
        let shape = vec![data.len() / 2, 2];
        let given = Given { field: "a", holder: "the array" };
        array(Array { shape, data }, given, element, cast).map_err(|error| error.message)
    }

    #[test]
    fn a_number_of_a_text_is_as_it_is_written() {
        for (text, number) in
            [("0.1", Some(0.1)), ("-0e5", Some(-0.0)), ("5e-324", Some(5e-324)), ("1e-400", None), ("1e999", None)]
        {
            assert_eq!(text.parse::<Real>().ok().map(|real| real.0), number, "{text}");
        }
        assert!("nan".parse::<Real>().is_ok_and(|real| real.0.is_nan()), "whoever takes it judges that");
        assert!("x".parse::<Real>().is_err());
    }

    /// Two numbers of each type.
    fn two(element: Element) -> Data {
        match element {
            Element::F32 => Data::F32(vec![0.5, 1.0]),
            Element::F64 => Data::F64(vec![0.1, 1.0]),
            Element::I32 => Data::I32(vec![3, 1]),
            Element::Bool => Data::Bool(vec![0, 1]),
        }
    }

    const ALL: [Element; 4] = [Element::F32, Element::F64, Element::I32, Element::Bool];

    #[test]
    fn each_type_goes_into_each_or_is_refused() {
        for own in ALL {
            for element in ALL {
                let exact = own == element || matches!((own, element), (Element::F32 | Element::I32, Element::F64));
                let rounded = exact || element == Element::F32 && own != Element::Bool;
                for (cast, may_be) in [(Cast::Exact, exact), (Cast::Rounded, rounded), (Cast::Allowed, true)] {
                    let found = taken(two(own), element, cast);
                    assert_eq!(found.is_ok(), may_be, "{own:?} as {element:?}, {cast:?}: {found:?}");
                    assert!(found.is_err() || found.unwrap().element() == element);
                }
            }
        }
    }

    #[test]
    fn precision_may_be_lost_and_numbers_may_not() {
        let cast = |numbers: &[f64], element| taken(Data::F64(numbers.to_vec()), element, Cast::Allowed);
        assert_eq!(
            cast(&[0.75, -1.5, 2147483647.9, -2147483648.9], Element::I32),
            Ok(Data::I32(vec![0, -1, i32::MAX, i32::MIN]))
        );
        assert_eq!(cast(&[0.0, 0.25], Element::Bool), Ok(Data::Bool(vec![0, 1])));
        assert_eq!(cast(&[0.1, 1e-60], Element::F32), Ok(Data::F32(vec![0.1, 0.0])));
        assert_eq!(cast(&[f64::NEG_INFINITY, 1.0], Element::F32), Ok(Data::F32(vec![f32::NEG_INFINITY, 1.0])));
        let int = "an `int` is a whole number of 32 bits";
        for (number, shown) in
            [(f64::NAN, "NaN"), (f64::INFINITY, "inf"), (3e9, "3000000000.0"), (-2147483649.0, "-2147483649.0")]
        {
            let expected = format!("`a` holds {shown} at [1, 0], and {int}");
            assert_eq!(cast(&[0.0, 1.0, number, 1.0], Element::I32), Err(expected));
        }
        for number in [f64::NAN, f64::NEG_INFINITY] {
            assert!(
                cast(&[0.0, number], Element::Bool).unwrap_err().contains("at [0, 1], and a `bool` is true or false")
            );
        }
        for cast in [Cast::Rounded, Cast::Allowed] {
            let found = taken(Data::F64(vec![1.0, -1e39]), Element::F32, cast);
            assert_eq!(found, Err("`a` holds -1e39 at [0, 1], and single precision ends at 3.4e38".to_owned()));
        }
    }

    #[test]
    fn parameters_are_what_their_text_says() {
        let param = |kind| Param {
            name: "p".to_owned(),
            doc: stencilc_compiler::text::FreeText::default(),
            kind,
            is_single: false,
            default: None,
            span: Span::default(),
        };
        let value = |kind, text, precision| parameter(&param(kind), text, precision).map_err(|error| error.message);
        let real = |text, precision| value(Kind::Real, text, precision);
        assert_eq!(real(" 0.1 ", Precision::F64), Ok(Value::Real(0.1)));
        assert_eq!(real("0.1", Precision::F32), Ok(Value::Real(f64::from(0.1_f32))));
        assert_eq!(real("-0e-999", Precision::F32), Ok(Value::Real(-0.0)));
        assert_eq!(real("1e-45", Precision::F32), Ok(Value::Real(f64::from(f32::from_bits(1)))));
        for text in ["nan", "-NaN", "inf", "-infinity", "+inf"] {
            let found = real(text, Precision::F64);
            assert_eq!(found, Err(format!("`{text}` is no value for the parameter `p`: it is not finite")));
        }
        for (text, what) in [("1e999", "large"), ("-1e309", "large"), ("1e-400", "small")] {
            let found = real(text, Precision::F64);
            assert_eq!(found, Err(format!("`{text}` is too {what} for the parameter `p` in double precision")));
        }
        for (text, what) in [("1e39", "large"), ("1e-60", "small"), ("1e-400", "small")] {
            let found = real(text, Precision::F32);
            assert_eq!(found, Err(format!("`{text}` is too {what} for the parameter `p` in single precision")));
        }
        assert_eq!(value(Kind::Int, "-3", Precision::F64), Ok(Value::Int(-3)));
        for (kind, text) in [(Kind::Int, "3.0"), (Kind::Int, "2147483648"), (Kind::Bool, "1"), (Kind::Real, "much")] {
            let found = value(kind, text, Precision::F64);
            assert_eq!(found, Err(format!("`{text}` is no value for the parameter `p`")));
        }
        let computed = [
            (Kind::Real, "1/4", "nothing is computed here: give 0.25"),
            (Kind::Real, "1e300/2", "nothing is computed here: give 5e299"),
            (Kind::Int, "8/2", "nothing is computed here: give 4"),
            (Kind::Int, "1e300/2", "give a whole number of 32 bits such as 3"),
            (Kind::Int, "1/2", "give a whole number of 32 bits such as 3"),
        ];
        for (kind, text, help) in computed {
            assert_eq!(parameter(&param(kind), text, Precision::F64).unwrap_err().help.as_deref(), Some(help));
        }
    }
}
