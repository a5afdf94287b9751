//! Arrays in NumPy's `.npy` files.
//!
//! The format is NumPy's NEP 1: a magic string, a version, the length of the header, the header (a
//! Python dictionary with the type, the order and the shape), the numbers. A file is not believed
//! before it is checked: its header against the format, then its length against the header, and
//! only then is memory asked for.

mod archive;
mod header;
mod missing;
mod read;
mod refusal;
mod stored;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use archive::{Archive, save_archive, write_archive};
pub(crate) use read::{Whole, read_count, read_whole};
pub use read::{load, read};
pub use stored::Stored;
pub(crate) use stored::read_rows;
pub use write::{save, write};
pub(crate) use write::{write_data, write_head};

/// What every file begins with; two bytes of version follow.
const MAGIC: &[u8] = b"\x93NUMPY";

/// How many numbers are converted at once.
const CHUNK: usize = 1 << 16;
