//! Runs a test of what runs over a mesh: its mesh, its inputs, the stencil or program, and what is expected of it.
//!
//! As on grids, the test's own stencils are computed by the interpreter. An expectation is looked at on every element of its set,
//! on those levels on which all that it reads was given or computed.

use super::cpu::Interpreter;
use super::request::fitting;
use super::{MeshProblem, Request, shape};
use crate::array::{Array, Data};
use crate::drawing::Drawing;
use crate::driver::{Arrays, Backend, Computed, Driver, Script};
use crate::error::{Error, Result};
use crate::given::{self, Cast, Given};
use crate::interpreter::mesh::{MeshJob, interpret_mesh, len};
use crate::mesh::made::{self, Division, Perturbed, Piece};
use crate::mesh::order::positions;
use crate::mesh::{Bound, Field, Mesh, ZONE};
use crate::problem::element_of;
use crate::test::{Failure, First, defaults, goes_on_as, values_of, without_options};
use crate::{Element, memory};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;
use stencilc_compiler::analysis::levels::{Known, readable_with_said};
use stencilc_compiler::ir::mesh::Zones;
use stencilc_compiler::ir::program::GridAxis;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{
    Body, FieldId, Handle, Levels, Made, MadeKind, MeshCheck, MeshProgram, MeshStencil, MeshTest, Node, OF_ELEMENT,
    Precision, Role, SetId, VariableId,
};
use stencilc_compiler::plan::prepare;

/// What came of a test over a mesh.
#[derive(Debug)]
pub struct Report {
    /// What was not as expected, in the order of the text.
    pub failures: Vec<Failure>,
}

/// The mesh that a test names.
///
/// # Errors
/// There is no such mesh, or not so much memory.
pub fn mesh_of(made: &Made) -> Result<Mesh> {
    let none = || Perturbed { by: 0.0, seed: 0 };
    let wrong = || Error::input(format!("there is no mesh {made}"));
    let division = |root: usize, bisections: usize| {
        let narrow = |number: usize| u32::try_from(number).map_err(|_| wrong());
        Ok::<_, Error>(Division { root: narrow(root)?, bisections: narrow(bisections)? })
    };
    let mut mesh = match (made.kind, made.sizes.as_slice()) {
        (MadeKind::Airfoil, &[around, outwards]) => made::airfoil(around, outwards)?,
        (MadeKind::Icosahedral, &[root, bisections]) => made::icosahedral(division(root, bisections)?, 1.0)?,
        (MadeKind::Limited, &[root, bisections, within, lateral, nudging]) => {
            let piece = Piece { centre: [0.0, 90.0], within: within as f64, lateral, nudging };
            made::limited(division(root, bisections)?, 1.0, piece)?
        }
        (MadeKind::Triangles, &[ni, nj]) => made::triangles(ni, nj, none())?,
        (MadeKind::Hexahedra, &[ni, nj, nk]) => made::hexahedra(ni, nj, nk, none())?,
        (
            MadeKind::Airfoil | MadeKind::Icosahedral | MadeKind::Limited | MadeKind::Triangles | MadeKind::Hexahedra,
            _,
        ) => return Err(wrong()),
    };
    mesh.origin = made.to_string();
    Ok(mesh)
}

/// Runs `test` of `program`, which is what it names, over `mesh`.
///
/// # Errors
/// The mesh is not what is declared, an input is neither given nor comes with it, a parameter does not suit, or nothing can be
/// computed.
pub fn run(program: &MeshProgram, test: &MeshTest, mesh: Mesh, precision: Precision) -> Result<Report> {
    run_on(program, test, mesh, precision).map_err(without_options)
}

fn run_on(program: &MeshProgram, test: &MeshTest, mut mesh: Mesh, precision: Precision) -> Result<Report> {
    // What the test sets goes before the defaults.
    let mut values = defaults(&prepare(&program.program.numbers, precision, true), precision);
    let mut set = defaults(&prepare(&test.settings, precision, true), precision);
    set.retain(|name, _| program.program.numbers.params.iter().any(|(_, own)| own.name == *name));
    for (name, value) in &set {
        given::set(name, *value, precision)?;
    }
    values.append(&mut set);
    let mut own = program.clone();
    own.program.numbers = crate::test::with_defaults(&own.program.numbers, &values);
    // The sizes of sets are the mesh's business.
    for (size, _) in &own.sizes {
        own.program.numbers.params[*size].default = None;
    }
    let levels = test.levels;
    set_zones(program, test, &mut mesh, precision, &values)?;
    let bound = Bound::new(&program.mesh, &mesh)?;
    let elements = Elements { program, mesh: &mesh, bound: &bound, levels, precision, values: &values };
    let mut arrays = BTreeMap::new();
    for input in &test.inputs {
        let (name, array) = elements.input(input)?;
        arrays.insert(name, array);
    }
    for name in &test.from_zero {
        let Some((_, variable)) = program.program.variables.iter().find(|(_, own)| own.name == *name) else { continue };
        let place = variable.place;
        let data = zero(element_of(variable.stored, precision), len(place, &bound, levels));
        arrays.insert(name.clone(), Array { shape: shape(place, &bound, levels), data });
    }
    let problem = Arc::new(MeshProblem::new(Request {
        program: &own,
        precision,
        contract: true,
        mesh: mesh.clone(),
        levels: program.mesh.levels.then_some(levels),
        arrays,
        settings: BTreeMap::new(),
        seed: 0,
        cast: Cast::Rounded,
        drawing: Drawing::Nothing,
    })?);
    let watched = Watched {
        inner: Interpreter::new(Arc::clone(&problem)),
        levels: RefCell::default(),
        zones: RefCell::default(),
        problem,
    };
    let mut driver = Driver::new(&watched).given()?;
    driver.finish()?;
    let mut results = BTreeMap::new();
    for (id, variable) in watched.problem.program.program.variables.iter() {
        let Some(role) = variable.role else { continue };
        let data = if role.is_written() { driver.get(id)? } else { watched.problem.initial.get(&id).cloned() };
        // What never got a value is not a number.
        let data = data.unwrap_or_else(|| watched.problem.fresh(id));
        let all = 0..variable.place.levels.count(levels);
        let computed = || watched.levels.borrow().get(&id).cloned().unwrap_or_default().within(all);
        results.insert(variable.name.clone(), (data, role.is_written().then(computed)));
    }
    let zones = watched.zones.take();
    let checks = test.checks.iter().map(|check| elements.failure(check, &results, &zones));
    Ok(Report { failures: checks.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect() })
}

/// Says in which zone each element is, where the test does.
fn set_zones(
    program: &MeshProgram,
    test: &MeshTest,
    mesh: &mut Mesh,
    precision: Precision,
    values: &BTreeMap<String, Value>,
) -> Result<()> {
    let mut without = program.mesh.clone();
    without.sets.values_mut().for_each(|set| set.zones.clear());
    let bound = Bound::new(&without, mesh)?;
    for (_, set) in program.mesh.sets.iter().filter(|(_, set)| !set.zones.is_empty()) {
        let is_said = test.zones.iter().any(|(name, _)| *name == set.name);
        let is_given = mesh.set_named(&set.name).is_some_and(|number| mesh.field_on(ZONE, number, None).is_some());
        if !is_said && !is_given {
            let what = format!("{} does not say in which zone each element of `{}` is", mesh.origin, set.name);
            return Err(Error::input(what)
                .help(format!("say it in the test: `zone {} = ...`, a formula of `i` and `position`", set.name)));
        }
    }
    for (set, zones) in &test.zones {
        let elements = Elements { program, mesh, bound: &bound, levels: test.levels, precision, values };
        let (name, Array { data, .. }) = elements.input(zones)?;
        let set = mesh.set_named(set).ok_or_else(|| Error::input(format!("the mesh has no set `{set}`")))?;
        mesh.fields.retain(|field| !(field.name == name && field.set == set && field.map.is_none()));
        mesh.fields.push(Field { name, set, map: None, parts: 1, data });
    }
    Ok(())
}

/// So many zeros.
fn zero(element: Element, len: usize) -> Data {
    match element {
        Element::F32 => Data::F32(vec![0.0; len]),
        Element::F64 => Data::F64(vec![0.0; len]),
        Element::I32 => Data::I32(vec![0; len]),
        Element::Bool => Data::Bool(vec![0; len]),
    }
}

/// By variable: of which set it is, and the zones that calls compute of it; none if that are all elements.
type Written = BTreeMap<VariableId, (SetId, Vec<Option<Zones>>)>;

/// On which levels calls compute a variable.
#[derive(Clone, Default)]
struct OnLevels {
    /// Those that all calls compute which do not say theirs.
    all: Option<Range<usize>>,
    /// Those that any call computes which says its own, and writes what is not given.
    said: Option<Range<usize>>,
}

impl OnLevels {
    /// The levels, of those that there are.
    fn within(self, levels: Range<usize>) -> Range<usize> {
        let common = |a: Range<usize>, b: Range<usize>| a.start.max(b.start)..a.end.min(b.end);
        [self.all, self.said].into_iter().flatten().fold(levels, common)
    }
}

/// The interpreter, and on which levels it computes each declared variable.
struct Watched {
    inner: Interpreter,
    levels: RefCell<BTreeMap<VariableId, OnLevels>>,
    /// Of each output, of which set it is and the zones that calls compute of it.
    zones: RefCell<Written>,
    problem: Arc<MeshProblem>,
}

impl Backend for Watched {
    type Buffer = RefCell<Data>;
    type Recording = Infallible;

    fn script(&self) -> Arc<dyn Script> {
        self.inner.script()
    }

    fn load(&self, variable: VariableId, data: &Data) -> Result<RefCell<Data>> {
        self.inner.load(variable, data)
    }

    fn read(&self, variable: VariableId, buffer: &RefCell<Data>) -> Result<Data> {
        self.inner.read(variable, buffer)
    }

    fn copy(&self, from: &RefCell<Data>, to: &RefCell<Data>) -> Result<()> {
        self.inner.copy(from, to)
    }

    fn compute(&self, computed: &Computed, arrays: Arrays<RefCell<Data>>) -> Result<()> {
        let call = self.inner.call(computed.stage);
        let variables = &self.problem.program.program.variables;
        let declared = |id: &VariableId| variables[*id].role.is_some();
        for variable in call.writes().filter(declared) {
            let own = self.problem.computed(call.stencil, &computed.params)?;
            let stencil = &self.problem.program.stencils[call.stencil].stencil;
            let mut levels = self.levels.borrow_mut();
            let OnLevels { all, said } = levels.entry(variable).or_default();
            // Calls that say on which levels they compute share their work, and leave the others as they were given.
            match stencil.says(GridAxis::K) {
                false => {
                    let before = all.take().unwrap_or_else(|| own.clone());
                    *all = Some(before.start.max(own.start)..before.end.min(own.end));
                }
                true if stencil.fields.iter().any(|(_, field)| field.role == Role::Out) => {
                    let before = said.take().unwrap_or_else(|| own.clone());
                    *said = Some(before.start.min(own.start)..before.end.max(own.end));
                }
                true => {}
            }
        }
        let stencil = &self.problem.program.stencils[call.stencil];
        for ((_, field), own) in
            stencil.stencil.fields.iter().zip(&call.fields).filter(|((_, own), _)| own.role == Role::Out)
        {
            let Some(id) = own.written.filter(|id| variables[*id].role == Some(Role::Out)) else { continue };
            let set = field.place.home.map_or(stencil.set(), |home| home.set);
            self.zones.borrow_mut().entry(id).or_insert((set, Vec::new())).1.push(stencil.stencil.zones);
        }
        self.inner.compute(computed, arrays)
    }

    fn replay(&self, recording: &Infallible) -> Result<()> {
        match *recording {}
    }
}

/// The elements of a mesh, as the test's own stencils see them.
struct Elements<'a> {
    program: &'a MeshProgram,
    mesh: &'a Mesh,
    bound: &'a Bound,
    levels: usize,
    precision: Precision,
    /// Values of parameters.
    values: &'a BTreeMap<String, Value>,
}

/// What the subject left, by names: the numbers, and on which levels they were computed, if they were.
type Results = BTreeMap<String, (Data, Option<Range<usize>>)>;

impl Elements<'_> {
    /// An input that the test gives, and its name.
    fn input(&self, input: &MeshStencil) -> Result<(String, Array)> {
        let stencil = input.with(prepare(&input.stencil, self.precision, true));
        let found = stencil.stencil.fields.iter().find(|(_, own)| own.role == Role::Out);
        let (id, field) = found.ok_or_else(|| Error::check("an input has no value"))?;
        let inputs = self.inputs(&stencil, |name| self.along(name))?;
        let (name, shape) = (field.name.clone(), shape(field.place, self.bound, self.levels));
        let data = self.compute(&stencil, id, &inputs, &(0..field.place.levels.count(self.levels)))?;
        Ok((name, Array { shape, data }))
    }

    /// A field that came with the mesh.
    fn along(&self, name: &str) -> Result<Data> {
        let mut variables = self.program.program.variables.iter().map(|(_, own)| own);
        let variable = variables.find(|own| own.role.is_some() && own.name == name);
        let variable = variable.ok_or_else(|| Error::check(format!("there is no field `{name}`")))?;
        let Some(field) = fitting(self.mesh, variable, self.program)? else {
            return Err(Error::input(format!("`{name}` is not given, and {} has no such field", self.mesh.origin))
                .help(format!("give it in the braces: `{name} = ...`")));
        };
        let array = Array { shape: shape(variable.place, self.bound, self.levels), data: field.data.clone() };
        let holder = format!("`{}`", self.mesh.origin);
        let given = Given { field: name, holder: &holder };
        given::array(array, given, element_of(variable.stored, self.precision), Cast::Rounded)
    }

    /// What a stencil of the test's own reads, by its fields; what it only declares is there as well, and holds nothing.
    fn inputs(&self, stencil: &MeshStencil, find: impl Fn(&str) -> Result<Data>) -> Result<Vec<Option<Data>>> {
        let reads = |body: &Body| -> Vec<FieldId> {
            let fields = body.iter().filter_map(|(_, node)| match node {
                Node::Read { field, .. } => Some(*field),
                _ => None,
            });
            fields.collect()
        };
        let read: BTreeSet<FieldId> = stencil.stencil.bodies().flat_map(reads).collect();
        let set = stencil.set();
        let mut inputs = Vec::new();
        for (id, field) in stencil.stencil.fields.iter() {
            let [number, count, position] = OF_ELEMENT;
            let elements = self.bound.size(set);
            inputs.push(match field.name.as_str() {
                _ if field.role != Role::In => None,
                _ if !read.contains(&id) => {
                    let len = len(field.place, self.bound, self.levels);
                    Some(Data::fresh(element_of(field.stored, self.precision), len))
                }
                name if name == number => Some(Data::I32((0..elements).map(|own| own as i32).collect())),
                name if name == count => Some(Data::I32(vec![elements as i32])),
                name if name == position => Some(self.positions(set)?),
                name => Some(find(name)?),
            });
        }
        Ok(inputs)
    }

    /// Where the elements of a set are.
    fn positions(&self, set: SetId) -> Result<Data> {
        let name = &self.program.mesh.sets[set].name;
        let own = self.mesh.set_named(name).ok_or_else(|| Error::input(format!("the mesh has no set `{name}`")))?;
        let points = positions(self.mesh, own, None).map_err(|error| {
            Error::input(format!("where each `{name}` is, is not known: {}", error.message)).help(
                "positions are a field `x` with two or three numbers for each element; without one, tell elements apart by their \
                 numbers: `i`",
            )
        })?;
        let numbers = points.into_iter().flatten();
        Ok(match self.precision {
            Precision::F32 => Data::F32(numbers.map(|own| own as f32).collect()),
            Precision::F64 => Data::F64(numbers.collect()),
        })
    }

    /// The values of one output, on some levels.
    fn compute(
        &self,
        stencil: &MeshStencil,
        field: FieldId,
        inputs: &[Option<Data>],
        computed: &Range<usize>,
    ) -> Result<Data> {
        let own = &stencil.stencil.fields[field];
        let numbers = len(own.place, self.bound, self.levels);
        memory::check(numbers as u128 * 8, "the fields of the test take", "take a smaller mesh")?;
        let mut outputs: Vec<Option<Data>> = stencil.stencil.fields.iter().map(|_| None).collect();
        outputs[field.index()] = Some(Data::fresh(element_of(own.stored, self.precision), numbers));
        let params = values_of(&stencil.stencil, self.precision, self.values)?;
        let inputs: Vec<Option<&Data>> = inputs.iter().map(Option::as_ref).collect();
        let job = MeshJob {
            stencil,
            precision: self.precision,
            mesh: self.bound,
            levels: self.levels,
            computed,
            params: &params,
            inputs: &inputs,
            leaves: false,
        };
        interpret_mesh(&job, &mut outputs, None, &|_| {})?;
        outputs.swap_remove(field.index()).ok_or_else(|| Error::check("a value of the test was not computed"))
    }

    /// Nothing if an expectation holds.
    fn failure(&self, check: &MeshCheck, results: &Results, zones: &Written) -> Result<Option<Failure>> {
        let mut prepared = prepare(&check.stencil.stencil, self.precision, true);
        let end = results.values().filter_map(|(_, levels)| levels.as_ref()).map(|levels| levels.end).max();
        let end = end.unwrap_or(self.levels).max(self.levels);
        goes_on_as(&mut prepared, &(0..end), self.levels);
        let whole = check.stencil.with(prepared);
        let find = |name: &str| {
            let found = results.get(name).map(|(data, _)| data.clone());
            found.ok_or_else(|| Error::check(format!("there is no field `{name}`")))
        };
        let expectation = &check.expectation;
        let only = of_one(&whole, expectation.truth);
        let inputs = self.inputs(&only, find)?;
        let elements = self.bound.size(whole.set());
        // Where all outputs of the set have numbers.
        let is_there = |element: usize| {
            let zone = self.bound.zone(whole.set(), element);
            let mut own = zones.values().filter(|(set, _)| *set == whole.set());
            own.all(|(_, all)| all.iter().any(|zones| zones.is_none_or(|zones| zones.contain(zone))))
        };
        let (mut cells, mut failed, mut first) = (0, 0, None);
        for level in self.levels_of(&only, results, 0..end)? {
            let truth = self.compute(&only, expectation.truth, &inputs, &(level..level + 1))?;
            for element in (0..elements).filter(|&element| is_there(element)) {
                cells += 1;
                if truth.get(level * elements + element) == 0.0 {
                    failed += 1;
                    first.get_or_insert((level, element));
                }
            }
        }
        let span = expectation.span;
        let set = self.program.mesh.sets[whole.set()].name.clone();
        let told = |(level, element): (usize, usize)| First::Element {
            set: set.clone(),
            element,
            level: self.program.mesh.levels.then_some(level),
        };
        let Some((level, element)) = first else {
            let empty = Failure { span, cells, failed, first: told((0, 0)), values: Vec::new() };
            return Ok((cells == 0).then_some(empty));
        };
        let mut values = Vec::new();
        for &(span, field) in &expectation.parts {
            let only = of_one(&whole, field);
            // What stands in a branch that is not taken may look at a level that is not there.
            if self.levels_of(&only, results, level..level + 1)?.is_empty() {
                continue;
            }
            let inputs = self.inputs(&only, find)?;
            let data = self.compute(&only, field, &inputs, &(level..level + 1))?;
            values.push((span, data.text(level * elements + element)));
        }
        Ok(Some(Failure { span, cells, failed, first: told((level, element)), values }))
    }

    /// Those of `levels` on which all that counts as read was given or computed.
    fn levels_of(&self, own: &MeshStencil, results: &Results, levels: Range<usize>) -> Result<Vec<usize>> {
        let params = values_of(&own.stencil, self.precision, self.values)?;
        let given =
            readable_with_said(&Known::new(&own.stencil, self.precision, self.levels, &params), levels.clone(), None);
        // The same once more of outputs alone, which are there where they were computed.
        let mut outputs = own.stencil.clone();
        let mut there = Vec::new();
        for field in outputs.fields.values_mut() {
            let computed = results.get(&field.name).and_then(|(_, computed)| computed.clone());
            if computed.is_none() {
                field.place.levels = Levels::None;
            }
            there.push(computed.unwrap_or_default());
        }
        let known = Known::new(&outputs, self.precision, self.levels, &params);
        let there = readable_with_said(&known, levels, Some(&there));
        Ok(given.into_iter().filter(|level| there.binary_search(level).is_ok()).collect())
    }
}

/// The stencil with this output alone, and what that needs.
fn of_one(stencil: &MeshStencil, field: FieldId) -> MeshStencil {
    let mut own = stencil.clone();
    let kept = |number: usize| stencil.stencil.stores[number].field == field;
    own.stencil.stores = stencil.stencil.stores.iter().filter(|store| store.field == field).cloned().collect();
    own.writes =
        stencil.writes.iter().enumerate().filter(|(at, _)| kept(*at)).map(|(_, write)| write.clone()).collect();
    // What is left out is no output any more, and nobody looks at its array.
    let others: Vec<FieldId> = own
        .stencil
        .fields
        .iter()
        .filter(|(id, other)| *id != field && other.role == Role::Out)
        .map(|(id, _)| id)
        .collect();
    for id in others {
        own.stencil.fields[id].role = Role::Carried;
    }
    own
}
