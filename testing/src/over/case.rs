//! One case: a program over a mesh, by the evaluator, by the interpreter, and by kernels, of some strategy, in some layout and order
//! of elements. Where the strategy keeps the order of what is added, every bit has to be the interpreter's; where not, sums have to be
//! as near as another order can make them.

use super::program::evaluate::{self, Arrays};
use super::program::tree::{Action, Program};
use super::program::{generate, shrink};
use super::tree::{self, HOLE, Missing, Write};
use crate::subject::{self, Failure, Many, Outcome};
use fastrand::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;
use stencilc_compiler::diagnostic;
use stencilc_compiler::ir::{MeshProgram, Precision};
use stencilc_compiler::mesh::{MeshChoices, STRATEGIES, Threads, VectorLayout};
use stencilc_compiler::source::Source;
use stencilc_runtime::driver::Driver;
use stencilc_runtime::mesh::order::{self, Options};
use stencilc_runtime::mesh::program::cpu::Interpreter;
use stencilc_runtime::mesh::program::kernels::Renumbered;
use stencilc_runtime::mesh::program::parts::Owners;
use stencilc_runtime::mesh::program::{MeshProblem, Request};
use stencilc_runtime::mesh::{Field, Map, Mesh, Set, ZONE};
use stencilc_runtime::verify::mesh::{Expected, OverMesh, Way};
use stencilc_runtime::verify::mesh_parts::OverMeshInParts;
use stencilc_runtime::verify::{Library, Tools, Verdict, verify_by};
use stencilc_runtime::{Data, Result};

/// A program and what it is computed on.
#[derive(Clone, Debug)]
pub struct Case {
    seed: u64,
    program: Program,
    precision: Precision,
}

/// A case that interpreter and evaluator agree on.
pub struct Ready {
    case: Case,
    lowered: MeshProgram,
    /// How many chains of calls are one kernel each.
    chains: usize,
    choices: MeshChoices,
}

/// What of a program is larger than the compiler takes, or is known to be wrong before it runs.
const LIMITS: [&str; 3] =
    ["this whole number does not fit 32 bits", "operations when written out", "operations when all"];

impl Case {
    fn rng(&self) -> Rng {
        Rng::with_seed(self.seed ^ 0x6b65_726e)
    }

    /// How kernels compute it. Only of one call it is known how far off another order of additions may be.
    fn choices(&self) -> MeshChoices {
        let mut rng = self.rng();
        let is_alone = matches!(self.program.actions[..], [Action::Call { .. }]);
        let all: Vec<_> = STRATEGIES.iter().filter(|own| is_alone || own.is_ordered()).collect();
        // What merges calls more often than others.
        let usual = MeshChoices::default();
        let strategy = if !is_alone && rng.bool() { usual.strategy } else { *all[rng.usize(0..all.len())] };
        let layout = VectorLayout::ALL[rng.usize(0..VectorLayout::ALL.len())];
        // Meshes are small, and tiles and blocks are to be several.
        let threads = Threads { block: [4, 32][rng.usize(0..2)], at_once: 0, slice: [1, 2, 3][rng.usize(0..3)] };
        MeshChoices { strategy, layout, threads, ..usual }
    }

    /// Who owns which element where it is computed in two to four parts: as devices would have them, or anyhow.
    fn owners(&self, problem: &MeshProblem) -> Result<Owners> {
        let (mut rng, parts) = (self.rng().fork(), 2 + (self.seed % 3) as usize);
        if rng.bool()
            && let Ok(owners) = Owners::new(problem, parts)
        {
            return Ok(owners);
        }
        let sizes = self.program.mesh.sets.iter();
        let of = sizes.map(|&size| (0..size).map(|_| rng.u32(0..parts as u32)).collect());
        Owners::given(problem, parts, of.collect())
    }

    /// Whether kernels compute it in parts, too, each of which has kernels of its own to compile.
    fn has_kernels_of_parts(&self) -> bool {
        self.rng().usize(0..3) == 0
    }

    fn lowered(&self) -> std::result::Result<MeshProgram, String> {
        let source = Source::new("random.stn", self.program.to_string());
        let lowered = stencilc_compiler::check(&source);
        match lowered.is_ok() {
            true => lowered.mesh_programs.into_iter().next().ok_or_else(|| "no program".to_owned()),
            false => Err(diagnostic::render(&lowered.diagnostics, &source, false)),
        }
    }

    fn problem(&self, program: &MeshProgram, contract: bool) -> Result<MeshProblem> {
        MeshProblem::new(Request {
            program,
            precision: self.precision,
            contract,
            mesh: given(&self.program.mesh),
            levels: self.program.mesh.levels,
            arrays: BTreeMap::new(),
            settings: BTreeMap::new(),
            seed: self.seed,
            cast: stencilc_runtime::Cast::Exact,
            drawing: stencilc_runtime::Drawing::Inputs,
        })
    }
}

impl Ready {
    /// What kernels compute, and in which order of elements: other numbers than the evaluator's, some of them such as divisions and sums
    /// have to take care of.
    fn subject(&self) -> Result<(OverMesh, Way)> {
        let mut rng = self.case.rng().fork();
        let mut problem = self.case.problem(&self.lowered, rng.bool())?;
        // Without an order, what is no number has no bound.
        if self.choices.strategy.is_ordered() && rng.bool() {
            make_extreme(&mut problem, &mut rng);
        }
        let problem = Arc::new(problem);
        let expected = Expected::new(&problem)?;
        let method = ["random", "none", "metis"][rng.usize(0..3)];
        let lead = rng.usize(0..problem.mesh.sets.len());
        let ordering = order::find(method)?.ordering(&problem.mesh, &Options { block: 6, ..Options::new(lead) })?;
        let way = Way { renumbered: Arc::new(Renumbered::new(&problem, &ordering)?), choices: self.choices };
        Ok((OverMesh { problem, expected }, way))
    }
}

impl subject::Case for Case {
    const NAME: &'static str = "meshes";
    type Ready = Ready;

    fn new(seed: u64) -> Self {
        let precision = if seed.is_multiple_of(2) { Precision::F64 } else { Precision::F32 };
        Self { seed, program: generate::program(seed), precision }
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn text(&self) -> String {
        let (precision, mesh) = (self.precision.name(), &self.program.mesh);
        let choices = self.choices();
        format!("// --precision {precision} --seed {}; {choices:?}; {mesh:?}\n{}", self.seed, self.program)
    }

    fn prepare(&self) -> Result<Outcome<Ready>> {
        let lowered = match self.lowered() {
            Ok(lowered) => lowered,
            Err(message) if LIMITS.iter().any(|limit| message.contains(limit)) => return Ok(Outcome::Nothing),
            Err(message) => return Ok(Outcome::Failed(Failure::Rejected(message))),
        };
        let problem = self.problem(&lowered, false)?;
        let mut arrays = Arrays::new();
        for (id, own) in problem.program.program.variables.iter() {
            let number = own.name.strip_prefix('v').and_then(|number| number.parse().ok());
            if let (Some(number), Some(data)) = (number, problem.initial.get(&id)) {
                arrays.insert(number, doubles(data));
            }
        }
        let expected = evaluate::run(&self.program, self.precision == Precision::F32, arrays);
        let interpreter = Interpreter::new(problem.clone());
        let mut driver = Driver::new(&interpreter).given()?;
        let expected = match (driver.finish(), expected) {
            (Err(_), None) => return Ok(Outcome::Nothing),
            (Err(error), Some(_)) => return Ok(Outcome::Failed(Failure::Region(error.message))),
            (Ok(()), None) => return Ok(Outcome::Failed(Failure::Accepted("there is no level to compute".to_owned()))),
            (Ok(()), Some(expected)) => expected,
        };
        for (id, data) in driver.results()? {
            let name = &problem.program.program.variables[id].name;
            let number: usize = name.strip_prefix('v').and_then(|own| own.parse().ok()).unwrap_or_default();
            let (own, all) = (data.as_ref().map(doubles).unwrap_or_default(), &expected[&number]);
            let differ = |(a, b): (&f64, &f64)| a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan());
            let wrong = if own.len() == all.len() { own.iter().zip(all).position(differ) } else { Some(0) };
            if let Some(at) = wrong {
                let [all, own] = [all, &own].map(|all| all.get(at));
                let message = format!("{name}[{at}]: {all:?} by the evaluator, by the interpreter {own:?}");
                return Ok(Outcome::Failed(Failure::Value(message)));
            }
        }
        let problem = Arc::new(problem);
        let expected = Expected::new(&problem)?;
        let in_parts = OverMeshInParts { problem: &problem, expected: &expected, owners: self.owners(&problem)? };
        if let Some(failure) = Failure::of(&in_parts.interpreted()?) {
            return Ok(Outcome::Failed(Failure::Fused(format!("in {} parts: {failure}", in_parts.owners.parts()))));
        }
        let chains = problem.chains.len();
        Ok(Outcome::Ready(Ready { case: self.clone(), lowered, chains, choices: self.choices() }))
    }

    fn compare(ready: &[Ready], tools: &Tools) -> Result<Vec<Verdict>> {
        let made = ready.iter().map(Ready::subject).collect::<Result<Vec<_>>>()?;
        let (subjects, ways): (Vec<OverMesh>, Vec<Way>) = made.into_iter().unzip();
        let ways: Vec<(usize, Way)> = ways.into_iter().enumerate().collect();
        // Parts have kernels of the whole, too.
        let library = Library::new(tools);
        let mut verdicts = verify_by(&Many(subjects.iter().collect()), &ways, &library, &|_| {})?;
        let (mut cut, mut ways_of_parts) = (Vec::new(), Vec::new());
        for (number, Way { renumbered, choices }) in &ways {
            let is_right = matches!(verdicts[*number], Verdict::Equal { .. } | Verdict::Within { .. });
            if is_right && ready[*number].case.has_kernels_of_parts() {
                let OverMesh { problem, expected } = &subjects[*number];
                let owners = ready[*number].case.owners(problem)?;
                let way = Way { renumbered: Arc::clone(renumbered), choices: *choices };
                ways_of_parts.push((cut.len(), way));
                cut.push((number, OverMeshInParts { problem, expected, owners }));
            }
        }
        let in_parts = verify_by(&Many(cut.iter().map(|(_, own)| own).collect()), &ways_of_parts, &library, &|_| {})?;
        for ((number, own), verdict) in cut.iter().zip(in_parts) {
            // What computes the whole computes parts of it.
            verdicts[**number] = match verdict {
                Verdict::Equal { .. } | Verdict::Within { .. } => continue,
                Verdict::Refused { reason } => {
                    let damage = vec![format!("in {} parts: refused: {reason}", own.owners.parts())];
                    Verdict::Failed { order: None, mismatches: Vec::new(), damage }
                }
                verdict => verdict,
            };
        }
        Ok(verdicts)
    }

    fn has(ready: &Ready) -> Vec<String> {
        let Program { mesh, stencils, .. } = &ready.case.program;
        let text = ready.case.program.to_string();
        let holes = |missing: fn(&Missing) -> bool| {
            mesh.maps.iter().any(|map| missing(&map.missing) && map.table.contains(&HOLE))
        };
        let writes = || stencils.iter().flat_map(|own| &own.writes).map(|(write, _)| write);
        let has = [
            ("skipped holes", holes(|own| *own == Missing::Skip)),
            ("holes with a value", holes(|own| matches!(own, Missing::Value(_)))),
            ("levels", mesh.levels.is_some()),
            ("lets", stencils.iter().any(|own| !own.lets.is_empty())),
            ("lets on other sets", stencils.iter().any(|own| own.lets.iter().any(|value| value.set != own.over))),
            ("levels that are data", text.contains("k + f")),
            ("levels that are data themselves", text.contains("level f")),
            (
                "levels by their numbers",
                (text.split("level ").skip(1)).any(|after| after.contains(']') && !after.starts_with('f')),
            ),
            ("outputs", writes().any(|own| matches!(own, Write::Out(_)))),
            ("increments", writes().any(|own| matches!(own, Write::Inc(..)))),
            ("reductions", writes().any(|own| matches!(own, Write::Reduce(..)))),
            ("one call", matches!(ready.case.program.actions[..], [Action::Call { .. }])),
            ("chains of calls", ready.chains > 0),
            ("loops", text.contains("    repeat ")),
            ("sums that go on", text.contains(", a0 = v")),
            ("numbers that are passed on", text.contains("p0 = v")),
            ("sums over maps", text.contains("(sum(c")),
            ("other levels", text.contains(", k-") || text.contains(", k+1]")),
            ("levels that are said", stencils.iter().any(|own| own.levels.is_some())),
            ("zones that are said", stencils.iter().any(|own| own.zones.is_some())),
            ("questions for zones", text.contains("in_zone(")),
            ("questions for zones of neighbours", {
                let mut asked = text.split("in_zone(").skip(1);
                asked.any(|after| after.split_once(')').is_some_and(|(_, behind)| behind.starts_with('[')))
            }),
            ("sweeps", text.contains("    sweep k")),
            ("sweeps through interfaces", stencils.iter().any(|own| !own.sweeps.is_empty() && own.levels.is_some())),
            ("calls in a place", text.contains(") on ")),
            ("interfaces of levels", text.contains(", k+1\n")),
            ("fields that are given new numbers", text.contains("    inout ")),
        ];
        has.into_iter().filter(|own| own.1).map(|own| own.0.to_owned()).collect()
    }

    fn way(ready: &Ready) -> String {
        ready.choices.strategy.name().to_owned()
    }

    fn smaller(&self) -> Vec<Self> {
        shrink::smaller(&self.program).into_iter().map(|program| Self { program, ..self.clone() }).collect()
    }
}

/// Makes some numbers of a problem such as divisions and sums have to take care of.
fn make_extreme(problem: &mut MeshProblem, rng: &mut Rng) {
    for data in problem.initial.values_mut() {
        for index in 0..data.len() {
            let number = [0.0, -0.0, 1e-300, -1e300, 1e-38, 1e30, f64::INFINITY, f64::NAN][rng.usize(0..8)];
            match data {
                _ if rng.usize(0..6) > 0 => {}
                Data::F64(all) => all[index] = number,
                Data::F32(all) => all[index] = number as f32,
                Data::I32(_) | Data::Bool(_) => {}
            }
        }
    }
}

/// A mesh as it would come from a file.
fn given(own: &tree::Mesh) -> Mesh {
    let sets = own.sets.iter().enumerate().map(|(set, &size)| Set { name: format!("s{set}"), size });
    let maps = own.maps.iter().enumerate().map(|(number, map)| Map {
        name: format!("m{number}"),
        from: map.from,
        to: map.to,
        arity: map.arity,
        table: map.table.clone(),
    });
    let zoned = own.zones.iter().enumerate().filter(|(_, (count, _))| *count > 0);
    let fields = zoned.map(|(set, (_, zones))| {
        let data = Data::I32(zones.iter().copied().map(i32::from).collect());
        Field { name: ZONE.to_owned(), set, map: None, parts: 1, data }
    });
    let (sets, maps, fields) = (sets.collect(), maps.collect(), fields.collect());
    Mesh { origin: "a random mesh".to_owned(), sets, maps, fields }
}

fn doubles(data: &Data) -> Vec<f64> {
    (0..data.len()).map(|at| data.get(at)).collect()
}
