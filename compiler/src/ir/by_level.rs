//! Puts sums in order by level: what is added on the lowest level that a sum reads comes first.
//!
//! A kernel that walks along k then adds what a level gives as soon as that level is there, and needs to keep no level for
//! later. The order is another one than the text's, and so are the last bits: the language asks for a word (`sums by level`). It is
//! decided here, before anything is computed, so every device and every kernel comes to the same bits.
//!
//! - A **sum** is made of `+`, `-`, signs and products with a factor that reads no level, through results of functions that
//!   are sums. What a `let` or an argument names is a value of its own, and so is what is looked at from another cell. Of those, sums
//!   that read more than one level are put in order; all else stays as it is written.
//! - Its **terms** are what is added. A product `c * (x + y)` is one term where `x + y` reads one level. Where it reads several, it is
//!   a term for each: `c * x` and `c * y`, if these are what two levels give.
//! - Terms are added by the highest level that each reads, from the lowest such level up; on one level in the order of the text.
//! - A product that is all that the lowest level gives is a definition, and so is each sum within a term: no fused multiply-add reaches
//!   across levels.

use super::{Arena, Binary, Body, Def, DefId, Handle, Kind, Levels, Node, NodeId, Origin, Path, Stencil};
use crate::source::Span;
use std::collections::BTreeMap;

/// The most terms of one sum.
pub const MOST_TERMS: usize = 4096;

/// The stencil with its sums in order by level, and whether there are any that read several; nothing if a sum has too many terms.
pub fn by_level(stencil: &Stencil) -> Option<(Stencil, bool)> {
    let mut own = ByLevel {
        old: stencil,
        made: Arena::new(),
        ranges: Vec::new(),
        results: Vec::new(),
        known: BTreeMap::new(),
        has_sums: false,
    };
    for (_, def) in stencil.defs.iter() {
        own.define(def)?;
    }
    let mut ordered = stencil.clone();
    for store in ordered.stores.iter_mut().chain(&mut ordered.spare) {
        store.body = own.body(&store.body, &stencil.fields[store.field].name)?.0;
    }
    for print in &mut ordered.prints {
        print.body = own.renamed(&print.body);
    }
    for param in ordered.params.values_mut() {
        param.default = param.default.as_ref().map(|body| own.renamed(body));
    }
    ordered.defs = own.made;
    Some((ordered, own.has_sums))
}

/// The levels that something reads, counted from the cell's: lowest and highest. Nothing of what reads none.
type Range = Option<[i32; 2]>;

fn joined(a: Range, b: Range) -> Range {
    match (a, b) {
        (Some([low, high]), Some([other_low, other_high])) => Some([low.min(other_low), high.max(other_high)]),
        (one, None) | (None, one) => one,
    }
}

fn reads_several(range: Range) -> bool {
    range.is_some_and(|[low, high]| low < high)
}

/// What is added to a sum.
#[derive(Clone)]
struct Term {
    range: Range,
    is_negative: bool,
    /// What it is multiplied by, which reads no level.
    factors: Vec<Body>,
    /// A single node.
    value: Node,
    span: Span,
}

impl Term {
    /// The highest level that it reads; what reads none comes before all levels.
    fn level(&self) -> i32 {
        self.range.map_or(i32::MIN, |[_, high]| high)
    }

    fn turned_if(self, is_turned: bool) -> Self {
        Self { is_negative: self.is_negative != is_turned, ..self }
    }
}

/// What a node is worth.
enum Worth {
    /// A node of the body that is being made.
    Node(NodeId),
    /// A sum that reads several levels.
    Sum(Vec<Term>),
}

/// What a definition of the old stencil became.
struct Became {
    def: DefId,
    /// Its terms, if it is a sum that reads several levels, and the result of a function.
    terms: Option<Vec<Term>>,
}

struct ByLevel<'a> {
    old: &'a Stencil,
    made: Arena<DefId, Def>,
    /// By definitions of the old stencil.
    ranges: Vec<Range>,
    results: Vec<Became>,
    /// Definitions that were made of parts of bodies, by what they compute.
    known: BTreeMap<String, DefId>,
    has_sums: bool,
}

impl ByLevel<'_> {
    fn define(&mut self, def: &Def) -> Option<()> {
        let range = self.ranges_in(&def.body).last().copied().flatten();
        let (body, terms) = self.body(&def.body, &def.name)?;
        let became = self.made.add(Def { body, ..def.clone() });
        self.ranges.push(range);
        self.results.push(Became { def: became, terms: terms.filter(|_| def.origin == Origin::Result) });
        Some(())
    }

    /// By nodes of a body of the old stencil.
    fn ranges_in(&self, body: &Body) -> Vec<Range> {
        body.of_nodes(|_, node, made: &[Range]| {
            let own = match node {
                Node::Read { field, path, .. } => {
                    let has_levels = self.old.fields[*field].place.levels != Levels::None;
                    has_levels.then(|| [path.levels(); 2])
                }
                Node::Use { def, path } => {
                    self.ranges[def.index()].map(|range| range.map(|at| at.saturating_add(path.levels())))
                }
                Node::Level => Some([0, 0]),
                _ => None,
            };
            node.operands().into_iter().fold(own, |range, operand| joined(range, made[operand.index()]))
        })
    }

    /// A body of the old stencil, in order, and its terms if it is a sum that reads several levels.
    fn body(&mut self, body: &Body, name: &str) -> Option<(Body, Option<Vec<Term>>)> {
        let ranges = self.ranges_in(body);
        if !ranges.iter().any(|range| reads_several(*range)) {
            return Some((self.renamed(body), None));
        }
        let mut own = InBody { of: self, body, ranges, times: body.times_used(), worth: Vec::new(), made: Body::new() };
        for (id, _) in body.iter() {
            let worth = own.worth_of(id, name)?;
            own.worth.push(worth);
        }
        let terms = match own.worth.last()? {
            Worth::Sum(terms) => Some(terms.clone()),
            Worth::Node(_) => None,
        };
        let root = own.node(body.root(), name);
        Some((own.made.rooted(root), terms))
    }

    /// A body as one node: a read, a use, a number, or a use of a definition that is made of it. `range` is what it reads.
    fn value(&mut self, body: Body, range: Range) -> Node {
        if let [node @ (Node::Read { .. } | Node::Use { .. } | Node::Real(_) | Node::Param(_))] = body.nodes.as_slice()
        {
            return node.clone();
        }
        let up = range.map_or(0, |[low, high]| if low == high { low } else { 0 });
        Node::Use { def: self.part(self.moved(&body, -up)), path: Path::levels_only(up) }
    }

    /// A body at another level: all that it reads on levels lies so much higher.
    fn moved(&self, body: &Body, by: i32) -> Body {
        let up = |path: &Path| path.then(&Path::levels_only(by));
        body.map_nodes(|node| match node {
            Node::Read { field, path, part, by } if self.old.fields[*field].place.levels != Levels::None => {
                Node::Read { field: *field, path: up(path), part: *part, by: *by }
            }
            Node::Use { def, path } => Node::Use { def: *def, path: up(path) },
            node => node.clone(),
        })
    }

    /// The definition of what a part of a sum is worth; two that compute the same are one.
    fn part(&mut self, body: Body) -> DefId {
        let key = format!("{:?}", body.nodes);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let def = self.made.add(Def { name: "part".to_owned(), origin: Origin::Let, over: None, body });
        self.known.insert(key, def);
        def
    }

    /// A factor times a sum: a term for each level, with what that level gives as one value.
    fn times(&mut self, factor: &Body, mut terms: Vec<Term>) -> Vec<Term> {
        let mut product = Vec::new();
        terms.sort_by_key(Term::level);
        for level in terms.chunk_by(|a, b| a.level() == b.level()) {
            let term = match level {
                [one] => one.clone(),
                several => {
                    // The first has no sign, so that sums that differ in their signs alone are one value.
                    let is_negative = several[0].is_negative;
                    let mut body = Body::new();
                    several.iter().for_each(|term| add(&mut body, &term.clone().turned_if(is_negative)));
                    let range = several.iter().fold(None, |range, term| joined(range, term.range));
                    Term {
                        range,
                        is_negative,
                        factors: Vec::new(),
                        value: self.value(body, range),
                        span: several[0].span,
                    }
                }
            };
            let factors = std::iter::once(factor.clone()).chain(term.factors).collect();
            product.push(Term { factors, ..term });
        }
        product
    }

    /// The terms, which are in order, as a sum.
    fn in_order(&mut self, terms: &[Term], name: &str) -> Body {
        self.has_sums = true;
        let lowest = terms.partition_point(|term| Some(term.level()) == terms.first().map(Term::level));
        let mut sum = Body::new();
        terms[..lowest].iter().for_each(|term| add(&mut sum, term));
        let is_product = |sum: &Body| matches!(sum.nodes.last(), Some(Node::Binary(Binary::Mul, ..)));
        if lowest < terms.len() && is_product(&sum) {
            let span = sum.span_of(sum.root());
            let def = self.made.add(Def { name: format!("{name}_lowest"), origin: Origin::Let, over: None, body: sum });
            sum = Body::new();
            sum.add(Node::Use { def, path: Path::default() }, Kind::Real, span);
        }
        terms[lowest..].iter().for_each(|term| add(&mut sum, term));
        sum
    }

    fn with_names(&self, node: &Node) -> Node {
        match node {
            Node::Use { def, path } => Node::Use { def: self.results[def.index()].def, path: path.clone() },
            node => node.clone(),
        }
    }

    fn renamed(&self, body: &Body) -> Body {
        body.map_nodes(|node| self.with_names(node))
    }
}

/// A body of the old stencil on its way.
struct InBody<'a, 'b> {
    of: &'a mut ByLevel<'b>,
    body: &'a Body,
    /// By nodes: what they read.
    ranges: Vec<Range>,
    /// By nodes: how many operands they are.
    times: Vec<usize>,
    /// By the nodes so far.
    worth: Vec<Worth>,
    /// What is made of it.
    made: Body,
}

impl InBody<'_, '_> {
    /// What the next node is worth; nothing if it has too many terms.
    fn worth_of(&mut self, id: NodeId, name: &str) -> Option<Worth> {
        if let Some(terms) = self.sum(id) {
            return (terms.len() <= MOST_TERMS).then_some(Worth::Sum(terms));
        }
        let node = self.of.with_names(&self.body[id]);
        let operands: Vec<NodeId> = node.operands().into_iter().map(|operand| self.node(operand, name)).collect();
        let mut operands = operands.into_iter();
        let node = node.map_operands(|operand| operands.next().unwrap_or(operand));
        Some(Worth::Node(self.made.add(node, self.body.kind_of(id), self.body.span_of(id))))
    }

    /// The terms of a node, if it is a sum that reads several levels.
    fn sum(&mut self, id: NodeId) -> Option<Vec<Term>> {
        if self.body.kind_of(id) != Kind::Real || !reads_several(self.ranges[id.index()]) {
            return None;
        }
        match self.body[id] {
            Node::Binary(op @ (Binary::Add | Binary::Sub), a, b) => {
                let mut terms = self.terms(a);
                let others = self.terms(b);
                terms.extend(others.into_iter().map(|term| term.turned_if(op == Binary::Sub)));
                Some(terms)
            }
            Node::Negate(a) if self.is_sum(a) => {
                Some(self.terms(a).into_iter().map(|term| term.turned_if(true)).collect())
            }
            Node::Binary(Binary::Mul, a, b) => {
                let [factor, rest] = [[a, b], [b, a]]
                    .into_iter()
                    .find(|[factor, rest]| self.factor(*factor).is_some() && self.is_sum(*rest))?;
                let (factor, terms) = (self.factor(factor)?, self.terms(rest));
                Some(self.of.times(&factor, terms))
            }
            Node::Use { def, ref path } if path.is_here() => self.of.results[def.index()].terms.clone(),
            _ => None,
        }
    }

    fn is_sum(&self, id: NodeId) -> bool {
        matches!(self.worth[id.index()], Worth::Sum(_))
    }

    /// A node that reads no level, as a body of its own.
    fn factor(&self, id: NodeId) -> Option<Body> {
        match self.worth[id.index()] {
            Worth::Node(node) if self.ranges[id.index()].is_none() => Some(self.made.rooted(node)),
            Worth::Node(_) | Worth::Sum(_) => None,
        }
    }

    /// What a node adds to a sum.
    fn terms(&mut self, id: NodeId) -> Vec<Term> {
        match &mut self.worth[id.index()] {
            // Nobody else asks for what is an operand once.
            Worth::Sum(terms) if self.times[id.index()] == 1 => std::mem::take(terms),
            Worth::Sum(terms) => terms.clone(),
            Worth::Node(_) => self.taken_apart(id),
        }
    }

    /// The same of a node that reads one level at most, or is no sum.
    fn taken_apart(&mut self, id: NodeId) -> Vec<Term> {
        let mut terms = Vec::new();
        let mut waiting = vec![(id, false, Vec::new())];
        while let Some((id, is_negative, mut factors)) = waiting.pop() {
            let range = self.ranges[id.index()];
            match self.body[id] {
                // What reads no level at all is a term as it is.
                _ if range.is_none() => {}
                Node::Binary(op @ (Binary::Add | Binary::Sub), a, b) if factors.is_empty() => {
                    waiting.push((b, is_negative != (op == Binary::Sub), Vec::new()));
                    waiting.push((a, is_negative, Vec::new()));
                    continue;
                }
                Node::Negate(a) => {
                    waiting.push((a, !is_negative, factors));
                    continue;
                }
                Node::Binary(Binary::Mul, a, b) => {
                    let found =
                        [[a, b], [b, a]].into_iter().find_map(|[factor, rest]| Some((self.factor(factor)?, rest)));
                    if let Some((factor, rest)) = found {
                        factors.push(factor);
                        waiting.push((rest, is_negative, factors));
                        continue;
                    }
                }
                _ => {}
            }
            // What is made of several levels, and is no sum, is a node; so is all that reads one.
            if let Worth::Node(node) = self.worth[id.index()] {
                let value = self.of.value(self.made.rooted(node), range);
                terms.push(Term { range, is_negative, factors, value, span: self.body.span_of(id) });
            }
        }
        terms
    }

    /// A node of what is made that is worth as much as one of the old body.
    fn node(&mut self, id: NodeId, name: &str) -> NodeId {
        let terms = match &self.worth[id.index()] {
            Worth::Node(node) => return *node,
            Worth::Sum(terms) => terms,
        };
        if let used @ Node::Use { .. } = &self.body[id] {
            return self.made.add(self.of.with_names(used), Kind::Real, self.body.span_of(id));
        }
        let mut terms = terms.clone();
        terms.sort_by_key(Term::level);
        let sum = self.of.in_order(&terms, name);
        append(&mut self.made, &sum)
    }
}

/// Adds a term to what a body is worth; an empty one is worth 0.
fn add(sum: &mut Body, term: &Term) {
    let Term { is_negative, factors, value, span, .. } = term;
    let before = (!sum.is_empty()).then(|| sum.root());
    let mut product: Option<NodeId> = None;
    for factor in factors {
        let mut factor = append(sum, factor);
        if product.is_none() && before.is_none() && *is_negative {
            factor = sum.add(Node::Negate(factor), Kind::Real, *span);
        }
        product = Some(
            product.map_or(factor, |product| sum.add(Node::Binary(Binary::Mul, product, factor), Kind::Real, *span)),
        );
    }
    let value = sum.add(value.clone(), Kind::Real, *span);
    let own = match product {
        Some(product) => sum.add(Node::Binary(Binary::Mul, product, value), Kind::Real, *span),
        None if before.is_none() && *is_negative => sum.add(Node::Negate(value), Kind::Real, *span),
        None => value,
    };
    if let Some(before) = before {
        let op = if *is_negative { Binary::Sub } else { Binary::Add };
        sum.add(Node::Binary(op, before, own), Kind::Real, *span);
    }
}

/// Adds a body's nodes to another, and returns the node that is worth as much.
fn append(to: &mut Body, body: &Body) -> NodeId {
    let by = to.len();
    for (id, node) in body.iter() {
        to.add(node.map_operands(|operand| NodeId::new(operand.index() + by)), body.kind_of(id), body.span_of(id));
    }
    to.root()
}

#[cfg(test)]
mod tests {
    use crate::source::Source;

    /// Definitions and the output, as text; `says` stands before everything else.
    fn lowered(says: &str, body: &str) -> String {
        let text = format!(
            "stencil s {{ {says}\n in u, w\n in m on (i, j)\n param c\n out r\n fn d(a) = 0.5 * (a[k+1] - a[k-1])\n {body} }}"
        );
        let lowered = crate::check(&Source::new("own", text));
        assert!(lowered.is_ok(), "{:?}", lowered.diagnostics);
        let text = lowered.stencils[0].to_string();
        let lines = text.lines().map(str::trim).filter(|line| line.contains(" = "));
        lines
            .map(|line| line.replace(": real", "").replace("real(2)", "2").replace("real(3)", "3"))
            .collect::<Vec<_>>()
            .join("\n")
    }

    fn ordered(body: &str) -> String {
        lowered("sums by level", body)
    }

    #[test]
    fn the_lowest_level_comes_first() {
        assert_eq!(
            ordered("r = u[k+1] + 2*u + w[k-1]*3"),
            "let r_lowest.0 = 3 * w[k-1]\nr = r_lowest.0 + 2 * u + u[k+1]"
        );
        // On one level, as it is written; what reads none, before all.
        assert_eq!(ordered("r = u[k+1] + u - w + u[i-1] + w[k+1] - c"), "r = -c + u - w + u[i-1] + u[k+1] + w[k+1]");
    }

    #[test]
    fn what_two_levels_have_in_common_is_one_value() {
        // A mixed derivative: the same difference below and above.
        assert_eq!(
            ordered("r = c * ((u[i+1, k+1] - u[i+1, k-1]) - (u[i-1, k+1] - u[i-1, k-1])) + c*(w[i+1] - w[i-1])"),
            "let part.0 = u[i+1] - u[i-1]\nlet part.1 = w[i+1] - w[i-1]\nlet r_lowest.2 = -c * part.0[k-1]\n\
             r = r_lowest.2 + c * part.1 + c * part.0[k+1]"
        );
        assert_eq!(
            ordered("r = c * (m * (u[k+1] + w[k+1] + u)) - u[k-1]"),
            "let part.0 = u + w\nr = -u[k-1] + c * m * u + c * m * part.0[k+1]"
        );
    }

    #[test]
    fn results_of_functions_are_taken_apart_and_names_are_not() {
        assert_eq!(
            ordered("r = u - d(w)"),
            "let d_lowest.0 = -0.5 * w[k-1]\nlet d.1 = d_lowest.0 + 0.5 * w[k+1]\nlet r_lowest.2 = 0.5 * w[k-1]\n\
             r = r_lowest.2 + u - 0.5 * w[k+1]"
        );
        let named = ordered("let p = d(w); r = u - p + d(p)[i+1]");
        assert!(named.ends_with("r = u - p.1 + d.3[i+1]"), "{named}");
    }

    #[test]
    fn what_is_no_sum_waits_for_its_highest_level() {
        let product = ordered("r = w[k+1] * d(u) + u[k+2] + u");
        assert!(product.ends_with("r = u + part.2 + u[k+2]"), "{product}");
        assert!(product.contains("let part.2 = w[k+1] * d.1"), "{product}");
        // A sum inside of something else is in order, too.
        let inner = ordered("r = max(u[k+1] - u[k-1], w) / 2");
        assert!(inner.contains("r = max(-u[k-1] + u[k+1], w) / 2"), "{inner}");
    }

    #[test]
    fn what_is_in_order_or_reads_one_level_stays() {
        for body in ["r = u[k-1] + c * u + u[k+1]", "r = max(c * (u + w) + u[i-1], w[k+1])", "r = u[k-1] * w[k+1]"] {
            assert_eq!(ordered(body), lowered("", body));
        }
    }

    #[test]
    fn what_doubles_is_told() {
        let doubles: String = (1..20).map(|n| format!("fn f{n}(a) = f{}(a) + f{0}(a)\n", n - 1)).collect();
        let text =
            format!("stencil s {{ sums by level\n in u\n out r\n r = f19(u) }}\nfn f0(a) = a[k-1] + a[k+1]\n{doubles}");
        let found = &crate::check(&Source::new("own", text)).diagnostics;
        assert!(!found.is_empty());
        let sum = vec!["u[k-1] + u[k+1]"; 2500].join(" + ");
        let text = format!("stencil s {{ sums by level\n in u\n out r\n r = {sum} }}");
        let found = &crate::check(&Source::new("own", text)).diagnostics;
        assert_eq!(found[0].message, "a sum of more than 4096 terms cannot be put in order");
    }
}
