//! The numbers of a program: what its parameters make of the bodies in it.

use crate::analysis::levels::Known;
use crate::depth::needed_first;
use crate::grid::Grid;
use crate::ir::scalar::{Value, apply};
use crate::ir::{Body, DefId, FieldId, Handle, Node, Precision, Stencil, contract, contract_body};
use std::collections::HashMap;

/// Evaluates bodies of parameters, constants, and numbers that change.
#[derive(Clone, Debug)]
pub struct Numbers {
    stencil: Stencil,
    precision: Precision,
    contract: bool,
    grid: Grid,
    params: Vec<Value>,
}

impl Numbers {
    /// For one value a parameter, and a grid.
    pub fn new(stencil: &Stencil, precision: Precision, contracted: bool, grid: Grid, params: &[Value]) -> Self {
        let stencil = if contracted { contract(stencil) } else { stencil.clone() };
        Self { stencil, precision, contract: contracted, grid, params: params.to_vec() }
    }

    fn known(&self) -> Known<'_> {
        Known::new(&self.stencil, self.precision, self.grid.nk, &self.params).on(self.grid)
    }

    /// The value of a body in which nothing changes.
    pub fn value(&self, body: &Body) -> Value {
        // Nothing is read in it, so its value is known.
        self.known().values(&self.contracted(body), 0).pop().flatten().unwrap_or(Value::Int(0))
    }

    /// The value of a body, whose numbers that change are given, by the fields that stand for them.
    ///
    /// # Errors
    /// Those of `number`.
    pub fn value_of<E>(&self, body: &Body, number: &mut dyn FnMut(FieldId) -> Result<Value, E>) -> Result<Value, E> {
        evaluate(&self.known(), &self.contracted(body), number)
    }

    fn contracted(&self, body: &Body) -> Body {
        if self.contract { contract_body(body) } else { body.clone() }
    }
}

/// The value of a body among the numbers of a program, of which those that change are given by the fields that stand for them.
///
/// # Errors
/// Those of `number`.
pub fn evaluate<E>(
    known: &Known,
    body: &Body,
    number: &mut dyn FnMut(FieldId) -> Result<Value, E>,
) -> Result<Value, E> {
    let used = |body: &Body| body.uses().map(|(def, _)| def).collect::<Vec<DefId>>();
    let mut found: HashMap<DefId, Value> = HashMap::new();
    for def in needed_first(used(body), |def| used(&known.stencil().defs[*def].body)) {
        let value = evaluate_body(known, &known.stencil().defs[def].body, &found, number)?;
        found.insert(def, value);
    }
    evaluate_body(known, body, &found, number)
}

fn evaluate_body<E>(
    known: &Known,
    body: &Body,
    found: &HashMap<DefId, Value>,
    number: &mut dyn FnMut(FieldId) -> Result<Value, E>,
) -> Result<Value, E> {
    let precision = known.precision();
    let of_known = known.values(body, 0);
    let mut values: Vec<Value> = Vec::with_capacity(body.len());
    for (id, node) in body.iter() {
        let value = match (of_known[id.index()], node) {
            (Some(value), _) => value,
            (None, Node::Read { field, .. }) => number(*field)?.rounded(precision),
            (None, Node::Use { def, .. }) => found.get(def).copied().unwrap_or(Value::Real(f64::NAN)),
            (None, Node::Choose { condition, yes, no }) => {
                values[if values[condition.index()] == Value::Bool(true) { yes } else { no }.index()]
            }
            (None, _) => {
                let operands: Vec<Value> = node.operands().iter().map(|operand| values[operand.index()]).collect();
                apply(precision, node, &operands).unwrap_or(Value::Real(f64::NAN))
            }
        };
        values.push(value);
    }
    Ok(values.pop().unwrap_or(Value::Int(0)))
}
