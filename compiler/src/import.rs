//! `import "file.stn"`: the texts of a file and of all that it imports become one [`Source`]. Who calls says how a file is found and
//! read; nothing here does.

use crate::diagnostic::{Diagnostic, Refusal, wrong};
use crate::parse::{LENGTH, imports};
use crate::source::{Imports, Part, Source, Span};
use std::collections::HashSet;

/// The most files that a file imports, with all that these import.
const FILES: usize = 100;

/// A file that was read.
#[derive(Clone, Debug)]
pub struct Text {
    /// What is the same for two names of one file alone.
    pub key: String,
    /// What messages call it.
    pub name: String,
    /// What it says.
    pub text: String,
}

/// Reads a file that another one imports, by the path that is written there.
pub type Read<'a> = dyn FnMut(&Text, &str) -> Result<Text, Refusal> + 'a;

/// A file whose imports are being read.
struct Open {
    file: Text,
    /// Where its text begins in the whole one.
    start: usize,
    imports: Vec<(String, Span)>,
    next: usize,
}

impl Open {
    fn new(file: Text, start: usize) -> Self {
        Self { imports: imports(&file.text), file, start, next: 0 }
    }
}

/// A file with all that it imports: each once, behind the first one that imports it. What goes wrong is told by whoever parses the
/// source, at the place of the import.
pub fn joined(own: Text, read: &mut Read) -> Source {
    let (mut text, mut parts) = (own.text.clone(), Vec::new());
    let name = own.name.clone();
    let mut known = HashSet::from([own.key.clone()]);
    let mut open = vec![Open::new(own, 0)];
    let mut state = Imports::Read;
    while let Some(last) = open.last_mut() {
        let Some((path, local)) = last.imports.get(last.next).cloned() else {
            open.pop();
            continue;
        };
        last.next += 1;
        let at = local.moved(last.start);
        let found = match read(&last.file, &path) {
            Ok(found) => found,
            Err(Refusal { message, help }) => {
                state = Imports::Failed(Box::new(wrong(at, message, "imported here").help_if(help)));
                break;
            }
        };
        if let Some(first) = open.iter().position(|own| own.file.key == found.key) {
            let names = open[first..].iter().map(|own| &own.file).chain([&open[first].file]);
            let circle: Vec<String> = names.map(|own| format!("`{}`", own.name)).collect();
            let message =
                if circle.len() == 2 { "this file imports itself" } else { "files import each other in a circle" };
            state = Imports::Failed(Box::new(
                wrong(at, message, circle.join(" -> "))
                    .help("put what both need into a file of its own, and import that"),
            ));
            break;
        }
        if !known.insert(found.key.clone()) {
            continue;
        }
        // The mark that some editors begin a file with stands at the beginning of a text alone.
        let added = found.text.strip_prefix('\u{FEFF}').unwrap_or(&found.text).to_owned();
        if parts.len() == FILES || text.len() + 1 + added.len() > LENGTH {
            state = Imports::Failed(Box::new(too_much(at, parts.len() == FILES)));
            break;
        }
        text.push('\n');
        parts.push(Part { name: found.name.clone(), start: text.len() as u32 });
        let start = text.len();
        text.push_str(&added);
        open.push(Open::new(Text { text: added, ..found }, start));
    }
    Source::joined(name, text, parts, state)
}

fn too_much(at: Span, files: bool) -> Diagnostic {
    let found = match files {
        true => Diagnostic::error(at, format!("a file imports at most {FILES} others, with those that these import")),
        false => Diagnostic::error(at, format!("a file and all that it imports are at most {} KiB", LENGTH >> 10)),
    };
    found.label("one too many")
}
