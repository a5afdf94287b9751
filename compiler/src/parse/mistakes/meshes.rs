//! What is wrong between the braces of a `mesh`, and with the words that only meshes know.

use super::{Stop, is_word, word_at};
use crate::diagnostic::{Diagnostic, guess as nearest};
use crate::source::Span;

/// What stands in a mesh.
const PARTS: &[&str] = &["set", "map", "levels"];

/// An example of everything.
const FORM: &str = "a mesh has `set node, cell`, `map cell.nodes -> node[3]`, and perhaps `levels k`";

pub fn guess(stop: &Stop) -> Option<Diagnostic> {
    if stop.outside {
        return header(stop);
    }
    if stop.first == "reduce" && stop.item == Some("stencil") {
        return Some(reduction(stop));
    }
    (stop.item == Some("mesh")).then(|| part(stop))
}

/// Where a part of the statement's text is.
struct Part<'a> {
    text: &'a str,
    start: usize,
}

impl Part<'_> {
    fn at(&self, from: usize, len: usize) -> Span {
        Span::new(self.start + from, self.start + from + len)
    }

    /// Where a text first stands in it, from some place on.
    fn find(&self, text: &str) -> Option<Span> {
        self.text.find(text).map(|from| self.at(from, text.len()))
    }
}

/// A part of a mesh that cannot be read.
fn part(stop: &Stop) -> Diagnostic {
    let end = stop.rest.find(['\n', ';', '}']).unwrap_or(stop.rest.len());
    let text = format!("{}{}", stop.statement, &stop.rest[..end]);
    let text = text.split("//").next().unwrap_or_default();
    let part = Part { text: text.trim_end(), start: stop.before.len() - stop.statement.len() };
    let word = word_at(part.text);
    let first = part.at(0, word.len().max(1));
    match word {
        "set" => sets(stop, &part),
        "map" => map(stop, &part),
        "levels" => Diagnostic::error(first, "levels have a name, and no number")
            .label("write `levels k`")
            .help("how many there are is given when running: `--levels 10`"),
        "in" | "out" | "inout" | "inc" | "param" | "field" | "fields" => {
            Diagnostic::error(first, "a mesh has no fields of its own")
                .label("not here")
                .help("fields are declared in stencils and programs, as in `in area on cell`")
        }
        "stencil" | "program" | "test" | "mesh" => {
            Diagnostic::error(first, format!("a `{word}` cannot stand inside another block"))
                .label("the block before it is still open")
                .help("is a `}` missing before it?")
        }
        _ => {
            let found = Diagnostic::error(first, format!("`{word}` begins no part of a mesh"));
            match nearest(word, PARTS.iter().copied()) {
                Some(meant) => found.label(format!("did you mean `{meant}`?")).help(FORM),
                None => found.label("expected `set`, `map` or `levels`").help(FORM),
            }
        }
    }
}

fn sets(stop: &Stop, part: &Part) -> Diagnostic {
    let names = part.text[3..].trim();
    if names.is_empty() {
        return Diagnostic::error(part.at(0, 3), "a `set` has a name").label("which?").help("as in `set node, cell`");
    }
    if names.contains(['=', '[', '(', ':']) {
        let from = part.text.find(['=', '[', '(', ':']).unwrap_or(0);
        return Diagnostic::error(part.at(from, part.text.len() - from), "a set has a name alone")
            .label("leave this out")
            .help("how many elements it has is said by the file of the mesh");
    }
    // Two names with nothing but blanks between them.
    let pair = names.split(',').find_map(|own| own.trim().split_once(char::is_whitespace));
    if let Some((one, other)) = pair.map(|(one, rest)| (one, word_at(rest.trim_start()))) {
        let from = part.text[3..].find(&format!("{one} ")).map_or(3, |from| 3 + from + one.len());
        let gap = part.text[from..].find(other).unwrap_or(0);
        if PARTS.contains(&one) {
            return Diagnostic::error(
                part.at(from - one.len(), one.len()),
                "every part of a mesh is a statement of its own",
            )
            .label(format!("write `; {one}` for the comma"))
            .help("or put it on a line of its own");
        }
        return Diagnostic::error(part.at(from + gap, other.len()), "a comma is missing between two names")
            .label(format!("write `{one}, {other}`"))
            .help("or, if this is the next part of the mesh, put it on a line of its own");
    }
    Diagnostic::error(stop.here(), "this cannot be read as a list of sets").label("not understood").help(FORM)
}

/// The arrows of other languages, longest first.
const ARROWS: &[&str] = &["=>", ":=", "-->", "→", "=", ">", ":"];

fn map(stop: &Stop, part: &Part) -> Diagnostic {
    let form = "as in `map cell.nodes -> node[4]`: from each cell to the 4 nodes of it";
    let Some((head, target)) = part.text[3..].split_once("->") else {
        if let Some(found) = ARROWS.iter().find_map(|arrow| part.find(arrow)) {
            return Diagnostic::error(found, "a map leads on with `->`").label("write `->`").help(form);
        }
        let named = part.text[3..].trim_start();
        let end = named.find(char::is_whitespace).unwrap_or(named.len());
        let from = part.text.len() - named.len();
        return Diagnostic::error(part.at(from + end, 1), "a map leads on with `->`")
            .label("write `->` and the set where it leads")
            .help(form);
    };
    let name = head.trim();
    let at = part.at(part.text.find(name).unwrap_or(0), name.len().max(1));
    let to = word_at(target.trim_start());
    let pair: Vec<&str> = name.split([':', ' ', ',']).map(str::trim).filter(|own| !own.is_empty()).collect();
    match pair.as_slice() {
        [] => return Diagnostic::error(at, "a map leads from a set").label("which?").help(form),
        [only] if !only.contains('.') => {
            return Diagnostic::error(at, "a map has a name of its own")
                .label(format!("write `{only}.{to}s`, or what else it is to be called"))
                .help(form);
        }
        [map, from] if !name.contains('.') => {
            return Diagnostic::error(at, "the name of a map follows that of its set")
                .label(format!("write `{from}.{map}`"))
                .help(form);
        }
        _ => {}
    }
    let rest = target.trim_start();
    let start = part.text.len() - rest.len();
    if let Some(number) = rest.split(|c: char| !c.is_ascii_digit()).next().filter(|number| !number.is_empty()) {
        let set = rest[number.len()..].trim_start_matches(['*', ' ']);
        return Diagnostic::error(part.at(start, number.len()), "how many there are follows the set")
            .label(format!("write `{}[{number}]`", word_at(set)))
            .help(form);
    }
    let after = rest[to.len()..].trim_start();
    let start = part.text.len() - after.len();
    if after.starts_with(['(', '{']) {
        let inside: String = after[1..].chars().take_while(char::is_ascii_digit).collect();
        return Diagnostic::error(part.at(start, 1), "how many there are stands in square brackets")
            .label(format!("write `{to}[{inside}]`"))
            .help(form);
    }
    let clause = after.find(']').map_or(after, |end| &after[end + 1..]).trim_start();
    let start = part.text.len() - clause.len();
    if clause.starts_with(is_word) {
        return holes(part.at(start, clause.len()), clause);
    }
    Diagnostic::error(stop.here(), "this cannot be read as a map").label("not understood").help(form)
}

/// What stands after the slots of a map.
fn holes(at: Span, clause: &str) -> Diagnostic {
    let help = "`missing skip` leaves holes out of sums; with `missing value(0)`, what is read through one is 0; without \
                either, a hole is an error when the mesh is loaded";
    let after = clause.strip_prefix("missing").map(str::trim_start);
    let found = Diagnostic::error(at, "what holes mean is `missing skip` or `missing value(x)`");
    match after {
        Some("") => found.label("`skip` or `value(x)` is missing").help(help),
        Some("error" | "never" | "none" | "no") => found.label("leave this out").help(help),
        Some(after) if after.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
            found.label(format!("write `missing value({after})`")).help(help)
        }
        Some(after) if after.starts_with("value") => found.label("write `missing value(0)`").help(help),
        Some(_) => found.label("not understood").help(help),
        None if clause.ends_with("skip") => found.label("write `missing skip`").help(help),
        None => found.label("not understood").help(help),
    }
}

/// `reduce c: mean`, `reduce sum c`
fn reduction(stop: &Stop) -> Diagnostic {
    let form = "as in `reduce change: sum` and, on a line of its own, `change += ...`";
    let found = |message: &str| Diagnostic::error(stop.here(), message);
    match stop.found {
        "mean" | "avg" | "average" => found("a reduction is a `sum`, `min` or `max`")
            .label("write `sum`")
            .help("a program makes the mean of it: `total / size(cell)`"),
        word if stop.statement.contains(':') && word.starts_with(is_word) => {
            found("a reduction is a `sum`, `min` or `max`").label("not one of these").help(form)
        }
        _ => Diagnostic::error(stop.first_span, "a reduction has a name, and says what it makes of all values")
            .label("write `reduce name: sum`, `min` or `max`")
            .help(form),
    }
}

/// `stencil s on m.cell {`, `stencil s m.cell {`, `mesh m over cell {`
fn header(stop: &Stop) -> Option<Diagnostic> {
    let line = stop.rest.split(['\n', '{']).next().unwrap_or_default();
    if stop.first == "mesh" && stop.rest.starts_with("mesh") {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = line.find(" over ").or_else(|| line.find(" on "))?;
        let place = Span::new(stop.before.len() + at + 1, stop.before.len() + line.trim_end().len());
        let name = words.get(1)?;
        return Some(
            Diagnostic::error(place, "a mesh runs over nothing")
                .label("leave this out")
                .help(format!("write `mesh {name} {{ set node, cell }}`; stencils and programs run over a mesh")),
        );
    }
    if !["stencil", "program"].contains(&stop.first) || stop.at_start() || !stop.found.starts_with(is_word) {
        return None;
    }
    let (_, named) = stop.previous?;
    // A name stands between the word and the place, and nothing else.
    if stop.before.get(stop.first_span.end as usize..named.start as usize).is_none_or(|gap| !gap.trim().is_empty()) {
        return None;
    }
    let over = line.trim_end();
    let found = Diagnostic::error(stop.here(), "the mesh of a stencil or program follows `over`");
    match stop.found {
        "on" | "in" | "of" => Some(found.label("write `over`")),
        _ if over.chars().all(|c| is_word(c) || c == '.') => Some(found.label(format!("write `over {over}`"))),
        _ => None,
    }
}
