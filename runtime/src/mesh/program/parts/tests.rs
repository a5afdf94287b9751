//! Programs over meshes in parts: the bits of the whole, whatever is read, added or folded.

use super::{Cut, Owners, Rank};
use crate::array::Data;
use crate::driver::recorder::Recorder;
use crate::driver::{Driver, Script};
use crate::emulate::{Compiler, Emulator, Settings};
use crate::mesh::order::{self, METHODS, Options};
use crate::mesh::program::kernels::{Kernels, Renumbered};
use crate::mesh::program::parts::{Parts, traffic};
use crate::mesh::program::{MeshProblem, Request};
use crate::mesh::{Field, HOLE, Map, Mesh, ZONE, sample};
use crate::ranks::threads::together;
use crate::verify::mesh::{Expected, Way};
use crate::verify::mesh_parts::OverMeshInParts;
use crate::verify::{Tools, Verdict, verify};
use crate::{Cast, Drawing};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use stencilc_compiler::ir::{Handle, Precision, VariableId};
use stencilc_compiler::mesh::{MeshChoices, STRATEGIES, Threads, VectorLayout};
use stencilc_compiler::source::Source;

const MESH: &str = "mesh squares {
    set node, edge, cell
    map edge.nodes -> node[2]
    map edge.cells -> cell[2]
    map cell.nodes -> node[4]
    map cell.sides -> edge[4] missing skip
    zone rim, inner on cell
";

/// Sums that start from zero and that go on, chains of calls, ways of several hops, fields on maps and on no set, levels, sweeps, zones,
/// what is changed in place, numbers that say how often, reductions of each kind over all and over zones.
const TEXTS: [(&str, Option<usize>); 4] = [
    (
        "}
        stencil flux over squares.edge { in q: real[2] on cell; in x: real on node; inc r: real[2] on cell
            let d = x[nodes.1] - x[nodes.0]
            let f = 0.1 * d * (q[cells.1].0 - q[cells.0].1)
            r[cells.0] += [f, 0.5 * f]; r[cells.1] -= [f, d] }
        stencil update over squares.cell { in q: real[2]; in r: real[2]; out p: real[2]; reduce t: sum; reduce low: min
            p = [q.0 + r.0, q.1 - 0.25 * r.1]; t += r.0 * r.0; low = q.1 }
        stencil spread over squares.cell { in q: real[2]; in w on cell.nodes; inc y on node
            y[nodes.0] += q.0 * w[nodes.0]; y[nodes.1] += q.1 * w[nodes.1]; y[nodes.2] -= q.0; y[nodes.3] += w[nodes.3] }
        program p over squares { inout q: real[2] on cell; inout x: real on node; in w on cell.nodes; out t: real on (); out low: real on ()
            repeat 6 { let r = flux(q, x); q, t, low = update(q, r); x = spread(q, w, y = x) } }",
        None,
    ),
    (
        "    levels k\n}
        stencil lap over squares.cell { in a; in c on (k); out b
            b = a + c * sum(s in sides) { a[s.cells.0] - a[s.cells.1] } }
        stencil lift over squares.edge { in a on cell; out u
            sweep k up { u = if k > 0 { 0.5 * u[k-1] + a[cells.0] } else { a[cells.1] } } }
        stencil drop over squares.edge { in u; inc a on cell; a[cells.1] += 0.125 * u; a[cells.0] -= 0.25 * u }
        stencil most over squares.cell { in a; reduce m: max; reduce t: sum; m = a; t += 0.3 * a }
        program p over squares { inout a on cell; in c on (k); out m: real on (); out t: real on ()
            repeat 5 { a = lap(a, c); let u = lift(a); a = drop(u, a); m, t = most(a) } }",
        Some(3),
    ),
    (
        "}
        stencil nudge over squares.cell { inout a; in d; zones rim; a = 0.5 * (a + d) }
        stencil inside over squares.cell { in a; in x on node; inc y on node; zones inner
            y[nodes.0] += a; y[nodes.2] += 0.5 * a - x[nodes.1] }
        stencil over_rim over squares.cell { in a; reduce t: sum; zones rim; t += a }
        stencil mean over squares.cell { in x on node; in a; out b; b = if in_zone(rim) { a } else { 0.25 * (x[nodes.0] + x[nodes.3]) } }
        program p over squares { inout a on cell; in d on cell; inout x on node; out t: real on (); out turns: int on ()
            turns = 0
            repeat 4 { t = over_rim(a)
                repeat if t > 0 { 2 } else { 1 } { x = inside(a, x, y = x); a = mean(x, a); turns = turns + 1 }
                a = nudge(a, d) } }",
        None,
    ),
    (
        "}
        stencil slope over squares.edge { in a on cell; out b; b = a[cells.0] - a[cells.1] }
        stencil own over squares.edge { in b; in w; inc a on cell; a[cells.0] += b * w }
        stencil keep over squares.edge { in b; out w; w = 0.5 * b }
        program p over squares { inout a on cell; out w on edge; repeat 4 { let b = slope(a); w = keep(b); a = own(b, w, a) } }",
        None,
    ),
];

/// Squares whose elements stand in no order, with the sides of cells and with zones.
fn mesh() -> Mesh {
    let mesh = in_rows(9, 7);
    order::find("random").unwrap().ordering(&mesh, &Options { seed: 5, ..Options::new(2) }).unwrap().renumbered(&mesh)
}

/// The same, row by row.
fn in_rows(width: usize, height: usize) -> Mesh {
    let mut mesh = sample::quads(width, height);
    let (edges, cells) = (mesh.sets[1].size, mesh.sets[2].size);
    let mut sides = vec![HOLE; cells * 4];
    for edge in 0..edges {
        for slot in 0..2 {
            let first = mesh.maps[1].row(edge)[slot] as usize * 4;
            if let Some(free) = sides[first..first + 4].iter_mut().find(|side| **side == HOLE) {
                *free = edge as i32;
            }
        }
    }
    mesh.maps.push(Map { name: "sides".to_owned(), from: 2, to: 1, arity: 4, table: sides });
    let zones = Data::I32((0..cells as i32).map(|cell| i32::from(cell % 9 > 0 && cell > 12)).collect());
    mesh.fields.push(Field { name: ZONE.to_owned(), set: 2, map: None, parts: 1, data: zones });
    mesh.fields.retain(|field| field.name == ZONE);
    mesh
}

fn problem(text: (&str, Option<usize>)) -> Arc<MeshProblem> {
    problem_over(mesh(), text, Precision::F64)
}

fn problem_over(mesh: Mesh, (text, levels): (&str, Option<usize>), precision: Precision) -> Arc<MeshProblem> {
    let source = Source::new("p.stn", format!("{MESH}{text}"));
    let lowered = stencilc_compiler::check(&source);
    let told = stencilc_compiler::diagnostic::render(&lowered.diagnostics, &source, false);
    assert!(lowered.is_ok(), "{told}");
    let request = Request {
        program: &lowered.mesh_programs[0],
        precision,
        contract: false,
        mesh,
        levels,
        arrays: BTreeMap::new(),
        settings: BTreeMap::new(),
        seed: 1,
        cast: Cast::Exact,
        drawing: Drawing::Inputs,
    };
    Arc::new(MeshProblem::new(request).unwrap())
}

#[test]
fn interpreted_parts_are_the_whole() {
    for text in TEXTS {
        let problem = problem(text);
        let expected = Expected::new(&problem).unwrap();
        expected.check_worth(&problem).unwrap();
        for parts in [2, 3, 5, 40] {
            let owners = Owners::new(&problem, parts).unwrap();
            let verdict = OverMeshInParts { problem: &problem, expected: &expected, owners }.interpreted().unwrap();
            assert!(matches!(verdict, Verdict::Equal { .. }), "{parts} parts: {verdict:?} of {}", text.0);
        }
    }
}

#[test]
fn kernels_of_parts_are_the_whole() {
    let tools = Tools::emulated(&Compiler::find().unwrap(), Settings::default());
    let threads = Threads { block: 32, at_once: 0, slice: 1 };
    for (n, text) in TEXTS.into_iter().enumerate() {
        let problem = problem(text);
        let expected = Expected::new(&problem).unwrap();
        let ways = STRATEGIES.iter().filter(|own| own.is_ordered()).enumerate().map(|(number, &strategy)| {
            let layout = VectorLayout::ALL[(n + number) % VectorLayout::ALL.len()];
            let method = METHODS[(n + number) % METHODS.len()];
            let mut own = problem.mesh.clone();
            own.fields.clear();
            // What takes coordinates has none here.
            let options = Options { block: 16, ..Options::new(2) };
            let ordering = method.ordering(&own, &options).or_else(|_| METHODS[0].ordering(&own, &options)).unwrap();
            let renumbered = Arc::new(Renumbered::new(&problem, &ordering).unwrap());
            Way { renumbered, choices: MeshChoices { strategy, layout, threads, ..MeshChoices::default() } }
        });
        let ways: Vec<Way> = ways.collect();
        let owners = Owners::new(&problem, 2 + n % 2).unwrap();
        let subject = OverMeshInParts { problem: &problem, expected: &expected, owners };
        let verdicts = verify(&subject, &ways, &tools, &|_| {}).unwrap();
        for (way, verdict) in ways.iter().zip(&verdicts) {
            let name = way.choices.strategy.name();
            // Some strategies cannot compute each of them, cut or not.
            let is_right = match verdict {
                Verdict::Refused { .. } => name != "owner",
                verdict => matches!(verdict, Verdict::Equal { .. }),
            };
            assert!(is_right, "{name}, {}: {verdict:?} of {}", way.choices.layout.name(), text.0);
        }
    }
}

/// Parts that meet as bytes, in each layout and in another order than the user's.
#[test]
fn kernels_of_ranks_are_the_whole() {
    let emulator = Arc::new(Emulator::new(Compiler::find().unwrap(), Settings::default()));
    for (n, text) in TEXTS.into_iter().enumerate() {
        let problem = problem(text);
        let expected = Expected::new(&problem).unwrap();
        let mut bare = problem.mesh.clone();
        bare.fields.clear();
        let ordering = order::find("random").unwrap().ordering(&bare, &Options { seed: 2, ..Options::new(2) }).unwrap();
        let layout = VectorLayout::ALL[n % VectorLayout::ALL.len()];
        let owners = Owners::new(&problem, 2 + n % 2).unwrap();
        let choices = MeshChoices { layout, ..MeshChoices::usual(problem.program.mesh.levels) };
        let (cut, choices) = Cut::new(Arc::clone(&problem), &owners).unwrap().chosen(choices);
        let verdicts = together(cut.parts().len(), |ranks| {
            let part = &cut.parts()[ranks.rank()].problem;
            let renumbered = Rc::new(Renumbered::new(part, &cut.ordering(ranks.rank(), &ordering))?);
            let kernels = Kernels::new(Arc::clone(part), Arc::clone(&emulator), choices, renumbered);
            let kernels = kernels.leaving().watched();
            let rank = Rank::new(cut.clone(), kernels, ranks, &|chain| cut.merges(chain, choices))?;
            let mut driver = Driver::new(rank).given()?;
            driver.finish()?;
            expected.judged(&problem, &driver, true)
        });
        for verdict in verdicts.unwrap() {
            assert!(matches!(verdict, Verdict::Equal { .. }), "{}: {verdict:?} of {}", layout.name(), text.0);
        }
    }
}

/// Numbers that parts fold by themselves, since they follow each other, and those between, of some zones and of levels.
#[test]
fn what_lies_together_in_a_part_is_folded_there() {
    let text = "}
        stencil fold over squares.cell { in a; reduce t: sum; reduce low: min; reduce high: max
            t += a; low = a; high = a * a }
        stencil inside over squares.cell { in a; reduce t: sum; zones inner; t += 1 / a }
        program p over squares { inout a on cell; out t, low, high: real on (); out u: real on ()
            repeat 3 { t, low, high = fold(a); u = inside(a); a = more(a, t) } }
        stencil more over squares.cell { in a; param x; out b; b = a + 1 / (2 + x * x) }";
    let leveled = text
        .replace("inout a on cell", "in a on cell")
        .replacen('}', "levels k }", 1)
        .replace("a = more(a, t)", "")
        .replace("repeat 3", "repeat 1");
    for (text, levels, precision) in
        [(text, None, Precision::F64), (text, None, Precision::F32), (&*leveled, Some(5), Precision::F64)]
    {
        let problem = problem_over(in_rows(600, 3), (text, levels), precision);
        let expected = Expected::new(&problem).unwrap();
        let mut bare = problem.mesh.clone();
        bare.fields.clear();
        let ordering = order::find("random").unwrap().ordering(&bare, &Options { seed: 3, ..Options::new(2) }).unwrap();
        for parts in [2, 5] {
            let owners = Owners::new(&problem, parts).unwrap();
            let cut = Cut::new(Arc::clone(&problem), &owners).unwrap();
            let turn = traffic(&cut, &|_| false).unwrap();
            let all = 1800 * levels.unwrap_or(1) * precision.bytes();
            assert!(
                turn.folds.bytes > 0 && turn.folds.bytes < all * turn.folds.numbers / 2,
                "{:?} of {all}",
                turn.folds
            );
            let subject = OverMeshInParts { problem: &problem, expected: &expected, owners };
            let verdict = subject.interpreted().unwrap();
            assert!(matches!(verdict, Verdict::Equal { .. }), "{parts} parts: {verdict:?}");
            let emulator = Arc::new(Emulator::new(Compiler::find().unwrap(), Settings::default()));
            let (cut, choices) = cut.chosen(MeshChoices::usual(problem.program.mesh.levels));
            let kernels = |part: usize| {
                let (ordering, part) = (cut.ordering(part, &ordering), &cut.parts()[part].problem);
                let renumbered = Rc::new(Renumbered::new(part, &ordering).unwrap());
                Kernels::new(Arc::clone(part), Arc::clone(&emulator), choices, renumbered).leaving().watched()
            };
            let backend = Parts::new(cut.clone(), (0..parts).map(kernels).collect(), &|_| false).unwrap();
            let mut driver = Driver::new(backend).given().unwrap();
            driver.finish().unwrap();
            let verdict = expected.judged(&problem, &driver, true).unwrap();
            assert!(matches!(verdict, Verdict::Equal { .. }), "kernels of {parts} parts: {verdict:?}");
            let verdicts = together(parts, |ranks| {
                let (part, merges) = (ranks.rank(), |chain: &_| cut.merges(chain, choices));
                let mut driver = Driver::new(Rank::new(cut.clone(), kernels(part), ranks, &merges)?).given()?;
                driver.finish()?;
                expected.judged(&problem, &driver, true)
            });
            for verdict in verdicts.unwrap() {
                assert!(matches!(verdict, Verdict::Equal { .. }), "{parts} ranks: {verdict:?}");
            }
        }
    }
}

/// What compares parts with the whole finds out if nothing is brought.
#[test]
fn parts_that_bring_nothing_are_told() {
    for text in TEXTS {
        let problem = problem(text);
        let cut = Cut::new(Arc::clone(&problem), &Owners::new(&problem, 3).unwrap()).unwrap();
        let own = |foreign: Arc<[BTreeSet<_>]>| {
            let mut driver = Driver::new(Parts::interpreted(Cut { foreign, ..cut.clone() }).unwrap()).given().unwrap();
            driver.finish().unwrap();
            Expected::new(&problem).unwrap().judged(&problem, &driver, true).unwrap()
        };
        assert!(matches!(own(Arc::clone(&cut.foreign)), Verdict::Equal { .. }));
        let nothing = cut.foreign.iter().map(|_| BTreeSet::new()).collect();
        assert!(matches!(own(nothing), Verdict::Failed { .. }), "{}", text.0);
    }
}

/// Each element is owned once, by the part that is the most of its neighbours; all that a part needs it has.
#[test]
fn parts_are_whole() {
    let problem = problem(TEXTS[0]);
    let owners = Owners::new(&problem, 4).unwrap();
    let cut = Cut::new(Arc::clone(&problem), &owners).unwrap();
    for set in problem.program.mesh.sets.handles() {
        let size = problem.bound.size(set);
        let mut met = vec![0; size];
        for part in cut.parts() {
            let own = &part.elements[set.index()];
            assert!(own.users.is_sorted() && own.users.len() < size, "a part has some of the mesh");
            own.owned.iter().for_each(|&place| met[own.users[place as usize] as usize] += 1);
        }
        assert!(met.iter().all(|&times| times == 1));
    }
    for message in &*cut.messages {
        let [to, from] = [message.to, message.from].map(|part| &cut.parts()[part].elements[message.set.index()]);
        assert!(message.to != message.from);
        for &[place, there] in &message.places {
            assert_eq!(to.users[place as usize], from.users[there as usize]);
            assert!(from.owned.contains(&there) && !to.owned.contains(&place));
        }
    }
    for method in METHODS.iter().filter(|method| method.name() != "hilbert") {
        let ordering = method.ordering(&problem.mesh, &Options { block: 8, ..Options::new(2) }).unwrap();
        for (number, part) in cut.parts().iter().enumerate() {
            let own = cut.ordering(number, &ordering);
            own.check(&part.problem.mesh).unwrap();
            assert_eq!(own.cuts.is_some(), ordering.cuts.is_some());
        }
    }
}

/// What is read at the element itself alone stays where it is, but for what somebody computes to add it to another part's element.
#[test]
fn what_nobody_looks_at_is_not_brought() {
    let problem = problem(TEXTS[3]);
    let owners = Owners::new(&problem, 3).unwrap();
    let parts = Parts::interpreted(Cut::new(Arc::clone(&problem), &owners).unwrap()).unwrap();
    let script = Arc::clone(&parts.known.script);
    let named = |name: &str| {
        let id = problem.program.program.variables.iter().find(|(_, own)| own.name == name);
        id.map_or_else(|| panic!("no {name}"), |(id, _)| id)
    };
    let needs = |stage: usize| -> Vec<VariableId> {
        let reads = script.uses(stage).reads.into_iter().map(|(_, variable)| variable);
        reads.filter(|&variable| script.needs_halo(stage, variable)).collect()
    };
    let stage = |name: &str| {
        let is_it = |&stage: &usize| problem.stages(script.whole.stage(stage).call.stencil)[0].stencil.name == name;
        (0..3).find(is_it).unwrap()
    };
    assert_eq!(needs(stage("slope")), [named("a")]);
    assert_eq!(needs(stage("keep")), []);
    assert_eq!(needs(stage("own")).len(), 2);
    let mut driver = Driver::new(parts).given().unwrap();
    driver.finish().unwrap();
}

/// What a loop asks of all parts is recorded once, what is brought and folded with it.
#[test]
fn recorded_loops_of_parts_equal_others() {
    let text = "}
        stencil flux over squares.edge { in a on cell; inc r on cell
            let f = 0.1 * (a[cells.1] - a[cells.0]); r[cells.0] += f; r[cells.1] -= f }
        stencil step over squares.cell { in a, r; out b; reduce t: sum; b = a + r; t += r * r }
        program p over squares { inout a on cell; out t: real on (); repeat 600 { let r = flux(a); a, t = step(a, r) } }";
    let problem = problem((text, None));
    let expected = Expected::new(&problem).unwrap();
    let cut = Cut::new(Arc::clone(&problem), &Owners::new(&problem, 3).unwrap()).unwrap();
    let computed = [false, true].map(|records| {
        let backend = Recorder::new(Parts::interpreted(cut.clone()).unwrap(), records);
        let mut driver = Driver::new(&backend).given().unwrap();
        driver.finish().unwrap();
        let verdict = expected.judged(&problem, &driver, true).unwrap();
        assert!(matches!(verdict, Verdict::Equal { .. }), "{verdict:?}");
        backend.computed.get()
    });
    assert!(computed[1] < computed[0] / 4, "{computed:?}");
}

#[test]
fn more_parts_than_elements_are_refused() {
    let problem = problem(TEXTS[0]);
    let said = Owners::new(&problem, 64).unwrap_err();
    assert!(
        said.message.contains("63 elements are too few for 64 parts: `p` has most of its numbers on `cell`"),
        "{said}"
    );
    assert!(said.help.is_some_and(|help| help.contains("--gpus 63")));
    let said = Owners::given(&problem, 2, vec![vec![2; 80], vec![0; 110], vec![0; 63]]).unwrap_err();
    assert!(said.message.contains("owners"), "{said}");
}
