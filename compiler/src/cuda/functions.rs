//! The functions of [`crate::math`] as C++: the same text, with the words of the other language.
//!
//! The text keeps to what both languages share: `let`, an `if` that holds nothing but a `return`, calls, operators, structs
//! built from variables of their fields' names, tables of numbers. What is called by the same name in all of it gets the prefix `real_` here.

use crate::ir::Precision;
use std::collections::BTreeSet;

/// What the functions are made of, as C++ has it: name, text. `REAL` and `BITS` stand for the types of the chosen precision.
const OPERATIONS: &[(&str, &str)] = &[
    (
        "real_choose",
        "template <class T> STENCILC_FUNCTION T real_choose(bool condition, T yes, T no) { return condition ? yes : no; }",
    ),
    (
        "real_entry",
        "template <int N> STENCILC_FUNCTION double real_entry(const double (&table)[2][N], bool second, int n)
{
    return table[second][n];
}",
    ),
    ("real_digits_of", "union real_digits_of { REAL number; BITS digits; };"),
    ("real_low", "STENCILC_FUNCTION int real_low(REAL x) { return int(real_digits_of{x}.digits - LARGE); }"),
    (
        "real_power_of_two",
        "STENCILC_FUNCTION REAL real_power_of_two(int k)
{
    const BITS digits = unsigned(k);
    real_digits_of power;
    power.digits = (digits << SHIFT) + ONE;
    return power.number;
}",
    ),
    (
        "real_exponent",
        "STENCILC_FUNCTION int real_exponent(REAL x)
{
    const SIGNED digits = real_digits_of{x}.digits - LEAST;
    return int(digits >> SHIFT);
}",
    ),
    (
        "real_mantissa",
        "STENCILC_FUNCTION REAL real_mantissa(REAL x)
{
    real_digits_of mantissa = {x};
    mantissa.digits -= (mantissa.digits - LEAST) >> SHIFT << SHIFT;
    return mantissa.number;
}",
    ),
    (
        "real_inverse_root_f64",
        "STENCILC_FUNCTION double real_inverse_root_f64(double x)
{
    real_digits_of root = {x};
    const BITS high = 1430186309u - unsigned(root.digits >> 32) / 3;
    root.digits = high << 32;
    return root.number;
}",
    ),
    (
        "real_inverse_root_f32",
        "STENCILC_FUNCTION float real_inverse_root_f32(float x)
{
    real_digits_of root = {x};
    root.digits = 1419900111u - root.digits / 3;
    return root.number;
}",
    ),
    (
        "real_bits",
        "STENCILC_FUNCTION unsigned long long real_bits(double x)
{
    union { double number; unsigned long long digits; } all = {x};
    return all.digits;
}",
    ),
    (
        "real_number",
        "STENCILC_FUNCTION double real_number(unsigned long long digits)
{
    union { unsigned long long digits; double number; } all = {digits};
    return all.number;
}",
    ),
    (
        "real_sum",
        "STENCILC_FUNCTION unsigned long long real_sum(unsigned long long a, unsigned long long b) { return a + b; }",
    ),
    (
        "real_product",
        "STENCILC_FUNCTION unsigned long long real_product(unsigned long long a, unsigned long long b) { return a * b; }",
    ),
    (
        "real_product_high",
        "STENCILC_FUNCTION unsigned long long real_product_high(unsigned long long a, unsigned long long b)
{
    const unsigned long long a0 = unsigned(a), a1 = a >> 32, b0 = unsigned(b), b1 = b >> 32;
    const unsigned long long middle = a1 * b0 + (a0 * b0 >> 32);
    return a1 * b1 + (middle >> 32) + ((unsigned(middle) + a0 * b1) >> 32);
}",
    ),
];

/// Words of the text that C++ writes otherwise, in double and in single precision.
const WORDS: &[(&str, &str, &str)] = &[
    ("f64", "double", "double"),
    ("f32", "float", "float"),
    ("i32", "int", "int"),
    ("u64", "unsigned long long", "unsigned long long"),
    ("let", "const auto", "const auto"),
    ("INFINITY", "(1.0 / 0.0)", "(1.0f / 0.0f)"),
    ("NAN", "nan(\"\")", "nanf(\"\")"),
];

/// What is called in the text, and what C++ has for it.
const CALLS: &[(&str, &str, &str)] = &[
    ("fma", "fma", "fmaf"),
    ("abs", "fabs", "fabsf"),
    ("floor", "floor", "floorf"),
    ("copysign", "copysign", "copysignf"),
    ("real", "double", "float"),
    ("whole", "int", "int"),
    ("real_of", "double", "double"),
    ("widened", "double", "double"),
    ("narrowed", "float", "float"),
    ("complement", "~", "~"),
];

/// What every function's name begins with, to be no other's.
const PREFIX: &str = "real_";

/// A function or type, and what it is called.
struct Item {
    name: String,
    lines: Vec<String>,
}

/// The lines of the functions in `used`, and of all that they call.
pub fn functions(used: &BTreeSet<&'static str>, precision: Precision) -> Vec<String> {
    let mut items: Vec<Item> = OPERATIONS.iter().map(|(name, text)| operation(name, text, precision)).collect();
    items.extend(translated(include_str!("../math/turn.rs"), Precision::F64));
    items.extend(translated(include_str!("../math/wide.rs"), Precision::F64));
    items.extend(match precision {
        Precision::F64 => translated(include_str!("../math/double.rs"), precision),
        Precision::F32 => translated(include_str!("../math/single.rs"), precision),
    });
    // What is called stands before its callers.
    let mut wanted: BTreeSet<String> = used.iter().map(|&name| name.to_owned()).collect();
    let mut needed = Vec::new();
    for item in items.into_iter().rev() {
        if wanted.contains(&item.name) {
            for line in item.lines.iter().filter(|line| !line.starts_with("//")) {
                wanted.extend(words(line).map(|(word, _)| word.to_owned()));
            }
            needed.push(item.lines);
        }
    }
    needed.into_iter().rev().flatten().collect()
}

fn operation(name: &str, text: &str, precision: Precision) -> Item {
    let own = match precision {
        Precision::F64 => [
            ("REAL", "double"),
            ("BITS", "unsigned long long"),
            ("SIGNED", "long long"),
            ("SHIFT", "52"),
            ("ONE", "0x3ff0000000000000"),
            ("LEAST", "0x3fe6a09e667f3bcd"),
            ("LARGE", "0x4338000000000000"),
        ],
        Precision::F32 => [
            ("REAL", "float"),
            ("BITS", "unsigned"),
            ("SIGNED", "int"),
            ("SHIFT", "23"),
            ("ONE", "0x3f800000"),
            ("LEAST", "0x3f3504f3"),
            ("LARGE", "0x4b400000"),
        ],
    };
    let text = own.iter().fold(text.to_owned(), |text, (word, own)| text.replace(word, own));
    Item { name: name.to_owned(), lines: text.lines().map(str::to_owned).collect() }
}

/// The functions and types of a text, in its order.
fn translated(text: &str, precision: Precision) -> Vec<Item> {
    let mut items = Vec::new();
    let (mut comments, mut is_far) = (Vec::new(), false);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(comment) = line.strip_prefix("///") {
            comments.push(format!("//{comment}"));
        } else if let Some(head) = line.strip_prefix("pub ") {
            let body: Vec<&str> = lines.by_ref().take_while(|&line| line != "}").collect();
            let (name, mut own) = match head.strip_prefix("struct ") {
                Some(head) => structure(head, &body, precision),
                None => function(head, &body, precision, is_far),
            };
            let mut lines = std::mem::take(&mut comments);
            lines.append(&mut own);
            items.push(Item { name, lines });
            is_far = false;
        }
        is_far |= line == "#[cold]";
    }
    items
}

/// `Angle {`, then fields.
fn structure(head: &str, fields: &[&str], precision: Precision) -> (String, Vec<String>) {
    let mut lines = vec![format!("struct {head}")];
    for field in fields {
        let field = field.trim().trim_start_matches("pub ").trim_end_matches(',');
        let (name, kind) = field.split_once(": ").unwrap_or_default();
        lines.push(format!("    {} {name};", phrase(kind, precision)));
    }
    lines.push("};".to_owned());
    (head.trim_end_matches(" {").to_owned(), lines)
}

/// `fn exp(x: f64) -> f64 {`, then statements, the last of which is the result.
fn function(head: &str, body: &[&str], precision: Precision, is_far: bool) -> (String, Vec<String>) {
    let (name, rest) = head.trim_start_matches("fn ").split_once('(').unwrap_or_default();
    let (parameters, result) = rest.trim_end_matches(" {").split_once(") -> ").unwrap_or_default();
    let parameters = parameters.split(", ").filter_map(|parameter| parameter.split_once(": "));
    let parameters = parameters.map(|(name, kind)| format!("{} {name}", phrase(kind, precision)));
    let name = format!("{PREFIX}{name}");
    let linkage = if is_far { "STENCILC_FAR_FUNCTION" } else { "STENCILC_FUNCTION" };
    let result = phrase(result, precision);
    let mut lines =
        vec![format!("{linkage} {result} {name}({})", parameters.collect::<Vec<_>>().join(", ")), "{".into()];
    // What stands after the last statement is the result.
    let last = body.iter().rposition(|line| line.ends_with(';') || line.trim() == "}").map_or(0, |last| last + 1);
    let mut statements = body.iter().enumerate();
    while let Some((number, line)) = statements.next() {
        let text = phrase(line, precision).replace("const auto mut ", "auto ");
        if line.trim_start().starts_with("const ") {
            let rows = statements.by_ref().map(|(_, row)| *row).take_while(|&row| row != "    ];");
            lines.extend(table(line, rows, precision));
            continue;
        }
        let condition = text.trim_start().strip_prefix("if ").and_then(|rest| rest.strip_suffix(" {"));
        lines.push(match condition {
            Some(condition) => {
                // One statement, a return, and the brace after it.
                let early = statements.next().map_or("", |(_, line)| line.trim());
                statements.next();
                format!("    if ({condition}) {}", phrase(early, precision))
            }
            None if number == last => format!("    return {}", text.trim_start()),
            None => text,
        });
    }
    if let Some(result) = lines.last_mut() {
        result.push(';');
    }
    lines.push("}".to_owned());
    (name, lines)
}

/// `const SERIES: [[f64; 6]; 2] = [`, then rows of numbers. Aligned for loads of two at once.
fn table<'a>(head: &str, rows: impl Iterator<Item = &'a str>, precision: Precision) -> Vec<String> {
    let (name, kind) = head.trim_start().trim_start_matches("const ").split_once(": ").unwrap_or_default();
    let kind: Vec<&str> = kind.split(['[', ']', ';', ' ', '=']).filter(|word| !word.is_empty()).collect();
    let (element, extents) = kind.split_first().unwrap_or((&"", &[]));
    let extents: String = extents.iter().rev().map(|extent| format!("[{extent}]")).collect();
    let mut lines = vec![format!("    alignas(16) static const {} {name}{extents} = {{", phrase(element, precision))];
    lines.extend(rows.map(|row| phrase(row, precision).replace('[', "{").replace(']', "}")));
    lines.push("    };".into());
    lines
}

/// A piece of the text, with C++'s words.
fn phrase(text: &str, precision: Precision) -> String {
    if text.trim_start().starts_with("//") {
        return text.to_owned();
    }
    let single = precision == Precision::F32;
    let mut phrase = String::new();
    for (word, is_called) in words(text) {
        let list = if is_called { CALLS } else { WORDS };
        let own = list.iter().find(|(own, ..)| *own == word).map(|(_, f64, f32)| if single { f32 } else { f64 });
        let is_real = word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
        match own {
            Some(own) => phrase.push_str(own),
            None if is_called => phrase.extend([PREFIX, word]),
            None if is_real && single => phrase.extend([word, "f"]),
            None => phrase.push_str(word),
        }
    }
    phrase
}

/// The words, numbers and what is between them, each with whether it is the name of something called.
fn words(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let is_number = first.is_ascii_digit();
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut before = first;
        let ends = |c: char| {
            // The exponent of a number may have a sign, and no hexadecimal number ends in `e`.
            let goes_on = match is_number {
                true => is_word(c) || c == '.' || c == '-' && before == 'e',
                false => is_word(c) == is_word(first),
            };
            before = c;
            !goes_on
        };
        let (word, after) = rest.split_at(rest.find(ends).unwrap_or(rest.len()));
        rest = after;
        Some((word, is_word(first) && !is_number && after.starts_with('(')))
    })
}

/// The names of all functions and types, of both precisions.
#[cfg(test)]
pub fn names() -> Vec<String> {
    let texts = [include_str!("../math/turn.rs"), include_str!("../math/wide.rs"), include_str!("../math/double.rs")];
    let texts = texts.into_iter().chain([include_str!("../math/single.rs")]);
    let translated = texts.flat_map(|text| translated(text, Precision::F64)).map(|item| item.name);
    translated.chain(OPERATIONS.iter().map(|(name, _)| (*name).to_owned())).collect()
}
