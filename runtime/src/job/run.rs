//! A job that was started.

use super::Checked;
use crate::array::{Array, Data};
use crate::checkpoint::{About, Checkpoint};
use crate::driver::{Backend, Driver, Script, knows_total};
use crate::error::{Error, Result};
use crate::print::{Print, Printed};
use crate::ranks::Ranks;
use crate::{files, npy};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use stencilc_compiler::diagnostic::guess;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Role, VariableId};

/// A driver, whatever computes.
pub(super) trait Running {
    /// How often outermost loops are run in all, as far as that is known before.
    fn total(&self) -> Result<u64>;

    /// How often they were run until now.
    fn done(&self) -> u64;

    /// As [`Driver::advance`].
    fn advance(&mut self, most: u64) -> Result<Option<u64>>;

    /// What a variable holds.
    fn get(&self, variable: VariableId) -> Result<Option<Data>>;

    /// As [`Driver::own`].
    fn own(&self, variable: VariableId) -> Result<Option<Data>>;

    /// The value of a number.
    fn number(&self, variable: VariableId) -> Result<Option<Value>>;

    /// Gives a variable its numbers.
    fn set(&mut self, variable: VariableId, data: &Data) -> Result<()>;

    /// What it does.
    fn script(&self) -> Arc<dyn Script>;

    /// Waits until all is computed.
    fn wait(&self) -> Result<()>;

    /// As [`Driver::begin_again`].
    fn begin_again(&mut self) -> Result<()>;

    /// As [`Checkpoint::of`].
    fn checkpoint(&self, about: &About) -> Result<Checkpoint>;
}

impl<B: Backend> Running for Driver<B> {
    fn total(&self) -> Result<u64> {
        self.total()
    }

    fn done(&self) -> u64 {
        self.done()
    }

    fn advance(&mut self, most: u64) -> Result<Option<u64>> {
        self.advance(most)
    }

    fn get(&self, variable: VariableId) -> Result<Option<Data>> {
        self.get(variable)
    }

    fn own(&self, variable: VariableId) -> Result<Option<Data>> {
        self.own(variable)
    }

    fn number(&self, variable: VariableId) -> Result<Option<Value>> {
        self.number(variable)
    }

    fn set(&mut self, variable: VariableId, data: &Data) -> Result<()> {
        self.set(variable, data)
    }

    fn script(&self) -> Arc<dyn Script> {
        self.script()
    }

    fn wait(&self) -> Result<()> {
        self.wait()
    }

    fn begin_again(&mut self) -> Result<()> {
        self.begin_again()
    }

    fn checkpoint(&self, about: &About) -> Result<Checkpoint> {
        Checkpoint::of(self, about)
    }
}

/// A job under way: its fields are on the device.
pub struct Run {
    pub(super) driver: Box<dyn Running>,
    pub(super) script: Arc<dyn Script>,
    pub(super) checked: Checked,
    about: About,
    /// The processes that compute it together.
    pub(super) ranks: Option<Arc<Ranks>>,
    /// Whether anything was computed, so that outputs have values.
    is_begun: bool,
    /// Inputs that were given new numbers.
    replaced: BTreeSet<VariableId>,
    prints: Vec<(Option<VariableId>, Print)>,
    /// Over a mesh: the calls of each kernel that computes several.
    pub merged: Vec<Vec<String>>,
}

impl Run {
    pub(super) fn new(
        driver: Box<dyn Running>,
        checked: Checked,
        about: About,
        prints: Vec<(Option<VariableId>, Print)>,
    ) -> Self {
        Self {
            script: driver.script(),
            checked,
            is_begun: false,
            driver,
            about,
            ranks: None,
            replaced: BTreeSet::new(),
            prints,
            merged: Vec::new(),
        }
    }

    /// The same, which some processes compute together.
    pub(super) fn of(self, ranks: Option<Arc<Ranks>>) -> Self {
        Self { ranks, ..self }
    }

    /// The same, of which something was computed before.
    pub(super) fn resumed(self) -> Self {
        Self { is_begun: true, ..self }
    }

    /// What is computed, with all that it was given.
    pub fn checked(&self) -> &Checked {
        &self.checked
    }

    /// How often the outermost loops were run until now.
    pub fn done(&self) -> u64 {
        self.driver.done()
    }

    /// How often they are run in all, as far as that is known before.
    ///
    /// # Errors
    /// A number of repetitions is negative.
    pub fn total(&self) -> Result<u64> {
        self.driver.total()
    }

    /// Goes on by so many times of an outermost loop, or fewer at the end, and returns how many there were. What stands before a loop is
    /// done with its first time, and what stands behind the last one by [`Run::finish`].
    ///
    /// # Errors
    /// A kernel has failed, or there is not enough memory.
    pub fn step(&mut self, times: u64) -> Result<u64> {
        let mut some = 0;
        while some < times {
            let Some(more) = self.advance(times - some)? else { break };
            some += more;
        }
        Ok(some)
    }

    /// Goes on by so many times of an outermost loop, or fewer, as far as one launch leads, so that one sees how far it is; does what
    /// stands behind the last loop, and returns nothing, at the end.
    ///
    /// # Errors
    /// As [`Run::step`].
    pub fn advance(&mut self, most: u64) -> Result<Option<u64>> {
        let advanced = self.driver.advance(most)?;
        self.is_begun = true;
        Ok(advanced)
    }

    /// Does what stands behind the last loop, if it is known that all loops are done: who goes on by a number of steps need not go on by one
    /// more. Where a program computes how often a loop is run, it is done with the next step, of which there is none.
    ///
    /// # Errors
    /// As [`Run::step`].
    pub fn settle(&mut self) -> Result<()> {
        if knows_total(&*self.script) && self.done() >= self.total()? {
            self.advance(1)?;
        }
        Ok(())
    }

    /// Goes on to the end.
    ///
    /// # Errors
    /// As [`Run::step`].
    pub fn finish(&mut self) -> Result<()> {
        while self.step(u64::MAX)? > 0 {}
        self.driver.wait()
    }

    /// Goes back to the beginning, with whatever its fields hold: who measures how long it takes asks for no numbers.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn begin_again(&mut self) -> Result<()> {
        self.driver.begin_again()
    }

    /// What a declared field holds now, in the order of the arrays that were given.
    ///
    /// # Errors
    /// There is no such field, or it has no value yet, as an output before anything is computed; or a kernel has failed. Elements that
    /// are never computed, such as those beside an edge, hold NaN, 0 or false, and so do outputs of steps that are still to come.
    pub fn get(&self, name: &str) -> Result<Array> {
        self.held(name)?.ok_or_else(|| {
            Error::call(format!("`{name}` has no value yet"))
                .help("it has one once it is computed: `step`, or `finish`")
        })
    }

    /// The same; nothing if it has no value yet. A number is an array without axes.
    ///
    /// # Errors
    /// There is no such field, or a kernel has failed.
    pub fn held(&self, name: &str) -> Result<Option<Array>> {
        let variable = self.declared(name)?;
        if !self.has_value(variable) {
            return Ok(None);
        }
        let role = self.script.program().variables[variable].role;
        let mut data = self.told(variable)?;
        // Memory of what nobody reads any more is used for something else.
        if data.is_none() && role == Some(Role::In) {
            let given = self.script.initial()?.into_iter().find(|(own, _)| *own == variable);
            data = given.filter(|_| !self.replaced.contains(&variable)).map(|(_, data)| data.clone());
        }
        Ok(data.map(|data| Array { shape: self.script.shape(variable), data }))
    }

    /// Whether a variable may have a value by now.
    pub(super) fn has_value(&self, variable: VariableId) -> bool {
        let is_output = self.script.program().variables[variable].role == Some(Role::Out);
        !is_output || self.is_begun || self.replaced.contains(&variable)
    }

    /// What a variable holds, if this process is told.
    fn told(&self, variable: VariableId) -> Result<Option<Data>> {
        let data = self.driver.get(variable)?;
        let len: usize = self.script.shape(variable).iter().product();
        Ok(data.filter(|data| data.len() == len))
    }

    /// The names of the declared fields and numbers that are written, in the order declared.
    pub fn outputs(&self) -> Vec<String> {
        let variables = self.script.program().variables.iter();
        let written = variables.filter(|(_, own)| own.role.is_some_and(Role::is_written));
        written.map(|(_, own)| own.name.clone()).collect()
    }

    /// What its stencils printed when each call was done last, at cells that are chosen for each print: of a grid (i, j, k), of a set
    /// (element, 0, level). There is nothing to show unless the job was told to compute it.
    ///
    /// # Errors
    /// A kernel has failed.
    pub fn printed(&self, cells: &dyn Fn(&Print) -> Vec<[usize; 3]>) -> Result<Vec<Printed>> {
        let one = |(variable, print): &(Option<VariableId>, Print)| {
            let data = variable.map(|variable| self.told(variable)).transpose()?.flatten();
            Ok(print.clone().at(&cells(print), data.as_ref()))
        };
        self.prints.iter().map(one).collect()
    }

    /// Keeps all that it holds in the file at `path`, from which [`Job::resume`](super::Job::resume) goes on. Of several processes, the first
    /// one does, of what all have.
    ///
    /// # Errors
    /// It cannot be written, or a kernel has failed.
    pub fn save(&self, path: &Path) -> Result<()> {
        let mut checkpoint = self.driver.checkpoint(&self.about)?;
        let Some(ranks) = &self.ranks else { return checkpoint.save(path) };
        let mut rows = BTreeMap::new();
        for (name, (variable, own)) in checkpoint.take_rows() {
            rows.extend(self.rows_of(variable, own)?.map(|own| (name, own)));
        }
        if !ranks.is_first() {
            return rows.values().try_for_each(|own| own.each(&mut |_| Ok(())));
        }
        let mut failed = None;
        let written = files::write_atomic(path, |out| {
            checkpoint.write_by(out, &mut |name, array, out| match rows.get(name) {
                Some(own) => {
                    npy::write_head(out, own.element(), own.shape())?;
                    own.write(out).map_err(|error| error.kept(&mut failed))
                }
                None => npy::write(out, array),
            })
        });
        failed.map_or(written, Err)
    }

    /// What a number is now, such as what a reduction came to.
    ///
    /// # Errors
    /// There is no such number, or it has no value yet; or a kernel has failed.
    pub fn number(&self, name: &str) -> Result<f64> {
        let value = self.driver.number(self.declared(name)?)?;
        value.map(Value::real).ok_or_else(|| {
            Error::call(format!("`{name}` is no number, or has no value yet")).help("fields are arrays: `get`")
        })
    }

    /// Gives a declared field new numbers.
    ///
    /// # Errors
    /// There is no such field; the array has another shape or type, or not as many numbers as its shape says; a number that says which level
    /// is read leads to none; or there is not enough memory.
    pub fn put(&mut self, name: &str, array: &Array) -> Result<()> {
        let variable = self.declared(name)?;
        if self.script.is_number(variable) {
            let own = &self.script.program().name;
            return Err(Error::call(format!("`{name}` is a number, which `{own}` computes by itself"))
                .help("give what it is computed from another value: a parameter when the job starts, or a field"));
        }
        let (shape, element) = (self.script.shape(variable), self.script.element(variable));
        if array.shape != shape {
            return Err(Error::call(format!("`{name}` has the shape {shape:?}, not {:?}", array.shape)));
        }
        array.check(&format!("the array of `{name}`"))?;
        if array.data.element() != element {
            let (own, given) = (element.name(), array.data.element().name());
            return Err(Error::call(format!("`{name}` is an array of {own}, not of {given}")));
        }
        self.script.check_levels(variable, &array.data)?;
        self.replaced.insert(variable);
        self.driver.set(variable, &array.data)
    }

    /// Waits until all is computed.
    ///
    /// # Errors
    /// A kernel has failed.
    pub fn wait(&self) -> Result<()> {
        self.driver.wait()
    }

    pub(super) fn declared(&self, name: &str) -> Result<VariableId> {
        self.script.program().declared(name).ok_or_else(|| {
            let variables = self.script.program().variables.iter();
            let names = variables.filter(|(_, own)| own.role.is_some()).map(|(_, own)| own.name.as_str());
            let names: Vec<&str> = names.collect();
            let error = Error::call(format!("`{}` has no field `{name}`", self.script.program().name));
            match guess(name, names.iter().copied()) {
                Some(guess) => error.help(format!("did you mean `{guess}`?")),
                None => error.help(format!("it has {}", names.join(", "))),
            }
        })
    }
}
