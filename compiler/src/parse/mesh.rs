//! Meshes: what stands in them.

use super::{Builder, Built, Node, Rule, name, names, part, parts, present, span, word};
use crate::ast::{MapHoles, Mesh, MeshMap, MeshPart};

impl Builder<'_> {
    pub(super) fn mesh(&mut self, pair: &Node, doc: String) -> Built<Mesh> {
        let parts = parts(pair, Rule::mesh_part).map(|own| self.mesh_part(own)).collect::<Built<_>>()?;
        Ok(Mesh { doc, name: word(pair, Rule::ident)?, parts })
    }

    fn mesh_part(&mut self, pair: Node) -> Built<MeshPart> {
        let (doc, own) = self.documented(pair)?;
        Ok(match own.as_rule() {
            Rule::set => MeshPart::Set(names(&own)),
            Rule::zones => MeshPart::Zones(names(&own), word(&own, Rule::ident)?),
            Rule::levels => MeshPart::Levels(word(&own, Rule::ident)?),
            _ => MeshPart::Map(self.map(&own, doc)?),
        })
    }

    fn map(&mut self, pair: &Node, doc: String) -> Built<MeshMap> {
        let mut idents = parts(pair, Rule::ident);
        let mut next = || present(idents.next(), span(pair)).map(|own| name(&own));
        let (from, name, to) = (next()?, next()?, next()?);
        let arity = self.arity(pair)?;
        let missing = part(pair, Rule::missing).map(|own| self.optional(&own)).transpose()?;
        let missing = missing.map(|value| value.map_or(MapHoles::Skip, MapHoles::Value));
        Ok(MeshMap { doc, from, name, to, arity, missing })
    }
}
