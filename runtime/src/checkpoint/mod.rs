//! Checkpoints: everything that a program holds on its way, in one `.npz` file.
//!
//! ```text
//! about: what it is of, and whether a program goes on from it -> mod: a program holds again what it held
//! file: how it is written and read
//! ```

mod about;
mod file;
#[cfg(test)]
mod tests;

use crate::array::{Array, Data};
use crate::driver::{Backend, Driver, Position, Script};
use crate::error::{Error, Result};
use about::Held;
pub use about::{About, OfText, OnMesh};
pub use file::{load, load_rows, read};
use std::collections::BTreeMap;
use stencilc_compiler::ir::{Handle, VariableId};
use stencilc_compiler::program::Step;

/// A checkpoint, as it is in a file.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// What it is of.
    pub about: About,
    arrays: BTreeMap<String, Array>,
    /// Those of which this process has some rows alone, by the variable that they are of.
    rows: BTreeMap<String, VariableId>,
    /// Of those that were read in part: hashes of all of them.
    hashes: BTreeMap<String, [u8; 32]>,
}

impl Checkpoint {
    /// The arrays by their names.
    pub fn arrays(&self) -> &BTreeMap<String, Array> {
        &self.arrays
    }

    /// A hash of each array, by name: of all of it, whatever this process has.
    pub(crate) fn hashes(&self) -> impl Iterator<Item = (&str, [u8; 32])> {
        let hash = |data: &Data| *blake3::hash(data.bytes()).as_bytes();
        let of = move |own: (&String, &Array)| self.hashes.get(own.0).copied().unwrap_or_else(|| hash(&own.1.data));
        self.arrays.iter().map(move |own| (own.0.as_str(), of(own)))
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
        self.about.check(about, script.program())?;
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
