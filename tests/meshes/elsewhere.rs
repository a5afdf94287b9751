//! Values of other sets, and places that are passed to functions: the same bits as what they stand for, written out.

use std::collections::BTreeMap;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::source::Source;
use stencilc_runtime::driver::Driver;
use stencilc_runtime::mesh::made::{Division, icosahedral};
use stencilc_runtime::mesh::program::cpu::Interpreter;
use stencilc_runtime::mesh::program::{MeshProblem, Request, alone};

const TEXT: &str = "mesh ball {
    set vertex, edge, cell
    map cell.edges -> edge[3]
    map edge.cells -> cell[2]
    map vertex.edges -> edge[6] missing skip
    map vertex.cells -> cell[6] missing skip
    levels k
}
const left = 0
stencil of_cells over ball.cell {
    in  u
    in  length on edge, no k = 1..2
    in  side: int on cell.edges, no k
    param rate = 0.5
    out short, long
    let half = 0.5 * rate
    let mean = u + half
    let slope on edge = (u[cells.1] - u[cells.left]) / length * half
    let both on edge = if k > 0 { slope[k-1] * mean[cells.1] } else { slope }
    fn flux(e) = side[e] * slope[e]
    fn beyond(n) = u[edges.n.cells.1]
    fn doubled(c) = 2 * u[c]
    short = sum(e in edges) { flux(e) } + beyond(2) + doubled(edges.1.cells.0) + both[edges.0]
          + sum(n in 0..=2) { beyond(n) } + sum(c in edges.cells) { doubled(c) }
    let slope_0 = (u[edges.0.cells.1] - u[edges.0.cells.0]) / length[edges.0] * half
    let slope_1 = (u[edges.1.cells.1] - u[edges.1.cells.0]) / length[edges.1] * half
    let slope_2 = (u[edges.2.cells.1] - u[edges.2.cells.0]) / length[edges.2] * half
    let flux_0 = side[edges.0] * slope_0
    let flux_1 = side[edges.1] * slope_1
    let flux_2 = side[edges.2] * slope_2
    let both_0 = if k > 0 { slope_0[k-1] * (u[edges.0.cells.1] + half) } else { slope_0 }
    long = flux_0 + flux_1 + flux_2 + u[edges.2.cells.1] + 2 * u[edges.1.cells.0] + both_0
         + (u[edges.0.cells.1] + u[edges.1.cells.1] + u[edges.2.cells.1])
         + (2 * u[edges.0.cells.0] + 2 * u[edges.0.cells.1] + 2 * u[edges.1.cells.0] + 2 * u[edges.1.cells.1]
            + 2 * u[edges.2.cells.0] + 2 * u[edges.2.cells.1])
}
stencil of_vertices over ball.vertex {
    in  u on cell
    out short, long
    fn there(c) = if present(c) { u[c] } else { 1 }
    let jump on edge = u[cells.1] - u[cells.0]
    short = sum(e in edges) { jump[e] } + there(cells.5)
    let last = if present(cells.5) { u[cells.5] } else { 1 }
    long = sum(e in edges) { let own = u[e.cells.1] - u[e.cells.0]; own } + last
}
";

/// What both outputs of a stencil hold.
fn both(name: &str) -> [Vec<f64>; 2] {
    let lowered = stencilc_compiler::check(&Source::new("elsewhere.stn", TEXT));
    assert!(lowered.is_ok(), "{:?}", lowered.diagnostics);
    let program = alone(lowered.mesh_stencils.iter().find(|own| own.stencil.name == name).unwrap());
    let problem = MeshProblem::new(Request {
        program: &program,
        precision: Precision::F64,
        contract: true,
        mesh: icosahedral(Division { root: 1, bisections: 1 }, 1.0).unwrap(),
        levels: Some(3),
        arrays: BTreeMap::new(),
        settings: BTreeMap::new(),
        seed: 7,
        cast: stencilc_runtime::Cast::Exact,
        drawing: stencilc_runtime::Drawing::Inputs,
    })
    .unwrap();
    let interpreter = Interpreter::new(problem);
    let mut driver = Driver::new(&interpreter).given().unwrap();
    driver.finish().unwrap();
    let mut results: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (id, data) in driver.results().unwrap() {
        let data = data.unwrap();
        results.insert(program.program.variables[id].name.clone(), (0..data.len()).map(|at| data.get(at)).collect());
    }
    ["short", "long"].map(|name| results.remove(name).unwrap())
}

#[test]
fn what_stands_for_something_is_the_same_bits() {
    for (name, elements) in [("of_cells", 80), ("of_vertices", 42)] {
        let [short, long] = both(name);
        assert_eq!(short.len(), 3 * elements);
        assert!(short.iter().all(|number| number.is_finite()));
        assert_eq!(short, long, "{name}");
    }
}
