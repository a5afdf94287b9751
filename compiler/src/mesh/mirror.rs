//! What an element adds along two paths, as one value: that of whoever stands at either end.
//!
//! A thread's target stands at the first or the second of two places, and the other at the other. Seen from either, the flux through
//! an edge is nearly the same expression, but for signs. Here both are written down over the *own* and the *other*
//! element's numbers, with equal expressions being one node, and made one again: where they agree nothing is chosen, where they differ
//! in a sign the sign is chosen, and only where nothing else is left are two values computed.
//!
//! Changes of sign are exact, and sums and products do not depend on the order of two operands. One thing is lost: a sum that
//! comes to 0 may have the other sign, since x - x is +0 whichever way it is turned. Nobody sees that in what is added to anything
//! but -0, so long as nothing divides by it or asks for its sign; there, expressions stay as they are written.

use super::MeshTask;
use super::ends::Ends;
use super::group::{Add, Group};
use super::writer::At;
use crate::depth::needed_first;
use crate::ir::mesh::{How, Write};
use crate::ir::{
    Arena, Binary, Body, Def, DefId, FieldId, Function, Handle, Hop, Kind, Levels, MeshStencil, Node, NodeId, Origin,
    Path, Stages, Stencil, Store, Verify, split,
};
use std::collections::HashMap;

/// A node, or what it is with the other sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Signed {
    id: usize,
    negative: bool,
}

/// An operation on values.
#[derive(Clone, Debug, PartialEq)]
enum Op {
    /// Something without operands.
    Leaf(Node),
    /// A sum, whose sign may be turned round.
    Sum(Signed, Signed),
    /// A sum as it is written.
    PlainSum(Signed, Signed),
    /// A product.
    Product(usize, usize),
    /// A quotient.
    Quotient(usize, usize),
    /// A product with a sign, and a number, rounded once; the sign of all may be turned round.
    Fma { negative: bool, factors: [usize; 2], sum: Signed },
    /// The same as it is written.
    PlainFma { negative: bool, factors: [usize; 2], sum: Signed },
    /// Any other operation, whose operands are these.
    Other(Node, Vec<Signed>),
    /// The value, with the other sign where the target stands at the second place.
    Turned(usize),
    /// One value where the target stands at the first place, one where it stands at the second.
    Either(Signed, Signed),
}

/// Expressions, each once.
#[derive(Default)]
struct Graph {
    ops: Vec<(Op, Kind)>,
    known: HashMap<String, usize>,
    /// What the user calls them.
    names: HashMap<usize, String>,
    /// What has been made one of two.
    eithers: HashMap<(Signed, Signed), Signed>,
}

impl Graph {
    fn add(&mut self, op: Op, kind: Kind) -> usize {
        let key = format!("{op:?}");
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        self.ops.push((op, kind));
        self.known.insert(key, self.ops.len() - 1);
        self.ops.len() - 1
    }

    fn positive(&mut self, op: Op, kind: Kind) -> Signed {
        Signed { id: self.add(op, kind), negative: false }
    }

    /// `a + b`
    fn sum(&mut self, a: Signed, b: Signed, plain: bool) -> Signed {
        let (a, b) = if a <= b { (a, b) } else { (b, a) };
        if plain {
            return self.positive(Op::PlainSum(a, b), Kind::Real);
        }
        let negative = a.negative;
        let turned = |x: Signed| Signed { negative: x.negative != negative, ..x };
        let id = self.add(Op::Sum(turned(a), turned(b)), Kind::Real);
        Signed { id, negative }
    }

    /// `a * b + c`, rounded once.
    fn fma(&mut self, a: Signed, b: Signed, c: Signed, plain: bool) -> Signed {
        let factors = [a.id.min(b.id), a.id.max(b.id)];
        let product = a.negative != b.negative;
        if plain {
            return self.positive(Op::PlainFma { negative: product, factors, sum: c }, Kind::Real);
        }
        let sum = Signed { negative: c.negative != product, ..c };
        let id = self.add(Op::Fma { negative: false, factors, sum }, Kind::Real);
        Signed { id, negative: product }
    }

    fn product(&mut self, a: Signed, b: Signed) -> Signed {
        let id = self.add(Op::Product(a.id.min(b.id), a.id.max(b.id)), Kind::Real);
        Signed { id, negative: a.negative != b.negative }
    }

    fn quotient(&mut self, a: Signed, b: Signed) -> Signed {
        let id = self.add(Op::Quotient(a.id, b.id), Kind::Real);
        Signed { id, negative: a.negative != b.negative }
    }

    /// What is `first` where the target stands at the first place, and `second` where it stands at the second.
    fn either(&mut self, first: Signed, second: Signed) -> Signed {
        for (first, second) in needed_first(vec![(first, second)], |&(first, second)| self.parts(first, second)) {
            self.either_known(first, second);
        }
        self.either_known(first, second)
    }

    /// The same, where it is known of their operands.
    fn either_known(&mut self, first: Signed, second: Signed) -> Signed {
        if first == second {
            return first;
        }
        if first.id == second.id {
            let id = self.add(Op::Turned(first.id), self.ops[first.id].1);
            return Signed { id, negative: first.negative };
        }
        if let Some(&known) = self.eithers.get(&(first, second)) {
            return known;
        }
        let value = self.chosen(first, second);
        self.eithers.insert((first, second), value);
        value
    }

    /// The operands of two different values that are the same operation, each with that of the other: of which it has to be known
    /// what is one of two. A sign of all is in one of the operands, or in all.
    fn parts(&self, first: Signed, second: Signed) -> Vec<(Signed, Signed)> {
        if first.id == second.id || self.eithers.contains_key(&(first, second)) {
            return Vec::new();
        }
        let same = |negative: bool, x: Signed| Signed { negative: x.negative != negative, ..x };
        let signed = |id, negative| Signed { id, negative };
        // Operands that stand crosswise are turned.
        let factors = |f: [usize; 2], g: [usize; 2]| if f[0] == g[1] || f[1] == g[0] { [g[1], g[0]] } else { g };
        match (&self.ops[first.id].0, &self.ops[second.id].0) {
            (&Op::PlainSum(a, b), &Op::PlainSum(c, d)) => {
                let (c, d) = if a.id == d.id || b.id == c.id { (d, c) } else { (c, d) };
                vec![(a, c), (b, d)]
            }
            (&Op::PlainFma { negative: p, factors: f, sum: c }, &Op::PlainFma { negative: q, factors: g, sum: d }) => {
                let g = factors(f, g);
                vec![(signed(f[0], p), signed(g[0], q)), (signed(f[1], false), signed(g[1], false)), (c, d)]
            }
            (&Op::Sum(a, b), &Op::Sum(c, d)) => {
                // With the signs of the whole in its parts.
                let (a, b) = (same(first.negative, a), same(first.negative, b));
                let (c, d) = (same(second.negative, c), same(second.negative, d));
                let (c, d) = if a.id == d.id || b.id == c.id { (d, c) } else { (c, d) };
                vec![(a, c), (b, d)]
            }
            (&Op::Fma { negative: p, factors: f, sum: c }, &Op::Fma { negative: q, factors: g, sum: d }) => {
                let (p, q) = (p != first.negative, q != second.negative);
                let (c, d) = (same(first.negative, c), same(second.negative, d));
                let g = factors(f, g);
                vec![(signed(f[0], p), signed(g[0], q)), (signed(f[1], false), signed(g[1], false)), (c, d)]
            }
            (&Op::Product(a, b), &Op::Product(c, d)) => {
                let (c, d) = if a == d || b == c { (d, c) } else { (c, d) };
                vec![(signed(a, first.negative), signed(c, second.negative)), (signed(b, false), signed(d, false))]
            }
            (&Op::Quotient(a, b), &Op::Quotient(c, d)) if b == d => {
                vec![(signed(a, first.negative), signed(c, second.negative))]
            }
            _ => Vec::new(),
        }
    }

    /// One operation on what the operands of two different values are, if both are the same operation.
    fn chosen(&mut self, first: Signed, second: Signed) -> Signed {
        let parts = self.parts(first, second);
        let made: Vec<Signed> = parts.into_iter().map(|(a, b)| self.either_known(a, b)).collect();
        let plain = matches!(self.ops[first.id].0, Op::PlainSum(..) | Op::PlainFma { .. });
        let value = match (&self.ops[first.id].0, made.as_slice()) {
            (Op::PlainSum(..) | Op::Sum(..), &[x, y]) => self.sum(x, y, plain),
            (Op::PlainFma { .. } | Op::Fma { .. }, &[x, y, z]) => self.fma(x, y, z, plain),
            (Op::Product(..), &[x, y]) => self.product(x, y),
            (&Op::Quotient(_, b), &[x]) => self.quotient(x, Signed { id: b, negative: false }),
            _ => {
                let kind = self.ops[first.id].1;
                return self.positive(Op::Either(first, second), kind);
            }
        };
        match (plain, first.negative == second.negative) {
            (false, _) => value,
            // The sign of what is computed as it is written stays outside.
            (true, true) => Signed { id: value.id, negative: first.negative },
            (true, false) => Signed { id: self.add(Op::Turned(value.id), Kind::Real), negative: first.negative },
        }
    }
}

/// Reads a stencil's bodies into a graph.
struct Reader<'a> {
    stencil: &'a MeshStencil,
    paths: [&'a [Hop]; 2],
    ends: Ends,
    graph: Graph,
    known: HashMap<(DefId, At, usize, bool), Signed>,
}

/// A body that is being read, where `at` leads.
struct Begun<'a> {
    /// The definition whose body it is, if it is one's.
    def: Option<DefId>,
    body: &'a Body,
    at: At,
    plain: bool,
    /// By node: whether the sign of a 0 matters.
    plainly: Vec<bool>,
    /// Of the nodes so far.
    values: Vec<Signed>,
}

impl<'a> Begun<'a> {
    fn new(def: Option<DefId>, body: &'a Body, at: At, plain: bool) -> Self {
        // Whose sign of 0 matters: operands of what asks for it.
        let mut plainly = vec![plain; body.len()];
        for (id, node) in body.iter().rev() {
            let (own, operands) = (plainly[id.index()], node.operands());
            for (n, operand) in operands.iter().enumerate() {
                let asks = match node {
                    Node::Binary(Binary::Div, ..) => own || n == 1,
                    Node::Binary(Binary::Rem, ..) => true,
                    Node::Call(function, _) => match function {
                        Function::Abs | Function::Sqrt | Function::Min | Function::Max | Function::Fma => own,
                        _ => true,
                    },
                    _ => own,
                };
                plainly[operand.index()] |= asks;
            }
        }
        Self { def, body, at, plain, plainly, values: Vec::with_capacity(body.len()) }
    }
}

/// Where a path leads from there.
fn moved(at: &At, path: &Path) -> At {
    (at.0.iter().chain(path.hops()).copied().collect(), at.1 + path.levels())
}

impl Reader<'_> {
    /// Where hops lead from the element, seen by a target that stands at place `seen` of the two.
    fn seen(&self, hops: Vec<Hop>, seen: usize) -> Vec<Hop> {
        for (place, path) in self.paths.iter().enumerate() {
            if hops.starts_with(path) {
                let end = if place == seen { self.ends.own } else { self.ends.other };
                return std::iter::once(end).chain(hops[path.len()..].iter().copied()).collect();
            }
        }
        hops
    }

    /// The value of a body. A definition that it uses is read when it is met, and then the body goes on.
    fn body(&mut self, body: &Body, at: &At, seen: usize, plain: bool) -> Option<Signed> {
        let stencil = &self.stencil.stencil;
        let mut begun = vec![Begun::new(None, body, at.clone(), plain)];
        loop {
            let last = begun.last_mut()?;
            let id = NodeId::new(last.values.len());
            if id.index() == last.body.len() {
                let read = begun.pop()?;
                let value = read.values[read.body.root().index()];
                let Some(def) = read.def else { return Some(value) };
                self.graph.names.entry(value.id).or_insert_with(|| stencil.defs[def].name.clone());
                self.known.insert((def, read.at, seen, read.plain), value);
                continue;
            }
            let (node, kind, plain) = (&last.body[id], last.body.kind_of(id), last.plainly[id.index()]);
            let value = match node {
                Node::Use { def, path } => {
                    let key = (*def, moved(&last.at, path), seen, plain);
                    match self.known.get(&key) {
                        Some(&known) => known,
                        None => {
                            begun.push(Begun::new(Some(*def), &stencil.defs[*def].body, key.1, plain));
                            continue;
                        }
                    }
                }
                _ => self.node(node, kind, &last.at, seen, plain, &last.values),
            };
            last.values.push(value);
        }
    }

    fn node(&mut self, node: &Node, kind: Kind, at: &At, seen: usize, plain: bool, values: &[Signed]) -> Signed {
        let of = |id: NodeId| values[id.index()];
        let along = |(hops, levels): At| Path::through(hops).then(&Path::levels_only(levels));
        match node {
            Node::Read { field, path, part } => {
                let place = self.stencil.stencil.fields[*field].place;
                let (hops, levels) = moved(at, path);
                let hops = if place.horizontal { self.seen(hops, seen) } else { Vec::new() };
                let levels = if place.levels == Levels::None { 0 } else { levels };
                self.graph
                    .positive(Op::Leaf(Node::Read { field: *field, path: along((hops, levels)), part: *part }), kind)
            }
            Node::Present { path } => {
                let (hops, levels) = moved(at, path);
                let hops = self.seen(hops, seen);
                self.graph.positive(Op::Leaf(Node::Present { path: along((hops, levels)) }), kind)
            }
            Node::Negate(a) if kind == Kind::Real => Signed { negative: !of(*a).negative, ..of(*a) },
            Node::Real(x) if x.is_sign_negative() => {
                let id = self.graph.add(Op::Leaf(Node::Real(-x)), kind);
                Signed { id, negative: true }
            }
            Node::Binary(Binary::Add, a, b) if kind == Kind::Real => self.graph.sum(of(*a), of(*b), plain),
            Node::Binary(Binary::Sub, a, b) if kind == Kind::Real => {
                let b = of(*b);
                self.graph.sum(of(*a), Signed { negative: !b.negative, ..b }, plain)
            }
            Node::Binary(Binary::Mul, a, b) if kind == Kind::Real => self.graph.product(of(*a), of(*b)),
            Node::Binary(Binary::Div, a, b) if kind == Kind::Real => self.graph.quotient(of(*a), of(*b)),
            Node::Call(Function::Fma, operands) => {
                self.graph.fma(of(operands[0]), of(operands[1]), of(operands[2]), plain)
            }
            Node::Level if at.1 != 0 => {
                let level = self.graph.positive(Op::Leaf(Node::Level), kind);
                let shift = self.graph.positive(Op::Leaf(Node::Int(at.1)), kind);
                let op = Node::Binary(Binary::Add, NodeId::new(0), NodeId::new(1));
                self.graph.positive(Op::Other(op, vec![level, shift]), kind)
            }
            node if node.operands().is_empty() => self.graph.positive(Op::Leaf(node.clone()), kind),
            node => {
                let operands: Vec<Signed> = node.operands().into_iter().map(of).collect();
                let mut next = 0;
                let bare = node.map_operands(|_| {
                    next += 1;
                    NodeId::new(next - 1)
                });
                self.graph.positive(Op::Other(bare, operands), kind)
            }
        }
    }
}

/// Writes a graph as definitions.
struct Writer<'g> {
    graph: &'g Graph,
    ends: Ends,
    uses: Vec<usize>,
    defs: Arena<DefId, Def>,
    known: HashMap<usize, DefId>,
}

impl Writer<'_> {
    fn operands(op: &Op) -> Vec<usize> {
        match op {
            Op::Leaf(_) => Vec::new(),
            Op::Sum(a, b) | Op::PlainSum(a, b) => in_order(*a, *b).map(|operand| operand.id).to_vec(),
            Op::Either(a, b) => vec![a.id, b.id],
            Op::Product(a, b) | Op::Quotient(a, b) => vec![*a, *b],
            Op::Fma { factors: [a, b], sum, .. } | Op::PlainFma { factors: [a, b], sum, .. } => vec![*a, *b, sum.id],
            Op::Other(_, operands) => operands.iter().map(|operand| operand.id).collect(),
            Op::Turned(a) => vec![*a],
        }
    }

    /// Whether a value has a name: what several look at, and what the user gave one.
    fn is_named(&self, id: usize) -> bool {
        let is_leaf = matches!(self.graph.ops[id].0, Op::Leaf(_));
        !is_leaf && (self.uses[id] > 1 || self.graph.names.contains_key(&id))
    }

    /// The body of a value, after the definitions that it uses.
    fn body(&mut self, value: Signed) -> Body {
        let unknown = |id: &usize| match self.known.contains_key(id) {
            true => Vec::new(),
            false => Self::operands(&self.graph.ops[*id].0),
        };
        for id in needed_first(vec![value.id], unknown) {
            if self.is_named(id) && !self.known.contains_key(&id) {
                let mut own = Body::new();
                self.written(&mut own, id, false);
                let name = self.graph.names.get(&id).cloned().unwrap_or_else(|| "part".to_owned());
                let def = self.defs.add(Def { name, origin: Origin::Let, body: own });
                self.known.insert(id, def);
            }
        }
        let mut body = Body::new();
        let node = self.written(&mut body, value.id, true);
        let node = self.signed(&mut body, node, value);
        body.rooted(node)
    }

    fn signed(&self, body: &mut Body, node: NodeId, value: Signed) -> NodeId {
        let kind = self.graph.ops[value.id].1;
        if value.negative { body.add(Node::Negate(node), kind, Default::default()) } else { node }
    }

    /// Writes a value into a body, whose parts are written before it, or have names; `by_name` if it has one itself.
    fn written(&self, body: &mut Body, root: usize, by_name: bool) -> NodeId {
        let is_use = |id: usize| self.is_named(id) && (by_name || id != root);
        let operands = |id: &usize| match is_use(*id) {
            true => Vec::new(),
            false => Self::operands(&self.graph.ops[*id].0),
        };
        let mut nodes: HashMap<usize, NodeId> = HashMap::new();
        let mut node = NodeId::new(0);
        for id in needed_first(vec![root], operands) {
            let kind = self.graph.ops[id].1;
            node = match self.known.get(&id) {
                Some(&def) if is_use(id) => {
                    body.add(Node::Use { def, path: Path::default() }, kind, Default::default())
                }
                _ => self.operation(body, id, &nodes),
            };
            nodes.insert(id, node);
        }
        node
    }

    /// Writes an operation on nodes that are there.
    fn operation(&self, body: &mut Body, id: usize, nodes: &HashMap<usize, NodeId>) -> NodeId {
        let (op, kind) = self.graph.ops[id].clone();
        let at = Default::default();
        let second =
            |body: &mut Body| body.add(Node::Present { path: Path::through([self.ends.second]) }, Kind::Bool, at);
        let signed = |body: &mut Body, value: Signed| self.signed(body, nodes[&value.id], value);
        match op {
            Op::Leaf(leaf) => body.add(leaf, kind, at),
            Op::Sum(a, b) | Op::PlainSum(a, b) => {
                let [a, b] = in_order(a, b);
                let x = signed(body, a);
                let op = if b.negative { Binary::Sub } else { Binary::Add };
                body.add(Node::Binary(op, x, nodes[&b.id]), kind, at)
            }
            Op::Product(a, b) => body.add(Node::Binary(Binary::Mul, nodes[&a], nodes[&b]), kind, at),
            Op::Quotient(a, b) => body.add(Node::Binary(Binary::Div, nodes[&a], nodes[&b]), kind, at),
            Op::Fma { negative, factors: [a, b], sum } | Op::PlainFma { negative, factors: [a, b], sum } => {
                let x = signed(body, Signed { id: a, negative });
                let z = signed(body, sum);
                body.add(Node::Call(Function::Fma, vec![x, nodes[&b], z]), kind, at)
            }
            Op::Other(node, operands) => {
                let operands: Vec<NodeId> = operands.into_iter().map(|operand| signed(body, operand)).collect();
                let node = node.map_operands(|operand| operands[operand.index()]);
                body.add(node, kind, at)
            }
            Op::Turned(a) => {
                let condition = second(body);
                let no = nodes[&a];
                let yes = body.add(Node::Negate(no), kind, at);
                body.add(Node::Choose { condition, yes, no }, kind, at)
            }
            Op::Either(a, b) => {
                let condition = second(body);
                let no = signed(body, a);
                let yes = signed(body, b);
                body.add(Node::Choose { condition, yes, no }, kind, at)
            }
        }
    }
}

/// A stencil that has other definitions, and adds what these make: nothing else in it looks at the old ones.
fn of_both(stencil: &Stencil, defs: Arena<DefId, Def>, stores: Vec<Store>) -> Stencil {
    let mut own = Stencil { defs, stores, spare: Vec::new(), prints: Vec::new(), ..stencil.clone() };
    own.params.values_mut().for_each(|param| param.default = None);
    own
}

/// The operands of a sum: minus stands where it reads well.
fn in_order(a: Signed, b: Signed) -> [Signed; 2] {
    if a.negative && !b.negative { [b, a] } else { [a, b] }
}

/// The increments of a group along two paths as one.
pub struct Mirror {
    /// A stencil whose definitions look at the own and the other element, over a mesh that leads there.
    pub stencil: MeshStencil,
    /// What it adds.
    pub group: Group,
    /// The maps that lead to both.
    pub ends: Ends,
}

/// The increments of a group along two paths as one. Nothing if the paths add to different fields. `plain` keeps the signs of sums that
/// come to 0, as what is added to a number that may be -0 has to.
pub fn mirrored(task: &MeshTask, group: &Group, plain: bool) -> Option<Mirror> {
    let [first, second] = group.paths.as_slice() else { return None };
    let stencil = task.stencil;
    let along = |path: usize| group.adds.iter().filter(move |add| add.path == path);
    let adds: Vec<(&Add, &Add)> = along(0).zip(along(1)).collect();
    let same = |(a, b): &(&Add, &Add)| (a.field, a.part) == (b.field, b.part);
    let once = |field: FieldId, part: u32| along(0).filter(|add| (add.field, add.part) == (field, part)).count() == 1;
    let is_real = |add: &Add| stencil.stencil.stores[add.store].body.kind() == Kind::Real;
    if along(0).count() != along(1).count()
        || !adds.iter().all(|pair| same(pair) && once(pair.0.field, pair.0.part) && is_real(pair.0))
    {
        return None;
    }
    let (mesh, ends) = Ends::added_to(&stencil.mesh, group.from, group.target);
    let (paths, graph) = ([first.hops(), second.hops()], Graph::default());
    let mut reader = Reader { stencil, paths, ends, graph, known: HashMap::new() };
    let mut roots = Vec::new();
    for (a, b) in &adds {
        let stores = &stencil.stencil.stores;
        let from_first = reader.body(&stores[a.store].body, &At::default(), 0, plain)?;
        let from_second = reader.body(&stores[b.store].body, &At::default(), 1, plain)?;
        roots.push(reader.graph.either(from_first, from_second));
    }
    // How often each is looked at, of those that the results need.
    let graph = &reader.graph;
    let (mut uses, mut waiting) = (vec![0; graph.ops.len()], Vec::new());
    let look = |id: usize, uses: &mut Vec<usize>, waiting: &mut Vec<usize>| {
        uses[id] += 1;
        if uses[id] == 1 {
            waiting.push(id);
        }
    };
    roots.iter().for_each(|root| look(root.id, &mut uses, &mut waiting));
    while let Some(id) = waiting.pop() {
        for operand in Writer::operands(&graph.ops[id].0) {
            look(operand, &mut uses, &mut waiting);
        }
    }
    let mut writer = Writer { graph, ends, uses, defs: Arena::new(), known: HashMap::new() };
    let (mut stores, mut new_adds) = (Vec::new(), Vec::new());
    for ((add, _), root) in adds.iter().zip(&roots) {
        new_adds.push(Add { store: stores.len(), path: 0, ..**add });
        stores.push(Store { field: add.field, body: writer.body(*root), sweep: None });
    }
    // What is made one has lost its names on the way, as long as a chain of them may be.
    let inner = split(&of_both(&stencil.stencil, writer.defs, stores));
    let paths = vec![Path::through([ends.own])];
    let writes = new_adds.iter().map(|add| Write { part: add.part, how: How::Add(paths[0].clone()) }).collect();
    let group = Group { paths, adds: new_adds, ..*group };
    let stencil = MeshStencil { stencil: inner, mesh, over: stencil.over, writes };
    Stages(std::slice::from_ref(&stencil)).verified("making one increment of two");
    Some(Mirror { stencil, group, ends })
}
