//! Programs as text.

use crate::generate::NAMED;
use crate::tree::{Block, Declaration, Expr, Program, Statement};
use std::fmt::{self, Display, Formatter};

/// How tightly an expression binds; an operand that binds less is put into parentheses.
fn binding(expr: &Expr) -> u8 {
    match expr {
        Expr::Choose(..) | Expr::Block(_) => 0,
        Expr::Infix(op, ..) => infix_binding(op),
        Expr::Prefix(..) => 6,
        Expr::Fold(..) => 8,
        Expr::Offset(..) | Expr::Part(..) | Expr::Component(..) => 9,
        Expr::Literal(_) | Expr::Name(_) | Expr::Call(..) | Expr::Vector(_) | Expr::Group(_) => 10,
    }
}

fn infix_binding(op: &str) -> u8 {
    match op {
        "||" => 1,
        "&&" => 2,
        "+" | "-" => 4,
        "*" | "/" | "%" => 5,
        "**" => 7,
        // Comparisons.
        _ => 3,
    }
}

/// An expression as an operand that must bind at least so tightly.
struct Operand<'a>(&'a Expr, u8);

impl Display for Operand<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if binding(self.0) < self.1 { write!(f, "({})", self.0) } else { write!(f, "{}", self.0) }
    }
}

fn list<T: Display>(f: &mut Formatter<'_>, items: impl IntoIterator<Item = T>) -> fmt::Result {
    for (index, item) in items.into_iter().enumerate() {
        write!(f, "{}{item}", if index > 0 { ", " } else { "" })?;
    }
    Ok(())
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Literal(text) | Expr::Name(text) => f.write_str(text),
            Expr::Prefix(op, inner) => write!(f, "{op}{}", Operand(inner, 6)),
            Expr::Infix(op, left, right) => {
                let own = infix_binding(op);
                let (least_left, least_right) = match own {
                    // From the right, and its right side may have a sign.
                    7 => (8, 6),
                    // Comparisons do not chain.
                    3 => (4, 4),
                    _ => (own, own + 1),
                };
                write!(f, "{} {op} {}", Operand(left, least_left), Operand(right, least_right))
            }
            Expr::Offset(base, axes) => {
                write!(f, "{}[", Operand(base, 9))?;
                for (index, (axis, terms)) in axes.iter().enumerate() {
                    let axis = if *axis == 'l' { "level ".to_owned() } else { axis.to_string() };
                    write!(f, "{}{axis}", if index > 0 { ", " } else { "" })?;
                    for (number, term) in terms.iter().enumerate() {
                        let sign = if term.minus { "-" } else { "+" };
                        // A level begins with no sign.
                        let sign = if number == 0 && axis.len() > 1 { "" } else { sign };
                        write!(f, "{sign}{}", Operand(&term.value, 5))?;
                    }
                }
                f.write_str("]")
            }
            Expr::Part(base, index) => write!(f, "{}[{index}]", Operand(base, 9)),
            Expr::Component(base, index) => write!(f, "{}.{index}", Operand(base, 9)),
            Expr::Call(name, arguments) => {
                write!(f, "{name}(")?;
                list(f, arguments)?;
                f.write_str(")")
            }
            Expr::Choose(arms, otherwise) => {
                for (condition, block) in arms {
                    write!(f, "if {condition} {block} else ")?;
                }
                write!(f, "{otherwise}")
            }
            Expr::Fold(op, binders, block) => {
                write!(f, "{op}(")?;
                for (index, (name, low, high)) in binders.iter().enumerate() {
                    write!(f, "{}{name} in {low}..={high}", if index > 0 { ", " } else { "" })?;
                }
                write!(f, ") {block}")
            }
            Expr::Vector(parts) => {
                f.write_str("[")?;
                list(f, parts)?;
                f.write_str("]")
            }
            Expr::Group(inner) => write!(f, "({inner})"),
            Expr::Block(block) => write!(f, "{block}"),
        }
    }
}

impl Display for Block {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("{ ")?;
        for (name, value) in &self.lets {
            write!(f, "let {name} = {value}; ")?;
        }
        write!(f, "{} }}", self.value)
    }
}

impl Display for Declaration {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let typed = |typed: &Option<&'static str>| typed.map_or(String::new(), |typed| format!(": {typed}"));
        match self {
            Declaration::Param { name, typed: of, default } => {
                write!(f, "param {name}{}", typed(of))?;
                default.as_ref().map_or(Ok(()), |default| write!(f, " = {default}"))
            }
            Declaration::Constant { name, typed: of, value } => write!(f, "const {name}{} = {value}", typed(of)),
            Declaration::Function { name, params, body } => {
                write!(f, "fn {name}(")?;
                list(f, params)?;
                if body.lets.is_empty() { write!(f, ") = {}", body.value) } else { write!(f, ") {body}") }
            }
        }
    }
}

impl Display for Statement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Statement::Field { role, names, typed, place, range } => {
                write!(f, "{role} ")?;
                list(f, names)?;
                typed.map_or(Ok(()), |typed| write!(f, ": {typed}"))?;
                place.map_or(Ok(()), |place| write!(f, " on ({place})"))?;
                range.as_ref().map_or(Ok(()), |(low, high)| write!(f, " = {low}..{high}"))
            }
            Statement::Declare(declaration) => write!(f, "{declaration}"),
            Statement::Let(name, None, value) => write!(f, "let {name} = {value}"),
            Statement::Let(name, Some(typed), value) => write!(f, "let {name}: {typed} = {value}"),
            Statement::Assign(name, value) => write!(f, "{name} = {value}"),
            Statement::SumsByLevel => f.write_str("sums by level"),
            Statement::Within('k', first, Some(end)) => write!(f, "levels {first}..{end}"),
            Statement::Within('k', only, None) => write!(f, "level {only}"),
            Statement::Within(axis, first, Some(end)) => write!(f, "{axis} {first}..{end}"),
            Statement::Within(axis, only, None) => write!(f, "{axis} {only}"),
        }
    }
}

impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let is_named = |own: &Statement| match own {
            Statement::Field { typed, .. } | Statement::Let(_, typed, _) => *typed == Some(NAMED),
            Statement::Declare(_) | Statement::Assign(..) | Statement::SumsByLevel | Statement::Within(..) => false,
        };
        if self.statements.iter().any(is_named) {
            writeln!(f, "type {NAMED} = f32")?;
        }
        for item in &self.items {
            writeln!(f, "{item}")?;
        }
        writeln!(f, "stencil {} {{", self.name)?;
        for statement in &self.statements {
            writeln!(f, "    {statement}")?;
        }
        f.write_str("}\n")
    }
}
