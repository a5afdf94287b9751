//! What took how long in a run of a stencil.

use serde::Serialize;
use stencilc_runtime::Device;
use stencilc_runtime::execute;

/// What took how long, in seconds where nothing else is said.
#[derive(Default, Serialize)]
pub struct Timings {
    pub parse: f64,
    pub lower: f64,
    /// Reading arrays, drawing numbers, and checking both.
    pub problem: f64,
    /// On the CPU: the interpreter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compute: Option<f64>,
    /// On a GPU or the emulator.
    #[serde(flatten)]
    pub kernel: Option<KernelTimings>,
    pub total: f64,
}

#[derive(Serialize)]
pub struct KernelTimings {
    /// The driver's start, or the search for a C++ compiler.
    pub startup: f64,
    pub plan: f64,
    pub print: f64,
    pub compile: f64,
    /// Whether the kernel had been compiled before.
    pub compile_cached: bool,
    pub load: f64,
    #[serde(flatten)]
    pub execution: execute::Timings,
    /// Microseconds of a launch.
    pub kernel_median_us: f64,
    pub kernel_min_us: f64,
    /// Bytes that must move, by the median time. Of an emulated kernel it would say nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_gb_per_s: Option<f64>,
    /// From the program's start to the first launch, without `startup`.
    pub first_launch_overhead: f64,
}

impl Timings {
    /// Rows of a table.
    pub fn rows(&self, device: Device) -> Vec<Vec<String>> {
        let row = |what: &str, number: String, unit: &str| vec![what.to_owned(), number, unit.to_owned()];
        let time = |what: &str, seconds: f64| row(what, format!("{:.3}", seconds * 1e3), "ms");
        let mut rows = vec![time("parse", self.parse), time("lower", self.lower), time("problem", self.problem)];
        rows.extend(self.compute.map(|seconds| time("compute", seconds)));
        if let Some(kernel) = &self.kernel {
            let execute::Timings { pack, upload, download, unpack } = kernel.execution;
            let compile = if kernel.compile_cached { "ms, read from the cache" } else { "ms" };
            let startup = if matches!(device, Device::Emulate | Device::Native) {
                "search for a compiler"
            } else {
                "driver's start"
            };
            rows.extend([
                time(startup, kernel.startup),
                time("plan", kernel.plan),
                time("print", kernel.print),
                row("compile", format!("{:.3}", kernel.compile * 1e3), compile),
                time("load", kernel.load),
                time("pack", pack),
                time("upload", upload),
                row("kernel, median", format!("{:.2}", kernel.kernel_median_us), "us"),
                row("kernel, minimum", format!("{:.2}", kernel.kernel_min_us), "us"),
            ]);
            let traffic = kernel.kernel_gb_per_s.map(|speed| row("compulsory traffic", format!("{speed:.0}"), "GB/s"));
            rows.extend(traffic);
            rows.extend([
                time("download", download),
                time("unpack", unpack),
                row(
                    "to first launch",
                    format!("{:.3}", kernel.first_launch_overhead * 1e3),
                    &format!("ms, without the {startup}"),
                ),
            ]);
        }
        rows.push(time("total", self.total));
        rows
    }
}
