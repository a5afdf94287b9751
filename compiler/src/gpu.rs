//! What is known of GPUs: what all of them have alike, what one has of each, what its maker says of its speed, and what to start a kernel
//! costs. What models of single kernels were fitted to stands with them (`step/tiled/cost.rs`).

use crate::analysis::roofline::Limits;
use crate::ir::Precision;
use serde::Serialize;

/// Threads of a warp.
pub const WARP: usize = 32;

/// Bytes that one instruction moves at most.
pub const AT_ONCE: usize = 16;

/// Bytes that caches and memory move at once.
pub const SECTOR: usize = 32;

/// Bytes of constant memory.
pub const CONSTANT: usize = 64 << 10;

/// The most threads of a block.
pub const MOST_THREADS: usize = 1024;

/// The most blocks that a multiprocessor works on at once.
pub const MOST_BLOCKS: u32 = 32;

/// Bytes of shared memory that a block has without asking for more, and that a kernel can declare.
pub const SHARED: usize = 48 << 10;

/// The most bytes of shared memory that a block can ask for: a Hopper's. Where there are fewer, the launch fails and says so.
pub const MOST_SHARED: usize = 227 << 10;

/// Bytes of shared memory that a block can ask for on each GPU that copies to shared memory without registers (compute capability 8.0 and
/// more): what makes a kernel faster, and no more than that, takes no more.
pub const COMMON_SHARED: usize = 99 << 10;

/// Microseconds from one launch to the next, at the least.
pub const LAUNCH_US: f64 = 2.0;

/// What a GPU has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Multiprocessors.
    pub processors: u32,
    /// Registers of 32 bits that one has.
    pub registers: u32,
    /// Threads that one holds.
    pub threads: u32,
    /// Bytes of shared memory that one has.
    pub shared: u32,
    /// Bytes of the second-level cache.
    pub cache: usize,
}

impl Gpu {
    /// An H200, and an H100 with all its memory: sm_90.
    pub const SM_90: Gpu =
        Gpu { processors: 132, registers: 65_536, threads: 2_048, shared: 228 << 10, cache: 50 << 20 };
}

/// What a GPU can do at best, as its maker says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sheet {
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
pub const SHEETS: &[Sheet] = &[
    sheet("b200", &["B200"], 8000.0, 37_000.0, 75_000.0, "NVIDIA HGX B200 data sheet, 2025"),
    sheet("h200", &["H200"], 4800.0, 34_000.0, 67_000.0, "NVIDIA H200 data sheet, 2024"),
    sheet("h100-pcie", &["H100", "PCIe"], 2000.0, 26_000.0, 51_000.0, "NVIDIA H100 data sheet, 2023"),
    sheet("h100-nvl", &["H100", "NVL"], 3900.0, 30_000.0, 60_000.0, "NVIDIA H100 data sheet, 2024"),
    sheet("h100", &["H100"], 3350.0, 34_000.0, 67_000.0, "NVIDIA H100 data sheet, 2023"),
    sheet("a100-pcie", &["A100", "80GB", "PCIe"], 1935.0, 9700.0, 19_500.0, "NVIDIA A100 data sheet, 2021"),
    sheet("a100-40gb", &["A100", "40GB"], 1555.0, 9700.0, 19_500.0, "NVIDIA A100 data sheet, 2020"),
    sheet("a100", &["A100"], 2039.0, 9700.0, 19_500.0, "NVIDIA A100 data sheet, 2021"),
    sheet("a30", &["A30"], 933.0, 5200.0, 10_300.0, "NVIDIA A30 data sheet, 2021"),
    sheet("v100-pcie", &["V100", "PCIE"], 900.0, 7000.0, 14_000.0, "NVIDIA V100 data sheet, 2020"),
    sheet("v100", &["V100"], 900.0, 7800.0, 15_700.0, "NVIDIA V100 data sheet, 2020"),
    sheet("l40s", &["L40S"], 864.0, 91_600.0 / 64.0, 91_600.0, "NVIDIA L40S data sheet, 2023"),
    sheet("l4", &["L4"], 300.0, 30_300.0 / 64.0, 30_300.0, "NVIDIA L4 data sheet, 2023"),
    sheet("t4", &["T4"], 320.0, 8100.0 / 32.0, 8100.0, "NVIDIA T4 data sheet, 2019"),
];

const fn sheet(
    name: &'static str,
    words: &'static [&'static str],
    gb_per_s: f64,
    f64_gflops: f64,
    f32_gflops: f64,
    source: &'static str,
) -> Sheet {
    Sheet { name, words, gb_per_s, f64_gflops, f32_gflops, source }
}

/// What a copy comes to of the bandwidth that a data sheet tells.
const OF_SHEET: f64 = 0.83;

impl Sheet {
    /// The GPU that models are of where there is none, or one that is in no table.
    pub fn usual() -> &'static Sheet {
        const USUAL: &str = "h200";
        SHEETS.iter().find(|own| own.name == USUAL).unwrap_or(&SHEETS[0])
    }

    /// What the GPU that the driver calls `name` comes to: with the rate of a copy, in 10^9 bytes a second, where one was measured.
    pub fn reached(name: &str, precision: Precision, copy: Option<f64>) -> Limits {
        let limits = Self::by_driver_name(name).unwrap_or_else(Self::usual).limits(precision);
        Limits { gb_per_s: copy.unwrap_or(OF_SHEET * limits.gb_per_s), ..limits }
    }

    /// The GPU that the driver calls `name`, as in `NVIDIA A100-SXM4-40GB`.
    pub fn by_driver_name(name: &str) -> Option<&'static Sheet> {
        let words: Vec<&str> = name.split([' ', '-']).collect();
        SHEETS.iter().find(|own| own.words.iter().all(|word| words.contains(word)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_names_lead_to_their_rows() {
        let row = |name| Sheet::by_driver_name(name).map(|own| own.name);
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
}
