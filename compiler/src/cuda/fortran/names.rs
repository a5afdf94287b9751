//! Names in Fortran: of at most 63 characters, none of which is capital or small.

use std::collections::HashSet;

/// The most characters that a name of ours is made of: behind it there is room for what is joined to it.
const PROCEDURE: usize = 48;

/// The most characters of a name.
const MOST: usize = 63;

/// What the subroutine of a module calls, and its own arguments.
const WORDS: &str =
    "async stream ierr message c_loc c_int c_double c_float c_bool c_long_long c_ptr c_char c_intptr_t c_null_char
    c_null_ptr c_f_pointer shape allocated int present merge min size";

/// The names of procedures that Fortran has by itself: a module that has one of these would take it away from those who use it.
const INTRINSICS: &str = include_str!("intrinsics.txt");

/// What is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// A field.
    Field,
    /// A parameter.
    Parameter,
    /// What the struct of arguments has beside them.
    Ours,
}

/// Something that is called in another way in Fortran than in the stencil.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// `stencil`, `field` or `parameter`.
    pub what: &'static str,
    /// What the stencil calls it.
    pub from: String,
    /// What Fortran does.
    pub to: String,
}

/// Gives out the names of a module.
pub(super) struct Names {
    /// Those that are taken, in small letters.
    taken: HashSet<String>,
    renamed: Vec<Renamed>,
}

impl Names {
    pub fn new() -> Self {
        Self { taken: WORDS.split_whitespace().map(str::to_owned).collect(), renamed: Vec::new() }
    }

    /// What has another name than in the stencil.
    pub fn renamed(self) -> Vec<Renamed> {
        self.renamed
    }

    /// The name of a stencil's subroutine.
    pub fn of_procedure(&mut self, stencil: &str) -> String {
        let own = stencil.trim_start_matches('_');
        let begins_well = own.starts_with(|letter: char| letter.is_ascii_alphabetic());
        let own = if begins_well { own.to_owned() } else { format!("v_{own}") };
        let is_intrinsic = INTRINSICS.split_whitespace().any(|word| word.eq_ignore_ascii_case(&own));
        let is_ours = own.to_ascii_lowercase().starts_with(OURS);
        let wish = if is_intrinsic || is_ours { format!("run_{own}") } else { own };
        let name = self.fresh(&wish, PROCEDURE);
        self.tell("stencil", stencil, &name);
        name
    }

    /// A name for what we add.
    pub fn ours(&mut self, wish: &str) -> String {
        self.fresh(wish, MOST)
    }

    /// A name for what C calls `in_c` and the stencil `said`.
    pub fn of(&mut self, scope: Scope, in_c: &str, said: &str) -> String {
        let is_word = said.starts_with(|letter: char| letter.is_ascii_alphabetic());
        let is_ours = said.to_ascii_lowercase().starts_with(OURS);
        let name = self.fresh(if is_word && !is_ours { said } else { in_c }, MOST);
        match scope {
            Scope::Field => self.tell("field", said, &name),
            Scope::Parameter => self.tell("parameter", said, &name),
            Scope::Ours => {}
        }
        name
    }

    fn tell(&mut self, what: &'static str, from: &str, to: &str) {
        if !from.eq_ignore_ascii_case(to) {
            self.renamed.push(Renamed { what, from: from.to_owned(), to: to.to_owned() });
        }
    }

    fn fresh(&mut self, wish: &str, most: usize) -> String {
        // All are letters of ASCII, so that bytes are characters.
        let (mut name, mut number) = (wish.get(..most).unwrap_or(wish).to_owned(), 1);
        while !self.taken.insert(name.to_ascii_lowercase()) {
            number += 1;
            let end = format!("_{number}");
            let room = most - end.len();
            name = format!("{}{end}", wish.get(..room).unwrap_or(wish));
        }
        name
    }
}

/// How all names begin that are not for users.
const OURS: &str = "stencilc_";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_by_more_than_capitals() {
        let mut names = Names::new();
        assert_eq!(names.of_procedure("hdiff"), "hdiff");
        let field = |names: &mut Names, said: &str| names.of(Scope::Field, &said.to_ascii_lowercase(), said);
        let found = ["A", "a", "Stream", "HDIFF", "double", "stencilc_args"].map(|said| field(&mut names, said));
        // The last is what C calls such a name; here it is the same, since the test says so.
        assert_eq!(found, ["A", "a_2", "Stream_2", "HDIFF_2", "double", "stencilc_args"]);
        let told: Vec<_> = names.renamed().into_iter().map(|own| (own.from, own.to)).collect();
        let expected = [("a", "a_2"), ("Stream", "Stream_2"), ("HDIFF", "HDIFF_2")];
        assert_eq!(told, expected.map(|(from, to)| (from.to_owned(), to.to_owned())));
    }

    #[test]
    fn names_have_at_most_63_characters() {
        let mut names = Names::new();
        let long = "x".repeat(80);
        let procedure = names.of_procedure(&long);
        assert_eq!(procedure.len(), PROCEDURE);
        for end in ["stencil", "args", "launch", "in_queue", "message"] {
            assert!(names.ours(&format!("{procedure}_{end}")).len() <= MOST);
        }
        let fields = [0, 1].map(|_| names.of(Scope::Field, &long, &long));
        assert_eq!(fields.each_ref().map(String::len), [MOST; 2]);
        assert_ne!(fields[0], fields[1]);
        assert_eq!(names.renamed().len(), 3);
    }

    #[test]
    fn no_subroutine_hides_what_fortran_has() {
        let found = ["sum", "Size", "_1", "stencilc_x", "laplap"].map(|name| Names::new().of_procedure(name));
        assert_eq!(found, ["run_sum", "run_Size", "v_1", "run_stencilc_x", "laplap"]);
    }
}
