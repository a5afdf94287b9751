//! Divisions that share an inverse come to the bits of the division: on the emulator, and on a GPU, where there is one.

use stencilc_compiler::cuda::quotients;
use stencilc_compiler::device::with_operations;
use stencilc_compiler::ir::Precision;
use stencilc_runtime::cache::library_cached;
use stencilc_runtime::cuda::{Gpu, availability};
use stencilc_runtime::emulate::{Compiler, Emulator, Settings, Source};
use stencilc_runtime::machine::{Arg, Launch, Machine};
use stencilc_runtime::nvrtc::{self, Kind};

/// Words of `quotients.cu` in each precision.
const WORDS: [(Precision, &str); 2] = [
    (
        Precision::F64,
        "#define REAL double\n#define MANTISSA 52\n#define BIAS 1023\n#define SIZE 64\n#define BITS_OF __double_as_longlong\n\
         #define REAL_OF(x) __longlong_as_double((long long)(x))\n",
    ),
    (
        Precision::F32,
        "#define REAL float\n#define MANTISSA 23\n#define BIAS 127\n#define SIZE 32\n#define BITS_OF __float_as_int\n\
         #define REAL_OF(x) __int_as_float(int(unsigned(x)))\n",
    ),
];

fn text(precision: Precision) -> String {
    let words = WORDS.iter().find(|(own, _)| *own == precision).map_or("", |(_, words)| words);
    with_operations(&format!("{words}{}{}", quotients(precision), include_str!("quotients.cu")))
}

/// How many are wrong, usual and unusual, of quotients of numbers whose exponents are at most `range` from 0.
fn counted<M: Machine>(machine: &M, kernel: &M::Kernel, blocks: u32, range: i32) -> [u32; 3] {
    let counts = machine.upload(&[0; 16]).unwrap();
    let args = [Arg::Pointer(machine.address(&counts, 0)), Arg::I32(7 * range), Arg::I32(range)];
    machine.launch(kernel, &Launch::new([blocks, 1, 1], [128, 1, 1]), &args).unwrap();
    let (bytes, guards) = machine.download(&counts).unwrap();
    assert!(guards.intact(), "{guards}");
    let all: Vec<u32> = bytemuck::pod_collect_to_vec(&bytes[..12]);
    [all[0], all[1], all[2]]
}

/// Small exponents are all usual; large ones are not, and then nothing is said about the number.
fn compare<M: Machine>(machine: &M, kernel: &M::Kernel, precision: Precision, blocks: u32) {
    let most = if precision == Precision::F64 { 1000 } else { 120 };
    for range in [3, 20, most] {
        let [wrong, usual, unusual] = counted(machine, kernel, blocks, range);
        assert_eq!(wrong, 0, "{precision:?}, exponents to {range}");
        assert_eq!(wrong + usual + unusual, blocks * 128 * 64);
        assert_eq!(unusual == 0, range < most, "{precision:?}, exponents to {range}: {usual} usual, {unusual} not");
        assert!(usual > blocks * 128, "{precision:?}, exponents to {range}: {usual}");
    }
}

#[test]
fn quotients_on_the_emulator() {
    for (precision, _) in WORDS {
        let text = text(precision);
        let source = Source { name: "quotients", text: &text };
        let built = library_cached(&Compiler::find().unwrap(), &[source], &Settings::default()).unwrap();
        compare(&Emulator::default(), &built[0], precision, 64);
    }
}

#[test]
fn quotients_on_a_gpu() {
    if availability().is_err() {
        println!("skipped: no GPU");
        return;
    }
    let gpu = Gpu::open(0).unwrap();
    for (precision, _) in WORDS {
        let compiled = nvrtc::compile(&text(precision), "quotients.cu", &gpu.arch(), Kind::Cubin).unwrap();
        let module = gpu.load(&compiled.image).unwrap();
        compare(&gpu, &module.kernel("quotients").unwrap(), precision, 1 << 18);
    }
}
