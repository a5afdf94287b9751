//! What the compiler writes, under review: source and result side by side. Two a stencil, the full matrix for a tiny one.
//!
//! Every text here is also executed (`emulated.rs`) and goes through NVRTC (`nvrtc.rs`): a snapshot shows that it changed,
//! not that it is right.

use crate::common::over_mesh::Quadrilaterals;
use crate::common::{combinations, combinations_for, lowered, stencils};
use stencilc_compiler::analysis::{self, levels};
use stencilc_compiler::cuda;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Kind, Node, Precision, Stencil};
use stencilc_compiler::mesh::{self, MeshChoices, MeshTask, STRATEGIES};
use stencilc_compiler::plan::{self, Choices, Target};
use stencilc_compiler::source::Source;
use stencilc_compiler::storage::fastest::Fastest;
use stencilc_runtime::mesh::program::prepared;

/// A small average whose weight is a parameter: it has a neighbour, a level, a guard and a product to contract.
const TINY: &str = "stencil tiny {
    in  a
    out b
    param w: real = 0.5
    let below = if k == 0 { a } else { a[k-1] }
    b = w * (a[i-1] + a[j+1]) + below
}
";

fn kernel(stencil: &Stencil, choices: &Choices, grid: Option<Grid>) -> String {
    let prepared = plan::prepare(stencil, choices.precision, true);
    let params: Vec<Value> = prepared
        .params
        .iter()
        .map(|(_, param)| match (param.default.as_ref().and_then(|body| body.literal()), param.kind) {
            (Some(Node::Real(x)), _) => Value::Real(*x),
            (Some(Node::Int(x)), _) => Value::Int(*x),
            (Some(Node::Bool(x)), _) => Value::Bool(*x),
            (_, Kind::Real) => Value::Real(1.0),
            (_, Kind::Int) => Value::Int(1),
            (_, Kind::Bool) => Value::Bool(true),
        })
        .collect();
    let region = grid.map(|grid| analysis::region(&prepared, choices.precision, grid, None, &params).unwrap());
    let target = grid.zip(region.as_ref()).map(|(grid, region)| Target {
        grid,
        adjacency: None,
        region,
        levels_known: !levels::depend_on_params(&prepared),
        sharing: None,
        layouts: None,
    });
    cuda::print(&plan::plan(&prepared, choices, target).unwrap()).unwrap().text
}

fn side_by_side(source: &str, result: &str) -> String {
    // The tests of a stencil change nothing about its kernels.
    let source = source.split("\ntest ").next().unwrap_or_default();
    format!("{source}\n----------------------------------------\n\n{result}")
}

#[test]
fn idxvar_on_each_storage() {
    for (name, text) in stencils() {
        for stencil in lowered(&name, &text) {
            for storage in stencilc_compiler::storage::STORAGES {
                let usual = Choices { storage: storage.name().into(), ..Choices::default() };
                let choices = usual.suiting(&stencil);
                let grid = Some(Grid::rows(128, 64, 20));
                let result = kernel(&stencil, &choices, grid);
                insta::assert_snapshot!(format!("{name}-{}", storage.name()), side_by_side(&text, &result));
            }
        }
    }
}

#[test]
fn the_full_matrix_of_a_tiny_stencil() {
    let stencil = &lowered("tiny", TINY)[0];
    for choices in combinations() {
        for precision in [Precision::F32, Precision::F64] {
            for grid in [None, Some(Grid::rows(16, 16, 4))] {
                if choices.walks() && grid.is_none() {
                    continue;
                }
                let choices = Choices { precision, ..choices.clone() };
                let known = if grid.is_some() { "grid" } else { "any" };
                let name = format!("tiny-{}-{}-{}-{known}", choices.storage, choices.access, precision.name());
                insta::assert_snapshot!(name, side_by_side(TINY, &kernel(stencil, &choices, grid)));
            }
        }
    }
}

#[test]
fn levels_that_are_fastest() {
    let stencil = &lowered("tiny", TINY)[0];
    let prepared = plan::prepare(stencil, Precision::F64, true);
    for (storage, access) in [("regular", "idxvar"), ("uncompressed", "idxvar"), ("uncompressed", "patches")] {
        let choices = Choices {
            storage: storage.into(),
            access: access.into(),
            fastest: Fastest::Levels,
            block: Choices::usual_block(access),
            ..Choices::default()
        };
        let storage = if access == "patches" { access } else { storage };
        let result = kernel(stencil, &choices, Some(Grid::rows(16, 16, 4)));
        insta::assert_snapshot!(format!("levels-{storage}"), side_by_side(TINY, &result));
        let built = cuda::build(&plan::plan(&prepared, &choices, None).unwrap()).unwrap();
        let host = built.source.strip_prefix(built.kernel.text.as_str()).unwrap();
        insta::assert_snapshot!(format!("levels-launcher-{storage}"), side_by_side(&built.header, host));
    }
}

#[test]
fn the_launcher_and_its_header() {
    let stencil = &lowered("tiny", TINY)[0];
    let prepared = plan::prepare(stencil, Precision::F64, true);
    for storage in stencilc_compiler::storage::STORAGES {
        let choices = Choices { storage: storage.name().into(), ..Choices::default() };
        let built = cuda::build(&plan::plan(&prepared, &choices, None).unwrap()).unwrap();
        let host = built.source.strip_prefix(built.kernel.text.as_str()).unwrap();
        insta::assert_snapshot!(format!("launcher-{}", storage.name()), side_by_side(&built.header, host));
    }
}

#[test]
fn the_text_is_the_same_every_time() {
    for (name, text) in stencils() {
        let stencil = || lowered(&name, &text).remove(0);
        for choices in combinations_for(&stencil()) {
            // What a thread keeps of sweeps depends on the grid, and how a block walks along k.
            let needs_grid = !stencil().sweeps.is_empty() || choices.walks();
            let grid = needs_grid.then_some(Grid::rows(128, 64, 20));
            // It has to know the levels that are computed, too.
            if choices.walks() && stencilc_compiler::analysis::levels::depend_on_params(&stencil()) {
                continue;
            }
            let print = || kernel(&stencil(), &choices, grid);
            assert_eq!(print(), print());
        }
    }
}

/// Fluxes between cells, through the edges between them.
const FLUXES: &str = "mesh flat {
    set edge, cell
    map edge.cells -> cell[2]
}

stencil fluxes over flat.edge {
    in  q: real on cell
    in  length: real
    inc total: real on cell
    let flux = length * (q[cells.1] - q[cells.0])
    total[cells.0] += flux
    total[cells.1] -= flux
}
";

/// The kernels of each mesh strategy as they read, without what stands before them.
#[test]
fn each_mesh_strategy() {
    let lowered = stencilc_compiler::check(&Source::new("fluxes.stn", FLUXES));
    let stencil = prepared(&lowered.mesh_stencils[0], Precision::F64, true);
    let subject = MeshTask {
        stencil: &stencil,
        precision: Precision::F64,
        levels: 1,
        computed: &(0..1),
        from_zero: &|_| false,
        counts: &Quadrilaterals,
    };
    for &strategy in STRATEGIES {
        let choices = MeshChoices { strategy, ..MeshChoices::default() };
        let kernels = mesh::kernels(&subject, &choices).unwrap().kernels;
        let texts = kernels.iter().map(|kernel| {
            let text = cuda::text(&kernel.code).unwrap();
            text[text.find("extern \"C\"").unwrap()..].to_owned()
        });
        let name = format!("fluxes-{}", strategy.name());
        insta::assert_snapshot!(name, texts.collect::<Vec<_>>().join("\n"));
    }
}

/// On levels: what is made of neighbours, and what is added to them.
const LEVELS: &str = "mesh flat {
    set edge, cell
    map edge.cells -> cell[2]
    levels k
}

stencil differences over flat.edge {
    in  q on cell
    out difference on edge
    difference = q[cells.1] - q[cells.0]
}

stencil fluxes over flat.edge {
    in  q on cell
    inc total on cell
    let flux = q[cells.1] - q[cells.0]
    total[cells.0] += flux
    total[cells.1] -= flux
}
";

/// Where levels of an element follow each other, a thread computes as many of them as one instruction moves, if those that are computed
/// begin and end so.
#[test]
fn threads_of_a_column() {
    let lowered = stencilc_compiler::check(&Source::new("levels.stn", LEVELS));
    assert!(lowered.is_ok(), "{:?}", lowered.diagnostics);
    let of = |stencil: usize, precision, levels, computed: std::ops::Range<usize>| {
        let stencil = prepared(&lowered.mesh_stencils[stencil], precision, true);
        let (computed, from_zero) = (&computed, &|_| false);
        let subject = MeshTask { stencil: &stencil, precision, levels, computed, from_zero, counts: &Quadrilaterals };
        mesh::kernels(&subject, &MeshChoices::usual(true)).unwrap().kernels.remove(0)
    };
    for stencil in [0, 1] {
        let threads = |precision, levels, computed| of(stencil, precision, levels, computed).threads_of_column;
        assert_eq!(threads(Precision::F64, 64, 0..64), Some(32));
        assert_eq!(threads(Precision::F32, 64, 0..64), Some(16));
        assert_eq!(threads(Precision::F32, 90, 0..90), Some(45));
        assert_eq!(threads(Precision::F64, 63, 0..63), Some(63));
        assert_eq!(threads(Precision::F64, 64, 1..64), Some(63));
        assert_eq!(threads(Precision::F64, 64, 2..64), Some(31));
        let text = cuda::text(&of(stencil, Precision::F64, 4, 0..4).code).unwrap();
        let name = format!("columns-{}", lowered.mesh_stencils[stencil].stencil.name);
        insta::assert_snapshot!(name, &text[text.find("extern \"C\"").unwrap()..]);
    }
}
