//! Names in the generated code: the user's, kept off C++'s keywords, and our own, kept off the user's.

use crate::device;
use crate::ir::{Axis, Offset, Path};
use std::collections::{HashMap, HashSet};

/// Words that the generated C++ cannot use as names: keywords, and what CUDA and the prelude define.
const RESERVED: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "compl",
    "concept",
    "const",
    "consteval",
    "constexpr",
    "constinit",
    "const_cast",
    "continue",
    "co_await",
    "co_return",
    "co_yield",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
    "main",
    "asm",
    "restrict",
    "blockIdx",
    "threadIdx",
    "blockDim",
    "gridDim",
    "warpSize",
    "dim3",
    "half",
    "uint",
    "ulong",
    "ushort",
    "uchar",
    "linux",
    "unix",
    "NULL",
    "errno",
    "stdin",
    "stdout",
    "stderr",
    "INT_MAX",
    "args",
    "stream",
    "abs",
    "fabs",
    "fabsf",
    "sqrt",
    "sqrtf",
    "floor",
    "floorf",
    "ceil",
    "ceilf",
    "copysign",
    "copysignf",
    "fma",
    "fmaf",
    "fmod",
    "fmodf",
    "min",
    "max",
    "exp",
    "log",
    "pow",
    "sin",
    "cos",
    "tan",
    "y0",
    "y1",
    "yn",
    "j0",
    "j1",
    "jn",
    "gamma",
    "signgam",
    "index",
    "rindex",
    "time",
    "clock",
    "printf",
    "malloc",
    "free",
    "memcpy",
    "memset",
    "assert",
    "size_t",
    "div",
    "remove",
    "rename",
    "signbit",
    "isnan",
    "nan",
    "nanf",
    "isinf",
    "real_min",
    "real_max",
    "real_sign",
    "real_rem",
    "real_opaque",
    "real_copysign",
    "real_inverse",
    "real_quotient",
    "real_turned",
    "int_add",
    "int_sub",
    "int_mul",
    "int_rem",
    "int_abs",
    "int_sign",
    "int_less",
    "int_min",
    "int_max",
    "cudaStream_t",
    "computed",
    "emulated",
    "Watch",
    "WatchedTable",
    "neighbour_of",
    "interleaved",
    "Run",
    "load_run",
    "store_run",
    "load_row",
    "put_row",
    "copy_row",
    "widen_row",
    "join_rows",
    "put_between",
    "push_row",
    "pull_row",
    "atomicAdd",
    "add_2",
    "add_4",
    "int2",
    "int4",
    "float2",
    "float4",
    "double2",
    "make_int2",
    "make_int4",
    "make_float2",
    "make_float4",
    "make_double2",
];

/// Gives out names of one kernel.
#[derive(Debug)]
pub struct Names {
    taken: HashSet<String>,
    /// The last number given to each name that several wished for.
    numbers: HashMap<String, usize>,
    internals: HashMap<String, String>,
    wide: bool,
}

impl Default for Names {
    fn default() -> Self {
        Self::new(false)
    }
}

impl Names {
    /// Names of a kernel with 64-bit indices if `wide`.
    pub fn new(wide: bool) -> Self {
        let operations = device::operations().map(|operation| operation.name);
        let taken = RESERVED.iter().copied().chain(operations).map(str::to_owned).collect();
        Self { taken, numbers: HashMap::new(), internals: HashMap::new(), wide }
    }

    /// A name like `wish` that nothing else has.
    pub fn fresh(&mut self, wish: &str) -> String {
        // Names that begin with an underscore, or hold two in a row, belong to the C++ compilers.
        let mut wish = wish.trim_start_matches('_').to_owned();
        while wish.contains("__") {
            wish = wish.replace("__", "_");
        }
        if wish.is_empty() {
            wish.push('v');
        }
        let mut name = wish.clone();
        let mut number = self.numbers.get(&wish).copied().unwrap_or(1);
        // A longer name in capitals is a macro of some header sooner or later: NAN, M_PI, DBL_MAX ...
        let is_macro = wish.len() > 2 && !wish.contains(|c: char| c.is_ascii_lowercase());
        while self.taken.contains(&name) || is_macro && name == wish {
            number += 1;
            name = format!("{}_{number}", wish.trim_end_matches('_'));
        }
        if number > 1 {
            self.numbers.insert(wish, number);
        }
        self.taken.insert(name.clone());
        name
    }

    /// The name of something of ours, the same at every call.
    pub fn internal(&mut self, name: &str) -> String {
        if let Some(known) = self.internals.get(name) {
            return known.clone();
        }
        let own = self.fresh(name);
        self.internals.insert(name.to_owned(), own.clone());
        own
    }

    /// Several of them.
    pub fn internals<const N: usize>(&mut self, names: [&'static str; N]) -> [String; N] {
        names.map(|name| self.internal(name))
    }

    /// The type of indices.
    pub fn index_type(&self) -> &'static str {
        if self.wide { "long long" } else { "int" }
    }
}

/// `right2_top`: the name of a path in generated code; `here` for none. Where its steps are not along i, then along j, they
/// are joined by `then`.
pub fn path_name(path: &Path) -> String {
    if *path == Path::from_offset(path.offset()) {
        return offset_name(path.offset());
    }
    let mut parts: Vec<String> = Vec::new();
    for step in path.steps() {
        let along = |axis| if step.axis == axis { step.by } else { 0 };
        parts.push(offset_name(Offset { i: along(Axis::I), j: along(Axis::J), k: 0 }));
    }
    let mut name = parts.join("_then_");
    if path.levels() != 0 {
        name.push('_');
        name.push_str(&offset_name(Offset { k: path.levels(), ..Offset::default() }));
    }
    name
}

/// `right2_top`: the name of an offset in generated code; `here` for none.
fn offset_name(offset: Offset) -> String {
    let part = |by: i32, low: &str, high: &str| match by {
        0 => None,
        1 => Some(high.to_owned()),
        -1 => Some(low.to_owned()),
        2.. => Some(format!("{high}{by}")),
        _ => Some(format!("{low}{}", by.unsigned_abs())),
    };
    let parts = [part(offset.i, "left", "right"), part(offset.j, "top", "bottom"), part(offset.k, "down", "up")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "here".to_owned() } else { parts.join("_") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Step;

    #[test]
    fn users_come_first_and_keywords_are_avoided() {
        let mut names = Names::default();
        assert_eq!(names.fresh("row"), "row");
        assert_eq!(names.internal("row"), "row_2");
        assert_eq!(names.internal("row"), "row_2");
        assert_eq!(names.fresh("double"), "double_2");
        assert_eq!(names.fresh("__x__y"), "x_y");
        assert_eq!([names.fresh("NAN"), names.fresh("NAN"), names.fresh("NAN")], ["NAN_2", "NAN_3", "NAN_4"]);
    }

    #[test]
    fn paths_are_called_by_their_steps() {
        let step = |axis, by| Step { axis, by };
        let name = |steps: &[Step]| {
            let mut path = Path::levels_only(1);
            steps.iter().for_each(|&step| path.walk(step));
            path_name(&path)
        };
        assert_eq!(name(&[step(Axis::I, 2), step(Axis::J, -1)]), "right2_top_up");
        assert_eq!(name(&[step(Axis::J, -1), step(Axis::I, 2)]), "top_then_right2_up");
        assert_eq!(name(&[]), "up");
    }
}
