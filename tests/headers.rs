//! Headers and launchers of built kernels, as compilers of C and C++ take them in all dialects, with names that mean something
//! there.

mod common;

use common::{combinations_for, lowered, problem};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use stencilc_compiler::cuda::{self, Built};
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::{Precision, Stencil};
use stencilc_compiler::names::Names;
use stencilc_compiler::plan::{self, Choices};
use stencilc_compiler::source::Source;
use stencilc_runtime::emulate::{Compiler, Settings};
use stencilc_runtime::verify::plan_for;

/// What a launcher needs of CUDA's own headers.
const RUNTIME: &str = "
#ifndef RUNTIME
#define RUNTIME
#include <stddef.h>
typedef struct CUstream_st* cudaStream_t;
typedef enum { cudaSuccess = 0, cudaErrorInvalidValue = 1 } cudaError_t;
#define cudaHostAllocDefault 0x00
#ifdef __cplusplus
#define __global__
#define __shared__ static
#define __constant__ static
#define __align__(bytes)
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
static struct { int x, y, z; } blockIdx, blockDim, threadIdx;
void __syncthreads();
template <class T> T __shfl_sync(unsigned, T, int, int = 32);
template <class T> T __shfl_down_sync(unsigned, T, unsigned, int = 32);
struct dim3 { dim3(unsigned, unsigned = 1, unsigned = 1) {} };
template <class T> cudaError_t cudaGetSymbolAddress(void**, const T&) { return cudaSuccess; }
cudaError_t cudaGetLastError();
#endif
#endif
";

/// Keywords of C and C++ as their standards list them, and words of GNU C and of CUDA.
const WORDS: &str = "
alignas alignof and and_eq asm atomic_cancel auto bitand bitor bool break case catch char char16_t char32_t char8_t class
co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue contract_assert decltype
default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable
namespace new noexcept not not_eq nullptr operator or or_eq private protected public reflexpr register reinterpret_cast
requires restrict return short signed sizeof static static_assert static_cast struct switch synchronized template this
thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using virtual void volatile wchar_t
while xor xor_eq final override import module linux unix i386 errno signbit isnan isinf assert NULL EOF INT_MAX M_PI M_PI_2
blockIdx threadIdx blockDim gridDim warpSize dim3 cudaStream_t cudaSuccess cudaHostAllocDefault args stream block blocks
nk ni nj plane row k_first k_end i_first nk_of_grid _1 __1 _ __ _x x_ a__b size_t printf min max Run Watch
";

/// Dialects of C, from the oldest that has comments as ours and `long long` to the newest.
const C: [&str; 5] = ["gnu89", "c99", "gnu17", "c2x", "gnu2x"];

/// Dialects of C++.
const CPP: [&str; 4] = ["c++98", "gnu++17", "c++20", "gnu++23"];

/// Which of these the language takes as names.
fn possible<'a>(words: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let is_right = |word: &&str| {
        let text = format!("stencil s {{ in {word}; out result; result = {word} }}");
        stencilc_compiler::check(&Source::new("", text)).is_ok()
    };
    words.filter(is_right).collect()
}

fn compiles(program: &Path, options: &[&str], file: &Path) {
    let output =
        Command::new(program).args(["-fsyntax-only", "-Wall", "-Werror"]).args(options).arg(file).output().unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    assert!(output.status.success(), "{options:?}: {}\n{text}", String::from_utf8_lossy(&output.stderr));
}

/// Has the header compiled in dialects of C and of C++, and the source by a C++ compiler that starts kernels as it calls
/// functions.
fn check(built: &Built, stem: &str, of_c: &[&str], of_cpp: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let header = format!("{stem}.h");
    std::fs::write(path("cuda_runtime_api.h"), RUNTIME).unwrap();
    std::fs::write(path(&header), &built.header).unwrap();
    std::fs::write(path("user.c"), format!("#include \"{header}\"\n")).unwrap();
    let calls = built.source.replace("<<<blocks, block, 0, stream>>>(", "(");
    std::fs::write(path("kernel.cpp"), format!("#include <math.h>\n#include <cuda_runtime_api.h>\n{calls}")).unwrap();
    let include = format!("-I{}", folder.path().display());
    let program = Compiler::find().unwrap().program;
    for dialect in of_c {
        compiles(&program, &["-x", "c", &format!("-std={dialect}"), &include], &path("user.c"));
    }
    for dialect in of_cpp {
        compiles(&program, &["-x", "c++", &format!("-std={dialect}"), &include], &path("user.c"));
    }
    let lenient = ["-Wno-unknown-pragmas", "-Wno-unused", "-Wno-maybe-uninitialized"];
    compiles(&program, &[&["-std=gnu++17", include.as_str()], &lenient[..]].concat(), &path("kernel.cpp"));
}

fn any(stencil: &Stencil, choices: &Choices) -> Built {
    let stencil = plan::prepare(stencil, choices.precision, true);
    cuda::build(&plan::plan(&stencil, choices, None).unwrap()).unwrap()
}

#[test]
fn names_that_mean_something_are_compiled_as_c_and_as_cpp() {
    let words = possible(WORDS.split_whitespace());
    assert!(words.len() > 100);
    let sum = words.join(" + ");
    let fields = format!("stencil typeof {{ in {}; out result; result = {sum} }}", words.join(", "));
    let params = words.iter().map(|word| format!("param {word}: int")).collect::<Vec<_>>().join("; ");
    let divided = words.iter().map(|word| format!("k % {word}")).collect::<Vec<_>>().join(" + ");
    let params = format!(
        "stencil _1 {{ in cell; {params}; out result; result = if {divided} > 1 {{ cell }} else {{ cell[k-1] }} }}"
    );
    for (stem, text) in [("typeof", &fields), ("_1", &params)] {
        let stencil = lowered(stem, text).remove(0);
        for storage in ["regular", "compressed", "uncompressed"] {
            check(&any(&stencil, &Choices { storage: storage.into(), ..Choices::default() }), stem, &C, &CPP);
        }
    }
}

#[test]
fn every_built_kernel_is_compiled_with_its_launcher() {
    let text = "stencil whole {
        in a, double; in z on (i, j, k+1); in w on (k); param nk_of: int = 2; param plane: real = 1; out r
        r = if k % nk_of == 0 { plane * (a[i+1] - a[i-1]) + z[k+1] * w } else { double[j-1] }
    }";
    let stencil = lowered("whole", text).remove(0);
    let settings = problem(&stencil, Precision::F64, Grid::rows(9, 7, 4), &[]);
    for choices in combinations_for(&stencil) {
        check(&any(&stencil, &choices), "whole", &["gnu17"], &[]);
        check(&cuda::build(&plan_for(&settings, &choices).unwrap()).unwrap(), "whole", &["gnu17"], &[]);
    }
}

#[test]
fn stencils_whose_names_differ_in_capitals_have_headers_of_their_own() {
    let of =
        |name: &str| any(&lowered(name, &format!("stencil {name} {{ in a; out b; b = a }}"))[0], &Choices::default());
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cuda_runtime_api.h"), RUNTIME).unwrap();
    for name in ["foo", "FOO"] {
        std::fs::write(folder.path().join(format!("{name}.h")), of(name).header).unwrap();
    }
    let user = "#include \"foo.h\"\n#include \"FOO.h\"\nfoo_args one; FOO_args other;\n";
    std::fs::write(folder.path().join("user.c"), user).unwrap();
    let include = format!("-I{}", folder.path().display());
    compiles(&Compiler::find().unwrap().program, &["-x", "c", &include], &folder.path().join("user.c"));
}

#[test]
fn no_macro_of_a_compiler_or_of_a_header_is_a_name() {
    let headers = "#include <limits.h>\n#include <math.h>\n#include <stdlib.h>\n#include <string.h>\n#include <time.h>\n#include <stdio.h>
        #include <errno.h>\n#include <assert.h>\n#include <stdint.h>\n#include <stdbool.h>\n";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("headers.c");
    std::fs::write(&file, headers).unwrap();
    let program = Compiler::find().unwrap().program;
    let mut macros = BTreeSet::new();
    for (language, dialect) in [
        ("c", "gnu89"),
        ("c", "c99"),
        ("c", "gnu17"),
        ("c", "gnu2x"),
        ("c++", "gnu++98"),
        ("c++", "gnu++17"),
        ("c++", "gnu++23"),
    ] {
        let output = Command::new(&program)
            .args(["-E", "-dM", "-D_GNU_SOURCE", "-x", language, &format!("-std={dialect}")])
            .arg(&file)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8(output.stdout).unwrap();
        let names = said.lines().filter_map(|line| line.strip_prefix("#define ")?.split([' ', '(']).next());
        macros.extend(names.map(str::to_owned));
    }
    assert!(macros.len() > 300);
    for name in &macros {
        let found = Names::default().fresh(name);
        assert!(!macros.contains(&found), "the macro {name} becomes {found}");
    }
}

#[test]
fn sizes_are_declared_wherever_a_sweep_reads() {
    // A sweep loads fields before it computes: that alone needs the number of levels here.
    let text = "stencil s { in a; in z on (i, j, k+1); out w; sweep k up { w = z[k+1] * a } }
        stencil t { in a; in z on (i, j, k+1); out w; sweep k down { w = z[k+1] * a - z } }
        stencil u { in a; in z on (k+1); out w; sweep k up { w = if k == 0 { a } else { w[k-1] + z[k+1] * a } } }";
    for stencil in lowered("sweeps", text) {
        let problem = problem(&stencil, Precision::F64, Grid::rows(7, 5, 11), &[]);
        assert!(common::check_variants(&problem, |number| number % 3 == 0) > 3);
        for choices in combinations_for(&stencil) {
            let kernel = cuda::print(&plan_for(&problem, &choices).unwrap()).unwrap();
            Compiler::find().unwrap().compile(&[(&kernel).into()], &Settings::default()).unwrap();
            check(&any(&stencil, &choices), &stencil.name, &[], &[]);
        }
    }
}
