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
use crate::depth::needed_first;
use crate::ir::mesh::{How, Write};
use crate::ir::{
    Arena, Binary, Body, Def, DefId, Function, Handle, Hop, Kind, Levels, MeshStencil, Node, NodeId, Origin, Path,
    Stages, Stencil, Store, Verify, split,
};
use std::collections::HashMap;

/// A node, or what it is with the other sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Signed {
    id: usize,
    negative: bool,
}

impl Signed {
    fn positive(id: usize) -> Self {
        Self { id, negative: false }
    }

    /// The value with the other sign, if so.
    fn turned(self, negative: bool) -> Self {
        Self { negative: self.negative != negative, ..self }
    }
}

/// What an operation is, as far as signs and the order of operands go. `plain` ones stay as they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Sum {
        plain: bool,
    },
    Product,
    Quotient,
    /// A product and a number, rounded once.
    Fma {
        plain: bool,
    },
    /// Anything else, with operands or without.
    Other,
}

impl Form {
    fn of(node: &Node, kind: Kind, plain: bool) -> Self {
        match (node, kind) {
            (Node::Binary(Binary::Add, ..), Kind::Real) => Form::Sum { plain },
            (Node::Binary(Binary::Mul, ..), Kind::Real) => Form::Product,
            (Node::Binary(Binary::Div, ..), _) => Form::Quotient,
            (Node::Call(Function::Fma, _), _) => Form::Fma { plain },
            _ => Form::Other,
        }
    }

    fn is_plain(self) -> bool {
        matches!(self, Form::Sum { plain: true } | Form::Fma { plain: true })
    }

    /// Which operands have the other sign if the whole has.
    fn turned(self) -> &'static [usize] {
        match self {
            Form::Sum { plain: false } => &[0, 1],
            Form::Fma { plain: false } => &[0, 2],
            Form::Product | Form::Quotient => &[0],
            Form::Sum { plain: true } | Form::Fma { plain: true } | Form::Other => &[],
        }
    }
}

/// What computes a value.
#[derive(Clone, Debug, PartialEq)]
enum Op {
    /// An operation, whose operands are these.
    Node(Form, Node, Vec<Signed>),
    /// One value where the target stands at the first place, one where it stands at the second.
    Either(Signed, Signed),
}

impl Op {
    /// The values that it is made of, as they are written: minus stands where it reads well.
    fn operands(&self) -> Vec<Signed> {
        match self {
            Op::Node(Form::Sum { .. }, _, operands) if operands[0].negative && !operands[1].negative => {
                vec![operands[1], operands[0]]
            }
            Op::Node(_, _, operands) => operands.clone(),
            // The sign alone is chosen.
            Op::Either(a, b) if a.id == b.id => vec![*a],
            Op::Either(a, b) => vec![*a, *b],
        }
    }

    fn ids(&self) -> Vec<usize> {
        self.operands().into_iter().map(|operand| operand.id).collect()
    }
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
    fn add(&mut self, op: Op, kind: Kind) -> Signed {
        let next = self.ops.len();
        let id = *self.known.entry(format!("{op:?}")).or_insert(next);
        if id == next {
            self.ops.push((op, kind));
        }
        Signed::positive(id)
    }

    /// An operation whose operands are in one order, and whose signs are outside, as far as its form lets them.
    fn operation(&mut self, form: Form, node: Node, kind: Kind, mut operands: Vec<Signed>) -> Signed {
        let mut negative = false;
        match form {
            Form::Sum { plain } => {
                operands.sort();
                negative = !plain && operands[0].negative;
            }
            Form::Product | Form::Quotient | Form::Fma { .. } => {
                negative = operands[0].negative != operands[1].negative;
                operands[..2].iter_mut().for_each(|own| own.negative = false);
                if form != Form::Quotient {
                    operands[..2].sort();
                }
            }
            Form::Other => {}
        }
        match form {
            Form::Sum { .. } => operands.iter_mut().for_each(|own| *own = own.turned(negative)),
            Form::Fma { plain: false } => operands[2] = operands[2].turned(negative),
            Form::Fma { plain: true } => operands[0].negative = std::mem::take(&mut negative),
            Form::Product | Form::Quotient | Form::Other => {}
        }
        self.add(Op::Node(form, node, operands), kind).turned(negative)
    }

    /// What has no operands.
    fn leaf(&mut self, node: Node, kind: Kind) -> Signed {
        self.add(Op::Node(Form::Other, node, Vec::new()), kind)
    }

    /// A value with the other sign where the target stands at the second place.
    fn turned(&mut self, value: Signed) -> Signed {
        let (own, kind) = (Signed::positive(value.id), self.ops[value.id].1);
        self.add(Op::Either(own, own.turned(true)), kind).turned(value.negative)
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
            return self.turned(first);
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
        let [Op::Node(form, _, own), Op::Node(other_form, _, other)] =
            [first, second].map(|value| &self.ops[value.id].0)
        else {
            return Vec::new();
        };
        if form != other_form {
            return Vec::new();
        }
        let (mut own, mut other) = (own.clone(), other.clone());
        let crosswise = |n: usize, m: usize| own[n].id == other[m].id;
        match form {
            Form::Quotient if crosswise(1, 1) => [&mut own, &mut other].into_iter().for_each(|both| both.truncate(1)),
            Form::Quotient | Form::Other => return Vec::new(),
            // Operands that stand crosswise are turned.
            Form::Sum { .. } if crosswise(0, 1) || crosswise(1, 0) => other.swap(0, 1),
            Form::Product | Form::Fma { .. } if crosswise(0, 1) || crosswise(1, 0) => {
                (other[0].id, other[1].id) = (other[1].id, other[0].id);
            }
            Form::Sum { .. } | Form::Product | Form::Fma { .. } => {}
        }
        for &n in form.turned() {
            (own[n], other[n]) = (own[n].turned(first.negative), other[n].turned(second.negative));
        }
        own.into_iter().zip(other).collect()
    }

    /// One operation on what the operands of two different values are, if both are the same operation.
    fn chosen(&mut self, first: Signed, second: Signed) -> Signed {
        let parts = self.parts(first, second);
        let mut made: Vec<Signed> = parts.into_iter().map(|(a, b)| self.either_known(a, b)).collect();
        let (op, kind) = self.ops[first.id].clone();
        let (Op::Node(form, node, operands), false) = (op, made.is_empty()) else {
            return self.add(Op::Either(first, second), kind);
        };
        // Of quotients, the divisor is the same.
        made.extend(operands.into_iter().skip(made.len()));
        let value = self.operation(form, node, kind, made);
        match (form.is_plain(), first.negative == second.negative) {
            (false, _) => value,
            // The sign of what is computed as it is written stays outside.
            (true, true) => Signed { negative: first.negative, ..value },
            (true, false) => Signed { negative: first.negative, ..self.turned(value) },
        }
    }
}

/// Reads a stencil's bodies into a graph.
struct Reader<'a> {
    stencil: &'a MeshStencil,
    paths: [&'a [Hop]; 2],
    ends: Ends,
    graph: Graph,
    known: HashMap<(DefId, Path, usize, bool), Signed>,
}

/// A body that is being read, where `at` leads.
struct Begun<'a> {
    /// The definition whose body it is, if it is one's.
    def: Option<DefId>,
    body: &'a Body,
    at: Path,
    plain: bool,
    /// By node: whether the sign of a 0 matters.
    plainly: Vec<bool>,
    /// Of the nodes so far.
    values: Vec<Signed>,
}

impl<'a> Begun<'a> {
    fn new(def: Option<DefId>, body: &'a Body, at: Path, plain: bool) -> Self {
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

impl Reader<'_> {
    /// Where hops lead from the element, seen by a target that stands at place `seen` of the two.
    fn seen(&self, hops: &[Hop], seen: usize) -> Vec<Hop> {
        for (place, path) in self.paths.iter().enumerate() {
            if hops.starts_with(path) {
                let end = if place == seen { self.ends.own } else { self.ends.other };
                return std::iter::once(end).chain(hops[path.len()..].iter().copied()).collect();
            }
        }
        hops.to_vec()
    }

    /// The value of a body. A definition that it uses is read when it is met, and then the body goes on.
    fn body(&mut self, body: &Body, seen: usize, plain: bool) -> Option<Signed> {
        let stencil = &self.stencil.stencil;
        let mut begun = vec![Begun::new(None, body, Path::default(), plain)];
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
                    let key = (*def, last.at.then(path), seen, plain);
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

    fn node(&mut self, node: &Node, kind: Kind, at: &Path, seen: usize, plain: bool, values: &[Signed]) -> Signed {
        let mut operands: Vec<Signed> = node.operands().into_iter().map(|id| values[id.index()]).collect();
        let along = |hops: Vec<Hop>, levels: i32| Path::through(hops).then(&Path::levels_only(levels));
        let graph = &mut self.graph;
        match node {
            Node::Read { field, path, part, by } => {
                let (place, path) = (self.stencil.stencil.fields[*field].place, at.then(path));
                let hops = if place.horizontal { self.seen(path.hops(), seen) } else { Vec::new() };
                let levels = if place.levels == Levels::None { 0 } else { path.levels() };
                let by = by.map(|_| NodeId::new(0));
                let read = Node::Read { field: *field, path: along(hops, levels), part: *part, by };
                match by {
                    None => self.graph.leaf(read, kind),
                    Some(_) => self.graph.operation(Form::Other, read, kind, operands),
                }
            }
            Node::Present { path } => {
                let path = at.then(path);
                let path = along(self.seen(path.hops(), seen), path.levels());
                self.graph.leaf(Node::Present { path }, kind)
            }
            Node::Negate(_) if kind == Kind::Real => operands[0].turned(true),
            Node::Real(x) if x.is_sign_negative() => graph.leaf(Node::Real(-x), kind).turned(true),
            Node::Level if at.levels() != 0 => {
                let both = vec![graph.leaf(Node::Level, kind), graph.leaf(Node::Int(at.levels()), kind)];
                let sum = Node::Binary(Binary::Add, NodeId::new(0), NodeId::new(1));
                graph.operation(Form::Other, sum, kind, both)
            }
            node => {
                let mut numbers = (0..).map(NodeId::new);
                let mut bare = node.map_operands(|own| numbers.next().unwrap_or(own));
                if let (Node::Binary(Binary::Sub, a, b), Kind::Real) = (&bare, kind) {
                    operands[1] = operands[1].turned(true);
                    bare = Node::Binary(Binary::Add, *a, *b);
                }
                graph.operation(Form::of(&bare, kind, plain), bare, kind, operands)
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
    /// Whether a value has a name: what several look at, and what the user gave one.
    fn is_named(&self, id: usize) -> bool {
        let is_leaf = self.graph.ops[id].0.operands().is_empty();
        !is_leaf && (self.uses[id] > 1 || self.graph.names.contains_key(&id))
    }

    /// The body of a value, after the definitions that it uses.
    fn body(&mut self, value: Signed) -> Body {
        let unknown = |id: &usize| match self.known.contains_key(id) {
            true => Vec::new(),
            false => self.graph.ops[*id].0.ids(),
        };
        for id in needed_first(vec![value.id], unknown) {
            if self.is_named(id) && !self.known.contains_key(&id) {
                let mut own = Body::new();
                self.written(&mut own, id, false);
                let name = self.graph.names.get(&id).cloned().unwrap_or_else(|| "part".to_owned());
                let def = self.defs.add(Def { name, origin: Origin::Let, over: None, body: own });
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
            false => self.graph.ops[*id].0.ids(),
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
        let (op, kind) = &self.graph.ops[id];
        let at = Default::default();
        let signed = |body: &mut Body, value: Signed| self.signed(body, nodes[&value.id], value);
        let node = match op {
            Op::Node(Form::Sum { .. }, ..) => {
                let operands = op.operands();
                let sign = if operands[1].negative { Binary::Sub } else { Binary::Add };
                Node::Binary(sign, signed(body, operands[0]), nodes[&operands[1].id])
            }
            Op::Node(_, node, operands) => {
                let operands: Vec<NodeId> = operands.iter().map(|&operand| signed(body, operand)).collect();
                node.map_operands(|operand| operands[operand.index()])
            }
            Op::Either(a, b) => {
                let is_second = Node::Present { path: Path::through([self.ends.second]) };
                let condition = body.add(is_second, Kind::Bool, at);
                let [no, yes] = [*a, *b].map(|value| signed(body, value));
                Node::Choose { condition, yes, no }
            }
        };
        body.add(node, *kind, at)
    }
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
    // Which zone an element is in, neither end knows.
    if stencil.stencil.bodies().any(|body| body.iter().any(|(_, node)| matches!(node, Node::InZone(_)))) {
        return None;
    }
    let (adds, others) = (group.along(0), group.along(1));
    let is_once = |add: &Add| adds.iter().filter(|own| (own.field, own.part) == (add.field, add.part)).count() == 1;
    let is_real = |add: &Add| stencil.stencil.stores[add.store].body.kind() == Kind::Real;
    if !group.is_alike() || !adds.iter().all(|add| is_once(add) && is_real(add)) {
        return None;
    }
    let (mesh, ends) = Ends::added_to(&stencil.mesh, group.from, group.target);
    let (paths, graph) = ([first.hops(), second.hops()], Graph::default());
    let mut reader = Reader { stencil, paths, ends, graph, known: HashMap::new() };
    let mut roots = Vec::new();
    for (a, b) in adds.iter().zip(others) {
        let stores = &stencil.stencil.stores;
        let from_first = reader.body(&stores[a.store].body, 0, plain)?;
        let from_second = reader.body(&stores[b.store].body, 1, plain)?;
        roots.push(reader.graph.either(from_first, from_second));
    }
    // How often each is looked at, of those that the results need.
    let graph = &reader.graph;
    let (mut uses, mut waiting) = (vec![0; graph.ops.len()], roots.iter().map(|root| root.id).collect::<Vec<_>>());
    while let Some(id) = waiting.pop() {
        uses[id] += 1;
        if uses[id] == 1 {
            waiting.extend(graph.ops[id].0.ids());
        }
    }
    let mut writer = Writer { graph, ends, uses, defs: Arena::new(), known: HashMap::new() };
    let (mut stores, mut new_adds) = (Vec::new(), Vec::new());
    for (add, root) in adds.iter().zip(&roots) {
        new_adds.push(Add { store: stores.len(), path: 0, ..*add });
        stores.push(Store { field: add.field, body: writer.body(*root), sweep: None });
    }
    // What is made one has lost its names on the way, as long as a chain of them may be.
    let (defs, spare, prints) = (writer.defs, Vec::new(), Vec::new());
    let mut inner = Stencil { defs, stores, spare, prints, ..stencil.stencil.clone() };
    inner.params.values_mut().for_each(|param| param.default = None);
    let paths = vec![Path::through([ends.own])];
    let writes = new_adds.iter().map(|add| Write { part: add.part, how: How::Add(paths[0].clone()) }).collect();
    let group = Group { paths, adds: new_adds, ..*group };
    let stencil = MeshStencil { stencil: split(&inner), mesh, over: stencil.over, writes };
    Stages(std::slice::from_ref(&stencil)).verified("making one increment of two");
    Some(Mirror { stencil, group, ends })
}
