//! The one table of words that no name in generated code may be: those of C, C++ and CUDA in all their dialects, what headers
//! define as macros, and what generated code calls.

use crate::math::cpp;
use crate::sections;
use std::collections::HashSet;
use std::sync::LazyLock;

/// What others reserve: words in lines, beside lines of comments.
const OTHERS: &str = include_str!("reserved.txt");

/// The table.
static WORDS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let others = OTHERS.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace);
    let own = sections::ALL.iter().map(|section| section.name);
    others.chain(own).map(str::to_owned).chain(cpp::names()).collect()
});

/// Whether a word of the table is this one.
pub fn is_reserved(word: &str) -> bool {
    WORDS.contains(word)
}

/// Whether a name begins as those of CUDA's functions and macros do, as ours, as the constants of math.h (M_PIf), or as the formats of
/// inttypes.h (PRId64).
pub fn is_of_others(word: &str) -> bool {
    let next = |start: &str| word.strip_prefix(start).and_then(|rest| rest.chars().next());
    next("cuda").is_some_and(|next| next.is_ascii_uppercase())
        || next("M_").is_some_and(|next| next.is_ascii_uppercase() || next.is_ascii_digit())
        || ["PRI", "SCN"].iter().any(|start| next(start).is_some_and(|next| "bdiouxX".contains(next)))
        || word.starts_with("stencilc_")
}

/// Whether a name is a macro of some header sooner or later, as longer ones in capitals are: NAN, M_PI, DBL_MAX.
pub fn is_macro(word: &str) -> bool {
    word.len() > 2 && !word.contains(|c: char| c.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_all_kinds_are_reserved() {
        for word in ["while", "xor_eq", "threadIdx", "st_atime", "fmaf", "stream"] {
            assert!(is_reserved(word), "{word}");
        }
        // What kernels bring along, of each file of the templates and of the functions that Rust and C++ share.
        for word in
            ["int_min", "real_digits_of", "WatchedTable", "copy_async", "widen_row", "real_exp", "Turn", "Angle"]
        {
            assert!(is_reserved(word), "{word}");
        }
        assert!(!is_reserved("lap") && !is_reserved("#") && WORDS.len() > 450);
    }
}
