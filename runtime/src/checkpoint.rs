//! Checkpoints: everything that a program holds on its way, in one `.npz` file.
//!
//! The file is an archive that NumPy reads: an array for each value, called by a name that the program has for it, and
//! `about.json`, which says what it is a checkpoint of.

use crate::array::{Array, Data};
use crate::bench::hash;
use crate::driver::{Backend, Driver, Position, Script};
use crate::error::{Error, Result};
use crate::mesh::program::MeshProblem;
use crate::npy::Archive;
use crate::program::ProgramProblem;
use crate::{files, memory, npy};
use serde::{Deserialize, Serialize};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufReader, Read, Seek, Write};
use std::path::Path;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::program::{Action, EdgeRule, GridAxis, Side};
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Body, Handle, Node, Param, Precision, Program, VariableId};
use stencilc_compiler::program::Step;
use stencilc_compiler::source::Source;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// What the format calls itself. In the first version, positions were counted in the steps of a plan, so that another went on
/// elsewhere.
const FORMAT: &str = "stencilc checkpoint 2";

/// The entry that says what the file is.
const ABOUT: &str = "about.json";

/// More bytes than it ever has.
const ABOUT_BYTES: u64 = 1 << 24;

/// What a checkpoint is of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct About {
    format: String,
    /// The program's name.
    pub program: String,
    /// The text that it stands in.
    #[serde(flatten)]
    pub text: OfText,
    /// What `real` is.
    pub precision: Precision,
    /// Whether fused multiply-adds were formed.
    pub contract: bool,
    /// The extents of the arrays, on a grid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grid: Option<Grid>,
    /// Over a mesh: which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<OnMesh>,
    /// The values of parameters, as text.
    pub params: BTreeMap<String, String>,
    /// How far the program is, in the actions of its text.
    pub position: Position,
    /// How often outermost loops were run; of grids this follows from the position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<u64>,
    /// How often the loop is run in all that it is in, where that is not known before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    repeats: Option<usize>,
    /// Which variable holds which array.
    values: Vec<Held>,
    /// The same of numbers, each of which is an array without axes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    numbers: Vec<Held>,
}

/// A text, as a checkpoint knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfText {
    /// A hash of it.
    #[serde(rename = "source")]
    pub hash: String,
    /// A hash of it without what its names for types are, if it has some: a call may say others.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub untyped: String,
    /// What these names are.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub types: BTreeMap<String, String>,
}

impl OfText {
    /// Of a text that a program stands in.
    pub fn of(source: &Source) -> Self {
        let hash_of = |text: &str| hash(&[text.as_bytes()]);
        let (types, untyped) = source.types().map(|(types, text)| (types, hash_of(&text))).unwrap_or_default();
        Self { hash: hash_of(&source.text), untyped, types }
    }

    /// A name for a type that is another one in a text that is the same otherwise.
    fn differing<'a>(&'a self, other: &'a Self) -> Option<(&'a String, &'a String, &'a String)> {
        if self.untyped.is_empty() || self.untyped != other.untyped {
            return None;
        }
        let mut both = self.types.iter().filter_map(|(name, own)| Some((name, own, other.types.get(name)?)));
        both.find(|(_, own, other)| own != other)
    }
}

/// A mesh, as a checkpoint knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnMesh {
    /// A hash of the sizes of its sets and of its maps.
    pub hash: String,
    /// How many levels there are.
    pub levels: usize,
}

/// A variable, and the array that it holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Held {
    variable: usize,
    array: String,
}

/// A checkpoint, as it is in a file.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// What it is of.
    pub about: About,
    arrays: BTreeMap<String, Array>,
}

impl About {
    /// Of a program on its grid. `text` is that which it stands in.
    pub fn new(problem: &ProgramProblem, text: &OfText, contract: bool) -> Self {
        let outer = &problem.outer;
        let params = outer.stencil.params.iter().map(|(_, param)| param).zip(&outer.params);
        let own = Self::of(&problem.staged.program.name, text, problem.staged.precision, contract, params);
        Self { grid: Some(problem.staged.domain), ..own }
    }

    /// Of a program over its mesh. `text` is that which it stands in.
    pub fn over_mesh(problem: &MeshProblem, text: &OfText, contract: bool) -> Self {
        let program = &problem.program.program;
        let params = program.numbers.params.iter().map(|(_, param)| param).zip(&problem.params);
        let own = Self::of(&program.name, text, problem.precision, contract, params);
        Self { mesh: Some(OnMesh { hash: problem.bound.hash(), levels: problem.levels }), ..own }
    }

    fn of<'a>(
        program: &str,
        text: &OfText,
        precision: Precision,
        contract: bool,
        params: impl Iterator<Item = (&'a Param, &'a Value)>,
    ) -> Self {
        Self {
            format: FORMAT.to_owned(),
            program: program.to_owned(),
            text: text.clone(),
            precision,
            contract,
            grid: None,
            mesh: None,
            params: params.map(|(param, value)| (param.name.clone(), format!("{value:?}"))).collect(),
            position: Position::default(),
            done: None,
            repeats: None,
            values: Vec::new(),
            numbers: Vec::new(),
        }
    }
}

/// Writes what a program holds to the file at `path`, all of it or nothing.
///
/// # Errors
/// The machine fails, or those of [`files::write_atomic`].
pub fn save<B: Backend>(path: &Path, about: &About, driver: &Driver<B>) -> Result<()> {
    let script = driver.script();
    let variables = &script.program().variables;
    let mut arrays = BTreeMap::new();
    let fresh = |arrays: &BTreeMap<String, Array>, own: &str| {
        let numbered = (2..).map(|n| format!("{own}_{n}"));
        let mut all = std::iter::once(own.to_owned()).chain(numbered);
        all.find(|name| !arrays.contains_key(name)).unwrap_or_default()
    };
    let mut names: BTreeMap<usize, String> = BTreeMap::new();
    let (mut values, mut numbers) = (Vec::new(), Vec::new());
    // What prints show is computed anew.
    for (variable, slot) in driver.bound().into_iter().filter(|(variable, _)| !variables[*variable].is_shown) {
        let array = match names.entry(slot) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let Some(data) = driver.get(variable)? else { continue };
                let name = fresh(&arrays, &variables[variable].name);
                arrays.insert(name.clone(), Array { shape: script.shape(variable), data });
                place.insert(name)
            }
        };
        values.push(Held { variable: variable.index(), array: array.clone() });
    }
    for (variable, value) in driver.numbers()? {
        let name = fresh(&arrays, &variables[variable].name);
        arrays.insert(name.clone(), Array { shape: Vec::new(), data: Data::single(script.element(variable), value) });
        numbers.push(Held { variable: variable.index(), array: name });
    }
    let (done, repeats) = match about.mesh {
        Some(_) => (Some(driver.done()), driver.repeats()),
        None => (None, None),
    };
    let about = About { position: driver.position_in_text(), done, repeats, values, numbers, ..about.clone() };
    let checkpoint = Checkpoint { about, arrays };
    files::write_atomic(path, |out| checkpoint.write(out))
}

/// Reads the checkpoint in the file at `path`.
///
/// # Errors
/// There is no such file, it is no checkpoint, or it is damaged.
pub fn load(path: &Path) -> Result<Checkpoint> {
    let shown = path.display();
    let failed = |error: &dyn std::fmt::Display| {
        Error::input(format!("cannot read the checkpoint `{shown}`: {error}"))
            .help("a checkpoint is written by `run --checkpoint FILE`; without one, leave out --resume")
    };
    files::reads(files::Kind::Checkpoint, path)?;
    let file = files::open(path, files::Links::Follow).map_err(|error| failed(&error))?;
    read(BufReader::new(file)).map_err(|error| failed(&error.message))
}

/// Reads a checkpoint from the bytes of a file.
///
/// # Errors
/// As [`load`], but messages do not name the file.
pub fn read(file: impl Read + Seek) -> Result<Checkpoint> {
    let failed = |error: &dyn std::fmt::Display| Error::input(error.to_string());
    let archive = Archive::of_any(file);
    let mut archive = archive.map_err(|_| failed(&"it is no checkpoint, or was not written to its end"))?;
    let text = archive.text(ABOUT, ABOUT_BYTES).map_err(|error| failed(&error.message))?;
    let text = text.ok_or_else(|| failed(&"it does not say what it is a checkpoint of"))?;
    let about: About = serde_json::from_str(&text).map_err(|error| failed(&error))?;
    if about.format != FORMAT {
        return Err(failed(&format!("it is a `{}`, and this version reads `{FORMAT}`", about.format)));
    }
    let names: BTreeSet<&str> = about.values.iter().chain(&about.numbers).map(|held| held.array.as_str()).collect();
    let mut bytes = 0;
    for name in &names {
        if !archive.has(name) {
            return Err(failed(&format!("it holds no array `{name}`")));
        }
        let count = archive.count(name).map_err(|error| failed(&error.message))?;
        // The least that a number takes; each array is judged again, by its type, when it is read.
        bytes += count as u128;
    }
    memory::check(bytes, "the arrays of the checkpoint take", memory::HELP)?;
    let mut arrays = BTreeMap::new();
    for name in names {
        let array = archive.array(name).map_err(|error| failed(&error.message))?;
        arrays.insert(name.to_owned(), array);
    }
    Ok(Checkpoint { about, arrays })
}

impl Checkpoint {
    /// Writes the bytes that [`save`] puts into a file.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut archive = ZipWriter::new_stream(out);
        archive.start_file(ABOUT, SimpleFileOptions::default())?;
        serde_json::to_writer_pretty(&mut archive, &self.about)?;
        for (name, array) in &self.arrays {
            let is_large = array.data.len() * array.data.element().bytes() >= 1 << 31;
            let options =
                SimpleFileOptions::default().large_file(is_large).compression_method(zip::CompressionMethod::Stored);
            archive.start_file(format!("{name}.npy"), options)?;
            npy::write(&mut archive, array)?;
        }
        archive.finish()?;
        Ok(())
    }

    /// The arrays by their names.
    pub fn arrays(&self) -> &BTreeMap<String, Array> {
        &self.arrays
    }

    /// Whether it is of something over a mesh, or of something on a grid.
    ///
    /// # Errors
    /// It is of the other.
    pub fn suits(&self, is_over_mesh: bool) -> Result<()> {
        if self.about.mesh.is_some() == is_over_mesh {
            return Ok(());
        }
        let [there, here] = if is_over_mesh { ["on a grid", "over a mesh"] } else { ["over a mesh", "on a grid"] };
        let what = format!("the checkpoint is of `{}`, which runs {there}, and this runs {here}", self.about.program);
        Err(Error::input(what).help("resume the same program"))
    }

    /// Whether a program can go on from here, with the same bits as if it had never stopped.
    ///
    /// # Errors
    /// It is a checkpoint of something else.
    pub fn check(&self, about: &About, script: &dyn Script) -> Result<()> {
        let own = &self.about;
        let other = |what: &str, own: &dyn std::fmt::Display, given: &dyn std::fmt::Display, help: &str| {
            Err(Error::input(format!("the checkpoint is of {what} {own}, this is {given}")).help(help))
        };
        if own.program != about.program {
            return other("program", &own.program, &about.program, "resume the same program");
        }
        if let Some((name, before, now)) = own.text.differing(&about.text) {
            let what = format!("in the checkpoint the type `{name}` is {before}, and here it is {now}");
            return Err(Error::input(what).help(format!("give the same: --type {name}={before}")));
        }
        if own.text.hash != about.text.hash {
            return Err(Error::input("the text of the program has changed since the checkpoint")
                .help("start anew; or begin with the fields of the checkpoint: they are NumPy arrays in it"));
        }
        if own.precision != about.precision {
            return other("precision", &own.precision.name(), &about.precision.name(), "give the same --precision");
        }
        match (own.grid, about.grid) {
            (Some(own), Some(given)) if own != given => {
                return other("grid", &own, &given, "give the same --grid, or none");
            }
            (own, given) if own.is_some() != given.is_some() => return Err(damaged()),
            _ => {}
        }
        match (&own.mesh, &about.mesh) {
            (Some(own), Some(given)) if own.levels != given.levels => {
                let (own, given) = (format!("{} levels", own.levels), format!("{} levels", given.levels));
                return other("a mesh with", &own, &given, "give the same --levels");
            }
            (Some(own), Some(given)) if own.hash != given.hash => {
                return Err(Error::input("the checkpoint is of another mesh").help("give the same --mesh"));
            }
            (own, given) if own.is_some() != given.is_some() => return Err(damaged()),
            _ => {}
        }
        if own.contract != about.contract {
            return Err(Error::input("the checkpoint was made with another --contract").help("give the same"));
        }
        let counts = only_counts(script.program(), own.position.step);
        for (name, value) in &about.params {
            let before = own.params.get(name);
            if before != Some(value) && !counts.contains(name) {
                return Err(Error::input(format!("the checkpoint has another value of the parameter `{name}`"))
                    .help("only numbers of steps may change"));
            }
        }
        self.position(script).map(drop)
    }

    /// How far the program was, in its steps as they are now.
    ///
    /// # Errors
    /// It is never there, or has fewer steps now.
    pub fn position(&self, script: &dyn Script) -> Result<Position> {
        let position = self.about.position.in_steps(script).ok_or_else(damaged)?;
        let known = match script.steps().get(position.step) {
            Some(Step::Repeat(own)) => script.known_times(own)?,
            _ => None,
        };
        if let Some(times) = known.filter(|times| position.time > *times) {
            let after = self.done(script)?;
            let until = after.saturating_sub((position.time - times) as u64);
            return Err(Error::call(format!("the checkpoint is after {after} steps, and the program has {until}"))
                .help("give it more steps, or an earlier checkpoint"));
        }
        Ok(position)
    }

    /// How often outermost loops had been run.
    ///
    /// # Errors
    /// A program is never there.
    pub fn done(&self, script: &dyn Script) -> Result<u64> {
        match self.about.done {
            // On a grid it is known from the position, whatever the file says.
            Some(done) if self.about.mesh.is_some() => Ok(done),
            _ => self.about.position.in_steps(script).ok_or_else(damaged)?.done(script),
        }
    }

    /// Makes a program hold what it held.
    ///
    /// # Errors
    /// An array has another size or type than a variable that holds it, a declared field has none, or the program is never where
    /// it was.
    pub fn restore<B: Backend>(&self, driver: &mut Driver<B>) -> Result<()> {
        let script = driver.script();
        let variables = &script.program().variables;
        // Nothing is held before everything fits.
        let (position, done) = (self.position(&*script)?, self.done(&*script)?);
        let known = |held: &Held| match held.variable {
            variable if variable < variables.len() => {
                let array = self.arrays.get(&held.array).ok_or_else(damaged)?;
                Ok((VariableId::new(variable), array))
            }
            _ => Err(damaged()),
        };
        let mut held: BTreeMap<VariableId, &str> = BTreeMap::new();
        for own in &self.about.values {
            let (id, found) = known(own)?;
            let fits =
                !script.is_number(id) && found.shape == script.shape(id) && found.data.element() == script.element(id);
            if !fits || held.insert(id, &own.array).is_some() {
                return Err(damaged());
            }
        }
        let mut numbers = Vec::new();
        for own in &self.about.numbers {
            let (id, found) = known(own)?;
            let fits = script.is_number(id) && found.shape.is_empty() && found.data.element() == script.element(id);
            if !fits {
                return Err(damaged());
            }
            numbers.push((id, found.data.value(0)));
        }
        // Over a mesh, what nobody looks at any more is not kept.
        if self.about.mesh.is_none() && script.program().outer().any(|variable| !held.contains_key(&variable)) {
            return Err(damaged());
        }
        let mut first: BTreeMap<&str, VariableId> = BTreeMap::new();
        for (&id, array) in &held {
            match first.get(array) {
                // Places of one size on this grid may have halos of different sizes.
                Some(&known) => driver.share(known, id).map_err(|_| damaged())?,
                None => {
                    driver.set(id, &self.arrays[*array].data)?;
                    first.insert(array, id);
                }
            }
        }
        numbers.into_iter().for_each(|(id, value)| driver.set_number(id, value));
        driver.go_to(position, done, self.about.repeats);
        Ok(())
    }
}

fn damaged() -> Error {
    Error::input("the checkpoint does not fit the program").help("it is damaged; start anew")
}

/// The parameters that say how often an outermost loop is run that is not done before `step`, and nothing else.
fn only_counts(program: &Program, step: usize) -> Vec<String> {
    fn params(program: &Program, body: &Body, found: &mut Vec<String>) {
        for (_, node) in body.iter() {
            match node {
                Node::Param(param) => found.push(program.numbers.params[*param].name.clone()),
                Node::Use { def, .. } => params(program, &program.numbers.defs[*def].body, found),
                _ => {}
            }
        }
    }
    fn visit(program: &Program, actions: &[Action], others: &mut Vec<String>) {
        for action in actions {
            match action {
                Action::Call(call) => call.params.iter().flatten().for_each(|body| params(program, body, others)),
                Action::Rename(_) => {}
                Action::Number(number) => params(program, &number.value, others),
                Action::Repeat(repeat) => {
                    params(program, &repeat.times, others);
                    visit(program, &repeat.actions, others);
                }
            }
        }
    }
    let (mut counts, mut others) = (Vec::new(), Vec::new());
    for (n, action) in program.own_actions().into_iter().enumerate() {
        match action {
            Action::Repeat(repeat) if n >= step => {
                params(program, &repeat.times, &mut counts);
                visit(program, &repeat.actions, &mut others);
            }
            Action::Call(_) | Action::Rename(_) | Action::Repeat(_) | Action::Number(_) => {
                visit(program, std::slice::from_ref(action), &mut others);
            }
        }
    }
    for (_, variable) in program.variables.iter() {
        for axis in GridAxis::ALL {
            for side in Side::BOTH {
                if let EdgeRule::Value(body) = variable.edges.rule(axis, side) {
                    params(program, body, &mut others);
                }
            }
        }
    }
    counts.retain(|name| !others.contains(name));
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::cpu::Interpreter;
    use crate::program::results;
    use crate::program::tests::{problem, program};
    use stencilc_compiler::program::{Fuse, Fusing};

    /// A program on a grid of 4 x 3 x 2, and its checkpoint at the beginning.
    fn saved(text: &str) -> (ProgramProblem, Checkpoint) {
        let problem = problem(&program(text), Grid::rows(4, 3, 2), Precision::F64, &[]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("way.npz");
        let backend = Interpreter::new(problem.clone());
        save(&path, &About::new(&problem, &OfText::default(), false), &Driver::new(&backend).given().unwrap()).unwrap();
        let found = load(&path).unwrap();
        assert!(goes_on(&problem, &found));
        (problem, found)
    }

    fn goes_on(problem: &ProgramProblem, found: &Checkpoint) -> bool {
        let backend = Interpreter::new(problem.clone());
        let is_restored = found.restore(&mut Driver::new(&backend)).is_ok();
        let is_checked = found.check(&About::new(problem, &OfText::default(), false), problem).is_ok();
        // What does not fit its place is found out when it is put there.
        assert!(is_checked || !is_restored);
        is_restored
    }

    #[test]
    fn a_field_that_a_checkpoint_lacks_is_not_made_up() {
        let (problem, mut found) =
            saved("program own { inout a; in c; a = one(a, c) }\n stencil one { in a, c; out b; b = a + c }");
        found.about.values.pop();
        assert!(!goes_on(&problem, &found));
    }

    /// Whoever comes second to an array is looked at as whoever comes first: buffers have no lengths to those who compute.
    #[test]
    fn an_array_fits_all_that_hold_it() {
        let text = |declared: &str| {
            format!(
                "program own {{ inout a; {declared}; a = one(a, z) }}
                 stencil one {{ in a; {declared}; out b; b = a + if z > 0 {{ 1.0 }} else {{ 0.0 }} }}"
            )
        };
        for declared in ["in z on (k)", "in z on (i,j)", "in z: int", "in z on (i,j,k+1)", "in z"] {
            let (problem, found) = saved(&text(declared));
            for name in found.arrays.keys() {
                let mut one = found.clone();
                one.about.values.iter_mut().for_each(|held| held.array.clone_from(name));
                assert_eq!(goes_on(&problem, &one), declared == "in z", "{declared}: all hold {name}");
            }
            let mut twice = found.clone();
            twice.about.values.push(found.about.values[0].clone());
            assert!(!goes_on(&problem, &twice), "{declared}");
        }
    }

    const LOOPS: &str = "program own {
            inout a; param n: int = 3; param m: int = 2
            boundary { i: periodic }
            a = one(a); a = two(a)
            repeat n { a = one(a) }
            a = two(a)
            repeat m { a = two(a) }
            a = one(a)
        }
        stencil one { in a; out b; b = 0.5*(a[i-1] + a[i+1]) }
        stencil two { in a; out b; b = a*(1 - a) }";

    #[test]
    fn a_position_is_one_where_a_program_can_be() {
        let (problem, found) = saved(LOOPS);
        let (end, most) = (problem.staged.program.actions.len(), usize::MAX);
        let good = [(0, 0), (2, 0), (2, 1), (2, 3), (4, 2), (end, 0)];
        let bad = [(0, 1), (1, 0), (1, most), (2, 4), (2, most), (3, 0), (4, 3), (end, 1), (end + 1, 0), (most, most)];
        for (position, is_good) in good.map(|own| (own, true)).into_iter().chain(bad.map(|own| (own, false))) {
            let mut found = found.clone();
            found.about.position = Position { step: position.0, time: position.1 };
            assert_eq!(goes_on(&problem, &found), is_good, "{position:?}");
        }
    }

    /// Plans join calls, so that their steps are others.
    #[test]
    fn another_plan_goes_on_where_one_stopped() {
        let plain = problem(&program(LOOPS), Grid::rows(4, 3, 2), Precision::F64, &[]).unwrap();
        let fusing = Fusing { fuse: Fuse::Pointwise, times: 1, wraps: false, whole: false };
        let fused = ProgramProblem { staged: plain.staged.fused(fusing), ..plain.clone() };
        assert_ne!(fused.staged.steps.len(), plain.staged.steps.len());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("way.npz");
        let about = About::new(&plain, &OfText::default(), false);
        let whole = |problem: &ProgramProblem, driver: &Driver<&Interpreter>| results(problem, driver).unwrap();
        for (from, to) in [(&plain, &fused), (&fused, &plain), (&fused, &fused)] {
            let (before, after) = (Interpreter::new(from.clone()), Interpreter::new(to.clone()));
            let mut driver = Driver::new(&before).given().unwrap();
            let mut ways = Vec::new();
            driver
                .run(None, &mut |driver, _| {
                    save(&path, &about, driver)?;
                    ways.push(load(&path)?);
                    Ok(())
                })
                .unwrap();
            let expected = whole(from, &driver);
            save(&path, &about, &driver).unwrap();
            ways.push(load(&path).unwrap());
            assert_eq!(ways.len(), 6);
            for (n, way) in ways.iter().enumerate() {
                way.check(&about, &plain).unwrap();
                let mut driver = Driver::new(&after);
                way.restore(&mut driver).unwrap();
                assert_eq!(driver.done(), (n + 1).min(5) as u64);
                driver.finish().unwrap();
                let same =
                    whole(to, &driver).iter().flatten().zip(expected.iter().flatten()).all(|(own, other)| own == other);
                assert!(same, "from way {n}");
            }
        }
    }
}
