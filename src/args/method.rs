//! How kernels are measured.

use stencilc_runtime::bench::rows::Method;

/// Launches of a kernel that are not timed, for clocks and caches to come to rest.
pub const WARMUPS: usize = 5;

/// How often a kernel is launched, and on what.
#[derive(clap::Args)]
pub struct MethodArgs {
    /// How many launches of each kernel are timed
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    runs: u32,
    /// Launch on the same buffers each time: what fits into the cache is found there. Otherwise launches rotate over so many
    /// buffers that nothing is
    #[arg(long)]
    hot: bool,
    /// Do not compare results with the interpreter
    #[arg(long)]
    no_verify: bool,
}

impl MethodArgs {
    /// Whether all launches are on the same buffers.
    pub fn is_hot(&self) -> bool {
        self.hot
    }

    /// What they say.
    pub fn method(&self) -> Method {
        Method { runs: self.runs as usize, warmups: WARMUPS, hot: self.hot, verify: !self.no_verify }
    }
}
