//! Expressions: operator precedence by the shunting-yard method (E. W. Dijkstra, 1961), so that a chain of any length
//! needs no stack of ours.

use super::rest::misplaced;
use super::{Builder, Built, Node, Rule, name, part, parts, present, span, way, word};
use crate::ast::{Argument, Binder, Block, Expr, ExprId, Infix, Name, Prefix, Range};
use crate::diagnostic::{Diagnostic, wrong};
use crate::foreign::{self, scalar};
use crate::ir::{Binary, Relation};
use crate::source::Span;

/// How deeply an expression may be nested, not counting chains of operators from left to right.
const DEPTH: u32 = 400;

/// An operator that waits for its right operand.
#[derive(Clone, Copy)]
enum Waiting {
    Prefix(Prefix, Span),
    Infix(Infix),
}

/// How tightly an operator binds.
fn precedence(operator: Waiting) -> u8 {
    match operator {
        Waiting::Infix(Infix::Or) => 1,
        Waiting::Infix(Infix::And) => 2,
        Waiting::Infix(Infix::Compare(_)) => 3,
        Waiting::Infix(Infix::Arithmetic(Binary::Add | Binary::Sub)) => 4,
        Waiting::Infix(Infix::Arithmetic(Binary::Mul | Binary::Div | Binary::Rem)) => 5,
        Waiting::Prefix(..) => 6,
        Waiting::Infix(Infix::Power) => 7,
    }
}

impl Builder<'_> {
    pub(super) fn expr(&mut self, pair: Node) -> Built<ExprId> {
        let place = span(&pair);
        let (mut operands, mut operators) = (Vec::new(), Vec::new());
        let mut parts = pair.into_inner().peekable();
        while let Some(part) = parts.next() {
            let at = span(&part);
            match part.as_rule() {
                Rule::neg => operators.push(Waiting::Prefix(Prefix::Negate, at)),
                Rule::not => operators.push(Waiting::Prefix(Prefix::Not, at)),
                Rule::index => {
                    let base = present(operands.pop(), at)?;
                    let parts = self.indices(&part)?;
                    let whole = self.file.exprs.span(base).to(at);
                    operands.push(self.node(Expr::Index(base, parts.clone()), whole, &[&[base], &*parts].concat())?);
                }
                Rule::component => {
                    let (before, rest) = self.text.split_at(at.start as usize);
                    if let Some(wrong) = worded(before, rest) {
                        return Err(wrong);
                    }
                    let base = present(operands.pop(), at)?;
                    let part = present(part.into_inner().next(), at)?;
                    let whole = self.file.exprs.span(base).to(at);
                    operands.push(self.node(Expr::Component(base, name(&part)), whole, &[base])?);
                }
                rule => match infix(rule) {
                    Some(infix) => {
                        let next = Waiting::Infix(infix);
                        while let Some(&waiting) = operators.last() {
                            let (left, right) = (precedence(waiting), precedence(next));
                            if left == 3 && right == 3 {
                                return Err(self.chained(at));
                            }
                            // `**` is the only operator that groups from the right.
                            if left < right || left == right && left == 7 {
                                break;
                            }
                            self.reduce(&mut operands, &mut operators, place)?;
                        }
                        operators.push(next);
                    }
                    None if rule == Rule::mistake => return Err(mistake(&part, &self.text[..at.start as usize])),
                    None => operands.push(match parts.next_if(|next| next.as_rule() == Rule::called) {
                        Some(called) => self.call(name(&part), &called)?,
                        None => self.primary(part)?,
                    }),
                },
            }
        }
        while !operators.is_empty() {
            self.reduce(&mut operands, &mut operators, place)?;
        }
        present(operands.pop(), place)
    }

    /// A second comparison, or what looks like one.
    fn chained(&self, at: Span) -> Diagnostic {
        let before = self.text.get(..at.start as usize).unwrap_or_default();
        let argument = before.rsplit('<').next().unwrap_or_default().trim();
        if self.text.get(at.start as usize..).is_some_and(|rest| rest.starts_with('>')) && scalar(argument).is_some() {
            let start = before.len() - before.rsplit('<').next().map_or(0, str::len) - 1;
            return wrong(Span::new(start, at.end as usize), "there are no casts and no templates", "leave it out")
                .help("numbers are converted where kinds meet; the type of a field says how it is stored");
        }
        wrong(at, "comparisons do not chain", "a second comparison")
            .help("write `0 < k && k < 5` for `0 < k < 5`; to compare truth values, use parentheses")
    }

    fn reduce(&mut self, operands: &mut Vec<ExprId>, operators: &mut Vec<Waiting>, place: Span) -> Built<()> {
        let right = present(operands.pop(), place)?;
        let id = match present(operators.pop(), place)? {
            Waiting::Prefix(prefix, at) => {
                let whole = at.to(self.file.exprs.span(right));
                self.node(Expr::Prefix(prefix, right), whole, &[right])?
            }
            Waiting::Infix(infix) => {
                let left = present(operands.pop(), place)?;
                let whole = self.file.exprs.span(left).to(self.file.exprs.span(right));
                let id = self.node(Expr::Infix(infix, left, right), whole, &[right])?;
                // A chain from left to right is walked in a loop, so it does not deepen the expression.
                self.raise(id, self.depth(left), whole)?;
                id
            }
        };
        operands.push(id);
        Ok(())
    }

    /// Adds an expression that is one deeper than its deepest operand.
    pub(super) fn node(&mut self, expr: Expr, place: Span, operands: &[ExprId]) -> Built<ExprId> {
        let depth = operands.iter().map(|&operand| self.depth(operand) + 1).max().unwrap_or(0);
        let id = self.file.exprs.add(expr, place);
        self.depths.push(0);
        self.raise(id, depth, place)?;
        Ok(id)
    }

    fn depth(&self, id: ExprId) -> u32 {
        self.depths[id.index()]
    }

    fn raise(&mut self, id: ExprId, depth: u32, place: Span) -> Built<()> {
        let own = &mut self.depths[id.index()];
        *own = depth.max(*own);
        if *own <= DEPTH {
            return Ok(());
        }
        Err(Diagnostic::error(place, format!("this expression is nested more than {DEPTH} deep"))
            .help("name parts of it with `let`"))
    }

    fn primary(&mut self, pair: Node) -> Built<ExprId> {
        let at = span(&pair);
        match pair.as_rule() {
            Rule::number => {
                let number = present(pair.into_inner().next(), at)?;
                let text = number.as_str();
                let expr = match number.as_rule() {
                    Rule::real => Expr::Real(text.trim_end().parse().unwrap_or(f64::INFINITY)),
                    _ => Expr::Int(text.trim_end().parse().unwrap_or(i64::MAX)),
                };
                if matches!(expr, Expr::Real(x) if x.is_infinite()) {
                    return Err(wrong(at, "this number is too large for a real", "larger than 1.8e308"));
                }
                let mantissa = text.split(['e', 'E']).next().unwrap_or("");
                if matches!(expr, Expr::Real(0.0)) && mantissa.contains(|c: char| c.is_ascii_digit() && c != '0') {
                    return Err(wrong(at, "this number is too small for a real", "would become 0")
                        .help("the smallest is about 5e-324, and 1e-45 in single precision"));
                }
                self.node(expr, at, &[])
            }
            Rule::truth => self.node(Expr::Truth(pair.as_str().trim_end() == "true"), at, &[]),
            Rule::ident => self.node(Expr::Name(name(&pair).text), at, &[]),
            Rule::group => {
                let inner = self.value(&pair)?;
                self.node(Expr::Group(inner), at, &[inner])
            }
            Rule::vector => {
                let parts = self.values(&pair)?;
                self.node(Expr::Vector(parts.clone()), at, &parts)
            }
            Rule::braces => {
                let block = self.one_block(&pair)?;
                let value = block.value;
                self.node(Expr::Block(block), at, &[value])
            }
            Rule::choice => self.choice(pair),
            _ => self.fold(&pair),
        }
    }

    fn call(&mut self, function: Name, pair: &Node) -> Built<ExprId> {
        let at = function.span.to(span(pair));
        let (mut arguments, mut rest) = (Vec::new(), None);
        for own in parts(pair, Rule::argument) {
            if let Some(rest) = rest {
                return Err(misplaced(rest, "`..` passes what is left, and stands last"));
            }
            match part(&own, Rule::rest) {
                Some(own) => rest = Some(span(&own)),
                None => arguments
                    .push(Argument { name: part(&own, Rule::ident).map(|own| name(&own)), value: self.value(&own)? }),
            }
        }
        let operands: Vec<ExprId> = arguments.iter().map(|argument| argument.value).collect();
        let call = self.node(Expr::Call(function, arguments), at, &operands)?;
        self.rests.passed.extend(rest.map(|rest| (call, rest)));
        Ok(call)
    }

    fn choice(&mut self, pair: Node) -> Built<ExprId> {
        let at = span(&pair);
        let (mut arms, mut condition, mut otherwise, mut operands) = (Vec::new(), None, None, Vec::new());
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::expr => condition = Some(self.expr(part)?),
                Rule::block => {
                    let block = self.block(&part)?;
                    operands.push(block.value);
                    match condition.take() {
                        Some(condition) => {
                            operands.push(condition);
                            arms.push((condition, block));
                        }
                        None => otherwise = Some(Box::new(block)),
                    }
                }
                _ => {}
            }
        }
        if arms.len() > DEPTH as usize {
            return Err(Diagnostic::error(at, format!("an `if` has at most {DEPTH} branches"))
                .help("name parts of it with `let`"));
        }
        let otherwise = present(otherwise, at)?;
        self.node(Expr::Choose(arms, otherwise), at, &operands)
    }

    fn fold(&mut self, pair: &Node) -> Built<ExprId> {
        let binders = parts(pair, Rule::binder).map(|own| self.binder(&own)).collect::<Built<_>>()?;
        let block = self.one_block(pair)?;
        let value = block.value;
        self.node(Expr::Fold(word(pair, Rule::fold_op)?, binders, block), span(pair), &[value])
    }

    fn binder(&mut self, pair: &Node) -> Built<Binder> {
        let range = match part(pair, Rule::range) {
            Some(range) => self.ends(&range).map(|(low, high)| Range::Numbers(low, high))?,
            None => Range::Map(present(way(pair), span(pair))?),
        };
        Ok(Binder { name: word(pair, Rule::ident)?, range })
    }

    /// The block of a construct that has one.
    fn one_block(&mut self, pair: &Node) -> Built<Box<Block>> {
        let block = present(part(pair, Rule::block), span(pair))?;
        Ok(Box::new(self.block(&block)?))
    }

    pub(super) fn block(&mut self, pair: &Node) -> Built<Block> {
        let mut lets = Vec::new();
        for own in pair.clone().into_inner() {
            match own.as_rule() {
                Rule::r#let => lets.push(self.binding(&own)?),
                Rule::print => return Err(super::print::misplaced(&own)),
                _ => {}
            }
        }
        Ok(Block { lets, value: self.value(pair)? })
    }

    /// The expressions of a construct.
    pub(super) fn values(&mut self, pair: &Node) -> Built<Vec<ExprId>> {
        parts(pair, Rule::expr).map(|own| self.expr(own)).collect()
    }

    /// What stands in brackets.
    pub(super) fn indices(&mut self, pair: &Node) -> Built<Vec<ExprId>> {
        let index = |own: Node| match own.as_rule() {
            Rule::one_level => {
                let (at, number) = (span(&own), self.value(&own)?);
                self.node(Expr::Level(number), at, &[number])
            }
            _ => self.expr(own),
        };
        pair.clone().into_inner().map(index).collect()
    }

    /// The expression of a construct, if it has one.
    pub(super) fn optional(&mut self, pair: &Node) -> Built<Option<ExprId>> {
        part(pair, Rule::expr).map(|own| self.expr(own)).transpose()
    }

    /// The expression of a construct that has one.
    pub(super) fn value(&mut self, pair: &Node) -> Built<ExprId> {
        present(self.optional(pair)?, span(pair))
    }

    /// The two expressions of a range.
    pub(super) fn ends(&mut self, pair: &Node) -> Built<(ExprId, ExprId)> {
        let ends = self.values(pair)?;
        present(ends.first().copied().zip(ends.get(1).copied()), span(pair))
    }
}

fn infix(rule: Rule) -> Option<Infix> {
    Some(match rule {
        Rule::or => Infix::Or,
        Rule::and => Infix::And,
        Rule::le => Infix::Compare(Relation::Le),
        Rule::ge => Infix::Compare(Relation::Ge),
        Rule::eq => Infix::Compare(Relation::Eq),
        Rule::ne => Infix::Compare(Relation::Ne),
        Rule::lt => Infix::Compare(Relation::Lt),
        Rule::gt => Infix::Compare(Relation::Gt),
        Rule::add => Infix::Arithmetic(Binary::Add),
        Rule::sub => Infix::Arithmetic(Binary::Sub),
        Rule::mul => Infix::Arithmetic(Binary::Mul),
        Rule::div => Infix::Arithmetic(Binary::Div),
        Rule::rem => Infix::Arithmetic(Binary::Rem),
        Rule::power => Infix::Power,
        _ => return None,
    })
}

/// What begins like a part, and is an operator of Fortran's: `a.gt.b`. In brackets it may be a way over a mesh.
fn worded(before: &str, rest: &str) -> Option<Diagnostic> {
    let begins = |theirs: &str| rest.get(..theirs.len()).is_some_and(|head| head.eq_ignore_ascii_case(theirs));
    let (theirs, means) = foreign::words("words between points").find(|(theirs, _)| begins(theirs))?;
    let place = Span::new(before.len(), before.len() + theirs.len());
    (before.rfind('[') <= before.rfind(']')).then(|| no_operator(place, &rest[..theirs.len()], means))
}

fn no_operator(at: Span, wrote: &str, means: &str) -> Diagnostic {
    Diagnostic::error(at, format!("`{wrote}` is no operator here")).label(format!("write {means}"))
}

/// Other languages' spellings; `before` is the text before it.
fn mistake(pair: &Node, before: &str) -> Diagnostic {
    let at = span(pair);
    let wrote = pair.as_str().trim_end();
    let means = foreign::meaning("signs between operands", wrote)
        .or_else(|| foreign::meaning("words between points", &wrote.to_lowercase()))
        .unwrap_or("`==` to compare; `=` only assigns");
    let found = no_operator(at, wrote, means);
    if wrote != "=" {
        return found;
    }
    if before.rfind('[') > before.rfind(']') {
        return Diagnostic::error(at, "an offset is an axis plus or minus a number")
            .label("not understood")
            .help("as in `a[i-1]`, `a[i+1, j-1]` or `a[k+n]`; a certain level is `a[level 0]`");
    }
    found.help("an output is assigned outside of `if` and `sum`, as in `res = if c { 1 } else { 2 }`")
}
