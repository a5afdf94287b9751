//! Guards that do not guard: conditions on `k` that hold on every level, or on none, and reads outside the grid that a
//! guard lets pass. All of it is legal; it only costs levels that the user did not mean to give up.
//!
//! Only what can be decided for every grid is told. A condition is understood if it compares whole multiples of `k` and
//! `nk`. Parameters, and conditions that read fields, are not.

use super::levels::{known_defs, known_nodes};
use crate::diagnostic::Diagnostic;
use crate::ir::{Binary, Body, DefId, Handle, Kind, Levels, Node, NodeId, Relation, Stencil};
use crate::source::Span;
use std::collections::{BTreeMap, HashSet};

/// Warnings about the guards of `stencil`.
pub fn guards(stencil: &Stencil) -> Vec<Diagnostic> {
    let forms = Forms::new(stencil);
    let mut cuts = Cuts { stencil, forms: &forms, seen: HashSet::new(), found: BTreeMap::new() };
    cuts.follow();
    let mut told: Vec<Diagnostic> = idle(stencil, &forms)
        .into_iter()
        .filter(|(span, _)| !cuts.found.values().any(|(guard, _)| guard == span))
        .map(|(span, holds)| idle_message(place(span), holds))
        .collect();
    told.extend(cuts.found.into_values().map(|(_, diagnostic)| diagnostic));
    told
}

/// A span as a key that has an order.
type Place = (u32, u32);

fn key(span: Span) -> Place {
    (span.start, span.end)
}

fn place((start, end): Place) -> Span {
    Span { start, end }
}

fn idle_message(span: Span, holds: bool) -> Diagnostic {
    let (message, label) = if holds {
        ("this condition is true on every level", "always true")
    } else {
        ("this condition is true on no level", "never true")
    };
    Diagnostic::warning(span, message).label(label).help("levels run from `k = 0` to `k = nk - 1`")
}

/// `k * level + nk * levels + c`
#[derive(Clone, Copy, Debug, PartialEq)]
struct Linear {
    k: i64,
    nk: i64,
    c: i64,
}

/// The largest number in a form; levels are fewer, so nothing wraps or rounds, in either precision.
const LARGEST: i64 = 1 << 20;

impl Linear {
    fn constant(c: i64) -> Self {
        Linear { k: 0, nk: 0, c }
    }

    fn plus(self, other: Linear, sign: i64) -> Self {
        Linear { k: self.k + sign * other.k, nk: self.nk + sign * other.nk, c: self.c + sign * other.c }
    }

    fn times(self, by: i64) -> Self {
        Linear { k: self.k * by, nk: self.nk * by, c: self.c * by }
    }

    /// The same, evaluated `levels` away.
    fn moved(self, levels: i32) -> Self {
        Linear { c: self.c + self.k * i64::from(levels), ..self }
    }

    fn checked(self) -> Option<Self> {
        (self.k.abs() <= 4 && self.nk.abs() <= 4 && self.c.abs() <= LARGEST).then_some(self)
    }

    /// The smallest and the largest value where `low <= k <= nk - 1 - high`, on any grid.
    fn range(self, low: i64, high: i64) -> (i64, i64) {
        let least = (low + high + 1).max(1);
        let corners = [(low, least), (least - 1 - high, least), (low, LARGEST), (LARGEST - 1 - high, LARGEST)];
        let values = corners.map(|(k, nk)| self.k * k + self.nk * nk + self.c);
        (values.into_iter().min().unwrap_or(0), values.into_iter().max().unwrap_or(0))
    }
}

/// What of a stencil is linear in `k` and `nk`.
struct Forms {
    defs: Vec<Option<Linear>>,
    known: Vec<bool>,
}

impl Forms {
    fn new(stencil: &Stencil) -> Self {
        let mut forms = Forms { defs: Vec::new(), known: known_defs(stencil) };
        for (_, def) in stencil.defs.iter() {
            let own = forms.of(&def.body).pop().flatten();
            forms.defs.push(own);
        }
        forms
    }

    /// The form of each node of a body.
    fn of(&self, body: &Body) -> Vec<Option<Linear>> {
        let mut forms: Vec<Option<Linear>> = Vec::with_capacity(body.len());
        for (_, node) in body.iter() {
            let form = |id: &NodeId| forms[id.index()];
            let own = match node {
                Node::Int(x) => Some(Linear::constant(i64::from(*x))),
                Node::Real(x) if x.fract() == 0.0 && x.abs() <= LARGEST as f64 => Some(Linear::constant(*x as i64)),
                Node::Level => Some(Linear { k: 1, nk: 0, c: 0 }),
                Node::LevelCount => Some(Linear { k: 0, nk: 1, c: 0 }),
                Node::Use { def, path } => self.defs[def.index()].map(|form| form.moved(path.levels())),
                Node::ToReal(a) => form(a),
                Node::Negate(a) => form(a).map(|a| a.times(-1)),
                Node::Binary(Binary::Add, a, b) => form(a).zip(form(b)).map(|(a, b)| a.plus(b, 1)),
                Node::Binary(Binary::Sub, a, b) => form(a).zip(form(b)).map(|(a, b)| a.plus(b, -1)),
                Node::Binary(Binary::Mul, a, b) => match (form(a), form(b)) {
                    (Some(Linear { k: 0, nk: 0, c }), Some(other)) | (Some(other), Some(Linear { k: 0, nk: 0, c })) => {
                        Some(other.times(c))
                    }
                    _ => None,
                },
                _ => None,
            };
            forms.push(own.and_then(Linear::checked));
        }
        forms
    }
}

/// Comparisons that come out the same on every level, wherever their text stands for something: `true` or `false`.
fn idle(stencil: &Stencil, forms: &Forms) -> BTreeMap<Place, bool> {
    let mut verdicts: BTreeMap<Place, Option<bool>> = BTreeMap::new();
    let mut look = |body: &Body, shifts: (i64, i64)| {
        let linear = forms.of(body);
        for (id, node) in body.iter() {
            let Node::Compare(relation, a, b) = node else { continue };
            let difference = linear[a.index()].zip(linear[b.index()]).map(|(a, b)| a.plus(b, -1));
            let verdict = difference.filter(|form| form.k != 0).and_then(|form| {
                let (least, most) = form.range(shifts.0, -shifts.1);
                holds(*relation, least, most)
            });
            let entry = verdicts.entry(key(body.span_of(id))).or_insert(verdict);
            if *entry != verdict {
                *entry = None;
            }
        }
    };
    let mut shifts: Vec<Option<(i64, i64)>> = vec![None; stencil.defs.len()];
    for store in &stencil.stores {
        spread(&store.body, (0, 0), &mut shifts);
        look(&store.body, (0, 0));
    }
    for (id, def) in stencil.defs.iter().rev() {
        if let Some(at) = shifts[id.index()] {
            spread(&def.body, at, &mut shifts);
            look(&def.body, at);
        }
    }
    verdicts.into_iter().filter_map(|(span, verdict)| verdict.map(|holds| (span, holds))).collect()
}

/// Notes how far away, in levels, the definitions that `body` uses are evaluated.
fn spread(body: &Body, at: (i64, i64), shifts: &mut [Option<(i64, i64)>]) {
    for (_, node) in body.iter() {
        if let Node::Use { def, path } = node {
            let by = i64::from(path.levels());
            let (low, high) = (at.0 + by, at.1 + by);
            let known = &mut shifts[def.index()];
            *known = Some(known.map_or((low, high), |(least, most)| (least.min(low), most.max(high))));
        }
    }
}

/// Whether `x relation 0` is the same for all `least <= x <= most`.
fn holds(relation: Relation, least: i64, most: i64) -> Option<bool> {
    let (always, never) = match relation {
        Relation::Lt => (most < 0, least >= 0),
        Relation::Le => (most <= 0, least > 0),
        Relation::Gt => (least > 0, most <= 0),
        Relation::Ge => (least >= 0, most < 0),
        Relation::Eq => (least == 0 && most == 0, least > 0 || most < 0),
        Relation::Ne => (least > 0 || most < 0, least == 0 && most == 0),
    };
    if always { Some(true) } else { never.then_some(false) }
}

/// The levels on which something is evaluated: `low <= k <= nk - 1 - high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Domain {
    low: i64,
    high: i64,
    /// The guards that were meant to bound it.
    low_guard: Option<Place>,
    high_guard: Option<Place>,
    /// Whether the bounds are not exact, so that nothing is told.
    low_unsure: bool,
    high_unsure: bool,
}

impl Domain {
    const ALL: Domain =
        Domain { low: 0, high: 0, low_guard: None, high_guard: None, low_unsure: false, high_unsure: false };

    fn unsure(self) -> Self {
        Domain { low_unsure: true, high_unsure: true, ..self }
    }

    fn moved(self, levels: i32) -> Self {
        Domain { low: self.low + i64::from(levels), high: self.high - i64::from(levels), ..self }
    }

    /// Where `form relation 0` holds, too.
    fn narrowed(mut self, form: Linear, relation: Relation, guard: Place) -> Self {
        let (form, relation) = if form.k < 0 { (form.times(-1), flipped(relation)) } else { (form, relation) };
        let bound = -form.c;
        match (form.k, form.nk, relation) {
            // k >= bound
            (1, 0, Relation::Ge) => (self.low, self.low_guard) = (self.low.max(bound), Some(guard)),
            (1, 0, Relation::Gt) => (self.low, self.low_guard) = (self.low.max(bound + 1), Some(guard)),
            (1, 0, Relation::Ne) if bound <= self.low => {
                (self.low, self.low_guard) = (self.low + i64::from(bound == self.low), Some(guard));
            }
            // On this level alone, on a grid that has it.
            (1, 0, Relation::Eq) if bound >= self.low => {
                (self.low, self.low_guard, self.high_unsure) = (bound, Some(guard), true);
            }
            (1, -1, Relation::Eq) if -bound > self.high => {
                (self.high, self.high_guard, self.low_unsure) = (-bound - 1, Some(guard), true);
            }
            (1, 0, Relation::Lt | Relation::Le) => self.high_unsure = true,
            // k <= nk + bound
            (1, -1, Relation::Le) => (self.high, self.high_guard) = (self.high.max(-bound - 1), Some(guard)),
            (1, -1, Relation::Lt) => (self.high, self.high_guard) = (self.high.max(-bound), Some(guard)),
            (1, -1, Relation::Ne) if -bound - 1 <= self.high => {
                (self.high, self.high_guard) = (self.high + i64::from(-bound - 1 == self.high), Some(guard));
            }
            (1, -1, Relation::Gt | Relation::Ge) => self.low_unsure = true,
            (1, 0 | -1, Relation::Ne) => {}
            _ => return self.unsure(),
        }
        self
    }
}

fn flipped(relation: Relation) -> Relation {
    match relation {
        Relation::Lt => Relation::Gt,
        Relation::Le => Relation::Ge,
        Relation::Gt => Relation::Lt,
        Relation::Ge => Relation::Le,
        Relation::Eq => Relation::Eq,
        Relation::Ne => Relation::Ne,
    }
}

fn negated(relation: Relation) -> Relation {
    match relation {
        Relation::Lt => Relation::Ge,
        Relation::Le => Relation::Gt,
        Relation::Gt => Relation::Le,
        Relation::Ge => Relation::Lt,
        Relation::Eq => Relation::Ne,
        Relation::Ne => Relation::Eq,
    }
}

/// The most bodies that are followed: a stencil where more could be would be slow to read for a warning.
const BODIES: usize = 2_000;

/// The most names of a condition that are followed, one inside the other.
const NAMES: usize = 8;

/// Looks for reads that a guard lets pass although they are outside the grid.
struct Cuts<'a> {
    stencil: &'a Stencil,
    forms: &'a Forms,
    seen: HashSet<(DefId, Domain)>,
    /// By the place of the read: its guard, and what is told.
    found: BTreeMap<Place, (Place, Diagnostic)>,
}

impl Cuts<'_> {
    fn follow(&mut self) {
        let mut waiting: Vec<(DefId, Domain)> = Vec::new();
        for store in &self.stencil.stores {
            self.look(&store.body, Domain::ALL, &mut waiting);
        }
        while let Some(next) = waiting.pop() {
            if self.seen.len() < BODIES && self.seen.insert(next) {
                let stencil = self.stencil;
                self.look(&stencil.defs[next.0].body, next.1, &mut waiting);
            }
        }
    }

    /// Goes through a body from its value to its operands, with the levels on which each is evaluated.
    fn look(&mut self, body: &Body, all: Domain, waiting: &mut Vec<(DefId, Domain)>) {
        let mut domains: Vec<Option<Domain>> = vec![None; body.len()];
        if let Some(root) = domains.last_mut() {
            *root = Some(all);
        }
        for (id, node) in body.iter().rev() {
            let Some(domain) = domains[id.index()] else { continue };
            let parts: Vec<(NodeId, Domain)> = match node {
                Node::Read { field, path, .. } => {
                    let levels = self.stencil.fields[*field].place.levels;
                    self.read(body.span_of(id), i64::from(path.levels()), levels, domain);
                    continue;
                }
                Node::Use { def, path } => {
                    waiting.push((*def, domain.moved(path.levels())));
                    continue;
                }
                Node::Choose { condition, yes, no } => vec![
                    (*condition, domain),
                    (*yes, self.guard(body, *condition, true, domain)),
                    (*no, self.guard(body, *condition, false, domain)),
                ],
                Node::And(a, b) => vec![(*a, domain), (*b, self.guard(body, *a, true, domain))],
                Node::Or(a, b) => vec![(*a, domain), (*b, self.guard(body, *a, false, domain))],
                _ => node.operands().into_iter().map(|operand| (operand, domain)).collect(),
            };
            for (operand, domain) in parts {
                let entry = &mut domains[operand.index()];
                // What is needed twice on different levels is left alone.
                *entry = Some(if entry.is_none_or(|known| known == domain) { domain } else { domain.unsure() });
            }
        }
    }

    /// The levels of `domain` on which a condition has a truth value. Names of conditions are followed.
    fn guard(&self, body: &Body, condition: NodeId, truth: bool, mut domain: Domain) -> Domain {
        let mut waiting = vec![(body, condition, truth, 0, 0)];
        while let Some((body, condition, truth, shift, depth)) = waiting.pop() {
            let linear = self.forms.of(body);
            let known = known_nodes(body, &self.forms.known);
            let mut parts = vec![(condition, truth)];
            while let Some((id, truth)) = parts.pop() {
                match (&body[id], truth) {
                    (Node::Not(a), truth) => parts.push((*a, !truth)),
                    (Node::And(a, b), true) | (Node::Or(a, b), false) => parts.extend([(*a, truth), (*b, truth)]),
                    (Node::Compare(relation, a, b), truth) if body.kind_of(*a) != Kind::Bool => {
                        let relation = if truth { *relation } else { negated(*relation) };
                        domain = match linear[a.index()].zip(linear[b.index()]).map(|(a, b)| a.plus(b, -1)) {
                            Some(form) if form.k == 0 => domain.unsure(),
                            Some(form) => domain.narrowed(form.moved(shift), relation, key(body.span_of(id))),
                            None if known[id.index()] => domain.unsure(),
                            None => domain,
                        };
                    }
                    (Node::Use { def, path }, _) if self.forms.known[def.index()] && depth < NAMES => {
                        let own = &self.stencil.defs[*def].body;
                        waiting.push((own, own.root(), truth, shift.saturating_add(path.levels()), depth + 1));
                    }
                    // A condition that reads fields narrows nothing; one that is known, but not understood, might.
                    _ if known[id.index()] => domain = domain.unsure(),
                    (Node::And(a, b) | Node::Or(a, b), _) if known[a.index()] || known[b.index()] => {
                        domain = domain.unsure();
                    }
                    _ => {}
                }
            }
        }
        domain
    }

    fn read(&mut self, span: Span, by: i64, levels: Levels, domain: Domain) {
        let below = match levels {
            Levels::None => return,
            Levels::Full => 0,
            Levels::Interfaces => 1,
        };
        let warning = |level: String, guard: Place, better: String| {
            let found =
                Diagnostic::warning(span, format!("the guard lets `k = {level}` pass, where this is outside the grid"))
                    .label(format!("no such level at `k = {level}`, which is therefore not computed"))
                    .note(place(guard), "this guard")
                    .help(format!("to compute every level, guard it with `{better}`"));
            (guard, found)
        };
        if let (Some(guard), false, true) = (domain.low_guard, domain.low_unsure, by < 0 && domain.low + by < 0) {
            self.found
                .entry(key(span))
                .or_insert_with(|| warning(domain.low.to_string(), guard, format!("k >= {}", -by)));
        }
        let reach = by - below;
        if let (Some(guard), false, true) = (domain.high_guard, domain.high_unsure, reach > 0 && reach > domain.high) {
            self.found
                .entry(key(span))
                .or_insert_with(|| warning(format!("nk - {}", domain.high + 1), guard, format!("k < nk - {reach}")));
        }
    }
}
