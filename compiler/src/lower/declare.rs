//! Declarations: fields and parameters.

use super::scope::Binding;
use super::value::Alias;
use super::{Found, Lowering};
use crate::ast;
use crate::diagnostic::Diagnostic;
use crate::ir::scalar;
use crate::ir::{Body, Field, Kind, Levels, Node, NodeId, Origin, Param, ParamId, Place, Role, Stored};
use crate::source::Span;
use crate::text::FreeText;

impl<'a> Lowering<'a> {
    pub(super) fn declare_fields(&mut self, fields: &'a ast::Fields) {
        let role = match fields.role.text.as_str() {
            "in" => Role::In,
            "out" => Role::Out,
            "inout" => Role::InOut,
            "inc" if self.is_over_mesh() => Role::Inc,
            _ => {
                self.report::<()>(
                    Diagnostic::error(fields.role.span, "an `inc` adds to the cells of a mesh")
                        .label("a grid stencil has `in`, `out` and `inout`")
                        .help("a stencil over a mesh says so: `stencil name over mesh.set`"),
                );
                // The names exist all the same, so that their uses are not reported too.
                return fields.names.iter().for_each(|name| self.define(name, Binding::Broken));
            }
        };
        let stored = fields.typed.as_ref().map_or(Some(Stored::Real), |typed| self.stored(typed));
        let place = self.place(fields);
        let place = place.and_then(|place| self.check_written(role, place, fields.role.span).map(|()| place));
        let (Some(stored), Some(place)) = (stored, place) else {
            // The names exist all the same, so that their uses are not reported too.
            fields.names.iter().for_each(|name| self.define(name, Binding::Broken));
            return;
        };
        let range = fields.drawn.and_then(|(low, high)| self.range(low, high, role, stored));
        for name in &fields.names {
            let field = Field {
                name: name.text.clone(),
                doc: FreeText::new(&fields.doc),
                role,
                place,
                stored,
                range,
                span: name.span,
            };
            let known = self.scope.find(&name.text).is_some();
            if !known {
                let id = self.stencil.fields.add(field);
                self.define(name, Binding::Field(id));
            } else {
                self.define(name, Binding::Broken);
            }
        }
    }

    pub(super) fn stored(&mut self, typed: &ast::Typed) -> Found<Stored> {
        if let (Some((_, parts)), false) = (typed.parts, self.is_over_mesh()) {
            return self.report(
                Diagnostic::error(parts, "vector fields live on the sets of a mesh")
                    .label("one number a cell")
                    .help("declare one field for each part"),
            );
        }
        Some(match typed.scalar.text.as_str() {
            "f32" => Stored::F32,
            "f64" => Stored::F64,
            "int" => Stored::Int,
            "bool" => Stored::Bool,
            _ => Stored::Real,
        })
    }

    pub(super) fn place(&mut self, fields: &ast::Fields) -> Found<Place> {
        let place = fields.place.as_ref();
        if self.is_over_mesh() {
            return self.mesh_place(place, fields.typed.as_ref(), fields.role.span);
        }
        let on = |horizontal, levels| Some(Place { horizontal, levels, home: None });
        let Some(place) = place else { return on(true, Levels::Full) };
        let (axes, span) = match place {
            ast::PlaceOn::Axes(axes, span) => (axes, *span),
            ast::PlaceOn::Mesh(trail, _) => {
                return self.report(
                    Diagnostic::error(trail.span, "sets and maps belong to meshes")
                        .label("write axes in parentheses, as in `on (i, j)`")
                        .help("a stencil over a mesh says so: `stencil name over mesh.set`"),
                );
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
                let mut diagnostic = Diagnostic::error(span, "a field cannot live on these axes")
                    .label("one of `(i, j, k)`, `(i, j)`, `(k)`, `(i, j, k+1)`, `(k+1)`");
                if texts == ["i"] || texts == ["j"] {
                    diagnostic = diagnostic.help("on an unstructured grid there is no `i` of its own: use `(i, j)`");
                }
                if texts.is_empty() {
                    diagnostic = diagnostic.help("a single number is a `param`");
                }
                self.report(diagnostic)
            }
        }
    }

    /// `= 0.5..1.5`
    pub(super) fn range(
        &mut self,
        low: ast::ExprId,
        high: ast::ExprId,
        role: Role,
        stored: Stored,
    ) -> Option<(f64, f64)> {
        let (low_span, high_span) = (self.file.exprs.span(low), self.file.exprs.span(high));
        let span = low_span.to(high_span);
        if !role.is_read() {
            return self.report(
                Diagnostic::error(span, "a range says what random input is drawn from").label("an output is computed"),
            );
        }
        if stored == Stored::Bool {
            return self.report(Diagnostic::error(span, "a `bool` has no range").label("drawn from true and false"));
        }
        let (low, high) = (self.plain_number(low)?, self.plain_number(high)?);
        if low < high {
            return Some((low, high));
        }
        self.report(
            Diagnostic::error(span, format!("the range {low}..{high} is empty"))
                .label("the first number is included, the second is not")
                .help("the smaller number comes first"),
        )
    }

    /// The value of a constant expression, in double precision.
    fn plain_number(&mut self, expr: ast::ExprId) -> Found<f64> {
        let span = self.file.exprs.span(expr);
        let body = self.constant_body(expr, Some(Kind::Real), "range")?;
        match self.folded.value(&self.stencil, &body) {
            Some(scalar::Value::Real(x)) if x.is_finite() => Some(x),
            _ => self.report(Diagnostic::error(span, "this is no finite number").label("a number is needed")),
        }
    }

    pub(super) fn declare_params(&mut self, params: &'a ast::Params) {
        for index in 0..params.names.len() {
            let name = &params.names[index];
            let known = self.scope.find(&name.text).is_some();
            let binding = match (known, self.add_param(params, index)) {
                (false, Some(id)) => Binding::Param(id),
                _ => Binding::Broken,
            };
            self.define(name, binding);
        }
    }

    /// Adds a parameter to the stencil: one of its own, or one of the file that is used for the first time.
    pub(super) fn add_param(&mut self, params: &'a ast::Params, index: usize) -> Found<ParamId> {
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
            Some(typed) => match (typed.scalar.text.as_str(), typed.parts) {
                (_, Some((_, parts))) => {
                    return self.report(Diagnostic::error(parts, "a parameter is a single number").label("one number"));
                }
                ("real", None) => Kind::Real,
                ("int", None) => Kind::Int,
                ("bool", None) => Kind::Bool,
                (other, None) => {
                    let message = format!("a parameter is `real`, `int` or `bool`, not `{other}`");
                    return self.report(
                        Diagnostic::error(typed.scalar.span, message)
                            .label("write `real`")
                            .help("`f32` and `f64` say how a field is stored; `--precision` chooses what `real` is"),
                    );
                }
            },
        };
        let default = match params.default {
            Some(default) => Some(self.constant_body(default, Some(kind), &name.text)?),
            None => None,
        };
        let param = Param { name: name.text.clone(), doc: FreeText::new(&params.doc), kind, default, span: name.span };
        Some(self.stencil.params.add(param))
    }

    /// A body that reads nothing, no parameter and no level, converted to `kind`.
    pub(super) fn constant_body(&mut self, expr: ast::ExprId, kind: Option<Kind>, what: &str) -> Found<Body> {
        self.bodies.push(Body::new());
        self.constant_depth += 1;
        let value = self.scalar(expr);
        self.constant_depth -= 1;
        let span = self.file.exprs.span(expr);
        let value = match kind {
            Some(kind) => value.and_then(|value| self.convert(value, kind, span, what)),
            None => value,
        };
        let body = self.bodies.pop().unwrap_or_default();
        let body = body.rooted(value?);
        self.check_constant(&body, span)?;
        Some(body)
    }

    pub(super) fn check_constant(&mut self, body: &Body, span: Span) -> Found<()> {
        for (id, node) in body.iter() {
            let what = match node {
                Node::Read { .. } | Node::Present { .. } => "a field",
                Node::Param(_) => "a parameter",
                Node::Level | Node::LevelCount => "a level",
                Node::Use { def, .. } if self.stencil.defs[*def].origin != Origin::Constant => "a value at a cell",
                _ => continue,
            };
            let place = if body.span_of(id).end > 0 { body.span_of(id) } else { span };
            return self.report(
                Diagnostic::error(place, "this must be known when compiling")
                    .label(format!("{what} is known when running only")),
            );
        }
        Some(())
    }

    /// The value of a constant: computed once a stencil, a whole one at once unless it depends on the precision, a real one
    /// when that is known.
    pub(super) fn constant(&mut self, constant: &'a ast::Constant) -> Found<super::value::Bound> {
        let name = &constant.name;
        if self.constants.contains(&name.text) {
            let cycle = [self.constants.as_slice(), std::slice::from_ref(&name.text)].concat().join("` -> `");
            return self.report(
                Diagnostic::error(name.span, format!("the constant `{}` is made of itself", name.text))
                    .label(format!("`{cycle}`")),
            );
        }
        let scalar = constant.typed.as_ref().map(|typed| typed.scalar.clone());
        self.constants.push(name.text.clone());
        self.bodies.push(Body::new());
        let span = self.file.exprs.span(constant.value);
        self.constant_depth += 1;
        let value = self.value(constant.value);
        self.constant_depth -= 1;
        let value = value.and_then(|value| {
            let typed = |lowering: &mut Self, node: NodeId| match scalar.as_ref().map(|scalar| scalar.text.as_str()) {
                Some("int") => lowering.convert(node, Kind::Int, span, &name.text),
                Some("bool") => lowering.convert(node, Kind::Bool, span, &name.text),
                Some("f32") => {
                    let real = lowering.convert(node, Kind::Real, span, &name.text)?;
                    lowering.node(Node::ToSingle(real), Kind::Real, span)
                }
                Some(_) => lowering.convert(node, Kind::Real, span, &name.text),
                None => Some(node),
            };
            value.map(|node| typed(self, node)).collected()
        });
        let body = self.bodies.pop().unwrap_or_default();
        self.constants.pop();
        let bound = value?.map(|node| {
            let own = body.rooted(node);
            self.check_constant(&own, span)?;
            if own.kind() == Kind::Int
                && let Some(x) = self.known.whole(&own)
            {
                return Some(Alias::Int(x));
            }
            self.add_def(own, &name.text, Origin::Constant).map(|def| Alias::Def(def, Default::default()))
        });
        bound.collected()
    }
}
