//! Names as values.

use super::rounding::Rounding;
use super::scope::{Binding, Global};
use super::value::{Alias, Bound, Nodes, Value};
use super::{Found, Lowering};
use crate::ast;
use crate::diagnostic::{Diagnostic, wrong};
use crate::ir::program::GridAxis;
use crate::ir::{Kind, Node, Role};
use crate::source::Span;

impl<'a> Lowering<'a> {
    /// A name as a value in this body.
    pub(super) fn name(&mut self, name: &str, span: Span) -> Found<Nodes> {
        if let Some(coordinate) = self.coordinate(name, span) {
            return coordinate;
        }
        match name {
            "k" | "nk" if self.lacks_levels() => return self.no_levels(span, "there is no `k`"),
            "k" => return self.one(Node::Level, Kind::Int, span),
            "nk" => return self.one(Node::Count(GridAxis::K), Kind::Int, span),
            "pi" => return self.one(Node::Real(std::f64::consts::PI), Kind::Real, span),
            // A name that was taken was told where it is declared.
            "i" | "j" | "ni" | "nj" if self.scope.find(name).is_some() => return None,
            "i" | "j" | "ni" | "nj" if self.is_over_mesh() => return self.no_axes(span, "not known to a stencil"),
            "ni" | "nj" if self.counts_columns && self.calls.is_empty() && self.constants.open.is_empty() => {
                let axis = if name == "ni" { GridAxis::I } else { GridAxis::J };
                return self.one(Node::Count(axis), Kind::Int, span);
            }
            "i" | "j" | "ni" | "nj" => {
                let is_axis = name.len() == 1;
                let label = if is_axis { "stands only in offsets, as in `a[i-1]`" } else { "not known to a stencil" };
                let found = Diagnostic::error(span, format!("a stencil knows no `{name}`")).label(label);
                return self.report(found.help(match is_axis {
                    true => {
                        "on an unstructured grid there are no coordinates; pass them as a field `on (i, j)`".to_owned()
                    }
                    false => format!(
                        "`{name}` stands where it is said what is computed, `{0} 2..{name} - 2`; elsewhere pass it as a parameter",
                        &name[1..]
                    ),
                }));
            }
            _ => {}
        }
        let bound = self.resolve(name, span)?;
        if self.is_over_mesh() {
            self.check_named_here(name, &bound, span)?;
        }
        self.place_value(bound, span)
    }

    /// What a name stands for, if it is a value.
    pub(super) fn resolve(&mut self, name: &str, span: Span) -> Found<Bound> {
        let one = |alias| Some(Value::One(alias));
        if let Some(symbol) = self.scope.use_name(name) {
            return match symbol.binding {
                Binding::Field(field) if !self.stencil.fields[field].role.is_read() => {
                    if let Some(bound) = self.swept_output(field, name) {
                        return Some(bound);
                    }
                    if self.stencil.fields[field].role == Role::Reduce {
                        return self.unreadable(field, span);
                    }
                    let found = Diagnostic::error(span, format!("`{name}` is an output: it cannot be read"));
                    let found =
                        found.label("read here").note(self.stencil.fields[field].span, "declared as `out` here");
                    self.report(found.help("name the value with `let`, use that, and assign it to the output"))
                }
                Binding::Field(field) if self.stencil.fields[field].role == Role::Inc => self.unreadable(field, span),
                Binding::Field(field) => Some(self.field_value(field)),
                Binding::Variable(variable) => match self.number_field(variable) {
                    Some(field) => Some(self.field_value(field)),
                    None => {
                        let message = format!("`{name}` is a field: a program computes with numbers alone");
                        let help = format!("compute with it in a stencil, and call that: `new = stencil({name})`");
                        self.report(wrong(span, message, "a field").help(help))
                    }
                },
                Binding::Param(param) => one(Alias::Param(param)),
                Binding::Constant(constant) => {
                    let position = self.scope.position(name);
                    self.constant_in(constant, position)
                }
                Binding::Function(_) => self.not_called(name, span),
                Binding::Value(bound) => Some(bound),
                Binding::Slot(_) => {
                    let found = wrong(span, format!("`{name}` is a place, no value"), "stands in brackets");
                    self.report(found.help(format!("as in `a[{name}]`; `sum(n in 0..=3)` counts with numbers")))
                }
                Binding::Broken => None,
            };
        }
        if let Some(bound) = self.ahead(name) {
            return Some(bound);
        }
        match self.globals.find(name) {
            Some(Global::Param(params, index)) => one(Alias::Param(self.file_param(params, index)?)),
            Some(Global::Constant(constant)) => {
                self.scope.use_global(name);
                self.constant_in(constant, 0)
            }
            Some(Global::Function(_)) => self.not_called(name, span),
            Some(Global::Program) => {
                self.report(wrong(span, format!("`{name}` is a program, no value"), "programs are run, not called"))
            }
            Some(Global::Type(_)) => {
                let found = wrong(span, format!("`{name}` is a type, no value"), "not a value");
                self.report(found.help(format!("`{name}(a)` is a number of this type")))
            }
            Some(Global::Mesh) => self.report(wrong(span, format!("`{name}` is a mesh, no value"), "not a value")),
            Some(Global::Stencil) => {
                let found = wrong(span, format!("`{name}` is a stencil, no value"), "stencils are called by programs");
                self.report(found.help("share a formula between stencils as a `fn`"))
            }
            None => match self.part_of_mesh(name, span) {
                Some(found) => self.report_alone(found),
                None => self.unknown(name, span, "name"),
            },
        }
    }

    fn not_called<T>(&mut self, name: &str, span: Span) -> Found<T> {
        self.report(wrong(span, format!("`{name}` is a function"), format!("call it: `{name}(...)`")))
    }

    /// A constant, which sees the names of the file and those of the stencil before it.
    pub(super) fn constant_in(&mut self, constant: &'a ast::Constant, horizon: usize) -> Found<Bound> {
        if let Some(known) = self.constants.values.get(&constant.name.span) {
            return known.clone();
        }
        let value = self.within(horizon, |own| own.constant(constant));
        self.constants.values.insert(constant.name.span, value.clone());
        value
    }

    /// A bound value in this body.
    pub(super) fn place_value(&mut self, bound: Bound, span: Span) -> Found<Nodes> {
        bound
            .map(|alias| {
                let kind = self.kind_of_alias(&alias);
                self.check_here(&alias, span)?;
                let node = match alias {
                    Alias::Field(field, path, part) => Node::Read { field, path, part, by: None },
                    Alias::Slots(..) => return None,
                    Alias::Ahead(field, path) => self.read_ahead(field, path, span)?,
                    Alias::Def(def, path) => self.use_of(def, path, span)?,
                    Alias::Param(param) => Node::Param(param),
                    Alias::Int(x) => Node::Int(x),
                };
                match &node {
                    Node::Param(param) if self.stencil.params[*param].is_single => {
                        let whole = self.append(node, kind, span, Rounding::Real)?;
                        self.node(Node::ToSingle(whole), kind, span)
                    }
                    _ => self.node(node, kind, span),
                }
            })
            .collected()
    }
}
