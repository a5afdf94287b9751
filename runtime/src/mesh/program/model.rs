//! How long kernels should take: a model that ranks strategies, layouts and orders before any is measured.
//!
//! A kernel takes the longest of three times: of its bytes from and to memory, by how fast memory is copied; of its
//! instructions; and of its atomic additions, which the second-level cache does, so many for each byte that memory moves. Launches
//! come one after the other. What is left out: caches of the first level, and how many threads registers leave room for.

use super::kernels::{Work, Works};
use serde::Serialize;
use stencilc_compiler::analysis::roofline::Limits;
use stencilc_compiler::gpu::LAUNCH_US;

/// Atomic additions in the time in which memory moves a byte: what atomics of `res_calc` came to on an H200, 46 million in 182
/// microseconds where copies ran at 3,980 GB/s. In layouts that keep fewer numbers of a target together it is up to 1.4 times that.
const ADDITIONS: f64 = 0.063;

/// What a kernel's time is bound by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Binding {
    /// Bytes from and to memory.
    Memory,
    /// Floating-point instructions.
    Arithmetic,
    /// Atomic additions.
    Atomics,
}

impl Binding {
    /// As texts call it.
    pub fn name(self) -> &'static str {
        match self {
            Binding::Memory => "memory",
            Binding::Arithmetic => "arithmetic",
            Binding::Atomics => "atomics",
        }
    }
}

impl Work {
    /// Microseconds that its bytes, its instructions and its atomic additions should take.
    fn times(&self, limits: &Limits) -> [(Binding, f64); 3] {
        let bound = limits.bound(self.memory_bytes, self.instructions);
        [
            (Binding::Memory, bound.memory_us),
            (Binding::Arithmetic, bound.arithmetic_us),
            (Binding::Atomics, self.atomics / (ADDITIONS * limits.gb_per_s * 1e3)),
        ]
    }
}

impl Works {
    /// Microseconds that all launches should take, and what binds the kernel that takes the longest.
    pub fn predicted(&self, limits: &Limits) -> (f64, Binding) {
        let (mut sum, mut longest) = (0.0, (Binding::Memory, 0.0));
        for work in &self.kernels {
            let own = work.times(limits).into_iter().reduce(|a, b| if b.1 > a.1 { b } else { a });
            let own = own.unwrap_or((Binding::Memory, 0.0));
            sum += own.1 + LAUNCH_US * work.launches as f64;
            longest = if own.1 > longest.1 { own } else { longest };
        }
        (sum, longest.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_of_three_times_binds_each_kernel() {
        let limits = Limits { gb_per_s: 1000.0, gflops: 10_000.0 };
        let work = |memory_bytes, instructions, atomics| Work {
            memory_bytes,
            instructions,
            atomics,
            launches: 1,
            ..Work::default()
        };
        let works = |kernels| Works { kernels, colours: None, targets: 1 };
        assert_eq!(works(vec![work(1e9, 1e9, 0.0)]).predicted(&limits), (1002.0, Binding::Memory));
        assert_eq!(works(vec![work(1e6, 1e9, 0.0)]).predicted(&limits), (202.0, Binding::Arithmetic));
        assert_eq!(works(vec![work(1e6, 0.0, 63e6)]).predicted(&limits), (1002.0, Binding::Atomics));
        let two = works(vec![work(1e9, 0.0, 0.0), work(2e9, 0.0, 0.0)]);
        assert_eq!(two.predicted(&limits), (3004.0, Binding::Memory));
    }
}
