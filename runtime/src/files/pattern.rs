//! Names of files that hold the number of a step, `u_{step}.npy`, `u_{step:06}.npy`; and those of all files of a folder.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::{Error, Result};
use stencilc_compiler::diagnostic::guess;

/// The most digits that a number is filled up to.
const WIDEST: usize = 20;

/// A name that may hold the number of a step, at one place or several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// As it stands.
    Text(Vec<u8>),
    /// The step, with zeros before it up to so many digits.
    Step(usize),
    /// Any name, or a part of one.
    Any,
}

/// What a pattern may have at one place, to compare it with another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Atom {
    Byte(u8),
    Digit,
    /// Any number of digits, or none.
    Digits,
    /// Any number of bytes of a name, or none.
    Rest,
}

impl Pattern {
    /// The pattern that a path stands for: `{step}` is the number of the step, `{step:06}` the same with zeros before it, and
    /// everything else stays as it is.
    pub fn new(path: &Path) -> Self {
        let mut parts = Vec::new();
        let mut rest = path.as_os_str().as_bytes();
        let mut text = Vec::new();
        while let Some((&first, behind)) = rest.split_first() {
            match step(rest) {
                Some((width, behind)) => {
                    parts.push(Part::Text(std::mem::take(&mut text)));
                    parts.push(Part::Step(width));
                    rest = behind;
                }
                None => {
                    text.push(first);
                    rest = behind;
                }
            }
        }
        parts.push(Part::Text(text));
        Self(parts)
    }

    /// The pattern that an option names.
    ///
    /// # Errors
    /// Something else than a step's number has a place in it, or that of a step stands in the name of a folder: which folders that
    /// takes is only known when all is computed.
    pub(super) fn of_option(option: &str, path: &Path) -> Result<Self> {
        let pattern = Self::new(path);
        let first = pattern.at(0);
        if first.as_os_str().as_bytes().windows(5).any(|part| part == b"{step") {
            return Err(no_place(option, path));
        }
        if let Some(meant) = first.to_str().and_then(near_step) {
            return Err(Error::call(format!("{option} names `{}`: `{meant}` has no place in a name", path.display()))
                .help("did you mean `{step}`?"));
        }
        if pattern.has_step() && path.parent().is_some_and(|folder| Self::new(folder).has_step()) {
            return Err(Error::call(format!(
                "{option} names `{}`: the number of a step stands in the name of a file, and not of a folder",
                path.display()
            ))
            .help("write it into the last part: DIR/NAME_{step}"));
        }
        Ok(pattern)
    }

    /// All files of a folder, whose own name is taken as it is, that end so.
    pub fn all_in(folder: &Path, ending: &str) -> Self {
        Self(vec![Part::Text(Vec::new()), Part::Any, Part::Text(format!(".{ending}").into_bytes())]).within(folder)
    }

    /// The path itself, whatever stands in it.
    pub fn literal(path: &Path) -> Self {
        Self(vec![Part::Text(path.as_os_str().as_bytes().to_vec())])
    }

    /// This pattern in a folder, whose own name is taken as it is.
    pub fn within(mut self, folder: &Path) -> Self {
        let mut begin = folder.as_os_str().as_bytes().to_vec();
        if !begin.ends_with(b"/") {
            begin.push(b'/');
        }
        // What it begins with is a text, if an empty one.
        if let Some(Part::Text(text)) = self.0.first_mut() {
            text.splice(0..0, begin);
        }
        self
    }

    /// Whether the number of a step stands in it.
    pub fn has_step(&self) -> bool {
        self.0.iter().any(|part| matches!(part, Part::Step(_)))
    }

    /// Whether it gives several paths.
    fn is_many(&self) -> bool {
        self.has_step() || self.has_any()
    }

    fn has_any(&self) -> bool {
        self.0.contains(&Part::Any)
    }

    /// The path of a step.
    pub fn at(&self, step: u64) -> PathBuf {
        let mut path = Vec::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => path.extend(text),
                Part::Step(width) => path.extend(format!("{step:0width$}").bytes()),
                Part::Any => {}
            }
        }
        PathBuf::from(OsString::from_vec(path))
    }

    /// Whether it gives this path at some step.
    pub fn gives(&self, path: &Path) -> bool {
        let bytes = path.as_os_str().as_bytes();
        if self.has_any() {
            return meet(&self.atoms(), &Self::literal(path).atoms());
        }
        // What stands before the first number says where that begins; it may end behind any digit.
        let [Part::Text(before), Part::Step(_), ..] = self.0.as_slice() else { return self.at(0) == path };
        let Some(rest) = bytes.strip_prefix(before.as_slice()) else { return false };
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let step = |end: usize| std::str::from_utf8(&rest[..end]).ok()?.parse::<u64>().ok();
        (1..=digits).filter_map(step).any(|step| self.at(step) == path)
    }

    /// Whether some step of this pattern and some step of the other may give the same path. Where both have numbers, any digits are
    /// taken for one.
    pub fn meets(&self, other: &Self) -> bool {
        match (self.is_many(), other.is_many()) {
            (_, false) => self.gives(&other.at(0)),
            (false, true) => other.gives(&self.at(0)),
            (true, true) => meet(&self.atoms(), &other.atoms()),
        }
    }

    fn atoms(&self) -> Vec<Atom> {
        let mut atoms = Vec::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => atoms.extend(text.iter().map(|&byte| Atom::Byte(byte))),
                Part::Step(width) => {
                    atoms.extend(std::iter::repeat_n(Atom::Digit, (*width).max(1)));
                    atoms.push(Atom::Digits);
                }
                Part::Any => atoms.push(Atom::Rest),
            }
        }
        atoms
    }
}

/// The error of a name in which something else stands where a step's number could.
pub fn no_place(option: &str, path: &Path) -> Error {
    Error::call(format!("{option} names `{}`: only the step has a place in a name", path.display()))
        .help("write {step}, or {step:06} for six digits")
}

/// What stands in braces and is nearly `{step}`.
fn near_step(text: &str) -> Option<&str> {
    let inside = |(open, _): (usize, &str)| Some(&text[open..=open + text[open..].find('}')?]);
    let near = |word: &&str| {
        let word = word[1..word.len() - 1].split(':').next().unwrap_or_default().trim();
        guess(word, ["step"]).is_some()
    };
    text.match_indices('{').filter_map(inside).find(near)
}

/// The width of the number that a text begins with, `{step}` or `{step:06}`, and what is behind it.
fn step(text: &[u8]) -> Option<(usize, &[u8])> {
    let rest = text.strip_prefix(b"{step")?;
    if let Some(behind) = rest.strip_prefix(b"}") {
        return Some((0, behind));
    }
    let rest = rest.strip_prefix(b":0")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let width: usize = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
    Some((width.min(WIDEST), rest[digits..].strip_prefix(b"}")?))
}

/// Whether there is a text that both sequences stand for: all pairs of places that one text leads to in both are walked through.
fn meet(a: &[Atom], b: &[Atom]) -> bool {
    let (mut seen, mut waiting) = (BTreeSet::new(), vec![(0, 0)]);
    while let Some((i, j)) = waiting.pop() {
        if !seen.insert((i, j)) {
            continue;
        }
        if (i, j) == (a.len(), b.len()) {
            return true;
        }
        let (own, other) = (a.get(i), b.get(j));
        if own.is_some_and(Atom::may_be_none) {
            waiting.push((i + 1, j));
        }
        if other.is_some_and(Atom::may_be_none) {
            waiting.push((i, j + 1));
        }
        if let (Some(&own), Some(&other)) = (own, other)
            && fit(own, other)
        {
            // What has no end stays where it is.
            waiting.push((i + usize::from(!own.may_be_none()), j + usize::from(!other.may_be_none())));
        }
    }
    false
}

/// Whether one byte suits both.
fn fit(a: Atom, b: Atom) -> bool {
    match (a, b) {
        (Atom::Byte(a), Atom::Byte(b)) => a == b,
        (Atom::Byte(byte), Atom::Digit | Atom::Digits) | (Atom::Digit | Atom::Digits, Atom::Byte(byte)) => {
            byte.is_ascii_digit()
        }
        (Atom::Digit | Atom::Digits, Atom::Digit | Atom::Digits) => true,
        (Atom::Byte(byte), Atom::Rest) | (Atom::Rest, Atom::Byte(byte)) => byte != b'/',
        (Atom::Digit | Atom::Digits | Atom::Rest, Atom::Rest) | (Atom::Rest, Atom::Digit | Atom::Digits) => true,
    }
}

impl Atom {
    /// Whether it stands for any number of bytes.
    fn may_be_none(&self) -> bool {
        match self {
            Self::Byte(_) | Self::Digit => false,
            Self::Digits | Self::Rest => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::new(Path::new(text))
    }

    #[test]
    fn names_of_files_bear_the_step() {
        for (text, name) in [
            ("phi_{step}.npy", "phi_20.npy"),
            ("phi_{step:06}.npy", "phi_000020.npy"),
            ("{step:x}/phi.npy", "{step:x}/phi.npy"),
            ("{step:0}{step", "{step:0}{step"),
            ("{step}{step:01}", "2020"),
            ("phi.npy", "phi.npy"),
        ] {
            assert_eq!(pattern(text).at(20), Path::new(name), "{text}");
            assert!(pattern(text).gives(Path::new(name)), "{text}");
        }
    }

    #[test]
    fn a_name_is_given_by_some_step_or_by_none() {
        for (text, name, is_given) in [
            ("k_{step}.npy", "k_1.npy", true),
            ("k_{step}.npy", "k_01.npy", false),
            ("k_{step:02}.npy", "k_01.npy", true),
            ("k_{step:02}.npy", "k_1.npy", false),
            ("k_{step}.npy", "k_.npy", false),
            ("k_{step}1.npy", "k_11.npy", true),
            ("k_{step}1.npy", "k_1.npy", false),
            ("{step}/{step}", "12/12", true),
            ("{step}/{step}", "1/12", false),
            ("{step}", "99999999999999999999999", false),
        ] {
            assert_eq!(pattern(text).gives(Path::new(name)), is_given, "{text} {name}");
            assert_eq!(pattern(name).meets(&pattern(text)), is_given, "{text} {name}");
        }
    }

    #[test]
    fn all_files_of_a_folder_are_those_in_it() {
        let all = |folder: &str| Pattern::all_in(Path::new(folder), "cu");
        for (name, is_in) in [
            ("a/x.cu", true),
            ("a/7.cu", true),
            ("a/x.h", false),
            ("a/b/x.cu", false),
            ("b/x.cu", false),
            ("a.cu", false),
        ] {
            assert_eq!(all("a").gives(Path::new(name)), is_in, "{name}");
            assert_eq!(Pattern::literal(Path::new(name)).meets(&all("a")), is_in, "{name}");
        }
        assert!(all("a").meets(&pattern("a/x_{step}.cu")) && !all("a").meets(&pattern("a/x_{step}.h")));
        assert!(
            all("a").meets(&all("a")) && !all("a").meets(&all("b")) && all("{step}").gives(Path::new("{step}/x.cu"))
        );
    }

    #[test]
    fn options_name_steps_rightly_and_in_the_last_part() {
        let error = |text: &str| Pattern::of_option("--out", Path::new(text)).err().map(|error| error.message);
        for good in ["a.npy", "a_{step}.npy", "a/b_{step:06}.npy", "{a}.npy", "{}.npy", "{field}_{x}", "}{"] {
            assert_eq!(error(good), None, "{good}");
        }
        for (bad, why) in [
            ("a_{step:6}.npy", "only the step has a place"),
            ("a_{step:0}.npy", "only the step has a place"),
            ("a_{steps}.npy", "only the step has a place"),
            ("a_{step:6}/b.npy", "only the step has a place"),
            ("a_{stp}.npy", "`{stp}` has no place"),
            ("a_{STEP:04}.npy", "`{STEP:04}` has no place"),
            ("{a}_{ stpe }.npy", "`{ stpe }` has no place"),
            ("e_{step}/t.npy", "and not of a folder"),
            ("e_{step}/t_{step}.npy", "and not of a folder"),
        ] {
            assert!(error(bad).is_some_and(|message| message.contains(why)), "{bad}");
        }
    }

    #[test]
    fn patterns_that_may_meet_are_told() {
        for (one, other, meet) in [
            ("a_{step}.npy", "a_{step}.npy", true),
            ("a_{step}.npy", "b_{step}.npy", false),
            ("a_{step}.npy", "a_1{step}.npy", true),
            ("a_{step}.npy", "a_{step:03}.npy", true),
            ("a{step}.npy", "a_{step}.npy", false),
            ("a{step}1", "a{step}2", false),
            ("{step}{step}", "{step:04}", true),
        ] {
            assert_eq!(pattern(one).meets(&pattern(other)), meet, "{one} {other}");
            assert_eq!(pattern(other).meets(&pattern(one)), meet, "{one} {other}");
        }
        // What a folder is called is no pattern.
        let inside = |folder: &str| pattern("{step}").within(Path::new(folder));
        assert!(!inside("{step}").meets(&inside("7")) && inside("7").meets(&inside("7")));
    }
}
