//! Headers and launchers of built kernels, as compilers of C and C++ take them in all dialects, with names that mean something
//! there.

use crate::common::{combinations_for, lowered, problem};
use std::collections::BTreeSet;
use std::process::Command;
use stencilc_compiler::cuda::{self, Built};
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::{Precision, Stencil};
use stencilc_compiler::names::Names;
use stencilc_compiler::plan::{self, Choices};
use stencilc_compiler::source::Source;
use stencilc_compiler::storage::fastest::Fastest;
use stencilc_runtime::emulate::{Compiler, Host, Settings};
use stencilc_runtime::verify::plan_for;

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

/// Has the header compiled in dialects of C and of C++, and the launcher as C++.
fn check(built: &Built, stem: &str, of_c: &[&str], of_cpp: &[&str]) {
    let host = Host { stem, header: &built.header, source: &built.source };
    let found = Compiler::find().unwrap().check_host(&host, of_c, of_cpp, &["-Wall", "-Werror"]);
    found.unwrap_or_else(|error| panic!("{error}\n{}\n{}", built.header, built.source));
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
    let by_levels = combinations_for(&stencil).map(|own| Choices { fastest: Fastest::Levels, ..own });
    let by_levels = by_levels.filter(|own| own.access == "idxvar");
    for choices in combinations_for(&stencil).chain(by_levels) {
        // Walks are for one grid.
        if !choices.walks() {
            check(&any(&stencil, &choices), "whole", &["gnu17"], &[]);
        }
        let built = cuda::build(&plan_for(&settings, &choices).unwrap()).unwrap();
        let Some((_, launch)) = built.source.split_once("<<<blocks, block, ") else { panic!("{}", built.source) };
        let (bytes, _) = launch.split_once(", stream>>>").unwrap();
        let given = format!("cudaFuncAttributeMaxDynamicSharedMemorySize, {bytes})");
        assert!(bytes == "0" || built.source.contains(&given), "{}", built.source);
        check(&built, "whole", &["gnu17"], &[]);
    }
}

#[test]
fn stencils_whose_names_differ_in_capitals_have_headers_of_their_own() {
    let of =
        |name: &str| any(&lowered(name, &format!("stencil {name} {{ in a; out b; b = a }}"))[0], &Choices::default());
    // Both in one file.
    let header = format!("{}\n{}\ntypedef foo_args one; typedef FOO_args other;\n", of("foo").header, of("FOO").header);
    let host = Host { stem: "both", header: &header, source: "" };
    Compiler::find().unwrap().check_host(&host, &["gnu17"], &["gnu++17"], &[]).unwrap();
}

#[test]
fn a_broken_header_or_launcher_is_refused() {
    let check = |header: &str, source: &str| {
        Compiler::find().unwrap().check_host(&Host { stem: "own", header, source }, &["gnu17"], &["gnu++17"], &[])
    };
    assert!(check("struct own { int x; };", "int launch() { return 0; }").is_ok());
    for (header, source) in
        [("struct own { int while; };", ""), ("struct own { int new; };", ""), ("", "int launch( {")]
    {
        let told = check(header, source).unwrap_err();
        assert!(told.message.contains("does not compile the header and launcher of own"), "{told}");
    }
}

#[test]
fn no_macro_of_a_compiler_or_of_a_header_is_a_name() {
    // Those of C and of POSIX.
    let headers = "aio arpa/inet assert complex cpio ctype dirent dlfcn errno fcntl fenv float fmtmsg fnmatch ftw getopt glob grp iconv
        ifaddrs inttypes iso646 langinfo libgen limits locale math monetary mqueue net/if netdb netinet/in netinet/tcp nl_types poll
        pthread pwd regex sched search semaphore setjmp signal spawn stdarg stdbool stddef stdint stdio stdlib string strings sys/ipc
        sys/mman sys/msg sys/resource sys/select sys/sem sys/shm sys/socket sys/stat sys/statvfs sys/time sys/times sys/types sys/uio
        sys/un sys/utsname sys/wait syslog tar termios time ulimit unistd utime utmpx wchar wctype wordexp";
    let headers: String = headers.split_whitespace().map(|name| format!("#include <{name}.h>\n")).collect();
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
        // Those that take arguments are none where no bracket follows, and none follows here.
        let words = said.lines().filter_map(|line| line.strip_prefix("#define ")?.split(' ').next());
        let names = words.filter(|word| !word.contains('('));
        macros.extend(names.map(str::to_owned));
    }
    assert!(macros.len() > 1000);
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
        assert!(crate::common::check_variants(&problem, |number| number % 3 == 0) > 3);
        for choices in combinations_for(&stencil) {
            let kernel = cuda::print(&plan_for(&problem, &choices).unwrap()).unwrap();
            Compiler::find().unwrap().compile(&[(&kernel).into()], &Settings::default()).unwrap();
            check(&any(&stencil, &choices), &stencil.name, &[], &[]);
        }
    }
}

#[test]
fn stencils_whose_kernels_would_be_called_alike_are_refused() {
    let told = |one: &str, other: &str| {
        let text = [one, other].map(|name| format!("stencil {name} {{ in a; out b; b = a }}\n")).concat();
        let found = stencilc_compiler::check(&Source::new("", text)).diagnostics;
        found.into_iter().map(|found| found.message).collect::<Vec<_>>().join("\n")
    };
    for (one, other) in [("_1", "__1"), ("_1", "v_1"), ("a", "a_"), ("a_b", "a__b"), ("cudaX", "v_cudaX")] {
        assert!(told(one, other).contains("would have the same name"), "{one} {other}: {}", told(one, other));
    }
    assert_eq!(told("foo", "FOO"), "");
    assert_eq!(told("a", "b"), "");
}
