//! Programs whose calls share kernels, by every plan.

use super::boundaries::text;
use super::calls::NAMES;
use super::*;

/// Programs that can be fused in part or as a whole, each with a grid.
pub(crate) fn fusible() -> Vec<(String, Grid)> {
    let diffusion = "
        program own {
            inout phi; param n: int = 7; param alpha = 1/32
            boundary { i: periodic, j: periodic }
            repeat n { let lap = laplacian(phi); let bi = laplacian(lap); phi = euler(phi, bi, alpha) }
        }
        stencil laplacian { in a; out l; l = a[i-1] + a[i+1] + a[j-1] + a[j+1] - 4*a }
        stencil euler { in a, b; param c; out new; new = a - c*b }
    ";
    let closed = "
        program own {
            inout phi; out lap; in w on (i, j); param n: int = 5
            repeat n { lap = laplacian(phi); let flux = times(lap, w); phi = add(phi, flux) }
        }
        stencil laplacian { in a; out l; l = a[i-1] + a[i+1] - 2*a }
        stencil times { in l; in w on (i, j); out f; f = w * l }
        stencil add { in a, f; out new; new = a + 0.1 * f }
    ";
    let leapfrog = "
        program own {
            inout u, before; in c; param n: int = 6
            boundary u, c { i: periodic, j: periodic }
            repeat n { let next = wave(u, before, c); before = u; u = next }
        }
        stencil wave { in u, b, c; out n; n = 2*u - b + 0.1*c*(u[i-1] + u[i+1] + u[j-1] + u[j+1] - 4*u) }
    ";
    let single = "
        program own {
            inout a: f32; param n: int = 5
            boundary { i: periodic, j: periodic }
            repeat n { a = blur(a) }
        }
        stencil blur { in a: f32; out b: f32; b = 0.3*a[i-1] + 0.4*a[i+1] + 0.2*a[j-2] + 0.1*a[i+1, j+1] }
    ";
    let inner = "
        program own {
            inout a; in q; param n: int = 3
            boundary a { i: periodic, j: copy }
            let b = blur(a)
            repeat n { a = blur(a); repeat 4 { a = scaled(a, b) }; a = scaled(a, q) }
            a = blur(a)
        }
        stencil blur { in a; out b; b = 0.5*a[i-1] + 0.25*a[i+1] + 0.125*a[j-1] }
        stencil scaled { in a, b; out c; c = 0.5*a + 0.25*b }
    ";
    // Calls that compute some cells alone, of variables that others compute on all.
    let rims = "
        program own {
            inout a, b, last; param n: int = 4
            repeat n { a = half(a); a = drift(a, b); last = a; b = half(b) }
        }
        stencil half { in g; out h; h = 0.5*g }
        stencil drift { in a, b; out c; c = a + b[i-1] }
    ";
    let wide_rims = "
        program own {
            inout a; out c; param n: int = 4
            repeat n { a = half(a); let d = blur(a); c = blur(d); a = blur(a) }
        }
        stencil half { in g; out h; h = 0.5*g }
        stencil blur { in a; out b; b = a[i-1] + 0.25*a[j+1] }
    ";
    // Reads one side alone, so that strips overlap on that side alone.
    let upwind = "
        program own {
            inout a, b
            param n: int = 4
            boundary { i: periodic, j: periodic }
            repeat n { b, a = upwind(a, b) }
        }
        stencil upwind { in a, b; out c, d; c = 0.5*a + 0.25*b[i+1]; d = a }
    ";
    // Levels keep their numbers where something lies beyond the last.
    let layers = "
        program own {
            inout a
            in w on (k+1)
            param n: int = 4
            boundary { i: periodic, j: periodic, k: copy }
            repeat n { a = layered(a, w) }
        }
        stencil layered {
            in a
            in w on (k+1)
            out b
            b = (if k < nk - 1 { w[k+1] } else { 0.5*k }) * a[i-1] + 0.125*w
        }
    ";
    // Wide enough for whole lanes of 16 bytes.
    let grid = Grid::rows(128, 8, 3);
    let mut all: Vec<(String, Grid)> = [diffusion, closed, leapfrog, single, inner, rims, wide_rims, upwind, layers]
        .map(|text| (text.to_owned(), grid))
        .to_vec();
    all.push((NAMES.to_owned(), Grid::rows(6, 5, 2)));
    for rules in [
        [["periodic"; 2]; 3],
        [["periodic"; 2], ["periodic"; 2], ["copy"; 2]],
        [["mirror"; 2], ["periodic"; 2], ["halo"; 2]],
    ] {
        all.push((text(rules), Grid::rows(8, 8, 4)));
    }
    all
}

#[test]
fn fusing_changes_no_bit() {
    let mut fewer = 0;
    for (text, grid) in fusible() {
        for precision in [Precision::F32, Precision::F64] {
            let problem = problem(&program(&text), grid, precision, &[]).unwrap();
            let expected = interpreted(&problem);
            for fuse in [Fuse::Nothing, Fuse::Pointwise, Fuse::Everything] {
                for times in [1, 2, 3] {
                    let staged = problem.staged.fused(Fusing { fuse, times, wraps: false, whole: false });
                    fewer += usize::from(staged.stages.len() < problem.staged.stages.len());
                    let fused = ProgramProblem { staged, ..problem.clone() };
                    same(&interpreted(&fused), &expected, &format!("{text} {fuse:?} {times}"));
                }
            }
        }
    }
    assert!(fewer > 20, "{fewer}");
}

#[test]
fn every_plan_equals_the_interpreter() {
    let (mut streamed, mut tiled, mut walked, mut whole) = (0, 0, 0, [0; 2]);
    for (text, grid) in fusible() {
        for precision in [Precision::F32, Precision::F64] {
            let problem = problem(&program(&text), grid, precision, &[]).unwrap();
            let expected = interpreted(&problem);
            for (kind, steps) in [
                (PlanKind::Merged, 1),
                (PlanKind::Recomputed, 1),
                (PlanKind::Recomputed, 2),
                (PlanKind::Streamed, 1),
                (PlanKind::Streamed, 3),
                (PlanKind::Tiled, 1),
                (PlanKind::Tiled, 3),
                (PlanKind::Walked, 1),
                (PlanKind::Persistent, 1),
                (PlanKind::Resident, 1),
            ] {
                let choices = Choices { precision, block: [8, 2, 1], ..Choices::default() };
                let plan = ProgramPlan {
                    kind,
                    steps,
                    choices,
                    shape: usual_shape(steps, precision),
                    tile: None,
                    resident: 0,
                    graph: true,
                };
                match planned(&problem, &plan) {
                    Ok(found) => {
                        streamed += usize::from(kind == PlanKind::Streamed);
                        tiled += usize::from(kind == PlanKind::Tiled);
                        walked += usize::from(kind == PlanKind::Walked);
                        whole[usize::from(kind == PlanKind::Resident)] +=
                            usize::from(matches!(kind, PlanKind::Persistent | PlanKind::Resident));
                        same(&found, &expected, &format!("{text} {plan}"));
                    }
                    Err(error) => {
                        let may_fail = !matches!(kind, PlanKind::Merged | PlanKind::Recomputed);
                        assert!(steps > 1 || may_fail, "{text} {plan}: {error}");
                    }
                }
            }
        }
    }
    assert!(streamed >= 12 && tiled == streamed && whole[0] >= 4 && whole[1] >= 2, "{streamed} {tiled} {whole:?}");
    // Each that is streamed in one step, and that which looks at other levels.
    assert!(walked >= 8, "{walked}");
}
