//! Numbers that do not survive: constants that become infinite, or 0, or are no numbers, in the precision that is chosen.

use crate::diagnostic::Diagnostic;
use crate::ir::scalar::{Value, apply};
use crate::ir::{Binary, Body, Handle, Node, Precision, Stencil};

/// Warnings about the constants of `stencil`, computed in `precision`; a `const c: f32` that f32 cannot hold is an error.
pub fn numbers(stencil: &Stencil, precision: Precision) -> Vec<Diagnostic> {
    let mut told = Vec::new();
    let defs = stencil.of_defs(|body, defs| look(body, precision, defs, &mut told));
    let defaults = stencil.params.iter().filter_map(|(_, param)| param.default.as_ref());
    for body in stencil.outputs().chain(defaults) {
        look(body, precision, &defs, &mut told);
    }
    told
}

/// The value of a body, if it is constant.
fn look(body: &Body, precision: Precision, defs: &[Option<Value>], told: &mut Vec<Diagnostic>) -> Option<Value> {
    let values = body.of_nodes(|id, node, values: &[Option<Value>]| {
        let operands = node.operands();
        let known: Option<Vec<Value>> = operands.iter().map(|operand| values[operand.index()]).collect();
        let value = match node {
            Node::Use { def, .. } => defs[def.index()],
            _ => known.as_ref().and_then(|known| apply(precision, node, known)),
        };
        let at = body.span_of(id);
        let single = |x: f64| x.is_finite() && (!(x as f32).is_finite() || x as f32 == 0.0 && x != 0.0);
        match (node, value) {
            (Node::Real(x), _) if precision == Precision::F32 && single(*x) => {
                told.push(lost(Diagnostic::warning(at, ""), *x, "use --precision f64, or scale the formula"));
            }
            (Node::ToSingle(_), Some(_)) => {
                if let Some(Value::Real(x)) = known.and_then(|known| known.first().copied())
                    && single(x)
                {
                    told.push(lost(Diagnostic::error(at, ""), x, "leave out `f32`, so that it is a `real`"));
                }
            }
            (Node::Binary(op @ (Binary::Div | Binary::Rem), _, divisor), _)
                if matches!(values[divisor.index()], Some(Value::Real(0.0))) =>
            {
                let what = if *op == Binary::Div { "division" } else { "remainder of a division" };
                told.push(
                    Diagnostic::warning(body.span_of(*divisor), format!("a {what} by 0"))
                        .label("this is 0")
                        .help("its result is infinite or not a number (NaN)"),
                );
            }
            (_, Some(Value::Real(x))) if !x.is_finite() => {
                let is_new = known.is_some_and(|known| {
                    !known.is_empty() && known.iter().all(|value| !matches!(value, Value::Real(x) if !x.is_finite()))
                });
                if is_new {
                    let what = if x.is_nan() { "not a number (NaN)" } else { "infinite" };
                    told.push(
                        Diagnostic::warning(at, format!("this constant is {what}"))
                            .label(format!("computed in {}", precision.name())),
                    );
                }
            }
            _ => {}
        }
        value
    });
    values.last().copied().flatten()
}

/// A number that single precision cannot hold.
fn lost(mut diagnostic: Diagnostic, x: f64, help: &str) -> Diagnostic {
    let (what, label) = if (x as f32).is_finite() {
        ("small", "becomes 0: the smallest is about 1e-45")
    } else {
        ("large", "becomes infinite: the largest is about 3.4e38")
    };
    diagnostic.message = format!("this number is too {what} for single precision");
    diagnostic.label(label).help(help)
}
