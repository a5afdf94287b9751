//! How much memory there is, and what is asked of it.
//!
//! Whatever says how large something is (a header of a file, an option, a program) says it before anything is held, so it is
//! judged here first: against the machine, against the limits of the process, and against those of its control groups.
//! Linux gives out more memory than it has, and ends whoever uses it; so a list that could be made is not yet one that fits.
//!
//! - [`check`] judges a whole plan before it begins;
//! - [`list`], [`filled`] and [`read`] make what is as long as somebody else says, or give an error;
//! - [`Allocator`] is behind all that asks for memory without a way to fail: it ends the program with a message.

mod allocator;
mod available;

pub(crate) use allocator::asking;
pub use allocator::{Allocator, Exhausted};
pub use available::{Available, Limit, addresses, allowed, available};

use crate::error::{Error, Result};
use std::fmt;
use std::io::Read;

/// Bytes below which nobody looks at how much there is: finding that out takes longer.
const SMALL: u128 = 1 << 20;

/// What to do where the caller knows nothing better.
pub const HELP: &str = "take a smaller grid or mesh, raise the limit, or use a machine with more memory";

/// Refuses more bytes than can still be had. `what` takes them: "the fields take".
///
/// # Errors
/// There are not so many.
pub fn check(bytes: u128, what: &str, help: &str) -> Result<()> {
    if bytes < SMALL {
        return Ok(());
    }
    let there = available();
    let fits = there.is_none_or(|there| bytes <= u128::from(there.bytes)) && isize::try_from(bytes).is_ok();
    match (fits, there) {
        (true, _) => Ok(()),
        (false, Some(there)) => Err(Error::input(format!("{what} {}, {there}", Size(bytes))).help(help)),
        (false, None) => Err(Error::input(format!("{what} {}, more than any machine holds", Size(bytes))).help(help)),
    }
}

/// An empty list with room for `count` elements of `what`, which messages name: "the numbers of `left`".
///
/// # Errors
/// There is not so much memory.
pub fn list<T>(count: usize, what: &str) -> Result<Vec<T>> {
    let bytes = count as u128 * size_of::<T>() as u128;
    check(bytes, &format!("{what} take"), HELP)?;
    let mut list = Vec::new();
    match asking(|| list.try_reserve_exact(count)) {
        Ok(()) => Ok(list),
        Err(_) => {
            Err(Error::input(format!("{what} take {}, and so much memory is not to be had", Size(bytes))).help(HELP))
        }
    }
}

/// A list of `count` times the same value; `what` as of [`list`].
///
/// # Errors
/// There is not so much memory.
pub fn filled<T: Clone>(value: T, count: usize, what: &str) -> Result<Vec<T>> {
    let mut list = list(count, what)?;
    list.resize(count, value);
    Ok(list)
}

/// All bytes of a file, which has `length` of them as far as is known; `what` as of [`list`].
///
/// # Errors
/// There is not so much memory, or the file cannot be read.
pub fn read(file: &mut impl Read, length: u64, what: &str) -> Result<Vec<u8>> {
    let length = usize::try_from(length).map_err(|_| Error::input(format!("{what} take {length} bytes")).help(HELP))?;
    let mut bytes = list(length, what)?;
    file.read_to_end(&mut bytes).map_err(|error| Error::input(error.to_string()))?;
    Ok(bytes)
}

/// A number of bytes in the unit that suits it.
#[derive(Clone, Copy, Debug)]
pub struct Size(pub u128);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as f64;
        match self.0 {
            0x4000_0000.. => write!(f, "{:.1} GiB", bytes / f64::from(1 << 30)),
            0x10_0000.. => write!(f, "{:.1} MiB", bytes / f64::from(1 << 20)),
            _ => write!(f, "{} bytes", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_machine_holds_is_an_error() {
        for bytes in [u128::MAX, 1 << 64, 1 << 62] {
            let error = check(bytes, "the fields take", "give less").unwrap_err();
            assert!(error.message.starts_with("the fields take "), "{}", error.message);
            assert_eq!(error.help.as_deref(), Some("give less"));
        }
        check(0, "nothing takes", "").unwrap();
        for count in [usize::MAX, usize::MAX / 8, 1 << 50] {
            let error = list::<f64>(count, "the numbers").unwrap_err();
            assert!(error.message.starts_with("the numbers take ") && error.message.contains("GiB"), "{error}");
        }
        assert_eq!(filled(7_u8, 3, "the numbers").unwrap(), [7; 3]);
        let error = read(&mut [1_u8, 2].as_slice(), 1 << 60, "the bytes").unwrap_err();
        assert!(error.message.starts_with("the bytes take "), "{error}");
        // What is longer than was said is read all the same.
        assert_eq!(read(&mut [1_u8, 2].as_slice(), 0, "the bytes").unwrap(), [1, 2]);
    }

    #[test]
    fn sizes_have_units() {
        let said = [1 << 10, 1 << 20, 3 << 29, 1 << 64].map(|bytes| Size(bytes).to_string());
        assert_eq!(said, ["1024 bytes", "1.0 MiB", "1.5 GiB", "17179869184.0 GiB"]);
    }
}
