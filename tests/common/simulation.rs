//! Programs that come along, on arrays, by the interpreter.

use super::stencils;
use std::collections::BTreeMap;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::{Precision, Program};
use stencilc_compiler::source::Source;
use stencilc_runtime::driver::Driver;
use stencilc_runtime::problem::Request;
use stencilc_runtime::program::cpu::Interpreter;
use stencilc_runtime::program::{ProgramProblem, results};
use stencilc_runtime::{Array, Data};

/// Every program of the project.
pub fn programs() -> Vec<Program> {
    let of_file = |(name, text): (String, String)| {
        let lowered = stencilc_compiler::check(&Source::new(name, text));
        assert!(lowered.is_ok(), "{:?}", lowered.diagnostics);
        lowered.programs
    };
    stencils().into_iter().flat_map(of_file).collect()
}

/// A program, its grid, and the numbers that are given to it; what is not given is drawn, or has its default.
pub struct Simulation<'a> {
    pub program: &'a str,
    pub grid: Grid,
    pub arrays: Vec<(&'a str, Vec<f64>)>,
    pub settings: Vec<(&'a str, f64)>,
    /// Whether fused multiply-adds are formed.
    pub contract: bool,
}

impl Simulation<'_> {
    /// What the outputs hold at the end, by name.
    pub fn run(&self) -> BTreeMap<String, Data> {
        let program = programs().into_iter().find(|own| own.name == self.program);
        let program = program.unwrap_or_else(|| panic!("no program `{}` comes along", self.program));
        let facade = program.facade();
        let Grid { ni, nj, nk, .. } = self.grid;
        let array = |numbers: &Vec<f64>| Array { shape: vec![nk, nj, ni], data: Data::F64(numbers.clone()) };
        let request = Request {
            stencil: &facade,
            precision: Precision::F64,
            contract: self.contract,
            grid: Some(self.grid),
            adjacency: None,
            arrays: self.arrays.iter().map(|(name, numbers)| ((*name).to_owned(), array(numbers))).collect(),
            settings: self.settings.iter().map(|(name, value)| ((*name).to_owned(), value.to_string())).collect(),
            seed: 0,
            cast: stencilc_runtime::Cast::Exact,
            drawing: stencilc_runtime::Drawing::Inputs,
        };
        let problem = ProgramProblem::new(&program, request).unwrap();
        let backend = Interpreter::new(problem.clone());
        let mut driver = Driver::new(&backend).given().unwrap();
        driver.finish().unwrap();
        let outputs = results(&problem, &driver).unwrap();
        let names = facade.fields.iter().map(|(_, field)| field.name.clone());
        names.zip(outputs).filter_map(|(name, data)| Some((name, data?))).collect()
    }

    /// What one output holds at the end.
    pub fn output(&self, name: &str) -> Vec<f64> {
        match self.run().remove(name) {
            Some(Data::F64(numbers)) => numbers,
            other => panic!("`{name}` of `{}` is {other:?}", self.program),
        }
    }
}

/// A number for each cell of a grid, by its indices.
pub fn cells(grid: Grid, number: impl Fn(f64, f64, f64) -> f64) -> Vec<f64> {
    let of = |cell: usize| {
        let (i, j, k) = (cell % grid.ni, cell / grid.ni % grid.nj, cell / grid.columns());
        number(i as f64, j as f64, k as f64)
    };
    (0..grid.columns() * grid.nk).map(of).collect()
}

/// The largest difference of two arrays.
pub fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    // A NaN is as far as can be.
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, |most, own| if own <= most { most } else { own })
}
