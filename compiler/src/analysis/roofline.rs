//! The least time that a computation can take on a GPU, by what the GPU can move and compute at best: the roofline of
//! S. Williams, A. Waterman and D. Patterson, "Roofline: An Insightful Visual Performance Model for Multicore
//! Architectures", Communications of the ACM 52 (2009).

use serde::Serialize;

/// What a machine can do at best.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Limits {
    /// 10^9 bytes a second between processor and memory.
    pub gb_per_s: f64,
    /// 10^9 floating-point operations a second, if all are fused multiply-adds.
    pub gflops: f64,
}

/// What binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Binding {
    /// Bytes.
    Memory,
    /// Operations.
    Arithmetic,
}

/// The least time of a computation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bound {
    /// Microseconds for the bytes.
    pub memory_us: f64,
    /// Microseconds for the operations.
    pub arithmetic_us: f64,
    /// The longer of the two.
    pub bound_us: f64,
    /// Which it is.
    pub binding: Binding,
}

impl Limits {
    /// The least time for so many bytes and floating-point instructions. The machine's flops are those of fused
    /// multiply-adds, two an instruction; any other operation takes such an instruction's place and gives one at most.
    pub fn bound(&self, bytes: f64, instructions: f64) -> Bound {
        let memory_us = bytes / self.gb_per_s * 1e-3;
        let arithmetic_us = 2.0 * instructions / self.gflops * 1e-3;
        let binding = if memory_us >= arithmetic_us { Binding::Memory } else { Binding::Arithmetic };
        Bound { memory_us, arithmetic_us, bound_us: memory_us.max(arithmetic_us), binding }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_time_binds() {
        let limits = Limits { gb_per_s: 1000.0, gflops: 10_000.0 };
        let bound = limits.bound(2e9, 4e9);
        assert_eq!((bound.memory_us, bound.arithmetic_us, bound.binding), (2000.0, 800.0, Binding::Memory));
        assert_eq!(limits.bound(1e9, 1e10).binding, Binding::Arithmetic);
    }
}
