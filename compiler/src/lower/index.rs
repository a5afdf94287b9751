//! What stands in brackets: offsets, and parts of constant arrays.

use super::moved::Leads;
use super::scope::{Binding, FUNCTIONS, Global};
use super::value::{Alias, Bound, Nodes, Value};
use super::{Found, Lowering};
use crate::ast::{self, Expr, ExprId, Infix, Prefix};
use crate::diagnostic::{Diagnostic, wrong};
use crate::foreign::{self, axis};
use crate::ir::{Binary, FieldId, Levels, Offset, Origin, Path};
use crate::source::Span;

/// The largest offset along an axis.
const REACH: i32 = 1_000_000;

impl Lowering<'_> {
    /// `a[i-1, j+1]`, or `d[2]`.
    pub(super) fn index(&mut self, base: ExprId, parts: &[ExprId], span: Span) -> Found<Nodes> {
        // In parentheses it is the same.
        let base = self.ungrouped(base);
        if self.is_over_mesh() {
            return self.mesh_index(base, parts, span);
        }
        // A field or a constant named here is looked at more strictly than one that came by another name.
        let (named, is_constant) = match &self.file.exprs[base] {
            Expr::Name(name) => (self.field_at(name), self.names_a_constant(name)),
            _ => (None, false),
        };
        let bound = self.base(base)?;
        let is_offset = parts.first().is_some_and(|&part| self.begins_with(part, &["i", "j", "k"]));
        if let (Value::Many(items), false) = (&bound, is_offset) {
            return self.part(items.clone(), parts, span);
        }
        // `a[-1, 0, 0]`, as in GT4Py.
        if let Some(meant) = self.numbered(parts) {
            if meant == "i" {
                let found = Diagnostic::error(span, "an offset names its axis");
                let found = found.label("write the name alone for the value at the cell itself");
                return self.report(found.help("a neighbour is written `a[i-1]`, `a[i+1, j-1]` or `a[k+n]`"));
            }
            let at = self.span(parts[0]).to(self.span(*parts.last()?));
            let found = Diagnostic::error(at, "an offset names its axis").label(format!("write `[{meant}]`"));
            let help = "as in `a[i-1]`, `a[i+1, j-1]` or `a[k+n]`; an axis that is not named has offset 0";
            return self.report(found.help(help));
        }
        if let Some(found) = self.numbered_level(parts) {
            return found;
        }
        let (path, leads) = self.offsets(parts)?;
        if let (Value::Many(_), true) = (&bound, is_constant) {
            let found = Diagnostic::error(span, "the parts of a constant array are taken by whole constants");
            let found = found.label("an axis is no whole constant");
            return self.report(found.help("numbers that depend on the level are a field `on (k)`"));
        }
        if let Some(field) = named {
            if self.is_ambiguous(field, &path, leads, span) {
                return None;
            }
            let field = self.stencil.fields[field].clone();
            let lacks_columns = !field.place.horizontal && !path.steps().is_empty();
            if lacks_columns || field.place.levels == Levels::None && path.levels() != 0 {
                let missing = if lacks_columns { "horizontal axes" } else { "axis k" };
                let message = format!("`{}` has no {missing}: it is{}", field.name, field.place);
                let found = wrong(span, message, "an offset along an axis that it lacks");
                let found = found.note(field.span, "declared here");
                return self.report(found.help(format!("write `{}` without that offset", field.name)));
            }
        }
        self.check_moves(base, &bound, &path, span)?;
        let moved = bound.map(|alias| self.moved(alias, &path));
        match leads {
            None => self.place_value(moved, span),
            Some(leads) => moved.try_map(|alias| self.read_led(&alias, leads, span)),
        }
    }

    /// The expression in parentheses, or an expression without any.
    pub(super) fn ungrouped(&self, mut expr: ExprId) -> ExprId {
        while let Expr::Group(inner) = &self.file.exprs[expr] {
            expr = *inner;
        }
        expr
    }

    /// The field that a visible name stands for.
    pub(super) fn field_at(&self, name: &str) -> Option<FieldId> {
        if let Some(Binding::Field(field)) = self.scope.binding(name) { Some(*field) } else { None }
    }

    /// Whether a name is that of a constant.
    pub(super) fn names_a_constant(&self, name: &str) -> bool {
        match self.scope.binding(name) {
            Some(binding) => matches!(binding, Binding::Constant(_)),
            None => matches!(self.globals.find(name), Some(Global::Constant(_))),
        }
    }

    /// Reports an offset of what is a number by what is written: of a name that is declared as one, of a literal, of what is made
    /// of such alone. Another name for it may be shifted, an argument for one.
    pub(super) fn check_moves(&mut self, base: ExprId, bound: &Bound, path: &Path, span: Span) -> Found<()> {
        let (Value::One(_), false) = (bound, path.is_here()) else { return Some(()) };
        let Some((has_level, declared)) = self.number_written(base) else { return Some(()) };
        if has_level && path.steps().is_empty() {
            return Some(());
        }
        let own = if let Expr::Name(name) = &self.file.exprs[base] { Some(name.as_str()) } else { None };
        let what = own.map_or("this".to_owned(), |name| format!("`{name}`"));
        let found = match has_level {
            true => wrong(span, format!("{what} is the same in all columns"), "an offset to another column")
                .help("leave that offset out; what differs from column to column is a field"),
            false => wrong(span, format!("{what} is a number: it is the same everywhere"), "an offset of a number")
                .help(match (own, declared) {
                    (Some(name), Some(_)) => {
                        format!("write `{name}` alone; what differs from cell to cell is a field, `in {name}`")
                    }
                    _ => "leave the offset out; what differs from cell to cell is a field".to_owned(),
                }),
        };
        let declared = declared.flatten().filter(|_| own.is_some());
        self.report(declared.into_iter().fold(found, |found, span| found.note(span, "declared here")))
    }

    /// Whether an expression is written of numbers alone: literals, `k`, `nk`, and names that are declared as numbers. Then, whether
    /// `k` is among them, and whether and where the last of these names is declared.
    fn number_written(&self, expr: ExprId) -> Option<(bool, Option<Option<Span>>)> {
        let (mut waiting, mut has_level, mut declared) = (vec![expr], false, None);
        while let Some(next) = waiting.pop() {
            match &self.file.exprs[next] {
                Expr::Real(_) | Expr::Int(_) | Expr::Truth(_) => {}
                Expr::Name(name) => match self.scope.find(name).map(|symbol| (&symbol.binding, symbol.span)) {
                    Some((Binding::Param(_) | Binding::Constant(_), span)) => declared = Some(Some(span)),
                    Some((Binding::Field(_) | Binding::Variable(_) | Binding::Function(_), _)) => return None,
                    Some((Binding::Value(_) | Binding::Slot(_) | Binding::Broken, _)) => return None,
                    None => match (name.as_str(), self.globals.find(name)) {
                        (_, Some(Global::Constant(_) | Global::Param(..))) => declared = Some(None),
                        ("k", _) => has_level = true,
                        ("nk" | "pi", _) => {}
                        _ => return None,
                    },
                },
                Expr::Group(inner) | Expr::Prefix(_, inner) | Expr::Level(inner) => waiting.push(*inner),
                // A part of a constant array is one of its numbers.
                Expr::Index(inner, _) | Expr::Component(inner, _) => waiting.push(*inner),
                Expr::Infix(_, left, right) => waiting.extend([*left, *right]),
                Expr::Call(function, arguments) if FUNCTIONS.contains(&function.text.as_str()) => {
                    waiting.extend(arguments.iter().map(|argument| argument.value));
                }
                Expr::Call(..) | Expr::Choose(..) | Expr::Fold(..) | Expr::Vector(_) | Expr::Block(_) => return None,
            }
        }
        Some((has_level, declared))
    }

    /// Whether an expression begins with one of these names: with `k` does `k - n + 1`.
    pub(super) fn begins_with(&self, part: ExprId, names: &[&str]) -> bool {
        let mut first = part;
        while let Expr::Infix(_, left, _) = &self.file.exprs[first] {
            first = *left;
        }
        matches!(&self.file.exprs[first], Expr::Name(own) if names.contains(&own.as_str()))
    }

    /// What `alias` is where `path` leads. A number, or a field without that axis, stays as it is.
    pub(super) fn moved(&self, alias: Alias, path: &Path) -> Alias {
        match alias {
            Alias::Field(field, own, part) => {
                let place = self.stencil.fields[field].place;
                let mut way = if place.horizontal { path.clone() } else { Path::levels_only(path.levels()) };
                if place.levels == Levels::None {
                    way = way.without_levels();
                }
                Alias::Field(field, way.then(&own), part)
            }
            Alias::Def(def, own) if self.stencil.defs[def].origin == Origin::Constant => Alias::Def(def, own),
            Alias::Def(def, own) => Alias::Def(def, path.then(&own)),
            Alias::Ahead(field, own) => Alias::Ahead(field, path.then(&own)),
            Alias::Slots(field, own, part) => Alias::Slots(field, path.then(&own), part),
            Alias::Param(_) | Alias::Int(_) => alias,
        }
    }

    /// Where brackets lead, and what leads to the level, if it is no known number of levels.
    fn offsets(&mut self, parts: &[ExprId]) -> Found<(Path, Option<Leads>)> {
        let (mut found, mut leads): ([Option<i32>; 3], Option<Leads>) = ([None; 3], None);
        for &part in parts {
            let said = self.level_said(part);
            let is_said = said.is_some();
            let (axis, by, at) = match said {
                None if !self.begins_with(part, &["k"]) => self.offset(part)?,
                said => {
                    let own = said.unwrap_or_else(|| self.level_offset(part))?;
                    if found[2].is_some() && (is_said || leads.is_some_and(Leads::is_level)) {
                        return self.level_twice(part);
                    }
                    leads = leads.or(own.leads);
                    (2, own.by, self.span(part))
                }
            };
            if found[axis].is_some() {
                let found = wrong(at, format!("the axis `{}` is named twice", ["i", "j", "k"][axis]), "named again");
                return self.report(found.help("each axis is named at most once; one that is not named has offset 0"));
            }
            found[axis] = Some(by);
        }
        let by = |axis: usize| found[axis].unwrap_or(0);
        Some((Path::from_offset(Offset { i: by(0), j: by(1), k: by(2) }), leads))
    }

    /// Reports `a[0, 0, n]`, as in GT4Py, where `n` is a field.
    fn numbered_level<T>(&mut self, parts: &[ExprId]) -> Option<Found<T>> {
        let (&level, columns) = parts.split_last()?;
        let name = match &self.file.exprs[self.ungrouped(level)] {
            Expr::Name(name) if self.is_of_a_field(level) && columns.len() == 2 => name,
            _ => return None,
        };
        let columns = self.numbered(columns)?;
        let meant = if columns == "i" { format!("k + {name}") } else { format!("{columns}, k + {name}") };
        let at = self.span(parts[0]).to(self.span(level));
        let found = Diagnostic::error(at, "an offset names its axis").label(format!("write `[{meant}]`"));
        Some(
            self.report(
                found.help("a level that a field says is written `a[k + n]`, that of a neighbour `a[i+1, k + n]`"),
            ),
        )
    }

    /// `i-1, j` for the offsets `-1, 0`, if all are written numbers.
    fn numbered(&self, parts: &[ExprId]) -> Option<String> {
        let axes = ["i", "j", "k"];
        if parts.len() > axes.len() {
            return None;
        }
        let numbers = parts.iter().map(|&part| self.number(part)).collect::<Option<Vec<i64>>>()?;
        let named = axes.iter().zip(numbers).filter(|&(_, number)| number != 0);
        let named: Vec<String> = named.map(|(axis, number)| format!("{axis}{number:+}")).collect();
        Some(if named.is_empty() { "i".to_owned() } else { named.join(", ") })
    }

    fn number(&self, part: ExprId) -> Option<i64> {
        let (sign, part) = match self.file.exprs[part] {
            Expr::Prefix(Prefix::Negate, inner) => (-1, inner),
            _ => (1, part),
        };
        if let Expr::Int(x) = self.file.exprs[part] { Some(sign * x) } else { None }
    }

    /// The brackets that would read `parts` as an offset, if they look like one.
    pub(super) fn offset_text(&self, parts: &[ExprId]) -> Option<String> {
        if let Some(numbered) = self.numbered(parts) {
            return (!parts.is_empty()).then(|| format!("[{numbered}]"));
        }
        let texts = parts.iter().map(|&part| self.axis_text(part)).collect::<Option<Vec<_>>>()?;
        let moved: Vec<String> = texts.iter().filter(|text| text.len() > 1).cloned().collect();
        match (texts.as_slice(), moved.as_slice()) {
            ([], _) => None,
            (_, []) => Some(String::new()),
            _ => Some(format!("[{}]", moved.join(", "))),
        }
    }

    /// `i-1` for `i-1`, `x-1`, `I - 1` and `-1 + i`.
    fn axis_text(&self, part: ExprId) -> Option<String> {
        let axis = |part: ExprId| match &self.file.exprs[part] {
            Expr::Name(name) => match name.as_str() {
                "i" | "j" | "k" => Some(name.clone()),
                _ => axis(name).map(str::to_owned),
            },
            _ => None,
        };
        match &self.file.exprs[part] {
            Expr::Infix(Infix::Arithmetic(op @ (Binary::Add | Binary::Sub)), left, right) => {
                let sign = if *op == Binary::Sub { -1 } else { 1 };
                match (axis(*left), self.number(*right)) {
                    (Some(axis), Some(by)) => Some(format!("{axis}{:+}", sign * by)),
                    _ if sign > 0 => Some(format!("{}{:+}", axis(*right)?, self.number(*left)?)),
                    _ => None,
                }
            }
            _ => axis(part),
        }
    }

    /// What is no offset, with a guess.
    fn no_offset<T>(&mut self, part: ExprId, at: Span) -> Found<T> {
        let help = "an offset is written `a[i-1]`, `a[i+1, j-1]` or `a[k+n]`; each axis that is not named has offset 0";
        let found = Diagnostic::error(at, "this is no offset").help(help);
        if matches!(self.file.exprs[part], Expr::Component(..)) {
            return self.only_over_mesh(at, "this is no offset", "slots of maps lead to neighbours on meshes");
        }
        // `a[n]` where `a[i+n]` is meant.
        if let Expr::Name(name) = &self.file.exprs[part]
            && let Some(Binding::Value(Value::One(Alias::Int(_)))) = self.scope.use_name(name).map(|own| own.binding)
        {
            return self.report(found.label("an axis is missing before it, as in `i+n`"));
        }
        self.report(match self.axis_text(part) {
            Some(meant) => found.label(format!("write `{meant}`")),
            None => found.label("expected `i`, `j` or `k`, plus or minus a whole constant"),
        })
    }

    /// Reports `[k+1, level 0]` and `[level 0, level 1]`.
    pub(super) fn level_twice<T>(&mut self, part: ExprId) -> Found<T> {
        let found = wrong(self.span(part), "the level is said twice", "said again");
        self.report(
            found.help("`level n` is the level itself, and `k+n` so many levels further: leave one of them out"),
        )
    }

    /// `i + n - 1`: the axis and what is added to it.
    pub(super) fn offset(&mut self, part: ExprId) -> Found<(usize, i32, Span)> {
        let file = self.file;
        let at = file.exprs.span(part);
        let mut terms = Vec::new();
        let mut first = part;
        while let Expr::Infix(Infix::Arithmetic(op @ (Binary::Add | Binary::Sub)), left, right) = &file.exprs[first] {
            terms.push((*op, *right));
            first = *left;
        }
        let axis =
            ["i", "j", "k"].iter().position(|&axis| matches!(&file.exprs[first], Expr::Name(own) if own == axis));
        let Some(axis) = axis else { return self.no_offset(part, at) };
        let mut sum = 0i64;
        for (op, term) in terms {
            let by = i64::from(self.whole_constant(term)?);
            sum += if op == Binary::Sub { -by } else { by };
        }
        match i32::try_from(sum) {
            Ok(by) if (-REACH..=REACH).contains(&by) => Some((axis, by, at)),
            Ok(_) | Err(_) => self.report_number(wrong(at, format!("an offset is at most {REACH} cells"), "too far")),
        }
    }

    /// A part of a constant array.
    pub(super) fn part(&mut self, items: Vec<Alias>, parts: &[ExprId], span: Span) -> Found<Nodes> {
        let [part] = parts else {
            return self.report(wrong(span, "an array has one index", "one whole constant is needed"));
        };
        let at = self.span(*part);
        let index = self.whole_constant(*part)?;
        self.part_at(items, i64::from(index), at, span)
    }

    /// `v.0`
    pub(super) fn component(&mut self, base: ExprId, part: &ast::Name, span: Span) -> Found<Nodes> {
        let bound = self.base(base)?;
        match (bound, part.text.parse::<i64>()) {
            (Value::Many(items), Ok(index)) => self.part_at(items, index, part.span, span),
            (Value::One(_), Ok(_)) => self.report(wrong(part.span, "a single number has no parts", "nothing to take")),
            (_, Err(_)) => {
                let message = format!("`.{}` is no part", part.text);
                let found = wrong(part.span, message, "a whole number is needed, as in `v.0`");
                self.report(found.help_if(foreign::attribute(&part.text)))
            }
        }
    }

    fn part_at(&mut self, items: Vec<Alias>, index: i64, at: Span, span: Span) -> Found<Nodes> {
        let count = items.len();
        let item = usize::try_from(index).ok().and_then(|index| items.into_iter().nth(index));
        match item {
            Some(item) => self.place_value(Value::One(item), span),
            None => {
                let found = Diagnostic::error(at, format!("part {index} of {count}"));
                let found = found.label(format!("expected 0 to {}", count.saturating_sub(1)));
                self.report_number(found.help("parts are counted from 0"))
            }
        }
    }
}
