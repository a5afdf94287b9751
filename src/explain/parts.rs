//! `stencilc explain --gpus`: how a program is cut, and what its parts bring from each other.

use crate::terminal::{count, table};
use serde::Serialize;
use std::sync::Arc;
use stencilc_compiler::mesh::MeshChoices;
use stencilc_runtime::Result;
use stencilc_runtime::mesh::program::{MeshProblem, parts as over_mesh};
use stencilc_runtime::program::ProgramProblem;
use stencilc_runtime::program::parts::{self, Traffic};
use stencilc_runtime::program::plan::ProgramPlan;

/// What is known of a program in parts.
#[derive(Serialize)]
pub struct PartFacts {
    number: usize,
    /// On a grid: the fewest and the most rows of a part. Over a mesh: the fewest and the most elements that a part owns, of all sets.
    least: usize,
    most: usize,
    /// Steps that the following is about: those that are computed at once; none of a program that repeats nothing.
    steps: u64,
    /// How often parts bring something, all that a call reads at once.
    exchanges: usize,
    /// The most bytes that come to a part.
    bytes: usize,
    #[serde(flatten)]
    brought: Brought,
}

/// What they bring from each other.
#[derive(Serialize)]
#[serde(untagged)]
enum Brought {
    Rows { rows: Vec<Traffic> },
    Elements { elements: Vec<over_mesh::Traffic>, folds: over_mesh::Folds },
}

impl PartFacts {
    /// Of a program on a grid, as a plan computes it.
    ///
    /// # Errors
    /// The grid cannot be cut like that, or the plan computes no parts.
    pub fn on_grid(problem: &ProgramProblem, plan: &ProgramPlan, number: usize) -> Result<Self> {
        let (cut, _) = parts::Cut::fused(problem, plan, number)?;
        let parts::Turn { brought: rows, exchanges, steps, to_a_part: bytes, .. } = parts::traffic(&cut)?;
        let counts = || cut.parts().iter().map(|own| own.staged.domain.nj);
        Ok(Self {
            number,
            least: counts().min().unwrap_or(0),
            most: counts().max().unwrap_or(0),
            steps,
            exchanges,
            bytes,
            brought: Brought::Rows { rows },
        })
    }

    /// Of a program over a mesh, by some kernels.
    ///
    /// # Errors
    /// The mesh has fewer elements than there are to be parts.
    pub fn over_mesh(problem: &Arc<MeshProblem>, choices: MeshChoices, number: usize) -> Result<Self> {
        let owners = over_mesh::Owners::new(problem, number)?;
        let (cut, choices) = over_mesh::Cut::new(Arc::clone(problem), &owners)?.chosen(choices);
        let turn = over_mesh::traffic(&cut, &|chain| cut.merges(chain, choices))?;
        let over_mesh::Turn { brought: elements, exchanges, folds } = turn;
        let counts = || cut.parts().iter().map(over_mesh::Part::owned);
        Ok(Self {
            number,
            least: counts().min().unwrap_or(0),
            most: counts().max().unwrap_or(0),
            steps: 1,
            exchanges,
            bytes: elements.iter().map(|own| own.times * own.bytes).sum(),
            brought: Brought::Elements { elements, folds },
        })
    }

    /// The same, to be read.
    pub fn text(&self) -> String {
        let Self { number, least, most, steps, exchanges, bytes, brought } = self;
        let size = if least == most { least.to_string() } else { format!("{least} to {most}") };
        let each = match steps {
            0 => "in all".to_owned(),
            1 => "a step".to_owned(),
            steps => format!("in {steps} steps"),
        };
        let times = |times: usize| if times == 1 { format!("once {each}") } else { format!("{times} times {each}") };
        let (what, rows, folds) = match brought {
            Brought::Rows { rows } => {
                let row = |own: &Traffic| {
                    let [before, behind] = own.rows.map(|rows| count(rows, "row"));
                    let [of_before, of_behind] = own.bytes.map(grouped);
                    let from = format!("{before} from before, {behind} from behind");
                    vec![own.variable.clone(), times(own.times), from, format!("{of_before} + {of_behind} B")]
                };
                ("rows along j", rows.iter().map(row).collect::<Vec<_>>(), None)
            }
            Brought::Elements { elements, folds } => {
                let row = |own: &over_mesh::Traffic| {
                    let from = format!("{} from {}", count(own.elements, "element"), count(own.from, "other"));
                    vec![own.variable.clone(), times(own.times), from, format!("{} B", grouped(own.bytes))]
                };
                ("elements of all sets", elements.iter().map(row).collect(), (folds.numbers > 0).then_some(folds))
            }
        };
        let mut text = format!("\nin {number} parts of {size} {what}; each brings from the others, at most\n");
        let rows: Vec<Vec<String>> = rows.into_iter().map(|row| [vec![String::new()], row].concat()).collect();
        text.push_str(&table(&rows, &[4]));
        if let Some(folds) = folds {
            let numbers = count(folds.numbers, "reduction");
            text.push_str(&format!(
                "  {numbers} {each}, of which the others tell the first {} B\n",
                grouped(folds.bytes)
            ));
        }
        match exchanges {
            0 => text.push_str("  nothing\n"),
            _ => {
                text.push_str(&format!("  together {} {each}, {} B\n", count(*exchanges, "exchange"), grouped(*bytes)))
            }
        }
        text
    }
}

/// A number whose digits stand in groups of three.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let groups = digits.as_bytes()[first..].chunks(3).map(|group| String::from_utf8_lossy(group).into_owned());
    let head = (first > 0).then(|| digits[..first].to_owned());
    head.into_iter().chain(groups).collect::<Vec<_>>().join(",")
}
