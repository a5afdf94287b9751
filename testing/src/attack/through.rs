//! A text on its way through the compiler, as far as kernels: what has to hold of it, whatever it says.

use super::hostile::is_shown;
use fastrand::Rng;
use std::ops::Range;
use stencilc_compiler::diagnostic::{Diagnostic, render};
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Kind, MeshStencil, Path, Precision, SetId, Stencil};
use stencilc_compiler::lower::Lowered;
use stencilc_compiler::mesh::{self, Counts, Cut, Degrees, Group, Largest};
use stencilc_compiler::plan::{self, Choices, variants};
use stencilc_compiler::program::{Fuse, Fusing, Staged};
use stencilc_compiler::source::{Source, Span};
use stencilc_compiler::step::{self, stream, tiled};
use stencilc_compiler::{analysis, check, cuda};

/// Stencils longer than this, in operations, are lowered but not made into kernels: the next text is worth more.
const LARGE: usize = 2_000;

/// What a text becomes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Processed {
    /// Whether it is a right one.
    pub is_right: bool,
    /// What is generated of it: the name of each text, and the text.
    pub made: Vec<(String, String)>,
}

/// Takes a text called `name` as far as it goes; the seed chooses storages, strategies and the rest.
///
/// # Errors
/// What should not be: a message points outside of the text, or what is generated holds characters that nobody sees.
pub fn take(name: &str, text: &str, seed: u64) -> Result<Processed, String> {
    let source = Source::new(name, text);
    let lowered = check(&source);
    places(&lowered.diagnostics, &source)?;
    if lowered.diagnostics.is_empty() != render(&lowered.diagnostics, &source, false).is_empty() {
        return Err("what is told is not what is shown".to_owned());
    }
    let mut taken = Processed { is_right: lowered.is_ok(), made: Vec::new() };
    let mut way = Way { rng: Rng::with_seed(seed), made: &mut taken.made };
    way.stencils(&lowered);
    way.programs(&lowered);
    way.meshes(&lowered);
    for (what, text) in &taken.made {
        if let Some(unseen) = text.chars().find(|&character| !is_shown(character)) {
            return Err(format!("{what} holds the character U+{:04X}", u32::from(unseen)));
        }
    }
    Ok(taken)
}

/// Whether all places of messages are in the text.
fn places(diagnostics: &[Diagnostic], source: &Source) -> Result<(), String> {
    let is_inside = |Span { start, end }: Span| start <= end && source.text.get(start as usize..end as usize).is_some();
    for diagnostic in diagnostics {
        let mut labels = std::iter::once(&diagnostic.label).chain(&diagnostic.notes);
        if let Some(label) = labels.find(|label| !is_inside(label.span)) {
            return Err(format!("\"{}\" points to {:?}, outside of the text", diagnostic.message, label.span));
        }
    }
    Ok(())
}

struct Way<'a> {
    rng: Rng,
    made: &'a mut Vec<(String, String)>,
}

fn is_large(stencil: &Stencil) -> bool {
    let nodes = stencil.defs.iter().map(|(_, def)| def.body.len());
    nodes.chain(stencil.stores.iter().map(|store| store.body.len())).sum::<usize>() > LARGE
}

/// A value for each parameter.
fn values(stencil: &Stencil) -> Vec<Value> {
    let value = |kind: Kind| match kind {
        Kind::Real => Value::Real(0.5),
        Kind::Int => Value::Int(3),
        Kind::Bool => Value::Bool(true),
    };
    stencil.params.iter().map(|(_, param)| value(param.kind)).collect()
}

impl Way<'_> {
    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.rng.usize(0..from.len())].clone()
    }

    fn precision(&mut self) -> Precision {
        self.pick(&[Precision::F64, Precision::F32])
    }

    /// Kernels of stencils on grids.
    fn stencils(&mut self, lowered: &Lowered) {
        let variants: Vec<Choices> = variants().collect();
        for stencil in &lowered.stencils {
            let choices = Choices {
                precision: self.precision(),
                contract: self.rng.bool(),
                wide: self.rng.u8(0..4) == 0,
                ..self.pick(&variants)
            };
            self.kernel(stencil, choices.suiting(stencil));
        }
    }

    fn kernel(&mut self, stencil: &Stencil, choices: Choices) {
        if is_large(stencil) {
            return;
        }
        let prepared = plan::prepare(stencil, choices.precision, choices.contract);
        if let Ok(plan) = plan::plan(&prepared, &choices, None)
            && let Ok(built) = cuda::build(&plan)
        {
            let name = &stencil.name;
            self.made.push((format!("{name}.cu ({})", choices.words()), built.source));
            self.made.push((format!("{name}.h"), built.header));
        }
    }

    /// Kernels of programs: of their calls, or of what calls become together.
    fn programs(&mut self, lowered: &Lowered) {
        for program in &lowered.programs {
            let (precision, contract) = (self.precision(), self.rng.bool());
            let domain = Grid::rows(self.pick(&[5, 32, 40]), self.pick(&[4, 24]), self.pick(&[1, 3]));
            let params = values(&program.numbers);
            let staged = Staged::new(program, precision, contract, domain, None, &params);
            let Ok(staged) = staged else { continue };
            let fusing = Fusing {
                fuse: self.pick(&[Fuse::Nothing, Fuse::Pointwise, Fuse::Everything]),
                times: self.pick(&[1, 2]),
                wraps: self.rng.bool(),
                whole: self.rng.bool(),
            };
            for stage in &staged.fused(fusing).stages {
                if is_large(&stage.stencil) {
                    continue;
                }
                let subject = step::StepTask {
                    stencil: &stage.stencil,
                    precision,
                    extents: [domain.ni, domain.nj, domain.nk],
                    rows: step::Rows { first: 0, row: domain.ni, plane: domain.ni * domain.nj },
                    edges: [step::Edge::Periodic; 2],
                };
                let kernel = match self.rng.u8(0..3) {
                    0 => stream::stream(&subject, &stream::Shape::default()).ok(),
                    1 => tiled::tiled(&subject, &tiled::Shape::SMALLEST).ok(),
                    _ => None,
                };
                match kernel {
                    Some(kernel) => self.made.push((kernel.name.to_string(), kernel.text)),
                    None => self.kernel(&stage.stencil, Choices { precision, ..Choices::default() }),
                }
            }
        }
    }

    /// Kernels of stencils over meshes.
    fn meshes(&mut self, lowered: &Lowered) {
        for stencil in &lowered.mesh_stencils {
            if is_large(&stencil.stencil) {
                continue;
            }
            let precision = self.precision();
            let stencil = stencil.with(plan::prepare(&stencil.stencil, precision, self.rng.bool()));
            let choices = mesh::MeshChoices {
                strategy: self.pick(mesh::STRATEGIES),
                layout: self.pick(&mesh::VectorLayout::ALL),
                threads: mesh::Threads { slice: self.pick(&[0, 1, 3]), ..Default::default() },
                ..mesh::MeshChoices::default()
            };
            let Some(computed) = self.levels(&stencil, precision) else { continue };
            let subject = mesh::MeshTask {
                stencil: &stencil,
                precision,
                levels: LEVELS,
                computed: &computed,
                from_zero: &|_| false,
                counts: &AnyMesh { is_short: self.rng.bool() },
            };
            if let Ok(kernels) = mesh::kernels(&subject, &choices) {
                self.made.extend(
                    kernels
                        .kernels
                        .into_iter()
                        .map(|kernel| (kernel.code.name.to_string(), cuda::text(&kernel.code).unwrap_or_default())),
                );
            }
        }
    }

    fn levels(&mut self, stencil: &MeshStencil, precision: Precision) -> Option<Range<usize>> {
        match stencil.mesh.levels {
            true => analysis::levels::computed(&stencil.stencil, precision, LEVELS, &values(&stencil.stencil)).ok(),
            false => Some(0..1),
        }
    }
}

/// How many levels meshes have that have any.
const LEVELS: usize = 4;

/// What is said of a mesh that is not there.
struct AnyMesh {
    is_short: bool,
}

impl Counts for AnyMesh {
    fn elements(&self, _: SetId) -> usize {
        if self.is_short { 100 } else { 1 << 20 }
    }

    fn degrees(&self, _: &Group) -> Degrees {
        match self.is_short {
            true => Degrees { mean: 3.5, max: 4, share: 1.0 },
            false => Degrees { mean: 0.0, max: 0, share: 1.0 },
        }
    }

    fn largest(&self, _: &Group, _: Cut) -> Option<Largest> {
        Some(Largest { elements: 128, targets: 160 })
    }

    fn repeats(&self, _: &Group) -> bool {
        !self.is_short
    }

    fn distinct_ends(&self, _: &Group, _: &[Path]) -> usize {
        if self.is_short { 4 } else { 0 }
    }
}
