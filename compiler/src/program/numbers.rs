//! The numbers of a program: what its parameters make of the bodies in it.

use crate::analysis::levels::Known;
use crate::ir::scalar::Value;
use crate::ir::{Body, Precision, Stencil, contract, contract_body};

/// Evaluates bodies of parameters and constants.
pub struct Numbers {
    stencil: Stencil,
    precision: Precision,
    contract: bool,
    nk: usize,
    params: Vec<Value>,
}

impl Numbers {
    /// For one value a parameter, and a grid of `nk` levels.
    pub fn new(stencil: &Stencil, precision: Precision, contracted: bool, nk: usize, params: &[Value]) -> Self {
        let stencil = if contracted { contract(stencil) } else { stencil.clone() };
        Self { stencil, precision, contract: contracted, nk, params: params.to_vec() }
    }

    /// The value of a body.
    pub fn value(&self, body: &Body) -> Value {
        let body = if self.contract { contract_body(body) } else { body.clone() };
        let known = Known::new(&self.stencil, self.precision, self.nk, &self.params);
        // Nothing is read in it, so its value is known.
        known.values(&body, 0).pop().flatten().unwrap_or(Value::Int(0))
    }
}
