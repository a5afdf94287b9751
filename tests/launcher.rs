//! Executes the part of a built launcher that decides which levels are computed: it must agree with the analysis, whatever
//! the grid and the parameters.

use crate::common::{lowered, stencils};
use std::fmt::Write as _;
use std::process::Command;
use stencilc_compiler::analysis::levels;
use stencilc_compiler::cuda::{self, Built};
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Kind, Precision, Stencil};
use stencilc_compiler::kernel::Meaning;
use stencilc_compiler::plan::{self, Choices};
use stencilc_runtime::emulate::Compiler;

/// Guards of every kind, on levels and on interfaces.
const EDGES: &str = "
param n: int
stencil edges {
    in a on (i, j, k+1); in b; in w on (k+1); out r, s
    let lower = if k + 2 <= nk { a[k+2] - a } else { a[k+1] }
    r = if k < n && b[k-1] > 0 { a[k+1] - a[k-1] } else { lower + b }
    s = w[k+1] * w + b[k-2]
}
stencil sides {
    in a; out r
    param below: bool
    let other = if below { a[k+1] } else { a[k-1] }
    r = if k == 0 || k > nk - 2 { a } else { other[k+1] * a[k-1] }
}
stencil remainder { in a; out r; r = if k % n == 1 || k == nk - 1 { a } else { a[k+1] } }
stencil far { in a on (i, j, k+1); in b; out r; r = a[k+3] - b[k-2] + b[k+1] }
";

/// A C++ function that tells of each level whether it is computed, with all whole parameters at `n`.
fn function(number: usize, stencil: &Stencil, built: &Built) -> String {
    let name = &stencil.name;
    let between = |text: &str, from: &str, to: &str| {
        let start = text.find(from).unwrap_or_else(|| panic!("{from} in\n{text}"));
        let length = text[start..].find(to).unwrap_or_else(|| panic!("{to} in\n{text}"));
        text[start..start + length].to_owned()
    };
    let kernel = &built.kernel;
    let prelude = if kernel.text.contains("#define STENCILC_FUNCTION") {
        between(&kernel.text, "#define STENCILC_FUNCTION", "extern \"C\" __global__") + "#undef STENCILC_FUNCTION\n"
    } else {
        String::new()
    };
    let members = between(&built.header, "typedef struct {", &format!("}} {name}_args;"));
    let computed = between(&built.source, &format!("static bool {name}_computed("), "extern \"C\" int");
    let with = if computed.contains("_args* args, ") { "&args, " } else { "" };
    let mut settings = String::new();
    for parameter in &kernel.parameters {
        if let Meaning::Param(param) = parameter.meaning {
            let value = match stencil.params[param].kind {
                Kind::Real => "0.5",
                Kind::Int => "n",
                Kind::Bool => "n % 2",
            };
            writeln!(settings, "    args.{} = {value};", parameter.name).unwrap();
        }
    }
    format!(
        "namespace space_{number} {{\n{prelude}{members}}} {name}_args;\n{computed}}}
extern \"C\" bool computed_{number}(int n, int k, int nk)
{{
    space_{number}::{name}_args args = {{}};
{settings}    (void)args, (void)n;
    return space_{number}::{name}_computed({with}k, nk);
}}\n"
    )
}

/// A sweep that needs the level before alone.
const TOTAL: &str = "stencil total { in a; out b; sweep k up { b = if k == 0 { a } else { b[k-1] + a } } }";

#[test]
fn launchers_and_the_analysis_agree_on_the_levels() {
    let mut texts = stencils();
    texts.push(("constructs".into(), include_str!("constructs.stn").into()));
    texts.push(("edges".into(), EDGES.into()));
    texts.push(("total".into(), TOTAL.into()));
    let stencils: Vec<Stencil> = texts.iter().flat_map(|(name, text)| lowered(name, text)).collect();
    let prepare = |own: &Stencil| plan::prepare(own, Precision::F64, true);
    // What a thread keeps of sweeps depends on the grid, unless it is little.
    let is_any = |own: &Stencil| own.sweeps.is_empty() || own.name == "total";
    let stencils: Vec<Stencil> = stencils.iter().filter(|own| is_any(own)).map(prepare).collect();
    let mut source =
        "#include <math.h>\n#define __host__\n#define __device__\n#define __forceinline__ inline\n#define __noinline__\n".to_owned();
    for (number, stencil) in stencils.iter().enumerate() {
        let choices = Choices::default().suiting(stencil);
        let built = cuda::build(&plan::plan(stencil, &choices, None).unwrap()).unwrap();
        source += &function(number, stencil, &built);
    }
    let folder = tempfile::tempdir().unwrap();
    let (file, library) = (folder.path().join("levels.cpp"), folder.path().join("levels.so"));
    std::fs::write(&file, &source).unwrap();
    let mut compiler = Command::new(Compiler::find().unwrap().program);
    compiler.args(["-std=c++17", "-shared", "-fPIC", "-o"]).arg(&library).arg(&file);
    let output = compiler.output().unwrap();
    assert!(output.status.success(), "{}\n{source}", String::from_utf8_lossy(&output.stderr));
    // SAFETY: the library has no initialisers.
    let library = unsafe { libloading::Library::new(&library) }.unwrap();

    let mut some = 0;
    for (number, stencil) in stencils.iter().enumerate() {
        type Computed = unsafe extern "C" fn(i32, i32, i32) -> bool;
        // SAFETY: the function was written above with this signature.
        let computed = unsafe { library.get::<Computed>(format!("computed_{number}")) }.unwrap();
        for nk in 1..=9 {
            for n in 1..=5 {
                let params: Vec<Value> = stencil.params.iter().map(|(_, param)| value(param.kind, n)).collect();
                // SAFETY: it reads nothing but its arguments.
                let found: Vec<usize> = (0..nk).filter(|&k| unsafe { computed(n, k as i32, nk as i32) }).collect();
                match levels::computed(stencil, Precision::F64, nk, &params) {
                    Ok(range) => {
                        some += 1;
                        assert_eq!(found, range.collect::<Vec<_>>(), "{}, nk = {nk}, n = {n}", stencil.name);
                    }
                    Err(_) => {
                        let gap = found.first().zip(found.last()).is_some_and(|(a, b)| b - a + 1 > found.len());
                        assert!(found.is_empty() || gap, "{}, nk = {nk}, n = {n}: {found:?}", stencil.name);
                    }
                }
            }
        }
    }
    assert!(some > 300, "only {some} cases have levels");
}

fn value(kind: Kind, n: i32) -> Value {
    match kind {
        Kind::Real => Value::Real(0.5),
        Kind::Int => Value::Int(n),
        Kind::Bool => Value::Bool(n % 2 != 0),
    }
}
