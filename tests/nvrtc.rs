//! Every stencil x storage x access strategy goes through NVRTC, for each architecture that we promise.

use crate::common::{combinations, combinations_for, lowered, problem, stencils, translation_unit};
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use stencilc_compiler::access::{self, LevelsPerThread};
use stencilc_compiler::cuda;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::plan::{self, Choices, variants};
use stencilc_compiler::step::stream::{Shape, Strip, stream};
use stencilc_compiler::step::{Edge, Rows, StepTask};
use stencilc_runtime::cache::compile_cached;
use stencilc_runtime::nvrtc::{self, Kind};

const ARCHITECTURES: [&str; 3] = ["sm_80", "sm_90", "sm_100"];

fn missing() -> bool {
    let missing = nvrtc::locate().is_err();
    if missing {
        println!("skipped: no NVRTC");
    }
    missing
}

fn compiled(name: &str, text: &str, arch: &str) -> Vec<nvrtc::Resources> {
    let built = compile_cached(text, name, arch, Kind::Cubin).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
    assert!(!built.compiled.image.is_empty());
    built.compiled.resources
}

#[test]
fn every_combination_compiles() {
    if missing() {
        return;
    }
    let grid = Grid::rows(512, 512, 64);
    let mut texts = stencils();
    texts.push(("constructs".into(), include_str!("constructs.stn").into()));
    texts.par_iter().enumerate().for_each(|(at, (name, text))| {
        for stencil in lowered(name, text) {
            for precision in [Precision::F32, Precision::F64] {
                let problem = problem_shape(&stencil, precision, grid);
                let by_levels = variants().filter(|own| {
                    let fastest = Choices::usual_fastest(&own.access);
                    let is_plain = Choices { fastest, ..own.clone() }.is_plain();
                    own.fastest != fastest && is_plain && own.suits(&stencil)
                });
                let units =
                    [combinations_for(&stencil).collect::<Vec<Choices>>(), by_levels.collect()].map(|choices| {
                        let (text, kernels) = translation_unit(&problem, choices.iter().cloned());
                        (text, kernels, choices)
                    });
                // With levels fastest kernels differ in how they find their cells alone: one architecture is enough.
                let all = ARCHITECTURES.map(|arch| (arch, &units[0])).into_iter().chain([("sm_90", &units[1])]);
                // So it is for sums of 55 points, which take long to compile. Of all others one is compiled for the one before in `f64`,
                // the next for the one after in `f32`.
                let is_compiled = |arch: &str| match arch {
                    "sm_90" => true,
                    _ if name == "grad_div" => false,
                    "sm_80" => precision == Precision::F64 && at % 2 == 0,
                    _ => precision == Precision::F32 && at % 2 == 1,
                };
                for (arch, (text, kernels, choices)) in all.filter(|(arch, _)| is_compiled(arch)) {
                    let resources = compiled(name, text, arch);
                    assert_eq!(resources.len(), *kernels);
                    // The file of all constructs is no stencil that anyone would run.
                    for resource in resources.into_iter().filter(|_| name != "constructs") {
                        // Loops over levels of `grad_div` hold 24 distances and the values of several levels, and spill kilobytes; its
                        // patches spill 260 bytes in `f64` on sm_100; and of walks along k `queue` keeps so many values that some spill up
                        // to 90 bytes (`step/planes.rs` looks at those that have room). Nobody gets these without asking for them.
                        let number: usize = resource.kernel.trim_start_matches("kernel_").parse().unwrap();
                        let own = &choices[number];
                        let access = access::find(&own.access).unwrap();
                        let is_one = access.levels(&own.knobs) == LevelsPerThread::One && !access.has_patches();
                        if name == "grad_div" && (!is_one || own.walks()) {
                            continue;
                        }
                        // ptxas now and then spills a few addresses even where it has registers left. In `frontal` it keeps
                        // constants of `pow` in 24 bytes of the stack, around the rare paths that are called.
                        let allowed = if name == "frontal" { 144 } else { 48 };
                        let spilled = resource.spill_loads + resource.spill_stores;
                        assert!(spilled <= allowed, "{name} {arch}: {resource:?}");
                    }
                }
            }
        }
    });
}

/// The problem on a large grid, without its numbers.
fn problem_shape(
    stencil: &stencilc_compiler::ir::Stencil,
    precision: Precision,
    grid: Grid,
) -> stencilc_runtime::problem::Problem {
    let small = Grid::rows(37, 29, grid.nk);
    let mut problem = problem(stencil, precision, small, &[]);
    problem.grid = grid;
    problem.region.i.end += grid.ni - small.ni;
    problem.region.j.end += grid.nj - small.nj;
    problem
}

/// Kernels for any grid compile too: what `build` writes when it is given none.
#[test]
fn kernels_for_any_grid_compile() {
    if missing() {
        return;
    }
    let compiled_kernels = AtomicUsize::new(0);
    stencils().par_iter().enumerate().for_each(|(at, (name, text))| {
        // What a thread keeps of sweeps depends on the grid.
        for stencil in lowered(name, text).into_iter().filter(|stencil| stencil.sweeps.is_empty()) {
            let prepared = plan::prepare(&stencil, Precision::F64, true);
            // Every combination in turn, with narrow and wide numbers of cells: a fifth of them for each stencil.
            let all = combinations().filter(|choices| !choices.walks());
            let all = all.flat_map(|choices| [false, true].map(|wide| Choices { wide, ..choices.clone() }));
            for choices in all.skip(at % 5).step_by(5) {
                let plan = plan::plan(&prepared, &choices, None).unwrap();
                let built = cuda::build(&plan).unwrap();
                assert_eq!(compiled(name, &built.source, "sm_90").len(), 1);
                compiled_kernels.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    // Each of them for several stencils.
    assert!(compiled_kernels.into_inner() > 2 * combinations().count());
}

/// A chain of ten nine-point filters: 441 values of the first, each computed once.
#[test]
fn a_long_chain_of_filters_computes_each_value_once() {
    let lets: String = (1..10).map(|n| format!("let a{} = filter(a{n})\n", n + 1)).collect();
    let text = format!(
        "fn filter(a) = sum(p in -1..=1, q in -1..=1) {{ a[i+p, j+q] }} / 9
stencil chain {{ in a; out b; let a1 = filter(a)\n{lets}b = a10 }}"
    );
    let stencil = &lowered("chain", &text)[0];
    let prepared = plan::prepare(stencil, Precision::F64, true);
    for choices in combinations().filter(|choices| !choices.walks()) {
        let plan = match plan::plan(&prepared, &choices, None) {
            // 440 distances of 32 columns are more than shared memory holds.
            Err(refusal) if choices.access == "shared" && refusal.message.contains("would share 56448 bytes") => {
                continue;
            }
            plan => plan.unwrap(),
        };
        // 19² + 17² + ... + 1² values: the chain's last result is computed at one cell, the first let at 19 x 19.
        // Of a tile, at as many more in each direction.
        let more = plan.tile.columns.map(|columns| columns as usize - 1);
        let along = |n: usize| more.map(|more| 2 * n + 1 + more);
        assert_eq!(
            plan.phases[0].schedule.values.len(),
            (0..10).map(|n| along(n).iter().product::<usize>()).sum::<usize>()
        );
        let text = cuda::print(&plan).unwrap().text;
        assert!(text.len() < 4_000_000);
    }
    if missing() {
        return;
    }
    let plan = plan::plan(&prepared, &Choices::default(), None).unwrap();
    let text = cuda::print(&plan).unwrap().text;
    compiled("chain", &text, "sm_90");
}

/// What the language does not fuse stays two operations.
#[test]
fn nothing_is_fused_behind_our_back() {
    if missing() {
        return;
    }
    let text = "extern \"C\" __global__ void two(double* a) { a[0] = a[1] * a[2] + a[3]; }";
    let ptx = String::from_utf8(nvrtc::compile(text, "two.cu", "sm_90", Kind::Ptx).unwrap().image).unwrap();
    assert!(ptx.contains("mul.") && ptx.contains("add.") && !ptx.contains("fma."), "{ptx}");
}

/// ptxas 13.0 computes some minima of three whole numbers wrongly, so none may come about, whatever form a choice has.
#[test]
fn no_choice_of_whole_numbers_becomes_a_minimum() {
    if missing() {
        return;
    }
    let stencil = &lowered("three", include_str!("../testing/found/three_whole_numbers.stn"))[0];
    let has_extreme = |text: &str| {
        let ptx = nvrtc::compile(text, "three.cu", "sm_90", Kind::Ptx).unwrap().image;
        let ptx = String::from_utf8(ptx).unwrap();
        ["min.s32", "max.s32", "min.u32", "max.u32", "min.s64", "max.s64"].iter().any(|word| ptx.contains(word))
    };
    let prepared = plan::prepare(stencil, Precision::F64, true);
    for choices in combinations().filter(|choices| !choices.walks()) {
        let plan = plan::plan(&prepared, &choices, None).unwrap();
        let text = cuda::print(&plan).unwrap().text;
        assert!(!has_extreme(&text), "{text}");
        // Written plainly, they do become one.
        let arithmetic = text.lines().find(|line| line.contains("unsigned(b)) & (apart ^")).unwrap();
        let plain = text.replace(arithmetic, "return a < b;");
        assert!(text != plain && has_extreme(&plain), "{plain}");
    }
}

/// NVVM 13.0 forgets which sign a zero has in the absolute value of a choice between numbers, so none is asked for.
#[test]
fn no_absolute_value_is_of_a_choice_between_numbers() {
    let text = include_str!("../testing/found/zero_or_less.stn");
    let stencil = plan::prepare(&lowered("zero_or_less", text)[0], Precision::F64, true);
    for choices in combinations().filter(|choices| !choices.walks()) {
        let plan = plan::plan(&stencil, &choices, None).unwrap();
        let text = cuda::print(&plan).unwrap().text;
        let (_, kernel) = text.split_once("__global__").unwrap();
        assert!(!kernel.contains("fabs(") && kernel.contains("copysign"), "{text}");
    }
}

/// ptxas 13.0 makes a choice between -0 and -1 of single precision of whole numbers, so none may come about.
#[test]
fn no_choice_is_between_minus_zero_and_minus_one() {
    if missing() {
        return;
    }
    let text = include_str!("../testing/found/minus_zero_or_one.stn");
    for precision in [Precision::F64, Precision::F32] {
        let stencil = plan::prepare(&lowered("minus_zero_or_one", text)[0], precision, true);
        let plan = plan::plan(&stencil, &Choices { precision, ..Choices::default() }, None).unwrap();
        let text = cuda::print(&plan).unwrap().text;
        let has_choice = |text: &str| {
            let ptx = nvrtc::compile(text, "minus_zero_or_one.cu", "sm_90", Kind::Ptx).unwrap().image;
            let ptx = String::from_utf8(ptx).unwrap();
            let mut choices = ptx.lines().filter(|line| line.contains("selp.f32") || line.contains("selp.b32"));
            choices.any(|line| line.contains("0f80000000") && line.contains("0fBF800000"))
        };
        assert!(!has_choice(&text), "{text}");
        let plain = text.replace("asm(\"\" : \"+", "// asm(\"\" : \"+");
        // What is not hidden becomes one: of double precision it stays what it was.
        assert!(plain != text && has_choice(&plain) == (precision == Precision::F32), "{plain}");
    }
}

/// NVVM 13.0 forgets it where one of them is no number, but not negative: each has its own absolute value.
#[test]
fn an_absolute_value_of_a_choice_with_a_number_is_one_of_each() {
    let text = "stencil s { in a; out b; b = abs(-(if a > 0.25 { -abs(a) } else { 0.0 })) }";
    let stencil = plan::prepare(&lowered("of_each", text)[0], Precision::F64, true);
    let plan = plan::plan(&stencil, &Choices::default(), None).unwrap();
    let text = cuda::print(&plan).unwrap().text;
    let (_, kernel) = text.split_once("__global__").unwrap();
    assert!(kernel.contains("? fabs(") && kernel.contains(": 0.0"), "{text}");
    assert!(!kernel.contains("fabs(a[c] >") && !kernel.contains("fabs(-(a"), "{text}");
}

/// ptxas 13.0 decides in single precision that an absolute value is not below zero, NaN or not: it may not see that something is one.
#[test]
fn no_absolute_value_of_single_precision_is_known_to_ptxas() {
    if missing() {
        return;
    }
    let text = include_str!("../testing/found/not_negative.stn");
    let stencil = plan::prepare(&lowered("not_negative", text)[0], Precision::F32, true);
    let plan = plan::plan(&stencil, &Choices { precision: Precision::F32, ..Choices::default() }, None).unwrap();
    let text = cuda::print(&plan).unwrap().text;
    let has_absolute = |text: &str| {
        let ptx = nvrtc::compile(text, "not_negative.cu", "sm_90", Kind::Ptx).unwrap().image;
        String::from_utf8(ptx).unwrap().contains("abs.f32")
    };
    assert!(!has_absolute(&text), "{text}");
    let plain = text.replace("real_abs(", "fabsf(").replace("fabsf(float a)", "real_abs(float a)");
    assert!(plain != text && has_absolute(&plain), "{plain}");
}

/// Of a dozen branches around loads, ptxas 13.0 keeps the barriers at which lanes meet again where lanes that come late lose them.
#[test]
fn what_the_lanes_at_the_edges_load_takes_no_branches() {
    if missing() {
        return;
    }
    let text = "stencil s { in a, b, c; out r; r = a[i-1] * a[j+1] + b[i+1, j-1] * b[i-1] + c[i+2] }";
    let stencil = plan::prepare(&lowered("edges", text)[0], Precision::F32, true);
    let subject = StepTask {
        stencil: &stencil,
        precision: Precision::F32,
        extents: [128, 32, 5],
        rows: Rows { first: 0, row: 128, plane: 4096 },
        edges: [Edge::Periodic; 2],
    };
    let shape = Shape { strip: Strip::Aligned, ahead: 4, ..Shape::default() };
    let text = stream(&subject, &shape).unwrap().text;
    let branches = |text: &str| {
        let ptx = nvrtc::compile(text, "edges.cu", "sm_90", Kind::Ptx).unwrap().image;
        String::from_utf8(ptx).unwrap().matches("bra").count()
    };
    let plain = text.replace("load_where(row[e], from + e, where)", "if (where) row[e] = from[e]");
    assert!(plain != text && branches(&plain) >= branches(&text) + 12, "{text}");
}

/// NVVM 13.0 takes two operations of one text on constants for equal numbers, also where they make a NaN: so no comparison
/// that equal numbers would decide may be decided before the kernel runs.
#[test]
fn no_comparison_is_decided_as_if_nan_were_a_number() {
    if missing() {
        return;
    }
    let has_comparison = |text: &str| {
        let ptx = nvrtc::compile(text, "equal.cu", "sm_90", Kind::Ptx).unwrap().image;
        let ptx = String::from_utf8(ptx).unwrap();
        ptx.lines().any(|line| line.contains("setp.") && (line.contains(".f64") || line.contains(".f32")))
    };
    // What is NaN at level 0: by a division, by what a branch chooses, by infinities.
    let values = ["0.3 - k / 0", "0.3 * (x / 0) where x = if k == 0 { 0.0 } else { 1.0 }", "1 / k - (2 / k - 1)"];
    for (value, relation) in values.iter().flat_map(|value| ["==", "!=", "<=", ">="].map(|relation| (value, relation)))
    {
        let (value, lets) = value.split_once(" where ").unwrap_or((value, ""));
        let (own, other) = (lets.replace('x', "x1"), lets.replace('x', "x2"));
        let [own, other] = [own, other].map(|lets| if lets.is_empty() { lets } else { format!("let {lets}") });
        let (g, h) = (value.replace('x', "x1"), value.replace('x', "x2"));
        let source = format!(
            "stencil equal {{ in a; out b
                {own}\n{other}\nlet g = {g}\nlet h = {h}
                b = if k == 0 {{ if g {relation} h {{ 1.0 + a }} else {{ a - 1 }} }} else {{ a }}
            }}"
        );
        for precision in [Precision::F32, Precision::F64] {
            let prepared = plan::prepare(&lowered("equal", &source)[0], precision, true);
            let plan = plan::plan(&prepared, &Choices { precision, ..Choices::default() }, None).unwrap();
            let text = cuda::print(&plan).unwrap().text;
            assert!(has_comparison(&text), "{text}");
            // Written plainly, both values by themselves, it is decided, where what branches choose is not hidden either.
            let own = text.lines().find(|line| line.contains(" g = ")).unwrap();
            let both = format!("{own}\n{}", own.replace(" g = ", " h = "));
            let apart = if text.contains(" h = ") { text.clone() } else { text.replace(own, &both) };
            let seen = apart.replace("= real_opaque(k == 0 ?", "= (k == 0 ?");
            let plain = [" g", " h"].iter().fold(seen, |text, other| {
                text.replace(&format!("real_opaque(g) {relation}{other}"), &format!("g {relation} h"))
            });
            assert!(plain.contains(&format!("g {relation} h")) && !has_comparison(&plain), "{plain}");
        }
    }
}

/// The coefficients of sin and cos come from a table, two a load: choosing each costs more than all else in them.
#[test]
fn coefficients_of_sin_are_loaded_in_pairs() {
    if missing() {
        return;
    }
    let stencil = &lowered("wave", "stencil wave { in a; out b; b = sin(a) }")[0];
    let plan = plan::plan(&plan::prepare(stencil, Precision::F64, true), &Choices::default(), None).unwrap();
    let text = cuda::print(&plan).unwrap().text;
    let pairs = |text: &str| {
        let ptx = nvrtc::compile(text, "wave.cu", "sm_90", Kind::Ptx).unwrap().image;
        String::from_utf8(ptx).unwrap().matches("ld.global.nc.v2.f64").count()
    };
    assert_eq!(pairs(&text), 3, "{text}");
    // Numbers that lie anywhere are loaded one by one.
    assert_eq!(pairs(&text.replace("alignas(16) ", "")), 0);
}

/// Kernels that were compiled before are told apart by their text.
#[test]
fn a_kernel_from_the_cache_is_that_of_its_text() {
    if missing() {
        return;
    }
    // Twice, so that the second time all come from the cache where there is one.
    for name in ["first", "second", "first", "second"] {
        let text = format!("extern \"C\" __global__ void {name}(int* a) {{ a[0] = 1; }}");
        let built = compile_cached(&text, "kernel.cu", "sm_90", Kind::Ptx).unwrap();
        let ptx = String::from_utf8(built.compiled.image).unwrap();
        assert!(ptx.contains(&format!(".entry {name}(")), "{ptx}");
    }
}
