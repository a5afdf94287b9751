//! What is wrong with a call from Fortran, or cannot be built for one, is told.

use super::{compile_module, done, is_there, link, output};
use crate::common::folder::{Folder, text};
use std::fs;
use std::path::Path;

/// Calls that are wrong, each with what is told of it.
const WRONG: &[(&str, &str)] = &[
    ("hdiff(phi, coeff, res(:, :8, :)", "`res` has 8 cells along j, and `phi` has 9"),
    ("hdiff(phi, coeff(:, :, :0), res", "`coeff` has 0 elements along k"),
    ("hdiff(phi, coeff, res(12:1:-1, :, :)", "`res` runs backwards along its axis 1"),
    ("hdiff(phi(:, 9:1:-1, :), coeff, res", "`phi` runs backwards along its axis 2"),
    ("hdiff(wide(1:24:2, 1:9, 1:3), coeff, res", "elements of `phi` do not follow each other along its first axis"),
    ("hdiff(wide(1:12, 1:9, 1:3), coeff, res", "rows of `coeff` are 12 elements apart, those of `phi` 24"),
    ("hdiff(phi, coeff, tall(:, 1:9, 1:3)", "levels of `res` are 120 elements apart, those of `phi` 108"),
    ("hdiff(res, coeff, res", "`res` and `phi` begin at the same place"),
    ("hdiff(phi(:4, :, :), coeff(:4, :, :), res(:4, :, :)", "nothing can be computed: the grid has too few columns"),
];

#[test]
fn wrong_arrays_are_told() {
    if !is_there("gfortran", "gfortran") {
        return;
    }
    let folder = Folder::new();
    folder.done("build hdiff --fortran --host -o made");
    let made = folder.path("made");
    compile_module(&made, "hdiff", &[]);
    let calls: String =
        WRONG.iter().map(|(call, _)| format!("  call {call}, ierr=ierr, message=message)\n  call told()\n")).collect();
    let main = format!(
        "program caller
  use, intrinsic :: iso_c_binding
  use hdiff_stencil
  implicit none
  real(c_double) :: phi(12, 9, 3), coeff(12, 9, 3), res(12, 9, 3), wide(24, 10, 4), tall(12, 10, 3)
  character(len=200) :: message
  integer :: ierr
  phi = 1; coeff = 0.01_c_double; res = 0; wide = 1; tall = 1;
{calls}  call hdiff(phi, coeff, res, ierr=ierr, message=message)
  if (ierr /= 0 .or. message /= '') error stop 'a right call was refused'
  call hdiff(phi, coeff, res, async=1, stream=c_null_ptr)
  call hdiff(phi, coeff, res(:, :, :2))
contains
  subroutine told()
    if (ierr /= 1) error stop 'a wrong call was accepted'
    print '(a)', trim(message)
  end subroutine
end program
"
    );
    fs::write(made.join("caller.f90"), main).unwrap();
    link(&made, "hdiff", "caller.f90", &[]);
    let output = output(&made, "./caller", &[]);
    let said: Vec<String> = text(&output.stdout).lines().map(str::to_owned).collect();
    assert_eq!(said.len(), WRONG.len(), "{said:?}");
    for ((call, expected), said) in WRONG.iter().zip(&said) {
        assert!(said.starts_with(expected), "{call}: {said}");
    }
    // Without a place for the status the program ends.
    let error = text(&output.stderr);
    assert!(!output.status.success() && error.contains("hdiff: `res` has 2 cells along k, and `phi` has 3"), "{error}");
}

/// What a stencil says that it computes is not on every grid there: a launcher for any grid says so.
const PARTS: &str = "\
stencil parts {
    in a; out b
    param last: int = 4
    i 1..last; j 2; levels 1..last - 1
    b = a[i-1] + a[j+1] + a[k-1] + (if k + 1 < nk { a[k+1] } else { 0 })
}
stencil too_low { in a; out b; levels 0..nk - 1; b = a[k-1] }
stencil too_wide { in a; out b; i 1..ni; b = a[i-1] + a[i+1] }
stencil lifted { in a; param first: int = 2; out b; levels first..nk; b = a[k-2] }
stencil falls { in a; out b on (i, j, k+1); levels 0..nk + 1; sweep k down { b = if k == nk { 1 } else { b[k+1] + a } } }
";

#[test]
fn less_than_is_said_is_told() {
    if !is_there("gfortran", "gfortran") {
        return;
    }
    let folder = Folder::new();
    fs::write(folder.path("parts.stn"), PARTS).unwrap();
    let refused = "nothing can be computed: the grid has too few columns or levels, or fewer than the stencil says";
    let of_parts: &[(&str, bool)] = &[
        ("a, b, 4", true),
        ("a, b, 5", false),
        ("a, b, 12", false),
        ("a(:, :3, :), b(:, :3, :), 3", false),
        ("a(:, :, :2), b(:, :, :2), 4", false),
        ("a(:4, :, :), b(:4, :, :), 4", true),
        ("a(:3, :, :), b(:3, :, :), 4", false),
    ];
    let of_levels: &[(&str, bool)] =
        &[("a, b, 2", true), ("a, b, 1", false), ("a, b, 0", false), ("a, b, -5", false), ("a, b, 3", false)];
    let of_interfaces: &[(&str, bool)] = &[("a(:, :, :2), b", true)];
    for (stencil, calls) in [
        ("parts", of_parts),
        ("too_low", &[("a, b", false)][..]),
        ("too_wide", &[("a, b", false)][..]),
        ("lifted", of_levels),
        ("falls", of_interfaces),
    ] {
        folder.done(&format!("build parts.stn --stencil {stencil} --fortran --host -o {stencil}"));
        let made = folder.path(stencil);
        compile_module(&made, stencil, &[]);
        let called: String = (calls.iter())
            .map(|(call, _)| {
                format!("  call {stencil}({call}, ierr=ierr, message=message)\n  print '(a)', trim(message)\n")
            })
            .collect();
        let main = format!(
            "program caller
  use, intrinsic :: iso_c_binding
  use {stencil}_stencil
  implicit none
  real(c_double) :: a(9, 5, 3), b(9, 5, 3)
  character(len=200) :: message
  integer :: ierr
  a = 1; b = 0
{called}end program
"
        );
        fs::write(made.join("caller.f90"), main).unwrap();
        link(&made, stencil, "caller.f90", &[]);
        let said: Vec<String> = text(&output(&made, "./caller", &[]).stdout).lines().map(str::to_owned).collect();
        assert_eq!(said.len(), calls.len(), "{said:?}");
        for ((call, is_right), said) in calls.iter().zip(&said) {
            assert!(if *is_right { said.is_empty() } else { said.starts_with(refused) }, "{call}: {said}");
        }
    }
    // Parameters say which levels are computed of a grid that is known, too.
    folder.done("build parts.stn --stencil lifted --grid 9x5x3 -o known");
    let launcher = fs::read_to_string(folder.path("known/lifted.cu")).unwrap();
    for check in
        ["const int bound_0 = lifted_within_0(args, 9, 5, 3);", "bound_0 < 0 || bound_0 > 3", "k_first > bound_0"]
    {
        assert!(launcher.contains(check), "{check} in\n{launcher}");
    }
    // Without levels there is an interface, and nothing to read beside it.
    let launcher = fs::read_to_string(folder.path("falls/falls.cu")).unwrap();
    assert!(launcher.contains("args->nk <= 0"), "{launcher}");
}

#[test]
fn what_sweeps_were_built_for_is_looked_at() {
    if !is_there("gfortran", "gfortran") {
        return;
    }
    let folder = Folder::new();
    let sweeps = "stencil total { in a; out b; let half = 0.5 * a
        sweep k down { let c = if k == nk - 1 { half } else { half + 0.25 * c[k+1] } }
        sweep k up { b = if k == 0 { c } else { c - 0.5 * b[k-1] } } }";
    fs::write(folder.path("total.stn"), sweeps).unwrap();
    assert!(folder.refused("build total.stn --fortran -o made").contains("give the grid: --grid"));
    folder.done("build total.stn --grid 12x9x3 --fortran --host -o made");
    let made = folder.path("made");
    let head = fs::read_to_string(made.join("total.f90")).unwrap();
    assert!(head.contains("--grid 12x9x3 --fortran --host"), "{head}");
    compile_module(&made, "total", &[]);
    let main = "program caller
  use, intrinsic :: iso_c_binding
  use total_stencil
  implicit none
  real(c_double) :: a(12, 9, 3), b(12, 9, 3), wide(13, 9, 3), wider(13, 9, 3)
  character(len=200) :: message
  integer :: ierr
  a = 1; wide = 1
  call total(a, b)
  call total(a(:, :8, :), b(:, :8, :), ierr=ierr, message=message)
  print '(i0, 1x, a)', ierr, trim(message)
  call total(wide(:12, :, :), wider(:12, :, :), ierr=ierr, message=message)
  print '(i0, 1x, a)', ierr, trim(message)
end program
";
    fs::write(made.join("caller.f90"), main).unwrap();
    link(&made, "total", "caller.f90", &[]);
    let said = done(&made, "./caller", &[]);
    let expected = "1 the kernel was built for a grid of 12x9x3, and the arrays have 12x8x3 (the option --grid says which)\n\
        1 the kernel was built for whole arrays, and a section has other elements between its rows or levels\n";
    assert_eq!(said, expected);
}

#[test]
fn names_that_mean_something_are_others_and_that_is_told() {
    let folder = Folder::new();
    let long = "x".repeat(70);
    // Fields that differ by capitals, words that the module needs, and one that is longer than Fortran's may be.
    let stencil = format!(
        "stencil Sum {{ in A, a, stream, Size, _own, sum_args, {long}, double, if; param ierr: real = 2; out Message
            Message = A[i+1] + a + stream + Size + _own + sum_args + {long} + double * ierr }}"
    );
    // `if` is a word of the language.
    let stencil = stencil.replace(", if;", ";");
    fs::write(folder.path("sum.stn"), stencil).unwrap();
    let output = folder.run("build sum.stn --fortran --host -o made");
    let told = text(&output.stderr);
    assert!(output.status.success(), "{told}");
    for (what, from, to) in [
        ("stencil", "Sum", "run_Sum"),
        ("field", "a", "a_2"),
        ("field", "stream", "stream_2"),
        ("field", "Size", "Size_2"),
        ("field", "Message", "Message_2"),
        ("parameter", "ierr", "ierr_2"),
        ("field", long.as_str(), &long[..63]),
    ] {
        assert!(told.contains(&format!("the {what} `{from}` is called `{to}`")), "{what} {from}: {told}");
    }
    if !is_there("gfortran", "gfortran") {
        return;
    }
    compile_module(&folder.path("made"), "Sum", &["-fopenacc"]);
}

/// The lines that a refusal shows.
fn lines(told: &str) -> String {
    let lines: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix("    ")).map(str::trim).collect();
    assert!(lines.len() > 3, "{told}");
    lines.join("\n")
}

/// What runs programs is shown instead: lines that compile.
#[test]
fn lines_that_run_what_has_no_launcher_are_shown() {
    let folder = Folder::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let heat = "build heat --program heat_periodic --grid 9x9x9";
    let told = text(&folder.run(&format!("{heat} --host")).stderr);
    assert!(
        told.contains("help: leave out --host, or name a stencil on a grid, --stencil NAME; libstencilc runs it"),
        "{told}"
    );
    let expected = "stencilc_load(\"heat\", \"heat_periodic\", &own);\nstencilc_run_begin(own, NULL, arrays, 1, &run);\n\
        stencilc_run_step(run, 10, &done);\nstencilc_run_get(run, &t);";
    assert_eq!(lines(&told), expected);
    for call in [heat, "build airfoil --program airfoil_flow", "build airfoil --stencil res_calc"] {
        let told = text(&folder.run(&format!("{call} --host")).stderr);
        let own = lines(&told);
        let fields: String = own
            .lines()
            .filter_map(|line| {
                Some(format!("const StencilcArray {} = {{0}};\n", line.split_once("run, &")?.1.strip_suffix(");")?))
            })
            .filter(|line| !line.contains("done"))
            .collect();
        let source = format!(
            "#include <stencilc.h>\nint main(void) {{\nStencilcStencil* own; StencilcMesh* mesh; StencilcRun* run; uint64_t done;\n\
             const StencilcArray arrays[9] = {{0}};\n{fields}{own}\nreturn 0; }}\n"
        );
        fs::write(folder.path("lines.c"), source).unwrap();
        let include = root.join("c/include").display().to_string();
        done(&folder.path(""), "gcc", &["-std=c99", "-Werror=implicit", "-fsyntax-only", "-I", &include, "lines.c"]);
        if !is_there("gfortran", "gfortran") {
            continue;
        }
        let told = text(&folder.run(&format!("{call} --fortran")).stderr);
        let own = lines(&told);
        assert!(own.contains("call own%load(") && own.contains("call run%step()"), "{told}");
        let lines = own.lines().filter(|line| line.contains("given(") || line.contains("%get("));
        let mut names: Vec<&str> = lines.flat_map(|line| line.split('"').skip(1).step_by(2)).collect();
        names.sort_unstable();
        names.dedup();
        let source = format!(
            "program p\nuse, intrinsic :: iso_c_binding\nuse stencilc\nimplicit none\ntype(stencilc_stencil) :: own\n\
             type(stencilc_mesh) :: mesh\ntype(stencilc_run) :: run\nreal(c_double) :: {}\n{own}\nend program\n",
            names.iter().map(|name| format!("{name}(9, 9)")).collect::<Vec<_>>().join(", ")
        );
        fs::write(folder.path("lines.f90"), source).unwrap();
        let module = root.join("c/fortran/stencilc.f90").display().to_string();
        done(&folder.path(""), "gfortran", &["-fsyntax-only", &module, "lines.f90"]);
    }
}

#[test]
fn what_has_no_launcher_for_others_is_refused() {
    let folder = Folder::new();
    fs::write(folder.path("nan.stn"), "stencil n { in a; out b; param p: real = 0/0; b = p * a }").unwrap();
    fs::write(folder.path("large.stn"), "stencil n { in a; out b; param p: real = 1e300; b = p * a }").unwrap();
    fs::write(folder.path("sweeps.stn"), "stencil s { in a; out b; sweep k up { b = a } }").unwrap();
    for (call, because) in [
        (
            "build heat --program heat_periodic --grid 9x9x9 --fortran",
            "`heat_periodic` is a program, and `build` makes no launcher",
        ),
        ("build airfoil --stencil res_calc --host", "`res_calc` runs over a mesh, and `build` makes no launcher"),
        ("build airfoil --program airfoil_flow --host", "`airfoil_flow` is a program over a mesh"),
        (
            "build laplap --fortran --storage compressed",
            "`compressed` storage with columns fastest is none of plain arrays",
        ),
        ("build laplap --host --fastest levels", "`regular` storage with levels fastest is none of plain arrays"),
        ("build laplap --host --fields aos", "an array a field"),
        ("build laplap --fortran --grid 64x64x8", "takes extents and strides from its arguments"),
        ("build laplap --fortran --emit cuda", "cannot be used with"),
        ("build nan.stn --fortran", "the parameter `p` is NaN unless it is given, which is not finite"),
        ("build large.stn --fortran --precision f32", "the parameter `p`"),
        ("build laplap --host --access queue", "grid"),
        ("build sweeps.stn --host --grid there.npz", "there.npz"),
    ] {
        let output = folder.run(call);
        let told = text(&output.stderr);
        assert!(!output.status.success() && told.contains(because), "{call}\n{told}");
        assert!(!told.contains("panicked"), "{call}\n{told}");
    }
}
