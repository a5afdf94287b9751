//! Stencils and programs over meshes: every way to compute them against the interpreter. A stencil is a program that calls it once.

use super::compare::differs;
use super::{Mismatch, Site, Sites, Subject, Verdict, overwritten};
use crate::array::Data;
use crate::build::Build;
use crate::driver::{Backend, Driver};
use crate::emulate::Source;
use crate::interpreter::mesh::{MeshJob, interpret_mesh, len};
use crate::mesh::program::cpu::{self, Interpreter};
use crate::mesh::program::kernels::{Kernels, Renumbered};
use crate::mesh::program::measure::only_call;
use crate::mesh::program::{MeshProblem, shape};
use crate::problem::element_of;
use crate::program::planned::Text;
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use stencilc_compiler::ir::mesh::How;
use stencilc_compiler::ir::program::Call;
use stencilc_compiler::ir::{FieldId, Handle, Levels, MeshStencil, Precision, Role, VariableId};
use stencilc_compiler::mesh::{Additions, MeshChoices};

/// What a program leaves, by the interpreter.
pub struct Expected {
    outputs: Vec<Output>,
}

/// What one of its variables holds.
struct Output {
    variable: VariableId,
    data: Data,
    /// Of each number how far off it may be where values are added in another order; nothing where none is added.
    slack: Vec<f64>,
}

impl Expected {
    /// What the interpreter computes. Only of a stencil by itself is it known how far off another order of additions may be.
    ///
    /// # Errors
    /// An array is missing, or there is not enough memory.
    pub fn new(problem: &Arc<MeshProblem>) -> Result<Self> {
        let mut driver = Driver::new(Interpreter::new(Arc::clone(problem))).given()?;
        driver.finish()?;
        let mut slacks = match only_call(problem) {
            Ok(call) => slacks(problem, call)?,
            Err(_) => BTreeMap::new(),
        };
        let outputs = driver.results()?.into_iter().filter_map(|(variable, data)| {
            let slack = slacks.remove(&variable).unwrap_or_default();
            Some(Output { variable, data: data?, slack })
        });
        Ok(Self { outputs: outputs.collect() })
    }

    /// What its variables hold.
    pub fn outputs(&self) -> impl Iterator<Item = (VariableId, &Data)> {
        self.outputs.iter().map(|own| (own.variable, &own.data))
    }

    /// Whether a comparison with it proves something.
    ///
    /// # Errors
    /// Every number of an output is NaN.
    pub fn check_worth(&self, problem: &MeshProblem) -> Result<()> {
        for Output { variable, data, .. } in &self.outputs {
            let is_real = matches!(data, Data::F32(_) | Data::F64(_));
            if is_real && !data.is_empty() && (0..data.len()).all(|at| data.get(at).is_nan()) {
                let name = &problem.program.program.variables[*variable].name;
                let is_empty = |own: &&MeshStencil| {
                    let zones = own
                        .stencil
                        .zones
                        .filter(|_| own.stencil.fields.iter().any(|(_, field)| field.role == Role::Out));
                    let mut of =
                        (0..problem.bound.size(own.set())).map(|element| problem.bound.zone(own.set(), element));
                    zones.is_some_and(|zones| !of.any(|zone| zones.contain(zone)))
                };
                if let Some(own) = problem.program.stencils.iter().find(is_empty) {
                    let zones =
                        own.stencil.zones.map(|zones| own.mesh.zone_names(own.set(), zones)).unwrap_or_default();
                    return Err(Error::check(format!(
                        "every number of `{name}` is NaN, so nothing is known: in {} no `{}` is in {zones}, which `{}` computes",
                        problem.mesh.origin,
                        own.mesh.sets[own.set()].name,
                        own.stencil.whole_name()
                    )));
                }
                return Err(Error::check(format!(
                    "every number of `{name}` is NaN, so nothing is known: give the mesh fields, or declare ranges"
                )));
            }
        }
        Ok(())
    }

    /// How what a program left compares. Where values are added in the order of elements (`in_order`), every bit has to be the same.
    ///
    /// # Errors
    /// A kernel has failed.
    pub fn judged<B: Backend>(&self, problem: &MeshProblem, driver: &Driver<B>, in_order: bool) -> Result<Verdict> {
        let (mut numbers, mut share, mut mismatches) = (0, 0.0_f64, Vec::new());
        for Output { variable, data, slack } in &self.outputs {
            let own = &problem.program.program.variables[*variable];
            let found = driver.get(*variable)?;
            let found = found.ok_or_else(|| Error::check(format!("`{}` was not computed", own.name)))?;
            numbers += data.len();
            let beyond = |index: usize| -> f64 {
                match (differs(data, &found, index), in_order) {
                    (false, _) => 0.0,
                    (true, true) => f64::INFINITY,
                    (true, false) => off(data.get(index), found.get(index), slack.get(index).copied().unwrap_or(0.0)),
                }
            };
            // What is no number is never within a bound.
            let is_wrong = |index: usize| beyond(index) > 1.0 || beyond(index).is_nan();
            let place = |index: usize| place(problem, *variable, index);
            match Mismatch::of(&own.name, [data, &found], is_wrong, place) {
                Some(mismatch) => mismatches.push(mismatch),
                None => share = (0..data.len()).map(beyond).fold(share, f64::max),
            }
        }
        match mismatches.is_empty() && share > 0.0 {
            true => Ok(Verdict::Within { share }),
            false => Ok(Verdict::of(numbers, mismatches, Vec::new())),
        }
    }
}

/// How far off a number is that has other bits, as a share of what it may be.
fn off(expected: f64, found: f64, slack: f64) -> f64 {
    // Zeros of two signs.
    if expected == found { f64::MIN_POSITIVE } else { (expected - found).abs() / slack }
}

/// Where a number of a variable is: `edge 17, part 1, k=2`.
fn place(problem: &MeshProblem, variable: VariableId, index: usize) -> String {
    let place = problem.program.program.variables[variable].place;
    let mut axes = Vec::new();
    if place.levels != Levels::None {
        axes.push("k=");
    }
    let set = place.home.map(|home| format!("{} ", problem.program.mesh.sets[home.set].name));
    axes.extend(set.as_deref());
    if let Some(home) = place.home {
        axes.extend(home.map.map(|_| "slot "));
        axes.extend((home.parts > 1).then_some("part "));
    }
    let (mut rest, mut words) = (index, Vec::new());
    for (axis, length) in axes.iter().zip(shape(place, &problem.bound, problem.levels)).rev() {
        words.push(format!("{axis}{}", rest % length));
        rest /= length;
    }
    // Slowest first, but levels last, as over grids.
    words.reverse();
    if place.levels != Levels::None {
        words.rotate_left(1);
    }
    if words.is_empty() { "its only number".to_owned() } else { words.join(", ") }
}

/// Of what a program that is one call leaves, how far off another order of additions may be: in each number, by the rounding of as many
/// sums as are added to any, of all that is added to it without signs.
fn slacks(problem: &MeshProblem, call: &Call) -> Result<BTreeMap<VariableId, Vec<f64>>> {
    let stencil = &problem.program.stencils[call.stencil];
    let params = problem.params_of(call);
    let computed = problem.computed(call.stencil, &params)?;
    let mut outputs: Vec<Option<Data>> = Vec::new();
    let mut inputs: Vec<Option<&Data>> = Vec::new();
    for (id, field) in stencil.stencil.fields.iter() {
        let binding = call.fields[id.index()];
        inputs.push(binding.read.and_then(|read| problem.initial.get(&read)));
        let len = len(field.place, &problem.bound, problem.levels);
        let element = element_of(field.stored, problem.precision);
        outputs.push(match field.role {
            Role::In | Role::Carried => None,
            Role::Inc if binding.read.is_none() => Some(cpu::zero(element, len)),
            Role::Inc | Role::InOut => inputs[id.index()].cloned(),
            Role::Out | Role::Reduce => Some(Data::fresh(element, len)),
        });
    }
    let mut sums: Vec<Vec<f64>> = outputs.iter().map(|data| vec![0.0; data.as_ref().map_or(0, Data::len)]).collect();
    for ((id, field), sums) in stencil.stencil.fields.iter().zip(&mut sums) {
        if field.role == Role::Inc
            && let Some(before) = &outputs[id.index()]
        {
            sums.iter_mut().enumerate().for_each(|(index, sum)| *sum = before.get(index).abs());
        }
    }
    let job = MeshJob {
        stencil,
        precision: problem.precision,
        mesh: &problem.bound,
        levels: problem.levels,
        computed: &computed,
        params: &params,
        inputs: &inputs,
        leaves: false,
    };
    interpret_mesh(&job, &mut outputs, Some(&mut sums), &|_| {})?;
    let mut slacks = BTreeMap::new();
    for (((id, own), data), mut slack) in stencil.stencil.fields.iter().zip(outputs).zip(sums) {
        let (Some(variable), Some(data)) = (call.fields[id.index()].written, data) else { continue };
        let degree = if own.role == Role::Inc { degree(problem, stencil, id) } else { 1.0 };
        // What is stored in more bits is still added in the program's precision.
        let is_single = problem.precision == Precision::F32 || matches!(data, Data::F32(_));
        let epsilon = if is_single { f64::from(f32::EPSILON) } else { f64::EPSILON };
        slack.iter_mut().for_each(|sum| *sum *= degree * epsilon);
        slacks.insert(variable, slack);
    }
    Ok(slacks)
}

/// How many values are added to a number of a field, at most, and what was there.
fn degree(problem: &MeshProblem, stencil: &MeshStencil, field: FieldId) -> f64 {
    let Some(home) = stencil.stencil.fields[field].place.home else { return 1.0 };
    let mut counts = vec![0u32; problem.bound.size(home.set)];
    for (_, write) in stencil.stores().filter(|(store, write)| store.field == field && write.part == 0) {
        let How::Add(path) = &write.how else { continue };
        for element in 0..problem.bound.size(stencil.set()) {
            if let Ok(to) = usize::try_from(problem.bound.walk(element as i32, path.hops())) {
                counts[to] += 1;
            }
        }
    }
    f64::from(counts.into_iter().max().unwrap_or(0)) + 1.0
}

/// A program over a mesh, or a stencil as one that calls it once, and what the interpreter leaves of it.
pub struct OverMesh {
    /// The program, the mesh and the numbers.
    pub problem: Arc<MeshProblem>,
    /// What the interpreter leaves.
    pub expected: Expected,
}

/// A way to compute it: the order of elements, and what kernels do.
pub struct Way {
    /// The mesh in this order.
    pub renumbered: Arc<Renumbered>,
    /// How kernels compute.
    pub choices: MeshChoices,
}

/// A way, and the kernels that are known before anything is computed.
pub struct Planned {
    renumbered: Arc<Renumbered>,
    choices: MeshChoices,
    texts: Vec<Text>,
}

impl Subject for OverMesh {
    type Way = Way;
    type Planned = Planned;

    fn plan(&self, Way { renumbered, choices }: &Way) -> Result<Planned> {
        let texts = renumbered.texts(&self.problem, choices)?;
        Ok(Planned { renumbered: Arc::clone(renumbered), choices: *choices, texts })
    }

    fn texts<'a>(&self, planned: &'a Planned) -> Vec<Source<'a>> {
        planned.texts.iter().map(|Text { name, text }| Source { name, text }).collect()
    }

    fn run<M: Build>(
        &self,
        planned: &Planned,
        Sites { first: Site { machine, maker }, .. }: &Sites<M>,
    ) -> Result<Verdict> {
        let Self { problem, expected } = self;
        let Planned { renumbered, choices, .. } = planned;
        let kernels = Kernels::new(Arc::clone(problem), Arc::clone(machine), *choices, Arc::clone(renumbered));
        let kernels = kernels.made_by(Rc::clone(maker)).watched();
        let mut driver = Driver::new(&kernels).given()?;
        driver.finish()?;
        let mut verdict = expected.judged(problem, &driver, choices.strategy.is_ordered())?;
        // Another order of the additions, but each time the same.
        if choices.strategy.additions() == Additions::SameEveryTime && !matches!(verdict, Verdict::Failed { .. }) {
            let mut again = Driver::new(&kernels).given()?;
            again.finish()?;
            let mismatches = changed(problem, &driver, &again)?;
            if !mismatches.is_empty() {
                verdict = Verdict::of(0, mismatches, Vec::new());
            }
        }
        let mut own = overwritten(&driver, |variable| {
            problem.initial.get(&variable).ok_or_else(|| Error::check("an input is held that was not given"))
        })?;
        own.extend(kernels.damage()?);
        Ok(verdict.with_damage(own))
    }
}

/// Where what is computed again has other bits.
fn changed<B: Backend>(problem: &MeshProblem, first: &Driver<B>, again: &Driver<B>) -> Result<Vec<Mismatch>> {
    let mut mismatches = Vec::new();
    for ((variable, first), (_, again)) in first.results()?.into_iter().zip(again.results()?) {
        if let (Some(first), Some(again)) = (first, again) {
            let name = format!("{}, computed again", problem.program.program.variables[variable].name);
            let place = |index: usize| place(problem, variable, index);
            mismatches.extend(Mismatch::of(&name, [&first, &again], |index| differs(&first, &again, index), place));
        }
    }
    Ok(mismatches)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulate::{Compiler, Emulator, Settings};
    use crate::mesh::order::{self, Options};
    use crate::mesh::program::kernels::Maker;
    use crate::mesh::program::measure::results;
    use crate::mesh::program::{Request, alone};
    use crate::mesh::{Map, Mesh, Set};
    use crate::verify::{Tools, verify};
    use stencilc_compiler::ir::MeshProgram;
    use stencilc_compiler::mesh::STRATEGIES;
    use stencilc_compiler::source::Source;

    /// Its call has a number that the program has no parameter for, and leaves the first level of `b` as it was.
    const ONE_CALL: &str = "
        mesh m {
            set node
            levels k
        }
        stencil below over m.node { in a: real on node; out b: real on node; param c: real; b = c * a[k-1] }
        program own over m { in a: real on node; inout b: real on node; b = below(a, c = 0.5) }
    ";

    /// To half of the nodes one number is added, to the others the other one.
    const TWO_SUMS: &str = "
        mesh m {
            set edge, node
            map edge.a -> node
            map edge.b -> node
        }
        stencil adds over m.edge { in x: real on edge; inc p: f64 on node; inc q: f64 on node; p[a] += x; q[b] += x }
    ";

    fn problem(
        program: &MeshProgram,
        precision: Precision,
        levels: Option<usize>,
        sizes: &[(&str, usize)],
        maps: Vec<Map>,
    ) -> Arc<MeshProblem> {
        let sets = sizes.iter().map(|&(name, size)| Set { name: name.to_owned(), size }).collect();
        let request = Request {
            program,
            precision,
            contract: false,
            mesh: Mesh { origin: "own".to_owned(), sets, maps, fields: Vec::new() },
            levels,
            arrays: BTreeMap::new(),
            settings: BTreeMap::new(),
            seed: 1,
            cast: crate::Cast::Exact,
            drawing: crate::Drawing::Inputs,
        };
        Arc::new(MeshProblem::new(request).unwrap())
    }

    #[test]
    fn one_call_leaves_what_it_does_as_a_program() {
        let lowered = stencilc_compiler::check(&Source::new("own", ONE_CALL));
        assert!(lowered.is_ok(), "{:?}", lowered.diagnostics);
        let problem = problem(&lowered.mesh_programs[0], Precision::F64, Some(4), &[("node", 3)], Vec::new());
        let expected = Expected::new(&problem).unwrap();
        let [Output { data, slack, .. }] = &expected.outputs[..] else { panic!("not one output") };
        assert_eq!((data, slack.len()), (&results(&problem, Interpreter::new(Arc::clone(&problem))).unwrap()[0].1, 12));
        assert!((0..data.len()).all(|at| data.get(at).is_finite()));
    }

    /// Though something is added to another number of the same element.
    #[test]
    fn what_has_more_bits_stays_as_it_was_where_nothing_is_added() {
        let lowered = stencilc_compiler::check(&Source::new("own", TWO_SUMS));
        assert!(lowered.is_ok(), "{:?}", lowered.diagnostics);
        let map =
            |name: &str, table: [i32; 2]| Map { name: name.into(), from: 0, to: 1, arity: 1, table: table.into() };
        let maps = vec![map("a", [0, 1]), map("b", [2, 3])];
        let program = alone(&lowered.mesh_stencils[0]);
        let problem = problem(&program, Precision::F32, None, &[("edge", 2), ("node", 4)], maps);
        let ordering = order::find("none").unwrap().ordering(&problem.mesh, &Options::new(0)).unwrap();
        let renumbered = Arc::new(Renumbered::new(&problem, &ordering).unwrap());
        let way = |&strategy| Way {
            renumbered: Arc::clone(&renumbered),
            choices: MeshChoices { strategy, ..MeshChoices::default() },
        };
        let ways: Vec<Way> = STRATEGIES.iter().map(way).collect();
        let subject = OverMesh { expected: Expected::new(&problem).unwrap(), problem };
        let tools = Tools::emulated(&Compiler::find().unwrap(), Settings::default());
        for (way, verdict) in ways.iter().zip(verify(&subject, &ways, &tools, &|_| {}).unwrap()) {
            let name = way.choices.strategy.name();
            // Each number is added to once or not at all, so no order of additions matters.
            assert!(matches!(verdict, Verdict::Equal { .. } | Verdict::Refused { .. }), "{name}: {verdict:?}");
        }
    }

    /// A strategy that adds in another order has to come to the same bits each time.
    #[test]
    fn what_changes_from_run_to_run_is_told() {
        let lowered = stencilc_compiler::check(&Source::new("own", TWO_SUMS));
        let map = |name: &str| Map { name: name.into(), from: 0, to: 1, arity: 1, table: vec![0, 1] };
        let program = alone(&lowered.mesh_stencils[0]);
        let maps = vec![map("a"), map("b")];
        let problem = problem(&program, Precision::F64, None, &[("edge", 2), ("node", 2)], maps);
        let ordering = order::find("none").unwrap().ordering(&problem.mesh, &Options::new(0)).unwrap();
        let renumbered = Arc::new(Renumbered::new(&problem, &ordering).unwrap());
        let strategy = STRATEGIES.iter().copied().find(|own| own.additions() == Additions::SameEveryTime).unwrap();
        let choices = MeshChoices { strategy, ..MeshChoices::default() };
        let subject = OverMesh { expected: Expected::new(&problem).unwrap(), problem };
        let compiler = Compiler::find().unwrap();
        let machine = Arc::new(Emulator::new(compiler, Settings::default()));
        let judged = |changes: bool| {
            let own = Arc::clone(&machine);
            // When a kernel is launched again, its threads do nothing.
            let maker: Rc<Maker<Emulator>> = Rc::new(move |name: &str, text: &str| {
                let begin = text.find("__global__").unwrap();
                let body = begin + text[begin..].find("{\n").unwrap() + 2;
                let again = if changes { "static int threads = 0;\nif (threads++ >= 128) return;\n" } else { "" };
                own.build(name, &format!("{}{again}{}", &text[..body], &text[body..]))
            });
            let planned = subject.plan(&Way { renumbered: Arc::clone(&renumbered), choices }).unwrap();
            subject.run(&planned, &Sites::one(Arc::clone(&machine), maker)).unwrap()
        };
        assert!(matches!(judged(false), Verdict::Equal { .. } | Verdict::Within { .. }));
        let verdict = judged(true);
        let Verdict::Failed { mismatches, .. } = &verdict else { panic!("{verdict:?}") };
        assert!(mismatches[0].to_string().contains("computed again"), "{verdict:?}");
    }
}
