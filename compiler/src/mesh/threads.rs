//! The threads of kernels over meshes: how many a block has, and how many levels each goes through.

use std::fmt;
use std::str::FromStr;

/// `128`, `128x8`, `128/16`, `128x8/16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    /// Threads of a block.
    pub block: u32,
    /// Blocks that have to fit on a multiprocessor, which bounds the registers of a thread; 0 if nothing is asked.
    pub at_once: u32,
    /// How many levels a thread goes through one after the other, where a stencil writes at its own elements; 0 if that is chosen by itself.
    pub slice: u32,
}

impl Default for Threads {
    fn default() -> Self {
        Self { block: 128, at_once: 0, slice: 0 }
    }
}

impl FromStr for Threads {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (rest, slice) = text.split_once('/').map_or((text, None), |(rest, slice)| (rest, Some(slice)));
        let (block, at_once) = rest.split_once('x').unwrap_or((rest, "0"));
        let slice = slice.map_or(Ok(0), |slice| slice.parse().map(|slice: u32| slice.max(1)));
        match (block.parse(), at_once.parse(), slice) {
            (Ok(block @ 32..=1024), Ok(at_once @ 0..=32), Ok(slice @ 0..=4096)) => Ok(Self { block, at_once, slice }),
            _ => Err("a block has 32 to 1024 threads, as in 128, or 128x8 for eight such blocks at once, or 128/16 for threads that \
                      go through 16 levels each"
                .to_owned()),
        }
    }
}

impl fmt::Display for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.block)?;
        if self.at_once > 0 {
            write!(f, "x{}", self.at_once)?;
        }
        if self.slice > 0 {
            write!(f, "/{}", self.slice)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_read_as_they_are_written() {
        for text in ["128", "64x8", "128/16", "256x2/1"] {
            assert_eq!(text.parse::<Threads>().unwrap().to_string(), text);
        }
        for text in ["", "31", "2048", "x8", "128x", "128/", "128/-1", "128/5000", "128/4x2"] {
            assert!(text.parse::<Threads>().unwrap_err().contains("128x8"), "{text}");
        }
    }
}
