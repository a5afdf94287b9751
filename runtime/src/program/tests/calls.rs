//! What calls and checkpoints keep, and what they compute beside each other.

use super::*;

/// Names that are made on the way, renamed, and partly computed.
pub(super) const NAMES: &str = "
    program waves {
        inout u, v
        out energy
        in c on (i, j)
        param n: int = 5

        boundary u { i: periodic }

        repeat n {
            let before = u
            u = push(u, v, c)
            v = speed(u, before)
            energy = square(v)
        }
    }
    stencil push { in u, v; in c on (i, j); out new; new = 2*u - v + c*(u[i-1] + u[i+1] - 2*u) + 0.1*v[j+1] }
    stencil speed { in new, old; out v; v = 0.5*new - 0.25*old }
    stencil square { in v; out e; e = v * v }
";

#[test]
fn what_a_call_does_not_compute_keeps_its_value() {
    let (ni, nj, nk) = (6, 5, 2);
    let problem = problem(&program(NAMES), Grid::rows(ni, nj, nk), Precision::F64, &[]).unwrap();
    let numbers = |name: &str, len: usize| match random::fill(crate::Element::F64, len, -1.0, 1.0, 0, name) {
        Data::F64(numbers) => numbers,
        other => panic!("{other:?}"),
    };
    let len = ni * nj * nk;
    let (mut u, mut v, c) = (numbers("u", len), numbers("v", len), numbers("c", ni * nj));
    let mut energy = vec![f64::NAN; len];
    for _ in 0..5 {
        let (before, old_v) = (u.clone(), v.clone());
        for n in 0..len {
            let (i, j) = (n % ni, n / ni % nj);
            if j + 1 < nj {
                let at = |by: isize| before[n - i + (i as isize + by).rem_euclid(ni as isize) as usize];
                u[n] = 2.0 * at(0) - old_v[n] + c[n % (ni * nj)] * (at(-1) + at(1) - 2.0 * at(0)) + 0.1 * old_v[n + ni];
            }
        }
        for n in 0..len {
            v[n] = 0.5 * u[n] - 0.25 * before[n];
            energy[n] = v[n] * v[n];
        }
    }
    let expected = vec![Some(Data::F64(u)), Some(Data::F64(v)), Some(Data::F64(energy)), None];
    let found = interpreted(&problem);
    same(&found, &expected, "by hand");
    let choices = Choices { contract: false, block: [8, 2, 1], ..Choices::default() };
    for storage in ["regular", "compressed"] {
        let choices = Choices { storage: storage.to_owned(), ..choices.clone() };
        same(&emulated(&problem, &choices).unwrap(), &found, storage);
    }
}

/// Calls that sweep need columns, whatever is chosen for the others.
#[test]
fn calls_that_sweep_are_computed_beside_others() {
    let text = "
        program own {
            inout x; param n: int = 3
            boundary { i: periodic, j: copy }
            repeat n { x = solve(x); x = blur(x) }
        }
        stencil solve { in x; out y; sweep k up { let s = if k == 0 { x } else { 0.5*s[k-1] + x } }
            sweep k down { y = if k == nk-1 { s } else { 0.25*y[k+1] + s } } }
        stencil blur { in a; out b; b = 0.5*a[i-1] + 0.25*a[j+1] }
    ";
    let problem = problem(&program(text), Grid::rows(7, 5, 4), Precision::F64, &[]).unwrap();
    let expected = interpreted(&problem);
    for storage in ["regular", "compressed"] {
        let choices = Choices { storage: storage.to_owned(), contract: false, ..Choices::default() };
        same(&emulated(&problem, &choices).unwrap(), &expected, storage);
    }
}

/// The last interface is computed by no call.
#[test]
fn the_last_interface_keeps_its_value() {
    let text = "
        program own {
            inout h on (i, j, k+1)
            inout w on (k+1)
            inout other on (i, j, k+1)
            param n: int = 2
            boundary { i: periodic, k: copy }
            repeat n { h = up(h, w); w = more(w); other = h; h = up(h, w) }
        }
        stencil up { in h on (i, j, k+1); in w on (k+1); out q on (i, j, k+1); q = 0.5*h[k+1] + w*h[i-1] }
        stencil more { in w on (k+1); out q on (k+1); q = w + 0.25 }
    ";
    let (ni, nj, nk) = (5, 2, 3);
    for n in 1..6 {
        let problem =
            problem(&program(text), Grid::rows(ni, nj, nk), Precision::F64, &[("n", &n.to_string())]).unwrap();
        let numbers = |variable: usize| match problem.held_before(VariableId::new(variable)).unwrap() {
            Data::F64(numbers) => numbers.clone(),
            other => panic!("{other:?}"),
        };
        let [mut h, mut w, mut other] = [0, 1, 2].map(numbers);
        let up = |h: &[f64], w: &[f64]| {
            let mut q = h.to_vec();
            for (k, w) in w.iter().enumerate().take(nk) {
                for column in 0..ni * nj {
                    let at = k * ni * nj + column;
                    let left = if column % ni == 0 { at + ni - 1 } else { at - 1 };
                    q[at] = 0.5 * h[at + ni * nj] + w * h[left];
                }
            }
            q
        };
        for _ in 0..n {
            h = up(&h, &w);
            w[..nk].iter_mut().for_each(|w| *w += 0.25);
            other.clone_from(&h);
            h = up(&h, &w);
        }
        let expected = [h, w, other].map(|numbers| Some(Data::F64(numbers)));
        same(&interpreted(&problem), &expected, &format!("{n} times"));
        let choices = Choices { contract: false, block: [8, 2, 1], ..Choices::default() };
        for kind in [PlanKind::Separate, PlanKind::Merged, PlanKind::Recomputed] {
            let shape = usual_shape(1, Precision::F64);
            let choices = choices.clone();
            let plan = ProgramPlan { kind, steps: 1, choices, shape, resident: 0, tile: None, graph: true };
            same(&planned(&problem, &plan).unwrap(), &expected, &format!("{n} times, {plan}"));
        }
    }
}

#[test]
fn a_program_goes_on_from_a_checkpoint_with_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("waves.npz");
    let problem = problem(&program(NAMES), Grid::rows(6, 5, 2), Precision::F64, &[]).unwrap();
    let whole = interpreted(&problem);
    let about = checkpoint::About::new(&problem, &checkpoint::OfText::default(), false);
    for stop in 1..5 {
        let backend = Interpreter::new(problem.clone());
        let mut driver = Driver::new(&backend).given().unwrap();
        let mut times = 0;
        let stopped = driver.run(None, &mut |driver, _| {
            times += 1;
            if times < stop {
                return Ok(());
            }
            checkpoint::Checkpoint::of(driver, &about)?.save(&path)?;
            Err(Error::check("killed"))
        });
        assert_eq!(stopped.unwrap_err().message, "killed");
        let read = checkpoint::load(&path).unwrap();
        read.check(&about, &problem).unwrap();
        let mut driver = Driver::new(&backend);
        read.restore(&mut driver).unwrap();
        driver.finish().unwrap();
        same(&results(&problem, &driver).unwrap(), &whole, &format!("stopped after {stop}"));
    }
}
