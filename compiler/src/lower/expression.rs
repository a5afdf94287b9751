//! Expressions into the body being written.

use super::scope::{Binding, Global};
use super::value::{Alias, Bound, Nodes, Value, meet};
use super::{Body, Found, Lowering};
use crate::ast::{self, Expr, ExprId, Infix, Prefix};
use crate::diagnostic::Diagnostic;
use crate::ir::scalar::int_binary;
use crate::ir::{Binary, Kind, Node, NodeId, Origin, Path, Relation};
use crate::source::Span;

impl<'a> Lowering<'a> {
    /// A single number or truth value.
    pub(super) fn scalar(&mut self, expr: ExprId) -> Found<NodeId> {
        let span = self.file.exprs.span(expr);
        match self.value(expr)? {
            Value::One(node) => Some(node),
            Value::Many(parts) => self.report(
                Diagnostic::error(span, "a single value is needed here")
                    .label(format!("this has {} parts", parts.len()))
                    .help("take a part of it, as in `v[0]`"),
            ),
        }
    }

    /// A value, perhaps with parts. A chain of operators from left to right is walked in a loop.
    pub(super) fn value(&mut self, expr: ExprId) -> Found<Nodes> {
        let file = self.file;
        let mut spine = Vec::new();
        let mut first = expr;
        while let Expr::Infix(op, left, right) = &file.exprs[first] {
            spine.push((*op, *right, file.exprs.span(first)));
            first = *left;
        }
        let is_base = spine.last().is_some_and(|(op, ..)| *op == Infix::Power);
        let mut value = if is_base { None } else { self.operand(first) };
        let mut left_span = file.exprs.span(first);
        for (op, right, whole) in spine.into_iter().rev() {
            // Both sides are looked at even if one is wrong, so that both are reported.
            value = match op {
                // The base is used several times, so a larger one gets a name. (`**` groups from the right: a base is
                // always the first operand of its chain.)
                Infix::Power => {
                    let base = self.base(first).and_then(|bound| self.place_value(bound, left_span));
                    base.and_then(|base| self.power(base, left_span, right, whole))
                }
                _ => {
                    let right_value = self.value(right);
                    let spans = (left_span, file.exprs.span(right), whole);
                    value.zip(right_value).and_then(|(a, b)| self.infix(op, a, b, spans))
                }
            };
            left_span = whole;
        }
        value
    }

    fn operand(&mut self, expr: ExprId) -> Found<Nodes> {
        let span = self.file.exprs.span(expr);
        let file = self.file;
        match &file.exprs[expr] {
            Expr::Real(x) => self.one(Node::Real(*x), Kind::Real, span),
            Expr::Int(Some(x)) => self.one(Node::Int(*x), Kind::Int, span),
            Expr::Int(None) => self.report(
                Diagnostic::error(span, "this whole number does not fit 32 bits")
                    .label("at most 2147483647")
                    .help("write it as a real number, with a point: `3000000000.0`"),
            ),
            Expr::Truth(x) => self.one(Node::Bool(*x), Kind::Bool, span),
            Expr::Name(name) => self.name(name, span),
            Expr::Prefix(op, inner) => self.prefix(*op, *inner, span),
            // A chain: walked by `value`.
            Expr::Infix(..) => self.value(expr),
            Expr::Group(inner) => self.value(*inner),
            Expr::Block(block) => self.block(block),
            Expr::Index(base, parts) => self.index(*base, parts, span),
            Expr::Component(base, part) => self.component(*base, part, span),
            Expr::Call(function, arguments) => self.call(function, arguments, span),
            Expr::Choose(arms, otherwise) => self.choose(arms, otherwise, span),
            Expr::Fold(op, binders, block) => self.fold(op, binders, block, span),
            Expr::Vector(parts) => {
                let parts: Vec<Found<NodeId>> = parts.iter().map(|&part| self.scalar(part)).collect();
                parts.into_iter().collect::<Option<Vec<_>>>().map(Value::Many)
            }
        }
    }

    fn one(&mut self, node: Node, kind: Kind, span: Span) -> Found<Nodes> {
        self.node(node, kind, span).map(Value::One)
    }

    /// A name as a value in this body.
    fn name(&mut self, name: &str, span: Span) -> Found<Nodes> {
        match name {
            "k" => return self.one(Node::Level, Kind::Int, span),
            "nk" => return self.one(Node::LevelCount, Kind::Int, span),
            "pi" => return self.one(Node::Real(std::f64::consts::PI), Kind::Real, span),
            "i" | "j" | "ni" | "nj" => {
                return self.report(
                    Diagnostic::error(span, format!("a stencil knows no `{name}`"))
                        .label(if name.len() == 1 {
                            "stands only in offsets, as in `a[i-1]`"
                        } else {
                            "not known to a stencil"
                        })
                        .help("on an unstructured grid there are no coordinates; pass them as a field `on (i, j)`"),
                );
            }
            _ => {}
        }
        let bound = self.resolve(name, span)?;
        self.place_value(bound, span)
    }

    /// What a name stands for, if it is a value.
    pub(super) fn resolve(&mut self, name: &str, span: Span) -> Found<Bound> {
        let one = |alias| Some(Value::One(alias));
        if let Some(symbol) = self.scope.use_name(name) {
            return match symbol.binding {
                Binding::Field(field) if !self.stencil.fields[field].role.is_read() => {
                    let declared = self.stencil.fields[field].span;
                    self.report(
                        Diagnostic::error(span, format!("`{name}` is an output: it cannot be read"))
                            .label("read here")
                            .note(declared, "declared as `out` here")
                            .help("name the value with `let`, use that, and assign it to the output"),
                    )
                }
                Binding::Field(field) => one(Alias::Field(field, Path::default())),
                Binding::Param(param) => one(Alias::Param(param)),
                Binding::Constant(constant) => {
                    let position = self.scope.position(name);
                    self.constant_in(constant, position)
                }
                Binding::Function(_) => self.not_called(name, span),
                Binding::Value(bound) => Some(bound),
                Binding::Broken => None,
            };
        }
        match self.globals.find(name) {
            Some(Global::Param(params, index)) => {
                self.scope.use_global(name);
                let param = self.add_param(params, index)?;
                one(Alias::Param(param))
            }
            Some(Global::Constant(constant)) => {
                self.scope.use_global(name);
                self.constant_in(constant, 0)
            }
            Some(Global::Function(_)) => self.not_called(name, span),
            Some(Global::Stencil) => self.report(
                Diagnostic::error(span, format!("`{name}` is a stencil, no value"))
                    .label("stencils are called by programs")
                    .help("share a formula between stencils as a `fn`"),
            ),
            None => self.unknown(name, span, "name"),
        }
    }

    fn not_called<T>(&mut self, name: &str, span: Span) -> Found<T> {
        self.report(Diagnostic::error(span, format!("`{name}` is a function")).label(format!("call it: `{name}(...)`")))
    }

    /// A constant, which sees the names of the file and those of the stencil before it.
    fn constant_in(&mut self, constant: &'a ast::Constant, horizon: usize) -> Found<Bound> {
        if let Some(known) = self.constant_values.get(&constant.name.span) {
            return known.clone();
        }
        let frame = self.scope.enter(horizon);
        let value = self.constant(constant);
        self.scope.leave(frame);
        self.constant_values.insert(constant.name.span, value.clone());
        value
    }

    /// A bound value in this body.
    pub(super) fn place_value(&mut self, bound: Bound, span: Span) -> Found<Nodes> {
        bound
            .map(|alias| {
                let (node, kind) = match alias {
                    Alias::Field(field, path) => (Node::Read { field, path }, self.stencil.fields[field].stored.kind()),
                    Alias::Def(def, path) => (Node::Use { def, path }, self.stencil.defs[def].body.kind()),
                    Alias::Param(param) => (Node::Param(param), self.stencil.params[param].kind),
                    Alias::Int(x) => (Node::Int(x), Kind::Int),
                };
                self.node(node, kind, span)
            })
            .collected()
    }

    fn prefix(&mut self, op: Prefix, inner: ExprId, span: Span) -> Found<Nodes> {
        let at = self.file.exprs.span(inner);
        let value = self.value(inner)?;
        value
            .map(|node| {
                let kind = self.kind(node)?;
                match (op, kind) {
                    (Prefix::Not, Kind::Bool) => self.node(Node::Not(node), Kind::Bool, span),
                    (Prefix::Not, _) => self.report(
                        Diagnostic::error(at, format!("`!` takes a truth value, this is {}", article(kind)))
                            .label(kind.name()),
                    ),
                    (Prefix::Negate, Kind::Bool) => self.report(
                        Diagnostic::error(at, "`-` takes a number, this is a truth value")
                            .label("bool")
                            .help("`!` turns a truth value round"),
                    ),
                    (Prefix::Negate, Kind::Int) => match self.whole(node) {
                        Some(x) => match x.checked_neg() {
                            Some(x) => self.node(Node::Int(x), Kind::Int, span),
                            None => self.overflow(span),
                        },
                        None => self.node(Node::Negate(node), Kind::Int, span),
                    },
                    (Prefix::Negate, Kind::Real) => self.node(Node::Negate(node), Kind::Real, span),
                }
            })
            .collected()
    }

    fn infix(&mut self, op: Infix, a: Nodes, b: Nodes, spans: (Span, Span, Span)) -> Found<Nodes> {
        match (a, b) {
            (Value::One(a), Value::One(b)) => self.infix_one(op, a, b, spans).map(Value::One),
            (Value::One(a), Value::Many(b)) => {
                b.into_iter().map(|b| self.infix_one(op, a, b, spans)).collect::<Option<_>>().map(Value::Many)
            }
            (Value::Many(a), Value::One(b)) => {
                a.into_iter().map(|a| self.infix_one(op, a, b, spans)).collect::<Option<_>>().map(Value::Many)
            }
            (Value::Many(a), Value::Many(b)) if a.len() == b.len() => {
                let parts = a.into_iter().zip(b).map(|(a, b)| self.infix_one(op, a, b, spans));
                parts.collect::<Option<_>>().map(Value::Many)
            }
            (Value::Many(a), Value::Many(b)) => self.report(
                Diagnostic::error(spans.2, format!("{} parts meet {} parts", a.len(), b.len()))
                    .note(spans.0, format!("{} parts", a.len()))
                    .note(spans.1, format!("{} parts", b.len())),
            ),
        }
    }

    fn infix_one(&mut self, op: Infix, a: NodeId, b: NodeId, spans: (Span, Span, Span)) -> Found<NodeId> {
        match op {
            Infix::And => self.logic(Node::And(a, b), "&&", a, b, spans),
            Infix::Or => self.logic(Node::Or(a, b), "||", a, b, spans),
            Infix::Compare(relation) => self.compare(relation, a, b, spans),
            Infix::Arithmetic(op) => self.arithmetic(op, a, b, spans),
            // Powers look at the exponent as it is written, and never come here.
            Infix::Power => None,
        }
    }

    fn logic(&mut self, node: Node, symbol: &str, a: NodeId, b: NodeId, spans: (Span, Span, Span)) -> Found<NodeId> {
        for (side, place) in [(a, spans.0), (b, spans.1)] {
            let kind = self.kind(side)?;
            if kind != Kind::Bool {
                return self.report(
                    Diagnostic::error(place, format!("`{symbol}` takes truth values, this is {}", article(kind)))
                        .label(kind.name())
                        .help("compare it with something, as in `a > 0`"),
                );
            }
        }
        self.node(node, Kind::Bool, spans.2)
    }

    fn compare(&mut self, relation: Relation, a: NodeId, b: NodeId, spans: (Span, Span, Span)) -> Found<NodeId> {
        let (a_kind, b_kind) = (self.kind(a)?, self.kind(b)?);
        let ordered = !matches!(relation, Relation::Eq | Relation::Ne);
        match meet(a_kind, b_kind) {
            Some(kind) if !(ordered && kind == Kind::Bool) => {
                let (a, b) = (self.widen(a, kind, spans.0)?, self.widen(b, kind, spans.1)?);
                self.node(Node::Compare(relation, a, b), Kind::Bool, spans.2)
            }
            _ => self.do_not_meet(relation.symbol(), (a_kind, b_kind), spans),
        }
    }

    fn do_not_meet<T>(&mut self, symbol: &str, kinds: (Kind, Kind), spans: (Span, Span, Span)) -> Found<T> {
        self.report(
            Diagnostic::error(spans.2, format!("`{symbol}` takes two numbers"))
                .note(spans.0, article(kinds.0))
                .note(spans.1, article(kinds.1)),
        )
    }

    /// `+ - * / %`
    pub(super) fn arithmetic(&mut self, op: Binary, a: NodeId, b: NodeId, spans: (Span, Span, Span)) -> Found<NodeId> {
        let (a_kind, b_kind) = (self.kind(a)?, self.kind(b)?);
        let kind = match meet(a_kind, b_kind) {
            Some(Kind::Bool) | None => return self.do_not_meet(op.symbol(), (a_kind, b_kind), spans),
            Some(_) if op == Binary::Div => Kind::Real,
            Some(kind) => kind,
        };
        if kind == Kind::Int {
            return self.whole_arithmetic(op, a, b, spans);
        }
        let (a, b) = (self.widen(a, kind, spans.0)?, self.widen(b, kind, spans.1)?);
        self.node(Node::Binary(op, a, b), kind, spans.2)
    }

    /// Whole numbers: constants are computed at once, since they may be offsets.
    fn whole_arithmetic(&mut self, op: Binary, a: NodeId, b: NodeId, spans: (Span, Span, Span)) -> Found<NodeId> {
        let (x, y) = (self.whole(a), self.whole(b));
        if op == Binary::Rem {
            let is_param = matches!(self.written(b), Some(Node::Param(_)));
            if y == Some(0) {
                return self.report(Diagnostic::error(spans.1, "a remainder of a division by 0").label("0"));
            }
            if y.is_none() && !is_param {
                return self.report(
                    Diagnostic::error(spans.1, "the divisor of a whole `%` is a number, a constant or a parameter")
                        .label("none of these, and might be 0")
                        .help("make one side real to get a real remainder: `1.0 * n % m`"),
                );
            }
        }
        if let (Some(x), Some(y)) = (x, y) {
            let exact = match op {
                Binary::Add => x.checked_add(y),
                Binary::Sub => x.checked_sub(y),
                Binary::Mul => x.checked_mul(y),
                Binary::Div | Binary::Rem => Some(int_binary(op, x, y)),
            };
            return match exact {
                Some(x) => self.node(Node::Int(x), Kind::Int, spans.2),
                None => self.overflow(spans.2),
            };
        }
        self.node(Node::Binary(op, a, b), Kind::Int, spans.2)
    }

    fn overflow<T>(&mut self, span: Span) -> Found<T> {
        self.report(
            Diagnostic::error(span, "this whole number does not fit 32 bits")
                .label("overflows")
                .help("write one side as a real number, with a point"),
        )
    }

    /// `a ** n`: with a whole constant the product from the left.
    fn power(&mut self, base: Nodes, base_span: Span, exponent: ExprId, span: Span) -> Found<Nodes> {
        let at = self.file.exprs.span(exponent);
        let exponent = self.scalar(exponent)?;
        let Some(n) = self.whole(exponent) else {
            return self.report(
                Diagnostic::error(at, "a power needs a whole constant exponent in this version")
                    .label("not known when compiling, or not whole")
                    .help("`sqrt(x)` is the square root; `pow` comes with a later version"),
            );
        };
        if n.unsigned_abs() > 1024 {
            return self.report(
                Diagnostic::error(at, "this exponent is too large")
                    .label("at most 1024: a power is written out as a product"),
            );
        }
        base.map(|base| self.power_one(base, n, base_span, span)).collected()
    }

    fn power_one(&mut self, base: NodeId, n: i32, base_span: Span, span: Span) -> Found<NodeId> {
        let kind = self.kind(base)?;
        if kind == Kind::Bool {
            return self
                .report(Diagnostic::error(base_span, "`**` takes a number, this is a truth value").label("bool"));
        }
        let spans = (base_span, base_span, span);
        let mut product = None;
        for _ in 0..n.unsigned_abs() {
            product = Some(match product {
                None => base,
                Some(product) => self.arithmetic(Binary::Mul, product, base, spans)?,
            });
        }
        let Some(product) = product else {
            let one = if kind == Kind::Int { Node::Int(1) } else { Node::Real(1.0) };
            return self.node(one, kind, span);
        };
        if n > 0 {
            return Some(product);
        }
        let one = self.node(Node::Real(1.0), Kind::Real, span)?;
        self.arithmetic(Binary::Div, one, product, spans)
    }

    fn choose(&mut self, arms: &'a [(ExprId, ast::Block)], otherwise: &'a ast::Block, span: Span) -> Found<Nodes> {
        let mut parts = Vec::new();
        let mut fine = true;
        for (condition, block) in arms {
            let at = self.file.exprs.span(*condition);
            let truth = self.scalar(*condition).and_then(|node| {
                let kind = self.kind(node)?;
                if kind == Kind::Bool {
                    return Some(node);
                }
                self.report(
                    Diagnostic::error(at, format!("a condition is needed, this is {}", article(kind)))
                        .label(kind.name())
                        .help("compare it with something, as in `a > 0`"),
                )
            });
            let value = self.block(block);
            match truth.zip(value) {
                Some((truth, value)) => parts.push((truth, value, self.file.exprs.span(block.value))),
                None => fine = false,
            }
        }
        let mut value = self.block(otherwise)?;
        if !fine {
            return None;
        }
        let last = self.file.exprs.span(otherwise.value);
        for (condition, yes, at) in parts.into_iter().rev() {
            value = match (yes, value) {
                (Value::One(yes), Value::One(no)) => {
                    Value::One(self.choose_one(condition, yes, no, (at, last, span))?)
                }
                (Value::Many(yes), Value::Many(no)) if yes.len() == no.len() => {
                    let spans = (at, last, span);
                    let parts = yes.into_iter().zip(no).map(|(yes, no)| self.choose_one(condition, yes, no, spans));
                    Value::Many(parts.collect::<Option<_>>()?)
                }
                _ => {
                    return self.report(
                        Diagnostic::error(span, "the branches have different numbers of parts")
                            .note(at, "this one")
                            .note(last, "and this one"),
                    );
                }
            };
        }
        Some(value)
    }

    fn choose_one(&mut self, condition: NodeId, yes: NodeId, no: NodeId, spans: (Span, Span, Span)) -> Found<NodeId> {
        let (yes_kind, no_kind) = (self.kind(yes)?, self.kind(no)?);
        let Some(kind) = meet(yes_kind, no_kind) else {
            return self.report(
                Diagnostic::error(spans.2, "the branches of this `if` do not fit together")
                    .note(spans.0, article(yes_kind))
                    .note(spans.1, article(no_kind)),
            );
        };
        let (yes, no) = (self.widen(yes, kind, spans.0)?, self.widen(no, kind, spans.1)?);
        self.node(Node::Choose { condition, yes, no }, kind, spans.2)
    }

    /// A block in this body: its lets are definitions, its value stands here.
    pub(super) fn block(&mut self, block: &'a ast::Block) -> Found<Nodes> {
        let mark = self.scope.mark();
        for binding in &block.lets {
            self.define_let(binding);
        }
        let value = self.value(block.value);
        self.warn_unused_since(mark);
        self.scope.forget(mark);
        value
    }

    /// A sum (or `min`, `max`) written out: its terms from left to right.
    fn fold(
        &mut self,
        op: &'a ast::Name,
        binders: &'a [ast::Binder],
        block: &'a ast::Block,
        span: Span,
    ) -> Found<Nodes> {
        let mut ranges = Vec::new();
        let mut terms = 1u64;
        for binder in binders {
            let (low, high) = match &binder.range {
                ast::Range::Numbers(low, high) => (self.whole_constant(*low)?, self.whole_constant(*high)?),
                ast::Range::Map(at) => {
                    return self.report(
                        Diagnostic::error(
                            *at,
                            "sums over maps belong to meshes, which are not available in this version",
                        )
                        .label("a range such as `1..=3` is needed"),
                    );
                }
            };
            if low > high {
                return self.report(
                    Diagnostic::error(binder.name.span, format!("the range {low}..={high} is empty"))
                        .label("has no term")
                        .help("both ends are included, the smaller comes first"),
                );
            }
            terms = terms.saturating_mul((i64::from(high) - i64::from(low) + 1).unsigned_abs());
            ranges.push((low, high));
        }
        if terms > 10_000 {
            return self.report(
                Diagnostic::error(span, format!("this sum has {terms} terms")).label("at most 10000 are written out"),
            );
        }
        let mut counters: Vec<i32> = ranges.iter().map(|(low, _)| *low).collect();
        let mut total: Option<Nodes> = None;
        for term in 0..terms {
            let mark = self.scope.mark();
            for (binder, &counter) in binders.iter().zip(&counters) {
                self.define(&binder.name, Binding::Value(Value::One(Alias::Int(counter))));
            }
            let value = self.block(block);
            if term == 0 {
                self.warn_unused_since(mark);
            }
            self.scope.forget(mark);
            let value = value?;
            total = Some(match total {
                None => value,
                Some(total) => self.join(&op.text, total, value, span)?,
            });
            for (counter, (low, high)) in counters.iter_mut().zip(&ranges).rev() {
                if *counter < *high {
                    *counter += 1;
                    break;
                }
                *counter = *low;
            }
        }
        total
    }

    fn join(&mut self, op: &str, total: Nodes, value: Nodes, span: Span) -> Found<Nodes> {
        if op == "sum" {
            return self.infix(Infix::Arithmetic(Binary::Add), total, value, (span, span, span));
        }
        match (total, value) {
            (Value::One(a), Value::One(b)) => self.extreme(op, a, b, (span, span, span)).map(Value::One),
            _ => self.report(Diagnostic::error(span, format!("`{op}` takes single numbers"))),
        }
    }

    /// A whole constant: the end of a range, an offset, the number of a part.
    pub(super) fn whole_constant(&mut self, expr: ExprId) -> Found<i32> {
        let span = self.file.exprs.span(expr);
        self.bodies.push(Body::new());
        let node = self.scalar(expr);
        let whole = node.and_then(|node| self.whole(node));
        self.bodies.pop();
        node?;
        whole.or_else(|| {
            self.report(
                Diagnostic::error(span, "a whole number known when compiling is needed here")
                    .label("not a whole constant"),
            )
        })
    }

    /// The node as it was written into this body.
    pub(super) fn written(&self, node: NodeId) -> Option<&Node> {
        self.bodies.last().map(|body| &body[node])
    }

    /// The whole constant that a node is.
    pub(super) fn whole(&self, node: NodeId) -> Option<i32> {
        match self.written(node) {
            Some(Node::Int(x)) => Some(*x),
            _ => None,
        }
    }

    pub(super) fn kind(&self, node: NodeId) -> Found<Kind> {
        self.bodies.last().map(|body| body.kind_of(node))
    }

    /// A node as `kind`, which it is or widens to.
    pub(super) fn widen(&mut self, node: NodeId, kind: Kind, span: Span) -> Found<NodeId> {
        match (self.kind(node)?, kind) {
            (Kind::Int, Kind::Real) => self.node(Node::ToReal(node), Kind::Real, span),
            _ => Some(node),
        }
    }

    /// A node as `kind`, or an error that says why not.
    pub(super) fn convert(&mut self, node: NodeId, kind: Kind, span: Span, what: &str) -> Found<NodeId> {
        let own = self.kind(node)?;
        if own == kind || (own, kind) == (Kind::Int, Kind::Real) {
            return self.widen(node, kind, span);
        }
        let message = format!("`{what}` is {}, this value is {}", article(kind), article(own));
        let mut diagnostic = Diagnostic::error(span, message).label(own.name());
        diagnostic = match (own, kind) {
            (Kind::Real, Kind::Int) => {
                diagnostic.help("there is no way from `real` to `int`; `/` is always real division")
            }
            (Kind::Bool, _) => diagnostic.help("write `if c { 1 } else { 0 }`"),
            (_, Kind::Bool) => diagnostic.help("compare it with something, as in `a > 0`"),
            (Kind::Int | Kind::Real, _) => diagnostic,
        };
        self.report(diagnostic)
    }

    fn warn_unused_since(&mut self, mark: usize) {
        for (name, span) in self.scope.unused_since(mark) {
            self.diagnostics
                .push(Diagnostic::warning(span, format!("the value `{name}` is never used")).label("not used"));
        }
    }

    /// Gives the value a name of its own unless it is one already.
    pub(super) fn base(&mut self, expr: ExprId) -> Found<Bound> {
        self.bind(expr, "value", Origin::Base)
    }
}

/// A kind with its article.
pub(super) fn article(kind: Kind) -> &'static str {
    match kind {
        Kind::Real => "a real number",
        Kind::Int => "a whole number",
        Kind::Bool => "a truth value",
    }
}
