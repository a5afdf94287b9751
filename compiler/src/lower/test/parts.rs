//! Parts of expressions: the names in them, and what is worth a look where an expectation is false.

use super::super::Lowering;
use super::super::scope::{Binding, TAKEN};
use crate::ast::{self, Expr, ExprId, Infix};
use crate::source::Span;

/// The most parts of one expectation; more than this nobody reads.
const PARTS: usize = 16;

/// The operands of an expression, and what its blocks are made of.
fn operands(file: &ast::File, expr: ExprId) -> Vec<ExprId> {
    let block = |block: &ast::Block| -> Vec<ExprId> {
        block.lets.iter().map(|binding| binding.value).chain([block.value]).collect()
    };
    match &file.exprs[expr] {
        Expr::Real(_) | Expr::Int(_) | Expr::Truth(_) | Expr::Name(_) => Vec::new(),
        Expr::Prefix(_, inner) | Expr::Group(inner) | Expr::Level(inner) | Expr::Component(inner, _) => vec![*inner],
        Expr::Infix(_, left, right) => vec![*left, *right],
        Expr::Index(base, offsets) => [&[*base], offsets.as_slice()].concat(),
        Expr::Call(_, arguments) => arguments.iter().map(|argument| argument.value).collect(),
        Expr::Choose(arms, otherwise) => {
            let arms = arms.iter().flat_map(|(condition, yes)| [vec![*condition], block(yes)].concat());
            arms.chain(block(otherwise)).collect()
        }
        Expr::Fold(_, _, body) | Expr::Block(body) => block(body),
        Expr::Vector(parts) => parts.clone(),
    }
}

/// The names in an expression, in the order of the text.
pub fn names(file: &ast::File, expr: ExprId) -> Vec<(&str, Span)> {
    let mut names = Vec::new();
    let mut open = vec![expr];
    while let Some(expr) = open.pop() {
        if let Expr::Name(name) = &file.exprs[expr] {
            names.push((name.as_str(), file.exprs.span(expr)));
        }
        open.extend(operands(file, expr).into_iter().rev());
    }
    names
}

/// What tells why a truth is false: both sides of the comparisons that it is made of, and every name, at its offset.
pub fn worth_a_look(lowering: &Lowering, truth: ExprId) -> Vec<ExprId> {
    let file = lowering.file;
    let mut parts = Vec::new();
    let mut open = vec![(truth, true)];
    while let Some((expr, is_truth)) = open.pop() {
        if parts.len() == PARTS {
            break;
        }
        match &file.exprs[expr] {
            Expr::Infix(Infix::Compare(_), left, right) if is_truth => {
                for side in [*left, *right] {
                    if !is_literal(file, side) && !is_named(lowering, side) {
                        parts.push(side);
                    }
                }
                open.extend([(*right, false), (*left, false)]);
            }
            Expr::Infix(Infix::And | Infix::Or, left, right) if is_truth => {
                open.extend([(*right, true), (*left, true)]);
            }
            Expr::Group(inner) | Expr::Prefix(ast::Prefix::Not, inner) if is_truth => open.push((*inner, true)),
            _ if is_named(lowering, expr) => parts.push(expr),
            _ => open.extend(operands(file, expr).into_iter().rev().map(|operand| (operand, false))),
        }
    }
    parts.truncate(PARTS);
    parts
}

fn is_literal(file: &ast::File, mut expr: ExprId) -> bool {
    while let Expr::Prefix(_, inner) | Expr::Group(inner) = &file.exprs[expr] {
        expr = *inner;
    }
    matches!(file.exprs[expr], Expr::Real(_) | Expr::Int(_) | Expr::Truth(_))
}

/// Whether it is a name of the test, perhaps at an offset. Coordinates are told with the cell.
fn is_named(lowering: &Lowering, mut expr: ExprId) -> bool {
    while let Expr::Index(base, _) | Expr::Component(base, _) = &lowering.file.exprs[expr] {
        expr = *base;
    }
    let Expr::Name(name) = &lowering.file.exprs[expr] else { return false };
    let symbol = lowering.scope.find(name).filter(|_| !TAKEN.contains(&name.as_str()));
    symbol.is_some_and(|symbol| matches!(symbol.binding, Binding::Field(_) | Binding::Value(_)))
}
