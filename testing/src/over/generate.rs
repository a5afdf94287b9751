//! Random meshes, and stencils over them that have a meaning.

mod sweeps;
mod ways;

use super::tree::{
    Cond, Expr, Field, Fold, HOLE, Kind, Leads, Let, Levels, Map, Mesh, Missing, Stencil, Stored, Way, Write,
};
use fastrand::Rng;
use std::collections::BTreeSet;
use sweeps::Known;

/// The most terms of a sum.
const TERMS: usize = 9;

/// Slots from here on stand for those that counters go through.
const OF_COUNTERS: usize = 100;

/// What a stencil does, mostly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Anything.
    Any,
    /// It adds to the elements of a set, and does nothing else.
    Adds(usize),
    /// It writes at its own elements, and mostly looks at these alone.
    Own,
}

/// A stencil of a program over `mesh`, whose fields are of these types and places, the first one most often; of any, if there are none.
pub fn of_program(rng: &mut Rng, mesh: &Mesh, over: usize, style: Style, types: &[Field]) -> Stencil {
    let mut writer = Writer::new(rng.fork(), mesh.clone(), over, style, types.to_vec());
    writer.stencil.params = [0, 0, 1, 2][writer.rng.usize(0..4)];
    writer.write();
    writer.stencil
}

/// The kind of an expression, and how many parts it has.
pub fn shape(stencil: &Stencil, expr: &Expr) -> (Kind, usize) {
    let of = |expr: &Expr| shape(stencil, expr);
    let both = |a: &Expr, b: &Expr| {
        let (a, b) = (of(a), of(b));
        (if a.0 == b.0 { a.0 } else { Kind::Real }, a.1.max(b.1))
    };
    match expr {
        Expr::Real(_) | Expr::Param(_) => (Kind::Real, 1),
        Expr::Int(_) => (Kind::Int, 1),
        Expr::Read { field, .. } => (stencil.inputs[*field].stored.kind(), stencil.inputs[*field].parts),
        Expr::Let { number, .. } => of(&stencil.lets[*number].value),
        Expr::Swept { number, .. } => (stencil.swept[*number].0, 1),
        Expr::Part(a, _) => (of(a).0, 1),
        // The generator makes all parts of one kind.
        Expr::Vector(parts) => (of(&parts[0]).0, parts.len()),
        Expr::Binary('/', a, b) => (Kind::Real, both(a, b).1),
        Expr::Binary(_, a, b) | Expr::Less(a, b) | Expr::Choose(_, a, b) => both(a, b),
        Expr::Negate(a) | Expr::Abs(a) => of(a),
        Expr::Dot(a, b) => (both(a, b).0, 1),
        Expr::Fold { term, .. } => of(term),
    }
}

/// Whether a value depends on a field.
fn is_open(stencil: &Stencil, expr: &Expr) -> bool {
    let of = |expr: &Expr| is_open(stencil, expr);
    match expr {
        Expr::Real(_) | Expr::Int(_) | Expr::Param(_) => false,
        Expr::Read { .. } | Expr::Swept { .. } => true,
        Expr::Let { number, .. } => of(&stencil.lets[*number].value),
        Expr::Part(a, _) | Expr::Negate(a) | Expr::Abs(a) => of(a),
        Expr::Vector(parts) => parts.iter().any(of),
        Expr::Binary(_, a, b) | Expr::Less(a, b) | Expr::Dot(a, b) | Expr::Choose(_, a, b) => of(a) || of(b),
        Expr::Fold { term, .. } => of(term),
    }
}

pub fn mesh(rng: &mut Rng) -> Mesh {
    let sets: Vec<usize> = (0..rng.usize(1..4)).map(|_| [0, 1, 2, 3, 5, 8, 13][rng.usize(0..7)]).collect();
    let mut maps = Vec::new();
    for _ in 0..rng.usize(1..6) {
        let (from, to) = (rng.usize(0..sets.len()), rng.usize(0..sets.len()));
        let arity = rng.usize(1..4);
        let missing = match rng.usize(0..5) {
            0 | 1 => Missing::Never,
            2 | 3 => Missing::Skip,
            _ => Missing::Value(rng.i32(-3..4)),
        };
        // Into an empty set there are holes alone.
        let missing = if sets[to] == 0 && missing == Missing::Never { Missing::Skip } else { missing };
        let often = rng.usize(0..4);
        let mut slot = |_| match missing != Missing::Never && (sets[to] == 0 || rng.usize(0..4) < often) {
            true => HOLE,
            false => rng.usize(0..sets[to]) as i32,
        };
        let table = (0..sets[from] * arity).map(&mut slot).collect();
        maps.push(Map { from, to, arity, missing, table });
    }
    let levels = (rng.usize(0..3) == 0).then(|| rng.usize(1..5));
    let zones = sets.iter().map(|&size| {
        let count = [0, 0, 1, 2, 3][rng.usize(0..5)];
        let zone = |_| if count == 0 { 0 } else { rng.u8(0..count) };
        (count, (0..size).map(zone).collect())
    });
    let zones = zones.collect();
    Mesh { sets, maps, levels, zones }
}

struct Writer {
    rng: Rng,
    stencil: Stencil,
    /// The counters at hand: their numbers, and all hops of the ways that they stand for.
    counters: Vec<(usize, Vec<(usize, usize)>)>,
    /// Ways that are known to lead to elements, with counters written out.
    known: Vec<Way>,
    folds: usize,
    /// Whether what is being written lives on another set than the stencil's.
    is_elsewhere: bool,
    style: Style,
    /// Types and places of fields; any if there are none.
    types: Vec<Field>,
    /// How many sweeps there will be, if any: then no level is read that there may not be.
    sweeps: Option<usize>,
    /// What is known of sweeps where something is being written: the values of those that are done, and of the one at hand its direction,
    /// the values that are known at its level, and those that it will have.
    reads: Option<Known>,
}

impl Writer {
    fn new(rng: Rng, mesh: Mesh, over: usize, style: Style, types: Vec<Field>) -> Self {
        let (inputs, sums, lets, writes) = (vec![], vec![], vec![], vec![]);
        let stencil = Stencil {
            mesh,
            over,
            inputs,
            sums,
            params: 0,
            lets,
            writes,
            offsets: BTreeSet::new(),
            levels: None,
            zones: None,
            sweeps: vec![],
            swept: vec![],
        };
        Writer {
            rng,
            stencil,
            counters: Vec::new(),
            known: Vec::new(),
            folds: 0,
            is_elsewhere: false,
            style,
            types,
            sweeps: None,
            reads: None,
        }
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.rng.usize(0..count) == 0
    }

    /// Some zones of the stencil's set that follow each other, if it has any.
    fn zones(&mut self) -> Option<(u8, u8)> {
        self.zones_of(self.stencil.over)
    }

    /// The same of any set.
    fn zones_of(&mut self, set: usize) -> Option<(u8, u8)> {
        let count = self.stencil.mesh.zones[set].0;
        let first = self.rng.u8(0..count.max(1));
        (count > 0).then(|| (first, self.rng.u8(first..count)))
    }

    fn write(&mut self) {
        self.stencil.zones = self.zones().filter(|_| self.one_in(3));
        let may_sweep = self.stencil.mesh.levels.is_some() && !matches!(self.style, Style::Adds(_));
        self.sweeps = (may_sweep && self.one_in(3)).then(|| self.rng.usize(1..4));
        if self.sweeps.is_some() {
            // Through the levels, or through their interfaces, of which the last lies behind them.
            self.stencil.levels = self.one_in(2).then_some((0, Some(1)));
            return self.write_all();
        }
        // One alone is said before anything is written, since it allows what lacks levels to be made of what has some.
        if let Some(levels) = self.stencil.mesh.levels.filter(|_| self.one_in(12)) {
            self.stencil.levels = Some((self.rng.usize(0..levels) as i64, None));
        }
        self.write_all();
        let unsaid = self.stencil.mesh.levels.filter(|_| self.stencil.levels.is_none());
        if let Some(levels) = unsaid.filter(|_| self.one_in(4)) {
            // Of few levels some are left.
            let few = i64::from(levels > 2);
            // Often those at the ends are left out, next to which there is nothing to read.
            let first = if self.one_in(4) { 0 } else { few };
            let end = if self.one_in(4) { i64::from(self.stencil.is_on_interfaces()) } else { -few };
            self.stencil.levels = Some((first, Some(end)));
        }
    }

    fn write_all(&mut self) {
        for _ in 0..self.rng.usize(1..6) {
            let field = self.field(true);
            self.stencil.inputs.push(field);
        }
        if self.stencil.mesh.levels.is_some() && self.one_in(2) {
            let levels = if self.rng.bool() { Levels::None } else { Levels::All };
            let set = self.stencil.over;
            let field = Field { stored: Stored::Int, set, map: None, parts: 1, levels, everywhere: false };
            self.stencil.inputs.push(field);
        }
        for _ in 0..self.rng.usize(0..4) {
            let (kind, parts) = (self.kind(), self.parts());
            let set = if self.one_in(3) { self.rng.usize(0..self.stencil.mesh.sets.len()) } else { self.stencil.over };
            // Ways begin there, and nothing is known of them.
            self.is_elsewhere = set != self.stencil.over;
            let over = std::mem::replace(&mut self.stencil.over, set);
            let value = self.expr(kind, parts, 3);
            (self.stencil.over, self.is_elsewhere) = (over, false);
            self.stencil.lets.push(Let { set, value });
        }
        self.write_sweeps();
        for _ in 0..self.rng.usize(1..4) {
            let which = match self.style {
                // What sweeps adds to nothing, and folds nothing.
                _ if self.sweeps.is_some() => 0,
                Style::Any => self.rng.usize(0..4),
                Style::Adds(_) => 3,
                Style::Own => [0, 0, 0, 1][self.rng.usize(0..4)],
            };
            let write = match which {
                0 => self.out(),
                1 => Write::Reduce([Fold::Sum, Fold::Min, Fold::Max][self.rng.usize(0..3)], false),
                _ => {
                    self.increments();
                    continue;
                }
            };
            let write = match write {
                Write::Reduce(Fold::Sum, _) => Write::Reduce(Fold::Sum, self.one_in(3)),
                write => write,
            };
            let (kind, parts) = match &write {
                Write::Out(field) => (field.stored.kind(), field.parts),
                Write::Inc(..) | Write::Reduce(..) => (self.kind(), 1),
            };
            let value = self.expr(kind, parts, 4);
            self.stencil.writes.push((write, value));
        }
        if self.stencil.writes.is_empty() {
            let write = self.out();
            let Write::Out(field) = &write else { return };
            let value = self.expr(field.stored.kind(), field.parts, 4);
            self.stencil.writes.push((write, value));
        }
    }

    fn out(&mut self) -> Write {
        let field = self.field(false);
        Write::Out(Field { set: self.stencil.over, map: None, levels: self.levels_written(&field), ..field })
    }

    /// Whether sweeps go through interfaces: on the last one there is no level.
    fn goes_on(&self) -> bool {
        self.sweeps.is_some() && self.stencil.levels.is_some()
    }

    /// The levels of a field that is written: of a mesh that has some, all of them, or their interfaces.
    fn levels_written(&self, field: &Field) -> Levels {
        match (self.stencil.mesh.levels, field.levels) {
            (None, _) => Levels::None,
            (Some(_), _) if self.goes_on() => Levels::Interfaces,
            (Some(_), Levels::None) if self.stencil.levels.is_some() => Levels::None,
            (Some(_), Levels::Interfaces) => Levels::Interfaces,
            (Some(_), Levels::None | Levels::All) => Levels::All,
        }
    }

    /// A field that is added to once or more, where a way leads to it.
    fn increments(&mut self) {
        let style = self.style;
        let way = match style {
            Style::Adds(set) if self.end(&Way::default()) != set || self.one_in(2) => self.way_by_hop(set),
            Style::Adds(_) => Way::default(),
            Style::Any | Style::Own => self.any_way(self.stencil.over),
        };
        let (set, field) = (self.end(&way), self.field(false));
        let (sum, levels) = (self.stencil.sums.len(), self.levels_written(&field));
        // What is added to has levels.
        let levels = if levels == Levels::None && self.stencil.mesh.levels.is_some() { Levels::All } else { levels };
        self.stencil.sums.push(Field { set, map: None, levels, ..field });
        for _ in 0..self.rng.usize(1..4) {
            let again = match style {
                Style::Adds(_) => Some(self.way_by_hop(set)).filter(|way| self.end(way) == set),
                Style::Any | Style::Own => self.way_to(set),
            };
            let way = if self.one_in(2) { way.clone() } else { again.unwrap_or_else(|| way.clone()) };
            let (taken, field) = (self.one_in(3), &self.stencil.sums[sum]);
            let (kind, parts) = (field.stored.kind(), field.parts);
            let value = self.expr(kind, parts, 3);
            self.stencil.writes.push((Write::Inc(sum, way, taken), value));
        }
    }

    fn kind(&mut self) -> Kind {
        if self.one_in(3) { Kind::Int } else { Kind::Real }
    }

    fn parts(&mut self) -> usize {
        [1, 1, 1, 2, 3][self.rng.usize(0..5)]
    }

    fn field(&mut self, on_map: bool) -> Field {
        let fitting: Vec<Field> =
            self.types.iter().filter(|own| on_map || own.map.is_none() && !own.everywhere).cloned().collect();
        if let Some(first) = fitting.first() {
            return if self.one_in(2) { first.clone() } else { fitting[self.rng.usize(0..fitting.len())].clone() };
        }
        let stored = [Stored::Real, Stored::Real, Stored::F32, Stored::F64, Stored::Int][self.rng.usize(0..5)];
        let (set, parts) = (self.rng.usize(0..self.stencil.mesh.sets.len()), self.parts());
        let own = |set: usize| {
            let maps = self.stencil.mesh.maps.iter().enumerate();
            maps.filter(|(_, map)| map.from == set).map(|(number, _)| number).collect::<Vec<_>>()
        };
        let own = own(set);
        let map = (on_map && !own.is_empty() && self.one_in(3)).then(|| own[self.rng.usize(0..own.len())]);
        let has_levels = self.stencil.mesh.levels.is_some();
        let levels = match (has_levels, self.rng.usize(0..6)) {
            (false, _) | (true, 0 | 1) => Levels::None,
            (true, 2) => Levels::Interfaces,
            (true, _) => Levels::All,
        };
        let everywhere = on_map && has_levels && self.one_in(6);
        match everywhere {
            true if levels == Levels::None => {
                Field { stored, set, map: None, parts: 1, levels: Levels::All, everywhere }
            }
            true => Field { stored, set, map: None, parts: 1, levels, everywhere },
            false => Field { stored, set, map, parts, levels, everywhere },
        }
    }

    fn level(&mut self, is_level: bool) -> i32 {
        // What leaves levels out joins no other call.
        let rarity = if self.style == Style::Any { 3 } else { 24 };
        if is_level && self.sweeps.is_none() && self.one_in(rarity) { 1 - 2 * self.rng.i32(0..2) } else { 0 }
    }

    /// An expression of a kind and so many parts.
    fn expr(&mut self, kind: Kind, parts: usize, depth: usize) -> Expr {
        if depth == 0 || self.one_in(5) {
            return self.leaf(kind, parts);
        }
        let next = depth - 1;
        match self.rng.usize(0..12) {
            0..=3 => {
                let op = ['+', '-', '*', '/'][self.rng.usize(0..if kind == Kind::Real { 4 } else { 3 })];
                let (one, other) = self.operands(kind, parts);
                Expr::Binary(op, Box::new(self.expr(one.0, one.1, next)), Box::new(self.expr(other.0, other.1, next)))
            }
            4 => Expr::Negate(Box::new(self.expr(kind, parts, next))),
            5 => Expr::Abs(Box::new(self.expr(kind, parts, next))),
            6 => Expr::Less(Box::new(self.expr(kind, parts, next)), Box::new(self.expr(kind, parts, next))),
            7 if parts == 1 => {
                let length = self.rng.usize(2..4);
                Expr::Dot(Box::new(self.expr(kind, length, next)), Box::new(self.expr(kind, length, next)))
            }
            8 => self.choice(kind, parts, next),
            _ => self.fold(kind, parts, next),
        }
    }

    /// Two operands which make something of a kind and so many parts.
    fn operands(&mut self, kind: Kind, parts: usize) -> ((Kind, usize), (Kind, usize)) {
        let own = (kind, parts);
        let mixed = if kind == Kind::Real && self.one_in(4) { Kind::Int } else { kind };
        let other = (mixed, if self.one_in(2) { 1 } else { parts });
        if self.one_in(2) { (own, other) } else { (other, own) }
    }

    fn choice(&mut self, wanted: Kind, parts: usize, depth: usize) -> Expr {
        let set = self.rng.usize(0..self.stencil.mesh.sets.len());
        let asked = self.way_to(set).filter(|way| !way.hops.is_empty());
        let below = {
            let kind = self.kind();
            let (a, b) = (self.expr(kind, 1, depth.min(1)), self.expr(kind, 1, depth.min(1)));
            // What is known when compiling decides which reads count: here none is.
            if !is_open(&self.stencil, &a) && !is_open(&self.stencil, &b) {
                return self.leaf(wanted, parts);
            }
            Cond::Below(a, b)
        };
        if let Some((first, last)) = self.zones().filter(|_| !self.is_elsewhere && self.one_in(6)) {
            let (yes, no) = (self.expr(wanted, parts, depth), self.expr(wanted, parts, depth));
            return Expr::Choose(Box::new(Cond::InZone(None, first, last)), Box::new(yes), Box::new(no));
        }
        let Some(way) = asked else {
            let (yes, no) = (self.expr(wanted, parts, depth), self.expr(wanted, parts, depth));
            return Expr::Choose(Box::new(below), Box::new(yes), Box::new(no));
        };
        let present = Cond::Present(way.clone());
        if let Some((first, last)) = self.zones_of(set).filter(|_| self.one_in(3)) {
            let asked = Cond::InZone(Some((set, way)), first, last);
            let (yes, no) = (self.expr(wanted, parts, depth), self.expr(wanted, parts, depth));
            return Expr::Choose(Box::new(Cond::And(Box::new(present), Box::new(asked))), Box::new(yes), Box::new(no));
        }
        let (cond, is_turned) = match self.rng.usize(0..3) {
            0 => (present, false),
            1 => (Cond::Not(Box::new(present)), true),
            _ => (Cond::And(Box::new(present), Box::new(below)), false),
        };
        let before = self.known.len();
        self.known.push(Way { counter: None, hops: self.whole(&way) });
        let with = self.expr(wanted, parts, depth);
        self.known.truncate(before);
        let without = self.expr(wanted, parts, depth);
        let (yes, no) = if is_turned { (without, with) } else { (with, without) };
        Expr::Choose(Box::new(cond), Box::new(yes), Box::new(no))
    }

    fn fold(&mut self, kind: Kind, parts: usize, depth: usize) -> Expr {
        let from = match self.counters.is_empty() || self.one_in(2) {
            true => None,
            false => Some(self.counters[self.rng.usize(0..self.counters.len())].0),
        };
        let mut maps = Vec::new();
        let start = Way { counter: from, hops: Vec::new() };
        let (mut set, mut terms, mut hops) = (self.end(&start), 1, self.whole(&start));
        for _ in 0..self.rng.usize(1..3) {
            let Some((map, _)) = self.hop(set) else { break };
            let own = &self.stencil.mesh.maps[map];
            let (arity, to) = (own.arity, own.to);
            let slot = self.one_in(4).then(|| self.rng.usize(0..arity));
            terms *= if slot.is_some() { 1 } else { arity };
            (set, maps) = (to, [&maps[..], &[(map, slot)]].concat());
            // A slot that no way without the counter has.
            hops.push((map, slot.unwrap_or(OF_COUNTERS + self.counters.len())));
        }
        if maps.is_empty() || terms > TERMS || self.folds > 2 {
            return self.leaf(kind, parts);
        }
        // What is least of whole numbers is real where there may be holes.
        let is_rare = self.style == Style::Own && self.folds == 0 && !self.one_in(6);
        if is_rare {
            return self.leaf(kind, parts);
        }
        let fold = if kind == Kind::Real { [Fold::Sum, Fold::Min, Fold::Max][self.rng.usize(0..3)] } else { Fold::Sum };
        let counter = self.counters.len();
        let before = self.known.len();
        // Up to the last map with holes that are left out, the counter's way is known.
        let skips =
            (1..=hops.len()).rev().find(|&end| self.stencil.mesh.maps[hops[end - 1].0].missing == Missing::Skip);
        self.known.extend(skips.map(|end| Way { counter: None, hops: hops[..end].to_vec() }));
        self.counters.push((counter, hops));
        self.folds += 1;
        let term = self.expr(kind, parts, depth);
        self.folds -= 1;
        self.counters.pop();
        self.known.truncate(before);
        Expr::Fold { fold, counter, from, maps, term: Box::new(term) }
    }

    /// A number, a field or a let.
    fn leaf(&mut self, kind: Kind, parts: usize) -> Expr {
        for _ in 0..4 {
            if let Some(found) = self.named(kind, parts) {
                return found;
            }
        }
        if (kind, parts) == (Kind::Real, 1) && self.stencil.params > 0 && self.one_in(2) {
            return Expr::Param(self.rng.usize(0..self.stencil.params));
        }
        let mut number = || match kind {
            Kind::Int => Expr::Int(self.rng.i32(-3..10)),
            Kind::Real => Expr::Real([0.0, 0.5, 0.1, 1.0, 3.25, 1e-3][self.rng.usize(0..6)]),
        };
        if parts == 1 { number() } else { Expr::Vector((0..parts).map(|_| number()).collect()) }
    }

    /// What leads to a level of a field that has some.
    fn leads(&mut self, of: Levels) -> Option<Leads> {
        if self.one_in(6) {
            let count = self.stencil.mesh.levels? as i32 + i32::from(of == Levels::Interfaces);
            let (level, from_end) = (self.rng.i32(0..count), self.one_in(2));
            let level = if from_end { self.stencil.mesh.levels? as i32 - level } else { level };
            return Some(Leads::Said { level, from_end });
        }
        let (by, way) = self.levels_by_data()?;
        Some(if self.one_in(2) { Leads::Itself(by, way) } else { Leads::Further(by, way) })
    }

    /// A number of an input that says which level of something is read: a whole one, which is there.
    fn levels_by_data(&mut self) -> Option<(usize, Way)> {
        let all = self.stencil.inputs.iter().enumerate();
        let whole: Vec<usize> =
            all.filter(|(_, own)| own.stored == Stored::Int && own.parts == 1).map(|(number, _)| number).collect();
        let which = *whole.get(self.rng.usize(0..whole.len().max(1)))?;
        let field = self.stencil.inputs[which].clone();
        let way = match field.map {
            None if field.everywhere => Way::default(),
            None => self.way_to(field.set)?,
            Some(map) => self.way_through(field.set, map)?,
        };
        let hops = self.whole(&way);
        let may_be_another =
            hops.iter().any(|(map, _)| matches!(self.stencil.mesh.maps[*map].missing, Missing::Value(_)));
        (!may_be_another && !self.is_doubtful(&way)).then_some((which, way))
    }

    fn named(&mut self, kind: Kind, parts: usize) -> Option<Expr> {
        if parts == 1
            && self.one_in(2)
            && let Some(found) = self.swept(kind)
        {
            return Some(found);
        }
        let (fields, lets) = (self.stencil.inputs.len(), self.stencil.lets.len());
        let which = self.rng.usize(0..fields + lets);
        let (way, made, has, is_of_level) = if which < fields {
            let field = self.stencil.inputs[which].clone();
            let way = match field.map {
                None if field.everywhere => Way::default(),
                None => self.way_to(field.set)?,
                Some(map) => self.way_through(field.set, map)?,
            };
            let own = (field.stored.kind(), field.parts);
            let by = if field.levels != Levels::None && self.one_in(3) { self.leads(field.levels) } else { None };
            let k = match &by {
                None => self.level(field.levels != Levels::None),
                Some(Leads::Further(..) | Leads::Itself(..)) if self.one_in(3) => self.rng.i32(-1..2),
                Some(_) => 0,
            };
            if let Some(Leads::Further(by, _) | Leads::Itself(by, _)) = &by {
                self.stencil.offsets.insert(*by);
            }
            let is_of_level = field.levels == Levels::All || by.is_some();
            (way.clone(), Expr::Read { field: which, way, k, by }, own, is_of_level)
        } else {
            let number = which - fields;
            let way = self.way_to(self.stencil.lets[number].set)?;
            let k = self.level(self.stencil.mesh.levels.is_some());
            let own = shape(&self.stencil, &self.stencil.lets[number].value);
            (way.clone(), Expr::Let { number, way, k }, own, false)
        };
        if has.0 != kind {
            return None;
        }
        let made = match (has.1, parts) {
            (own, wanted) if own == wanted => made,
            (own, 1) => Expr::Part(Box::new(made), self.rng.usize(0..own)),
            _ => return None,
        };
        let needs_level = (is_of_level && self.goes_on()).then_some(Cond::HasLevel(0));
        let needs_end = self.is_doubtful(&way).then_some(Cond::Present(way));
        let guarded = [needs_level, needs_end].into_iter().flatten().fold(made, |made, cond| {
            let otherwise = if kind == Kind::Int { Expr::Int(7) } else { Expr::Real(7.5) };
            let otherwise = if parts == 1 { otherwise } else { Expr::Vector(vec![otherwise; parts]) };
            Expr::Choose(Box::new(cond), Box::new(made), Box::new(otherwise))
        });
        Some(guarded)
    }
}
