//! One way to compute what runs over a mesh, by the options that choose it.

use serde::Serialize;
use stencilc_compiler::mesh::{Merge, MeshChoices, Strategy, Threads, VectorLayout};

/// One way to compute something.
#[derive(Clone, Debug, Serialize)]
pub struct Variant {
    /// How elements that add to the same place are kept apart.
    pub strategy: &'static str,
    /// How the parts of vectors lie.
    pub vectors: &'static str,
    /// The order of elements.
    pub order: &'static str,
    /// Of a program: whether calls share a kernel, if that is not left open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fuse: Option<&'static str>,
    /// Threads of a block.
    pub threads: u32,
    /// Blocks that have to fit on a multiprocessor.
    pub at_once: u32,
    /// Levels that a thread goes through, if that is not left open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice: Option<u32>,
    /// All but the order.
    #[serde(skip)]
    pub choices: MeshChoices,
}

impl Variant {
    /// A way to compute a stencil, or a program whose calls share kernels or not as `choices` say without an option for it.
    pub fn new(choices: MeshChoices, order: &'static str) -> Self {
        let MeshChoices { strategy, layout, threads: Threads { block: threads, at_once, slice }, .. } = choices;
        let slice = Some(slice).filter(|&slice| slice > 0);
        Self { strategy: strategy.name(), vectors: layout.name(), order, fuse: None, threads, at_once, slice, choices }
    }

    /// `128x8`
    pub fn threads(&self) -> String {
        self.choices.threads.to_string()
    }

    /// The options that choose it.
    pub fn words(&self) -> String {
        let Self { strategy, vectors, order, .. } = self;
        let fuse = self.fuse.map_or(String::new(), |fuse| format!(" --fuse {fuse}"));
        format!("--strategy {strategy} --vectors {vectors} --order {order} --threads {}{fuse}", self.threads())
    }

    /// A part of a file's name.
    pub(super) fn name(&self) -> String {
        let fuse = self.fuse.map_or(String::new(), |fuse| format!("-{fuse}"));
        let through = self.slice.map_or(String::new(), |slice| format!("x{slice}"));
        format!("{}-{}-{}-{}x{}{through}{fuse}", self.strategy, self.vectors, self.order, self.threads, self.at_once)
    }
}

/// What is asked for: each combination is a way.
pub struct Asked {
    /// Strategies.
    pub strategies: Vec<&'static dyn Strategy>,
    /// Layouts of vectors.
    pub layouts: Vec<VectorLayout>,
    /// Threads of a block, and blocks at once; the usual ones, and in a search others, if none is.
    pub threads: Vec<Threads>,
    /// Of a program: whether calls share a kernel.
    pub merges: Vec<(Option<&'static str>, Merge)>,
}

/// Whether calls of a program share a kernel, as options say it: first what is taken where none does.
pub const MERGES: [(Option<&str>, Merge); 3] =
    [(None, Merge::WherePays), (Some("merged"), Merge::Always), (Some("separate"), Merge::Never)];
