//! What a program asks of a backend, of which nothing is done: how often it asks whom for what is seen without computing.

use super::{Arrays, Backend, Computed, Driver, Script};
use crate::array::Data;
use crate::error::Result;
use std::cell::RefCell;
use std::convert::Infallible;
use std::sync::Arc;
use stencilc_compiler::ir::VariableId;

/// Turns after which a loop asks for the same each time.
const TURNS: usize = 4;

/// At least as many steps as any kernel computes at once.
const MOST: u64 = 1024;

/// What a turn of an outermost loop asks for: one step, or those that it computes at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// How many steps these are; none of a program that repeats nothing.
    pub steps: u64,
    /// The variables whose halos are filled, those that are filled at once together.
    pub filled: Vec<Vec<VariableId>>,
    /// The stages that are computed.
    pub computed: Vec<usize>,
}

struct Dry {
    script: Arc<dyn Script>,
    asked: RefCell<Asked>,
}

impl Backend for Dry {
    type Buffer = ();
    type Recording = Infallible;

    fn script(&self) -> Arc<dyn Script> {
        Arc::clone(&self.script)
    }

    fn load(&self, _: VariableId, _: &Data) -> Result<()> {
        Ok(())
    }

    fn read(&self, variable: VariableId, (): &()) -> Result<Data> {
        let len: usize = self.script.shape(variable).iter().product();
        // Of a number that says how often a loop is run: at least once.
        let value = stencilc_compiler::ir::scalar::Value::Int(1);
        Ok(if len == 1 { Data::single(self.script.element(variable), value) } else { self.script.fresh(variable) })
    }

    fn fill_halos(&self, all: &[(VariableId, &())]) -> Result<()> {
        self.asked.borrow_mut().filled.push(all.iter().map(|(variable, ())| *variable).collect());
        Ok(())
    }

    fn copy(&self, (): &(), (): &()) -> Result<()> {
        Ok(())
    }

    fn compute(&self, stage: &Computed, _: Arrays<()>) -> Result<()> {
        self.asked.borrow_mut().computed.push(stage.stage);
        Ok(())
    }

    fn replay(&self, recording: &Infallible) -> Result<()> {
        match *recording {}
    }
}

impl Asked {
    /// How often halos are filled, at once those of some variables, and these, in this order, each with how often its halo is.
    pub fn exchanges(&self, is_brought: impl Fn(VariableId) -> bool) -> (usize, Vec<(VariableId, usize)>) {
        let mut all: Vec<(VariableId, usize)> = Vec::new();
        let mut count = 0;
        for own in &self.filled {
            count += usize::from(own.iter().any(|variable| is_brought(*variable)));
            for &variable in own.iter().filter(|variable| is_brought(**variable)) {
                match all.iter_mut().find(|(known, _)| *known == variable) {
                    Some((_, times)) => *times += 1,
                    None => all.push((variable, 1)),
                }
            }
        }
        (count, all)
    }
}

/// What a turn of a program's loop asks for, once it is under way: of the last outermost loop that is run often enough to tell. Of one that repeats nothing,
/// all that it asks for.
///
/// # Errors
/// A number of repetitions is negative.
pub fn asked(script: Arc<dyn Script>) -> Result<Asked> {
    let mut driver = Driver::new(Dry { script, asked: RefCell::default() }).given()?;
    let mut all = Vec::new();
    while all.len() < TURNS
        && let Some(steps) = driver.advance(MOST)?
    {
        all.push(Asked { steps, ..driver.backend().asked.take() });
    }
    // At the end of a loop there may be fewer steps than are computed at once.
    let last = all.iter().max_by_key(|own| own.steps);
    Ok(last.cloned().unwrap_or_else(|| driver.backend().asked.take()))
}
