use super::*;
use crate::ir::scalar::Value;
use crate::source::Source;

fn staged(text: &str, domain: Grid) -> Result<Staged, String> {
    let lowered = crate::check(&Source::new("own", text));
    assert!(lowered.is_ok(), "{:?}", lowered.diagnostics);
    let program = &lowered.programs[0];
    let params: Vec<Value> = program.numbers.params.iter().map(|_| Value::Int(3)).collect();
    Staged::new(program, Precision::F64, true, domain, None, &params).map_err(|refusal| refusal.message)
}

/// `lap` is computed without the outer cells, so `b` lacks one more all around.
const SHRINKS: &str = "
    program shrinks { in a; out b; let lap = laplacian(a); b = laplacian(lap) }
    stencil laplacian { in a; out lap; lap = a[i-1] + a[i+1] + a[j-1] + a[j+1] - 4*a }
";

#[test]
fn what_has_no_value_is_not_read() {
    let staged = staged(SHRINKS, Grid::rows(9, 8, 2)).unwrap();
    let regions: Vec<String> = staged.stages.iter().map(|stage| stage.region.to_string()).collect();
    assert_eq!(regions, ["i 1..8, j 1..7, k 0..2", "i 2..7, j 2..6, k 0..2"]);
    assert!(self::staged(SHRINKS, Grid::rows(9, 4, 2)).unwrap_err().contains("computes no cell"));
}

/// Where a field has a boundary, levels up to the edge are computed: all that there are, or all that are said.
#[test]
fn a_call_on_some_levels_computes_them_where_there_is_a_boundary() {
    let text = |levels: &str| {
        format!(
            "program own {{ in t; out f on (i, j, k+1); boundary t {{ k: mirror }}; f = flux(t) on levels {levels} }}
             stencil flux {{ in t; out f on (i, j, k+1); f = if k > 0 {{ t[k-1] }} else {{ t }} }}"
        )
    };
    let domain = Grid::rows(4, 3, 5);
    assert_eq!(staged(&text("0..nk + 1"), domain).unwrap().computed.k, 0..5);
    assert_eq!(staged(&text("1..nk"), domain).unwrap().computed.k, 1..5);
}

/// What is beside a part of a grid is computed by other calls, and read; a part next to the part before is one with it.
#[test]
fn calls_compute_parts_of_i_and_j() {
    let text = |calls: &str| {
        let role = if calls.starts_with('t') { "inout" } else { "in" };
        format!(
            "program own {{ param n: int; {role} t; out o; boundary {{ i: periodic, j: copy }}; {calls} }}
             stencil beside {{ in t; out next; next = t[i-1] + t[j+1] }}
             stencil copy {{ in t; out next; i 1..ni; next = t }}"
        )
    };
    let domain = Grid::rows(8, 6, 3);
    let regions = |calls: &str| {
        let staged = staged(&text(calls), domain)?;
        let own = staged.stages.iter().map(|stage| staged.without_edges(&stage.region).to_string());
        Ok::<_, String>(own.collect::<Vec<String>>().join("; "))
    };
    let own = regions("t = beside(t) on i 0..n, j nj - 1; o = beside(t) on levels 1..nk; o = copy(t) on i 0..n + 1");
    assert_eq!(own.unwrap(), "i 0..3, j 5..6, k 0..3; i 0..8, j 0..6, k 1..3; i 1..4, j 0..6, k 0..3");
    // Half by half, all of it has values.
    let halves = "let a = beside(t) on j 0..n; a = beside(t) on j n..nj; o = copy(a)";
    assert_eq!(regions(halves).unwrap(), "i 0..8, j 0..3, k 0..3; i 0..8, j 3..6, k 0..3; i 1..8, j 0..6, k 0..3");
    // A name has no values elsewhere.
    let some = regions("let a = beside(t) on i 0..5, levels 0..2; o = copy(a)").unwrap_err();
    assert!(some.contains("`a` is read beyond its high edge along `i` by `copy`"), "{some}");
    let wrong = |calls: &str| regions(calls).unwrap_err();
    assert!(
        wrong("o = copy(t) on i 0..n + 6")
            .contains("ends before i = 9, which is `n + 6`, and there are 8 columns along i")
    );
    assert!(
        wrong("o = copy(t) on j n - 4")
            .contains("is computed on j = -1, which is `n - 4`, and there are 6 columns along j")
    );
    assert!(wrong("o = copy(t) on i 0").contains("computes no column: along i it can compute 0..8"));
}

/// An edge that is not looked at, since a part is computed that is away from it, needs no rule.
#[test]
fn a_part_away_from_an_edge_needs_no_boundary_there() {
    let text = |part: &str| {
        format!(
            "program own {{ in a; inout b; boundary b {{ i: periodic }}; b = both(a, b) on {part} }}
             stencil both {{ in a, b; out r; r = a[i-1] + b[i-1] }}"
        )
    };
    let domain = Grid::rows(8, 6, 3);
    assert_eq!(staged(&text("i 1..ni"), domain).unwrap().computed_of(VariableId::new(1)).i, 0..8);
    let wrong = staged(&text("i 0..3"), domain).unwrap_err();
    assert!(wrong.contains("`a` is read beyond its low edge along `i` by `both on i 0..3`"), "{wrong}");
}

/// A stage that computes a part becomes one with no other, whatever is fused.
#[test]
fn calls_on_parts_are_not_fused() {
    let text = "
        program own { inout t; boundary { i: periodic }; t = beside(t) on i 0..3; t = beside(t) on i 0..3; repeat 3 { t = beside(t) } }
        stencil beside { in t; out next; next = t[i-1] + t }";
    let own = staged(text, Grid::rows(6, 5, 4)).unwrap();
    let fused = own.fused(Fusing { fuse: Fuse::Everything, times: 2, wraps: false, whole: false });
    let regions: Vec<String> =
        fused.stages.iter().map(|stage| stage.region.along(GridAxis::I).len().to_string()).collect();
    assert_eq!(regions[..2], ["3", "3"]);
}

/// What is read on levels that are data is whole, and none of the values of a call before in the same stage.
#[test]
fn what_data_says_is_read_of_a_stage_before() {
    let text = "
        program own { in n: int; inout t; boundary { i: periodic }; let l = twice(t); t = moved(l, t, n) }
        stencil twice { in t; out r; r = 2 * t }
        stencil moved { in l, t; in n: int; out r; r = l[i+1, k + n[i+1]] + t[k + n + 1] }";
    let own = staged(text, Grid::rows(6, 5, 4)).unwrap();
    let fused = own.fused(Fusing { fuse: Fuse::Everything, times: 1, wraps: false, whole: false });
    assert_eq!((own.stages.len(), fused.stages.len()), (2, 2));
    // On the last level, the number leads to one that `l` has and to one before the last that `t` has.
    let stands = &own.stages[1].stands;
    let allowed = |level: usize| {
        let mut own = stands.iter().filter(|(stand, _)| stand.level == Some(level)).map(|(_, own)| (own.low, own.high));
        let found = [own.next(), own.next()];
        found.map(Option::unwrap)
    };
    let mut last = allowed(3);
    last.sort_unstable();
    assert_eq!(last, [(-4, -1), (-3, 0)]);
    assert_eq!(stands.len(), 8);
}

/// A level that the text says by its number is one of the whole field, and counted without the halo.
#[test]
fn what_is_said_by_its_number_is_read_of_a_stage_before() {
    let text = |last: &str| {
        format!(
            "program own {{ inout t; boundary t {{ k: copy }}; let l = curved(t); t = under(l, t) }}
             stencil curved {{ in t; out r; r = t[k-1] + t[k+1] - 2 * t }}
             stencil under {{ in l, t; out r; r = l[level {last}] + t[level 0] + t[k-2] }}"
        )
    };
    let own = staged(&text("nk - 1"), Grid::rows(6, 5, 4)).unwrap();
    let fused = own.fused(Fusing { fuse: Fuse::Everything, times: 1, wraps: false, whole: false });
    assert_eq!((own.stages.len(), fused.stages.len()), (2, 2));
    let refused = |text: &str| staged(text, Grid::rows(6, 5, 4)).unwrap_err();
    assert_eq!(refused(&text("4")), "`under` needs level 4 of `l`, which has levels 0 to 3");
    let open = text("nk - 1").replace("boundary t { k: copy };", "");
    assert_eq!(refused(&open), "`under` needs level 3 of `l`, which has values on levels 1 to 2 there");
}

#[test]
fn the_halo_is_as_wide_as_what_is_read_beyond_edges() {
    let text = |boundary: &str| {
        format!(
            "program own {{ inout a; boundary {{ {boundary} }}; a = wide(a) }}
             stencil wide {{ in a; out b; let d = a[i-2] - a[i+1]; b = d[i-1] + d[j+3] + if k > 0 {{ a[k-1] }} else {{ 0 }} }}"
        )
    };
    let domain = Grid::rows(7, 6, 5);
    let periodic = staged(&text("i: periodic, j: periodic"), domain).unwrap();
    assert_eq!(
        GridAxis::ALL.map(|axis| Side::BOTH.map(|side| periodic.halo.width(axis, side))),
        [[3, 1], [0, 3], [0, 0]]
    );
    assert_eq!(periodic.grid, Grid::rows(11, 9, 5));
    assert!(periodic.stages[0].is_whole);
    let one_side = staged(&text("i low: copy, j: halo"), domain).unwrap();
    assert_eq!(one_side.stages[0].region.to_string(), "i 3..9, j 0..3, k 0..5");
    let levels = staged(&text("k: copy"), domain).unwrap();
    assert_eq!((levels.halo.width(GridAxis::K, Side::Low), levels.grid.nk), (1, 6));
    assert_eq!(levels.stages[0].region.k, 1..6);
    assert!(staged(&text("i: mirror"), Grid::rows(2, 6, 5)).unwrap_err().contains("3 beyond an edge are read"));
}

#[test]
fn levels_keep_their_numbers_in_a_halo() {
    let text = "program own { inout a; boundary { k: periodic }; a = up(a) }
        stencil up { in a; out b; b = if k == nk-1 { a[k+1] + k } else { a } }";
    let staged = staged(text, Grid::rows(2, 2, 4)).unwrap();
    assert_eq!((staged.halo.width(GridAxis::K, Side::High), staged.stages[0].region.k.clone()), (1, 0..4));
}

#[test]
fn what_is_read_beyond_an_edge_along_k_has_a_boundary() {
    let text = |guard: &str| {
        format!(
            "program own {{ inout a; in w; boundary a {{ k: copy }}; a = up(a, w) }}
             stencil up {{ in a, w; out b; b = a[k+1] + {guard} }}"
        )
    };
    let domain = Grid::rows(2, 2, 4);
    assert!(staged(&text("if k > 0 { w[k-1] } else { 0 }"), domain).is_ok());
    let refused = staged(&text("w[k-1]"), domain).unwrap_err();
    assert!(refused.contains("`w` is read beyond its low edge along `k`"), "{refused}");
}

#[test]
fn a_loop_runs_a_whole_number_of_times() {
    let text = "program own { inout a; param n: int = 1; repeat n - 4 { a = same(a) } }
        stencil same { in a; out b; b = a }";
    assert!(staged(text, Grid::rows(2, 2, 2)).unwrap_err().contains("repeats something -1 times"));
}

fn regions(staged: &Staged) -> Vec<String> {
    staged.stages.iter().map(|stage| stage.region.to_string()).collect()
}

/// A wave whose result takes the place of what it is computed from, so many times.
fn wave(times: usize) -> String {
    format!(
        "program ripple {{ inout u, prev; repeat {times} {{ let next = wave(u, prev); prev = u; u = next }} }}
         stencil wave {{ in u, prev; out next; next = u[i-1] + u[i+1] - prev }}"
    )
}

#[test]
fn a_loop_computes_what_it_would_written_out() {
    let two = staged(&wave(2), Grid::rows(9, 2, 1)).unwrap();
    assert_eq!(regions(&two), ["i 1..8, j 0..2, k 0..1", "i 2..7, j 0..2, k 0..1"]);
    assert_eq!(two.computed.to_string(), "i 2..7, j 0..2, k 0..1");
    let written_out = "
        program ripple { inout u, prev; let a = wave(u, prev); let b = wave(a, u); prev = a; u = b }
        stencil wave { in u, prev; out next; next = u[i-1] + u[i+1] - prev }";
    let out = staged(written_out, Grid::rows(9, 2, 1)).unwrap();
    assert_eq!((regions(&out), out.computed, &out.rims), (regions(&two), two.computed.clone(), &two.rims));
    // Nobody asks for a third time, and there is none.
    let [Step::Repeat(own)] = two.steps.as_slice() else { panic!("{:?}", two.steps) };
    assert_eq!((own.turns.len(), own.at_most(30), own.at_most(1)), (2, 2, 1));
}

#[test]
fn a_loop_that_loses_cells_in_each_turn_is_refused_when_none_is_left() {
    let four = staged(&wave(4), Grid::rows(9, 2, 1)).unwrap();
    assert_eq!(four.stages.last().unwrap().region.to_string(), "i 4..5, j 0..2, k 0..1");
    let five = staged(&wave(5), Grid::rows(9, 2, 1)).unwrap_err();
    let lost = "`wave` computes fewer cells in each turn of a loop of program `ripple`: the last one lost the first and the last of i";
    assert_eq!(five, format!("{lost}, and after 4 turns none is left where `u` has values"));
    // Of a larger grid something would be left, and each turn would have a kernel of its own.
    let many = staged(&wave(1000), Grid::rows(4000, 2, 1)).unwrap_err();
    assert!(many.starts_with(lost) && many.ends_with("turns have kernels of their own by now"), "{many}");
    let boundary = wave(1000).replace("repeat", "boundary { i: periodic }; repeat");
    assert_eq!(staged(&boundary, Grid::rows(9, 2, 1)).unwrap().stages.len(), 1);
}

#[test]
fn turns_that_compute_the_same_cells_are_one() {
    let text = |actions: &str| {
        format!(
            "program own {{ inout a, b; in w; b = left(w); a = left(b); repeat 7 {{ {actions} }} }}
             stencil left {{ in a; out b; b = a[i-1] }}"
        )
    };
    let turns = |actions: &str| {
        let staged = staged(&text(actions), Grid::rows(9, 2, 1)).unwrap();
        let Some(Step::Repeat(own)) = staged.steps.last() else { panic!("{:?}", staged.steps) };
        (own.turns.len(), own.again, regions(&staged).len())
    };
    // What a field lacks of a result it keeps.
    assert_eq!(turns("a = left(a); b = left(b)"), (1, 0, 4));
    // What it begins with the first time is not what it begins with ever after.
    assert_eq!(turns("b = left(a); let c = left(w); let d = left(c); a = d"), (2, 1, 6));
    // Two that take turns do so for ever.
    let swapped = "program own { in w; inout a, b; out c; let s = left(w); a = s; repeat 7 { let t = a; a = b; b = t; c = left(a) } }
        stencil left { in a; out b; b = a[i-1] }";
    let staged = staged(swapped, Grid::rows(9, 2, 1)).unwrap();
    assert_eq!(regions(&staged)[1..], ["i 1..9, j 0..2, k 0..1", "i 2..9, j 0..2, k 0..1"]);
    let Some(Step::Repeat(own)) = staged.steps.last() else { panic!("{:?}", staged.steps) };
    assert_eq!((own.turns.len(), own.again, own.is_steady(6)), (2, 0, false));
    assert!(own.turn(0) == own.turn(6) && own.turn(1) == own.turn(3) && own.turn(0) != own.turn(1));
}

#[test]
fn loops_in_loops_are_followed_once_for_what_they_begin_with() {
    // Were each of them followed anew in each turn of those around it, there would be 2 to the power of 20 turns.
    let text = format!(
        "program deep {{\ninout a\n{}a = left(a){}\n}}
         stencil left {{ in a; out b; b = a[i-1] }}",
        "repeat 3 {\n".repeat(20),
        "\n}".repeat(20)
    );
    assert_eq!(staged(&text, Grid::rows(9, 2, 1)).unwrap().stages.len(), 1);
}

#[test]
fn outer_cells_that_nobody_computes_are_known() {
    let heun = |boundary: &str| {
        format!(
            "program heun {{\ninout u\n{boundary}\nrepeat 9 {{ let half = stage(u); u = step(u, half) }} }}
             stencil stage {{ in u; out half; half = u[i-1] + u[i+1] }}
             stencil step {{ in u, half; out next; next = u + half[i-1] + half[i+1] }}"
        )
    };
    let told = |text: &str| {
        let staged = staged(text, Grid::rows(9, 2, 1)).unwrap();
        staged.rims.iter().map(|rim| rim.told(&staged)).collect::<Vec<_>>()
    };
    let expected = "the outer cells of `u` keep what is given: program `heun` computes all but the first 2 and the last 2 of i; \
                    `boundary { i: periodic }` says what lies beyond the edges, and `halo` there leaves them so";
    assert_eq!(told(&heun("")), [expected]);
    // Who says what lies there, be it nothing, knows.
    assert!(told(&heun("boundary { i: copy }")).is_empty() && told(&heun("boundary { i: halo }")).is_empty());
    let own = "program own { in a; out b; b = left(a) }\nstencil left { in a; out b; b = a[i-1] }";
    assert!(
        told(own)[0]
            .starts_with("the outer cells of `b` have no value: program `own` computes all but the first of i;")
    );
}

#[test]
fn columns_that_nobody_computes_are_known_where_there_are_no_rows() {
    // A line of five cells, of which the first has no left neighbour.
    let none = vec![-1; 5];
    let neighbours = [(-1..4).collect(), none.clone(), none.clone(), none];
    let line = Adjacency::new("line", neighbours, None).unwrap();
    let told = |text: &str| {
        let lowered = crate::check(&Source::new("own", text));
        assert!(lowered.is_ok(), "{:?}", lowered.diagnostics);
        let grid = Grid::cells(5, 2);
        let staged = Staged::new(&lowered.programs[0], Precision::F64, true, grid, Some(&line), &[]).unwrap();
        staged.rims.iter().map(|rim| rim.told(&staged)).collect::<Vec<_>>()
    };
    let left = "stencil left { in a; out b; b = a[i-1] }";
    let both = "stencil both { in a; out b; b = a[i-1, k-1] }";
    assert_eq!(
        told(&format!("program own {{ in a; out b; b = left(a) }}\n{left}")),
        [
            "the outer cells of `b` have no value: program `own` computes all but 1 of the 5 columns; from these columns some \
          neighbour is missing, and `boundary { i: halo, j: halo }` leaves them out"
        ]
    );
    let levels = told(&format!("program own {{ inout u; u = both(u) }}\n{both}"));
    assert_eq!(
        levels,
        [
            "the outer cells of `u` keep what is given: program `own` computes all but the first of k and 1 of the 5 columns; \
          `boundary { k: copy }` says what lies beyond the edges, and `halo` there leaves them so; from these columns some neighbour \
          is missing, and `boundary { i: halo, j: halo }` leaves them so"
        ]
    );
    let silent = format!("program own {{ in a; out b; boundary {{ i: halo, j: halo }}; b = left(a) }}\n{left}");
    assert!(told(&silent).is_empty());
    // Of what a loop computes, each turn has a column less.
    let loops = told(&format!(
        "program own {{ in a; out r; let u = left(a); repeat 2 {{ let n = left(u); u = n; r = left(n) }} }}\n{left}"
    ));
    assert!(
        loops[0].contains("and 1 of the 5 columns of those that it computed at first hold what earlier turns computed"),
        "{loops:?}"
    );
}

#[test]
fn cells_that_only_earlier_turns_computed_are_known() {
    let told = |program: &str| {
        let text = format!("{program}\n stencil add {{ in u; out next; next = u + 1 + 0*u[i-1] }}");
        let staged = staged(&text, Grid::rows(12, 1, 1)).unwrap();
        staged.rims.iter().map(|rim| rim.told(&staged)).filter(|told| told.contains("older")).collect::<Vec<_>>()
    };
    let inner = "repeat 4 { let n = add(u); u = n; r = add(u) }";
    let expected = "some cells of `r` are older than others: a loop of program `p` computes fewer in each turn, and the first 3 of i of \
                    those that it computed at first hold what earlier turns computed; a `boundary` of what it reads keeps them all";
    assert!(told(&format!("program p {{ inout u; out r; {inner} }}"))[0].ends_with(expected));
    // That nothing is known beyond the edges does not say that what is inside may be old.
    assert_eq!(told(&format!("program p {{ inout u; out r; boundary r {{ i: halo }}; {inner} }}")), [expected]);
    let outer = "repeat 2 { repeat 3 { let n = add(u); u = n }; r = add(u) }";
    assert!(told(&format!("program p {{ inout u; out r; {outer} }}"))[0].contains("the first 3 of i of those"));
    // What is passed on before it is read by anybody is told by its own name.
    let through = "let r = add(z); repeat 4 { let n = add(u); u = n; r = add(u) }; q = add(r)";
    assert_eq!(told(&format!("program p {{ inout u; in z; out q; {through} }}")).len(), 1);
    assert!(told(&format!("program p {{ inout u; in z; out q; {through} }}"))[0].contains("some cells of `r`"));
    let within = "let r = add(z); repeat 4 { let n = add(u); u = n; r = add(u); q = add(r) }";
    assert!(
        told(&format!("program p {{ inout u; in z; out q; {within} }}")).iter().any(|told| told.contains("of `r`"))
    );
    // What is computed again as a whole is not.
    assert!(told(&format!("program p {{ inout u; in v; out r; {inner}; r = add(v) }}")).is_empty());
    assert!(told("program p { inout u; out r; repeat 4 { u = add(u); r = add(u) } }").is_empty());
}

#[test]
fn a_loop_of_no_turn_computes_nothing() {
    let text = "program own { inout a; repeat 0 { let b = left(a); a = b }; a = left(a) }\nstencil left { in a; out b; b = a[i-1] }";
    let staged = staged(text, Grid::rows(3, 2, 1)).unwrap();
    assert_eq!((staged.stages.last().unwrap().region.i.clone(), staged.computed.i), (1..3, 1..3));
}

/// A call that sweeps is a stage by itself; what is named after it is still named.
#[test]
fn what_a_sweep_gives_can_be_renamed() {
    let text = "program own { inout a; param n: int = 3; let b = sums(a); a = b; repeat n { let c = sums(a); a = c } }
        stencil sums { in x; out y; sweep k up { y = if k == 0 { x } else { y[k-1] + x } } }";
    let staged = staged(text, Grid::rows(2, 2, 4)).unwrap();
    for fuse in [Fuse::Nothing, Fuse::Pointwise, Fuse::Everything] {
        let fused = staged.fused(Fusing { fuse, times: 2, wraps: false, whole: false });
        let is_as_before = |own: &[Step]| matches!(own, [Step::Stage(_), Step::Rename(..), ..]);
        let Some(Step::Repeat(again)) = fused.steps.last() else { panic!("{:?}", fused.steps) };
        assert!(is_as_before(&fused.steps) && again.turns.iter().all(|turn| is_as_before(turn)), "{:?}", fused.steps);
        assert!(again.unrolled.is_none());
    }
}

/// Levels that come one after the other are no plane that is kept while a loop goes on; and what is by itself reads and writes fields that
/// are the same.
#[test]
fn a_loop_of_what_is_fused_with_nothing_carries_nothing() {
    let carried = |place: &str, own: &str| {
        let text = format!(
            "program own {{ inout a; boundary {{ i: periodic; j: periodic }}; repeat 3 {{ a = next(a){place} }} }}
             stencil next {{ {own} }}"
        );
        let fusing = Fusing { fuse: Fuse::Everything, times: 1, wraps: true, whole: true };
        let fused = staged(&text, Grid::rows(8, 2, 4)).unwrap().fused(fusing);
        fused.stages.iter().map(|stage| stage.carry.len()).sum::<usize>()
    };
    let [swept, plain, changed] = [
        "in x; out y; sweep k up { y = if k == 0 { x } else { y[k-1] + x } }",
        "in x; out y; y = 0.5*x[i+1]",
        "inout x; x = 0.5*x",
    ];
    assert_eq!([plain, changed, swept].map(|own| carried("", own)), [1, 1, 0]);
    // A part that is all.
    assert_eq!([plain, changed].map(|own| carried(" on j 0..nj", own)), [0, 0]);
}

/// A sweep begins at the first level. On the others alone it would begin with nothing.
#[test]
fn a_sweep_is_given_what_has_values_on_every_level() {
    let text = |low: &str| {
        format!(
            "program own {{ in a; out c; let b = below(a); c = sums(b) }}
             stencil below {{ in a; out b; b = {low} }}
             stencil sums {{ in x; out y; sweep k up {{ y = if k == 0 {{ x }} else {{ y[k-1] + x }} }} }}"
        )
    };
    let refusal = staged(&text("a[k-1]"), Grid::rows(2, 2, 4)).unwrap_err();
    assert!(refusal.contains("`sums` sweeps over the levels") && refusal.contains("on levels 1..4 of 4"), "{refusal}");
    assert!(staged(&text("if k > 0 { a[k-1] } else { a }"), Grid::rows(2, 2, 4)).is_ok());
}

/// What a sweep keeps has the levels of the grid and no more, in a program as alone.
#[test]
fn a_sweep_looks_at_no_level_above_the_grid() {
    let text = |value: &str| {
        format!(
            "program own {{ out c; c = down() }}
             stencil down {{ out y; sweep k down {{ let e = {value}; y = if k > 1 {{ 0.5 }} else {{ e }}; let f = 0.5 }} }}"
        )
    };
    let refusal = staged(&text("f[k+1]"), Grid::rows(2, 2, 1)).unwrap_err();
    assert!(refusal.contains("computes none of the 1 levels"), "{refusal}");
    assert!(staged(&text("if k < nk - 1 { f[k+1] } else { 0.0 }"), Grid::rows(2, 2, 1)).is_ok());
    assert!(staged(&text("f[k+1]"), Grid::rows(2, 2, 3)).is_ok());
}

/// What a sweep names for no output is not computed, so nothing beyond an edge is needed for it.
#[test]
fn what_a_sweep_computes_for_nothing_has_no_edges() {
    let text = "program own { inout a; boundary { i: periodic }; boundary a { i: halo }; let b = half(a); a = half(b) }
        stencil half { in x; out y; sweep k up { let s = if k == 0 { x[i-1] } else { s[k-1] } }; y = 0.5*x }";
    let staged = staged(text, Grid::rows(3, 2, 2)).unwrap();
    assert!(staged.stages.iter().all(|stage| stage.is_whole));
    assert_eq!(staged.grid, Grid::rows(3, 2, 2));
}
