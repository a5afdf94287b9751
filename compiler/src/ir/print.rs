//! Values to show, and the stencils that compute them.

use super::program::GridAxis;
use super::{Arena, Body, Field, FieldId, Handle, Levels, Node, Place, Role, Stencil, Store, Stored, Verify, needed};
use crate::source::Span;
use crate::text::FreeText;

/// A value to show at chosen cells.
#[derive(Clone, Debug)]
pub struct Print {
    /// What to call it.
    pub label: FreeText,
    /// Where it is written.
    pub span: Span,
    /// The value.
    pub body: Body,
}

impl Stencil {
    /// The name of the stencil that computes a print of the stencil `name`.
    pub fn name_of_print(name: &str, number: usize) -> String {
        format!("{name}_print{number}")
    }

    /// The fields that the stencil of a print has from this one, in order: those that are given. What is added to has a value only when
    /// all is added.
    pub fn seen_by_prints(&self) -> impl Iterator<Item = FieldId> {
        let fields = self.fields.iter();
        fields.filter(|(_, field)| matches!(field.role, Role::In | Role::InOut)).map(|(id, _)| id)
    }

    /// A stencil that computes nothing but the value of a print, wherever all that the print reads is there, into a field
    /// on `place` whose handle comes beside. The others are those of [`Stencil::seen_by_prints`], in the same order, and behind them those
    /// that its sweeps carry. Nothing if there is no such print.
    pub fn of_print(&self, number: usize, place: Place) -> Option<(Stencil, FieldId)> {
        let print = self.prints.get(number)?;
        let mut fields: Arena<FieldId, Field> = Arena::new();
        // Fields that are only written have no new handle, and none is needed: nobody reads them.
        let mut handles: Vec<Option<FieldId>> = vec![None; self.fields.len()];
        for id in self.seen_by_prints() {
            handles[id.index()] = Some(fields.add(Field { role: Role::In, ..self.fields[id].clone() }));
        }
        for (id, field) in self.fields.iter().filter(|(_, field)| field.role == Role::Carried) {
            handles[id.index()] = Some(fields.add(field.clone()));
        }
        let stored = Stored::of(print.body.kind());
        let (name, doc) = ("printed".to_owned(), print.label.clone());
        let field = fields.add(Field {
            name,
            doc,
            role: Role::Out,
            place,
            stored,
            is_single: false,
            range: None,
            span: print.span,
        });
        let carried = self.stores.iter().chain(&self.spare).filter_map(|store| {
            let field = handles[store.field.index()].filter(|_| self.fields[store.field].role == Role::Carried)?;
            Some(Store { field, ..store.clone() })
        });
        // It is shown wherever it can be computed.
        let (stores, spare, prints, within) = (carried.collect(), Vec::new(), Vec::new(), Vec::new());
        let silent = Stencil { stores, spare, prints, within, ..self.clone() };
        let mut stencil = silent.map_bodies(|body| with_fields(body, &handles));
        stencil.name = Self::name_of_print(&self.name, number);
        stencil.fields = fields;
        stencil.stores.push(Store { field, body: with_fields(&print.body, &handles), sweep: None });
        let mut stencil = needed(&stencil);
        // Sweeps through interfaces need them all: what is made of those is shown on each.
        let on_interfaces = |store: &Store| {
            let own = &stencil.fields[store.field];
            own.role == Role::Carried && own.place.levels == Levels::Interfaces
        };
        if stencil.stores.iter().any(on_interfaces) {
            stencil.within = self.bounds(GridAxis::K).cloned().collect();
            stencil.fields[field].place.levels = Levels::Interfaces;
        }
        Some((stencil.verified("taking a print by itself"), field))
    }
}

/// A body that reads the fields by other handles.
fn with_fields(body: &Body, handles: &[Option<FieldId>]) -> Body {
    body.map_nodes(|node| match node {
        Node::Read { field, path, part, by } => {
            Node::Read { field: handles[field.index()].unwrap_or(*field), path: path.clone(), part: *part, by: *by }
        }
        node => node.clone(),
    })
}
