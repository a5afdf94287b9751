//! Does what a program over a mesh says. Arrays are shared: a renamed variable holds the same one, and an array that nobody
//! looks at any more is handed on to the call that looks at it last.

use super::MeshProblem;
use super::live::{Step, kept};
use super::numbers::{Number, Scope, Shared};
use crate::array::Data;
use crate::{Error, Result};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use stencilc_compiler::ir::program::Call;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Body, Handle, Role, VariableId};
use stencilc_compiler::mesh::Chain;

/// What computes calls.
pub trait Backend {
    /// The array of a field.
    type Array;

    /// The array of a variable with these numbers, which are in the user's order.
    ///
    /// # Errors
    /// There is not enough memory.
    fn upload(&self, variable: VariableId, data: &Data) -> Result<Self::Array>;

    /// The numbers of a variable's array, in the user's order.
    ///
    /// # Errors
    /// A kernel has failed.
    fn download(&self, variable: VariableId, array: &Self::Array) -> Result<Data>;

    /// The number that stands in an array by itself.
    ///
    /// # Errors
    /// A kernel has failed.
    fn number(&self, array: &Self::Array) -> Result<Value>;

    /// Waits until all calls are computed.
    ///
    /// # Errors
    /// A kernel has failed.
    fn wait(&self) -> Result<()>;

    /// Whether the calls of a chain are computed by one kernel.
    fn merges(&self, chain: &Chain) -> bool;

    /// Computes a call. By field: what is given, which is nobody else's where it is looked at last, and what comes out. Of an
    /// `out` given is what its levels keep that are not computed; if nothing is, they are fresh.
    ///
    /// # Errors
    /// There is not enough memory, or a kernel has failed.
    fn call(&self, call: &Call, params: &[Value], given: Given<Self::Array>) -> Result<Given<Self::Array>>;
}

/// Arrays by the fields of a stencil.
pub type Given<A> = Vec<Option<Rc<A>>>;

/// Runs a program.
pub struct Driver<'a, B: Backend> {
    problem: &'a MeshProblem,
    backend: &'a B,
    arrays: HashMap<VariableId, Rc<B::Array>>,
    numbers: HashMap<VariableId, Shared<B::Array>>,
}

impl<'a, B: Backend> Driver<'a, B> {
    /// A program before its first step.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn new(problem: &'a MeshProblem, backend: &'a B) -> Result<Self> {
        let mut driver = Self { problem, backend, arrays: HashMap::new(), numbers: HashMap::new() };
        for (&variable, data) in &problem.initial {
            driver.arrays.insert(variable, Rc::new(backend.upload(variable, data)?));
        }
        Ok(driver)
    }

    /// How many steps the outermost loops have.
    ///
    /// # Errors
    /// A number is negative.
    pub fn steps(&self) -> Result<u64> {
        let mut total = 0;
        for step in &self.problem.steps {
            if let Step::Repeat { times, .. } = step {
                // A number that changes is not known before.
                total += if self.scope().reads(times).is_empty() { self.times(times)? } else { 0 };
            }
        }
        Ok(total)
    }

    /// Runs the program, and calls `after` each step of its outermost loops with how many there have been.
    ///
    /// # Errors
    /// Those of calls and of `after`.
    pub fn run(&mut self, after: &mut dyn FnMut(&mut Self, u64) -> Result<()>) -> Result<()> {
        let mut done = 0;
        for step in &self.problem.steps {
            match step {
                Step::Repeat { times, steps } => {
                    for _ in 0..self.times(times)? {
                        self.all(steps)?;
                        done += 1;
                        after(self, done)?;
                    }
                }
                Step::Call { .. } | Step::Chain { .. } | Step::Rename { .. } | Step::Number { .. } => {
                    self.all(std::slice::from_ref(step))?;
                }
            }
        }
        Ok(())
    }

    fn all(&mut self, steps: &[Step]) -> Result<()> {
        for step in steps {
            match step {
                Step::Call { call, last } => self.call(call, last)?,
                Step::Chain { call, last, .. } if self.backend.merges(self.problem.chain(call)) => {
                    self.call(call, last)?
                }
                Step::Chain { apart, .. } => self.all(apart)?,
                Step::Rename { from, to } => {
                    if let Some(array) = self.arrays.get(from).cloned() {
                        self.arrays.insert(*to, array);
                    }
                    if let Some(number) = self.numbers.get(from).cloned() {
                        self.numbers.insert(*to, number);
                    }
                }
                Step::Number { to, value } => {
                    let reads = self.scope().reads(value);
                    let of = reads.into_iter().filter_map(|id| Some((id, self.numbers.get(&id)?.clone()))).collect();
                    let made = Number::made(value.clone(), of);
                    let is_due = made.is_due();
                    let number = Rc::new(RefCell::new(made));
                    if is_due {
                        self.forced(&number)?;
                    }
                    self.numbers.insert(*to, number);
                }
                Step::Repeat { times, steps } => {
                    for _ in 0..self.times(times)? {
                        self.all(steps)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Computes a call, or a chain of calls.
    fn call(&mut self, call: &Call, last: &BTreeSet<VariableId>) -> Result<()> {
        let params = self.params(call)?;
        let kept: Vec<VariableId> = kept(&self.problem.program.program, call).collect();
        let mut given = Vec::new();
        for (binding, (_, field)) in call.fields.iter().zip(self.stencil(call).fields.iter()) {
            given.push(match binding.read {
                // What is added to and left out starts from 0, whatever there was.
                None if field.role == Role::Inc => None,
                None => binding.written.filter(|to| kept.contains(to)).and_then(|to| self.arrays.get(&to).cloned()),
                Some(id) => Some(
                    self.arrays
                        .get(&id)
                        .cloned()
                        .ok_or_else(|| Error::call(format!("`{}` has no array", field.name)))?,
                ),
            });
        }
        // Nobody looks at these later: the call may have them.
        last.iter().for_each(|id| {
            self.arrays.remove(id);
        });
        let mut results = self.backend.call(call, &params, given)?;
        for (binding, result) in call.fields.iter().zip(&mut results) {
            if let (Some(to), Some(array)) = (binding.written, result.take()) {
                if self.problem.is_number(to) {
                    self.numbers.insert(to, Rc::new(RefCell::new(Number::Array(array))));
                } else {
                    self.arrays.insert(to, array);
                }
            }
        }
        Ok(())
    }

    /// Waits until all that was done is computed.
    ///
    /// # Errors
    /// A kernel has failed.
    pub fn wait(&self) -> Result<()> {
        self.backend.wait()
    }

    /// What a variable holds, in the user's order; nothing if it never got a value.
    ///
    /// # Errors
    /// A kernel has failed.
    pub fn get(&self, variable: VariableId) -> Result<Option<Data>> {
        self.arrays.get(&variable).map(|array| self.backend.download(variable, array)).transpose()
    }

    /// The value of a number; nothing if it never got one.
    ///
    /// # Errors
    /// A kernel has failed.
    pub fn number(&self, variable: VariableId) -> Result<Option<Value>> {
        self.numbers.get(&variable).map(|number| self.forced(number)).transpose()
    }

    /// The fields and parameters of a call, or of a chain.
    fn stencil(&self, call: &Call) -> &'a stencilc_compiler::ir::Stencil {
        &self.problem.stages(call.stencil)[0].stencil
    }

    fn scope(&self) -> Scope<'a> {
        let MeshProblem { program, precision, levels, params, .. } = self.problem;
        Scope { program, precision: *precision, levels: *levels, params }
    }

    fn forced(&self, number: &Shared<B::Array>) -> Result<Value> {
        let value = match &*number.borrow() {
            Number::Known(value) => return Ok(*value),
            Number::Array(array) => self.backend.number(array)?,
            Number::Made { body, of, .. } => self.scope().value(body, &mut |id| {
                let known = of.iter().find(|(own, _)| *own == id);
                known.map_or(Ok(Value::Real(f64::NAN)), |(_, number)| self.forced(number))
            })?,
        };
        *number.borrow_mut() = Number::Known(value);
        Ok(value)
    }

    fn value(&self, body: &Body) -> Result<Value> {
        self.scope().value(body, &mut |id| match self.numbers.get(&id) {
            Some(number) => self.forced(number),
            None => Ok(Value::Real(f64::NAN)),
        })
    }

    fn times(&self, body: &Body) -> Result<u64> {
        let times = self.value(body)?.int();
        u64::try_from(times).map_err(|_| {
            let name = &self.problem.program.program.name;
            Error::input(format!("program `{name}` repeats something {times} times"))
                .help("the number of repetitions is at least 0")
        })
    }

    /// The values of a called stencil's parameters.
    fn params(&self, call: &Call) -> Result<Vec<Value>> {
        let precision = self.problem.precision;
        let own = self.stencil(call).params.iter();
        own.map(|(id, param)| {
            let given = call.params[id.index()].as_ref().map(|body| self.value(body)).transpose()?;
            let default = || param.default.as_ref().and_then(|body| body.literal());
            let default = || default().and_then(|node| stencilc_compiler::ir::scalar::apply(precision, node, &[]));
            given.or_else(default).map(|value| value.rounded(precision)).ok_or_else(|| {
                Error::call(format!("the parameter `{}` of `{}` has no value", param.name, self.stencil(call).name))
            })
        })
        .collect()
    }

    /// What the outputs hold, fields and numbers, in the order declared.
    ///
    /// # Errors
    /// A kernel has failed.
    pub fn results(&self) -> Result<Vec<(VariableId, Option<Data>)>> {
        let variables = &self.problem.program.program.variables;
        let outputs = variables.iter().filter(|(_, own)| own.role.is_some_and(Role::is_written));
        outputs
            .map(|(id, own)| {
                if !self.problem.is_number(id) {
                    return Ok((id, self.get(id)?));
                }
                let element = crate::problem::element_of(own.stored, self.problem.precision);
                let number = self.number(id)?.map(|value| single(element, value));
                Ok((id, number))
            })
            .collect()
    }
}

/// An array of one number.
pub fn single(element: crate::Element, value: Value) -> Data {
    match (element, value) {
        (crate::Element::F32, value) => Data::F32(vec![value.real() as f32]),
        (crate::Element::F64, value) => Data::F64(vec![value.real()]),
        (crate::Element::I32, value) => Data::I32(vec![value.int()]),
        (crate::Element::Bool, value) => Data::Bool(vec![value.truth().into()]),
    }
}
