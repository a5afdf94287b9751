//! What a stencil over a mesh computes for some elements on one level, as instructions on rows.
//!
//! A value is a definition at the end of a path; each is computed once. Nothing is lazy: both branches of a choice are
//! computed, and what is read through a hole, or beyond the levels, is something that nobody looks at.

use super::super::program::{Slot, Source};
use std::collections::HashMap;
use stencilc_compiler::analysis::levels::Known;
use stencilc_compiler::depth::needed_first;
use stencilc_compiler::ir::mesh::Zones;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Body, DefId, FieldId, Handle, Hop, Kind, Levels, MeshStencil, Node, NodeId, Path, SetId};

/// Instructions for one level.
#[derive(Default)]
pub struct Tape<'a> {
    /// The ways through the mesh, each after the one that it goes on from: that, and its last hop.
    pub ways: Vec<(Option<usize>, Hop)>,
    /// In order of execution.
    pub instructions: Vec<Instruction<'a>>,
    /// By the stencil's stores: where the value is.
    pub values: Vec<Source>,
    /// How many slots there are for rows of each [`Kind`].
    pub slots: [usize; 3],
}

/// An operation on rows.
pub enum Instruction<'a> {
    /// Reads a field: the number `part` of the elements where a way leads.
    Read { field: FieldId, way: Option<usize>, level: usize, part: u32, into: Slot },
    /// The same so many levels further, as a row says; of what lies beyond the field's levels, the nearest.
    ReadMoved { field: FieldId, way: Option<usize>, level: i32, by: Source, part: u32, into: Slot },
    /// Whether a way leads to elements.
    Present { way: usize, into: Slot },
    /// Whether the elements where a way leads are in some zones of the stencil's set.
    InZone { zones: Zones, set: SetId, way: Option<usize>, into: Slot },
    /// Computes a node of as many operands as it has; the first is `of` some kind.
    Compute { node: &'a Node, of: Kind, operands: [Source; 3], into: Slot },
}

/// Where a value is looked at.
type At = (Vec<Hop>, i32);

/// Where a path leads from there.
fn moved(at: &At, path: &Path) -> At {
    (at.0.iter().chain(path.hops()).copied().collect(), at.1 + path.levels())
}

/// Writes a tape.
struct Writer<'a> {
    stencil: &'a MeshStencil,
    known: &'a Known<'a>,
    levels: usize,
    level: i32,
    tape: Tape<'a>,
    ways: HashMap<Vec<Hop>, usize>,
    values: HashMap<(DefId, At), Source>,
    reads: HashMap<(FieldId, At, u32), Source>,
}

impl<'a> Tape<'a> {
    /// Of a level of a stencil with so many.
    pub fn new(stencil: &'a MeshStencil, known: &'a Known<'a>, levels: usize, level: usize) -> Self {
        let (tape, level) = (Tape::default(), level as i32);
        let (ways, values, reads) = (HashMap::new(), HashMap::new(), HashMap::new());
        let mut writer = Writer { stencil, known, levels, level, tape, ways, values, reads };
        for store in &stencil.stencil.stores {
            let value = writer.body(&store.body, &(Vec::new(), 0));
            writer.tape.values.push(value);
        }
        writer.tape
    }

    /// The way along hops, if it is known; nothing at the element itself.
    pub fn way(&mut self, hops: &[Hop]) -> Option<usize> {
        let mut way = None;
        for &hop in hops {
            let known = self.ways.iter().position(|own| *own == (way, hop));
            way = Some(known.unwrap_or_else(|| {
                self.ways.push((way, hop));
                self.ways.len() - 1
            }));
        }
        way
    }
}

impl<'a> Writer<'a> {
    fn slot(&mut self, kind: Kind) -> Slot {
        let count = &mut self.tape.slots[kind as usize];
        *count += 1;
        Slot::single(kind, *count - 1)
    }

    fn way(&mut self, hops: &[Hop]) -> Option<usize> {
        if let Some(&way) = self.ways.get(hops) {
            return Some(way);
        }
        let way = self.tape.way(hops)?;
        self.ways.insert(hops.to_vec(), way);
        Some(way)
    }

    /// A body where `at` leads, after the definitions that it uses.
    fn body(&mut self, body: &'a Body, at: &At) -> Source {
        let stencil = &self.stencil.stencil;
        let unknown = |(def, at): &(DefId, At)| self.unknown(&stencil.defs[*def].body, at);
        for (def, at) in needed_first(self.unknown(body, at), unknown) {
            let source = self.alone(&stencil.defs[def].body, &at);
            self.values.insert((def, at), source);
        }
        self.alone(body, at)
    }

    /// The definitions that a body uses, and where, whose values nobody has computed yet.
    fn unknown(&self, body: &Body, at: &At) -> Vec<(DefId, At)> {
        let known = self.known.values(body, i64::from(self.level + at.1));
        let uses = body.iter().filter_map(|(id, node)| match node {
            Node::Use { def, path } if known[id.index()].is_none() => Some((*def, moved(at, path))),
            _ => None,
        });
        uses.filter(|key| !self.values.contains_key(key)).collect()
    }

    /// A body whose definitions are computed.
    fn alone(&mut self, body: &'a Body, at: &At) -> Source {
        let known = self.known.values(body, i64::from(self.level + at.1));
        let mut sources: Vec<Source> = Vec::with_capacity(body.len());
        for (id, node) in body.iter() {
            let source = match known[id.index()] {
                Some(value) => Source::Value(value),
                None => self.node(body, id, node, at, &sources),
            };
            sources.push(source);
        }
        sources[body.root().index()]
    }

    fn node(&mut self, body: &'a Body, id: NodeId, node: &'a Node, at: &At, sources: &[Source]) -> Source {
        match node {
            Node::Read { field, path, part, by: None } => self.read(*field, moved(at, path), *part),
            Node::Read { field, path, part, by: Some(by) } => {
                let (own, at) = (&self.stencil.stencil.fields[*field], moved(at, path));
                let way = if own.place.horizontal { self.way(&at.0) } else { None };
                let (by, level, into) = (sources[by.index()], self.level + at.1, self.slot(own.stored.kind()));
                let instruction = Instruction::ReadMoved { field: *field, way, level, by, part: *part, into };
                self.tape.instructions.push(instruction);
                Source::Slot { slot: into, i: 0, j: 0 }
            }
            Node::Present { path } => match self.way(&moved(at, path).0) {
                None => Source::Value(Value::Bool(true)),
                Some(way) => {
                    let into = self.slot(Kind::Bool);
                    self.tape.instructions.push(Instruction::Present { way, into });
                    Source::Slot { slot: into, i: 0, j: 0 }
                }
            },
            Node::InZone(zones) => {
                let (way, into) = (self.way(&at.0), self.slot(Kind::Bool));
                let set = self.stencil.end(&at.0);
                self.tape.instructions.push(Instruction::InZone { zones: *zones, set, way, into });
                Source::Slot { slot: into, i: 0, j: 0 }
            }
            Node::Use { def, path } => self.values[&(*def, moved(at, path))],
            Node::Choose { condition, yes, no } if matches!(sources[condition.index()], Source::Value(_)) => {
                let is_true = matches!(sources[condition.index()], Source::Value(Value::Bool(true)));
                sources[if is_true { yes } else { no }.index()]
            }
            _ => {
                let (mut operands, of) = ([Source::Value(Value::Bool(false)); 3], body.kind_of(node.operands()[0]));
                for (operand, id) in operands.iter_mut().zip(node.operands()) {
                    *operand = sources[id.index()];
                }
                let into = self.slot(body.kind_of(id));
                self.tape.instructions.push(Instruction::Compute { node, of, operands, into });
                Source::Slot { slot: into, i: 0, j: 0 }
            }
        }
    }

    fn read(&mut self, field: FieldId, at: At, part: u32) -> Source {
        let key = (field, at, part);
        if let Some(source) = self.reads.get(&key) {
            return *source;
        }
        let own = &self.stencil.stencil.fields[field];
        let way = if own.place.horizontal { self.way(&key.1.0) } else { None };
        // What lies beyond the levels is looked at by nobody.
        let level = match own.place.levels {
            Levels::None => 0,
            Levels::Full => (self.level + key.1.1).clamp(0, self.levels as i32 - 1) as usize,
            Levels::Interfaces => (self.level + key.1.1).clamp(0, self.levels as i32) as usize,
        };
        let into = self.slot(own.stored.kind());
        self.tape.instructions.push(Instruction::Read { field, way, level, part, into });
        let source = Source::Slot { slot: into, i: 0, j: 0 };
        self.reads.insert(key, source);
        source
    }
}
