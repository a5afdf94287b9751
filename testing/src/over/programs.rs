//! Random programs over random meshes, whose calls add to the cells of a mesh and go on with the sums: by the interpreter call by
//! call, and by kernels that compute several calls at once.

use super::case::Outcome;
use super::kernels::{emulator, kept_in};
use fastrand::Rng;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use stencilc_compiler::diagnostic;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::mesh::{MeshChoices, VectorLayout};
use stencilc_compiler::source::Source;
use stencilc_runtime::Result;
use stencilc_runtime::emulate::Compiler;
use stencilc_runtime::mesh::order::{self, Options};
use stencilc_runtime::mesh::program::cpu::Interpreter;
use stencilc_runtime::mesh::program::kernels::{Kernels, Renumbered};
use stencilc_runtime::mesh::program::measure::{difference, results};
use stencilc_runtime::mesh::program::{MeshProblem, Request};
use stencilc_runtime::mesh::{HOLE, Map, Mesh, Set};

/// A program and what it is computed on.
pub struct Program {
    text: String,
    mesh: Mesh,
    levels: Option<usize>,
    precision: Precision,
    seed: u64,
}

/// The types of fields on cells: as they are declared, whether they are whole numbers, and how many parts they have.
const TYPES: [(&str, bool, usize); 5] =
    [("real", false, 1), ("real[2]", false, 2), ("f32", false, 1), ("f64", false, 1), ("int", true, 1)];

/// A field on cells, of one of the types.
#[derive(Clone)]
struct Variable {
    name: String,
    of: usize,
}

/// A stencil as calls know it: the types of its fields.
struct Callee {
    name: String,
    inputs: Vec<usize>,
    sums: Vec<usize>,
    outputs: Vec<usize>,
    has_param: bool,
    folds: bool,
}

struct Writer {
    rng: Rng,
    has_levels: bool,
    stencils: String,
    callees: Vec<Callee>,
    /// What is declared, by their lines.
    declared: Vec<String>,
    /// Those at hand, latest last.
    variables: Vec<Variable>,
    /// Numbers at hand.
    numbers: Vec<String>,
    /// Outputs that may be written.
    outputs: Vec<Variable>,
    names: usize,
}

impl Program {
    /// The program of a seed.
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed ^ 0x6368_6169_6e73);
        let precision = [Precision::F64, Precision::F32][rng.usize(0..2)];
        let mesh = mesh(&mut rng);
        let levels = (rng.usize(0..4) == 0).then(|| rng.usize(1..4));
        let mut writer = Writer {
            rng,
            has_levels: levels.is_some(),
            stencils: String::new(),
            callees: Vec::new(),
            declared: Vec::new(),
            variables: Vec::new(),
            numbers: Vec::new(),
            outputs: Vec::new(),
            names: 0,
        };
        Self { text: writer.text(), mesh, levels, precision, seed }
    }

    /// Computes it by the interpreter and by kernels. Returns how many chains there were, too.
    ///
    /// # Errors
    /// There is not enough memory, or no C++ compiler.
    pub fn compute(&self, compiler: &Compiler) -> Result<(Outcome, usize)> {
        let source = Source::new("random.stn", self.text.clone());
        let lowered = stencilc_compiler::check(&source);
        let Some(program) = lowered.mesh_programs.first().filter(|_| lowered.is_ok()) else {
            let message = diagnostic::render(&lowered.diagnostics, &source, false);
            return Ok((Outcome::Failed(format!("{message}\n{}", self.text)), 0));
        };
        let mut rng = Rng::with_seed(self.seed ^ 0x6b65_726e);
        let request = Request {
            program,
            precision: self.precision,
            contract: rng.bool(),
            mesh: self.mesh.clone(),
            levels: self.levels,
            arrays: BTreeMap::new(),
            settings: BTreeMap::new(),
            seed: self.seed,
            cast: stencilc_runtime::Cast::Exact,
            drawing: stencilc_runtime::Drawing::Inputs,
        };
        let mut problem = MeshProblem::new(request)?;
        if rng.bool() {
            super::kernels::make_extreme(&mut problem, &mut rng);
        }
        let problem = Arc::new(problem);
        let chains = problem.chains.len();
        let Ok(expected) = results(&problem, Interpreter::new(Arc::clone(&problem))) else {
            return Ok((Outcome::Nothing, chains));
        };
        let choices = MeshChoices { layout: VectorLayout::ALL[rng.usize(0..3)], block: 32, ..MeshChoices::default() };
        let method = ["random", "none"][rng.usize(0..2)];
        let ordering = order::find(method)?.ordering(&problem.mesh, &Options::new(rng.usize(0..4)))?;
        let (machine, texts) = (emulator(compiler), Rc::<RefCell<String>>::default());
        let renumbered = Rc::new(Renumbered::new(&problem, &ordering)?);
        let kernels = Kernels::new(Arc::clone(&problem), machine, choices, renumbered).read_by(kept_in(&texts));
        let wrong = match results(&problem, &kernels) {
            Ok(found) => difference(&expected, &found),
            Err(error) => Some(error.to_string()),
        };
        let Some(wrong) = wrong else { return Ok((Outcome::Equal, chains)) };
        let texts = texts.borrow();
        let what = format!("{wrong}\n{choices:?}, {:?}, {method}\n{}\n{texts}", self.precision, self.text);
        Ok((Outcome::Failed(what), chains))
    }
}

/// Edges between cells, borders of cells, and neighbours of cells with holes.
fn mesh(rng: &mut Rng) -> Mesh {
    let cells = [1, 2, 7, 40][rng.usize(0..4)];
    let (edges, borders) = ([0, 3, 60][rng.usize(0..3)], [0, 1, 5][rng.usize(0..3)]);
    let set = |name: &str, size| Set { name: name.to_owned(), size };
    let mut table = |count: usize, holes: usize| {
        let one = |_| if rng.usize(0..10) < holes { HOLE } else { rng.usize(0..cells) as i32 };
        (0..count).map(one).collect::<Vec<i32>>()
    };
    let maps =
        [("cells", 0, 2, table(2 * edges, 0)), ("cell", 1, 1, table(borders, 0)), ("near", 2, 3, table(3 * cells, 3))];
    let maps =
        maps.into_iter().map(|(name, from, arity, table)| Map { name: name.to_owned(), from, to: 2, arity, table });
    Mesh {
        origin: "a random mesh".to_owned(),
        sets: vec![set("edge", edges), set("border", borders), set("cell", cells)],
        maps: maps.collect(),
        fields: Vec::new(),
    }
}

impl Writer {
    fn one_in(&mut self, count: usize) -> bool {
        self.rng.usize(0..count) == 0
    }

    fn of(&mut self) -> usize {
        [0, 0, 0, 1, 1, 2, 3, 4][self.rng.usize(0..8)]
    }

    fn text(&mut self) -> String {
        let mut steps = Vec::new();
        let has_loop = self.one_in(2);
        let calls = self.rng.usize(2..7);
        let first = if has_loop { self.rng.usize(0..calls) } else { calls };
        let mut inside = Vec::new();
        for number in 0..calls {
            // As they mostly come: those that add, and then those that go on with that.
            let adds = self.rng.usize(0..calls + 2) > number;
            let callee = if adds { self.adding() } else { self.own() };
            // Something has to come out.
            let step = self.call(callee, number > first || number + 1 == calls);
            if number > first { inside.push(step) } else { steps.push(step) }
        }
        let mut body: String = steps.iter().map(|step| format!("    {step}\n")).collect();
        if !inside.is_empty() {
            body.push_str("    repeat 2 {\n");
            inside.iter().for_each(|step| body.push_str(&format!("        {step}\n")));
            body.push_str("    }\n");
        }
        let levels = if self.has_levels { "    levels k\n" } else { "" };
        format!(
            "mesh m {{\n    set edge, border, cell\n    map edge.cells -> cell[2]\n    map border.cell -> cell\n    \
             map cell.near -> cell[3] missing skip\n{levels}}}\n{}program p over m {{\n{}\n{body}}}\n",
            self.stencils,
            self.declared.iter().map(|line| format!("    {line}\n")).collect::<String>()
        )
    }

    /// A stencil that adds to cells.
    fn adding(&mut self) -> Callee {
        // From the cells themselves through holes.
        let (over, slots, reads): (&str, &[&str], &[&str]) = match self.rng.usize(0..6) {
            0..3 => ("edge", &["[cells.0]", "[cells.1]"], &["[cells.0]", "[cells.1]"]),
            3..5 => ("border", &["[cell]"], &["[cell]"]),
            _ if self.rng.bool() => ("cell", &["[near.0]"], &[""]),
            _ => ("cell", &["[near.1]", "[near.2]", ""], &[""]),
        };
        let name = format!("add{}", self.callees.len());
        let inputs: Vec<usize> = (0..self.rng.usize(1..3)).map(|_| self.of()).collect();
        let sums: Vec<usize> = (0..if self.one_in(3) { 2 } else { 1 }).map(|_| self.of()).collect();
        let mut text = format!("stencil {name} over m.{over} {{\n");
        self.declare(&mut text, "in", "f", &inputs);
        self.declare(&mut text, "inc", "a", &sums);
        for (number, &of) in sums.iter().enumerate() {
            let all: Vec<String> =
                reads.iter().flat_map(|at| (0..inputs.len()).map(move |n| format!("f{n}{at}"))).collect();
            let inputs: Vec<usize> = reads.iter().flat_map(|_| inputs.iter().copied()).collect();
            let value = self.value(of, &all, &inputs);
            text.push_str(&format!("    let d{number} = {value}\n"));
            let ops = [["+=", "-=", "+="], ["+=", "+=", "-="], ["-=", "+=", "+="]][self.rng.usize(0..3)];
            for (slot, op) in slots.iter().zip(ops) {
                let value = if self.one_in(4) { self.value(of, &all, &inputs) } else { format!("d{number}") };
                text.push_str(&format!("    a{number}{slot} {op} {value}\n"));
            }
        }
        text.push_str("}\n");
        self.stencils.push_str(&text);
        Callee { name, inputs, sums, outputs: Vec::new(), has_param: false, folds: false }
    }

    /// A stencil over cells, which mostly looks at the cell itself.
    fn own(&mut self) -> Callee {
        let name = format!("own{}", self.callees.len());
        let inputs: Vec<usize> = (0..self.rng.usize(1..4)).map(|_| self.of()).collect();
        let outputs: Vec<usize> = (0..self.rng.usize(1..3)).map(|_| self.of()).collect();
        let (has_param, folds) = (self.one_in(3), self.one_in(3));
        let mut text = format!("stencil {name} over m.cell {{\n");
        self.declare(&mut text, "in", "f", &inputs);
        self.declare(&mut text, "out", "w", &outputs);
        if has_param {
            text.push_str("    param c: real\n");
        }
        if folds {
            text.push_str(&format!("    reduce n: {}\n", ["sum", "min", "max"][self.rng.usize(0..3)]));
        }
        let mut reads: Vec<String> = (0..inputs.len()).map(|number| format!("f{number}")).collect();
        let mut types = inputs.clone();
        if self.one_in(6) {
            let number = self.rng.usize(0..inputs.len());
            if !TYPES[inputs[number]].1 {
                reads.push(format!("(sum(e in near) {{ f{number}[e] }})"));
                types.push(inputs[number]);
            }
        }
        if self.has_levels && self.one_in(8) {
            reads.push("f0[k-1]".to_owned());
            types.push(inputs[0]);
        }
        if has_param {
            reads.push("c".to_owned());
            types.push(0);
        }
        for (number, &of) in outputs.iter().enumerate() {
            let value = self.value(of, &reads, &types);
            text.push_str(&format!("    w{number} = {value}\n"));
        }
        if folds {
            let value = self.value(0, &reads, &types);
            let op = if text.contains("n: sum") { "+=" } else { "=" };
            text.push_str(&format!("    n {op} {value}\n"));
        }
        text.push_str("}\n");
        self.stencils.push_str(&text);
        Callee { name, inputs, sums: Vec::new(), outputs, has_param, folds }
    }

    fn declare(&mut self, text: &mut String, role: &str, letter: &str, types: &[usize]) {
        for (number, &of) in types.iter().enumerate() {
            text.push_str(&format!("    {role} {letter}{number}: {} on cell\n", TYPES[of].0));
        }
    }

    /// A value of a type, made of what is read.
    fn value(&mut self, of: usize, reads: &[String], types: &[usize]) -> String {
        let (_, is_int, parts) = TYPES[of];
        let parts: Vec<String> = (0..parts).map(|_| self.number(is_int, reads, types, 2)).collect();
        if parts.len() == 1 { parts[0].clone() } else { format!("[{}]", parts.join(", ")) }
    }

    fn number(&mut self, is_int: bool, reads: &[String], types: &[usize], depth: usize) -> String {
        if depth == 0 || self.one_in(4) {
            let fitting: Vec<usize> = (0..reads.len()).filter(|&n| !is_int || TYPES[types[n]].1).collect();
            if fitting.is_empty() || self.one_in(8) {
                return ["1", "0", "3"][self.rng.usize(0..3)].to_owned() + if is_int { "" } else { ".5" };
            }
            let which = fitting[self.rng.usize(0..fitting.len())];
            let (_, _, parts) = TYPES[types[which]];
            return if parts == 1 {
                reads[which].clone()
            } else {
                format!("{}.{}", reads[which], self.rng.usize(0..parts))
            };
        }
        let (a, b) = (self.number(is_int, reads, types, depth - 1), self.number(is_int, reads, types, depth - 1));
        match self.rng.usize(0..if is_int { 4 } else { 7 }) {
            0 => format!("({a} + {b})"),
            1 => format!("({a} - {b})"),
            2 => format!("({a} * {b})"),
            3 => format!("min({a}, {b})"),
            4 => format!("({a} / {b})"),
            5 => format!("({a} / (abs({b}) + 0.5))"),
            _ => format!("(if {a} < {b} {{ {a} }} else {{ {b} / ({a} + 0.25) }})"),
        }
    }

    fn fresh(&mut self, letter: &str) -> String {
        self.names += 1;
        format!("{letter}{}", self.names)
    }

    /// A variable of a type: one at hand, mostly a late one, or else a new input.
    fn variable(&mut self, of: usize) -> String {
        let mut own: Vec<String> =
            self.variables.iter().rev().filter(|own| own.of == of).map(|own| own.name.clone()).collect();
        own.truncate(2);
        if !own.is_empty() && !self.one_in(6) {
            return own[self.rng.usize(0..own.len())].clone();
        }
        let name = self.fresh("i");
        self.declared.push(format!("in {name}: {} on cell", TYPES[of].0));
        self.variables.insert(0, Variable { name: name.clone(), of });
        name
    }

    /// A call; what it gives goes to what is declared, or to new names.
    fn call(&mut self, callee: Callee, is_declared: bool) -> String {
        let mut args: Vec<String> = callee.inputs.iter().map(|&of| self.variable(of)).collect();
        // What is added to may be left out; then it starts from 0.
        if !callee.sums.is_empty() && !self.one_in(2) {
            args.extend(callee.sums.iter().map(|&of| self.variable(of)).collect::<Vec<_>>());
        }
        if callee.has_param {
            let number = self.numbers.last().filter(|_| self.rng.bool()).cloned();
            args.push(number.unwrap_or_else(|| "0.75".to_owned()));
        }
        let mut results = Vec::new();
        let is_let = !is_declared && !self.one_in(3);
        let written: Vec<usize> = callee.sums.iter().chain(&callee.outputs).copied().collect();
        for of in written {
            let taken = |own: &&Variable| own.of == of && !results.contains(&own.name);
            let known = self.outputs.iter().rev().find(taken).map(|own| own.name.clone());
            let name = match known {
                _ if is_let => self.fresh("v"),
                Some(name) if self.rng.bool() => name,
                _ => {
                    let name = self.fresh("o");
                    self.declared.push(format!("inout {name}: {} on cell", TYPES[of].0));
                    self.outputs.push(Variable { name: name.clone(), of });
                    name
                }
            };
            self.variables.retain(|own| own.name != name);
            results.push(name.clone());
            self.variables.push(Variable { name, of });
        }
        if callee.folds {
            let name = self.fresh("n");
            if !is_let {
                self.declared.push(format!("out {name}: real on ()"));
            }
            self.numbers.push(name.clone());
            results.push(name);
        }
        let call = format!("{} = {}({})", results.join(", "), callee.name, args.join(", "));
        self.callees.push(callee);
        if is_let { format!("let {call}") } else { call }
    }
}
