//! Executes every kernel on the emulator: the very text that goes to NVRTC, compiled by the machine's C++ compiler, must
//! equal the interpreter bit for bit, in every order of threads. So a fault in printing, storing or scheduling shows
//! without a GPU.

use crate::common::{check_variants, combinations, lowered, problem, stencils, verify_emulated};
use rayon::prelude::*;
use stencilc_compiler::analysis::{
    self,
    extents::{Extents, extents},
};
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::{Handle, Place, Precision, Stencil};
use stencilc_compiler::plan::{Choices, Math, variants};
use stencilc_compiler::storage::fastest::Fastest;
use stencilc_runtime::Data;
use stencilc_runtime::emulate::{Compiler, Settings};
use stencilc_runtime::verify::{Expected, Verdict, expect, plan_for};

/// Every combination with the usual blocks, with small ones, and with 64-bit indices.
fn choices(precision: Precision) -> Vec<Choices> {
    let usual = combinations();
    let small = combinations().map(|choices| match choices.walks() {
        true => Choices { block: [32, 1, 1], ..choices }.with("height", [3]).with("chunk", [2]).with("stage", [2]),
        false => Choices { block: [8, 2, 3], ..choices }.with("slice", [3]),
    });
    let wide =
        combinations().filter(|choices| choices.access == "idxvar").map(|choices| Choices { wide: true, ..choices });
    usual.chain(small).chain(wide).map(|choices| Choices { precision, ..choices }).collect()
}

/// Every variant of storage, neighbours, layout, fields and access on a stencil, each in one precision and block.
fn every_variant(stencil: &Stencil, grid: Grid) {
    for (half, precision) in [Precision::F64, Precision::F32].into_iter().enumerate() {
        let equal = check_variants(&problem(stencil, precision, grid, &[]), |number| number % 2 == half);
        let by_plane = |choices: &Choices| choices.fastest == Fastest::Columns && choices.suits(stencil);
        let suiting = variants().filter(by_plane).count();
        assert!(10 * equal >= 3 * suiting, "{} on {grid}: {equal} of {suiting}", stencil.name);
    }
}

/// All combinations of one text's stencils.
fn check_all(name: &str, text: &str, grid: Grid, settings: &[(&str, &str)]) {
    check_each(name, lowered(name, text), grid, settings);
}

/// All combinations of these stencils; what the C++ compiler warns of is an error.
fn check_each(name: &str, stencils: Vec<Stencil>, grid: Grid, settings: &[(&str, &str)]) {
    let compiler = Compiler::find().unwrap();
    let how = Settings { optimise: 1, strict: true, ..Settings::default() };
    for stencil in stencils {
        for precision in [Precision::F64, Precision::F32] {
            let own = |name: &str| stencil.params.iter().any(|(_, param)| param.name == name);
            let settings: Vec<_> = settings.iter().copied().filter(|(name, _)| own(name)).collect();
            let problem = problem(&stencil, precision, grid, &settings);
            let expected = expect(&problem, &|_| {}).unwrap_or_else(|error| panic!("{name}: {error}"));
            let choices: Vec<Choices> = choices(precision).into_iter().filter(|own| own.suits(&stencil)).collect();
            let verdicts = verify_emulated(&problem, &expected, &choices, &compiler, &how);
            let verdicts = verdicts.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(verdicts.len(), choices.len());
            for (choices, verdict) in choices.iter().zip(verdicts) {
                let equal = matches!(verdict, Verdict::Equal { cells: 1.. });
                assert!(equal, "{} {choices:?} on {grid}: {verdict:?}", stencil.name);
            }
        }
    }
}

#[test]
fn every_stencil_of_the_project() {
    stencils().par_iter().for_each(|(name, text)| check_all(name, text, Grid::rows(37, 29, 9), &[]));
}

#[test]
fn every_variant_of_every_stencil() {
    stencils().par_iter().for_each(|(name, text)| {
        lowered(name, text).iter().for_each(|stencil| every_variant(stencil, Grid::rows(37, 29, 9)));
    });
}

#[test]
fn one_level_and_a_grid_as_small_as_it_can_be() {
    for (name, text) in stencils() {
        for stencil in lowered(&name, &text) {
            let Extents { low, high } = extents(&stencil);
            let along = |low: i32, high: i32| (high - low) as usize + 1;
            let one = Grid::rows(37, 29, 1);
            let has_params = !stencil.params.is_empty();
            if !has_params && analysis::levels::computed(&stencil, Precision::F64, 1, &[]).is_ok() {
                every_variant(&stencil, one);
                every_variant(&stencil, Grid::rows(along(low.i, high.i), along(low.j, high.j), 1));
            }
        }
    }
}

/// Widths of which some are whole tiles, so that elements are moved many at once.
#[test]
fn tiles_of_several_shapes() {
    let how = Settings { strict: true, ..Settings::default() };
    let all = stencils();
    let moved_at_once = all.par_iter().map(|(name, text)| {
        let mut count = 0;
        // A sweep goes through one column.
        for (stencil, precision) in lowered(name, text)
            .iter()
            .filter(|stencil| stencil.sweeps.is_empty())
            .flat_map(|stencil| [Precision::F64, Precision::F32].map(|precision| (stencil, precision)))
        {
            let problem = problem(stencil, precision, Grid::rows(36, 29, 9), &[]);
            let expected = expect(&problem, &|_| {}).unwrap();
            let tiles =
                [[2, 2], [4, 1], [8, 3], [1, 4], [2, 5]].into_iter().zip([[32, 2, 1], [3, 5, 2]].into_iter().cycle());
            let choices = tiles.map(|(tile, block)| {
                Choices { access: "tile".into(), precision, block, ..Choices::default() }.with("tile", tile)
            });
            let choices: Vec<Choices> = choices.collect();
            count += choices.iter().filter(|own| plan_for(&problem, own).unwrap().run_width().is_some()).count();
            let verdicts = verify_emulated(&problem, &expected, &choices, &Compiler::find().unwrap(), &how).unwrap();
            for (choices, verdict) in choices.iter().zip(verdicts) {
                let equal = matches!(verdict, Verdict::Equal { cells: 1.. });
                assert!(equal, "{} {}: {verdict:?}", stencil.name, choices.words());
            }
        }
        count
    });
    let moved_at_once: usize = moved_at_once.sum();
    assert!(moved_at_once > 40, "{moved_at_once}");
}

#[test]
fn every_construct() {
    let grid = Grid::rows(19, 13, 6);
    check_all("constructs", include_str!("constructs.stn"), grid, &[("n", "3"), ("limit", "2")]);
}

#[test]
fn every_print() {
    let text = "
        stencil shown {
            in  t
            in  w on (k)
            in  flag: bool
            inout u
            out res
            let lap = 4*t - t[i-1] - t[i+1] - t[j-1] - t[j+1]
            print(lap)
            print(\"before, and weighed\", u[i+1] * w)
            print(if k > 0 { t[k-1] } else { t })
            print(k - 2)
            print(flag && t > 0)
            res = lap[i+1] * u
            u = t
        }";
    let stencil = &lowered("shown", text)[0];
    let prints: Vec<Stencil> = (0..).map_while(|number| Some(stencil.of_print(number, Place::CELLS)?.0)).collect();
    assert_eq!(prints.len(), 5);
    // A print has the stencil's inputs, whether it reads them or not, and compilers warn of those that it does not.
    let (compiler, how) = (Compiler::find().unwrap(), Settings::default());
    for precision in [Precision::F64, Precision::F32] {
        // Each kernel shows one of them.
        for (number, print) in prints.iter().enumerate() {
            let problem = problem(print, precision, Grid::rows(19, 13, 6), &[]);
            let expected = expect(&problem, &|_| {}).unwrap();
            let suiting = choices(precision).into_iter().filter(|own| own.suits(print));
            let choices: Vec<Choices> = suiting.skip(number).step_by(prints.len()).collect();
            for (choices, verdict) in
                choices.iter().zip(verify_emulated(&problem, &expected, &choices, &compiler, &how).unwrap())
            {
                assert!(matches!(verdict, Verdict::Equal { cells: 1.. }), "{number} {choices:?}: {verdict:?}");
            }
        }
    }
}

#[test]
fn a_device_s_own_functions_are_told_apart() {
    let compiler = Compiler::find().unwrap();
    let text = "stencil own { in a = 0.1..4; out r; r = exp(a) * tan(a[i-1]) }\nstencil exact { in a = 0..4; out r; r = sqrt(a) }";
    for stencil in lowered("device", text) {
        for precision in [Precision::F64, Precision::F32] {
            let problem = problem(&stencil, precision, Grid::rows(70, 41, 9), &[]);
            let mut expected = expect(&problem, &|_| {}).unwrap();
            let choices = [Choices { precision, math: Math::Device, ..Choices::default() }];
            let judge = |expected: &Expected| {
                verify_emulated(&problem, expected, &choices, &compiler, &Settings::default()).unwrap().remove(0)
            };
            match judge(&expected) {
                // What the C library rounds otherwise is told, with how far off it is.
                Verdict::Different { units: 1..=64, differing: 1.., cells: 1.. } if stencil.name == "own" => {}
                Verdict::Equal { cells: 1.. } if stencil.name == "exact" => {}
                verdict => panic!("{} {precision:?}: {verdict:?}", stencil.name),
            }
            // A cell that should not have been written is no matter of rounding.
            match expected.outputs[problem.stencil.stores[0].field.index()].as_mut() {
                Some(Data::F64(data)) => data[0] += 1.0,
                Some(Data::F32(data)) => data[0] += 1.0,
                other => panic!("{other:?}"),
            }
            assert!(matches!(judge(&expected), Verdict::Failed { .. }), "{}", stencil.name);
        }
    }
}
