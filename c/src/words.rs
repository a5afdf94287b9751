//! Messages that name methods of Rust and options of the command line, in words of C.

/// What is said, and what that is in C. Longer ones come first.
const WORDS: &[(&str, &str)] = &[
    ("; `Job::start` copies what lies in another way", "; what lies in another way has to be copied before"),
    ("`Job::start` copies what lies in another way", "copy it before: no arrays are copied silently"),
    (", or `Job::start`, which packs its arrays", ""),
    (", or take `Job::start`, which packs its arrays", ""),
    (", or `Job::start`, which brings arrays there", ""),
    ("make another one: `Job::call`", "make another one: stencilc_bind"),
    ("lend it by `Lent::write`", "lend it for STENCILC_WRITE"),
    ("give one: --set ", "set it by stencilc_set_real, stencilc_set_int or stencilc_set_bool: "),
    ("give --set ", "call stencilc_set_real, stencilc_set_int or stencilc_set_bool: "),
    ("--set ", "stencilc_set_real, stencilc_set_int or stencilc_set_bool: "),
    ("give --grid NIxNJxNK (halo included), or the inputs as arrays", "lend the inputs as arrays"),
];

/// A message in words of C.
pub fn in_c(text: &str) -> String {
    WORDS.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::in_c;

    #[test]
    fn nothing_is_said_of_rust() {
        let said = in_c("one distance for all; `Job::start` copies what lies in another way");
        assert_eq!(said, "one distance for all; what lies in another way has to be copied before");
        assert_eq!(in_c("leave it, or take `Job::start`, which packs its arrays"), "leave it");
    }
}
