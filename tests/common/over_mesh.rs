//! Stencils and programs over meshes that come along, on arrays, by the interpreter.

use super::{all_files, with_imports};
use std::collections::BTreeMap;
use stencilc_compiler::ir::{MeshProgram, Path, Precision, SetId};
use stencilc_compiler::mesh::{Counts, Cut, Degrees, Group, Largest};
use stencilc_runtime::driver::Driver;
use stencilc_runtime::mesh::program::cpu::Interpreter;
use stencilc_runtime::mesh::program::{MeshProblem, Request, alone};
use stencilc_runtime::mesh::{HOLE, Mesh};
use stencilc_runtime::{Array, Data};

/// The program of a file that comes along, or one of its stencils as a program.
fn program(file: &str, name: &str) -> MeshProgram {
    let (_, text) = all_files().into_iter().find(|(own, _)| own == file).unwrap();
    let lowered = stencilc_compiler::check(&with_imports(file, &text));
    assert!(lowered.is_ok(), "{:?}", lowered.diagnostics);
    let stencil = || lowered.mesh_stencils.iter().find(|own| own.stencil.name == name).map(alone);
    let found = lowered.mesh_programs.iter().find(|own| own.program.name == name).cloned().or_else(stencil);
    found.unwrap_or_else(|| panic!("`{file}` has no `{name}`"))
}

/// What is computed on a mesh, and from what.
pub struct Over<'a> {
    pub file: &'a str,
    pub name: &'a str,
    pub mesh: &'a Mesh,
    /// Numbers of inputs, in the order of their arrays.
    pub arrays: Vec<(&'a str, Vec<f64>)>,
    pub settings: Vec<(&'a str, f64)>,
    /// How many levels there are, of a mesh with levels.
    pub levels: Option<usize>,
}

impl Over<'_> {
    /// What the outputs hold at the end, by name.
    pub fn run(self) -> BTreeMap<String, Vec<f64>> {
        let program = program(self.file, self.name);
        // The shape that a field has to have is found by asking for it.
        let request = |arrays| Request {
            program: &program,
            precision: Precision::F64,
            contract: true,
            mesh: self.mesh.clone(),
            levels: self.levels,
            arrays,
            settings: self.settings.iter().map(|(name, value)| ((*name).to_owned(), value.to_string())).collect(),
            seed: 1,
            cast: stencilc_runtime::Cast::Exact,
            drawing: stencilc_runtime::Drawing::Inputs,
        };
        let unfilled = MeshProblem::new(request(BTreeMap::new())).unwrap();
        let variable = |name: &str| {
            let mut all = program.program.variables.iter();
            all.find(|(_, own)| own.name == name).unwrap_or_else(|| panic!("no `{name}`")).0
        };
        let array = |(name, numbers): &(&str, Vec<f64>)| {
            let shape = unfilled.shape(variable(name));
            ((*name).to_owned(), Array { shape, data: Data::F64(numbers.clone()) })
        };
        let problem = MeshProblem::new(request(self.arrays.iter().map(array).collect())).unwrap();
        assert_eq!(problem.drawn, Vec::<String>::new(), "these were not given");
        let interpreter = Interpreter::new(problem.clone());
        let mut driver = Driver::new(&interpreter).given().unwrap();
        driver.finish().unwrap();
        let numbers = |data: Data| (0..data.len()).map(|at| data.get(at)).collect();
        let results = driver.results().unwrap().into_iter();
        results.map(|(id, data)| (program.program.variables[id].name.clone(), numbers(data.unwrap()))).collect()
    }

    /// What one output holds at the end.
    pub fn output(self, name: &str) -> Vec<f64> {
        self.run().remove(name).unwrap_or_else(|| panic!("no output `{name}`"))
    }
}

/// The numbers of a field that came with a mesh, on a set or on a map of it.
pub fn field(mesh: &Mesh, name: &str, set: &str) -> Vec<f64> {
    let set = mesh.set_named(set).unwrap();
    let field = mesh.field_on(name, set, None).unwrap();
    (0..field.data.len()).map(|at| field.data.get(at)).collect()
}

/// The numbers of a field with `N` parts, element by element.
pub fn points<const N: usize>(mesh: &Mesh, name: &str, set: &str) -> Vec<[f64; N]> {
    field(mesh, name, set).as_chunks::<N>().0.to_vec()
}

/// The slots of a map, by the elements of its set.
pub fn slots<'a>(mesh: &'a Mesh, set: &str, name: &str) -> Vec<&'a [i32]> {
    let set = mesh.set_named(set).unwrap();
    let map = &mesh.maps[mesh.map_named(set, name).unwrap()];
    map.table.chunks(map.arity).collect()
}

/// Whether a row of a map has a hole.
pub fn has_hole(row: &[i32]) -> bool {
    row.contains(&HOLE)
}

/// A mesh of quadrilaterals, as far as kernels want to know.
pub struct Quadrilaterals;

impl Counts for Quadrilaterals {
    fn elements(&self, _: SetId) -> usize {
        5000
    }

    fn degrees(&self, _: &Group) -> Degrees {
        Degrees { mean: 3.9, max: 4, share: 1.0 }
    }

    fn largest(&self, _: &Group, _: Cut) -> Option<Largest> {
        Some(Largest { elements: 200, targets: 150 })
    }

    fn repeats(&self, _: &Group) -> bool {
        false
    }

    fn distinct_ends(&self, _: &Group, ends: &[Path]) -> usize {
        4 * ends.len()
    }
}
