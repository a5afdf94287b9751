//! One case: a program and all that is chosen for it, and what the CPU makes of it, twice.

use crate::evaluate::{Evaluated, Given, evaluate};
use crate::graph::Graph;
use crate::subject::{self, Failure, Outcome};
use crate::tree::Program;
use crate::{device, generate, shrink};
use std::collections::BTreeMap;
use stencilc_compiler::access::knobs::Knobs;
use stencilc_compiler::analysis::extents::{demand, extents};
use stencilc_compiler::diagnostic;
use stencilc_compiler::grid::{Form, Grid};
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Field, Handle, Kind, Param, Precision, Stencil};
use stencilc_compiler::plan::{self, Choices, Math, variants};
use stencilc_compiler::source::Source;
use stencilc_compiler::storage::STORAGES;
use stencilc_compiler::storage::fastest::Fastest;
use stencilc_compiler::storage::neighbors::Neighbors;
use stencilc_runtime::problem::{Problem, Request, element_of};
use stencilc_runtime::verify::{Expected, Tools, Verdict, compare, plan_for};
use stencilc_runtime::{Data, interpreter, moving};

/// The most operations of one kernel, each offset counted: what a C++ compiler translates in a moment.
const OPERATIONS: usize = 1200;

/// A program and what is chosen for it.
#[derive(Clone, Debug)]
pub struct Case {
    /// Where it comes from.
    pub seed: u64,
    /// The program's text.
    pub text: String,
    /// What it is the text of, if it was written here.
    pub tree: Option<Program>,
    /// The grid.
    pub grid: Grid,
    /// What links its cells, if they stand in no rows.
    pub graph: Option<Graph>,
    /// Precision, storage, strategy and their knobs.
    pub choices: Choices,
    /// Values of parameters, as on the command line; others have their default.
    pub settings: BTreeMap<String, Value>,
    /// For tests of the tests: the second evaluator has a fault.
    pub faulty: bool,
}

/// A case that the interpreter and the evaluator agree on.
pub struct Ready {
    /// Where it comes from.
    pub case: Case,
    /// The numbers.
    pub problem: Problem,
    /// What comes out.
    pub expected: Expected,
}

/// The stencil of a text, or what the checker says.
fn lowered(text: &str) -> Result<Stencil, String> {
    let source = Source::new("random.stn", text);
    let lowered = stencilc_compiler::check(&source);
    if !lowered.is_ok() {
        return Err(diagnostic::render(&lowered.diagnostics, &source, false));
    }
    lowered.stencils.into_iter().next().ok_or_else(|| "no stencil".to_owned())
}

/// How many operations a cell takes if every offset is computed by itself.
fn operations(stencil: &Stencil) -> usize {
    let demand = demand(stencil);
    let of_defs = demand.defs.iter().map(|(def, offsets)| stencil.defs[*def].body.len() * offsets.len());
    of_defs.sum::<usize>() + stencil.stores.iter().map(|store| store.body.len()).sum::<usize>()
}

impl Case {
    /// The program of a seed. Programs that would take a C++ compiler long are passed over.
    pub fn program(seed: u64) -> Program {
        let mut attempt = 0u64;
        loop {
            let program = generate::program(seed ^ attempt.rotate_right(8));
            attempt += 1;
            if lowered(&program.to_string()).is_ok_and(|stencil| operations(&stencil) > OPERATIONS) {
                continue;
            }
            return program;
        }
    }

    /// The case of a text: all is chosen for it by the seed, if it is a correct one.
    pub fn of_text(seed: u64, text: String) -> Case {
        match lowered(&text) {
            Ok(stencil) => Case::chosen(seed, text, &stencil),
            Err(_) => {
                let (grid, choices) = (Grid::rows(1, 1, 1), Choices::default());
                Case { seed, text, tree: None, grid, graph: None, choices, settings: BTreeMap::new(), faulty: false }
            }
        }
    }

    fn chosen(seed: u64, text: String, stencil: &Stencil) -> Case {
        let mut rng = fastrand::Rng::with_seed(seed.wrapping_mul(0xd134_2543_de82_ef95) ^ 0x1234_5678);
        let mut pick = |from: &[usize]| from[rng.usize(0..from.len())];
        let reach = extents(stencil);
        let along = |low: i32, high: i32, more: usize| (high - low).unsigned_abs() as usize + 1 + more;
        // Ragged: often hardly wider than the halo.
        let grid = Grid {
            ni: along(reach.low.i, reach.high.i, pick(&[0, 1, 2, 3, 6, 11])),
            nj: along(reach.low.j, reach.high.j, pick(&[0, 1, 2, 4])),
            nk: pick(&[1, 2, 2, 3, 3, 4, 5, 7]),
            form: Form::Rows,
        };
        let precision = if pick(&[0, 1]) == 0 { Precision::F32 } else { Precision::F64 };
        let blocks = [[64, 2, 1], [1, 1, 1], [8, 2, 3], [32, 1, 1], [3, 5, 2], [16, 16, 1], [7, 1, 4]];
        let variants: Vec<Choices> = variants().collect();
        // As often each storage as the others, though some have many more variants.
        let storage = STORAGES[pick(&[0, 1, 2, 3, 4, 5]) % STORAGES.len()].name();
        let mut own: Vec<usize> = (0..variants.len()).filter(|&number| variants[number].storage == storage).collect();
        // Patches have few variants.
        let patches: Vec<usize> = own.iter().copied().filter(|&number| variants[number].access == "patches").collect();
        if !patches.is_empty() && pick(&[0, 0, 0, 0, 1]) == 1 {
            own = patches;
        }
        // So have walks along k, which do not compute everything.
        own.retain(|&number| !variants[number].walks() || variants[number].suits(stencil));
        let walks: Vec<usize> = own.iter().copied().filter(|&number| variants[number].walks()).collect();
        if !walks.is_empty() && pick(&[0, 0, 1]) == 1 {
            own = walks;
        }
        let variant = variants[pick(&own)].clone();
        let flat = [[32, 1, 1], [32, 3, 1], [64, 2, 1], [96, 1, 1]];
        let mut choices = Choices {
            precision,
            contract: pick(&[0, 1, 1, 1]) == 1,
            block: if variant.walks() { flat[pick(&[0, 1, 2, 3])] } else { blocks[pick(&[0, 1, 2, 3, 4, 5, 6])] },
            knobs: Knobs::from([
                ("slice".to_owned(), [pick(&[1, 2, 3, 8]) as u32].into()),
                ("patch".to_owned(), [pick(&[1, 2, 2, 4]) as u32, pick(&[1, 2, 2, 4]) as u32].into()),
                ("lane".to_owned(), [pick(&[1, 2, 4]) as u32].into()),
                ("height".to_owned(), [pick(&[0, 1, 2, 3, 8]) as u32].into()),
                ("stage".to_owned(), [pick(&[2, 3, 4]) as u32].into()),
                ("chunk".to_owned(), [pick(&[0, 0, 1, 2, 5]) as u32].into()),
                ("tile".to_owned(), [pick(&[1, 2, 2, 4, 8]) as u32, pick(&[1, 2, 3, 4]) as u32].into()),
            ]),
            wide: pick(&[0, 0, 0, 1]) == 1,
            checked: pick(&[0, 0, 0, 0, 0, 0, 0, 1]) == 1 && variant.fastest == Fastest::Columns && !variant.walks(),
            math: Math::Own,
            run_width: [1, 2, 8, 32][pick(&[0, 1, 2, 3])],
            short_last: storage != "regular" && pick(&[0, 0, 1]) == 1,
            constant: storage == "compressed" && pick(&[0, 0, 0, 1]) == 1,
            ..variant
        };
        let prepared = plan::prepare(stencil, precision, choices.contract);
        let any = Choices { constant: false, checked: false, ..choices.clone() };
        if plan::plan(&prepared, &any, None).is_err() {
            // Nothing to follow step by step.
            choices.neighbors = Neighbors::Direct;
        }
        let mut settings = BTreeMap::new();
        for (_, param) in stencil.params.iter() {
            if param.default.is_none() || pick(&[0, 1]) == 1 {
                settings.insert(param.name.clone(), draw(param, pick(&[0, 1, 2, 3, 4, 5, 6, 7])));
            }
        }
        let mut case = Case { seed, text, tree: None, grid, graph: None, choices, settings, faulty: false };
        // Where levels are read without a guard, there must be enough of them.
        for more in [3, 6] {
            if case.problem(stencil).is_err() {
                case.grid.nk += more;
            }
        }
        case
    }

    /// The same on cells that stand in no rows, whose neighbours depend on the seed.
    pub fn on_a_graph(self) -> Case {
        let graph = Graph::new(self.seed);
        let grid = Grid::cells(graph.adjacency().cells(), self.grid.nk);
        let mut case = Case { grid, graph: Some(graph), ..self };
        let problem = lowered(&case.text).ok().and_then(|stencil| case.problem(&stencil).ok());
        let is_followed = case.choices.neighbors == Neighbors::Chasing;
        if is_followed && problem.is_some_and(|problem| plan_for(&problem, &case.choices).is_err()) {
            // Paths that no other leads to cannot be followed step by step.
            case.choices.neighbors = Neighbors::Direct;
        }
        case
    }

    /// The numbers that it computes with.
    fn problem(&self, stencil: &Stencil) -> stencilc_runtime::Result<Problem> {
        Problem::new(Request {
            stencil,
            precision: self.choices.precision,
            contract: self.choices.contract,
            grid: Some(self.grid),
            adjacency: self.graph.as_ref().map(Graph::adjacency),
            arrays: BTreeMap::new(),
            settings: self.own_settings(stencil).map(|(name, value)| (name.clone(), text_of(*value))).collect(),
            seed: self.seed,
            cast: stencilc_runtime::Cast::Exact,
            drawing: stencilc_runtime::Drawing::Everything,
        })
    }

    /// Settings of parameters that the stencil has: cutting a program smaller may have taken some away.
    fn own_settings<'a>(&'a self, stencil: &'a Stencil) -> impl Iterator<Item = (&'a String, &'a Value)> {
        let has = |name: &str| stencil.params.iter().any(|(_, param)| param.name == name);
        self.settings.iter().filter(move |(name, _)| has(name))
    }

    /// The command that verifies the program under these choices, after its text is written to `file`; and the lists of a graph, where
    /// there is one, as arrays to `graph.npz`.
    pub fn command(&self, file: &str) -> String {
        let (choices, grid, seed) = (self.choices.words(), self.grid, self.seed);
        let grid = match &self.graph {
            Some(_) => format!("graph.npz --levels {}", grid.nk),
            None => grid.to_string(),
        };
        let mut command = format!("stencilc verify {file} --grid {grid} {choices} --seed {seed}");
        let stencil = lowered(&self.text).unwrap_or_default();
        for (name, value) in self.own_settings(&stencil) {
            command += &format!(" --set {name}={}", text_of(*value));
        }
        command
    }

    fn evaluate(&self, stencil: &Stencil, problem: Option<&Problem>) -> Result<Evaluated, String> {
        let source = Source::new("random.stn", self.text.as_str());
        let file = stencilc_compiler::parse::parse(&source).map_err(|diagnostic| diagnostic.message)?;
        let Choices { precision, contract, .. } = self.choices;
        let (mut inputs, mut outputs) = (BTreeMap::new(), BTreeMap::new());
        for (id, field) in stencil.fields.iter() {
            // Where there is no problem, only the question is whether there is a cell to compute.
            let of = |data: Option<&Vec<Option<Data>>>| match data {
                Some(data) => data[id.index()].clone(),
                None => Some(Data::fresh(element_of(field.stored, precision), length(self.grid, field))),
            };
            inputs.extend(of(problem.map(|problem| &problem.inputs)).map(|data| (field.name.clone(), data)));
            outputs.extend(of(problem.map(|problem| &problem.outputs)).map(|data| (field.name.clone(), data)));
        }
        let (grid, params, faulty) = (self.grid, &self.settings, self.faulty);
        let adjacency = self.graph.as_ref().map(Graph::adjacency);
        let (adjacency, inputs, outputs) = (adjacency.as_deref(), &inputs, &outputs);
        evaluate(&file, Given { precision, contract, grid, adjacency, params, inputs, outputs, faulty })
    }
}

impl subject::Case for Case {
    const NAME: &'static str = "stencils";
    type Ready = Ready;

    fn new(seed: u64) -> Self {
        let program = Case::program(seed);
        let case = Case { tree: Some(program.clone()), ..Case::of_text(seed, program.to_string()) };
        match case.choices.storage != "regular" && seed.is_multiple_of(3) {
            true => case.on_a_graph(),
            false => case,
        }
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn text(&self) -> String {
        let graph = self.graph.as_ref().map_or(String::new(), |graph| format!("// {graph}\n"));
        format!("// {}\n{graph}{}", self.command("random.stn"), self.text)
    }

    fn prepare(&self) -> stencilc_runtime::Result<Outcome<Ready>> {
        let failed = |failure| Ok(Outcome::Failed(failure));
        let stencil = match lowered(&self.text) {
            Ok(stencil) => stencil,
            Err(message) => return failed(Failure::Rejected(message)),
        };
        let problem = self.problem(&stencil);
        let evaluated = match self.evaluate(&stencil, problem.as_ref().ok()) {
            Ok(evaluated) => evaluated,
            Err(message) => return failed(Failure::Accepted(message)),
        };
        let problem = match (problem, &evaluated) {
            (Ok(problem), _) => problem,
            (Err(_), Evaluated::Nothing) => return Ok(Outcome::Nothing),
            // What two reads ask of one number may be too much on a grid of few levels.
            (Err(error), _) if moving::is_impossible(&error) || moving::is_no_level(&error) => {
                return Ok(Outcome::Nothing);
            }
            (Err(error), Evaluated::Computed { region, .. }) => {
                let message = format!("the evaluator computes {region}, the compiler says: {}", error.message);
                return failed(Failure::Region(message));
            }
        };
        let Evaluated::Computed { region, outputs } = evaluated else {
            let message = format!("the evaluator computes none, the compiler {}", problem.region);
            return failed(Failure::Region(message));
        };
        if region != problem.region {
            let message = format!("the evaluator computes {region}, the compiler {}", problem.region);
            return failed(Failure::Region(message));
        }
        let mut expected = problem.outputs.clone();
        let inputs = problem.inputs();
        if let Err(error) = interpreter::interpret(&problem.job(&inputs), &mut expected, &|_| {}) {
            return failed(Failure::Value(error.message));
        }
        for (id, field) in problem.stencil.fields.iter() {
            if let (Some(expected), Some(found)) = (&expected[id.index()], outputs.get(&field.name))
                && let Some(mismatch) = compare(&problem, &field.name, expected, found)
            {
                return failed(Failure::Value(format!("{mismatch:?}")));
            }
        }
        let expected = Expected { outputs: expected, untaken: Vec::new() };
        Ok(Outcome::Ready(Ready { case: self.clone(), problem, expected }))
    }

    fn compare(ready: &[Ready], tools: &Tools) -> stencilc_runtime::Result<Vec<Verdict>> {
        device::compare(ready, tools)
    }

    fn has(ready: &Ready) -> Vec<String> {
        let choices = &ready.case.choices;
        let Choices { access, storage, fastest, neighbors, layout, run_width, short_last, fields, constant, .. } =
            choices;
        let Choices { precision, contract, block, wide, checked, math, .. } = choices;
        let chosen = [
            format!("grid {}", if ready.case.graph.is_some() { "of cells" } else { "in rows" }),
            format!("storage {storage}"),
            format!("access {access}"),
            format!("fastest {}", fastest.name()),
            format!("neighbors {}", neighbors.name()),
            format!("layout {layout}"),
            format!("run width {run_width}"),
            format!("short last {short_last}"),
            format!("fields {}", fields.name()),
            format!("constant {constant}"),
            format!("precision {}", precision.name()),
            format!("contract {contract}"),
            format!("block {block:?}"),
            format!("wide {wide}"),
            format!("checked {checked}"),
            format!("math {}", math.name()),
        ];
        let settings = choices.settings().map(|(knob, setting)| format!("{} {setting}", knob.name));
        chosen.into_iter().chain(settings).collect()
    }

    fn way(ready: &Ready) -> String {
        ready.case.choices.storage.clone()
    }

    fn smaller(&self) -> Vec<Self> {
        shrink::smaller(self)
    }
}

fn length(grid: Grid, field: &Field) -> usize {
    grid.shape(field.place).iter().product()
}

/// One of eight values for a parameter. Whole ones are not 0, since they may divide.
fn draw(param: &Param, which: usize) -> Value {
    match param.kind {
        Kind::Real => Value::Real([0.5, -1.25, 0.1, 3.0, 1e-3, 0.75, -0.3, 2.5][which]),
        Kind::Int => Value::Int([1, 2, 3, 1, 5, -1, -3, 2][which]),
        Kind::Bool => Value::Bool(which.is_multiple_of(2)),
    }
}

fn text_of(value: Value) -> String {
    match value {
        Value::Real(x) => format!("{x:?}"),
        Value::Int(x) => x.to_string(),
        Value::Bool(x) => x.to_string(),
    }
}
