//! Calls: the language's functions, and the user's, which are written out.

use super::body::STENCIL_NODES;
use super::kind::{article, parts};
use super::mesh::{IN_ZONE, PRESENT, SIZE};
use super::scope::{Binding, FUNCTIONS, Global, PRINT};
use super::value::{Alias, Nodes, Value, meet};
use super::{CALLS, Found, Lowering};
use crate::ast::{self, ExprId};
use crate::diagnostic::{Diagnostic, wrong};
use crate::ir::{Binary, Function, Kind, Node, NodeId, Origin, Stored};
use crate::source::Span;

/// A function that is being called.
#[derive(Clone)]
pub(super) struct Call {
    /// Its name.
    pub name: String,
    /// Where it is called; nowhere if it is looked at by itself.
    pub span: Span,
    /// Where its name stands in the call.
    named: Span,
    /// Where it is defined.
    defined: Span,
    /// What is passed, where it is not a real number.
    arguments: Vec<String>,
}

impl Call {
    /// A function that nobody calls.
    pub fn nobody(function: &ast::Name) -> Self {
        let nowhere = Span::default();
        let (name, defined) = (function.text.clone(), function.span);
        Self { name, span: nowhere, named: nowhere, defined, arguments: Vec::new() }
    }

    /// What is told about it where something in it is wrong.
    pub fn description(&self) -> String {
        if self.arguments.is_empty() {
            return format!("`{}` is called here", self.name);
        }
        format!("`{}` is called here; {}", self.name, self.arguments.join(", "))
    }
}

impl<'a> Lowering<'a> {
    pub(super) fn call(&mut self, function: &'a ast::Name, arguments: &'a [ast::Argument], span: Span) -> Found<Nodes> {
        // Of a function that there is not, that is told.
        let is_known = FUNCTIONS.contains(&function.text.as_str())
            || self.scope.find(&function.text).is_some()
            || self.globals.find(&function.text).is_some();
        let named = arguments.iter().find_map(|argument| argument.name.as_ref());
        if let Some(name) = named.filter(|_| is_known) {
            let found = wrong(name.span, "the arguments of a function have no names", "give the value alone");
            return self.report(found.help("names are for the calls of stencils in a `program`"));
        }
        match function.text.as_str() {
            PRINT => {
                let found =
                    wrong(span, "a `print` is a statement of its own, and has no value", "inside an expression");
                let help = "name the value with `let` in the stencil, and print it on the next line";
                return self.report(found.help(help));
            }
            PRESENT if self.is_over_mesh() => return self.present(arguments, span),
            IN_ZONE if self.is_over_mesh() => return self.in_zone(arguments, span),
            SIZE if self.is_over_mesh() => return self.size(arguments, span),
            text if FUNCTIONS.contains(&text) => return self.call_own(function, arguments, span),
            _ => {}
        }
        let (own, horizon) = match self.scope.use_name(&function.text).map(|symbol| symbol.binding) {
            Some(Binding::Function(own)) => (own, self.scope.position(&function.text)),
            Some(Binding::Broken) => return None,
            Some(_) => return self.no_function(function, arguments, span),
            None => match self.globals.find(&function.text) {
                Some(Global::Function(own)) => {
                    self.scope.use_global(&function.text);
                    (own, 0)
                }
                Some(Global::Stencil) => {
                    let name = &function.text;
                    let found =
                        Diagnostic::error(span, format!("`{name}` is a stencil: its call is no part of a formula"));
                    return self.report(found.label("called in an expression").help(format!(
                        "a program names what it returns, as in `let x = {name}(...)`, and goes on with that"
                    )));
                }
                Some(Global::Type(stored)) => {
                    self.scope.use_global(&function.text);
                    return self.conversion(stored, function, arguments, span);
                }
                Some(_) => return self.no_function(function, arguments, span),
                None if let Some(stored) = Stored::named(&function.text) => {
                    return self.conversion(stored, function, arguments, span);
                }
                None if [PRESENT, SIZE, IN_ZONE].contains(&function.text.as_str()) => {
                    return self.only_over_mesh(span, &format!("`{}` is about meshes", function.text), "on a grid");
                }
                None => return self.unknown(&function.text, function.span, "function"),
            },
        };
        let (name, named, defined) = (own.name.text.clone(), function.span, own.name.span);
        let call = Call { name, span, named, defined, arguments: Vec::new() };
        self.call_user(own, horizon, call, function, arguments)
    }

    /// `phi(i-1, j, k)`: the brackets of Fortran and MATLAB.
    fn no_function<T>(&mut self, function: &ast::Name, arguments: &[ast::Argument], span: Span) -> Found<T> {
        let name = &function.text;
        let parts: Vec<ExprId> = arguments.iter().map(|argument| argument.value).collect();
        let found = Diagnostic::error(span, format!("`{name}` is no function"));
        if self.names_a_constant(name) {
            let found = found.label(format!("a part of an array is written `{name}[0]`"));
            return self.report(found.help("brackets are square, and parts are counted from 0"));
        }
        self.report(match self.offset_text(&parts) {
            // Numbers alone that are all 0 are the cell itself.
            Some(here) if here.is_empty() || here == "[i]" => found
                .label(format!("write `{name}` for the value at the cell itself"))
                .help(format!("an offset stands in square brackets, as in `{name}[i-1]`")),
            Some(offset) => found
                .label(format!("if a neighbour is meant, write `{name}{offset}`"))
                .help("an offset stands in square brackets; an axis that is not named has offset 0"),
            None => {
                let neighbour = if self.is_over_mesh() { "cells.0" } else { "i-1" };
                found
                    .label("cannot be called")
                    .help(format!("a neighbour is written `{name}[{neighbour}]`, a product `{name} * (...)`"))
            }
        })
    }

    fn call_user(
        &mut self,
        own: &'a ast::Function,
        horizon: usize,
        mut call: Call,
        called: &ast::Name,
        arguments: &'a [ast::Argument],
    ) -> Found<Nodes> {
        let span = call.span;
        if own.params.len() != arguments.len() {
            let names: Vec<&str> = own.params.iter().map(|name| name.text.as_str()).collect();
            let takes = count(own.params.len());
            let message = format!("`{}` takes {takes}, here are {}", called.text, arguments.len());
            let found = wrong(span, message, format!("`{}({})`", called.text, names.join(", ")));
            return self.report(found.note(own.name.span, "defined here"));
        }
        if let Some(start) = self.calls.iter().position(|call| call.name == own.name.text) {
            return self.calls_itself(start, &call);
        }
        if self.calls.len() >= CALLS {
            let message = format!("more than {CALLS} functions call each other");
            return self.report_number(Diagnostic::error(called.span, message));
        }
        // A call that comes to nothing counts, too: functions that each call the one before twice are not to be followed for ever.
        self.size.nodes += 1;
        if self.size.nodes > STENCIL_NODES {
            return self.too_many(STENCIL_NODES, span);
        }
        // Arguments are computed once a cell, like a `let`, in the scope of the caller.
        let values: Vec<_> =
            arguments.iter().zip(&own.params).map(|(argument, name)| self.argument(argument.value, name)).collect();
        let values = values.into_iter().collect::<Option<Vec<_>>>()?;
        call.arguments =
            own.params.iter().zip(&values).filter_map(|(name, value)| self.described(name, value)).collect();
        self.calls.push(call);
        let called = |lowering: &mut Self| {
            let mark = lowering.scope.mark();
            for (name, value) in own.params.iter().zip(values) {
                lowering.define(name, value);
            }
            let value = lowering.block(&own.body);
            lowering.calls.pop();
            if value.is_some() {
                lowering.warn_unused_since(mark, "the argument");
            }
            value
        };
        // The result is a definition, so that nothing is fused across the call.
        let bound = self.bind_with(&own.name.text, Origin::Result, |lowering| lowering.within(horizon, called))?;
        self.place_value(bound, span)
    }

    /// What is passed: a value, or a place on a mesh.
    fn argument(&mut self, expr: ExprId, name: &ast::Name) -> Found<Binding<'a>> {
        match self.place_argument(expr) {
            Some(place) => place.map(Binding::Slot),
            None => self.bind(expr, &name.text, Origin::Argument).map(Binding::Value),
        }
    }

    /// Reports that `last` calls what is being called already. Whichever function of the circle is looked at first, the
    /// error is the same, so that it is told once.
    fn calls_itself<T>(&mut self, start: usize, last: &Call) -> Found<T> {
        // The first of them was called from elsewhere; `last` is its call from within.
        let mut circle: Vec<&Call> = self.calls.iter().skip(start + 1).chain([last]).collect();
        let first = circle.iter().enumerate().min_by_key(|(_, call)| call.defined.start).map_or(0, |(index, _)| index);
        circle.rotate_left(first);
        let (name, named) = circle.first().map_or((&last.name, last.named), |call| (&call.name, call.named));
        let names: Vec<&str> = circle.iter().map(|call| call.name.as_str()).chain([name.as_str()]).collect();
        let found = wrong(named, format!("the function `{name}` calls itself"), format!("`{}`", names.join("` -> `")));
        self.report_alone(found.help("functions are written out where they are called; a `sum` repeats a term"))
    }

    /// What a value is that is passed as an argument, unless it is the usual: a real number.
    fn described(&self, name: &ast::Name, value: &Binding) -> Option<String> {
        let kind = match value {
            Binding::Slot(path) => return Some(format!("`{}` is `{}`", name.text, self.place_text(path))),
            Binding::Value(Value::Many(items)) => {
                return Some(format!("`{}` is a vector of {}", name.text, parts(items.len())));
            }
            Binding::Value(Value::One(Alias::Int(x))) => return Some(format!("`{}` is {x}", name.text)),
            Binding::Value(Value::One(alias)) => self.kind_of_alias(alias),
            _ => return None,
        };
        (kind != Kind::Real).then(|| format!("`{}` is {}", name.text, article(kind)))
    }

    fn call_own(&mut self, name: &ast::Name, arguments: &'a [ast::Argument], span: Span) -> Found<Nodes> {
        let text = name.text.as_str();
        // All others are written out.
        let Some(function) = Function::named(text) else { return self.dot(arguments, span) };
        if !function.arguments().contains(&arguments.len()) {
            let is_open = function.arguments().contains(&(function.arity() + 1));
            let takes = if is_open { "two or more arguments".to_owned() } else { count(function.arity()) };
            let found = Diagnostic::error(span, format!("`{text}` takes {takes}, here are {}", arguments.len()));
            let found = found.label(match text {
                "pow" => "`pow(base, exponent)`",
                "atan2" => "`atan2(y, x)`",
                _ => "called here",
            });
            return self.report(if is_open && arguments.len() == 1 {
                found.help(format!(
                    "over several cells, write `{text}(n in -1..=1) {{ a[i+n] }}`; that of a whole field is told by `run`"
                ))
            } else {
                found
            });
        }
        let values: Vec<Found<Nodes>> = arguments.iter().map(|argument| self.value(argument.value)).collect();
        let values: Vec<Nodes> = values.into_iter().collect::<Option<_>>()?;
        let spans: Vec<Span> = arguments.iter().map(|argument| self.span(argument.value)).collect();
        let mut operands = Value::One(Vec::new());
        for value in values {
            let Some(pairs) = operands.spread(value) else {
                let found = wrong(span, "the arguments have different numbers of parts", "functions work part by part");
                return self.report_number(found);
            };
            operands = pairs.map(|(before, node)| [before, vec![node]].concat());
        }
        operands.try_map(|nodes| self.apply(function, &nodes, &spans, span))
    }

    fn apply(&mut self, function: Function, operands: &[NodeId], spans: &[Span], span: Span) -> Found<NodeId> {
        let name = function.name();
        for (&operand, &at) in operands.iter().zip(spans) {
            self.number_kind(operand, at, &format!("`{name}` takes numbers"))?;
        }
        if let Function::Min | Function::Max = function {
            let mut value = *operands.first()?;
            for (&operand, &at) in operands.iter().zip(spans).skip(1) {
                value = self.extreme(name, value, operand, (span, at, span))?;
            }
            return Some(value);
        }
        let own = self.kind(*operands.first()?)?;
        let kind = if function.takes_whole_numbers() { own } else { Kind::Real };
        let widened = operands.iter().zip(spans).map(|(&operand, &at)| self.widen(operand, kind, at));
        let widened = widened.collect::<Option<Vec<_>>>()?;
        self.node(Node::Call(function, widened), kind, span)
    }

    /// `min` or `max` of two numbers.
    pub(super) fn extreme(&mut self, name: &str, a: NodeId, b: NodeId, spans: (Span, Span, Span)) -> Found<NodeId> {
        let (a_kind, b_kind) = (self.kind(a)?, self.kind(b)?);
        let Some(kind @ (Kind::Real | Kind::Int)) = meet(a_kind, b_kind) else {
            return self.report(wrong(spans.2, format!("`{name}` takes numbers"), "not two numbers"));
        };
        let (a, b) = (self.widen(a, kind, spans.0)?, self.widen(b, kind, spans.1)?);
        let function = if name == "min" { Function::Min } else { Function::Max };
        self.node(Node::Call(function, vec![a, b]), kind, spans.2)
    }

    /// The products of the parts, added in order.
    fn dot(&mut self, arguments: &'a [ast::Argument], span: Span) -> Found<Nodes> {
        let [a, b] = arguments else {
            return self.report(wrong(span, "`dot` takes two vectors", format!("here are {}", arguments.len())));
        };
        let (a, b) = (self.value(a.value), self.value(b.value));
        let (Value::Many(a), Value::Many(b)) = (a?, b?) else {
            let found = wrong(span, "`dot` takes two vectors", "a single number is none");
            return self.report(found.help("a vector is written `[a, b, c]`"));
        };
        if a.len() != b.len() {
            let found = Diagnostic::error(span, "`dot` takes two vectors of the same length");
            return self.report_number(found.label(format!("{} and {}", parts(a.len()), parts(b.len()))));
        }
        let spans = (span, span, span);
        let mut sum = None;
        for (a, b) in a.into_iter().zip(b) {
            let product = self.arithmetic(Binary::Mul, a, b, spans)?;
            sum = Some(self.join("sum", sum, Value::One(product), span)?);
        }
        sum
    }
}

/// `no arguments`, `one argument`, `2 arguments`.
pub(super) fn count(n: usize) -> String {
    match n {
        0 => "no arguments".to_owned(),
        1 => "one argument".to_owned(),
        _ => format!("{n} arguments"),
    }
}
