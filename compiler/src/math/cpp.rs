//! The functions of this module as C++: the same text, with the words of the other language.
//!
//! The text keeps to what both languages share: `let`, an `if` that holds nothing but a `return`, a `match` of numbers at the end of a
//! function, calls, operators, structs built from variables of their fields' names, tables of numbers; and `series!`, which is written
//! out. What is called by the same name in all of it gets the prefix `real_` here.

use crate::precision::Precision;
use crate::sections::{File, sections};
use std::collections::BTreeSet;

/// What stands for the type, the functions and the binary digits of a precision in texts of C++ that serve both.
const IN_PRECISION: &[(&str, &str, &str)] = &[
    ("REAL", "double", "float"),
    ("FMOD", "fmod", "fmodf"),
    ("FABS", "fabs", "fabsf"),
    ("COPYSIGN", "copysign", "copysignf"),
    ("REGISTER", "d", "f"),
    ("BITS", "unsigned long long", "unsigned"),
    ("SIGNED", "long long", "int"),
    ("SHIFT", "52", "23"),
    ("ONE", "0x3ff0000000000000", "0x3f800000"),
    ("LEAST", "0x3fe6a09e667f3bcd", "0x3f3504f3"),
    ("LARGE", "0x4338000000000000", "0x4b400000"),
];

/// Words of the text that C++ writes otherwise, in double and in single precision.
const WORDS: &[(&str, &str, &str)] = &[
    ("f64", "double", "double"),
    ("f32", "float", "float"),
    ("i32", "int", "int"),
    ("u64", "unsigned long long", "unsigned long long"),
    ("Real", "double", "float"),
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
    ("angle", "real_turn", "real_angle"),
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
    /// Whether it is a function that stays one, since kernels rarely need it.
    is_far: bool,
}

/// A text of C++ that serves both precisions, in one of them.
pub fn in_precision(text: &str, precision: Precision) -> String {
    IN_PRECISION.iter().fold(text.to_owned(), |text, &(word, f64, f32)| text.replace(word, chosen(precision, f64, f32)))
}

fn chosen<'a>(precision: Precision, f64: &'a str, f32: &'a str) -> &'a str {
    match precision {
        Precision::F64 => f64,
        Precision::F32 => f32,
    }
}

/// All functions and types of a precision, each after those that it uses.
fn items(precision: Precision) -> Vec<Item> {
    let made_of = sections(File::Math).map(|section| {
        let text = in_precision(section.text, precision);
        Item { name: section.name.to_owned(), lines: text.lines().map(str::to_owned).collect(), is_far: false }
    });
    let mut items: Vec<Item> = made_of.collect();
    items.extend(translated(include_str!("turn.rs"), Precision::F64));
    items.extend(translated(include_str!("wide.rs"), Precision::F64));
    items.extend(match precision {
        Precision::F64 => translated(include_str!("double.rs"), precision),
        Precision::F32 => translated(include_str!("single.rs"), precision),
    });
    items
}

/// The names of all functions and types, of both precisions.
pub fn names() -> impl Iterator<Item = String> {
    [Precision::F64, Precision::F32].into_iter().flat_map(items).map(|item| item.name)
}

/// The lines of the functions in `used`, and of all that they call; and whether one of these is far.
pub fn functions(used: &BTreeSet<&'static str>, precision: Precision) -> (Vec<String>, bool) {
    // What is called stands before its callers.
    let mut wanted: BTreeSet<String> = used.iter().map(|&name| name.to_owned()).collect();
    let (mut needed, mut has_far) = (Vec::new(), false);
    for item in items(precision).into_iter().rev() {
        if wanted.contains(&item.name) {
            has_far |= item.is_far;
            for line in item.lines.iter().filter(|line| !line.starts_with("//")) {
                wanted.extend(words(line).map(|(word, _)| word.to_owned()));
            }
            needed.push(item.lines);
        }
    }
    (needed.into_iter().rev().flatten().collect(), has_far)
}

/// The functions and types of a text, in its order.
fn translated(text: &str, precision: Precision) -> Vec<Item> {
    let mut items = Vec::new();
    let (mut comments, mut is_far) = (Vec::new(), false);
    let text = stepwise(&text.replace("include!(\"angles.rs\");", include_str!("angles.rs")));
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
            items.push(Item { name, lines, is_far });
            is_far = false;
        }
        is_far |= line == "#[cold]";
    }
    items
}

/// A text whose series are written out: `let p = series!(x; ...);` as one step after the other.
fn stepwise(text: &str) -> String {
    let mut parts = text.split("let p = series!(");
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (series, rest) = part.split_once(");").unwrap_or_default();
        let (x, terms) = series.split_once(';').unwrap_or_default();
        let (first, others) = terms.split_once(',').unwrap_or_default();
        all += &format!("let mut p = {};", first.trim());
        others.split(',').for_each(|term| all += &format!("\n    p = fma(p, {x}, {});", term.trim()));
        all += rest;
    }
    all
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
        if let Some(head) = line.trim_start().strip_prefix("match ") {
            let number = head.trim_end_matches(" {");
            let arms = statements.by_ref().map_while(|(_, arm)| arm.trim().trim_end_matches(',').split_once(" => "));
            lines.extend(arms.map(|(own, value)| match own {
                "_" => format!("    return {value}"),
                _ => format!("    if ({number} == {own}) return {value};"),
            }));
            continue;
        }
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
    let mut phrase = String::new();
    for (word, is_called) in words(text) {
        let list = if is_called { CALLS } else { WORDS };
        let own = list.iter().find(|(own, ..)| *own == word).map(|(_, f64, f32)| chosen(precision, f64, f32));
        let is_real = word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
        match own {
            Some(own) => phrase.push_str(own),
            None if is_called => phrase.extend([PREFIX, word]),
            None if is_real && precision == Precision::F32 => phrase.extend([word, "f"]),
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
