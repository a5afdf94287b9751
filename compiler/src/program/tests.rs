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
    assert_eq!((periodic.halo.low, periodic.halo.high), ([3, 0, 0], [1, 3, 0]));
    assert_eq!(periodic.grid, Grid::rows(11, 9, 5));
    assert!(periodic.stages[0].is_whole);
    let one_side = staged(&text("i low: copy, j: halo"), domain).unwrap();
    assert_eq!(one_side.stages[0].region.to_string(), "i 3..9, j 0..3, k 0..5");
    let levels = staged(&text("k: copy"), domain).unwrap();
    assert_eq!((levels.halo.low[2], levels.grid.nk), (1, 6));
    assert_eq!(levels.stages[0].region.k, 1..6);
    assert!(staged(&text("i: mirror"), Grid::rows(2, 6, 5)).unwrap_err().contains("3 beyond an edge are read"));
}

#[test]
fn levels_keep_their_numbers_in_a_halo() {
    let text = "program own { inout a; boundary { k: periodic }; a = up(a) }
        stencil up { in a; out b; b = if k == nk-1 { a[k+1] + k } else { a } }";
    let staged = staged(text, Grid::rows(2, 2, 4)).unwrap();
    assert_eq!((staged.halo.high[2], staged.stages[0].region.k.clone()), (1, 0..4));
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
