//! Names in the generated code: the user's, kept off C++'s keywords, and our own, kept off the user's.

mod reserved;

use crate::ir::{Axis, Offset, Path};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Deref;

/// A name in generated code that others see. It is a word that means nothing yet in C, C++ and CUDA, in all their dialects,
/// and that nothing else has where it came from: only [`Names`] makes them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Identifier(String);

impl Identifier {
    /// What the files of a stencil are called, without their endings. Files may be called as no name can be: `double.cu`.
    pub fn of_files(stencil: &str) -> Self {
        Self(letters(stencil))
    }

    /// The macro that guards a stencil's header. Small letters stay, so that `foo` and `FOO` have one each.
    pub fn of_guard(stencil: &str) -> Self {
        Self(format!("STENCILC_{}_H", letters(stencil)))
    }
}

impl Deref for Identifier {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Identifier> for String {
    fn from(name: Identifier) -> String {
        name.0
    }
}

impl PartialEq<str> for Identifier {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

/// Gives out names of one kernel.
#[derive(Debug, Default)]
pub struct Names {
    taken: HashSet<String>,
    /// Of each name that several wished for, the number up to which all are given.
    numbers: HashMap<String, usize>,
    /// Of each name that was given out, the wish and the number behind it.
    given: HashMap<String, (String, usize)>,
    internals: HashMap<String, String>,
}

impl Names {
    /// A name like `wish` that nothing else has, for what others see: kernels, parameters, members.
    pub fn declared(&mut self, wish: &str) -> Identifier {
        Identifier(self.fresh(wish))
    }

    /// A name like `wish` that nothing else has, for what stands in a body of code.
    pub fn fresh(&mut self, wish: &str) -> String {
        let wish = word(wish);
        let mut name = wish.clone();
        let mut number = self.numbers.get(&wish).copied().unwrap_or(1);
        while self.taken.contains(&name) || reserved::is_reserved(&name) {
            number += 1;
            name = format!("{}_{number}", wish.trim_end_matches('_'));
        }
        if number > 1 {
            self.numbers.insert(wish.clone(), number);
        }
        self.taken.insert(name.clone());
        self.given.insert(name.clone(), (wish, number));
        name
    }

    /// Takes back a name whose scope has ended, so that something behind it can have it.
    pub fn release(&mut self, name: &Identifier) {
        if let Some((wish, number)) = self.given.remove(&**name) {
            self.taken.remove(&**name);
            let given = self.numbers.entry(wish).or_insert(1);
            *given = (*given).min(number - 1).max(1);
        }
    }

    /// Whether something has this name already.
    pub fn has(&self, name: &str) -> bool {
        self.taken.contains(name)
    }

    /// The name of something of ours, the same at every call.
    pub fn internal(&mut self, name: &str) -> String {
        if let Some(known) = self.internals.get(name) {
            return known.clone();
        }
        let own = self.fresh(name);
        self.internals.insert(name.to_owned(), own.clone());
        own
    }

    /// Several of them.
    pub fn internals<const N: usize>(&mut self, names: [&'static str; N]) -> [String; N] {
        names.map(|name| self.internal(name))
    }
}

/// How all begins that is made of a stencil in generated code. Different names may have the same: `_1`, `__1` and `v_1`.
pub fn stem(stencil: &str) -> String {
    word(&format!("{stencil}_"))
}

/// A text with nothing but letters, digits and underscores, as names of stencils are anyway.
fn letters(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// What a name can be made of: a word that begins with a letter.
fn word(wish: &str) -> String {
    // Names that begin with an underscore, or hold two in a row, belong to the C++ compilers.
    let mut word = letters(wish).trim_start_matches('_').to_owned();
    while word.contains("__") {
        word = word.replace("__", "_");
    }
    match word.chars().next() {
        None => "v".to_owned(),
        Some('0'..='9') => format!("v_{word}"),
        // Numbers behind these would not do.
        Some(_) if reserved::is_of_others(&word) => format!("v_{word}"),
        Some(_) if reserved::is_macro(&word) => format!("{}_v", word.trim_end_matches('_')),
        Some(_) => word,
    }
}

/// `right2_top`: the name of a path in generated code; `here` for none. Where its steps are not along i, then along j, they
/// are joined by `then`.
pub fn path_name(path: &Path) -> String {
    if *path == Path::from_offset(path.offset()) {
        return offset_name(path.offset());
    }
    let mut parts: Vec<String> = Vec::new();
    for step in path.steps() {
        let along = |axis| if step.axis == axis { step.by } else { 0 };
        parts.push(offset_name(Offset { i: along(Axis::I), j: along(Axis::J), k: 0 }));
    }
    let mut name = parts.join("_then_");
    if path.levels() != 0 {
        name.push('_');
        name.push_str(&offset_name(Offset { k: path.levels(), ..Offset::default() }));
    }
    name
}

/// `lap_right`: what something of a name is called at the end of a path.
pub fn name_at(name: &str, path: &Path) -> String {
    if path.is_here() { name.to_owned() } else { format!("{name}_{}", path_name(path)) }
}

/// `right2_top`: the name of an offset in generated code; `here` for none.
fn offset_name(offset: Offset) -> String {
    let part = |by: i32, low: &str, high: &str| match by {
        0 => None,
        1 => Some(high.to_owned()),
        -1 => Some(low.to_owned()),
        2.. => Some(format!("{high}{by}")),
        _ => Some(format!("{low}{}", by.unsigned_abs())),
    };
    let parts = [part(offset.i, "left", "right"), part(offset.j, "top", "bottom"), part(offset.k, "down", "up")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "here".to_owned() } else { parts.join("_") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Step;

    #[test]
    fn users_come_first_and_keywords_are_avoided() {
        let mut names = Names::default();
        assert_eq!(names.fresh("row"), "row");
        assert_eq!(names.internal("row"), "row_2");
        assert_eq!(names.internal("row"), "row_2");
        assert_eq!(names.fresh("double"), "double_2");
        assert_eq!(names.fresh("__x__y"), "x_y");
        assert_eq!(["NAN"; 3].map(|wish| names.fresh(wish)), ["NAN_v", "NAN_v_2", "NAN_v_3"]);
    }

    #[test]
    fn a_name_that_is_taken_back_can_be_given_again() {
        let mut names = Names::default();
        let [first, second, third] = ["x"; 3].map(|wish| names.declared(wish));
        assert_eq!([&*first, &*second, &*third], ["x", "x_2", "x_3"]);
        names.release(&second);
        assert_eq!(["x"; 2].map(|wish| names.fresh(wish)), ["x_2", "x_4"]);
        names.release(&first);
        names.release(&third);
        assert_eq!(["x"; 3].map(|wish| names.fresh(wish)), ["x", "x_3", "x_5"]);
        // What was never given out is nobody's to take back.
        names.release(&first);
        names.release(&first);
        assert_eq!(["x"; 2].map(|wish| names.fresh(wish)), ["x", "x_6"]);
    }

    #[test]
    fn names_are_words_that_begin_with_a_letter() {
        let mut names = Names::default();
        let wishes =
            ["_1", "__1", "_", "___", "1", "a-b; c", "x_", "typeof", "cudaFree", "char8_t", "stencilc_entry_0", "é"];
        let found = wishes.map(|wish| names.fresh(wish));
        let expected = [
            "v_1",
            "v_1_2",
            "v",
            "v_2",
            "v_1_3",
            "a_b_c",
            "x_",
            "typeof_2",
            "v_cudaFree",
            "char8_t_2",
            "v_stencilc_entry_0",
            "v_3",
        ];
        assert_eq!(found, expected);
        // Short ones in capitals are no macros, nor are their numbers.
        assert_eq!(
            ["X", "X", "AB", "AB", "add", "add"].map(|wish| names.fresh(wish)),
            ["X", "X_2", "AB", "AB_2", "add", "add_3"]
        );
    }

    #[test]
    fn paths_are_called_by_their_steps() {
        let step = |axis, by| Step { axis, by };
        let name = |steps: &[Step]| {
            let mut path = Path::levels_only(1);
            steps.iter().for_each(|&step| path.walk(step));
            path_name(&path)
        };
        assert_eq!(name(&[step(Axis::I, 2), step(Axis::J, -1)]), "right2_top_up");
        assert_eq!(name(&[step(Axis::J, -1), step(Axis::I, 2)]), "top_then_right2_up");
        assert_eq!(name(&[]), "up");
    }
}
