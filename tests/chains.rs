//! Which calls of programs over meshes become one kernel, and what that computes.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::mesh::{Kernel, Merge, MeshChoices, strategy};
use stencilc_compiler::source::Source;
use stencilc_runtime::Data;
use stencilc_runtime::emulate::{Compiler, Emulator, Settings};
use stencilc_runtime::mesh::made::{Perturbed, airfoil, triangles};
use stencilc_runtime::mesh::order::Ordering;
use stencilc_runtime::mesh::program::cpu::Interpreter;
use stencilc_runtime::mesh::program::kernels::{Kernels, Renumbered};
use stencilc_runtime::mesh::program::measure::{difference, results};
use stencilc_runtime::mesh::program::{MeshProblem, Request};
use stencilc_runtime::mesh::{Map, Mesh, Set};

/// A program on a mesh.
fn problem(text: &str, mesh: &Mesh, levels: Option<usize>) -> MeshProblem {
    let source = Source::new("own.stn", text);
    let lowered = stencilc_compiler::check(&source);
    let message = stencilc_compiler::diagnostic::render(&lowered.diagnostics, &source, false);
    assert!(lowered.is_ok(), "{message}");
    let request = Request {
        program: &lowered.mesh_programs[0],
        precision: Precision::F64,
        contract: true,
        mesh: mesh.clone(),
        levels,
        arrays: BTreeMap::new(),
        settings: BTreeMap::new(),
        seed: 1,
        cast: stencilc_runtime::Cast::Exact,
        drawing: stencilc_runtime::Drawing::Everything,
    };
    MeshProblem::new(request).unwrap()
}

/// The calls of each chain, and in brackets the fields that have no array.
fn chains(problem: &MeshProblem) -> Vec<String> {
    let chains = problem.chains.iter().map(|chain| {
        let names: Vec<&str> = chain.stages.iter().map(|own| own.stencil.name.as_str()).collect();
        let fields = &chain.stages[0].stencil.fields;
        let internal: Vec<&str> = chain.internal.iter().map(|&id| fields[id].name.as_str()).collect();
        format!("{} [{}]", names.join(" "), internal.join(" "))
    });
    chains.collect()
}

/// The kernels of a chain.
fn printed(problem: &MeshProblem, number: usize) -> Vec<Kernel> {
    let placed = Rc::new(Renumbered::new(problem, &Ordering::kept(&problem.mesh)).unwrap());
    placed.kernels(problem, &problem.chains[number].call, &MeshChoices::default()).unwrap()
}

#[test]
fn the_fluxes_of_an_airfoil_and_the_step_are_one_kernel() {
    let mesh = airfoil(24, 10).unwrap();
    let problem = problem(include_str!("../stencils/airfoil.stn"), &mesh, None);
    assert_eq!(chains(&problem), ["res_calc bres_calc update [res]"]);
    let usual = MeshChoices { merge: Merge::WherePays, ..MeshChoices::default() };
    assert!(usual.merges(&problem.chains[0], Precision::F64, 1 << 20));
    let kernels = printed(&problem, 0);
    assert_eq!(kernels.len(), 1);
    insta::assert_snapshot!(stencilc_compiler::cuda::text(&kernels[0].code).unwrap());
}

#[test]
fn calls_that_save_little_share_a_kernel_on_small_meshes_alone() {
    let mesh = triangles(4, 3, Perturbed::default()).unwrap();
    let problem = problem(include_str!("../stencils/flood.stn"), &mesh, None);
    assert_eq!(chains(&problem), ["fluxes walls time_step [waves]"]);
    let merges = |merge, strategy, elements| {
        let strategy = strategy::find(strategy).unwrap();
        let choices = MeshChoices { merge, strategy, ..MeshChoices::default() };
        choices.merges(&problem.chains[0], Precision::F64, elements)
    };
    assert!(merges(Merge::WherePays, "owner", 1 << 10) && !merges(Merge::WherePays, "owner", 1 << 20));
    assert!(merges(Merge::Always, "owner", 1 << 20) && !merges(Merge::Never, "owner", 1 << 10));
    assert!(!merges(Merge::Always, "two-step", 1 << 10));
    let saved = problem.chains[0].saved(Precision::F64);
    assert!(saved > 0.1 && saved < 0.15, "{saved}");
}

/// What is left to the device's own division, in a value that is written as it is.
#[test]
fn quotients_that_are_not_usual_are_those_of_the_interpreter() {
    let text = "
mesh airfoil {
    set edge, cell
    map edge.cells -> cell[2]
}
stencil add over airfoil.edge {
    in  q on cell
    inc r on cell
    r[cells.0] += q[cells.1]
    r[cells.1] += q[cells.0]
}
stencil ratio over airfoil.cell {
    in  r, b
    out p
    reduce most: max
    p = r / b
    most = r / b
}
program first over airfoil {
    in  q, b on cell
    out p on cell
    out most: real on ()
    let r = add(q)
    p, most = ratio(r, b)
}
";
    let mut problem = problem(text, &airfoil(6, 3).unwrap(), None);
    assert_eq!(chains(&problem), ["add ratio [r]"]);
    for (name, value) in [("q", 1e300), ("b", 1e-30)] {
        let (id, _) = problem.program.program.variables.iter().find(|(_, own)| own.name == name).unwrap();
        let len = problem.len(id);
        problem.initial.insert(id, Data::F64(vec![value; len]));
    }
    let problem = Arc::new(problem);
    let expected = results(&problem, Interpreter::new(Arc::clone(&problem))).unwrap();
    assert!(expected.iter().all(|(_, data)| data.get(0) == f64::INFINITY), "{expected:?}");
    let machine = Arc::new(Emulator::new(Compiler::find().unwrap(), Settings::default()));
    let placed = Rc::new(Renumbered::new(&problem, &Ordering::kept(&problem.mesh)).unwrap());
    let kernels = Kernels::new(Arc::clone(&problem), machine, MeshChoices::default(), placed);
    assert_eq!(difference(&expected, &results(&problem, &kernels).unwrap()), None);
}

const MESH: &str = "
mesh airfoil {
    set edge, bedge, cell
    map edge.cells -> cell[2]
    map bedge.cell -> cell
}
stencil differences over airfoil.edge {
    in  q on cell
    inc r on cell
    r[cells.0] += q[cells.0] - q[cells.1]
    r[cells.1] -= q[cells.0] - q[cells.1]
}
stencil sums over airfoil.edge {
    in  q on cell
    inc r, weight on cell
    r[cells.0]      += q[cells.1]
    r[cells.1]      += q[cells.0]
    weight[cells.0] += 1
    weight[cells.1] += 1
}
stencil border over airfoil.bedge {
    in  q on cell
    inc r on cell
    r[cell] -= q[cell]
}
stencil step over airfoil.cell {
    in  r
    in  q
    out p
    p = q + 0.1 * r
}
stencil mean over airfoil.cell {
    in  r, weight
    out p
    reduce largest: max
    p = r / weight
    largest = abs(r)
}
stencil scaled over airfoil.cell {
    in  q
    param by: real
    out p
    p = by * q
}
stencil double over airfoil.cell {
    inout q
    q = 2 * q
}
";

/// The chains of a program, which is given by its fields and what it does.
fn chains_of(body: &str) -> Vec<String> {
    let mesh = airfoil(6, 3).unwrap();
    chains(&problem(&format!("{MESH}\nprogram p over airfoil {{\n{body}\n}}\n"), &mesh, None))
}

#[test]
fn a_sum_that_nobody_else_looks_at_has_no_array() {
    let found = chains_of("in q on cell\nout p on cell\nlet r = differences(q)\np = step(r, q)");
    assert_eq!(found, ["differences step [r]"]);
}

#[test]
fn a_sum_that_is_looked_at_later_is_written() {
    let found = chains_of("in q on cell\nout r, p on cell\nr = differences(q)\np = step(r, q)");
    assert_eq!(found, ["differences step []"]);
    // It goes on from what there was before, and that is looked at again.
    let found = chains_of("in q on cell\nout r, s, p on cell\nr = differences(q)\ns = border(q, r)\np = step(s, q)");
    assert_eq!(found, ["border step []"]);
}

#[test]
fn several_calls_add_to_one_sum_and_several_go_on_with_it() {
    let body = "in q on cell\nout p on cell\nlet r, w = sums(q)\nlet s = border(q, r)\nlet m, most = mean(s, w)\np = double(m)";
    assert_eq!(chains_of(body), ["sums border mean double [r weight p]"]);
}

/// A kernel takes nothing that it does not use.
#[test]
fn what_nobody_looks_at_is_not_computed() {
    // Of two sums one is looked at; the other went on from what was there, and its name has another value before anybody looks.
    let sums = "in q, w on cell\nout p on cell\nlet r, v = sums(q, weight = w)\nv = border(q)\np = step(r, q)";
    // Nobody looks at what comes from the border.
    let border = "in q, w on cell\nout p on cell\nlet v = border(w, r = w)\nv = differences(q)\np = step(v, q)";
    for (body, expected, spare) in
        [(sums, "sums border step [r weight]", "weight"), (border, "differences step [r r_new]", "r")]
    {
        let text = format!("{MESH}\nprogram p over airfoil {{\n{body}\n}}\n");
        let problem = problem(&text, &airfoil(6, 3).unwrap(), None);
        assert_eq!(chains(&problem), [expected]);
        let kernels = printed(&problem, 0);
        let mut arguments = kernels[0].code.arguments.iter().map(|(_, own)| own.name.to_string());
        assert!(arguments.all(|name| name != spare), "{}", kernels[0].code);
    }
}

#[test]
fn what_is_read_beside_the_element_is_computed_before() {
    // `differences` reads at both cells what `step` gives.
    let body = "in q on cell\nout p on cell\nlet r = differences(q)\nlet s = step(r, q)\nlet t = differences(s)\np = step(t, s)";
    assert_eq!(chains_of(body), ["differences step [r]", "differences step [r]"]);
}

#[test]
fn what_follows_a_sum_looks_at_its_own_element_alone() {
    let text = "
mesh ring {
    set edge, cell
    map edge.cells -> cell[2]
    map cell.next  -> cell
}
stencil add over ring.edge {
    in  q on cell
    inc r on cell
    r[cells.0] += q[cells.1]
}
stencil mean over ring.cell {
    in  r
    out p
    p = (r + r[WHERE]) / 2
}
program both over ring {
    in  q on cell
    out p on cell
    let r = add(q)
    p = mean(r)
}
";
    let set = |name: &str| Set { name: name.to_owned(), size: 3 };
    let map = |name: &str, from, arity, table: &[i32]| Map {
        name: name.to_owned(),
        from,
        to: 1,
        arity,
        table: table.to_vec(),
    };
    let mesh = Mesh {
        origin: "a ring".to_owned(),
        sets: vec![set("edge"), set("cell")],
        maps: vec![map("cells", 0, 2, &[0, 1, 1, 2, 2, 0]), map("next", 1, 1, &[1, 2, 0])],
        fields: Vec::new(),
    };
    assert!(chains(&problem(&text.replace("WHERE", "next"), &mesh, None)).is_empty());
    assert_eq!(chains(&problem(&text.replace("[WHERE]", ""), &mesh, None)), ["add mean [r]"]);
}

#[test]
fn a_number_has_to_be_folded_before_it_is_used() {
    let body = "in q on cell\nout p on cell\nlet r, w = sums(q)\nlet m, most = mean(r, w)\np = scaled(m, most)";
    assert_eq!(chains_of(body), ["sums mean [r weight]"]);
    let body = "in q on cell\nout p on cell\nlet r, w = sums(q)\nlet m, most = mean(r, w)\np = scaled(m, 3)";
    assert_eq!(chains_of(body), ["sums mean scaled [r weight p]"]);
}

#[test]
fn calls_of_a_loop_stay_in_it() {
    let body = "inout q on cell\nlet r = differences(q)\nrepeat 3 {\n q = step(r, q)\n q = double(q)\n}";
    assert_eq!(chains_of(body), ["step double [p]"]);
}

#[test]
fn levels_that_are_left_out_are_none_of_a_chain() {
    let text = "
mesh airfoil {
    set edge, cell
    map edge.cells -> cell[2]
    levels k
}
stencil add over airfoil.edge {
    in  q on cell
    inc r on cell
    r[cells.0] += q[cells.1]
}
stencil here over airfoil.cell {
    in  r
    out p
    p = 2 * r
}
stencil above over airfoil.cell {
    in  r
    out p
    p = 2 * r[k-1]
}
program first over airfoil {
    in  q on cell
    out p on cell
    let r = add(q)
    p = CALLED(r)
}
";
    let mesh = airfoil(6, 3).unwrap();
    let of = |called: &str| chains(&problem(&text.replace("CALLED", called), &mesh, Some(3)));
    assert_eq!(of("here"), ["add here [r]"]);
    assert!(of("above").is_empty());
}
