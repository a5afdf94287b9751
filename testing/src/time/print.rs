//! Programs in time as text.

use super::tree::{Action, Boundary, End, Number, Op, Role, Rule, Shape, Stencil, Stored, Swept, Term, Timed, Within};
use std::fmt::{self, Display, Formatter};

/// A number as the language has it: a sign is an operator, so it stands in parentheses.
fn signed(text: String, is_negative: bool) -> String {
    if is_negative { format!("(-{text})") } else { text }
}

fn real(x: f64) -> String {
    signed(format!("{:?}", x.abs()), x < 0.0)
}

fn whole(x: i64) -> String {
    signed(x.unsigned_abs().to_string(), x < 0)
}

fn offset([i, j, k]: [i64; 3]) -> String {
    let axes = [('i', i), ('j', j), ('k', k)].into_iter().filter(|(_, by)| *by != 0);
    let axes: Vec<String> = axes.map(|(axis, by)| format!("{axis}{by:+}")).collect();
    if axes.is_empty() { String::new() } else { format!("[{}]", axes.join(", ")) }
}

impl Display for Term {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Term::Number(x) => f.write_str(&real(*x)),
            Term::Whole(x) => f.write_str(&whole(*x)),
            Term::Param(n) => write!(f, "c{n}"),
            Term::Level => f.write_str("k"),
            Term::Read(field, by) => write!(f, "a{field}{}", offset(*by)),
            Term::Moved([field, levels], [[i, j, k], at]) => {
                let beside = offset([*i, *j, 0]).replace('[', "").replace(']', ", ");
                let more = if *k == 0 { String::new() } else { format!("{k:+}") };
                write!(f, "a{field}[{beside}k+a{levels}{}{more}]", offset(*at))
            }
            Term::ByNumber([field, levels], [[i, j, k], at]) => {
                let beside = offset([*i, *j, 0]).replace('[', "").replace(']', ", ");
                let more = if *k == 0 { String::new() } else { format!("{k:+}") };
                write!(f, "a{field}[{beside}level a{levels}{}{more}]", offset(*at))
            }
            Term::OnLevel(field, [i, j], level) => {
                let beside = offset([*i, *j, 0]).replace('[', "").replace(']', ", ");
                let level = if *level < 0 { format!("nk - {}", -level) } else { level.to_string() };
                write!(f, "a{field}[{beside}level {level}]")
            }
            Term::Use(own, by) => write!(f, "d{own}{}", offset(*by)),
            Term::Swept(own, by) => write!(f, "{own}{}", offset([0, 0, *by])),
            Term::Binary(Op::Add, a, b) => write!(f, "({a} + {b})"),
            Term::Binary(Op::Sub, a, b) => write!(f, "({a} - {b})"),
            Term::Binary(Op::Mul, a, b) => write!(f, "({a} * {b})"),
            Term::Binary(Op::Min, a, b) => write!(f, "min({a}, {b})"),
            Term::Binary(Op::Max, a, b) => write!(f, "max({a}, {b})"),
            Term::Above(n, a, b) => write!(f, "(if k > {n} {{ {a} }} else {{ {b} }})"),
            Term::Below(n, a, b) => write!(f, "(if k < nk - {n} {{ {a} }} else {{ {b} }})"),
            Term::Greater(four) => {
                let [a, b, c, d] = &**four;
                write!(f, "(if {a} > {b} {{ {c} }} else {{ {d} }})")
            }
        }
    }
}

impl Display for Swept {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Swept::Let(n) => write!(f, "e{n}"),
            Swept::Field(n) => write!(f, "a{n}"),
        }
    }
}

impl Display for Number {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Number::Literal(x) => f.write_str(&real(*x)),
            Number::Whole(x) => f.write_str(&whole(*x)),
            Number::Param(n) => write!(f, "p{n}"),
            Number::Named(n) => write!(f, "n{n}"),
            Number::Sum(a, b) => write!(f, "{a} + {b}"),
        }
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::In => "in",
        Role::Out => "out",
        Role::InOut => "inout",
    }
}

/// `: f32 on (i, j)`, and a range for whole numbers, which are converted exactly then.
fn shape(shape: Shape, is_input: bool) -> String {
    let stored = match shape.stored {
        Stored::Real => "",
        Stored::Single => ": f32",
        Stored::Double => ": f64",
        Stored::Int | Stored::Levels => ": int",
    };
    let levels = if shape.interfaces { "k+1" } else { "k" };
    let place = match shape.axes {
        [true, true] if !shape.interfaces => String::new(),
        [true, true] => format!(" on (i, j, {levels})"),
        [true, false] => " on (i, j)".to_owned(),
        [false, _] => format!(" on ({levels})"),
    };
    let range = match shape.stored {
        Stored::Int if is_input => " = -9..9",
        Stored::Levels if is_input => " = -2..3",
        Stored::Real | Stored::Single | Stored::Double | Stored::Int | Stored::Levels => "",
    };
    format!("{stored}{place}{range}")
}

impl Stencil {
    fn write(&self, number_of: usize, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "stencil s{number_of} {{")?;
        for (n, (own, of)) in self.fields.iter().enumerate() {
            writeln!(f, "    {} a{n}{}", role(*own), shape(*of, false))?;
        }
        for (n, default) in self.params.iter().enumerate() {
            let default = default.map_or(String::new(), |x| format!(" = {}", real(x)));
            writeln!(f, "    param c{n}: real{default}")?;
        }
        for (n, term) in self.lets.iter().enumerate() {
            writeln!(f, "    let d{n} = {term}")?;
        }
        for sweep in &self.sweeps {
            writeln!(f, "    sweep k {} {{", if sweep.is_up { "up" } else { "down" })?;
            for (own, term) in &sweep.values {
                let word = if matches!(own, Swept::Let(_)) { "let " } else { "" };
                writeln!(f, "        {word}{own} = {term}")?;
            }
            writeln!(f, "    }}")?;
        }
        for (field, term) in &self.outputs {
            writeln!(f, "    a{field} = {term}")?;
        }
        writeln!(f, "}}")
    }
}

impl Display for Boundary {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let rule = |rule: Rule| match rule {
            Rule::Periodic => "periodic".to_owned(),
            Rule::Copy => "copy".to_owned(),
            Rule::Mirror => "mirror".to_owned(),
            Rule::OddMirror => "-mirror".to_owned(),
            // A whole number suits fields of any type.
            Rule::Value(x) if x.trunc() == x => format!("value({})", whole(x as i64)),
            Rule::Value(x) => format!("value({})", real(x)),
            Rule::Halo => "halo".to_owned(),
        };
        let mut said = Vec::new();
        for (axis, [low, high]) in ["i", "j", "k"].into_iter().zip(self.rules) {
            match (low, high) {
                (Some(low), Some(high)) if low == high => said.push(format!("{axis}: {}", rule(low))),
                (low, high) => {
                    let sides = [("low", low), ("high", high)].into_iter();
                    said.extend(sides.filter_map(|(side, own)| Some(format!("{axis} {side}: {}", rule(own?)))));
                }
            }
        }
        let of = self.of.map_or(String::new(), |of| format!("v{of} "));
        write!(f, "boundary {of}{{ {} }}", said.join(", "))
    }
}

impl Display for Within {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let axis = ["i", "j", "k"][self.axis];
        let place = |own: &End| match own {
            End::After(n) => n.to_string(),
            End::Before(0) => format!("n{axis}"),
            End::Before(n) => format!("n{axis} - {n}"),
            End::Said(number) => number.to_string(),
        };
        let word = match (self.axis, &self.end) {
            (2, Some(_)) => "levels",
            (2, None) => "level",
            _ => axis,
        };
        match &self.end {
            Some(end) => write!(f, "{word} {}..{}", place(&self.first), place(end)),
            None => write!(f, "{word} {}", place(&self.first)),
        }
    }
}

fn actions(all: &[Action], deep: usize, f: &mut Formatter<'_>) -> fmt::Result {
    let indent = "    ".repeat(deep);
    for action in all {
        match action {
            Action::Call { stencil, reads, params, targets, fresh, within } => {
                let names: Vec<String> = targets.iter().map(|n| format!("v{n}")).collect();
                let mut arguments: Vec<String> = reads.iter().map(|n| format!("v{n}")).collect();
                let mut by_name = false;
                for (n, own) in params.iter().enumerate() {
                    match own {
                        Some(own) if by_name => arguments.push(format!("c{n} = {own}")),
                        Some(own) => arguments.push(own.to_string()),
                        // After one that is left out, others have to be named.
                        None => by_name = true,
                    }
                }
                let word = if *fresh { "let " } else { "" };
                let place = within.iter().map(Within::to_string).collect::<Vec<_>>().join(", ");
                let place = if place.is_empty() { place } else { format!(" on {place}") };
                writeln!(f, "{indent}{word}{} = s{stencil}({}){place}", names.join(", "), arguments.join(", "))?;
            }
            Action::Rename { from, to, fresh } => {
                writeln!(f, "{indent}{}v{to} = v{from}", if *fresh { "let " } else { "" })?;
            }
            Action::Let(n, own) => writeln!(f, "{indent}let n{n} = {own}")?,
            Action::Repeat(times, inner) => {
                writeln!(f, "{indent}repeat {times} {{")?;
                actions(inner, deep + 1, f)?;
                writeln!(f, "{indent}}}")?;
            }
        }
    }
    Ok(())
}

impl Display for Timed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "program own {{")?;
        for (n, variable) in self.variables.iter().enumerate() {
            if let Some(own) = variable.role {
                writeln!(f, "    {} v{n}{}", role(own), shape(variable.shape, own.is_read()))?;
            }
        }
        for (n, param) in self.params.iter().enumerate() {
            match param.whole {
                true => writeln!(f, "    param p{n}: int = {}", whole(param.default as i64))?,
                false => writeln!(f, "    param p{n}: real = {}", real(param.default))?,
            }
        }
        for boundary in &self.boundaries {
            writeln!(f, "    {boundary}")?;
        }
        actions(&self.actions, 1, f)?;
        writeln!(f, "}}")?;
        self.stencils.iter().enumerate().try_for_each(|(n, stencil)| stencil.write(n, f))
    }
}
