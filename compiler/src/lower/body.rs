//! Bodies: the formulas under construction, and the definitions that they become.

use super::rounding::{self, Rounding, Writing};
use super::value::{Alias, Bound, Nodes, Value};
use super::{Found, Lowering};
use crate::ast::{Expr, ExprId};
use crate::diagnostic::Diagnostic;
use crate::ir::{Body, Def, DefId, Handle, Kind, Node, NodeId, Origin, Path, Precision, Stored, scalar, varies_across};
use crate::source::Span;

/// The most operations of one expression; what the C++ compilers can digest.
const BODY_NODES: usize = 20_000;
/// The most operations of one stencil, with its functions and sums written out.
pub(super) const STENCIL_NODES: usize = 1_000_000;
/// The longest chain of definitions that use each other.
const CHAIN: u32 = 1_000;

/// How much was written so far.
#[derive(Clone, Default)]
pub(super) struct Size {
    /// Operations.
    pub nodes: usize,
    /// Whether it was told that there are too many.
    pub is_exceeded: bool,
    /// How many expressions are nested around the one at hand, those that name the functions and constants at hand included.
    pub nested: usize,
    /// How long the chain of definitions below each definition is.
    chains: Vec<u32>,
    /// Whether each definition differs from column to column, or from element to element.
    varying: Vec<bool>,
    /// How each definition is rounded.
    roundings: Vec<Rounding>,
}

impl Size {
    /// Whether a definition differs from column to column, or from element to element.
    pub fn varies(&self, def: DefId) -> bool {
        self.varying[def.index()]
    }

    /// How a definition is rounded.
    pub fn rounding(&self, def: DefId) -> Rounding {
        self.roundings[def.index()]
    }
}

/// The whole number or truth value that a node is.
fn literal(node: &Node) -> Option<scalar::Value> {
    match node {
        Node::Int(x) => Some(scalar::Value::Int(*x)),
        Node::Bool(x) => Some(scalar::Value::Bool(*x)),
        _ => None,
    }
}

impl Lowering<'_> {
    /// A body of its own for each part of what is written.
    pub(super) fn bodies(&mut self, write: impl FnOnce(&mut Self) -> Found<Nodes>) -> Found<Value<Body>> {
        Some(self.writings(write)?.map(|(body, _)| body))
    }

    /// The same, and how wide the value of each is.
    fn writings(&mut self, write: impl FnOnce(&mut Self) -> Found<Nodes>) -> Found<Value<(Body, Rounding)>> {
        self.bodies.push(Writing::default());
        let value = write(self);
        let Writing { body, roundings } = self.bodies.pop().unwrap_or_default();
        Some(value?.map(|node| (body.rooted(node), roundings[node.index()])))
    }

    /// A body of its own for what is written.
    pub(super) fn body(&mut self, write: impl FnOnce(&mut Self) -> Found<NodeId>) -> Found<Body> {
        match self.bodies(|own| write(own).map(Value::One))? {
            Value::One(body) => Some(body),
            Value::Many(_) => None,
        }
    }

    /// A body for a single value, which becomes one of `kind`.
    pub(super) fn body_as(&mut self, expr: ExprId, kind: Kind, what: &str) -> Found<Body> {
        let span = self.span(expr);
        self.body(|own| own.scalar(expr).and_then(|node| own.convert(node, kind, span, what)))
    }

    /// Whether nothing that follows could be told, or become part of the body being written.
    pub(super) fn is_lost(&self) -> bool {
        let is_full =
            || self.bodies.last().is_some_and(|own| own.body.len() >= BODY_NODES) || self.size.nodes > STENCIL_NODES;
        self.is_given_up() || self.size.is_exceeded && is_full()
    }

    /// Writes a body, and makes it a definition unless it is a mere name or number.
    pub(super) fn bind(&mut self, expr: ExprId, name: &str, origin: Origin) -> Found<Bound> {
        // On a mesh, a field that lives elsewhere may be passed on by its name.
        if self.is_over_mesh()
            && let Expr::Name(text) = &self.file.exprs[expr]
            && self.scope.find(text).is_some()
            && text != "k"
        {
            return self.resolve(text, self.span(expr));
        }
        self.bind_with(name, origin, |own| own.value(expr))
    }

    /// Makes what is written a definition unless it is a mere name or number.
    pub(super) fn bind_with(
        &mut self,
        name: &str,
        origin: Origin,
        write: impl FnOnce(&mut Self) -> Found<Nodes>,
    ) -> Found<Bound> {
        self.writings(write)?.map(|(body, rounding)| self.bind_body(body, rounding, name, origin)).collected()
    }

    /// The same of a value of a type, if one is said.
    pub(super) fn bind_as(
        &mut self,
        stored: Option<Stored>,
        name: &str,
        span: Span,
        origin: Origin,
        write: impl FnOnce(&mut Self) -> Found<Nodes>,
    ) -> Found<Bound> {
        let Some(stored) = stored else { return self.bind_with(name, origin, write) };
        let typed = self.writings(|own| {
            let value = write(own)?;
            value.map(|node| own.as_type(node, stored, span, name)).collected()
        })?;
        let bind = |(body, rounding): (Body, Rounding)| match (stored, rounding) {
            // It is what it was, and what is made of it is not rounded again.
            (Stored::Real, Rounding::Any | Rounding::Single) => {
                let def = self.add_def(body, Rounding::Real, name, origin)?;
                Some(Alias::Def(def, Path::default()))
            }
            _ => self.bind_body(body, rounding, name, origin),
        };
        typed.map(bind).collected()
    }

    fn bind_body(&mut self, body: Body, rounding: Rounding, name: &str, origin: Origin) -> Found<Alias> {
        if let (1, Some((_, node))) = (body.len(), body.iter().next()) {
            match node {
                Node::Int(x) => return Some(Alias::Int(*x)),
                Node::Param(param) => return Some(Alias::Param(*param)),
                Node::Read { field, path, part, .. } if !self.is_carried(*field) => {
                    return Some(Alias::Field(*field, path.clone(), *part));
                }
                Node::Use { def, path } => {
                    let used = &mut self.stencil.defs[*def];
                    if used.origin == Origin::Result && path.is_here() {
                        // A result that is named at once bears the name that the user gave it.
                        if origin == Origin::Let {
                            used.name = name.to_owned();
                        }
                        used.origin = origin;
                    }
                    return Some(Alias::Def(*def, path.clone()));
                }
                _ => {}
            }
        }
        Some(Alias::Def(self.add_def(body, rounding, name, origin)?, Path::default()))
    }

    pub(super) fn add_def(&mut self, body: Body, rounding: Rounding, name: &str, origin: Origin) -> Found<DefId> {
        let place = body.span_of(body.root());
        let origin = if self.constants.depth == 0 {
            origin
        } else {
            self.check_constant(&body, place)?;
            Origin::Constant
        };
        let below = body.uses().map(|(def, _)| self.size.chains[def.index()] + 1);
        let chain = below.max().unwrap_or(0);
        if chain > CHAIN {
            let message = format!("a chain of more than {CHAIN} names, each made of the one before");
            return self.report(Diagnostic::error(place, message));
        }
        self.size.chains.push(chain);
        let varies = body.any(&self.size.varying, |node| varies_across(&self.stencil, node));
        self.size.varying.push(varies);
        self.size.roundings.push(rounding);
        self.tie(&body);
        self.constants.known.add(&body, origin);
        let over = self.other_set().filter(|_| origin != Origin::Constant);
        Some(self.stencil.defs.add(Def { name: name.to_owned(), origin, over, body }))
    }

    /// Adds a node to the body being written: where numbers of single precision meet, and what it gives has to be rounded, that too.
    pub(super) fn node(&mut self, node: Node, kind: Kind, span: Span) -> Found<NodeId> {
        if let Node::ToSingle(of) = &node
            && self.rounding(*of) == Rounding::Single
        {
            return Some(*of);
        }
        if kind == Kind::Int {
            return self.append(node, kind, span, Rounding::Real);
        }
        let (node, rounding) = self.narrowed(node, span)?;
        let is_rounded =
            rounding == Rounding::Single && !matches!(node, Node::Read { .. } | Node::Use { .. } | Node::ToSingle(_));
        let is_exact = !is_rounded || rounding::is_exact(&node);
        let exact = self.append(node, kind, span, rounding)?;
        if is_exact { Some(exact) } else { self.append(Node::ToSingle(exact), kind, span, Rounding::Single) }
    }

    /// Adds a node to the body being written, as it is.
    pub(super) fn append(&mut self, node: Node, kind: Kind, span: Span, rounding: Rounding) -> Found<NodeId> {
        self.size.nodes += 1;
        let Writing { body, roundings } = self.bodies.last_mut()?;
        // Whole constants are computed at once, since they may be offsets; they are the same in every precision.
        let operands: Option<Vec<_>> = node.operands().iter().map(|&operand| literal(&body[operand])).collect();
        let node = match operands.and_then(|operands| scalar::apply(Precision::F64, &node, &operands)) {
            Some(scalar::Value::Int(x)) => Node::Int(x),
            Some(scalar::Value::Bool(x)) => Node::Bool(x),
            Some(scalar::Value::Real(_)) | None => node,
        };
        if body.len() < BODY_NODES && self.size.nodes <= STENCIL_NODES {
            roundings.push(rounding);
            return Some(body.add(node, kind, span));
        }
        let limit = if body.len() >= BODY_NODES { BODY_NODES } else { STENCIL_NODES };
        self.too_many(limit, span)
    }

    /// Reports that what is written out comes to too much. Told once; every later node fails silently.
    pub(super) fn too_many<T>(&mut self, limit: usize, span: Span) -> Found<T> {
        if std::mem::replace(&mut self.size.is_exceeded, true) {
            self.reports.depend_on_numbers = true;
            return None;
        }
        let found = Diagnostic::error(span, format!("this comes to more than {limit} operations when written out"));
        self.report_number(found.help("name parts of it with `let`, or make the sums smaller"))
    }
}
