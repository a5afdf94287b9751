//! Expressions.

use super::arithmetic::{Arithmetic, single, wholes, widened};
use super::real::Real;
use super::value::{Cells, Parts, Rounding, Value};
use super::{Binding, Evaluator, Result};
use stencilc_compiler::ast::{Block, Expr, ExprId, Function, Infix, Let, Prefix, Range};
use stencilc_compiler::ir::{Binary, Stored};

impl<'a, R: Real> Evaluator<'a, R> {
    pub(super) fn arithmetic(&self) -> Arithmetic<'a> {
        Arithmetic { domain: self.domain, contract: self.given.contract, by_level: self.by_level }
    }

    fn everywhere(&self, cells: Cells<R>) -> Result<Parts<R>> {
        Ok(Parts::One(Value::plain(cells, true)))
    }

    /// A single value.
    pub(super) fn one(&mut self, expr: ExprId) -> Result<Value<R>> {
        match self.value(expr)? {
            Parts::One(value) => Ok(value),
            Parts::Many(_) => Err("a vector stands where a single value is needed".into()),
        }
    }

    /// The value of an expression.
    pub(super) fn value(&mut self, expr: ExprId) -> Result<Parts<R>> {
        let file = self.file;
        let domain = self.domain;
        match &file.exprs[expr] {
            Expr::Real(x) => self.everywhere(Cells::Real(domain.all(R::of(*x)))),
            Expr::Int(x) => match i32::try_from(*x) {
                Ok(x) => self.everywhere(Cells::Int(domain.all(x))),
                Err(_) => Err("a whole number that is too large".into()),
            },
            Expr::Truth(x) => self.everywhere(Cells::Bool(domain.all(*x))),
            Expr::Name(name) => self.name(name),
            Expr::Group(inner) | Expr::Level(inner) => self.value(*inner),
            Expr::Block(block) => self.block(block),
            // The one whole number that has no positive counterpart.
            Expr::Prefix(Prefix::Negate, inner) if matches!(file.exprs[*inner], Expr::Int(2_147_483_648)) => {
                self.everywhere(Cells::Int(domain.all(i32::MIN)))
            }
            Expr::Prefix(Prefix::Negate, inner) => {
                let arithmetic = self.arithmetic();
                Ok(self.value(*inner)?.map(|value| arithmetic.negated(&value)))
            }
            Expr::Prefix(Prefix::Not, inner) => {
                let arithmetic = self.arithmetic();
                Ok(self.value(*inner)?.map(|value| arithmetic.not(&value)))
            }
            Expr::Infix(Infix::Power, base, exponent) => {
                let base = self.value(*base)?.named(self.arithmetic());
                let exponent = self.whole(*exponent)?;
                let one = Value::plain(Cells::Int(domain.all(1)), true);
                let arithmetic = self.arithmetic();
                Ok(base.map(|base| power(arithmetic, &base, exponent, &one)))
            }
            Expr::Infix(op, left, right) => {
                let (left, right) = (self.value(*left)?, self.value(*right)?);
                self.infix(*op, left, right)
            }
            Expr::Index(base, parts) => self.index(*base, parts),
            Expr::Component(base, part) => {
                let base = self.value(*base)?.named(self.arithmetic());
                let index: usize = part.text.parse().map_err(|_| "a part that is no number")?;
                part_of(base, index)
            }
            Expr::Call(name, arguments) => {
                let values = arguments.iter().map(|argument| self.value(argument.value));
                let values = values.collect::<Result<Vec<_>>>()?;
                match self.find(&name.text) {
                    Some(Binding::Function(function)) => self.call(function, values),
                    _ => match (self.type_named(&name.text), <[Parts<R>; 1]>::try_from(values)) {
                        (Some(stored), Ok([value])) => Ok(self.computed(value, stored.name())),
                        (Some(_), Err(_)) => Err("a type that converts several values".into()),
                        (None, Ok(values)) => self.call_own(&name.text, values.into()),
                        (None, Err(values)) => self.call_own(&name.text, values),
                    },
                }
            }
            Expr::Choose(arms, otherwise) => {
                let mut branches = Vec::new();
                for (condition, block) in arms {
                    branches.push((self.one(*condition)?, self.block(block)?));
                }
                let mut value = self.block(otherwise)?;
                for (condition, yes) in branches.iter().rev() {
                    value = self.together(yes.clone(), value, |own, yes, no| own.chosen(condition, yes, no))?;
                }
                // One that has a single part everywhere is still the value of a choice.
                Ok(value)
            }
            Expr::Fold(op, binders, block) => {
                let mut ranges = Vec::new();
                for binder in binders {
                    let Range::Numbers(low, high) = &binder.range else { return Err("a map".into()) };
                    ranges.push((binder.name.text.as_str(), self.whole(*low)?, self.whole(*high)?));
                }
                let mut terms = Vec::new();
                self.terms(&ranges, block, &mut terms)?;
                let mut terms = terms.into_iter();
                let mut total = terms.next().ok_or("a sum without terms")?;
                for term in terms {
                    total = match op.text.as_str() {
                        "sum" => self.infix(Infix::Arithmetic(Binary::Add), total, term)?,
                        name => self.together(total, term, |own, a, b| own.extreme(name == "max", a, b))?,
                    };
                }
                Ok(total)
            }
            Expr::Vector(parts) => parts.iter().map(|&part| self.one(part)).collect::<Result<_>>().map(Parts::Many),
        }
    }

    /// The terms of a sum; the last counter runs fastest.
    fn terms(&mut self, ranges: &[(&str, i32, i32)], block: &'a Block, terms: &mut Vec<Parts<R>>) -> Result<()> {
        let Some(((name, low, high), rest)) = ranges.split_first() else {
            terms.push(self.block(block)?);
            return Ok(());
        };
        for counter in *low..=*high {
            let value = Value::plain(Cells::Int(self.domain.all(counter)), true);
            self.locals.push(((*name).to_owned(), Binding::Value(Parts::One(value))));
            self.terms(rest, block, terms)?;
            self.locals.pop();
        }
        Ok(())
    }

    /// A whole constant.
    pub(super) fn whole(&mut self, expr: ExprId) -> Result<i32> {
        let value = self.one(expr)?;
        if !value.constant {
            return Err("something that varies stands where a constant is needed".into());
        }
        wholes(&value).first().copied().ok_or_else(|| "a grid without cells".into())
    }

    fn name(&mut self, name: &str) -> Result<Parts<R>> {
        let domain = self.domain;
        let known = |cells| Ok(Parts::One(Value::plain(cells, false)));
        match name {
            "k" => {
                let level = Value::plain(Cells::Int(domain.cells(|_, _, level| level as i32)), false);
                return Ok(Parts::One(Value { range: Some([0, 0]), ..level }));
            }
            "nk" => return known(Cells::Int(domain.all(domain.grid.nk as i32))),
            "ni" => return known(Cells::Int(domain.all(domain.grid.ni as i32))),
            "nj" => return known(Cells::Int(domain.all(domain.grid.nj as i32))),
            "pi" => return self.everywhere(Cells::Real(domain.all(R::of(std::f64::consts::PI)))),
            _ => {}
        }
        match self.find(name) {
            Some(Binding::Value(value)) => Ok(value),
            Some(Binding::Constant(constant)) => self.constant(constant),
            Some(Binding::Function(_)) => Err("a function that is not called".into()),
            None => Err(format!("the name `{name}` means nothing")),
        }
    }

    /// The value of a `let`.
    pub(super) fn bound(&mut self, binding: &'a Let) -> Result<Parts<R>> {
        let value = self.value(binding.value)?.named(self.arithmetic());
        Ok(match &binding.typed {
            Some(typed) => self.computed(value, typed.stored.name()),
            None => value,
        })
    }

    pub(super) fn block(&mut self, block: &'a Block) -> Result<Parts<R>> {
        let mark = self.locals.len();
        for binding in &block.lets {
            let value = self.bound(binding)?;
            let name = binding.names.first().ok_or("a let without a name")?;
            self.locals.push((name.text.clone(), Binding::Value(value)));
        }
        let value = self.value(block.value);
        self.locals.truncate(mark);
        value
    }

    /// Two values part by part; a number meets every part.
    fn together(
        &self,
        a: Parts<R>,
        b: Parts<R>,
        op: impl Fn(Arithmetic<'a>, &Value<R>, &Value<R>) -> Value<R>,
    ) -> Result<Parts<R>> {
        let own = self.arithmetic();
        Ok(match (a, b) {
            (Parts::One(a), Parts::One(b)) => Parts::One(op(own, &a, &b)),
            (Parts::One(a), Parts::Many(b)) => Parts::Many(b.iter().map(|b| op(own, &a, b)).collect()),
            (Parts::Many(a), Parts::One(b)) => Parts::Many(a.iter().map(|a| op(own, a, &b)).collect()),
            (Parts::Many(a), Parts::Many(b)) if a.len() == b.len() => {
                Parts::Many(a.iter().zip(&b).map(|(a, b)| op(own, a, b)).collect())
            }
            _ => return Err("vectors of different lengths".into()),
        })
    }

    fn infix(&self, op: Infix, a: Parts<R>, b: Parts<R>) -> Result<Parts<R>> {
        self.together(a, b, |own, a, b| match op {
            Infix::And => own.logic(false, a, b),
            Infix::Or => own.logic(true, a, b),
            Infix::Compare(relation) => own.compared(relation, a, b),
            // Powers are looked at before.
            Infix::Arithmetic(op) => own.binary(op, a, b),
            Infix::Power => a.clone(),
        })
    }

    fn index(&mut self, base: ExprId, parts: &[ExprId]) -> Result<Parts<R>> {
        let mut offset = [0i64; 3];
        let mut is_offset = false;
        let mut data: Option<Value<R>> = None;
        for &part in parts {
            if let Expr::Level(number) = &self.file.exprs[part] {
                data = Some(self.one(*number)?.less_level(self.domain));
                continue;
            }
            let (mut first, mut sum) = (part, 0);
            while let Expr::Infix(Infix::Arithmetic(op @ (Binary::Add | Binary::Sub)), left, right) =
                &self.file.exprs[first]
            {
                let is_axis_below = self.begins_with_axis(*left);
                if !is_axis_below {
                    break;
                }
                let own = self.one(*right)?;
                if own.constant {
                    let by = i64::from(self.whole(*right)?);
                    sum += if *op == Binary::Sub { -by } else { by };
                } else if *op == Binary::Sub || data.replace(own).is_some() {
                    return Err("a level is one number of a field, added".into());
                }
                first = *left;
            }
            if let Some(axis) = self.axis(first) {
                offset[axis] = sum;
                is_offset = true;
            }
        }
        let base = self.value(base)?.named(self.arithmetic());
        if let Some(data) = data {
            let domain = self.domain;
            let [i, j, k] = offset;
            return Ok(base.shifted(domain, [i, j, 0]).map(|value| value.on_level(domain, k, &data)));
        }
        if is_offset {
            return Ok(base.shifted(self.domain, offset));
        }
        let &[part] = parts else { return Err("several indices of an array".into()) };
        let index = self.whole(part)?;
        part_of(base, usize::try_from(index).map_err(|_| "a part below 0")?)
    }

    fn begins_with_axis(&self, mut expr: ExprId) -> bool {
        while let Expr::Infix(Infix::Arithmetic(Binary::Add | Binary::Sub), left, _) = &self.file.exprs[expr] {
            expr = *left;
        }
        self.axis(expr).is_some()
    }

    fn axis(&self, expr: ExprId) -> Option<usize> {
        match &self.file.exprs[expr] {
            Expr::Name(name) => ["i", "j", "k"].iter().position(|axis| axis == name),
            _ => None,
        }
    }

    fn call(&mut self, function: &'a Function, arguments: Vec<Parts<R>>) -> Result<Parts<R>> {
        let arithmetic = self.arithmetic();
        let names = function.params.iter().map(|name| name.text.clone());
        let locals = names.zip(arguments.into_iter().map(|value| Binding::Value(value.named(arithmetic)))).collect();
        let caller = std::mem::replace(&mut self.locals, locals);
        let value = self.block(&function.body);
        self.locals = caller;
        // What it returns may go on as a sum; all else of how it is written ends here.
        let ends = |value: Value<R>| if value.is_sum() { value } else { arithmetic.settled(value) };
        Ok(value?.map(|value| Value { factors: None, decided: None, ..ends(value) }))
    }

    fn call_own(&self, name: &str, arguments: Vec<Parts<R>>) -> Result<Parts<R>> {
        if name == "dot" {
            let [Parts::Many(a), Parts::Many(b)] = arguments.as_slice() else {
                return Err("`dot` of something else than two vectors".into());
            };
            let own = self.arithmetic();
            let mut products = a.iter().zip(b).map(|(a, b)| own.binary(Binary::Mul, a, b));
            let first = products.next().ok_or("an empty vector")?;
            return Ok(Parts::One(products.fold(first, |sum, product| own.binary(Binary::Add, &sum, &product))));
        }
        let parts = arguments.iter().find_map(|argument| match argument {
            Parts::Many(parts) => Some(parts.len()),
            Parts::One(_) => None,
        });
        let apply = |index: usize| {
            let values: Option<Vec<&Value<R>>> = arguments
                .iter()
                .map(|argument| match argument {
                    Parts::One(value) => Some(value),
                    Parts::Many(parts) => parts.get(index),
                })
                .collect();
            let values = values.ok_or("vectors of different lengths")?;
            let name = if self.given.faulty && name == "ceil" { "floor" } else { name };
            self.arithmetic().function(name, &values).ok_or_else(|| format!("the function `{name}` is not known"))
        };
        match parts {
            None => apply(0).map(Parts::One),
            Some(parts) => (0..parts).map(apply).collect::<Result<_>>().map(Parts::Many),
        }
    }

    /// A value as the type that is declared says.
    pub(super) fn typed(&self, value: Value<R>, scalar: &str) -> Value<R> {
        match scalar {
            "int" | "bool" => value,
            "f32" => single(&value),
            _ => widened(&value),
        }
    }

    /// A value as one computes with a type: it has a name, so no product goes on into a sum.
    pub(super) fn computed(&self, value: Parts<R>, scalar: &str) -> Parts<R> {
        value.named(self.arithmetic()).map(|value| match scalar {
            "real" | "f64" => Value { rounding: Rounding::Real, ..widened(&value) },
            _ => self.typed(value, scalar),
        })
    }

    /// The type of a name for one.
    pub(super) fn type_named(&self, name: &str) -> Option<Stored> {
        self.file.types.get(name).copied().or_else(|| Stored::named(name))
    }
}

fn part_of<R: Real>(value: Parts<R>, index: usize) -> Result<Parts<R>> {
    match value {
        Parts::Many(parts) => parts.into_iter().nth(index).map(Parts::One).ok_or_else(|| "a part too far".into()),
        Parts::One(_) => Err("a part of a number".into()),
    }
}

/// The product from the left, or 1 divided by it.
fn power<R: Real>(own: Arithmetic<'_>, base: &Value<R>, exponent: i32, one: &Value<R>) -> Value<R> {
    let mut product: Option<Value<R>> = None;
    for _ in 0..exponent.unsigned_abs() {
        product = Some(match product {
            None => base.clone(),
            Some(product) => own.binary(Binary::Mul, &product, base),
        });
    }
    match product {
        // The base is not looked at.
        None if super::arithmetic::is_whole(base) => one.clone(),
        None => widened(one),
        Some(product) if exponent > 0 => product,
        Some(product) => own.binary(Binary::Div, &widened(one), &product),
    }
}
