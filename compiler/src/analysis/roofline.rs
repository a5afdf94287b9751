//! The least time that a computation can take on a GPU, by what the GPU can move and compute at best: the roofline of
//! S. Williams, A. Waterman and D. Patterson, "Roofline: An Insightful Visual Performance Model for Multicore
//! Architectures", Communications of the ACM 52 (2009).

use crate::ir::Precision;
use serde::Serialize;

/// What a GPU can do at best, as its maker says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Gpu {
    /// What the command line calls it.
    pub name: &'static str,
    /// Words that the driver's name of it has.
    #[serde(skip)]
    pub words: &'static [&'static str],
    /// 10^9 bytes a second between the GPU and its memory.
    pub gb_per_s: f64,
    /// 10^9 floating-point operations a second in double precision, without tensor cores.
    pub f64_gflops: f64,
    /// The same in single precision.
    pub f32_gflops: f64,
    /// Where the figures are from.
    pub source: &'static str,
}

/// GPUs by their makers' data sheets. Of several that the driver's name suits, the first is meant. Where a sheet leaves
/// double precision out (L40S, L4, T4), it is the architecture's share of single precision: 1/64, 1/64 and 1/32.
pub const GPUS: &[Gpu] = &[
    gpu("b200", &["B200"], 8000.0, 37_000.0, 75_000.0, "NVIDIA HGX B200 data sheet, 2025"),
    gpu("h200", &["H200"], 4800.0, 34_000.0, 67_000.0, "NVIDIA H200 data sheet, 2024"),
    gpu("h100-pcie", &["H100", "PCIe"], 2000.0, 26_000.0, 51_000.0, "NVIDIA H100 data sheet, 2023"),
    gpu("h100-nvl", &["H100", "NVL"], 3900.0, 30_000.0, 60_000.0, "NVIDIA H100 data sheet, 2024"),
    gpu("h100", &["H100"], 3350.0, 34_000.0, 67_000.0, "NVIDIA H100 data sheet, 2023"),
    gpu("a100-pcie", &["A100", "80GB", "PCIe"], 1935.0, 9700.0, 19_500.0, "NVIDIA A100 data sheet, 2021"),
    gpu("a100-40gb", &["A100", "40GB"], 1555.0, 9700.0, 19_500.0, "NVIDIA A100 data sheet, 2020"),
    gpu("a100", &["A100"], 2039.0, 9700.0, 19_500.0, "NVIDIA A100 data sheet, 2021"),
    gpu("a30", &["A30"], 933.0, 5200.0, 10_300.0, "NVIDIA A30 data sheet, 2021"),
    gpu("v100-pcie", &["V100", "PCIE"], 900.0, 7000.0, 14_000.0, "NVIDIA V100 data sheet, 2020"),
    gpu("v100", &["V100"], 900.0, 7800.0, 15_700.0, "NVIDIA V100 data sheet, 2020"),
    gpu("l40s", &["L40S"], 864.0, 91_600.0 / 64.0, 91_600.0, "NVIDIA L40S data sheet, 2023"),
    gpu("l4", &["L4"], 300.0, 30_300.0 / 64.0, 30_300.0, "NVIDIA L4 data sheet, 2023"),
    gpu("t4", &["T4"], 320.0, 8100.0 / 32.0, 8100.0, "NVIDIA T4 data sheet, 2019"),
];

const fn gpu(
    name: &'static str,
    words: &'static [&'static str],
    gb_per_s: f64,
    f64_gflops: f64,
    f32_gflops: f64,
    source: &'static str,
) -> Gpu {
    Gpu { name, words, gb_per_s, f64_gflops, f32_gflops, source }
}

impl Gpu {
    /// The GPU that the driver calls `name`, as in `NVIDIA A100-SXM4-40GB`.
    pub fn by_driver_name(name: &str) -> Option<&'static Gpu> {
        let words: Vec<&str> = name.split([' ', '-']).collect();
        GPUS.iter().find(|gpu| gpu.words.iter().all(|word| words.contains(word)))
    }

    /// What bounds a computation on it.
    pub fn limits(&self, precision: Precision) -> Limits {
        let gflops = match precision {
            Precision::F32 => self.f32_gflops,
            Precision::F64 => self.f64_gflops,
        };
        Limits { gb_per_s: self.gb_per_s, gflops }
    }
}

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
    fn drivers_names_lead_to_their_rows() {
        let row = |name| Gpu::by_driver_name(name).map(|gpu| gpu.name);
        for (name, expected) in [
            ("NVIDIA H200", Some("h200")),
            ("NVIDIA H100 80GB HBM3", Some("h100")),
            ("NVIDIA H100 PCIe", Some("h100-pcie")),
            ("NVIDIA A100-SXM4-40GB", Some("a100-40gb")),
            ("NVIDIA A100-SXM4-80GB", Some("a100")),
            ("NVIDIA A100 80GB PCIe", Some("a100-pcie")),
            ("Tesla V100-PCIE-16GB", Some("v100-pcie")),
            ("Tesla V100-SXM2-16GB", Some("v100")),
            ("NVIDIA L40S", Some("l40s")),
            ("NVIDIA L4", Some("l4")),
            ("NVIDIA GeForce RTX 4090", None),
        ] {
            assert_eq!(row(name), expected, "{name}");
        }
    }

    #[test]
    fn the_longer_time_binds() {
        let limits = Limits { gb_per_s: 1000.0, gflops: 10_000.0 };
        let bound = limits.bound(2e9, 4e9);
        assert_eq!((bound.memory_us, bound.arithmetic_us, bound.binding), (2000.0, 800.0, Binding::Memory));
        assert_eq!(limits.bound(1e9, 1e10).binding, Binding::Arithmetic);
    }
}
