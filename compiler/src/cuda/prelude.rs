//! Helper functions that generated code calls: operations of the language that C++ lacks or leaves undefined.

use super::host;
use super::print::SIDE_BY_SIDE;
use super::values::c_type;
use crate::device;
use crate::ir::{self, Precision};
use crate::kernel::{Array, Function, Kernel, Math, Operation, Space, Statement, Type, Unroll, ValueId};
use crate::math::cpp::{functions, in_precision};
use crate::sections::{self, File, Section, sections};
use std::collections::BTreeSet;

/// Names of the functions of the prelude that are called.
pub type Helpers = BTreeSet<&'static str>;

/// What a kernel needs before it, and what something else calls. Its reals are of one precision; if it calls no function of them, of
/// that of the others.
pub fn of_kernel(kernel: &Kernel, others: &Helpers, mut precision: Precision) -> Vec<String> {
    let mut names: Helpers = called(kernel).union(others).copied().collect();
    let (mut things, mut has_runs) = (BTreeSet::new(), false);
    for (id, value) in kernel.values.iter() {
        match &value.operation {
            Operation::Call(_, operands) => {
                let kind = kind_of_call(kernel, id, operands);
                precision = if kind.is_real() { kind.precision() } else { precision };
            }
            Operation::Follow(follow) => {
                names.insert("neighbour_of");
                things.insert(if follow.patterns.is_some() { "patterns" } else { "tables" });
            }
            Operation::Load(array, _) => has_runs |= kernel.arrays[*array].element != value.kind,
            _ => {}
        }
    }
    for (_, array) in kernel.arrays.iter() {
        match array.space {
            Space::Shared(_) => _ = names.insert("STENCILC_SHARED"),
            Space::Dynamic(_) => _ = names.insert("STENCILC_DYNAMIC_SHARED"),
            _ => {}
        }
    }
    let mut together = BTreeSet::new();
    for statement in kernel.body.all() {
        match statement {
            Statement::Do(routine, _) => _ = names.insert(routine.name()),
            Statement::For(own) if own.unroll == Unroll::SideBySide => _ = names.insert(SIDE_BY_SIDE),
            Statement::Store(array, _, value) => {
                has_runs |= kernel.values[*value].kind != kernel.arrays[*array].element;
            }
            Statement::AtomicAdd(array, _, values) if values.len() > 1 => {
                together.insert((values.len(), c_type(kernel.arrays[*array].element)));
            }
            _ => {}
        }
    }
    let others = [
        (has_runs, &["load_run", "store_run"][..]),
        (kernel.attempt.is_some(), &QUOTIENTS),
        (kernel.watch.is_some(), &["Watch"]),
    ];
    names.extend(others.into_iter().filter(|(is_needed, _)| *is_needed).flat_map(|(_, names)| names));
    sections::add_used(&mut names);
    things.insert(precision.name());
    let chosen = |file: File| {
        let is_chosen = |own: &&Section| names.contains(own.name) && (own.of.is_empty() || things.contains(own.of));
        sections(file).filter(is_chosen).flat_map(|own| own.text.lines()).map(str::to_owned)
    };
    let language = chosen(File::Language).map(|line| in_precision(&line, precision));
    let (own, has_far) = functions(&names, precision);
    let mut functions: Vec<String> = language.chain(own).collect();
    let mut lines = Vec::new();
    // How functions are declared: those that are part of a kernel, and those that it rarely needs.
    if !functions.is_empty() {
        lines.push("#define STENCILC_FUNCTION static __host__ __device__ __forceinline__".to_owned());
    }
    if has_far {
        lines.push("#define STENCILC_FAR_FUNCTION static __host__ __device__ __noinline__".to_owned());
    }
    lines.append(&mut functions);
    lines.extend(chosen(File::Prelude));
    for (lanes, c_type) in together {
        let adding = sections(File::Prelude).filter(|own| own.name == format!("add_{lanes}"));
        lines.extend(adding.flat_map(|own| own.text.lines()).map(|line| line.replace("NUMBER", &c_type)));
    }
    lines.extend(kernel.arrays.iter().filter_map(|(_, array)| constant(array)));
    lines.extend(device::of(&names));
    lines.extend(chosen(File::Rows));
    lines
}

/// What divides in a kernel that is tried.
const QUOTIENTS: [&str; 2] = ["real_inverse", "real_quotient"];

/// The text of the functions that share the inverses of divisors: `real_inverse(b, is_usual)` and
/// `real_quotient(a, b, inverse, is_quick, is_usual)`.
pub fn quotients(precision: Precision) -> String {
    let is_own = |own: &&Section| QUOTIENTS.contains(&own.name) && own.of == precision.name();
    sections(File::Prelude).filter(is_own).map(|own| format!("{}\n", own.text)).collect()
}

/// The functions that a kernel calls.
pub fn called(kernel: &Kernel) -> BTreeSet<&'static str> {
    let calls = kernel.values.iter().filter_map(|(id, value)| match &value.operation {
        Operation::Call(function, operands) => Some(function_of(kernel, id, *function, operands)),
        _ => None,
    });
    calls.collect()
}

/// What a call of a kernel is of: functions are told apart by what they take.
pub fn function_of(kernel: &Kernel, call: ValueId, function: Function, operands: &[ValueId]) -> &'static str {
    function_name(function, kind_of_call(kernel, call, operands))
}

fn kind_of_call(kernel: &Kernel, call: ValueId, operands: &[ValueId]) -> Type {
    kernel.values[operands.first().copied().unwrap_or(call)].kind
}

/// The function for operands of a type: of the prelude, or of CUDA.
pub fn function_name(function: Function, kind: Type) -> &'static str {
    let of = |real: &'static str, whole: &'static str| if kind.is_real() { real } else { whole };
    let either = |double: &'static str, single: &'static str| match kind.precision() {
        Precision::F32 => single,
        Precision::F64 => double,
    };
    let inexact = |math: Math, own: &'static str, double: &'static str, single: &'static str| match math {
        Math::Own => own,
        Math::Device => either(double, single),
    };
    match function {
        Function::WrappingAdd => "int_add",
        Function::WrappingSub => "int_sub",
        Function::WrappingMul => "int_mul",
        Function::Rem => of("real_rem", "int_rem"),
        Function::Less => "int_less",
        Function::Opaque => "real_opaque",
        Function::ClusterRank => "cluster_rank",
        Function::Turned => "real_turned",
        Function::Inverse => "real_inverse",
        Function::Quotient => "real_quotient",
        Function::Interleaved(_) => "interleaved",
        Function::WatchShift | Function::WatchLevel => "allows",
        Function::WatchNeighbour => "leads",
        Function::Scalar(function, math) => match function {
            ir::Function::Min => of("real_min", "int_min"),
            ir::Function::Max => of("real_max", "int_max"),
            ir::Function::Sign => of("real_sign", "int_sign"),
            ir::Function::Abs => of(either("fabs", "real_abs"), "int_abs"),
            ir::Function::Sqrt => either("sqrt", "sqrtf"),
            ir::Function::Floor => either("floor", "floorf"),
            ir::Function::Ceil => either("ceil", "ceilf"),
            ir::Function::CopySign => "real_copysign",
            ir::Function::Fma => either("fma", "fmaf"),
            ir::Function::Exp => inexact(math, "real_exp", "exp", "expf"),
            ir::Function::Log => inexact(math, "real_log", "log", "logf"),
            ir::Function::Pow => inexact(math, "real_pow", "pow", "powf"),
            ir::Function::Sin => inexact(math, "real_sin", "sin", "sinf"),
            ir::Function::Cos => inexact(math, "real_cos", "cos", "cosf"),
            ir::Function::Tan => inexact(math, "real_tan", "tan", "tanf"),
            ir::Function::Atan => inexact(math, "real_atan", "atan", "atanf"),
            ir::Function::Atan2 => inexact(math, "real_atan2", "atan2", "atan2f"),
            ir::Function::Tanh => inexact(math, "real_tanh", "tanh", "tanhf"),
            ir::Function::Cbrt => inexact(math, "real_cbrt", "cbrt", "cbrtf"),
        },
    }
}

/// `__constant__ int table[2] = {1, 2};`
fn constant(array: &Array) -> Option<String> {
    let Space::Constant(values) = &array.space else { return None };
    let name = array.watched.as_ref().map_or(&array.name, |watched| &watched.entries);
    let length = values.len();
    Some(format!(
        "__constant__ int {name}[{length}] = {{\n    {}\n}};",
        host::wrapped(values.iter().map(i32::to_string))
    ))
}
