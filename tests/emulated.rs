//! Executes every kernel on the CPU: the very text that goes to NVRTC, compiled by the machine's C++ compiler, must equal
//! the interpreter bit for bit. So a fault in printing, storing or scheduling shows without a GPU.

mod common;

use common::{combinations, lowered, problem, stencils, translation_unit};
use std::ffi::c_void;
use std::path::Path;
use std::process::Command;
use stencilc_compiler::cuda::{Size, What};
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Handle, Kind, Precision};
use stencilc_compiler::plan::Choices;
use stencilc_runtime::Data;
use stencilc_runtime::pack::Packing;
use stencilc_runtime::problem::{Problem, element_of};
use stencilc_runtime::verify::{compare, expect};

/// Compiles a translation unit with a wrapper around each kernel, and loads it.
fn load(text: &str, units: &[common::Unit], folder: &Path, name: &str) -> libloading::Library {
    let mut source = format!("#include \"{}/tests/cuda_on_cpu.h\"\n{text}", env!("CARGO_MANIFEST_DIR"));
    for (number, unit) in units.iter().enumerate() {
        let arguments: Vec<String> = unit
            .kernel
            .parameters
            .iter()
            .enumerate()
            .map(|(index, parameter)| format!("*static_cast<{} const*>(arguments[{index}])", c_type(&parameter.c_type)))
            .collect();
        let [x, y, z] = unit.plan.choices.block;
        source += &format!(
            "extern \"C\" void run_{number}(void** arguments, const int* blocks) {{
    for (blockIdx.z = 0; blockIdx.z < blocks[2]; ++blockIdx.z)
    for (blockIdx.y = 0; blockIdx.y < blocks[1]; ++blockIdx.y)
    for (blockIdx.x = 0; blockIdx.x < blocks[0]; ++blockIdx.x)
    for (threadIdx.z = 0; threadIdx.z < {z}; ++threadIdx.z)
    for (threadIdx.y = 0; threadIdx.y < {y}; ++threadIdx.y)
    for (threadIdx.x = 0; threadIdx.x < {x}; ++threadIdx.x)
        space_{number}::{}({});
}}\n",
            unit.kernel.name,
            arguments.join(", ")
        );
    }
    let (file, library) = (folder.join(format!("{name}.cpp")), folder.join(format!("{name}.so")));
    std::fs::write(&file, source).unwrap();
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]);
    compiler.args(["-Wno-unknown-pragmas", "-Wno-unused-variable", "-Wno-unused-but-set-variable", "-o"]);
    let output = compiler.arg(&library).arg(&file).output().expect("a C++ compiler is needed: install g++");
    assert!(output.status.success(), "{name}:\n{}", String::from_utf8_lossy(&output.stderr));
    // SAFETY: the library has no initialisers beyond zeroing its own variables.
    unsafe { libloading::Library::new(&library) }.unwrap()
}

/// `const double*` as a type that a pointer to one can be cast to.
fn c_type(text: &str) -> String {
    text.to_owned()
}

/// Runs kernel `number` of a library over packed copies of the problem's fields, and compares every cell and every byte of
/// padding.
fn check(
    problem: &Problem,
    expected: &[Option<Data>],
    unit: &common::Unit,
    library: &libloading::Library,
    number: usize,
) {
    let fixed = unit.plan.fixed.as_ref().unwrap();
    let layout = &fixed.layout;
    let packing = |field| {
        let declared = &problem.stencil.fields[field];
        Packing::new(layout, problem.grid, declared.place, element_of(declared.stored, problem.precision))
    };
    // Buffers are doubles inside, so that they are aligned for every type.
    let mut buffers: Vec<Vec<f64>> = Vec::new();
    let mut values: Vec<[u8; 8]> = Vec::new();
    let mut outputs = Vec::new();
    let columns = unit.plan.storage.columns(&fixed.region, layout);
    for parameter in &unit.kernel.parameters {
        let int = |value: usize| if unit.plan.wide { (value as i64).to_le_bytes() } else { widened(value as i32) };
        let value = match parameter.what {
            What::Input(field) | What::Output(field) => {
                let written = matches!(parameter.what, What::Output(_));
                let data = if written { &problem.outputs } else { &problem.inputs };
                let packed = packing(field).pack(data[field.index()].as_ref().unwrap());
                let mut buffer = vec![0f64; packed.len().div_ceil(8)];
                bytemuck::cast_slice_mut(&mut buffer)[..packed.len()].copy_from_slice(&packed);
                let element = element_of(problem.stencil.fields[field].stored, problem.precision);
                let start = packing(field).origin() * element.bytes();
                let address = buffer.as_mut_ptr() as usize + start;
                if written {
                    outputs.push((field, buffers.len(), packed.len()));
                }
                buffers.push(buffer);
                (address as u64).to_le_bytes()
            }
            What::Param(param) => {
                match (problem.params[param.index()], problem.stencil.params[param].kind, problem.precision) {
                    (Value::Real(x), Kind::Real, Precision::F32) => widened((x as f32).to_bits() as i32),
                    (Value::Real(x), ..) => x.to_le_bytes(),
                    (Value::Int(x), ..) => widened(x),
                    (Value::Bool(x), ..) => widened(i32::from(x)),
                }
            }
            What::Table(table) => (layout.tables[table].as_ptr() as u64).to_le_bytes(),
            What::Size(Size::ColumnFirst(axis)) => widened(columns[axis].start as i32),
            What::Size(Size::ColumnEnd(axis)) => widened(columns[axis].end as i32),
            What::Size(Size::LevelFirst) => widened(fixed.region.k.start as i32),
            What::Size(Size::LevelEnd) => widened(fixed.region.k.end as i32),
            What::Size(Size::Levels) => widened(problem.grid.nk as i32),
            What::Size(Size::Plane) => int(layout.plane),
            What::Size(Size::Own(own)) => int(layout.sizes[own]),
        };
        values.push(value);
    }
    let mut pointers: Vec<*mut c_void> = values.iter_mut().map(|value| value.as_mut_ptr().cast()).collect();
    let blocks = unit.plan.launch(fixed).unwrap().map(|blocks| blocks as i32);
    // SAFETY: the function was generated above with this signature; every buffer is as large as its field's packing.
    unsafe {
        let run: libloading::Symbol<unsafe extern "C" fn(*mut *mut c_void, *const i32)> =
            library.get(format!("run_{number}")).unwrap();
        run(pointers.as_mut_ptr(), blocks.as_ptr());
    }
    let choices = &unit.plan.choices;
    let what = format!("{} {:?} on {}", problem.stencil.name, choices, problem.grid);
    for (field, buffer, length) in outputs {
        let packed = &bytemuck::cast_slice::<f64, u8>(&buffers[buffer])[..length];
        assert_eq!(packing(field).damaged(packed), None, "padding was overwritten: {what}");
        let found = packing(field).unpack(packed);
        let name = &problem.stencil.fields[field].name;
        let mismatch = compare(problem, name, expected[field.index()].as_ref().unwrap(), &found);
        assert!(mismatch.is_none(), "{what}: {mismatch:?}\n{}", unit.kernel.text);
    }
}

fn widened(x: i32) -> [u8; 8] {
    i64::from(x).to_le_bytes()
}

/// All combinations of one text's stencils.
fn check_all(name: &str, text: &str, grid: Grid, settings: &[(&str, &str)]) {
    let folder = tempfile::tempdir().unwrap();
    for stencil in lowered(name, text) {
        for precision in [Precision::F64, Precision::F32] {
            let own = |name: &str| stencil.params.iter().any(|(_, param)| param.name == name);
            let settings: Vec<_> = settings.iter().copied().filter(|(name, _)| own(name)).collect();
            let problem = problem(&stencil, precision, grid, &settings);
            let expected = expect(&problem, &|_| {}).unwrap_or_else(|error| panic!("{name}: {error}"));
            let small = combinations().map(|choices| Choices { block: [8, 2, 3], slice: 3, ..choices });
            let wide = combinations()
                .filter(|choices| choices.access == "idxvar")
                .map(|choices| Choices { wide: true, ..choices });
            let (text, units) = translation_unit(&problem, combinations().chain(small).chain(wide));
            let library = load(&text, &units, folder.path(), &format!("{}_{}", stencil.name, precision.name()));
            for (number, unit) in units.iter().enumerate() {
                check(&problem, &expected.outputs, unit, &library, number);
            }
        }
    }
}

#[test]
fn every_stencil_of_the_project() {
    for (name, text) in stencils() {
        check_all(&name, &text, Grid { ni: 37, nj: 29, nk: 9 }, &[]);
    }
}

#[test]
fn every_construct() {
    let grid = Grid { ni: 19, nj: 13, nk: 6 };
    check_all("constructs", include_str!("constructs.stn"), grid, &[("n", "3"), ("limit", "2")]);
}
