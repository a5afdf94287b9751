//! The text of a kernel says all there is: what is read back from it prints the same CUDA.

mod reader;

use crate::grid::Grid;
use crate::ir::{Path, Precision, SetId};
use crate::kernel::Kernel;
use crate::mesh::{self, Counts, Cut, Degrees, Group, Largest, MeshChoices, MeshTask, STRATEGIES, VectorLayout};
use crate::plan::{Choices, Target, plan, prepare, variants};
use crate::source::Source;
use crate::step::{Edge, Rows, StepTask, resident, stream, tiled};
use crate::{analysis, cuda};
use reader::read;

/// The text says all that the printer writes, and what was read says the same again.
fn same(kernel: &Kernel) {
    let text = kernel.to_string();
    let again = read(&text);
    assert_eq!(again.to_string(), text);
    let [before, after] = [kernel, &again].map(|own| cuda::text(own).unwrap());
    for (after, before) in after.lines().zip(before.lines()) {
        assert_eq!(after, before, "{text}");
    }
    assert_eq!(after.len(), before.len(), "{text}");
}

#[test]
fn kernels_of_cells_are_read_back() {
    let text = "stencil s {
        in a: f32 on (i, j, k+1); in b; in c on (i, j); in n: int; in t: bool; param w: real = 0.5
        out r; out s: int; inout u
        let v = if t && k > 0 { a[k-1] * exp(b[i-1]) } else { min(b, c[j+1]) / w }
        r = v[i+1] + v[j-1] - sum(m in 1..=2) { b[i+m] }
        s = min(n, n[i+1]) % 3 + (if v > 1e-300 { 1 } else { -2 })
        sweep k up { let x = if k == 0 { b } else { 0.5 * x[k-1] + b }; u = x + u }
    }";
    let mut count = 0;
    for stencil in [text.to_owned(), text.split_once("sweep").unwrap().0.to_owned() + "u = v + u }"] {
        let lowered = crate::check(&Source::new("s.stn", &stencil));
        let stencil = lowered.stencils.first().unwrap_or_else(|| panic!("{:?}", lowered.diagnostics));
        for precision in [Precision::F64, Precision::F32] {
            let prepared = prepare(stencil, precision, true);
            let grid = Grid::rows(40, 20, 6);
            let region = analysis::region(&prepared, precision, grid, None, &[crate::ir::scalar::Value::Real(0.5)]);
            let region = region.unwrap();
            let (adjacency, sharing, layouts) = (None, None, None);
            let target = Target { grid, adjacency, region: &region, levels_known: true, sharing, layouts };
            for (number, choices) in variants().filter(|own| own.suits(&prepared)).enumerate() {
                let known = (number % 3 != 0).then_some(target);
                let (wide, checked) = (number % 2 == 0, number % 3 == 1);
                let choices = Choices { precision, wide, checked, ..choices };
                if let Ok(plan) = plan(&prepared, &choices, known)
                    && let Ok(kernel) = cuda::lower(&plan)
                {
                    same(&kernel);
                    count += 1;
                }
            }
        }
    }
    assert!(count > 100, "only {count} kernels");
}

struct Mesh;

impl Counts for Mesh {
    fn elements(&self, _: SetId) -> usize {
        1 << 20
    }

    fn degrees(&self, _: &Group) -> Degrees {
        Degrees { mean: 3.9, max: 4, share: 1.0 }
    }

    fn largest(&self, _: &Group, _: Cut) -> Option<Largest> {
        Some(Largest { elements: 200, targets: 150 })
    }

    fn repeats(&self, _: &Group) -> bool {
        false
    }

    fn distinct_ends(&self, _: &Group, ends: &[Path]) -> usize {
        4 * ends.len()
    }
}

#[test]
fn kernels_over_meshes_are_read_back() {
    let mut count = 0;
    for text in [include_str!("../../../../stencils/airfoil.stn"), include_str!("../../../../stencils/icosahedral.stn")]
    {
        for stencil in crate::check(&Source::new("mesh.stn", text)).mesh_stencils {
            for (number, &strategy) in STRATEGIES.iter().enumerate() {
                let precision = [Precision::F64, Precision::F32][number % 2];
                let prepared = stencil.with(prepare(&stencil.stencil, precision, true));
                let (computed, counts) = (&(0..5), &Mesh);
                let (stencil, levels, from_zero) = (&prepared, 5, &|_| true);
                let task = MeshTask { stencil, precision, levels, computed, from_zero, counts };
                let layout = VectorLayout::ALL[number % VectorLayout::ALL.len()];
                let choices = MeshChoices { strategy, layout, ..MeshChoices::default() };
                for kernel in mesh::kernels(&task, &choices).map_or(Vec::new(), |made| made.kernels) {
                    same(&kernel.code);
                    count += 1;
                }
            }
        }
    }
    assert!(count > 20, "only {count} kernels");
}

#[test]
fn kernels_of_time_steps_are_read_back() {
    let text = include_str!("../../../../stencils/heat.stn");
    let stencil = &crate::check(&Source::new("heat.stn", text)).stencils[0];
    for precision in [Precision::F64, Precision::F32] {
        let stencil = prepare(stencil, precision, true);
        let field = |is_written: bool| {
            let own =
                |field: &crate::ir::Field| if is_written { field.role.is_written() } else { field.role.is_read() };
            stencil.fields.iter().find(|(_, field)| own(field)).unwrap().0
        };
        let carry = [(field(true), field(false))];
        let (rows, edges) = (Rows { first: 0, row: 128, plane: 128 * 64 }, [Edge::Periodic; 2]);
        let task = StepTask { stencil: &stencil, precision, extents: [128, 64, 4], rows, edges };
        let shape = resident::Shape { rows: 4, warps: 4, blocks: 4, early: true };
        let kernels = [
            stream::stream(&task, &stream::Shape::default()),
            stream::persistent(&task, &carry, &stream::Shape::default()),
            tiled::tiled(&task, &tiled::Shape::default()),
            resident::resident(&task, &carry, shape),
        ];
        kernels.into_iter().for_each(|kernel| same(&kernel.unwrap().code));
    }
}
