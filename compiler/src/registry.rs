//! Looking things up by the name that the command line gives them.

use crate::diagnostic::guess;

/// The entry of a registry called `name`; `what` it is, for the message.
///
/// # Errors
/// There is none: a message with a guess.
pub fn find<T: Copy>(registry: &[T], name_of: impl Fn(T) -> &'static str, name: &str, what: &str) -> Result<T, String> {
    if let Some(&found) = registry.iter().find(|&&entry| name_of(entry) == name) {
        return Ok(found);
    }
    let names: Vec<&str> = registry.iter().map(|&entry| name_of(entry)).collect();
    Err(match guess(name, names.iter().copied()) {
        Some(guess) => format!("there is no {what} `{name}`; did you mean `{guess}`?"),
        None => format!("there is no {what} `{name}`; there are {}", names.join(", ")),
    })
}
