//! One way to compute something: what it is called, and which options choose it.

use serde::Serialize;
use stencilc_compiler::plan::Choices;
use stencilc_compiler::storage::fastest::Fastest;
use stencilc_compiler::storage::fields::Fields;
use stencilc_compiler::storage::neighbors::Neighbors;
use stencilc_runtime::mesh::program::ways::Variant;
use stencilc_runtime::program::plan::{PlanKind, ProgramPlan};

/// One way to compute something.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Label {
    /// A stencil on a grid, by a kernel.
    Kernel {
        storage: String,
        access: String,
        fastest: Fastest,
        neighbors: Neighbors,
        layout: String,
        fields: Fields,
        /// The options that choose it.
        options: String,
    },
    /// A program on a grid, by a plan.
    Plan {
        /// The options that choose it.
        plan: String,
        /// The same, and what is tried beside it.
        #[serde(skip)]
        words: String,
    },
    /// Over a mesh.
    OverMesh {
        /// Of a program: `merged` or `separate`.
        #[serde(skip_serializing_if = "Option::is_none")]
        fuse: Option<PlanKind>,
        #[serde(flatten)]
        variant: Variant,
    },
}

impl Label {
    /// A kernel.
    pub fn of_kernel(choices: &Choices) -> Self {
        let options = choices.words();
        let Choices { storage, access, fastest, neighbors, layout, fields, .. } = choices.clone();
        Self::Kernel { storage, access, fastest, neighbors, layout, fields, options }
    }

    /// A plan.
    pub fn of_plan(plan: &ProgramPlan) -> Self {
        let words = format!("--fuse {} --steps {} {}", plan.kind.name(), plan.steps, plan.choices.words());
        Self::Plan { plan: plan.to_string(), words }
    }

    /// `compressed storage, naive access`, or `owner, soa, order none`, and what is not usual.
    pub fn name(&self) -> String {
        match self {
            Self::Kernel { storage, access, fastest, neighbors, layout, fields, .. } => {
                let usual = Choices::default();
                let mut name = format!("{storage} storage, {access} access");
                if *fastest != usual.fastest {
                    name.push_str(&format!(", {} fastest", fastest.name()));
                }
                if *neighbors != usual.neighbors {
                    name.push_str(&format!(", {} neighbours", neighbors.name()));
                }
                if *layout != usual.layout {
                    name.push_str(&format!(", {layout} layout"));
                }
                if *fields != usual.fields {
                    name.push_str(&format!(", {}", fields.name()));
                }
                name
            }
            Self::Plan { plan, .. } => plan.clone(),
            Self::OverMesh { fuse, variant: Variant { strategy, vectors, order, .. } } => {
                let fuse = fuse.map(|kind| format!("{}, ", kind.name())).unwrap_or_default();
                format!("{fuse}{strategy}, {vectors}, order {order}")
            }
        }
    }

    /// The options that choose it.
    pub fn words(&self) -> String {
        match self {
            Self::Kernel { options, .. } => options.clone(),
            Self::Plan { words, .. } => words.clone(),
            Self::OverMesh { fuse, variant } => {
                let fuse = fuse.map(|kind| format!("--fuse {} ", kind.name())).unwrap_or_default();
                fuse + &variant.words()
            }
        }
    }
}
