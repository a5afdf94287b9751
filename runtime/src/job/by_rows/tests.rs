//! Rows that threads have: what they read, write and say is what one has of all.

use super::*;
use crate::array::Array;
use crate::checkpoint;
use crate::device::Device;
use crate::drawing::Drawing;
use crate::given::Cast;
use crate::job::{Domain, Job};
use crate::npy::Stored;
use crate::ranks::threads::together;
use std::fs;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::source::Source;

/// Fields of all places and types, one that says which level is read, and one that is only written.
const TEXT: &str = "
    stencil spread {
        in a; in s on (i, j); in c on (k); in w on (i, j, k+1); in n: int; in b: bool; out r
        r = if b { 0.5 * a + 0.25 * (a[j-1] + a[j+1]) * s } else { c + w[k+1] + 0.1 * a[k + n] }
    }
    program spread_all {
        inout a; in s on (i, j); in c on (k); in w on (i, j, k+1); in n: int; in b: bool; out r
        boundary { j: copy }
        repeat 4 { a = spread(a, s, c, w, n, b) }
        r = spread(a, s, c, w, n, b)
    }
";

/// How many rows: five parts have no equal shares of them.
const GRID: Grid = Grid::rows(4, 13, 3);

fn job() -> Job {
    let job = Job::new(&Source::new("spread.stn", TEXT), Some("spread_all")).unwrap();
    job.on(Domain::Rows(GRID)).drawing(Drawing::Inputs).device(Device::Cpu).seed(3)
}

/// What one leaves of each output.
fn one(job: Job) -> Vec<Array> {
    let mut run = job.start().unwrap();
    run.finish().unwrap();
    ["a", "r"].map(|name| run.get(name).unwrap()).to_vec()
}

#[test]
fn each_has_its_rows_alone_and_all_is_that_of_one() {
    let expected = one(job());
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    npy::save(&at("one.npy"), &expected[0]).unwrap();
    for parts in [1, 2, 5] {
        together(parts, |ranks| {
            let number = ranks.rank();
            let rows = Part { number, parts }.rows(GRID.nj).len();
            ranks.tell_first_alone();
            let ready = job().ranks(ranks).ready()?;
            let Checked::Grid(problem) = &ready.checked else { panic!("a grid") };
            let outer = &problem.outer;
            for (n, (_, field)) in outer.stencil.fields.iter().enumerate() {
                let len = |rows: usize| match field.place.horizontal {
                    true => rows * GRID.ni * field.place.levels.count(GRID.nk),
                    false => GRID.nk,
                };
                for data in outer.inputs[n].iter().chain(&outer.outputs[n]) {
                    assert_eq!(data.len(), len(rows), "{}", field.name);
                }
            }
            let mut run = ready.start()?;
            run.finish()?;
            for (name, expected) in ["a", "r"].into_iter().zip(&expected) {
                // The first is handed all of it, in order; to others nobody says anything.
                let mut found = Data::fresh(expected.data.element(), 0);
                let mut order = Vec::new();
                let by_rows = run.by_rows(name)?.unwrap();
                assert_eq!((by_rows.shape(), by_rows.element()), (&expected.shape[..], expected.data.element()));
                by_rows.each(&mut |piece| {
                    order.push((piece.level, piece.rows.start));
                    let Data::F64(found) = &mut found else { panic!("reals") };
                    let Data::F64(more) = piece.data else { panic!("reals") };
                    found.extend(more);
                    Ok(())
                })?;
                assert!(order.is_sorted());
                let is_first = number == 0;
                assert_eq!(found.len(), if is_first { expected.data.len() } else { 0 });
                assert!(!is_first || (0..found.len()).all(|at| found.bits(at) == expected.data.bits(at)), "{name}");
                assert_eq!(run.held(name)?.is_some(), is_first);
            }
            // Fields without rows are no such, and neither is what nobody has computed.
            assert!(run.by_rows("c")?.is_none() && run.by_rows("s")?.is_some());
            run.by_rows("a")?.unwrap().save(&at("all.npy"))?;
            run.by_rows("a")?.unwrap().save_from_first(&at("first.npy"))?;
            run.by_rows("a")?.unwrap().save(Path::new("/dev/null"))?;
            run.save(&at("all.npz"))
        })
        .unwrap();
        for name in ["all.npy", "first.npy"] {
            assert_eq!(fs::read(at(name)).unwrap(), fs::read(at("one.npy")).unwrap(), "{name} of {parts}");
        }
        let mut run = job().start().unwrap();
        run.finish().unwrap();
        run.save(&at("one.npz")).unwrap();
        assert_eq!(fs::read(at("all.npz")).unwrap(), fs::read(at("one.npz")).unwrap(), "of {parts}");
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 5, "nothing is left aside");
    }
}

#[test]
fn what_was_not_computed_yet_has_no_rows() {
    together(2, |ranks| {
        let run = job().ranks(ranks).start()?;
        assert!(run.by_rows("r")?.is_none() && run.by_rows("a")?.is_some());
        assert!(run.by_rows("x").map(drop).unwrap_err().message.contains("no field `x`"));
        Ok(())
    })
    .unwrap();
}

/// Files in either order of axes, of one type and of another, and of one level.
#[test]
fn each_reads_its_rows_of_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let numbers: Vec<f64> = (0..4 * 13 * 3).map(|n| f64::from(n).sin()).collect();
    let a = Array { shape: vec![3, 13, 4], data: Data::F64(numbers.clone()) };
    let s = Array { shape: vec![13, 4], data: Data::F32(numbers[..52].iter().map(|&x| x as f32).collect()) };
    let n = Array { shape: vec![3, 13, 4], data: Data::I32((0..156).map(|n| n % 3 - n / 52).collect()) };
    let given = [("a", &a), ("s", &s), ("n", &n)];
    for (name, array) in given {
        npy::save(&at(name), array).unwrap();
    }
    let expected = one(given.into_iter().fold(job(), |job, (name, array)| job.array(name, array.clone())));
    let stored =
        |job: Job| given.into_iter().fold(job, |job, (name, _)| job.file(name, Stored::open(&at(name)).unwrap()));
    assert_eq!(one(stored(job()))[0].data, expected[0].data, "one reads all of it");
    for parts in [2, 5] {
        let found = together(parts, |ranks| {
            let mut run = stored(job()).ranks(ranks).start()?;
            run.finish()?;
            run.get("a")
        });
        assert!(found.unwrap().iter().all(|found| *found == expected[0]));
        // What is in memory each cuts by itself.
        let found = together(parts, |ranks| {
            let own = given.into_iter().fold(job(), |job, (name, array)| job.array(name, array.clone()));
            let mut run = own.ranks(ranks).start()?;
            run.finish()?;
            run.get("a")
        });
        assert!(found.unwrap().iter().all(|found| *found == expected[0]));
    }
}

/// Whoever has a number that the field has not says so, and where it is in all of it.
#[test]
fn what_is_wrong_with_rows_is_told_with_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    let mut numbers = vec![0.5; 4 * 13 * 3];
    numbers[(2 * 13 + 11) * 4 + 1] = 1e39;
    npy::save(&path, &Array { shape: vec![3, 13, 4], data: Data::F64(numbers) }).unwrap();
    let found = together(3, |ranks| {
        let job = job().precision(Precision::F32).cast(Cast::Allowed).file("a", Stored::open(&path)?);
        let own = ranks.clone();
        let ready = job.ranks(ranks).ready();
        // As a command does it: all end with one error.
        Ok(own.agree(ready.as_ref().err()).unwrap_err().message)
    });
    let expected = "on rank 2 of 3: `a` holds 1e39 at [2, 11, 1], and single precision ends at 3.4e38";
    assert_eq!(found.unwrap(), [expected; 3]);
}

#[test]
fn other_numbers_are_found_whoever_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let at = |rank: usize| folder.path().join(format!("{rank}.npy"));
    for (row, expected) in [(0, "rank 2 has"), (5, "rank 1 has"), (12, "rank 2 has")] {
        for rank in 0..3 {
            let mut numbers = vec![0.5; 4 * 13 * 3];
            // One number is another for the one that computes with it.
            let owner = (0..3).find(|&number| Part { number, parts: 3 }.rows(13).contains(&row));
            if owner == Some(rank) {
                numbers[(13 + row) * 4 + 3] = 0.25;
            }
            npy::save(&at(rank), &Array { shape: vec![3, 13, 4], data: Data::F64(numbers) }).unwrap();
        }
        let found = together(3, |ranks| {
            let job = job().file("a", Stored::open(&at(ranks.rank()))?);
            Ok(job.ranks(ranks).start().map(drop).unwrap_err().message)
        });
        for said in found.unwrap() {
            assert!(said.starts_with(expected) && said.contains("other numbers in `a` than rank"), "{said}");
        }
    }
    let found = together(2, |ranks| {
        let seed = ranks.rank() as u64;
        Ok(job().seed(seed).ranks(ranks).start().map(drop).unwrap_err().message)
    });
    assert!(found.unwrap()[0].starts_with("rank 1 has other numbers in `"));
}

/// Each keeps its rows of a checkpoint, whatever number of processes wrote it; and all have to have the same.
#[test]
fn each_goes_on_from_its_rows_of_a_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let expected = one(job());
    for (name, seed) in [("way.npz", 3), ("other.npz", 4)] {
        let mut run = job().seed(seed).start().unwrap();
        run.step(2).unwrap();
        run.save(&at(name)).unwrap();
    }
    for parts in [2, 5] {
        let found = together(parts, |ranks| {
            let part = Part { number: ranks.rank(), parts };
            let checkpoint = checkpoint::load_rows(&at("way.npz"), Some(part))?;
            let len = checkpoint.arrays()["a"].data.len();
            assert_eq!(len, part.rows(GRID.nj).len() * GRID.ni * GRID.nk);
            let mut run = job().resume(checkpoint).ranks(ranks).start()?;
            assert_eq!(run.done(), 2);
            run.finish()?;
            Ok(["a", "r"].map(|name| run.get(name).unwrap()).to_vec())
        });
        for found in found.unwrap() {
            let same =
                |(one, other): (&Array, &Array)| (0..one.data.len()).all(|n| one.data.bits(n) == other.data.bits(n));
            assert!(found.iter().zip(&expected).all(same), "{parts} parts");
        }
    }
    let found = together(3, |ranks| {
        let part = Part { number: ranks.rank(), parts: 3 };
        let name = if part.number == 2 { "other.npz" } else { "way.npz" };
        let checkpoint = checkpoint::load_rows(&at(name), Some(part))?;
        Ok(job().resume(checkpoint).ranks(ranks).start().map(drop).unwrap_err().message)
    });
    assert!(found.unwrap().iter().all(|said| said.starts_with("rank 2 has other numbers in `")));
}
