//! The language's own functions: how exact they are, what they make of zeros, infinities and NaN, and that their C++ is
//! the same to the last bit.
//!
//! `STENCILC_ARGUMENTS` says how many numbers are drawn from each range; with `--show-output` the errors are printed.

use crate::common::lowered;
use std::ffi::c_long;
use std::path::Path;
use std::process::Command;
use stencilc_compiler::cuda;
use stencilc_compiler::ir::scalar::Real;
use stencilc_compiler::ir::{Function, Precision};
use stencilc_compiler::plan::{self, Choices};
use stencilc_runtime::emulate::Compiler;

const UNARY: [Function; 8] = [
    Function::Exp,
    Function::Log,
    Function::Sin,
    Function::Cos,
    Function::Tan,
    Function::Atan,
    Function::Tanh,
    Function::Cbrt,
];
const BINARY: [Function; 2] = [Function::Pow, Function::Atan2];

/// A range of arguments, and a name for it.
type Range<R> = (&'static str, Box<dyn Fn(&mut Random) -> [R; 2]>);

/// Numbers drawn at random: xorshift64 of G. Marsaglia.
struct Random(u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// What differs between the precisions.
trait Number: Real {
    const PRECISION: Precision;
    /// The least positive number, the least normal one and the largest one.
    const EDGES: [Self; 3];
    fn of_bits(bits: u64) -> Self;
    fn bits(self) -> u64;
}

impl Number for f64 {
    const PRECISION: Precision = Precision::F64;
    const EDGES: [f64; 3] = [f64::from_bits(1), f64::MIN_POSITIVE, f64::MAX];
    fn of_bits(bits: u64) -> f64 {
        f64::from_bits(bits)
    }
    fn bits(self) -> u64 {
        self.to_bits()
    }
}

impl Number for f32 {
    const PRECISION: Precision = Precision::F32;
    const EDGES: [f32; 3] = [f32::from_bits(1), f32::MIN_POSITIVE, f32::MAX];
    fn of_bits(bits: u64) -> f32 {
        f32::from_bits((bits >> 32) as u32)
    }
    fn bits(self) -> u64 {
        u64::from(self.to_bits())
    }
}

fn own<R: Real>(function: Function, [x, y]: [R; 2]) -> R {
    R::call(function, [x, y, y])
}

/// Where a function is tried: everywhere, where it is used, and where it is difficult.
fn ranges<R: Number>(function: Function) -> Vec<Range<R>> {
    fn pair<R: Number>(name: &'static str, x: (f64, f64), y: (f64, f64)) -> Range<R> {
        let draw = move |random: &mut Random| [x, y].map(|(low, high)| R::from_f64(random.between(low, high)));
        (name, Box::new(draw))
    }
    let one = |name, low, high| pair::<R>(name, (low, high), (0.0, 1.0));
    let double = R::PRECISION == Precision::F64;
    let by = move |f64: f64, f32: f64| if double { f64 } else { f32 };
    let mut ranges: Vec<Range<R>> = vec![
        ("all bits", Box::new(|random| [R::of_bits(random.word()), R::of_bits(random.word())])),
        (
            "subnormal",
            Box::new(move |random| {
                let mut draw = || (random.word() >> 32 >> (if double { 12 } else { 9 })) as f64 * R::EDGES[0].to_f64();
                [draw(), draw()].map(R::from_f64)
            }),
        ),
    ];
    ranges.extend(match function {
        Function::Exp => vec![one("-1..1", -1.0, 1.0), one("all finite", by(-746.0, -105.0), by(710.0, 89.0))],
        Function::Log => vec![one("0.5..2", 0.5, 2.0), one("near 1", 0.99, 1.01), one("0..1000", 0.0, 1000.0)],
        Function::Sin | Function::Cos | Function::Tan => vec![
            one("-10..10", -10.0, 10.0),
            one("to 1e5", -1e5, 1e5),
            (
                "near k pi/2",
                Box::new(|random| {
                    let quarters = (1 + random.word() % 100_000) as f64 * std::f64::consts::FRAC_PI_2;
                    let x = R::from_f64(quarters).bits() + random.word() % 5 - 2;
                    [R::of_bits(if R::PRECISION == Precision::F64 { x } else { x << 32 }); 2]
                }),
            ),
            (
                "huge",
                Box::new(move |random| {
                    let exponent = random.between(by(20.0, 10.0), by(1023.0, 127.0));
                    [R::from_f64(random.between(1.0, 2.0) * exponent.exp2()); 2]
                }),
            ),
        ],
        Function::Atan => vec![one("-2..2", -2.0, 2.0), one("-100..100", -100.0, 100.0)],
        Function::Tanh => vec![one("-1..1", -1.0, 1.0), one("-25..25", -25.0, 25.0)],
        Function::Cbrt => vec![one("0..10", 0.0, 10.0)],
        Function::Pow => vec![
            pair("0..100, -10..10", (0.0, 100.0), (-10.0, 10.0)),
            pair("0.5..2, large", (0.5, 2.0), (-by(1000.0, 140.0), by(1000.0, 140.0))),
            pair("near 1, huge", (0.999, 1.001), (-by(7e5, 8e4), by(7e5, 8e4))),
        ],
        Function::Atan2 => vec![pair("-10..10", (-10.0, 10.0), (-10.0, 10.0))],
        _ => Vec::new(),
    });
    ranges
}

/// Numbers that are special to some function: all pairs of them are tried.
fn specials<R: Number>() -> Vec<R> {
    let plain =
        [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 0.55, 1e-10, 1e10, 1e22, 1e300, 1e308, f64::INFINITY, f64::NAN];
    let around = [
        87.0,
        88.0,
        89.0,
        103.0,
        104.0,
        708.0,
        709.0,
        710.0,
        745.0,
        746.0,
        800.0,
        1e6,
        16_777_215.0,
        9_007_199_254_740_991.0,
    ];
    let numbers = plain.into_iter().chain(around).map(R::from_f64).chain(R::EDGES);
    numbers.flat_map(|x| [x, x.negate()]).collect()
}

/// The C++ of all functions in one precision, without the kernel that calls them.
fn text(precision: Precision) -> String {
    let calls: Vec<String> = UNARY.iter().map(|function| format!("{}(a)", function.name())).collect();
    let binary: Vec<String> = BINARY.iter().map(|function| format!("{}(a, b)", function.name())).collect();
    let source = format!("stencil all {{ in a, b; out r; r = {} + {} }}", calls.join(" + "), binary.join(" + "));
    let prepared = plan::prepare(&lowered("all", &source)[0], precision, true);
    let plan = plan::plan(&prepared, &Choices { precision, ..Choices::default() }, None).unwrap();
    let text = cuda::print(&plan).unwrap().text;
    let start = text.find("#define STENCILC_FUNCTION").expect("the functions are part of the text");
    let end = text.find("extern \"C\"").expect("the kernel is part of the text");
    text[start..end].to_owned()
}

/// A library made of a text by the C++ compiler.
fn library(folder: &Path, name: &str, text: &str, flags: &[&str]) -> Result<libloading::Library, String> {
    let (file, library) = (folder.join(format!("{name}.cpp")), folder.join(format!("{name}.so")));
    std::fs::write(&file, text).unwrap();
    let compiler = Compiler::find().unwrap().program;
    let mut command = Command::new(compiler);
    command.args(["-std=c++17", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "-o"]).arg(&library).arg(&file);
    let output = command.args(flags).output().unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    // SAFETY: the library has no initialisers.
    Ok(unsafe { libloading::Library::new(&library) }.unwrap())
}

/// How many arguments are drawn from each range.
fn count(usual: usize) -> usize {
    std::env::var("STENCILC_ARGUMENTS").ok().and_then(|count| count.parse().ok()).unwrap_or(usual)
}

type Compare<R> = unsafe extern "C" fn(*const R, *const R, *const R, c_long, *mut c_long) -> f64;

/// The worst error of a function in each range.
fn measure<R: Number>(quad: &libloading::Library, function: Function, usual: usize) {
    let name = format!("{}_{}", function.name(), R::PRECISION.name());
    // SAFETY: it is declared so in quad.cpp.
    let compare: libloading::Symbol<Compare<R>> = unsafe { quad.get(&name) }.unwrap();
    let specials = specials::<R>();
    let pairs = specials.iter().flat_map(|&x| specials.iter().map(move |&y| [x, y])).collect::<Vec<_>>();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut sets = vec![("special", pairs)];
    for (range, draw) in ranges::<R>(function) {
        sets.push((range, (0..count(usual)).map(|_| draw(&mut random)).collect()));
    }
    for (range, arguments) in sets {
        let [x, y] = [0, 1].map(|index| arguments.iter().map(|pair| pair[index]).collect::<Vec<R>>());
        let found: Vec<R> = arguments.iter().map(|&pair| own(function, pair)).collect();
        let mut at = 0;
        // SAFETY: the three arrays are of this length.
        let error = unsafe { compare(x.as_ptr(), y.as_ptr(), found.as_ptr(), x.len() as c_long, &mut at) };
        let (x, y, found) = (x[at as usize], y[at as usize], found[at as usize]);
        println!("{name:9} {range:16} {error:.3} of {} at {x:?} {y:?}", arguments.len());
        assert!(error <= 2.0, "{name} is off by {error} units at {x:?}, {y:?}: {found:?}");
    }
}

#[test]
fn errors_are_at_most_two_units_in_the_last_place() {
    let folder = tempfile::tempdir().unwrap();
    let quad = match library(folder.path(), "quad", include_str!("functions/quad.cpp"), &["-lquadmath"]) {
        Ok(quad) => quad,
        Err(why) if why.contains("quadmath") || why.contains("__float128") => {
            println!("skipped: no libquadmath");
            return;
        }
        Err(why) => panic!("{why}"),
    };
    for function in UNARY.into_iter().chain(BINARY) {
        measure::<f64>(&quad, function, 20_000);
        measure::<f32>(&quad, function, 20_000);
    }
}

/// The bits of the C++ and of the Rust functions.
fn same<R: Number>(folder: &Path, c_type: &str) {
    let mut text = format!(
        "#include <cmath>\n#define __host__\n#define __device__\n#define __forceinline__ inline\n\
         #define __noinline__ __attribute__((noinline))\n{}",
        text(R::PRECISION)
    );
    for function in UNARY.into_iter().chain(BINARY) {
        let second = if BINARY.contains(&function) { ", y[n]" } else { "" };
        let name = function.name();
        text += &format!(
            "extern \"C\" void rows_{name}(const {c_type}* x, const {c_type}* y, {c_type}* out, long count)\n\
             {{\n    (void)y;\n    for (long n = 0; n < count; n++) out[n] = real_{name}(x[n]{second});\n}}\n"
        );
    }
    let name = format!("functions_{c_type}");
    let library = library(folder, &name, &text, &["-Wall", "-Wextra", "-Werror"]).unwrap();
    let mut random = Random(88_172_645_463_325_252);
    for function in UNARY.into_iter().chain(BINARY) {
        type Rows<R> = unsafe extern "C" fn(*const R, *const R, *mut R, c_long);
        // SAFETY: it was written above with this signature.
        let rows: libloading::Symbol<Rows<R>> = unsafe { library.get(format!("rows_{}", function.name())) }.unwrap();
        let specials = specials::<R>();
        let mut arguments: Vec<[R; 2]> = specials.iter().flat_map(|&x| specials.iter().map(move |&y| [x, y])).collect();
        for (_, draw) in ranges::<R>(function) {
            arguments.extend((0..count(200_000)).map(|_| draw(&mut random)));
        }
        let [x, y] = [0, 1].map(|index| arguments.iter().map(|pair| pair[index]).collect::<Vec<R>>());
        let mut found = vec![R::from_f64(0.0); x.len()];
        // SAFETY: the three arrays are of this length.
        unsafe { rows(x.as_ptr(), y.as_ptr(), found.as_mut_ptr(), x.len() as c_long) };
        for (&pair, found) in arguments.iter().zip(found) {
            let expected = own(function, pair);
            let same = expected.bits() == found.bits() || expected.is_nan() && found.is_nan();
            assert!(same, "{} of {pair:?} is {expected:?} in Rust and {found:?} in C++", function.name());
        }
        println!("{} {}: {} equal", function.name(), R::PRECISION.name(), arguments.len());
    }
}

#[test]
fn the_text_in_both_languages_gives_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    same::<f64>(folder.path(), "double");
    same::<f32>(folder.path(), "float");
}
