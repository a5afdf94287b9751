//! What is wrong between the braces of a `mesh`, and with the words that only meshes know.

use super::{Stop, is_word, word_at};
use crate::diagnostic::{Diagnostic, guess as nearest, wrong};
use crate::source::Span;

/// What stands in a mesh.
const PARTS: &[&str] = &["set", "map", "levels"];

/// An example of everything.
const FORM: &str =
    "a mesh has `set node, cell`, `map cell.nodes -> node[3]`, and perhaps `zone rim, interior on cell` and `levels k`";

pub fn guess(stop: &Stop) -> Option<Diagnostic> {
    if stop.outside {
        return header(stop);
    }
    if stop.first == "reduce" && stop.item == Some("stencil") {
        return stop.known("reduction");
    }
    (stop.item == Some("mesh")).then(|| stop.known("mesh").unwrap_or_else(|| part(stop)))
}

/// The text of a part of a mesh, and where it is.
struct Part<'a> {
    text: &'a str,
    start: usize,
}

impl Part<'_> {
    /// The first bytes of `rest`, with which the text ends.
    fn at(&self, rest: &str, len: usize) -> Span {
        let start = self.start + self.text.len() - rest.len();
        Span::new(start, start + len)
    }
}

/// A part of a mesh that cannot be read.
fn part(stop: &Stop) -> Diagnostic {
    let end = stop.rest.find(['\n', ';', '}']).unwrap_or(stop.rest.len());
    let text = format!("{}{}", stop.statement, &stop.rest[..end]);
    let text = text.split("//").next().unwrap_or_default();
    let part = Part { text: text.trim_end(), start: stop.before.len() - stop.statement.len() };
    let word = word_at(part.text);
    match word {
        "set" => sets(stop, &part),
        "map" => map(stop, &part),
        "zone" | "zones" => {
            let found = wrong(part.at(part.text, word.len()), "zones are those of a set", "of which?");
            found.help("as in `zone rim, interior on cell`: names, and the set that they cut into parts")
        }
        _ => {
            let found =
                Diagnostic::error(part.at(part.text, word.len().max(1)), format!("`{word}` begins no part of a mesh"))
                    .help(FORM);
            found.meant(nearest(word, PARTS.iter().copied()), |found| {
                found.label("expected `set`, `map`, `zone` or `levels`")
            })
        }
    }
}

fn sets(stop: &Stop, part: &Part) -> Diagnostic {
    let own = &part.text[3..];
    if own.trim().is_empty() {
        return wrong(part.at(part.text, 3), "a `set` has a name", "which?").help("as in `set node, cell`");
    }
    if let Some(from) = own.find(['=', '[', '(', ':']) {
        return wrong(part.at(&own[from..], own.len() - from), "a set has a name alone", "leave this out")
            .help("how many elements it has is said by the file of the mesh");
    }
    // Two names with nothing but blanks between them.
    let Some((one, rest)) = own.trim().split(',').find_map(|own| own.trim().split_once(char::is_whitespace)) else {
        return wrong(stop.here(), "this cannot be read as a list of sets", "not understood").help(FORM);
    };
    let (other, start) = (word_at(rest.trim_start()), own.find(&format!("{one} ")));
    if PARTS.contains(&one) {
        let place = part.at(&own[start.unwrap_or(0)..], one.len());
        return Diagnostic::error(place, "every part of a mesh is a statement of its own")
            .label(format!("write `; {one}` for the comma"))
            .help("or put it on a line of its own");
    }
    let behind = start.map_or(own, |start| &own[start + one.len()..]);
    let place = part.at(&behind[behind.find(other).unwrap_or(0)..], other.len());
    wrong(place, "a comma is missing between two names", format!("write `{one}, {other}`"))
        .help("or, if this is the next part of the mesh, put it on a line of its own")
}

/// The arrows of other languages, longest first.
const ARROWS: &[&str] = &["=>", ":=", "-->", "→", "=", ">", ":"];

fn map(stop: &Stop, part: &Part) -> Diagnostic {
    let told = |place: Span, message: &str, label: String| {
        let form = "as in `map cell.nodes -> node[4]`: from each cell to the 4 nodes of it";
        Diagnostic::error(place, message).label(label).help(form)
    };
    let own = &part.text[3..];
    let Some((head, target)) = own.split_once("->") else {
        let message = "a map leads on with `->`";
        if let Some((from, arrow)) = ARROWS.iter().find_map(|arrow| Some((own.find(arrow)?, arrow))) {
            return told(part.at(&own[from..], arrow.len()), message, "write `->`".into());
        }
        let named = own.trim_start();
        let behind = &named[named.find(char::is_whitespace).unwrap_or(named.len())..];
        return told(part.at(behind, 1), message, "write `->` and the set where it leads".into());
    };
    let (name, rest) = (head.trim(), target.trim_start());
    let at = part.at(&part.text[part.text.find(name).unwrap_or(0)..], name.len().max(1));
    let to = word_at(rest);
    let pair: Vec<&str> = name.split([':', ' ', ',']).map(str::trim).filter(|own| !own.is_empty()).collect();
    match pair.as_slice() {
        [] => return told(at, "a map leads from a set", "which?".into()),
        [only] if !only.contains('.') => {
            let label = format!("write `{only}.{to}s`, or what else it is to be called");
            return told(at, "a map has a name of its own", label);
        }
        [map, from] if !name.contains('.') => {
            return told(at, "the name of a map follows that of its set", format!("write `{from}.{map}`"));
        }
        _ => {}
    }
    let number = &rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())];
    let after = rest[to.len()..].trim_start();
    let clause = after.find(']').map_or(after, |end| &after[end + 1..]).trim_start();
    if !number.is_empty() {
        let set = word_at(rest[number.len()..].trim_start_matches(['*', ' ']));
        told(part.at(rest, number.len()), "how many there are follows the set", format!("write `{set}[{number}]`"))
    } else if after.starts_with(['(', '{']) {
        let inside: String = after[1..].chars().take_while(char::is_ascii_digit).collect();
        told(part.at(after, 1), "how many there are stands in square brackets", format!("write `{to}[{inside}]`"))
    } else if clause.starts_with(is_word) {
        holes(part.at(clause, clause.len()), clause)
    } else {
        told(stop.here(), "this cannot be read as a map", "not understood".into())
    }
}

/// What stands after the slots of a map.
fn holes(at: Span, clause: &str) -> Diagnostic {
    let label = match clause.strip_prefix("missing").map(str::trim_start) {
        Some("") => "`skip` or `value(x)` is missing".into(),
        Some("error" | "never" | "none" | "no") => "leave this out".into(),
        Some(after) if after.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
            format!("write `missing value({after})`")
        }
        Some(after) if after.starts_with("value") => "write `missing value(0)`".into(),
        None if clause.ends_with("skip") => "write `missing skip`".into(),
        Some(_) | None => "not understood".into(),
    };
    Diagnostic::error(at, "what holes mean is `missing skip` or `missing value(x)`").label(label).help(
        "`missing skip` leaves holes out of sums; with `missing value(0)`, what is read through one is 0; without either, a \
         hole is an error when the mesh is loaded",
    )
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
            wrong(place, "a mesh runs over nothing", "leave this out")
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
