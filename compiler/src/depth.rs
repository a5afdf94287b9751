//! How deep a text may go, without any stack being too small for it.
//!
//! - What reads a text, [`parse`](crate::parse::parse) and [`lower`](crate::lower::lower), recurses along expressions, and along
//!   the functions, constants and defaults that they name. Each does so on a stack of its own ([`on_own_stack`]), whoever calls
//!   it, and all of lowering counts how deep it is with one counter, which ends at [`NESTED`].
//! - Everything after that is loops, since names stand in chains as long as the text: where a value is found by way of
//!   others, [`needed_first`] lists those before it.
//! - C++ compilers recurse along expressions, too: [`ir::split`](crate::ir::split) leaves none that is deeper than [`BODY`].

use crate::diagnostic::Diagnostic;
use crate::source::Span;
use std::collections::HashSet;
use std::hash::Hash;

/// How many expressions may be nested in each other, those of the functions, constants and defaults counted that they name.
pub const NESTED: usize = 4_000;

/// The stack on which a text is read, in bytes: several times what [`NESTED`] expressions and the parser's brackets take.
/// Only what is used of it is ever memory.
const STACK: usize = 64 << 20;

/// How deep the operations of a body are nested that kernels are made of; compilers give up somewhat beyond it.
pub const BODY: usize = 200;

/// Does what recurses along a text on a stack that is large enough for it, however small that of the caller is.
///
/// # Errors
/// There is no memory for the stack.
#[allow(clippy::disallowed_types, reason = "it is no thread beside others: its stack is all that is wanted of it")]
pub fn on_own_stack<T: Send>(read: impl FnOnce() -> T + Send) -> Result<T, Diagnostic> {
    std::thread::scope(|scope| match std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, read) {
        Ok(reader) => Ok(reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))),
        Err(_) => Err(Diagnostic::error(Span::default(), "there is too little memory to read this file")
            .help(format!("reading takes a stack of {} MiB: is there a limit, as `ulimit -v` sets one?", STACK >> 20))),
    })
}

/// What `roots` need, directly or not, and then they themselves: each once, and after all that it needs. `needs` says what one of
/// them needs at once, but for what is known already.
pub fn needed_first<K: Clone + Eq + Hash>(roots: Vec<K>, needs: impl Fn(&K) -> Vec<K>) -> Vec<K> {
    let (mut order, mut seen) = (Vec::new(), HashSet::new());
    let mut waiting: Vec<(K, bool)> = roots.into_iter().rev().map(|root| (root, false)).collect();
    while let Some((key, is_ready)) = waiting.pop() {
        if is_ready {
            order.push(key);
        } else if seen.insert(key.clone()) {
            let needed = needs(&key);
            waiting.push((key, true));
            waiting.extend(needed.into_iter().rev().map(|key| (key, false)));
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_comes_first_and_once() {
        // 5 needs 3 and 4, both need 1 and 2, and 4 needs 3.
        let needs = |key: &i32| match key {
            5 => vec![3, 4],
            4 => vec![1, 2, 3],
            3 => vec![2, 1],
            _ => Vec::new(),
        };
        assert_eq!(needed_first(vec![5, 4, 7], needs), [2, 1, 3, 4, 5, 7]);
    }

    #[test]
    fn a_long_chain_is_no_deep_one() {
        let order = needed_first(vec![1_000_000], |&n: &i32| if n == 0 { Vec::new() } else { vec![n - 1] });
        assert!(order.iter().copied().eq(0..=1_000_000));
    }
}
