//! Guards that do not guard: conditions on `k` that hold on every level, or on none, and reads outside the grid that a
//! guard lets pass. All of it is legal; it only costs levels that the user did not mean to give up.
//!
//! Only what can be decided for every grid is told. A condition is understood if it compares whole multiples of `k` and
//! `nk`. Parameters, and conditions that read fields, are not.

use crate::diagnostic::Diagnostic;
use crate::ir::program::GridAxis;
use crate::ir::{Binary, Body, DefId, Handle, Kind, Levels, Node, NodeId, Path, Relation, Stencil};
use crate::ir::{known_defs, known_nodes};
use crate::source::Span;
use std::collections::{BTreeMap, HashSet};

/// Warnings about the guards of `stencil`.
pub fn guards(stencil: &Stencil) -> Vec<Diagnostic> {
    // What is true on all levels of a grid need not be so on those that are said, or on the last interface.
    if stencil.says(GridAxis::K) {
        return Vec::new();
    }
    let forms = Forms::new(stencil);
    let mut cuts = Cuts { stencil, forms: &forms, seen: HashSet::new(), found: BTreeMap::new() };
    cuts.follow();
    let mut told: Vec<Diagnostic> = idle(stencil, &forms)
        .into_iter()
        .filter(|(span, _)| !cuts.found.values().any(|(guard, _)| guard == span))
        .map(|(span, holds)| idle_message(span, holds))
        .collect();
    told.extend(cuts.found.into_values().map(|(_, diagnostic)| diagnostic));
    told
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
        let defs = stencil.of_defs(|body, defs| linear(body, defs).pop().flatten());
        Self { defs, known: known_defs(stencil) }
    }
}

/// The form of each node of a body, given those of definitions.
fn linear(body: &Body, defs: &[Option<Linear>]) -> Vec<Option<Linear>> {
    body.of_nodes(|_, node, forms| {
        let form = |id: &NodeId| forms[id.index()];
        let own = match node {
            Node::Int(x) => Some(Linear::constant(i64::from(*x))),
            Node::Real(x) if x.fract() == 0.0 && x.abs() <= LARGEST as f64 => Some(Linear::constant(*x as i64)),
            Node::Level => Some(Linear { k: 1, nk: 0, c: 0 }),
            Node::Count(GridAxis::K) => Some(Linear { k: 0, nk: 1, c: 0 }),
            Node::Use { def, path } => defs[def.index()].map(|form| form.moved(path.levels())),
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
        own.and_then(Linear::checked)
    })
}

/// Comparisons that come out the same on every level, wherever their text stands for something: `true` or `false`.
fn idle(stencil: &Stencil, forms: &Forms) -> BTreeMap<Span, bool> {
    let mut verdicts: BTreeMap<Span, Option<bool>> = BTreeMap::new();
    // How far away, in levels, something is evaluated: at least, and at most.
    let then = |(low, high): (i64, i64), path: &Path| (low + i64::from(path.levels()), high + i64::from(path.levels()));
    let join = |a: (i64, i64), b: (i64, i64)| (a.0.min(b.0), a.1.max(b.1));
    stencil.at_joined_places((0, 0), then, join, |body, (low, high)| {
        let linear = linear(body, &forms.defs);
        for (id, node) in body.iter() {
            let Node::Compare(relation, a, b) = node else { continue };
            let difference = linear[a.index()].zip(linear[b.index()]).map(|(a, b)| a.plus(b, -1));
            let verdict = difference.filter(|form| form.k != 0).and_then(|form| {
                let (least, most) = form.range(low, -high);
                holds(*relation, least, most)
            });
            let entry = verdicts.entry(body.span_of(id)).or_insert(verdict);
            if *entry != verdict {
                *entry = None;
            }
        }
    });
    verdicts.into_iter().filter_map(|(span, verdict)| verdict.map(|holds| (span, holds))).collect()
}

/// Whether `x relation 0` is the same for all `least <= x <= most`.
fn holds(relation: Relation, least: i64, most: i64) -> Option<bool> {
    let always = |relation| match relation {
        Relation::Lt => most < 0,
        Relation::Le => most <= 0,
        Relation::Gt => least > 0,
        Relation::Ge => least >= 0,
        Relation::Eq => least == 0 && most == 0,
        Relation::Ne => least > 0 || most < 0,
    };
    if always(relation) { Some(true) } else { always(negated(relation)).then_some(false) }
}

/// The levels on which something is evaluated: `low <= k <= nk - 1 - high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Domain {
    low: Bound,
    high: Bound,
}

/// How many levels at an end are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Bound {
    by: i64,
    /// The guard that was meant to leave them out.
    guard: Option<Span>,
    /// Whether the number is not exact, so that nothing is told.
    is_unsure: bool,
}

impl Domain {
    const ALL: Domain = {
        let all = Bound { by: 0, guard: None, is_unsure: false };
        Domain { low: all, high: all }
    };

    fn unsure(self) -> Self {
        let unsure = |bound| Bound { is_unsure: true, ..bound };
        Domain { low: unsure(self.low), high: unsure(self.high) }
    }

    fn moved(mut self, levels: i32) -> Self {
        self.low.by += i64::from(levels);
        self.high.by -= i64::from(levels);
        self
    }

    /// Where `form relation 0` holds, too.
    fn narrowed(mut self, form: Linear, relation: Relation, guard: Span) -> Self {
        let (form, relation) = if form.k < 0 { (form.times(-1), flipped(relation)) } else { (form, relation) };
        // How many levels lie between `k` and an end, compared with a number.
        let (relation, number, near, far) = match (form.k, form.nk) {
            (1, 0) => (relation, -form.c, &mut self.low, &mut self.high),
            (1, -1) => (flipped(relation), form.c - 1, &mut self.high, &mut self.low),
            _ => return self.unsure(),
        };
        let by = match relation {
            Relation::Ge => near.by.max(number),
            Relation::Gt => near.by.max(number + 1),
            Relation::Ne if number <= near.by => near.by + i64::from(number == near.by),
            Relation::Ne => return self,
            // On this level alone, on a grid that has it.
            Relation::Eq if number >= near.by => {
                far.is_unsure = true;
                number
            }
            Relation::Eq => return self.unsure(),
            Relation::Lt | Relation::Le => {
                far.is_unsure = true;
                return self;
            }
        };
        (near.by, near.guard) = (by, Some(guard));
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
    found: BTreeMap<Span, (Span, Diagnostic)>,
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
            match node {
                Node::Read { by: Some(_), .. } => {}
                Node::Read { field, path, .. } => {
                    let levels = self.stencil.fields[*field].place.levels;
                    self.read(body.span_of(id), i64::from(path.levels()), levels, domain);
                }
                Node::Use { def, path } => waiting.push((*def, domain.moved(path.levels()))),
                _ => {}
            }
            for (operand, condition) in node.guarded_operands() {
                let guarded = |(condition, truth)| self.guard(body, condition, truth, domain);
                let domain = condition.map_or(domain, guarded);
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
            let linear = linear(body, &self.forms.defs);
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
                            Some(form) => domain.narrowed(form.moved(shift), relation, body.span_of(id)),
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
        let reach = by - below;
        let (low, high) = (domain.low, domain.high);
        for (bound, reach, level, better) in [
            (low, -by, low.by.to_string(), format!("k >= {}", -by)),
            (high, reach, format!("nk - {}", high.by + 1), format!("k < nk - {reach}")),
        ] {
            let Some(guard) = bound.guard.filter(|_| !bound.is_unsure && reach > 0 && reach > bound.by) else {
                continue;
            };
            self.found.entry(span).or_insert_with(|| {
                let told = format!("the guard lets `k = {level}` pass, where this is outside the grid");
                let found = Diagnostic::warning(span, told)
                    .label(format!("no such level at `k = {level}`, which is therefore not computed"))
                    .note(guard, "this guard")
                    .help(format!("to compute every level, guard it with `{better}`"));
                (guard, found)
            });
        }
    }
}
