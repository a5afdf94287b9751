//! Numbers of a program: they are computed when somebody needs them, since a reduction may still be under way.

use std::cell::RefCell;
use std::rc::Rc;
use stencilc_compiler::analysis::levels::Known;
use stencilc_compiler::ir::scalar::{Value, apply};
use stencilc_compiler::ir::{Body, Handle, MeshProgram, Node, Precision, VariableId};

use crate::Result;

/// A number of a program.
#[derive(Debug)]
pub(crate) enum Number<A> {
    /// It is known.
    Known(Value),
    /// It stands in an array of one number.
    Array(Rc<A>),
    /// It is made of others, as they were then.
    Made {
        /// Its value.
        body: Body,
        /// What the body reads.
        of: Vec<(VariableId, Shared<A>)>,
        /// How long the chain of numbers below it may be that are not known.
        depth: usize,
    },
}

/// The longest chain of numbers that are not known, each made of the one before.
pub(crate) const DEPTH: usize = 100;

impl<A> Number<A> {
    /// A number that is made of others.
    pub fn made(body: Body, of: Vec<(VariableId, Shared<A>)>) -> Self {
        let depth = of.iter().map(|(_, number)| number.borrow().depth()).max().map_or(0, |deepest| deepest + 1);
        Number::Made { body, of, depth }
    }

    /// Whether there is no reason to leave open what it is worth: nothing that it is made of has to be waited for, or
    /// all that it is made of has become too much to be looked at in one go. A loop of any length may go on from its own number.
    pub fn is_due(&self) -> bool {
        match self {
            Number::Known(_) | Number::Array(_) => false,
            Number::Made { of, depth, .. } => {
                *depth >= DEPTH || of.iter().all(|(_, number)| matches!(&*number.borrow(), Number::Known(_)))
            }
        }
    }

    fn depth(&self) -> usize {
        match self {
            Number::Known(_) | Number::Array(_) => 0,
            Number::Made { depth, .. } => *depth,
        }
    }
}

/// A number that several variables may hold.
pub(crate) type Shared<A> = Rc<RefCell<Number<A>>>;

/// What is known of all numbers.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub program: &'a MeshProgram,
    pub precision: Precision,
    pub levels: usize,
    pub params: &'a [Value],
}

impl Scope<'_> {
    /// The numbers that a body reads.
    pub fn reads(&self, body: &Body) -> Vec<VariableId> {
        let reads = body.iter().filter_map(|(_, node)| match node {
            Node::Read { field, .. } => self.program.numbers.get(field.index()).copied(),
            _ => None,
        });
        reads.collect()
    }

    /// The value of a body, whose numbers are given.
    pub fn value(&self, body: &Body, number: &mut dyn FnMut(VariableId) -> Result<Value>) -> Result<Value> {
        let numbers = &self.program.program.numbers;
        let known = Known::new(numbers, self.precision, self.levels, self.params).values(body, 0);
        let mut values: Vec<Value> = Vec::with_capacity(body.len());
        for (id, node) in body.iter() {
            let value = match (known[id.index()], node) {
                (Some(value), _) => value,
                (None, Node::Read { field, .. }) => match self.program.numbers.get(field.index()) {
                    Some(&variable) => number(variable)?.rounded(self.precision),
                    None => Value::Real(f64::NAN),
                },
                (None, Node::Choose { condition, yes, no }) => {
                    values[if values[condition.index()] == Value::Bool(true) { yes } else { no }.index()]
                }
                (None, _) => {
                    let operands: Vec<Value> = node.operands().iter().map(|operand| values[operand.index()]).collect();
                    apply(self.precision, node, &operands).unwrap_or(Value::Real(f64::NAN))
                }
            };
            values.push(value);
        }
        Ok(values.pop().unwrap_or(Value::Int(0)))
    }
}
