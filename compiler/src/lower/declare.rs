//! Declarations: fields and parameters.

use super::rounding::Rounding;
use super::scope::Binding;
use super::value::{Alias, Bound};
use super::{Found, Lowering};
use crate::ast;
use crate::diagnostic::{Diagnostic, wrong};
use crate::ir::scalar;
use crate::ir::{Body, Field, FieldId, Kind, Levels, Node, NodeId, Origin, Param, ParamId, Path, Place, Role, Stored};
use crate::source::Span;
use crate::text::FreeText;

/// A field without documentation and range.
pub(super) fn new_field(name: &str, role: Role, place: Place, stored: Stored, span: Span) -> Field {
    Field { name: name.to_owned(), doc: FreeText::default(), role, place, stored, is_single: false, range: None, span }
}

impl<'a> Lowering<'a> {
    /// `in a, b: f32 on (k)` in a stencil.
    pub(super) fn declare_fields(&mut self, fields: &'a ast::Fields) {
        let Some(declared) = self.declared(fields, false) else { return self.define_broken(&fields.names) };
        // A name of the file's for a type says how one computes with it, too.
        let is_single = fields.typed.is_some_and(|typed| typed.is_named && typed.stored == Stored::F32);
        for name in &fields.names {
            self.add_field(name, Field { is_single, ..declared.clone() });
        }
    }

    /// Adds a field with a name, unless that has a meaning already.
    pub(super) fn add_field(&mut self, name: &'a ast::Name, field: Field) -> Found<FieldId> {
        let is_new = self.scope.find(&name.text).is_none();
        let own = Field { name: name.text.clone(), span: name.span, ..field };
        let id = is_new.then(|| self.stencil.fields.add(own));
        self.define(name, id.map_or(Binding::Broken, Binding::Field));
        id
    }

    /// What a declaration says of each of its fields.
    pub(super) fn declared(&mut self, fields: &'a ast::Fields, in_program: bool) -> Found<Field> {
        let at = fields.role.span;
        let role = match fields.role.text.as_str() {
            "in" => Role::In,
            "out" => Role::Out,
            "inout" => Role::InOut,
            "inc" if self.is_over_mesh() && !in_program => Role::Inc,
            _ => {
                let message = "an `inc` adds to the cells of a mesh";
                if in_program {
                    return self.report(wrong(at, message, "a program has `in`, `out` and `inout`"));
                }
                return self.only_over_mesh(at, message, "a grid stencil has `in`, `out` and `inout`");
            }
        };
        if let Some(original) = &fields.original {
            self.check_original(original, fields, in_program)?;
        }
        let stored = fields.typed.as_ref().map_or(Some(Stored::Real), |typed| self.stored(typed));
        let place = self.place(fields).and_then(|place| {
            if in_program {
                self.check_place(role, place, fields)?;
            } else {
                self.check_written(role, place, at)?;
            }
            Some(place)
        });
        let (stored, place) = (stored?, place?);
        let range = fields.drawn.and_then(|(low, high)| self.range(low, high, role, stored));
        Some(Field { range, doc: FreeText::new(&fields.doc), ..new_field("", role, place, stored, at) })
    }

    /// `in x as middle on edge`: what a mesh calls a field that is read.
    fn check_original(&mut self, original: &ast::Name, fields: &ast::Fields, in_program: bool) -> Found<()> {
        let name = fields.names.first().map_or("", |name| &name.text);
        let found = Diagnostic::error(original.span, "another name is for what comes with a mesh");
        let found = match (self.is_over_mesh() && in_program, fields.names.len()) {
            (false, _) => {
                found.label("only a program over a mesh takes that by itself").help(format!("declare it as `{name}`"))
            }
            (true, 2..) => {
                found.label(format!("a name for `{}` alone", original.text)).help("declare the others by themselves")
            }
            (true, _) if fields.role.text == "out" => {
                found.label("of what is written").help(format!("declare it as `{name}`"))
            }
            (true, _) => return Some(()),
        };
        self.report(found)
    }

    fn stored(&mut self, typed: &ast::Typed) -> Found<Stored> {
        if let (Some((_, parts)), false) = (typed.parts, self.is_over_mesh()) {
            let found = wrong(parts, "vector fields live on the sets of a mesh", "one number a cell");
            return self.report(found.help("declare one field for each part"));
        }
        Some(typed.stored)
    }

    fn place(&mut self, fields: &ast::Fields) -> Found<Place> {
        if self.is_over_mesh() {
            return self.mesh_place(fields);
        }
        let on = |horizontal, levels| Some(Place { horizontal, levels, home: None });
        let Some(place) = &fields.place else { return on(true, Levels::Full) };
        let (axes, span) = match place {
            ast::PlaceOn::Axes(axes, span) => (axes, *span),
            ast::PlaceOn::Mesh(trail, _) => {
                let label = "write axes in parentheses, as in `on (i, j)`";
                return self.only_over_mesh(trail.span, "sets and maps belong to meshes", label);
            }
        };
        let texts: Vec<&str> = axes.iter().map(|axis| axis.text.as_str()).collect();
        match texts.as_slice() {
            ["i", "j", "k"] => on(true, Levels::Full),
            ["i", "j", "k+1"] => on(true, Levels::Interfaces),
            ["i", "j"] => on(true, Levels::None),
            ["k"] => on(false, Levels::Full),
            ["k+1"] => on(false, Levels::Interfaces),
            _ => {
                let label = "one of `(i, j, k)`, `(i, j)`, `(k)`, `(i, j, k+1)`, `(k+1)`";
                let found = wrong(span, "a field cannot live on these axes", label);
                self.report(match texts.as_slice() {
                    ["i"] | ["j"] => found.help("on an unstructured grid there is no `i` of its own: use `(i, j)`"),
                    [] => found.help("a single number is a `param`"),
                    _ => found,
                })
            }
        }
    }

    /// `= 0.5..1.5`
    fn range(&mut self, low: ast::ExprId, high: ast::ExprId, role: Role, stored: Stored) -> Found<(f64, f64)> {
        let span = self.span(low).to(self.span(high));
        if !role.is_read() {
            return self.report(wrong(span, "a range says what random input is drawn from", "an output is computed"));
        }
        if stored == Stored::Bool {
            return self.report(wrong(span, "a `bool` has no range", "drawn from true and false"));
        }
        let (low, high) = (self.plain_number(low)?, self.plain_number(high)?);
        if low < high {
            return Some((low, high));
        }
        let found = Diagnostic::error(span, format!("the range {low}..{high} is empty"));
        let found = found.label("the first number is included, the second is not");
        self.report(found.help("the smaller number comes first"))
    }

    /// The value of a constant expression, in double precision.
    fn plain_number(&mut self, expr: ast::ExprId) -> Found<f64> {
        let span = self.span(expr);
        let body = self.constant_body(expr, Some(Kind::Real), "range")?;
        match self.constants.folded.value(&self.stencil, &body) {
            Some(scalar::Value::Real(x)) if x.is_finite() => Some(x),
            _ => self.report(Diagnostic::error(span, "this is no finite number").label("a number is needed")),
        }
    }

    pub(super) fn declare_params(&mut self, params: &'a ast::Params) {
        for index in 0..params.names.len() {
            let name = &params.names[index];
            let is_new = self.scope.find(&name.text).is_none();
            let id = self.add_param(params, index).filter(|_| is_new);
            self.define(name, id.map_or(Binding::Broken, Binding::Param));
        }
    }

    /// A parameter of the file, which is the stencil's from here on.
    pub(super) fn file_param(&mut self, params: &'a ast::Params, index: usize) -> Found<ParamId> {
        self.scope.use_global(&params.names[index].text);
        // Its default sees the names of the file alone, wherever it is used first.
        self.within(0, |own| own.add_param(params, index))
    }

    /// Adds a parameter to the stencil: one of its own, or one of the file that is used for the first time.
    fn add_param(&mut self, params: &'a ast::Params, index: usize) -> Found<ParamId> {
        let name = &params.names[index];
        if let Some(known) = self.params.get(&name.span) {
            return *known;
        }
        let id = self.new_param(params, index);
        self.params.insert(name.span, id);
        id
    }

    fn new_param(&mut self, params: &'a ast::Params, index: usize) -> Found<ParamId> {
        let name = &params.names[index];
        let kind = match &params.typed {
            None => Kind::Real,
            Some(ast::Typed { parts: Some((_, parts)), .. }) => {
                return self.report(wrong(*parts, "a parameter is a single number", "one number"));
            }
            Some(ast::Typed { stored: Stored::F64, span, .. }) => {
                let message = "a parameter is `real`, `f32`, `int` or `bool`, not `f64`";
                let help =
                    "`--precision` chooses what `real` is, and that is double precision unless it says otherwise";
                return self.report(wrong(*span, message, "write `real`").help(help));
            }
            Some(ast::Typed { stored, .. }) => stored.kind(),
        };
        let default = match params.default {
            Some(default) => Some(self.constant_body(default, Some(kind), &name.text)?),
            None => None,
        };
        let is_single = params.typed.is_some_and(|typed| typed.stored == Stored::F32);
        if let (Some(body), true) = (&default, is_single) {
            self.check_single(body, &name.text)?;
        }
        let (doc, span) = (FreeText::new(&params.doc), name.span);
        Some(self.stencil.params.add(Param { name: name.text.clone(), doc, kind, is_single, default, span }))
    }

    /// Does something where everything must be constant.
    pub(super) fn as_constant<T>(&mut self, then: impl FnOnce(&mut Self) -> T) -> T {
        self.constants.depth += 1;
        let value = then(self);
        self.constants.depth -= 1;
        value
    }

    /// A body that reads nothing, no parameter and no level, converted to `kind`.
    pub(super) fn constant_body(&mut self, expr: ast::ExprId, kind: Option<Kind>, what: &str) -> Found<Body> {
        let span = self.span(expr);
        let body = self.body(|own| {
            let node = own.as_constant(|own| own.scalar(expr))?;
            kind.map_or(Some(node), |kind| own.convert(node, kind, span, what))
        })?;
        self.check_constant(&body, span)?;
        Some(body)
    }

    pub(super) fn check_constant(&mut self, body: &Body, span: Span) -> Found<()> {
        for (id, node) in body.iter() {
            let what = match node {
                Node::Read { .. } | Node::Present { .. } | Node::InZone(_) => "a field",
                Node::Param(_) => "a parameter",
                Node::Level | Node::Count(_) => "a level",
                Node::Use { def, .. } if self.stencil.defs[*def].origin != Origin::Constant => "a value at a cell",
                _ => continue,
            };
            let place = if body.span_of(id).end > 0 { body.span_of(id) } else { span };
            let found = wrong(place, "this must be known when compiling", format!("{what} is known when running only"));
            return self.report(found);
        }
        Some(())
    }

    /// The value of a constant: computed once a stencil, a whole one at once unless it depends on the precision, a real one
    /// when that is known.
    pub(super) fn constant(&mut self, constant: &'a ast::Constant) -> Found<Bound> {
        let (name, span) = (&constant.name, self.span(constant.value));
        if self.constants.open.contains(&name.text) {
            let cycle = [self.constants.open.as_slice(), std::slice::from_ref(&name.text)].concat().join("` -> `");
            let found = Diagnostic::error(name.span, format!("the constant `{}` is made of itself", name.text));
            return self.report(found.label(format!("`{cycle}`")));
        }
        let typed = |lowering: &mut Self, node: NodeId| {
            let Some(ast::Typed { stored, .. }) = constant.typed else { return Some(node) };
            let node = lowering.convert(node, stored.kind(), span, &name.text)?;
            if stored == Stored::F32 { lowering.node(Node::ToSingle(node), Kind::Real, span) } else { Some(node) }
        };
        self.constants.open.push(name.text.clone());
        let bodies = self.bodies(|own| {
            let value = own.as_constant(|own| own.value(constant.value))?;
            value.map(|node| typed(own, node)).collected()
        });
        self.constants.open.pop();
        let alias = |body: Body| {
            self.check_constant(&body, span)?;
            match if body.kind() == Kind::Int { self.constants.known.whole(&body) } else { None } {
                Some(x) => Some(Alias::Int(x)),
                None => self
                    .add_def(body, Rounding::Any, &name.text, Origin::Constant)
                    .map(|def| Alias::Def(def, Path::default())),
            }
        };
        bodies?.map(alias).collected()
    }
}
