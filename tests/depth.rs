//! The deepest and longest of every construct, alone and on top of each other, from the text to the result on a small stack: each
//! is computed, or refused with a limit that is named; none takes more than some kilobytes of stack, and none more than it has names.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use stencilc_compiler::analysis::levels::{Known, depend_on_params};
use stencilc_compiler::analysis::{cost::cost, extents::demand, reached::classes, reuse::evaluate};
use stencilc_compiler::cuda;
use stencilc_compiler::depth::BODY;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::{Precision, Stencil};
use stencilc_compiler::lower::Lowered;
use stencilc_compiler::mesh::{MeshChoices, STRATEGIES};
use stencilc_compiler::plan::{self, prepare, variants};
use stencilc_compiler::source::Source;
use stencilc_runtime::emulate::Emulator;
use stencilc_runtime::mesh::order::{self, Options};
use stencilc_runtime::mesh::program::cpu::Interpreter;
use stencilc_runtime::mesh::program::kernels::{Kernels, Renumbered};
use stencilc_runtime::mesh::program::measure::results;
use stencilc_runtime::mesh::program::{MeshProblem, Request as MeshRequest, alone};
use stencilc_runtime::mesh::{Map, Mesh, Set};
use stencilc_runtime::problem::{Problem, Request};
use stencilc_runtime::test::{interpreted, interpreted_program};
use stencilc_runtime::{Cast, Drawing, Error, Result, test};

/// Half of what a thread of a thread pool has.
const STACK: usize = 1 << 20;

/// Does something where there is little stack.
fn on_a_small_stack<T: Send>(compute: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, compute);
        thread.expect("a thread").join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The first error of a text, or nothing where all that is in it was computed, and printed as kernels of all kinds.
fn refusal(text: &str) -> Option<String> {
    on_a_small_stack(|| {
        let lowered = stencilc_compiler::check(&Source::new("deep.stn", text));
        if let Some(found) = lowered.diagnostics.iter().find(|_| !lowered.is_ok()) {
            return Some(found.message.clone());
        }
        follow(&lowered).err().map(|error| error.message)
    })
}

/// A small grid.
const GRID: Grid = Grid::rows(3, 2, 4);

/// A stencil on it, with numbers at random.
fn request(stencil: &Stencil) -> Request<'_> {
    Request {
        stencil,
        precision: Precision::F64,
        contract: true,
        grid: Some(GRID),
        adjacency: None,
        arrays: BTreeMap::new(),
        settings: BTreeMap::new(),
        seed: 1,
        cast: Cast::Exact,
        drawing: Drawing::Everything,
    }
}

/// All that is in a text; the first refusal ends it.
fn follow(lowered: &Lowered) -> Result<()> {
    for stencil in &lowered.stencils {
        let prepared = prepare(stencil, Precision::F64, true);
        assert!(!prepared.to_string().is_empty());
        depend_on_params(&prepared);
        let problem = Problem::new(request(stencil))?;
        let known = Known::new(&prepared, Precision::F64, GRID.nk, &problem.params);
        for class in classes(&prepared, &known, GRID.nk) {
            evaluate(&prepared, &class.reached);
        }
        cost(&prepared, Precision::F64);
        demand(&prepared);
        interpreted(&problem)?;
        let mut seen = std::collections::HashSet::new();
        // A kernel that walks along k is for one grid.
        let all = variants().filter(|own| own.suits(stencil) && !own.walks());
        for choices in all.filter(|own| seen.insert((own.storage.clone(), own.access.clone()))) {
            match plan::plan(&prepared, &choices, None) {
                Ok(plan) => assert!(!cuda::build(&plan)?.source.is_empty()),
                // A kernel with sweeps is for one grid.
                Err(_) if !stencil.sweeps.is_empty() => {}
                Err(refusal) => return Err(refusal.into()),
            }
        }
    }
    for program in &lowered.programs {
        let facade = program.facade();
        interpreted_program(program, &mut Problem::new(request(&facade))?, true)?;
    }
    for own in &lowered.tests {
        let stencil = lowered.stencils.iter().find(|stencil| stencil.name == own.stencil);
        let compute = |problem: &mut Problem| interpreted(problem);
        let options = test::Options { precision: Precision::F64, contract: true, compute: &compute };
        test::run(stencil.expect("the stencil of a test"), own, &options)?;
    }
    let of_stencils = lowered.mesh_stencils.iter().map(alone);
    for program in of_stencils.chain(lowered.mesh_programs.iter().cloned()) {
        let problem = MeshProblem::new(MeshRequest {
            program: &program,
            precision: Precision::F64,
            contract: true,
            mesh: ring(),
            levels: None,
            arrays: BTreeMap::new(),
            settings: BTreeMap::new(),
            seed: 1,
            cast: Cast::Exact,
            drawing: Drawing::Everything,
        })?;
        let problem = Arc::new(problem);
        results(&problem, Interpreter::new(Arc::clone(&problem)))?;
        for &strategy in STRATEGIES {
            let choices = MeshChoices { strategy, ..MeshChoices::default() };
            let ordering = order::find("none")?.ordering(&problem.mesh, &Options::new(0))?;
            // The text is all that is asked for.
            let reader = |_: &str, text: &str| {
                assert!(deepest(text) <= 2 * BODY, "brackets are {} deep", deepest(text));
                Err(Error::check(if text.is_empty() { "empty" } else { "printed" }))
            };
            let (machine, renumbered) = (Arc::new(Emulator::default()), Rc::new(Renumbered::new(&problem, &ordering)?));
            let kernels = Kernels::new(Arc::clone(&problem), machine, choices, renumbered).read_by(Rc::new(reader));
            match results(&problem, &kernels) {
                Err(error) if error.message == "printed" || !strategy.is_ordered() => {}
                other => drop(other?),
            }
        }
    }
    Ok(())
}

/// How many brackets are open at once in a text.
fn deepest(text: &str) -> usize {
    let opened = text.chars().scan(0_usize, |open, character| {
        *open = match character {
            '(' => *open + 1,
            ')' => open.saturating_sub(1),
            _ => *open,
        };
        Some(*open)
    });
    opened.max().unwrap_or(0)
}

/// Cells in a ring, and the edges between them.
fn ring() -> Mesh {
    let set = |name: &str| Set { name: name.to_owned(), size: 3 };
    let map =
        |name: &str, from, table: [i32; 6]| Map { name: name.to_owned(), from, to: 0, arity: 2, table: table.to_vec() };
    Mesh {
        origin: "a ring".to_owned(),
        sets: vec![set("cell"), set("edge")],
        maps: vec![map("near", 0, [1, 2, 2, 0, 0, 1]), map("ends", 1, [0, 1, 1, 2, 2, 0])],
        fields: Vec::new(),
    }
}

/// Lines, one a number.
fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (1..=count).map(|n| line(n) + "\n").collect()
}

/// A stencil of a value of the field `a`.
fn stencil(value: &str) -> String {
    format!("stencil s {{ in a\n out r\n r = {value} }}\n")
}

/// What stands around an expression, given a number of its own.
type Around<'a> = &'a dyn Fn(usize, &str) -> String;

/// An expression inside of others of a kind, so many of them, each with a number of its own.
fn nested(count: usize, inner: &str, around: impl Fn(usize, &str) -> String) -> String {
    (0..count).fold(inner.to_owned(), |inner, number| around(number, &inner))
}

#[test]
fn the_deepest_of_each_construct_is_computed() {
    let around: [(&str, usize, Around); 12] = [
        ("brackets", 250, &|_, x| format!("({x})")),
        ("signs", 390, &|_, x| format!("-{x}")),
        ("functions", 250, &|_, x| format!("abs({x})")),
        ("several operands", 250, &|_, x| format!("min(a, {x})")),
        ("right operands", 190, &|_, x| format!("a - ({x})")),
        ("powers", 190, &|_, x| format!("({x})**2")),
        ("choices", 120, &|_, x| format!("if a > 0 {{ {x} }} else {{ 1 }}")),
        ("conditions", 80, &|_, x| format!("if (({x}) > 0) {{ a }} else {{ 1 }}")),
        ("lets", 120, &|n, x| format!("if a > 0 {{ let b{n} = {x}\n b{n} + 1 }} else {{ 1 }}")),
        ("sums", 120, &|n, x| format!("sum(n{n} in 0..=0) {{ {x} + n{n} }}")),
        ("parts", 120, &|_, x| format!("[{x}, 1][0]")),
        ("products of vectors", 110, &|_, x| format!("dot([{x}], [a])")),
    ];
    for (what, count, around) in around {
        assert_eq!(refusal(&stencil(&nested(count, "a", around))), None, "{what}");
    }
}

#[test]
fn chains_of_names_are_as_long_as_they_may_be() {
    let lets = lines(999, |n| format!("let x{n} = -x{} + a", n - 1));
    assert_eq!(refusal(&format!("stencil s {{ in a\n out r\n let x0 = 2 * a\n {lets} r = x999 }}")), None);
    // Conditions on levels go through them.
    let lets = lines(999, |n| format!("let x{n} = x{} + 1", n - 1));
    let known = format!(
        "stencil s {{ in a\n out r\n param p = 1\n let x0 = k * p\n {lets} r = if x999 > 1000 {{ a[k-1] }} else {{ a }} }}"
    );
    assert_eq!(refusal(&known), None);
    let constants = lines(999, |n| format!("const c{n} = -c{} + 1", n - 1));
    assert_eq!(refusal(&format!("const c0 = 1\n {constants} {}", stencil("a + c999"))), None);
    let functions = lines(99, |n| format!("fn f{n}(x) = -f{}(x + 1)", n - 1));
    assert_eq!(refusal(&format!("fn f0(x) = 2 * x\n {functions} {}", stencil("f99(a)"))), None);
    let sweep = lines(900, |n| format!("let y{n} = y{} + a", n - 1));
    let sweep = format!(
        "stencil s {{ in a\n out r\n sweep k up {{ let y0 = if k == 0 {{ a }} else {{ r[k-1] }}\n {sweep} r = y900 }} }}"
    );
    assert_eq!(refusal(&sweep), None);
}

/// Each within its own limit; what they come to on top of each other is told.
#[test]
fn depths_add_up_to_a_limit_that_is_told() {
    let signs = "-".repeat(380);
    let constants = lines(30, |n| format!("const c{n} = {signs}c{}", n - 1));
    let found = refusal(&format!("const c0 = 1.0\n {constants} {}", stencil("a + c30"))).unwrap_or_default();
    assert!(found.contains("nested more than 4000 deep"), "{found}");
    let functions = |count: usize| {
        let functions = lines(count, |n| {
            format!("fn f{n}(x) = {}", nested(150, &format!("f{}(x)", n - 1), |_, x| format!("abs({x})")))
        });
        format!("fn f0(x) = 2 * x\n {functions} {}", stencil(&format!("f{count}(a)")))
    };
    assert_eq!(refusal(&functions(20)), None);
    assert!(refusal(&functions(30)).is_some_and(|found| found.contains("nested more than 4000 deep")));
    let params = lines(999, |n| format!("param p{n} = {}p{}", "-".repeat(300), n - 1));
    let found = refusal(&format!("param p0 = 1\n {params} {}", stencil("a + p999"))).unwrap_or_default();
    assert!(found.contains("nested more than 4000 deep"), "{found}");
    // A function of all, that calls one of all.
    let all = |inner: &str| {
        format!(
            "if x > 0 {{ sum(m in 0..=1) {{ dot([({inner})**3, -x], [1, {signs}2]) }} }} else {{ min(x, {inner}) }}"
        )
    };
    let functions = lines(12, |n| format!("fn f{n}(x) = {}", all(&format!("f{}(x + c1)", n - 1))));
    let found =
        refusal(&format!("const c0 = 1\n const c1 = {signs}c0\n fn f0(x) = x\n {functions} {}", stencil("f12(a)")));
    assert!(found.is_some_and(|found| found.contains("operations")));
}

/// What is named twice at every step is 2^n things if every name is followed to its end, and n if each is followed once.
#[test]
fn what_is_used_twice_is_followed_once() {
    let twice = |name: &str| lines(200, |n| format!("let {name}{n} = max({name}{0}, {name}{0})", n - 1));
    assert_eq!(refusal(&format!("stencil s {{ in a\n out r\n let x0 = 2 * a\n {} r = x200 }}", twice("x"))), None);
    // Conditions on levels go through them.
    let known = format!(
        "stencil s {{ in a\n out r\n param p = 1\n let x0 = k * p\n {} r = if x200 > 2 {{ a[k-1] }} else {{ a }} }}",
        twice("x")
    );
    assert_eq!(refusal(&known), None);
    let constants = lines(200, |n| format!("const c{n} = c{0} * c{0}", n - 1));
    assert_eq!(refusal(&format!("const c0 = 1\n {constants} {}", stencil("a + c200"))), None);
    // A function is what it computes, written out; as far as that is known.
    let functions = |count: usize, first: &str| {
        let functions = lines(count, |n| format!("fn f{n}(x) = f{0}(x) + f{0}(x)", n - 1));
        format!("fn f0(x) = {first}\n {functions} {}", stencil(&format!("f{count}(a)")))
    };
    assert!(refusal(&functions(30, "x")).is_some_and(|found| found.contains("more than 1000000 operations")));
    assert!(refusal(&functions(90, "nothing")).is_some_and(|found| found.contains("nothing")));
    let vectors = nested(40, "a", |_, x| format!("dot({x} * [a, 2], [1, a])"));
    assert_eq!(refusal(&stencil(&vectors)), None);
    let expected = lines(200, |n| format!("let e{n} = max(e{0}, e{0})", n - 1));
    let own =
        format!("{}\ntest \"twice\" {{\n s {{ a = 2 }}\n let e0 = r\n {expected} expect e200 == 2 }}", stencil("a"));
    assert_eq!(refusal(&own), None);
}

/// What an edge adds to both of its cells is made one value, in which no chain of names is written out.
#[test]
fn what_both_ends_get_is_as_long_as_names_may_be() {
    let chain = |first: &str| {
        lines(1000, |n| {
            let terms: Vec<String> = (0..16).map(|term| format!("q[ends.{}] * {n}.{term}", term % 2)).collect();
            format!("let g{n} = g{} * 0.5 + {}", n - 1, terms.join(" + "))
        })
        .replacen("g0", first, 1)
    };
    let mesh = "mesh m {\n set cell, edge\n map cell.near -> cell[2]\n map edge.ends -> cell[2]\n }\n";
    // From nothing, and from what is there: then signs of 0 matter.
    for (program, after) in [("r = s(q)", ""), ("r = s(q, q)", ""), ("r = s(q)", " / (1 + abs(q[ends.0]))")] {
        let text = format!(
            "{mesh}stencil s over m.edge {{ in q on cell\n inc r on cell\n {} let g = g1000{after}\n r[ends.0] += g\n \
             r[ends.1] -= g }}\nprogram p over m {{ in q on cell\n out r on cell\n {program} }}",
            chain("q[ends.0]")
        );
        assert_eq!(refusal(&text), None, "{program}");
    }
}

/// A kernel holds few of many calls, whether they add or not.
#[test]
fn many_calls_are_several_kernels() {
    let mesh = "mesh m {\n set cell, edge\n map cell.near -> cell[2]\n map edge.ends -> cell[2]\n }\n\
        stencil add over m.edge {\n in q on cell\n inc r on cell\n r[ends.0] += q[ends.1]\n r[ends.1] -= q[ends.0]\n }\n\
        stencil own over m.cell {\n in q\n out r\n r = 2 * q\n }\n";
    let adding = lines(500, |n| format!("let r{n} = add(q, r{})", n - 1));
    let own = lines(500, |n| format!("let r{n} = own(r{})", n - 1));
    for calls in [format!("let r0 = add(q)\n {adding}"), format!("let r0 = own(q)\n {own}")] {
        let text = format!("{mesh}program p over m {{ in q on cell\n out r on cell\n {calls} r = own(r500) }}");
        assert_eq!(refusal(&text), None);
    }
}

/// As deep in programs and over meshes as in stencils.
#[test]
fn programs_and_meshes_are_followed_as_far() {
    let program = |inside: &str| format!("program p {{\n inout b\n {inside}\n }}\n{}", stencil("a + 1"));
    let loops = nested(20, "b = s(b)", |_, inner| format!("repeat 1 {{\n {inner}\n }}"));
    let steps = lines(300, |n| format!("let b{n} = s(b{})", n - 1));
    for inside in [loops.as_str(), &format!("let b0 = s(b)\n {steps} b = s(b300)")] {
        assert_eq!(refusal(&program(inside)), None, "{inside}");
    }
    let loops = nested(21, "b = s(b)", |_, inner| format!("repeat 1 {{\n {inner}\n }}"));
    assert_eq!(refusal(&program(&loops)).as_deref(), Some("more than 20 loops inside each other"));
    let signs = nested(390, "q[near.0]", |_, x| format!("-{x}"));
    let twice = lines(200, |n| format!("let x{n} = max(x{0}, x{0})", n - 1));
    let numbers = lines(200, |n| format!("let n{n} = max(n{0}, n{0})", n - 1));
    for inside in [
        format!("stencil s over m.cell {{ in q on cell\n out r\n r = {signs} }}"),
        format!("stencil s over m.cell {{ in q on cell\n out r\n let x0 = q[near.1]\n {twice} r = x200 }}"),
        format!(
            "stencil s over m.edge {{ in q on cell\n inc r on cell\n let x0 = q[ends.0]\n {twice} r[ends.0] += x200\n \
             r[ends.1] -= x200 }}"
        ),
        format!("stencil s over m.cell {{ in q\n reduce most: max\n let x0 = q\n {twice} most = x200 }}"),
        format!(
            "stencil s over m.cell {{ in q\n param p: real\n out r\n r = q * p }}\n\
             program t over m {{ inout q on cell\n let n0 = 2 / size(cell)\n {numbers} q = s(q, n200) }}"
        ),
    ] {
        let mesh = "mesh m {\n set cell, edge\n map cell.near -> cell[2]\n map edge.ends -> cell[2]\n }\n";
        assert_eq!(refusal(&format!("{mesh}{inside}")), None, "{inside}");
    }
}
