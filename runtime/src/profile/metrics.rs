//! What is counted: of each counter its name here, its name in Nsight Compute, and its unit.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a counter counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Of a hundred.
    Percent,
    /// Instructions a cycle.
    PerCycle,
    /// Requests of a warp.
    Requests,
    /// Pieces of [`SECTOR`](stencilc_compiler::gpu::SECTOR) bytes.
    Sectors,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Nanoseconds,
}

/// One counter.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// What it is called here.
    pub name: &'static str,
    /// What Nsight Compute calls it.
    pub ncu: &'static str,
    /// What it counts in.
    pub unit: Unit,
}

const fn metric(name: &'static str, ncu: &'static str, unit: Unit) -> Metric {
    Metric { name, ncu, unit }
}

/// Everything that is counted. They are today's names of what A. Roesti, "Efficient GPU Implementation of Stencils on
/// Unstructured Grids" (ETH Zurich, 2020), section 3.3.5, read from nvprof.
pub const METRICS: [Metric; 17] = [
    metric("duration", "gpu__time_duration.sum", Unit::Nanoseconds),
    // Warps at work, of those that a multiprocessor has room for.
    metric("occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active", Unit::Percent),
    // Cycles in which an instruction is issued.
    metric("issue_slots", "smsp__issue_active.avg.pct_of_peak_sustained_active", Unit::Percent),
    metric("ipc", "sm__inst_executed.avg.per_cycle_active", Unit::PerCycle),
    // Time that warps wait for memory beyond a multiprocessor.
    metric("memory_stalls", "smsp__warp_issue_stalled_long_scoreboard_per_warp_active.pct", Unit::Percent),
    // What threads ask for, of what is moved for it.
    metric("load_efficiency", "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct", Unit::Percent),
    metric("load_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", Unit::Requests),
    metric("load_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", Unit::Sectors),
    metric("store_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", Unit::Sectors),
    metric("l1_hits", "l1tex__t_sector_hit_rate.pct", Unit::Percent),
    metric("l2_hits", "lts__t_sector_hit_rate.pct", Unit::Percent),
    metric("l2_read_sectors", "lts__t_sectors_srcunit_tex_op_read.sum", Unit::Sectors),
    metric("l2_written_sectors", "lts__t_sectors_srcunit_tex_op_write.sum", Unit::Sectors),
    metric("dram_read", "dram__bytes_read.sum", Unit::Bytes),
    metric("dram_written", "dram__bytes_write.sum", Unit::Bytes),
    metric("dram_share", "dram__throughput.avg.pct_of_peak_sustained_elapsed", Unit::Percent),
    // Passes through shared memory.
    metric("shared_loads", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", Unit::Requests),
];

/// What a counter came to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Counter {
    /// What it counts in.
    pub unit: Unit,
    /// How much; nothing if this GPU, or this Nsight Compute, does not count it.
    pub value: Option<f64>,
}

/// Every counter, by its name here.
pub type Counters = BTreeMap<String, Counter>;

impl Unit {
    /// The factor from the unit that Nsight Compute writes; nothing if it is a unit of something else.
    pub(super) fn factor(self, written: &str) -> Option<f64> {
        let one_of = |units: &[(&str, f64)]| units.iter().find(|(unit, _)| *unit == written).map(|(_, factor)| *factor);
        match self {
            Unit::Percent => one_of(&[("%", 1.0)]),
            Unit::PerCycle => one_of(&[("inst/cycle", 1.0), ("", 1.0)]),
            Unit::Requests | Unit::Sectors => {
                one_of(&[("", 1.0), ("request", 1.0), ("sector", 1.0), ("wavefront", 1.0), ("inst", 1.0)])
            }
            Unit::Bytes => one_of(&[("byte", 1.0), ("Kbyte", 1e3), ("Mbyte", 1e6), ("Gbyte", 1e9), ("Tbyte", 1e12)]),
            Unit::Nanoseconds => one_of(&[
                ("ns", 1.0),
                ("nsecond", 1.0),
                ("us", 1e3),
                ("usecond", 1e3),
                ("ms", 1e6),
                ("msecond", 1e6),
                ("s", 1e9),
                ("second", 1e9),
            ]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_names_of_one_thing() {
        let names: BTreeSet<&str> = METRICS.iter().map(|metric| metric.name).collect();
        let ncu: BTreeSet<&str> = METRICS.iter().map(|metric| metric.ncu).collect();
        assert_eq!((names.len(), ncu.len()), (METRICS.len(), METRICS.len()));
        // With commas between them they are one argument.
        assert!(ncu.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte))));
    }

    #[test]
    fn units_are_those_of_the_counter() {
        assert_eq!(Unit::Bytes.factor("Mbyte"), Some(1e6));
        assert_eq!(Unit::Nanoseconds.factor("usecond"), Some(1e3));
        assert_eq!((Unit::Bytes.factor("%"), Unit::Percent.factor("")), (None, None));
    }
}
