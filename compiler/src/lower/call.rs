//! Calls: the language's functions, and the user's, which are written out.

use super::kind::article;
use super::scope::{Binding, FUNCTIONS, Global};
use super::value::{Nodes, Value, meet};
use super::{Body, CALLS, Found, Lowering};
use crate::ast;
use crate::diagnostic::Diagnostic;
use crate::ir::{Binary, Function, Kind, Node, NodeId, Origin};
use crate::source::Span;

/// Functions that round differently from device to device, and come as functions of the language's own.
const LATER: &[&str] = &["cbrt", "exp", "log", "pow", "sin", "cos", "tan", "atan", "atan2", "tanh"];

impl<'a> Lowering<'a> {
    pub(super) fn call(&mut self, function: &'a ast::Name, arguments: &'a [ast::Argument], span: Span) -> Found<Nodes> {
        if let Some(name) = arguments.iter().find_map(|argument| argument.name.as_ref()) {
            return self.report(
                Diagnostic::error(name.span, "the arguments of a function have no names")
                    .label("give the value alone")
                    .help("names are for the calls of stencils in a `program`"),
            );
        }
        if FUNCTIONS.contains(&function.text.as_str()) {
            return self.call_own(function, arguments, span);
        }
        let (own, horizon) = match self.scope.use_name(&function.text).map(|symbol| symbol.binding) {
            Some(Binding::Function(own)) => (own, self.scope.position(&function.text)),
            Some(Binding::Broken) => return None,
            Some(_) => return self.no_function(function),
            None => match self.globals.find(&function.text) {
                Some(Global::Function(own)) => {
                    self.scope.use_global(&function.text);
                    (own, 0)
                }
                Some(_) => return self.no_function(function),
                None => return self.unknown(&function.text, function.span, "function"),
            },
        };
        self.call_user(own, horizon, function, arguments, span)
    }

    fn no_function<T>(&mut self, function: &ast::Name) -> Found<T> {
        self.report(
            Diagnostic::error(function.span, format!("`{}` is no function", function.text))
                .label("cannot be called")
                .help(format!("an offset stands in square brackets: `{}[i-1]`", function.text)),
        )
    }

    fn call_user(
        &mut self,
        own: &'a ast::Function,
        horizon: usize,
        called: &ast::Name,
        arguments: &'a [ast::Argument],
        span: Span,
    ) -> Found<Nodes> {
        if own.params.len() != arguments.len() {
            let names: Vec<&str> = own.params.iter().map(|name| name.text.as_str()).collect();
            return self.report(
                Diagnostic::error(
                    span,
                    format!("`{}` takes {}, here are {}", called.text, count(own.params.len()), arguments.len()),
                )
                .label(format!("`{}({})`", called.text, names.join(", ")))
                .note(own.name.span, "defined here"),
            );
        }
        if self.calls.contains(&own.name.text) {
            let chain = [self.calls.as_slice(), std::slice::from_ref(&own.name.text)].concat().join("` -> `");
            return self.report(
                Diagnostic::error(called.span, format!("the function `{}` calls itself", own.name.text))
                    .label(format!("`{chain}`"))
                    .help("functions are written out where they are called; a `sum` repeats a term"),
            );
        }
        if self.calls.len() >= CALLS {
            return self.report(Diagnostic::error(called.span, format!("more than {CALLS} functions call each other")));
        }
        // Arguments are computed once a cell, like a `let`, in the scope of the caller.
        let values: Vec<_> = arguments
            .iter()
            .zip(&own.params)
            .map(|(argument, name)| self.bind(argument.value, &name.text, Origin::Argument))
            .collect();
        let values = values.into_iter().collect::<Option<Vec<_>>>()?;
        let frame = self.scope.enter(horizon);
        self.calls.push(own.name.text.clone());
        for (name, value) in own.params.iter().zip(values) {
            self.define(name, Binding::Value(value));
        }
        // The result is a definition, so that nothing is fused across the call.
        self.bodies.push(Body::new());
        let value = self.block(&own.body);
        let body = self.bodies.pop().unwrap_or_default();
        self.calls.pop();
        let unused = if value.is_some() { self.scope.unused_arguments() } else { Vec::new() };
        for (name, at) in unused {
            self.diagnostics
                .push(Diagnostic::warning(at, format!("the argument `{name}` is never used")).label("not used"));
        }
        self.scope.leave(frame);
        let bound = value?.map(|node| self.bind_body(body.rooted(node), &own.name.text, Origin::Result)).collected()?;
        self.place_value(bound, span)
    }

    fn call_own(&mut self, name: &ast::Name, arguments: &'a [ast::Argument], span: Span) -> Found<Nodes> {
        let text = name.text.as_str();
        if LATER.contains(&text) {
            return self.report(
                Diagnostic::error(name.span, format!("`{text}` is not available in this version"))
                    .label("comes as an algorithm of the language's own, the same on every device")
                    .help("available: min, max, abs, sqrt, floor, ceil, sign, copysign, fma, and powers with a whole exponent"),
            );
        }
        if text == "dot" {
            return self.dot(arguments, span);
        }
        let (least, most) = match text {
            "min" | "max" => (2, usize::MAX),
            "copysign" => (2, 2),
            "fma" => (3, 3),
            _ => (1, 1),
        };
        if arguments.len() < least || arguments.len() > most {
            let takes = if most == usize::MAX { "two or more arguments".to_owned() } else { count(least) };
            return self.report(
                Diagnostic::error(span, format!("`{text}` takes {takes}, here are {}", arguments.len()))
                    .label("called here"),
            );
        }
        let values: Vec<Found<Nodes>> = arguments.iter().map(|argument| self.value(argument.value)).collect();
        let values: Vec<Nodes> = values.into_iter().collect::<Option<_>>()?;
        let spans: Vec<Span> = arguments.iter().map(|argument| self.file.exprs.span(argument.value)).collect();
        // Functions work part by part.
        let parts = values.iter().find_map(|value| match value {
            Value::Many(parts) => Some(parts.len()),
            Value::One(_) => None,
        });
        let Some(parts) = parts else {
            let nodes: Vec<NodeId> = values.iter().map(|value| part(value, 0)).collect::<Option<_>>()?;
            return self.apply(text, &nodes, &spans, span).map(Value::One);
        };
        if values.iter().any(|value| matches!(value, Value::Many(own) if own.len() != parts)) {
            return self.report(Diagnostic::error(span, "the arguments have different numbers of parts"));
        }
        let mut results = Vec::with_capacity(parts);
        for index in 0..parts {
            let nodes: Vec<NodeId> = values.iter().map(|value| part(value, index)).collect::<Option<_>>()?;
            results.push(self.apply(text, &nodes, &spans, span)?);
        }
        Some(Value::Many(results))
    }

    fn apply(&mut self, name: &str, operands: &[NodeId], spans: &[Span], span: Span) -> Found<NodeId> {
        for (&operand, &at) in operands.iter().zip(spans) {
            let kind = self.kind(operand)?;
            if kind == Kind::Bool {
                return self.report(
                    Diagnostic::error(at, format!("`{name}` takes numbers, this is {}", article(kind))).label("bool"),
                );
            }
        }
        let function = match name {
            "min" | "max" => {
                let mut value = *operands.first()?;
                for (&operand, &at) in operands.iter().zip(spans).skip(1) {
                    value = self.extreme(name, value, operand, (span, at, span))?;
                }
                return Some(value);
            }
            "abs" => Function::Abs,
            "sign" => Function::Sign,
            "sqrt" => Function::Sqrt,
            "floor" => Function::Floor,
            "ceil" => Function::Ceil,
            "copysign" => Function::CopySign,
            _ => Function::Fma,
        };
        let keeps_whole = matches!(function, Function::Abs | Function::Sign);
        let own = self.kind(*operands.first()?)?;
        let kind = if keeps_whole { own } else { Kind::Real };
        let mut widened = Vec::with_capacity(operands.len());
        for (&operand, &at) in operands.iter().zip(spans) {
            widened.push(self.widen(operand, kind, at)?);
        }
        self.node(Node::Call(function, widened), kind, span)
    }

    /// `min` or `max` of two numbers.
    pub(super) fn extreme(&mut self, name: &str, a: NodeId, b: NodeId, spans: (Span, Span, Span)) -> Found<NodeId> {
        let (a_kind, b_kind) = (self.kind(a)?, self.kind(b)?);
        let Some(kind @ (Kind::Real | Kind::Int)) = meet(a_kind, b_kind) else {
            return self.report(Diagnostic::error(spans.2, format!("`{name}` takes numbers")).label("not two numbers"));
        };
        let (a, b) = (self.widen(a, kind, spans.0)?, self.widen(b, kind, spans.1)?);
        let function = if name == "min" { Function::Min } else { Function::Max };
        self.node(Node::Call(function, vec![a, b]), kind, spans.2)
    }

    /// The products of the parts, added in order.
    fn dot(&mut self, arguments: &'a [ast::Argument], span: Span) -> Found<Nodes> {
        let [a, b] = arguments else {
            return self.report(
                Diagnostic::error(span, "`dot` takes two vectors").label(format!("here are {}", arguments.len())),
            );
        };
        let (a, b) = (self.value(a.value), self.value(b.value));
        let (Value::Many(a), Value::Many(b)) = (a?, b?) else {
            return self.report(Diagnostic::error(span, "`dot` takes two vectors").label("a single number is none"));
        };
        if a.len() != b.len() {
            return self.report(Diagnostic::error(span, format!("{} parts meet {} parts", a.len(), b.len())));
        }
        let spans = (span, span, span);
        let mut sum = None;
        for (a, b) in a.into_iter().zip(b) {
            let product = self.arithmetic(Binary::Mul, a, b, spans)?;
            sum = Some(match sum {
                None => product,
                Some(sum) => self.arithmetic(Binary::Add, sum, product, spans)?,
            });
        }
        sum.map(Value::One)
    }
}

fn part(value: &Nodes, index: usize) -> Option<NodeId> {
    match value {
        Value::One(node) => Some(*node),
        Value::Many(parts) => parts.get(index).copied(),
    }
}

fn count(n: usize) -> String {
    match n {
        0 => "no arguments".to_owned(),
        1 => "one argument".to_owned(),
        _ => format!("{n} arguments"),
    }
}
