//! Helper functions that generated code calls: operations of the language that C++ lacks or leaves undefined.

use super::values::c_type;
use super::{atomics, functions, host, quotients, rows};
use crate::device;
use crate::ir::{self, Precision};
use crate::kernel::{Array, Block, Function, Kernel, Math, Operation, Space, Statement, Type, ValueId};
use std::collections::BTreeSet;

/// Names of the functions of the prelude that are called.
pub type Helpers = BTreeSet<&'static str>;

/// Name and text of each function. `REAL`, `FMOD`, `FABS`, `COPYSIGN` and `REGISTER` stand for those of the chosen
/// precision.
const FUNCTIONS: &[(&str, &str)] = &[
    ("real_min", "REAL real_min(REAL a, REAL b) { return a < b || a != a ? a : b; }"),
    ("real_max", "REAL real_max(REAL a, REAL b) { return a > b || a != a ? a : b; }"),
    ("real_sign", "REAL real_sign(REAL a) { return a > 0 ? REAL(1) : a < 0 ? REAL(-1) : a; }"),
    // A number of which compilers do not know where it comes from. NVVM 13.0 leaves a constant operation that makes a NaN
    // for later, and takes two of one text for equal numbers.
    (
        "real_opaque",
        "REAL real_opaque(REAL a)
{
#ifdef __CUDA_ARCH__
    asm(\"\" : \"+REGISTER\"(a));
#endif
    return a;
}",
    ),
    // A NaN has no sign that devices agree on.
    ("real_copysign", "REAL real_copysign(REAL a, REAL b) { return b != b ? FABS(a) : COPYSIGN(a, b); }"),
    (
        "real_rem",
        "REAL real_rem(REAL a, REAL b)
{
    const REAL rest = FMOD(a, b);
    return rest == 0 ? COPYSIGN(rest, b) : (rest < 0) != (b < 0) ? rest + b : rest;
}",
    ),
    // By arithmetic, not by a comparison: where three whole numbers are compared and one of them is a difference, ptxas 13.0
    // for sm_90 makes one instruction, VIMNMX3, of two and drops the difference's sign (`docs/trust.md`). A comparison and a
    // choice of the same numbers, however far apart, would become a minimum before it came to that.
    (
        "int_less",
        "bool int_less(int a, int b)
{
    const unsigned apart = unsigned(a) - unsigned(b);
    return int(apart ^ ((unsigned(a) ^ unsigned(b)) & (apart ^ unsigned(a)))) < 0;
}",
    ),
    (
        "int_min",
        "int int_min(int a, int b)
{
    const unsigned apart = unsigned(a) - unsigned(b);
    const int less = int(apart ^ ((unsigned(a) ^ unsigned(b)) & (apart ^ unsigned(a)))) >> 31;
    return int(unsigned(b) + (apart & unsigned(less)));
}",
    ),
    (
        "int_max",
        "int int_max(int a, int b)
{
    const unsigned apart = unsigned(a) - unsigned(b);
    const int less = int(apart ^ ((unsigned(a) ^ unsigned(b)) & (apart ^ unsigned(a)))) >> 31;
    return int(unsigned(a) - (apart & unsigned(less)));
}",
    ),
    ("int_add", "int int_add(int a, int b) { return int(unsigned(a) + unsigned(b)); }"),
    ("int_sub", "int int_sub(int a, int b) { return int(unsigned(a) - unsigned(b)); }"),
    ("int_mul", "int int_mul(int a, int b) { return int(unsigned(a) * unsigned(b)); }"),
    ("int_abs", "int int_abs(int a) { return a < 0 ? int(0u - unsigned(a)) : a; }"),
    ("int_sign", "int int_sign(int a) { return (a > 0) - (a < 0); }"),
    (
        "int_rem",
        "int int_rem(int a, int b)
{
    const int rest = b == 0 || b == -1 ? 0 : a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}",
    ),
];

/// How functions are declared: those that are part of a kernel, and those that it rarely needs.
const LINKAGES: &[(&str, &str)] =
    &[("STENCILC_FUNCTION", "__forceinline__"), ("STENCILC_FAR_FUNCTION", "__noinline__")];

/// The lines of the functions in `used`.
pub fn functions(used: &BTreeSet<&'static str>, precision: Precision) -> Vec<String> {
    let words = match precision {
        Precision::F32 => ["float", "fmodf", "fabsf", "copysignf", "f"],
        Precision::F64 => ["double", "fmod", "fabs", "copysign", "d"],
    };
    let text = |text: &str| {
        let names = ["REAL", "FMOD", "FABS", "COPYSIGN", "REGISTER"];
        let text = names.iter().zip(words).fold(text.to_owned(), |text, (name, word)| text.replace(name, word));
        format!("STENCILC_FUNCTION {text}")
    };
    let mut lines: Vec<String> = Vec::new();
    for (name, body) in FUNCTIONS {
        if used.contains(name) {
            lines.extend(text(body).lines().map(str::to_owned));
        }
    }
    lines.extend(functions::functions(used, precision));
    for (name, linkage) in LINKAGES.iter().rev() {
        if lines.iter().any(|line| line.contains(name)) {
            lines.insert(0, format!("#define {name} static __host__ __device__ {linkage}"));
        }
    }
    lines
}

/// What a checked kernel begins with: the types and functions that its checks use.
const WATCH: &str = "\
#define STENCILC_METHOD __device__ __forceinline__
/* Looks at every index: the first that leads elsewhere than it should is written down. */
struct Watch {
    long long* report;   // faults; site, index, column and level of the first
    const int* columns;  // the column of each place in the plane, or -1
    long long plane;

    STENCILC_METHOD void tell(unsigned site, long long index, long long column, int k) const
    {
        if (atomicAdd((unsigned long long*)report, 1ull) != 0) return;
        report[1] = site;
        report[2] = index;
        report[3] = column;
        report[4] = k;
    }

    /* Whether `index` is on `level`, in the column `shift` away from the thread's own. */
    STENCILC_METHOD bool allows(unsigned site, long long index, int shift, int level, int levels, long long column, int k) const
    {
        // Where a level does not exist, the own one is read for a value that is then not chosen.
        const long long place = index - (level < 0 || level >= levels ? k : level) * plane;
        const bool is_inside = place >= 0 && place < plane && column >= 0 && column < plane;
        const bool is_right = is_inside && columns[place] >= 0 && columns[place] == columns[column] + shift;
        if (!is_right) tell(site, index, column, k);
        return is_right;
    }

    /* The same where columns stand in no rows: whether it is in the column of a neighbour. */
    STENCILC_METHOD bool leads(unsigned site, long long index, int neighbour, int level, int levels, long long column, int k) const
    {
        const long long place = index - (level < 0 || level >= levels ? k : level) * plane;
        const bool is_inside = place >= 0 && place < plane && column >= 0 && column < plane;
        const bool is_right = is_inside && columns[place] >= 0 && columns[place] == columns[neighbour * plane + column];
        if (!is_right) tell(site, index, column, k);
        return is_right;
    }

    /* The same for a field without columns. */
    STENCILC_METHOD bool allows(unsigned site, long long index, int level, int levels, long long column, int k) const
    {
        const bool is_right = index == (level < 0 || level >= levels ? k : level);
        if (!is_right) tell(site, index, column, k);
        return is_right;
    }
};

struct WatchedTable {
    const int* entries;
    long long length;
    unsigned site;
    Watch watch;

    STENCILC_METHOD int operator[](long long index) const
    {
        if (index >= 0 && index < length) return entries[index];
        watch.tell(site, index, -1, -1);
        return 0;
    }
};";

/// The place of a cell's neighbour. Tables are a type of their own where they are watched.
const FOLLOW: &str = "\
template <class Table>
static __device__ __forceinline__ int neighbour_of(const Table& table, int start, int cell)
{
    return cell + table[start + cell];
}";

/// The same where cells have patterns.
const FOLLOW_PATTERNS: &str = "\
template <class Patterns, class Table>
static __device__ __forceinline__ int neighbour_of(const Patterns& pattern, const Table& table, int start, int cell)
{
    return cell + table[start + pattern[cell]];
}";

/// Moves elements that follow each other at once.
const RUN: &str = "\
template <int N, class T> static __device__ __forceinline__ Run<T, N> load_run(const T* first)
{
    return *reinterpret_cast<const Run<T, N>*>(first);
}
template <class T, class... Values> static __device__ __forceinline__ void store_run(T* first, Values... values)
{
    *reinterpret_cast<Run<T, sizeof...(Values)>*>(first) = {{T(values)...}};
}";

/// A double with the other sign where `turn` is the bit of the sign. Devices negate a double as they add two.
const TURNED_F64: &str = "\
static __device__ __forceinline__ double real_turned(const double x, const int turn)
{
    return __hiloint2double(__double2hiint(x) ^ turn, __double2loint(x));
}";

/// The same of a single.
const TURNED_F32: &str = "\
static __device__ __forceinline__ float real_turned(const float x, const int turn)
{
    return __int_as_float(__float_as_int(x) ^ turn);
}";

/// The index of an element of an array of structs of arrays.
const INTERLEAVED: &str = "\
/* The index of element i of an array that shares blocks of 32 with N - 1 others. */
template <int N, class Index> static __device__ __forceinline__ Index interleaved(Index i)
{
    return (i & ~Index(31)) * N + (i & 31);
}";

/// What a kernel's operations need before it, and what something else does. Its reals are of one precision; if it calls no function of
/// them, of that of the others.
pub fn of_kernel(kernel: &Kernel, others: &BTreeSet<&'static str>, mut precision: Precision) -> Vec<String> {
    let called = called(kernel).union(others).copied().collect();
    let calls = |function: Function| {
        kernel.values.iter().any(|(_, value)| matches!(value.operation, Operation::Call(own, _) if own == function))
    };
    let (mut follows, mut runs, mut interleaves) = ([false; 2], stores_runs(kernel, &kernel.body), false);
    for (id, value) in kernel.values.iter() {
        match &value.operation {
            Operation::Call(function, operands) => {
                let kind = kind_of_call(kernel, id, operands);
                precision = if kind.is_real() { kind.precision() } else { precision };
                interleaves |= matches!(function, Function::Interleaved(_));
            }
            Operation::Follow(follow) => follows[usize::from(follow.patterns.is_some())] = true,
            Operation::Load(array, _) => runs |= kernel.arrays[*array].element != value.kind,
            _ => {}
        }
    }
    let mut lines = functions(&called, precision);
    let turned = match precision {
        Precision::F64 => TURNED_F64,
        Precision::F32 => TURNED_F32,
    };
    let mut routines = BTreeSet::new();
    routines_of(&kernel.body, &mut routines);
    if called.contains("cluster_rank") {
        routines.insert("cluster_rank");
    }
    for (_, array) in kernel.arrays.iter() {
        match array.space {
            Space::Shared(_) => _ = routines.insert("STENCILC_SHARED"),
            Space::Dynamic(_) => _ = routines.insert("STENCILC_DYNAMIC_SHARED"),
            _ => {}
        }
    }
    if runs {
        routines.insert("Run");
    }
    let routines = rows::with_used(routines);
    let run = rows::lines(&routines.iter().copied().filter(|name| *name == "Run").collect()).join("\n");
    let texts = [
        (calls(Function::Turned), turned),
        (kernel.attempt.is_some(), quotients::functions(precision)),
        (kernel.watch.is_some(), WATCH),
        (follows[0], FOLLOW),
        (follows[1], FOLLOW_PATTERNS),
        (!run.is_empty(), &run),
        (runs, RUN),
        (interleaves, INTERLEAVED),
    ];
    for (_, text) in texts.iter().filter(|(is_needed, _)| *is_needed) {
        lines.extend(text.lines().map(str::to_owned));
    }
    let mut together = BTreeSet::new();
    added_together(kernel, &kernel.body, &mut together);
    for (lanes, element) in together {
        lines.extend(atomics::together(lanes, &element).lines().map(str::to_owned));
    }
    lines.extend(kernel.arrays.iter().filter_map(|(_, array)| constant(array)));
    lines.extend(device::of(&routines));
    lines.extend(rows::lines(&routines.into_iter().filter(|name| *name != "Run").collect()));
    lines
}

/// The names of the routines in a block.
fn routines_of(block: &Block, names: &mut BTreeSet<&'static str>) {
    for statement in &block.0 {
        if let Statement::Do(routine, _) = statement {
            names.insert(routine.name());
        }
        statement.blocks().into_iter().for_each(|inner| routines_of(inner, names));
    }
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
            ir::Function::Abs => of(either("fabs", "fabsf"), "int_abs"),
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

/// How many numbers of which type lanes add together anywhere in a block.
fn added_together(kernel: &Kernel, block: &Block, found: &mut BTreeSet<(usize, String)>) {
    for statement in &block.0 {
        if let Statement::AtomicAdd(array, _, values) = statement
            && values.len() > 1
        {
            found.insert((values.len(), c_type(kernel.arrays[*array].element)));
        }
        statement.blocks().into_iter().for_each(|inner| added_together(kernel, inner, found));
    }
}

/// Whether a block writes elements that follow each other at once.
fn stores_runs(kernel: &Kernel, block: &Block) -> bool {
    block.0.iter().any(|statement| match statement {
        Statement::Store(array, _, value) => kernel.values[*value].kind != kernel.arrays[*array].element,
        own => own.blocks().into_iter().any(|inner| stores_runs(kernel, inner)),
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Names;

    #[test]
    fn nothing_of_the_users_is_called_as_a_function_here() {
        let own = FUNCTIONS.iter().map(|(name, _)| (*name).to_owned());
        let all: Vec<String> = own.chain(functions::names()).chain(super::super::rows::names()).collect();
        assert!(all.len() > 50 && all.iter().any(|name| name == "real_exp"), "{all:?}");
        let free: Vec<&String> = all.iter().filter(|name| Names::default().fresh(name) == ***name).collect();
        assert!(free.is_empty(), "{free:?} are not in names/reserved.rs");
    }
}
