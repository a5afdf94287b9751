//! Meshes: what stands in them, and the names of their sets and maps elsewhere.

use super::{Builder, Built, Node, Rule, headline, name, names, span};
use crate::ast::{ExprId, MapHoles, Mesh, MeshMap, MeshPart, Reduce, Trail};
use crate::source::Span;

impl Builder<'_> {
    pub(super) fn mesh(&mut self, pair: Node, doc: String) -> Built<Mesh> {
        let mut mesh = Mesh { doc, name: name(&pair), parts: Vec::new() };
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::ident => mesh.name = name(&part),
                Rule::mesh_part => {
                    let own = self.mesh_part(part)?;
                    mesh.parts.extend(own);
                }
                _ => {}
            }
        }
        Ok(mesh)
    }

    fn mesh_part(&mut self, pair: Node) -> Built<Option<MeshPart>> {
        let mut doc = String::new();
        let mut found = None;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::docs => doc = self.docs(&part),
                Rule::set => {
                    found = part.into_inner().find(|own| own.as_rule() == Rule::names).map(names).map(MeshPart::Set)
                }
                Rule::map => found = Some(MeshPart::Map(self.map(part, std::mem::take(&mut doc))?)),
                Rule::levels => {
                    let axis = part.into_inner().find(|own| own.as_rule() == Rule::ident);
                    found = axis.map(|axis| MeshPart::Levels(name(&axis)));
                }
                _ => {}
            }
        }
        Ok(found)
    }

    fn map(&mut self, pair: Node, doc: String) -> Built<MeshMap> {
        let place = span(&pair);
        let (mut own, mut arity, mut missing) = (Vec::new(), None, None);
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::ident => own.push(name(&part)),
                Rule::arity => arity = self.arity(part)?,
                Rule::missing => missing = Some(self.missing(part)?),
                _ => {}
            }
        }
        let mut own = own.into_iter();
        let (from, name) = (self.present(own.next(), place)?, self.present(own.next(), place)?);
        Ok(MeshMap { doc, from, name, to: self.present(own.next(), place)?, arity, missing })
    }

    /// `[4]`
    pub(super) fn arity(&mut self, pair: Node) -> Built<Option<(ExprId, Span)>> {
        let at = span(&pair);
        match pair.into_inner().next() {
            Some(number) => Ok(Some((self.expr(number)?, at))),
            None => Ok(None),
        }
    }

    fn missing(&mut self, pair: Node) -> Built<MapHoles> {
        let at = span(&pair);
        match pair.into_inner().find(|part| part.as_rule() == Rule::expr) {
            Some(value) => Ok(MapHoles::Value(self.expr(value)?, at)),
            None => Ok(MapHoles::Skip(at)),
        }
    }
}

/// `airfoil.edge`
pub fn trail(pair: Node) -> Trail {
    let span = span(&pair);
    Trail { names: names(pair), span }
}

/// The names in `over airfoil.edge`.
pub fn trail_in(pair: Node) -> Option<Trail> {
    pair.into_inner().find(|part| part.as_rule() == Rule::path).map(trail)
}

/// `reduce change: sum`
pub fn reduce(pair: Node, doc: String) -> Reduce {
    let mut reduce = Reduce { doc, names: Vec::new(), op: name(&pair), span: headline(&pair) };
    for part in pair.into_inner() {
        match part.as_rule() {
            Rule::names => reduce.names = names(part),
            Rule::fold_op => reduce.op = name(&part),
            _ => {}
        }
    }
    reduce
}
