//! Step kernels: each equals the interpreter bit for bit on the emulator, and leaves what is no cell as it was.

mod planes;
mod texts;
mod tiled;

use crate::common::lowered;
use crate::common::step::Fixture;
use rayon::prelude::*;
use stencilc_compiler::gpu::Gpu;
use stencilc_compiler::ir::{Precision, Stencil};
use stencilc_compiler::step::resident::{self, resident};
use stencilc_compiler::step::stream::{self, Shape, Strip, persistent, stream};
use stencilc_compiler::step::{Carry, Edge, Kernel, Launch, StepTask};
use stencilc_runtime::cache::compile_cached;
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
stencil here { in a; out b; b = 2 * exp(a) + 1 }
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
fn check(stencil: &Stencil, extents: [usize; 3], padding: [usize; 3], edges: [Edge; 2]) -> usize {
    let mut count = 0;
    for precision in [Precision::F32, Precision::F64] {
        let fixture = Fixture { edges, ..Fixture::new(stencil, precision, extents, padding) };
        let kernels = shapes().into_iter().filter_map(|shape| match stream(&fixture.subject(), &shape) {
            Ok(kernel) => Some(kernel),
            Err(refusal) => {
                assert!(shape.strip == Strip::Aligned, "{} {extents:?}: {refusal}", stencil.name);
                None
            }
        });
        let kernels: Vec<_> = kernels.collect();
        fixture.check(&kernels, &[(1, fixture.expected(&fixture.inputs))]);
        count += kernels.len();
    }
    count
}

/// Those, and some that come along.
fn stencils() -> Vec<Stencil> {
    let mut stencils = lowered("steps", STENCILS);
    for file in ["laplap", "hdiff", "gray_scott"] {
        let text = std::fs::read_to_string(format!("{}/stencils/{file}.stn", env!("CARGO_MANIFEST_DIR"))).unwrap();
        stencils.extend(lowered(file, &text));
    }
    stencils
}

const CLOSED: [Edge; 2] = [Edge::Periodic; 2];
const OPEN: [Edge; 2] = [Edge::Open; 2];

/// Extents, padding and edges: a row of one warp; several aligned strips; what no power of two divides; smaller than the
/// reach.
const GRIDS: [([usize; 3], [usize; 3], [Edge; 2]); 7] = [
    ([128, 24, 3], [0, 0, 0], CLOSED),
    ([256, 17, 2], [4, 8, 4], [Edge::Open, Edge::Periodic]),
    ([150, 31, 2], [3, 1, 7], CLOSED),
    ([37, 19, 1], [0, 3, 0], [Edge::Periodic, Edge::Open]),
    ([4, 3, 2], [0, 0, 0], CLOSED),
    ([256, 20, 2], [0, 0, 0], OPEN),
    ([22, 14, 2], [0, 0, 0], OPEN),
];

#[test]
fn streams_equal_the_interpreter() {
    let stencils = stencils();
    let cases: Vec<_> = stencils.iter().flat_map(|stencil| GRIDS.map(|grid| (stencil, grid))).collect();
    let kernels =
        cases.into_par_iter().map(|(stencil, (extents, padding, edges))| check(stencil, extents, padding, edges));
    let kernels: usize = kernels.sum();
    assert!(kernels > 400, "{kernels}");
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
        let kernels = check(&repeated(DIFFUSION, times), extents, [0, 0, 0], [Edge::Periodic; 2]);
        assert!(kernels >= 6, "{kernels}");
    }
}

/// An output for each input that it becomes.
fn pairs(stencil: &Stencil, pairs: &[(&str, &str)]) -> Vec<Carry> {
    let field = |name: &str| stencil.field_named(name).unwrap();
    pairs.iter().map(|&(to, from)| (field(to), field(from))).collect()
}

/// Stencils that are repeated, with what becomes what.
fn repeatable() -> Vec<(Stencil, &'static [(&'static str, &'static str)])> {
    let text = "
    fn laplacian(a) = a[i-1] + a[i+1] + a[j-1] + a[j+1] - 4*a
    stencil diffuse { in phi; out next; let lap = laplacian(phi); next = phi - 1/32 * laplacian(lap) }
    stencil driven {
        in a = 0.5..1.5
        in c, d
        in m on (i, j)
        in w on (k)
        in s: f32
        in n: int
        param dt: real = 0.01
        out b; out t: f32; out z: int; out seen; out flat on (i, j)
        let x = a[i-1, j-1] - s[i+1, j+1] * c[j+1]
        b = if x > 0 && n[j-1] % 3 > 0 { a + dt * (x[i-1] - m[i+1, j-1]) } else { a * (1 - dt * w) }
        t = s * 0.875 + x * dt
        z = n + n[i+1] % 2
        seen = x[j+1] * d
        flat = m * 2
    }
    stencil away { inout u, v; let x = u - v[j+2]; u = 0.25 * u[i-2] + 0.5 * x; v = 0.5 * (x[j-1] + x[i+2, j-1]) }
    stencil here { in a; out b; b = 0.5 * a + 1 }";
    let carries: [&'static [(&'static str, &'static str)]; 4] =
        [&[("next", "phi")], &[("b", "a"), ("t", "s"), ("z", "n")], &[("u", "u"), ("v", "v")], &[("b", "a")]];
    let mut stencils: Vec<_> = lowered("residents", text).into_iter().zip(carries).collect();
    let text = std::fs::read_to_string(format!("{}/stencils/gray_scott.stn", env!("CARGO_MANIFEST_DIR"))).unwrap();
    stencils.push((lowered("gray_scott", &text).remove(0), &[("u_next", "u"), ("v_next", "v")]));
    stencils
}

#[test]
fn residents_equal_the_interpreter() {
    let stencils = repeatable();
    let shapes = |rows, warps, blocks, early| resident::Shape { rows, warps, blocks, early };
    let cases = [
        ([128, 16, 2], [0, 0, 0], shapes(8, 2, 1, true)),
        ([128, 32, 3], [4, 8, 4], shapes(4, 2, 4, true)),
        ([256, 12, 1], [0, 0, 0], shapes(3, 2, 2, true)),
        ([128, 18, 1], [3, 1, 2], shapes(6, 3, 1, false)),
        ([128, 6, 1], [0, 0, 0], shapes(6, 1, 1, true)),
    ];
    let cases: Vec<_> = stencils.iter().flat_map(|stencil| cases.map(|case| (stencil, case))).collect();
    cases.into_par_iter().for_each(|((stencil, carry), (extents, padding, shape))| {
        for precision in [Precision::F32, Precision::F64] {
            let fixture = Fixture::new(stencil, precision, extents, padding);
            let carry = pairs(stencil, carry);
            let kernel = resident(&fixture.subject(), &carry, shape).unwrap();
            let expected = [1, 5].map(|steps| (steps as i32, fixture.after(&carry, steps)));
            // With fewer clusters planes are handed over.
            let clusters = [extents[2], 2].map(|clusters| clusters.min(extents[2]) * shape.blocks);
            let kernels = clusters.map(|blocks| {
                let launch = Launch { grid: [blocks as u32, 1, 1], ..kernel.launch };
                Kernel { launch, ..kernel.clone() }
            });
            fixture.check(&kernels[..1 + usize::from(extents[2] > 2)], &expected);
        }
    });
}

/// Who is sent rows and sends none back would be overtaken by the one that sends them.
#[test]
fn residents_look_both_ways_or_none() {
    for (value, allowed) in [("a[j-1]", false), ("a[j+2] + a", false), ("a[j-1] + a[j+1]", true), ("a[i-1]", true)] {
        let stencil = lowered("looks", &format!("stencil looks {{ in a; out b; b = 0.5 * ({value}) }}")).remove(0);
        let (fixture, carry) =
            (Fixture::new(&stencil, Precision::F64, [128, 8, 2], [0; 3]), pairs(&stencil, &[("b", "a")]));
        let of = |rows, warps| {
            let shape = resident::Shape { rows, warps, blocks: 1, early: false };
            resident(&fixture.subject(), &carry, shape).map_err(|refusal| refusal.message)
        };
        // One warp has the rows of both sides.
        assert!(of(8, 1).is_ok(), "{value}");
        let found = of(4, 2).map(|_| ());
        assert_eq!(found.is_ok(), allowed, "{value}: {found:?}");
        assert!(found.err().is_none_or(|own| own.contains("rows away, on one side alone")), "{value}");
    }
}

#[test]
fn persistent_kernels_equal_the_interpreter() {
    let stencils = repeatable();
    let cases = [([128, 16, 2], [4, 8, 4], Strip::Overlapping), ([256, 12, 1], [0, 0, 0], Strip::Aligned)];
    let cases: Vec<_> = stencils.iter().flat_map(|stencil| cases.map(|case| (stencil, case))).collect();
    cases.into_par_iter().for_each(|((stencil, carry), (extents, padding, strip))| {
        for precision in [Precision::F32, Precision::F64] {
            let fixture = Fixture::new(stencil, precision, extents, padding);
            let carry = pairs(stencil, carry);
            // So few blocks at once that each has several parts.
            let gpu = Gpu { processors: 1, threads: 128, ..Gpu::SM_90 };
            let shape = Shape { strip, gpu, rows: Some(5), block: 64, ..Shape::default() };
            let kernel = persistent(&fixture.subject(), &carry, &shape).unwrap();
            let expected = [1, 2, 5].map(|steps| (steps as i32, fixture.after(&carry, steps)));
            fixture.check(&[kernel], &expected);
        }
    });
}

/// Nothing is spilled in the shapes that should be fastest, which are those that kernels written by hand have.
#[test]
fn residents_need_few_registers() {
    if nvrtc::locate().is_err() {
        println!("skipped: no NVRTC");
        return;
    }
    let shape = |rows, warps, blocks, early| resident::Shape { rows, warps, blocks, early };
    let cases = [
        (Precision::F32, 128, shape(8, 8, 2, true)),
        (Precision::F64, 128, shape(8, 8, 2, true)),
        (Precision::F32, 256, shape(16, 8, 2, true)),
        (Precision::F64, 256, shape(8, 8, 4, false)),
        (Precision::F32, 512, shape(8, 8, 8, false)),
    ];
    let stencil = repeated(DIFFUSION, 1);
    let carry = pairs(&stencil, &[("next", "phi")]);
    for (precision, n, best) in cases {
        let fixture = Fixture::new(&stencil, precision, [n, n, 1], [0, 0, 0]);
        let subject = StepTask { extents: [n, n, 64], ..fixture.subject() };
        let shapes = resident::shapes(&subject, &carry, &Gpu::SM_90);
        assert_eq!(shapes[0], best, "{n} {precision:?}: {shapes:?}");
        for &shape in &shapes[..2.min(shapes.len())] {
            let kernel = resident(&subject, &carry, shape).unwrap();
            let compiled = compile_cached(&kernel.text, "step.cu", "sm_90", Kind::Cubin).unwrap().compiled;
            let resources = &compiled.resources[0];
            println!("{n} {precision:?} {shape:?}: {} registers", resources.registers);
            assert_eq!(resources.spill_loads + resources.spill_stores + resources.stack, 0, "{}", kernel.text);
        }
    }
}

/// Of one step, strips side by side should be fastest, which load nothing twice; of several, strips that overlap.
#[test]
fn shapes_are_ordered_by_what_they_waste() {
    for (times, n, strip) in [(1, 512, Strip::Aligned), (4, 512, Strip::Overlapping), (4, 128, Strip::Overlapping)] {
        let stencil = repeated(DIFFUSION, times);
        let fixture = Fixture::new(&stencil, Precision::F32, [n, n, 1], [0, 0, 0]);
        let subject = StepTask { extents: [n, n, 64], ..fixture.subject() };
        let shapes = stream::shapes(&subject, &Gpu::SM_90);
        assert!(shapes.len() >= 4 && shapes.iter().all(|shape| stream(&subject, shape).is_ok()));
        assert_eq!(shapes[0].strip, strip, "{times} {n}: {shapes:?}");
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
            let fixture = Fixture::new(&stencil, precision, [n, n, 1], [0, 0, 0]);
            let subject = StepTask { extents: [n, n, 64], ..fixture.subject() };
            let kernel = stream(&subject, &Shape { lane, ahead, strip, ..Shape::default() }).unwrap();
            // The same function in a kernel of many steps.
            let carry = pairs(&stencil, &[("next", "phi")]);
            let many = persistent(&subject, &carry, &Shape { lane, ahead, strip, ..Shape::default() }).unwrap();
            let compiled = compile_cached(&many.text, "step.cu", "sm_90", Kind::Cubin).unwrap().compiled;
            assert_eq!(compiled.resources[0].spill_loads, 0, "{}", many.text);
            let compiled = compile_cached(&kernel.text, "step.cu", "sm_90", Kind::Cubin).unwrap().compiled;
            let resources = &compiled.resources[0];
            println!("{times} steps, {precision:?}, {lane} bytes, {strip:?}: {} registers", resources.registers);
            assert_eq!(resources.spill_loads + resources.spill_stores + resources.stack, 0, "{}", kernel.text);
            assert!(resources.registers <= most, "{} registers\n{}", resources.registers, kernel.text);
        }
    }
}
