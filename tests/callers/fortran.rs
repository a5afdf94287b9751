//! Stencils that are called from Fortran, as OpenACC programs are, on sections of larger arrays: every bit is the interpreter's.

use super::{compile_module, done, is_there, link};
use crate::common::folder::Folder;
use crate::common::{lowered, problem, stencils};
use rayon::prelude::*;
use std::fmt::Write as _;
use std::fs;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Field, Kind, Levels, Precision, Role, Stencil};
use stencilc_runtime::problem::{Problem, element_of};
use stencilc_runtime::verify::expect;
use stencilc_runtime::{Data, Element};

/// Fields of every kind and place, and parameters of every kind, with values and without.
const KINDS: &str = "
stencil kinds {
    in a; in single: f32; in n: int; in flag: bool; in ground on (i, j); in w on (k); in faces on (i, j, k+1); in z on (k+1)
    inout t
    param alpha: real = -1/3; param scale: real; param shift: int = -2; param least: int = -2147483648; param up: bool = true
    out r; out count: int; out is_up: bool; out low: f32
    let mean = alpha * (a[i+1] - a[i-1]) + single
    r = if flag && up { mean } else { scale * ground[j-1] + w + faces[k+1] - faces + z[k+1] }
    t = t[i-1] + t[j+1] * 0.5
    count = if n + shift > least { n + shift } else { n }
    is_up = flag[i+1] || a > 0.5
    low = a * 0.25
}
";

/// Sweeps that keep values of all levels.
const SWEEPS: &str = "
stencil total {
    in a; out b
    let half = 0.5 * a
    sweep k down { let c = if k == nk - 1 { half } else { half + 0.25 * c[k+1] } }
    sweep k up { b = if k == 0 { c } else { c - 0.5 * b[k-1] } }
}
";

/// What the module takes for an array: the data of it before, and, where it is written, afterwards.
struct Array<'a> {
    field: &'a Field,
    before: &'a Data,
    after: Option<&'a Data>,
}

/// The arrays in the order of the module's arguments: what is read, then what is written.
fn arrays<'a>(problem: &'a Problem, after: &'a [Option<Data>]) -> Vec<Array<'a>> {
    let fields = || problem.stencil.fields.iter().map(|(_, field)| field).enumerate();
    let read = fields()
        .filter(|(_, field)| field.role.is_read())
        .filter_map(|(number, field)| Some(Array { field, before: problem.inputs[number].as_ref()?, after: None }));
    let written = fields().filter(|(_, field)| field.role.is_written()).filter_map(|(number, field)| {
        Some(Array { field, before: problem.outputs[number].as_ref()?, after: Some(after[number].as_ref()?) })
    });
    read.chain(written).collect()
}

fn bytes(data: &Data) -> Vec<u8> {
    match data {
        Data::F32(numbers) => numbers.iter().flat_map(|own| own.to_ne_bytes()).collect(),
        Data::F64(numbers) => numbers.iter().flat_map(|own| own.to_ne_bytes()).collect(),
        Data::I32(numbers) => numbers.iter().flat_map(|own| own.to_ne_bytes()).collect(),
        Data::Bool(numbers) => numbers.clone(),
    }
}

fn c_type(element: Element) -> [&'static str; 2] {
    match element {
        Element::F32 => ["real(c_float)", "-99.0_c_float"],
        Element::F64 => ["real(c_double)", "-99.0_c_double"],
        Element::I32 => ["integer(c_int)", "-99_c_int"],
        Element::Bool => ["logical(c_bool)", ".false._c_bool"],
    }
}

/// A program that reads arrays into sections of larger ones, or whole ones, calls the module, writes what came of it, and looks whether
/// anything around the sections has changed.
fn program(problem: &Problem, arrays: &[Array], is_section: bool) -> String {
    let Grid { ni, nj, nk, .. } = problem.grid;
    let (left, right, bottom, top) = if is_section { (3, 4, 1, 2) } else { (0, 0, 0, 0) };
    let name = &problem.stencil.name;
    let mut declared = String::new();
    let (mut begin, mut end, mut passed) = (String::new(), String::new(), Vec::new());
    for (number, Array { field, after, .. }) in arrays.iter().enumerate() {
        let [c_type, fill] = c_type(element_of(field.stored, problem.precision));
        let levels = match field.place.levels {
            Levels::None => None,
            Levels::Full => Some(nk),
            Levels::Interfaces => Some(nk + 1),
        };
        let mut axes = Vec::new();
        if field.place.horizontal {
            axes.push((ni + left + right, format!("{}:{}", left + 1, left + ni)));
            axes.push((nj + bottom + top, format!("{}:{}", bottom + 1, bottom + nj)));
        }
        // Kernels read levels of columns alone together, so these have no room.
        axes.extend(levels.map(|levels| (levels, format!("1:{levels}"))));
        let colons = vec![":"; axes.len()].join(", ");
        let lengths = axes.iter().map(|(length, _)| length.to_string()).collect::<Vec<_>>().join(", ");
        let section = axes.iter().map(|(_, section)| section.as_str()).collect::<Vec<_>>().join(", ");
        let array = format!("x{number}");
        writeln!(declared, "  {c_type}, allocatable :: {array}({colons})").unwrap();
        writeln!(begin, "  allocate ({array}({lengths}))\n  {array} = {fill}\n  read (10) {array}({section})").unwrap();
        if after.is_some() {
            writeln!(end, "  write (11) {array}({section})\n  {array}({section}) = {fill}").unwrap();
            let equal = if c_type.starts_with("logical") { ".neqv." } else { "/=" };
            writeln!(end, "  if (any({array} {equal} {fill})) error stop 'written around {array}'").unwrap();
        }
        passed.push(format!("{array}({section})"));
    }
    for ((_, param), value) in problem.stencil.params.iter().zip(&problem.params) {
        if param.default.is_some() {
            continue;
        }
        passed.push(match value {
            Value::Real(value) if problem.precision == Precision::F32 => format!("{:e}_c_float", *value as f32),
            Value::Real(value) => format!("{value:e}_c_double"),
            Value::Int(value) => format!("{value}_c_int"),
            Value::Bool(value) => format!(".{value}."),
        });
    }
    let names: Vec<String> = (0..arrays.len()).map(|number| format!("x{number}")).collect();
    format!(
        "program caller
  use, intrinsic :: iso_c_binding
  use {name}_stencil, only: {name}
  implicit none
{declared}  character(len=200) :: message
  integer :: ierr
  open (10, file='before', access='stream', form='unformatted', status='old')
  open (11, file='after', access='stream', form='unformatted', status='replace')
{begin}  !$acc data copy({})
  call {name}( &
    {}, ierr=ierr, message=message)
  !$acc end data
  if (ierr /= 0) error stop trim(message)
{end}end program
",
        names.join(", "),
        passed.join(", &\n    "),
    )
}

/// Calls a stencil from Fortran, and compares. It is in a file of that name, or comes along.
fn call(file: &str, text: Option<&str>, stencil: &Stencil, precision: Precision, options: &[&str]) {
    let name = &stencil.name;
    let grid = Grid::rows(23, 21, 13);
    let problem = problem(stencil, precision, grid, &[]);
    let expected = expect(&problem, &|_| {}).unwrap_or_else(|error| panic!("{name}: {error}"));
    let folder = Folder::new();
    if let Some(text) = text {
        fs::write(folder.path(file), text).unwrap();
    }
    let of_grid = if stencil.sweeps.is_empty() { "" } else { "--grid 23x21x13" };
    let precise = precision.name();
    folder.done(&format!("build {file} --stencil {name} --precision {precise} {of_grid} --fortran --host -o made"));
    let made = folder.path("made");
    let arrays = arrays(&problem, &expected.outputs);
    // What sweeps have been built for are whole arrays.
    let main = program(&problem, &arrays, stencil.sweeps.is_empty());
    fs::write(made.join("caller.f90"), main).unwrap();
    fs::write(made.join("before"), arrays.iter().flat_map(|own| bytes(own.before)).collect::<Vec<u8>>()).unwrap();
    compile_module(&made, name, options);
    link(&made, name, "caller.f90", options);
    done(&made, "./caller", &[]);
    let found = fs::read(made.join("after")).unwrap();
    let mut rest = &found[..];
    for Array { field, after, .. } in &arrays {
        let Some(after) = after else { continue };
        let expected = bytes(after);
        let (own, others) = rest.split_at(expected.len());
        rest = others;
        let wrong = own.iter().zip(&expected).filter(|(own, expected)| own != expected).count();
        assert_eq!(wrong, 0, "bytes of `{}` of {name}, {precise}, differ", field.name);
    }
    assert!(rest.is_empty());
}

#[test]
fn every_stencil_that_comes_along_has_the_bits_of_the_interpreter() {
    if !is_there("gfortran", "gfortran") {
        return;
    }
    let all: Vec<(String, Stencil)> = stencils()
        .into_iter()
        .flat_map(|(name, text)| lowered(&name, &text).into_iter().map(move |own| (name.clone(), own)))
        .collect();
    assert!(all.len() > 8, "{}", all.len());
    all.par_iter().for_each(|(file, stencil)| call(file, None, stencil, Precision::F64, &["-fopenacc"]));
}

#[test]
fn every_kind_of_field_and_parameter_arrives() {
    if !is_there("gfortran", "gfortran") {
        return;
    }
    let kinds = &lowered("kinds", KINDS)[0];
    assert!(kinds.fields.iter().any(|(_, field)| field.role == Role::InOut));
    let of = |kind| kinds.params.iter().any(|(_, param)| param.kind == kind);
    assert!(of(Kind::Real) && of(Kind::Int) && of(Kind::Bool));
    for precision in [Precision::F64, Precision::F32] {
        for options in [&[][..], &["-fopenacc"], &["-fopenmp"]] {
            call("kinds.stn", Some(KINDS), kinds, precision, options);
        }
        call("total.stn", Some(SWEEPS), &lowered("total", SWEEPS)[0], precision, &[]);
    }
}

/// Numbers of the call say where it is computed, and all else stays as it is.
const PARTS: &str = "\
stencil strip {
    in a, b
    out r, q
    param wall: int = 4
    i wall - 1..ni - wall
    j 2..nj - 1
    levels 1..nk - 1
    r = a[i-1] + b[j+1]
    q = 2 * a
}
stencil edge { inout s; param last: int = 2; j nj - last; s = s[i-1] + 1 }
";

#[test]
fn parts_of_a_grid_are_computed() {
    if !is_there("gfortran", "gfortran") {
        return;
    }
    for stencil in lowered("parts", PARTS) {
        call("parts.stn", Some(PARTS), &stencil, Precision::F64, &[]);
    }
}
