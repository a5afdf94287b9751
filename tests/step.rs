//! Step kernels: each equals the interpreter bit for bit on the emulator, and leaves what is no cell as it was.

mod common;

use common::lowered;
use common::step::Bed;
use rayon::prelude::*;
use stencilc_compiler::ir::{Precision, Stencil};
use stencilc_compiler::step::Subject;
use stencilc_compiler::step::stream::{Shape, Strip, stream};
use stencilc_runtime::nvrtc::{self, Kind};

/// Stencils with everything that step kernels can compute.
const STENCILS: &str = "
fn laplacian(a) = a[i-1] + a[i+1] + a[j-1] + a[j+1] - 4*a
stencil diffuse {
    in phi
    out next
    let lap = laplacian(phi)
    next = phi - 1/32 * laplacian(lap)
}
/// Diagonal neighbours, choices, a field a column, one a level, single precision, whole numbers, truths.
stencil mixed {
    in a = 0.5..1.5
    in c on (i, j)
    in w on (k)
    in h on (i, j, k+1)
    in e: f32
    in n: int
    in flag: bool
    param s: real = 0.75
    param limit: int = 4
    out r
    out q: f32
    out m: int
    out b: bool
    let corner = a[i-1, j-1] + a[i+1, j+1] * (if flag[i-1] { c[j+1] } else { e[i+2] })
    let gate = w * s + k
    let thick = h[k+1] - h
    r = if corner > gate && n[j-2] < limit { corner[j+1] / thick[i-1] } else { sqrt(abs(corner)) + e - 2.5 }
    q = max(a[i-3], a[j+2], corner) * gate
    m = n * 3 % 5 + (if flag { 1 } else { n[i+1] })
    b = flag[j+1] || corner < 0
}
/// Values before, and two outputs that look far in one direction.
stencil advance {
    inout u, v
    let x = u[i-1] - v[j+3]
    u = u[i-2] + x * v
    v = 0.5 * (x[j-1] + x[i+2, j-1])
}
stencil here { in a; out b; b = 2 * a + 1 }
stencil above { in a; out b; b = a[j-1] }
";

fn shapes() -> Vec<Shape> {
    let shape = Shape { block: 64, ..Shape::default() };
    vec![
        shape,
        Shape { lane: 32, rows: Some(5), ahead: 1, ..shape },
        Shape { ahead: 3, rows: Some(7), block: 32, ..shape },
        Shape { strip: Strip::Aligned, ..shape },
        Shape { strip: Strip::Aligned, lane: 32, rows: Some(6), ahead: 4, ..shape },
    ]
}

/// All shapes on a stencil; returns how many there were kernels for.
fn check(stencil: &Stencil, extents: [usize; 3], padding: [usize; 3]) -> usize {
    let mut kernels = 0;
    for precision in [Precision::F32, Precision::F64] {
        let bed = Bed::new(stencil, precision, extents, padding);
        let expected = bed.expected(&bed.inputs);
        for shape in shapes() {
            match stream(&bed.subject(), &shape) {
                Ok(kernel) => {
                    bed.check(&kernel, &expected, 1);
                    kernels += 1;
                }
                Err(refusal) => assert!(shape.strip == Strip::Aligned, "{} {extents:?}: {refusal}", stencil.name),
            }
        }
    }
    kernels
}

#[test]
fn streams_equal_the_interpreter() {
    let mut stencils = lowered("steps", STENCILS);
    for file in ["laplap", "hdiff", "gray_scott"] {
        let text = std::fs::read_to_string(format!("{}/stencils/{file}.stn", env!("CARGO_MANIFEST_DIR"))).unwrap();
        stencils.extend(lowered(file, &text));
    }
    let grids = [
        // A row of one warp; several aligned strips; what no power of two divides; smaller than the reach.
        ([128, 24, 3], [0, 0, 0]),
        ([256, 17, 2], [4, 8, 4]),
        ([150, 31, 2], [3, 1, 7]),
        ([37, 19, 1], [0, 3, 0]),
        ([4, 3, 2], [0, 0, 0]),
    ];
    let cases: Vec<_> =
        stencils.iter().flat_map(|stencil| grids.map(|(extents, padding)| (stencil, extents, padding))).collect();
    let kernels: usize =
        cases.into_par_iter().map(|(stencil, extents, padding)| check(stencil, extents, padding)).sum();
    assert!(kernels > 100, "{kernels}");
}

/// `times` steps of a stencil that turns one field into another, as one stencil.
fn repeated(text: &str, times: usize) -> Stencil {
    let steps = (1..times).map(|n| format!("let s{} = step(s{n})\n", n + 1)).collect::<String>();
    let text = format!("{text}\nstencil repeated {{ in phi; out next\nlet s1 = step(phi)\n{steps}next = s{times} }}");
    lowered("repeated", &text).remove(0)
}

const DIFFUSION: &str = "fn laplacian(a) = a[i-1] + a[i+1] + a[j-1] + a[j+1] - 4*a
fn step(a) { let lap = laplacian(a); a - 1/32 * laplacian(lap) }";

#[test]
fn several_steps_are_a_larger_stencil() {
    for (times, extents) in [(2, [128, 20, 2]), (3, [150, 31, 1]), (4, [100, 33, 2])] {
        let kernels = check(&repeated(DIFFUSION, times), extents, [0, 0, 0]);
        assert!(kernels >= 6, "{kernels}");
    }
}

/// Nothing is spilled, and registers are about those of kernels written by hand.
#[test]
fn streams_need_few_registers() {
    if nvrtc::locate().is_err() {
        println!("skipped: no NVRTC");
        return;
    }
    let cases = [
        (1, 512, 16, 4, Strip::Aligned, [90, 120]),
        (1, 512, 16, 2, Strip::Overlapping, [50, 56]),
        (3, 512, 32, 2, Strip::Overlapping, [168, 190]),
        (4, 512, 16, 2, Strip::Overlapping, [120, 120]),
        (4, 128, 16, 2, Strip::Overlapping, [120, 120]),
    ];
    for (times, n, lane, ahead, strip, most) in cases {
        let stencil = repeated(DIFFUSION, times);
        for (precision, most) in [Precision::F32, Precision::F64].into_iter().zip(most) {
            let bed = Bed::new(&stencil, precision, [n, n, 1], [0, 0, 0]);
            let subject = Subject { extents: [n, n, 64], ..bed.subject() };
            let kernel = stream(&subject, &Shape { lane, ahead, strip, ..Shape::default() }).unwrap();
            let compiled = nvrtc::compile(&kernel.text, "step.cu", "sm_90", Kind::Cubin).unwrap();
            let resources = &compiled.resources[0];
            println!("{times} steps, {precision:?}, {lane} bytes, {strip:?}: {} registers", resources.registers);
            assert_eq!(resources.spill_loads + resources.spill_stores + resources.stack, 0, "{}", kernel.text);
            assert!(resources.registers <= most, "{} registers\n{}", resources.registers, kernel.text);
        }
    }
}
