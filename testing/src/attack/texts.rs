//! Stencils that were right, changed: one case a seed.

use super::hostile;
use fastrand::Rng;
use std::path::Path;

/// A text under attack.
#[derive(Clone, Debug)]
pub struct Case {
    /// Where it comes from.
    pub seed: u64,
    /// What its file is called.
    pub name: String,
    /// The text.
    pub text: String,
    /// The same text with harmless comments.
    pub plain: String,
}

/// Stands for a hostile comment until it is known which version is written.
const MARK: char = '\u{e000}';

/// Numbers at the ends of what there is.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2147483647",
    "2147483648",
    "-2147483648",
    "4294967296",
    "9223372036854775807",
    "99999999999999999999999999",
    "1e308",
    "1e309",
    "1e-400",
    "3.4028236e38",
    "0.0",
    "-0.0",
    "1e38",
    "1/0",
    "16777217",
    "257",
    "1000",
];

/// Words that the language, C, C++, CUDA or a shell has a meaning for, and names that are hardly names.
const WORDS: &[&str] = &[
    "stencil",
    "program",
    "mesh",
    "test",
    "fn",
    "const",
    "param",
    "in",
    "out",
    "inout",
    "inc",
    "reduce",
    "let",
    "if",
    "else",
    "sum",
    "min",
    "max",
    "sweep",
    "up",
    "down",
    "repeat",
    "boundary",
    "over",
    "on",
    "set",
    "map",
    "levels",
    "missing",
    "skip",
    "print",
    "expect",
    "grid",
    "real",
    "int",
    "bool",
    "k",
    "nk",
    "i",
    "j",
    "pi",
    "_",
    "__",
    "_1",
    "__1",
    "_A",
    "typeof",
    "asm",
    "register",
    "restrict",
    "_Atomic",
    "_Complex",
    "alignas",
    "threadIdx",
    "blockIdx",
    "__global__",
    "main",
    "errno",
    "NULL",
    "INFINITY",
    "unix",
    "linux",
    "int32_t",
    "std",
    "this",
    "goto",
    "extern",
    "co_await",
    "char8_t",
    "near",
    "STENCIL",
    "nan",
];

/// The texts that are changed: all that come along, all constructs, and what random programs once found.
pub fn originals() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = vec![root.join("tests/constructs.stn")];
    for folder in ["stencils", "testing/found"] {
        let entries = root.join(folder).read_dir().expect("the folder comes along").flatten();
        files.extend(entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|own| own == "stn")));
    }
    files.sort();
    files.iter().map(|path| std::fs::read_to_string(path).expect("it is a text")).collect()
}

impl Case {
    /// The case of a seed.
    pub fn new(originals: &[String], seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x6174_7461_636b);
        let mut text = originals[rng.usize(0..originals.len())].clone();
        // Half of the texts stay right but for their comments, so that kernels are made of them.
        let is_right = rng.bool();
        for _ in 0..rng.usize(1..5) {
            text = if is_right { harmless(&mut rng, &text) } else { change(&mut rng, &text, originals) };
        }
        let name = if rng.u8(0..4) == 0 { hostile::name(&mut rng) + "/a.stn" } else { "a.stn".to_owned() };
        let (mut own, mut plain) = (String::new(), String::new());
        for part in text.split_inclusive(MARK) {
            let before = part.strip_suffix(MARK);
            own.push_str(before.unwrap_or(part));
            plain.push_str(before.unwrap_or(part));
            if before.is_some() {
                own.push_str(&hostile::comment(&mut rng));
                plain.push_str("harmless");
            }
        }
        Self { seed, name, text: own, plain }
    }
}

/// A change that a right text stays right by: a comment, or another name.
fn harmless(rng: &mut Rng, text: &str) -> String {
    match rng.u8(0..4) {
        0 => renamed(rng, text),
        _ => commented(rng, text),
    }
}

fn change(rng: &mut Rng, text: &str, originals: &[String]) -> String {
    match rng.u8(0..8) {
        0..3 => tokens(rng, text, originals),
        3 => lines(rng, text, originals),
        4 => numbers(rng, text),
        5 => deep(rng, text),
        6 => renamed(rng, text),
        _ => commented(rng, text),
    }
}

/// Comments before some lines, most of them before what a comment can be of.
fn commented(rng: &mut Rng, text: &str) -> String {
    const BEFORE: [&str; 10] = ["stencil", "in", "out", "inout", "inc", "param", "program", "mesh", "set", "map"];
    let share = [2, 4, 10][rng.usize(0..3)];
    let mut made = String::new();
    for line in text.lines() {
        let can_have_one = line.split_whitespace().next().is_some_and(|word| BEFORE.contains(&word));
        if rng.usize(0..if can_have_one { share } else { 300 }) == 0 {
            let word = ["///", "///", "///", "//"][rng.usize(0..4)];
            made += &format!("{word} {MARK}\n");
        }
        made += line;
        if rng.usize(0..60) == 0 {
            made += &format!(" // {MARK}");
        }
        made.push('\n');
    }
    made
}

/// Words, numbers, blanks and signs, one after the other.
fn split(text: &str) -> Vec<&str> {
    let kind = |c: char| match c {
        '\n' => 0,
        c if c.is_whitespace() => 1,
        c if c.is_alphanumeric() || c == '_' => 2,
        _ => 3,
    };
    let mut tokens = Vec::new();
    let mut start = 0;
    let mut before = None;
    for (at, c) in text.char_indices() {
        let own = kind(c);
        if before.is_some_and(|before| before != own || own == 3 || own == 0) {
            tokens.push(&text[start..at]);
            start = at;
        }
        before = Some(own);
    }
    tokens.push(&text[start..]);
    tokens
}

fn tokens(rng: &mut Rng, text: &str, originals: &[String]) -> String {
    let mut all = split(text);
    let at = rng.usize(0..all.len());
    let end = (at + rng.usize(1..6)).min(all.len());
    let other = rng.usize(0..all.len());
    let from = split(&originals[rng.usize(0..originals.len())]).into_iter().map(str::to_owned).collect::<Vec<_>>();
    match rng.u8(0..6) {
        0 => drop(all.drain(at..end)),
        1 => {
            let again = all[at..end].to_vec();
            all.splice(other..other, again);
        }
        2 => all.swap(at, other),
        3 => {
            let start = rng.usize(0..from.len());
            let taken = &from[start..(start + rng.usize(1..30)).min(from.len())];
            let taken: Vec<&str> = taken.iter().map(String::as_str).collect();
            return all[..at].iter().chain(&taken).chain(&all[end..]).copied().collect();
        }
        4 => all[at] = WORDS[rng.usize(0..WORDS.len())],
        _ => all.truncate(at),
    }
    all.concat()
}

fn lines(rng: &mut Rng, text: &str, originals: &[String]) -> String {
    let mut all: Vec<&str> = text.lines().collect();
    if all.is_empty() {
        return text.to_owned();
    }
    let (at, other) = (rng.usize(0..all.len()), rng.usize(0..all.len()));
    let from = &originals[rng.usize(0..originals.len())];
    let from: Vec<&str> = from.lines().collect();
    match rng.u8(0..5) {
        0 => drop(all.remove(at)),
        1 => all.insert(other, all[at]),
        2 => all.swap(at, other),
        3 => all.insert(at, from[rng.usize(0..from.len())]),
        _ => all.truncate(at),
    }
    all.join("\n") + "\n"
}

/// Some numbers become extreme ones.
fn numbers(rng: &mut Rng, text: &str) -> String {
    let mut all = split(text);
    let places: Vec<usize> = (0..all.len()).filter(|&at| all[at].starts_with(|c: char| c.is_ascii_digit())).collect();
    for _ in 0..rng.usize(1..4) {
        if !places.is_empty() {
            all[places[rng.usize(0..places.len())]] = NUMBERS[rng.usize(0..NUMBERS.len())];
        }
    }
    all.concat()
}

/// One name becomes another, wherever it stands: a very long one, or one that means something elsewhere.
fn renamed(rng: &mut Rng, text: &str) -> String {
    let all = split(text);
    let is_name = |token: &str| {
        token.starts_with(|c: char| c.is_ascii_alphabetic()) && !WORDS[..37].contains(&token) && token.is_ascii()
    };
    let names: Vec<&str> = all.iter().copied().filter(|token| is_name(token)).collect();
    if names.is_empty() {
        return text.to_owned();
    }
    let name = names[rng.usize(0..names.len())];
    let new = match rng.u8(0..3) {
        0 => "n".repeat([60, 300, 4_000][rng.usize(0..3)]),
        _ => WORDS[rng.usize(37..WORDS.len())].to_owned(),
    };
    all.iter().map(|&token| if token == name { new.as_str() } else { token }).collect()
}

/// Something grows deep: what stands around a number, or a chain of names that lead to each other.
fn deep(rng: &mut Rng, text: &str) -> String {
    let depth = [10, 100, 200, 400, 1_000][rng.usize(0..5)];
    let wrapped = |rng: &mut Rng, inner: &str, depth: usize| match rng.u8(0..6) {
        0 => format!("{}{inner}{}", "(".repeat(depth), ")".repeat(depth)),
        1 => format!("{}{inner}{}", "abs(".repeat(depth), ")".repeat(depth)),
        2 => format!("{}{inner}", "-".repeat(depth)),
        3 => format!("{inner}{}", " + 1".repeat(depth)),
        4 => format!("{}{inner}{}", "if true { ".repeat(depth), " } else { 0 }".repeat(depth)),
        _ => format!("{}{inner}{}", "sum(n in 0..=0) { ".repeat(depth), " }".repeat(depth)),
    };
    if rng.bool() {
        let all = split(text);
        let places: Vec<usize> = (0..all.len()).filter(|&at| all[at].starts_with(char::is_alphanumeric)).collect();
        if places.is_empty() {
            return text.to_owned();
        }
        let at = places[rng.usize(0..places.len())];
        let grown = wrapped(rng, all[at], depth);
        return all[..at].iter().copied().chain([grown.as_str()]).chain(all[at + 1..].iter().copied()).collect();
    }
    let (length, depth) = ([3, 30, 300][rng.usize(0..3)], depth / 4);
    let mut chain = String::new();
    let kind = rng.u8(0..3);
    for number in 0..length {
        let before = if number == 0 { "1.0".to_owned() } else { format!("d{}", number - 1) };
        chain += &match kind {
            0 => format!("const d{number} = {}\n", wrapped(rng, &before, depth)),
            1 => format!("param d{number} = {}\n", wrapped(rng, &before, depth)),
            _ => {
                let inner = if number == 0 { "x".to_owned() } else { format!("{before}(x)") };
                format!("fn d{number}(x) = {}\n", wrapped(rng, &inner, depth))
            }
        };
    }
    let last = length - 1;
    let used = if kind == 2 { format!("d{last}(a)") } else { format!("a + d{last}") };
    format!("{chain}stencil chain {{\n    in a\n    out b\n    b = {used}\n}}\n{text}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_case_is_a_function_of_its_seed() {
        let originals = originals();
        assert!(originals.len() > 25);
        let texts: HashSet<String> = (0..200).map(|seed| Case::new(&originals, seed).text).collect();
        assert!(texts.len() > 190, "{}", texts.len());
        assert_eq!(Case::new(&originals, 7).text, Case::new(&originals, 7).text);
        assert!(originals.iter().all(|text| split(text).concat() == *text));
    }

    #[test]
    fn comments_of_many_cases_are_hostile() {
        let originals = originals();
        let cases = (0..400).map(|seed| Case::new(&originals, seed));
        let hostile = cases.filter(|case| case.text != case.plain).count();
        assert!(hostile > 150, "{hostile}");
    }
}
