//! How real numbers are computed: as `--precision` says, or, where a type says so, in single precision.
//!
//! A number of single precision is one that was rounded to it. What is made of such numbers, and of numbers that are written, is computed
//! and rounded again: that is what single precision would give of `+ - * /` and of a square root, since double precision has more than
//! twice as many bits, so that rounding twice is rounding once.

use super::value::Nodes;
use super::{Found, Lowering};
use crate::ast;
use crate::diagnostic::{Diagnostic, wrong};
use crate::ir::scalar::Value;
use crate::ir::{Body, Function, Handle, Kind, Node, NodeId, Origin, Stored};
use crate::source::Span;

/// How a real number is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Rounding {
    /// It is written, and takes the rounding of what it meets.
    Any,
    /// In single precision.
    Single,
    /// As `--precision` says.
    #[default]
    Real,
}

/// A body that is being written.
#[derive(Clone, Default)]
pub(super) struct Writing {
    /// The nodes so far.
    pub body: Body,
    /// The rounding of each; of what is no real number, it says nothing.
    pub roundings: Vec<Rounding>,
}

impl Lowering<'_> {
    /// The rounding of a node of the body being written.
    pub(super) fn rounding(&self, node: NodeId) -> Rounding {
        self.bodies.last().map_or(Rounding::Real, |own| own.roundings[node.index()])
    }

    /// What a node computes with, as it has to be where numbers of single precision meet; and what its value is then.
    pub(super) fn narrowed(&mut self, node: Node, span: Span) -> Found<(Node, Rounding)> {
        let rounding = match &node {
            Node::Real(_) | Node::ToReal(_) => Rounding::Any,
            Node::ToSingle(_) => Rounding::Single,
            Node::Read { field, .. } if self.stencil.fields[*field].is_single => Rounding::Single,
            Node::Read { field, .. } if self.is_unsure(*field) => Rounding::Any,
            Node::Use { def, .. } => self.size.rounding(*def),
            Node::Negate(_) | Node::Binary(..) | Node::Compare(..) | Node::Call(..) | Node::Choose { .. } => {
                return self.met(node, span);
            }
            _ => Rounding::Real,
        };
        Some((node, rounding))
    }

    /// An operation, by the roundings of its operands.
    fn met(&mut self, node: Node, span: Span) -> Found<(Node, Rounding)> {
        let operands = node.operands();
        let reals = operands.into_iter().filter(|&operand| self.kind(operand) == Some(Kind::Real));
        let roundings: Vec<(NodeId, Rounding)> = reals.map(|operand| (operand, self.rounding(operand))).collect();
        if roundings.iter().any(|own| own.1 == Rounding::Real) || roundings.is_empty() {
            return Some((node, Rounding::Real));
        }
        if roundings.iter().all(|own| own.1 == Rounding::Any) {
            return Some((node, Rounding::Any));
        }
        let mut rounded = Vec::new();
        for (operand, _) in roundings.iter().filter(|own| own.1 == Rounding::Any) {
            rounded.push((*operand, self.append(Node::ToSingle(*operand), Kind::Real, span, Rounding::Single)?));
        }
        let renamed = |operand: NodeId| rounded.iter().find(|own| own.0 == operand).map_or(operand, |own| own.1);
        Some((node.map_operands(renamed), Rounding::Single))
    }

    /// `f32(a)`: a number as one of a type.
    pub(super) fn conversion(
        &mut self,
        stored: Stored,
        name: &ast::Name,
        arguments: &[ast::Argument],
        span: Span,
    ) -> Found<Nodes> {
        let [argument] = arguments else {
            let found = wrong(span, format!("`{}` converts one number", name.text), "called here");
            return self.report(found.label(format!("as in `{}(a)`", name.text)));
        };
        self.check_computed(stored, name.span)?;
        let at = self.span(argument.value);
        let bound = self.bind_as(Some(stored), &name.text, at, Origin::Base, |own| own.value(argument.value))?;
        self.place_value(bound, span)
    }

    /// Whether one can compute with numbers of a type.
    pub(super) fn check_computed(&mut self, stored: Stored, span: Span) -> Found<()> {
        if stored != Stored::F64 {
            return Some(());
        }
        let given = !self.file.given_types.is_empty();
        let label = if given { "give `real` by --type" } else { "write `real`" };
        let found = Diagnostic::error(span, "one computes in `real` or in `f32`").label(label);
        self.report(found.help(
            "`real` is double precision unless `--precision f32` makes it single; `f64` says how a field is stored",
        ))
    }

    /// Reports a constant that single precision cannot hold.
    pub(super) fn check_single(&mut self, body: &Body, name: &str) -> Found<()> {
        let Some(Value::Real(number)) = self.constants.folded.value(&self.stencil, body) else { return Some(()) };
        let single = number as f32;
        if !number.is_finite() || single.is_finite() && (single != 0.0 || number == 0.0) {
            return Some(());
        }
        let what = if single.is_finite() { "small" } else { "large" };
        let message = format!("this is too {what} for `{name}`, which is of single precision");
        let bounds = "numbers of single precision are between about 1e-45 and 3.4e38";
        self.report(
            wrong(
                body.span_of(body.root()),
                message,
                if single.is_finite() { "becomes 0" } else { "becomes infinite" },
            )
            .help(bounds),
        )
    }

    /// A number as one of a type.
    pub(super) fn as_type(&mut self, node: NodeId, stored: Stored, span: Span, what: &str) -> Found<NodeId> {
        let node = self.convert(node, stored.kind(), span, what)?;
        if stored == Stored::F32 { self.node(Node::ToSingle(node), Kind::Real, span) } else { Some(node) }
    }
}

/// Whether an operation of numbers of single precision gives one, without being rounded.
pub(super) fn is_exact(node: &Node) -> bool {
    match node {
        Node::Negate(_) | Node::Choose { .. } | Node::Compare(..) => true,
        Node::Call(function, _) => matches!(
            function,
            Function::Min
                | Function::Max
                | Function::Abs
                | Function::Floor
                | Function::Ceil
                | Function::Sign
                | Function::CopySign
        ),
        _ => false,
    }
}
