//! What constants are worth before the precision is chosen.

use super::value::Bound;
use crate::ir::scalar::{Value, apply};
use crate::ir::{self, Body, Node, Origin, Precision, contract_body, fold_body};
use crate::source::Span;
use std::collections::HashMap;

/// The constants of a stencil, as far as they were computed.
#[derive(Clone, Default)]
pub struct Constants {
    /// The names of those being computed, innermost last.
    pub open: Vec<String>,
    /// Those computed so far, by the place of their name.
    pub values: HashMap<Span, Option<Bound>>,
    /// Whether what is being written must be constant: how many constants are being computed.
    pub depth: usize,
    /// The value of each definition that is a constant, in each way of computing.
    pub known: Known,
    /// What constants are worth in double precision.
    pub folded: ir::Constants,
}

/// The ways of computing: a precision, and whether multiply-adds are fused.
const WAYS: [(Precision, bool); 4] =
    [(Precision::F32, false), (Precision::F32, true), (Precision::F64, false), (Precision::F64, true)];

/// The value of each definition that is a constant, in each way of computing.
#[derive(Clone, Default)]
pub struct Known {
    values: [Vec<Option<Value>>; WAYS.len()],
}

impl Known {
    /// Remembers the value of the next definition.
    pub fn add(&mut self, body: &Body, origin: Origin) {
        for (way, (precision, contract)) in WAYS.into_iter().enumerate() {
            let value = (origin == Origin::Constant).then(|| value(body, precision, contract, &self.values[way]));
            self.values[way].push(value.flatten());
        }
    }

    /// The whole number that a constant's body is in every way of computing: what a condition on real numbers chooses may
    /// be one in double precision, and another in single precision.
    pub fn whole(&self, body: &Body) -> Option<i32> {
        let mut values = WAYS
            .iter()
            .zip(&self.values)
            .map(|(&(precision, contract), known)| value(body, precision, contract, known));
        match values.next()? {
            Some(Value::Int(x)) => values.all(|other| other == Some(Value::Int(x))).then_some(x),
            Some(Value::Real(_) | Value::Bool(_)) | None => None,
        }
    }
}

fn value(body: &Body, precision: Precision, contract: bool, known: &[Option<Value>]) -> Option<Value> {
    let folded =
        if contract { fold_body(&contract_body(body), precision, known) } else { fold_body(body, precision, known) };
    let literal: &Node = folded.literal()?;
    apply(precision, literal, &[])
}
