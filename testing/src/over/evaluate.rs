//! What a stencil over a mesh means, element by element: `docs/language.md`, "Meshes".

use super::tree::{Cond, Expr, Field, Fold, Kind, Leads, Levels, Mesh, Missing, Stencil, Stored, Way, Write};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

/// A number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Real(f64),
    Int(i32),
}

/// The numbers of fields: level after level, element after element, slot after slot, part after part.
pub type Arrays = Vec<Vec<f64>>;

/// What a stencil computes.
#[derive(Debug, PartialEq)]
pub struct Results {
    pub sums: Arrays,
    /// By write; of increments there is nothing.
    pub writes: Arrays,
}

pub struct Evaluation<'a> {
    stencil: &'a Stencil,
    /// Whether numbers are of single precision.
    single: bool,
    inputs: &'a [Vec<f64>],
    params: &'a [f64],
    /// What is computed of what the stencil does: zones, and levels.
    zones: Option<(u8, u8)>,
    levels: Option<Range<i64>>,
    /// What values of sweeps are, by element, level and number.
    swept: RefCell<HashMap<(usize, i64, usize), Number>>,
}

/// Where something is looked at: an element, a level, and the ways that counters stand for, outermost first.
#[derive(Clone)]
struct Place {
    element: usize,
    level: i64,
    counters: Vec<(usize, Vec<(usize, usize)>)>,
}

/// Where a way leads: to an element, or through a hole whose map says what is read through it.
type Found = Result<usize, Missing>;

impl Number {
    fn real(self) -> f64 {
        match self {
            Number::Real(x) => x,
            Number::Int(x) => f64::from(x),
        }
    }
}

/// How many numbers an array has.
pub fn len(mesh: &Mesh, field: &Field) -> usize {
    let levels = match (field.levels, mesh.levels) {
        (Levels::None, _) | (_, None) => 1,
        (Levels::All, Some(levels)) => levels,
        (Levels::Interfaces, Some(levels)) => levels + 1,
    };
    if field.everywhere { levels } else { levels * mesh.sets[field.set] * width(mesh, field) }
}

/// A field without a number yet.
pub fn empty_array(mesh: &Mesh, field: &Field) -> Vec<f64> {
    vec![if field.stored == Stored::Int { 0.0 } else { f64::NAN }; len(mesh, field)]
}

fn width(mesh: &Mesh, field: &Field) -> usize {
    field.parts * field.map.map_or(1, |map| mesh.maps[map].arity)
}

impl<'a> Evaluation<'a> {
    pub fn new(stencil: &'a Stencil, single: bool, inputs: &'a [Vec<f64>], params: &'a [f64]) -> Self {
        Self { stencil, single, inputs, params, zones: None, levels: None, swept: RefCell::default() }
    }

    /// The same, but a part of it alone is computed.
    pub fn on(self, zones: Option<(u8, u8)>, levels: Option<Range<i64>>) -> Self {
        Self { zones, levels, ..self }
    }

    /// What a write begins with: no number yet.
    pub fn fresh(&self, write: &Write) -> Vec<f64> {
        match write {
            Write::Out(field) => empty_array(&self.stencil.mesh, field),
            Write::Inc(..) | Write::Reduce(..) => Vec::new(),
        }
    }

    /// The least and largest offset of levels that an expression reads, those of lets counted.
    fn reach(&self, expr: &Expr, at: i32, reach: &mut (i32, i32)) {
        let mut all = |all: &[&Expr]| all.iter().for_each(|own| self.reach(own, at, reach));
        match expr {
            Expr::Real(_) | Expr::Int(_) | Expr::Param(_) | Expr::Swept { .. } => {}
            // Where it leads there is a level; the number that says so is read here.
            Expr::Read { by: Some(Leads::Said { .. }), .. } => {}
            Expr::Read { by: Some(Leads::Further(by, _) | Leads::Itself(by, _)), .. } => {
                let below = match self.stencil.inputs[*by].levels {
                    Levels::None => return,
                    Levels::All => at,
                    Levels::Interfaces => at - 1,
                };
                *reach = (reach.0.min(at), reach.1.max(below));
            }
            Expr::Read { field, k, .. } => {
                let below = match self.stencil.inputs[*field].levels {
                    Levels::None => return,
                    Levels::All => at + k,
                    // There is one more.
                    Levels::Interfaces => at + k - 1,
                };
                *reach = (reach.0.min(at + k), reach.1.max(below));
            }
            Expr::Let { number, k, .. } => self.reach(&self.stencil.lets[*number].value, at + k, reach),
            Expr::Part(a, _) | Expr::Negate(a) | Expr::Abs(a) => all(&[a]),
            Expr::Vector(parts) => all(&parts.iter().collect::<Vec<_>>()),
            Expr::Binary(_, a, b) | Expr::Less(a, b) | Expr::Dot(a, b) => all(&[a, b]),
            Expr::Choose(cond, a, b) => {
                self.reach_of(cond, at, reach);
                [a, b].iter().for_each(|own| self.reach(own, at, reach));
            }
            Expr::Fold { term, .. } => all(&[term]),
        }
    }

    fn reach_of(&self, cond: &Cond, by: i32, reach: &mut (i32, i32)) {
        match cond {
            Cond::Below(a, b) => [a, b].iter().for_each(|own| self.reach(own, by, reach)),
            Cond::Present(_) | Cond::InZone(..) | Cond::HasLevel(_) => {}
            Cond::Not(a) => self.reach_of(a, by, reach),
            Cond::And(a, b) => [a, b].iter().for_each(|own| self.reach_of(own, by, reach)),
        }
    }

    /// All that the stencil writes; nothing if no level can be computed. `sums` holds what was there before, and so does `results`, by
    /// write, of outputs.
    pub fn run(&self, mut sums: Arrays, mut results: Arrays) -> Option<Results> {
        let Stencil { mesh, over, writes, .. } = self.stencil;
        let mut reach = (0, i32::MIN / 2);
        writes.iter().for_each(|(_, value)| self.reach(value, 0, &mut reach));
        let levels = mesh.levels.unwrap_or(1) as i64;
        let (first, end) = match self.stencil.sweeps.is_empty() {
            true => (-i64::from(reach.0), levels - i64::from(reach.1)),
            // Whatever is read is guarded.
            false => (0, i64::MAX),
        };
        let said = self.stencil.levels.map(|(own, by)| own..by.map_or(own + 1, |by| levels + by));
        let is_said = said.is_some() || self.levels.is_some();
        // Of a stencil that writes at interfaces alone, there is one more where levels are said.
        let last = levels + i64::from(is_said && self.stencil.is_on_interfaces());
        let within = |level: &i64, range: &Option<Range<i64>>| range.as_ref().is_none_or(|own| own.contains(level));
        let is_wanted = |level: &i64| within(level, &said) && within(level, &self.levels);
        let computed: Vec<i64> = (first.max(0)..end.min(last)).filter(is_wanted).collect();
        // Who says which levels means all of them.
        let is_short = is_said && computed.len() < (0..last).filter(is_wanted).count();
        if computed.is_empty() || is_short {
            return None;
        }
        let zones = || [self.stencil.zones, self.zones].into_iter().flatten();
        let is_computed = |element: &usize| zones().all(|zones| self.is_in(zones, *element));
        for element in (0..mesh.sets[*over]).filter(is_computed) {
            for &level in &computed {
                let place = Place { element, level, counters: Vec::new() };
                for (result, (write, value)) in results.iter_mut().zip(writes) {
                    let mut value = self.value(value, &place);
                    match write {
                        Write::Out(field) => self.each(field, element, level, &value, |at, x| result[at] = x),
                        Write::Inc(sum, way, taken) => {
                            let field = &self.stencil.sums[*sum];
                            if let Ok(to) = self.walk(way, &place) {
                                value.iter_mut().for_each(|x| *x = self.stored_as(field, *x));
                                value.iter_mut().filter(|_| *taken).for_each(|x| *x = negative(*x));
                                let added = |at: usize, before: &mut Vec<f64>, x: Number| {
                                    let own = self.stored_number(field, before[at]);
                                    before[at] = self.rounded(field, self.binary('+', own, x));
                                };
                                let first = self.first(field, to, level);
                                for (part, x) in value.into_iter().enumerate() {
                                    added(first + part, &mut sums[*sum], x);
                                }
                            }
                        }
                        Write::Reduce(_, taken) => {
                            let x = self.round(value[0].real());
                            result.push(if *taken { -x } else { x });
                        }
                    }
                }
            }
        }
        for (result, (write, _)) in results.iter_mut().zip(writes) {
            if let Write::Reduce(fold, _) = write {
                *result = vec![self.pairwise(*fold, std::mem::take(result))];
            }
        }
        Some(Results { sums, writes: results })
    }

    /// Whether an element of the stencil's set is in one of some zones.
    fn is_in(&self, (first, last): (u8, u8), element: usize) -> bool {
        (first..=last).contains(&self.stencil.mesh.zones[self.stencil.over].1[element])
    }

    /// Neighbours in pairs, and so on.
    fn pairwise(&self, fold: Fold, numbers: Vec<f64>) -> f64 {
        let [first, rest @ ..] = numbers.as_slice() else { return empty(fold) };
        if rest.is_empty() {
            return *first;
        }
        let pair = |pair: &[f64]| match *pair {
            [a, b] => self.joined(fold, Number::Real(a), Number::Real(b)).real(),
            _ => pair[0],
        };
        self.pairwise(fold, numbers.chunks(2).map(pair).collect())
    }

    /// Where the numbers of an element begin.
    fn first(&self, field: &Field, element: usize, level: i64) -> usize {
        let mesh = &self.stencil.mesh;
        let level = if field.levels == Levels::None { 0 } else { level as usize };
        if field.everywhere {
            return level;
        }
        (level * mesh.sets[field.set] + element) * width(mesh, field)
    }

    fn each(&self, field: &Field, element: usize, level: i64, value: &[Number], mut put: impl FnMut(usize, f64)) {
        let first = self.first(field, element, level);
        for (part, &x) in value.iter().enumerate() {
            put(first + part, self.rounded(field, x));
        }
    }

    fn round(&self, x: f64) -> f64 {
        if self.single { f64::from(x as f32) } else { x }
    }

    /// A number as a field holds it.
    fn rounded(&self, field: &Field, x: Number) -> f64 {
        match field.stored {
            Stored::F32 => f64::from(self.round(x.real()) as f32),
            Stored::Real | Stored::F64 => self.round(x.real()),
            Stored::Int => x.real(),
        }
    }

    /// A value as one computes with what a field holds.
    fn stored_as(&self, field: &Field, x: Number) -> Number {
        match (field.stored.kind(), x) {
            (Kind::Real, x) => Number::Real(self.round(x.real())),
            (Kind::Int, x) => x,
        }
    }

    fn stored_number(&self, field: &Field, x: f64) -> Number {
        match field.stored.kind() {
            Kind::Real => Number::Real(self.round(x)),
            Kind::Int => Number::Int(x as i32),
        }
    }

    /// The maps and slots of a way, from the element itself.
    fn hops(&self, way: &Way, place: &Place) -> Vec<(usize, usize)> {
        let counter = |counter| place.counters.iter().rev().find(|(own, _)| *own == counter).map(|(_, hops)| hops);
        way.counter.and_then(counter).into_iter().flatten().chain(&way.hops).copied().collect()
    }

    fn walk(&self, way: &Way, place: &Place) -> Found {
        self.follow(&self.hops(way, place), place.element)
    }

    /// Where maps and slots lead; the first hole decides.
    fn follow(&self, hops: &[(usize, usize)], element: usize) -> Found {
        hops.iter().try_fold(element, |at, &(map, slot)| {
            let own = &self.stencil.mesh.maps[map];
            usize::try_from(own.table[at * own.arity + slot]).map_err(|_| own.missing)
        })
    }

    /// The numbers of a field where a way leads, on a level.
    fn read(&self, number: usize, way: &Way, place: &Place, level: i64) -> Vec<Number> {
        let field = &self.stencil.inputs[number];
        let found = match self.walk(way, place) {
            Err(missing) => return vec![self.hole(missing, field.stored.kind()); field.parts],
            Ok(found) => found,
        };
        // On a map, the way's last step is a slot of the element before it.
        let hops = self.hops(way, place);
        let (element, slot) = match (field.map, hops.split_last()) {
            (Some(_), Some((last, before))) => (self.follow(before, place.element).unwrap_or(0), last.1),
            (None, _) | (_, None) => (found, 0),
        };
        let first = self.first(field, element, level) + slot * field.parts;
        (0..field.parts).map(|part| self.stored_number(field, self.inputs[number][first + part])).collect()
    }

    fn value(&self, expr: &Expr, place: &Place) -> Vec<Number> {
        let one = |x| vec![x];
        match expr {
            Expr::Real(x) => one(Number::Real(self.round(*x))),
            Expr::Int(x) => one(Number::Int(*x)),
            Expr::Param(number) => one(Number::Real(self.round(self.params[*number]))),
            Expr::Read { field: number, way, k, by } => {
                let level = place.level + i64::from(*k);
                let level = match by {
                    None => level,
                    Some(by) => {
                        let levels = self.stencil.mesh.levels.unwrap_or(1) as i64;
                        let says = |by: &usize, way| self.read(*by, way, place, place.level)[0].real() as i64;
                        let level = match by {
                            Leads::Further(by, way) => level + says(by, way),
                            Leads::Itself(by, way) => i64::from(*k) + says(by, way),
                            Leads::Said { level, from_end: false } => i64::from(*level),
                            Leads::Said { level, from_end: true } => levels - i64::from(*level),
                        };
                        let is_more = self.stencil.inputs[*number].levels == Levels::Interfaces;
                        level.clamp(0, levels - 1 + i64::from(is_more))
                    }
                };
                self.read(*number, way, place, level)
            }
            Expr::Let { number, way, k } => {
                let value = &self.stencil.lets[*number].value;
                match self.walk(way, place) {
                    Ok(element) => {
                        let level = place.level + i64::from(*k);
                        self.value(value, &Place { element, level, counters: Vec::new() })
                    }
                    Err(missing) => {
                        let (kind, parts) = super::generate::shape(self.stencil, value);
                        vec![self.hole(missing, kind); parts]
                    }
                }
            }
            Expr::Swept { number, k } => {
                let key = (place.element, place.level + i64::from(*k), *number);
                let known = self.swept.borrow().get(&key).copied();
                one(known.unwrap_or_else(|| {
                    let (kind, value) = &self.stencil.swept[*number];
                    let at = Place { element: key.0, level: key.1, counters: Vec::new() };
                    let value = match (kind, self.value(value, &at)[0]) {
                        (Kind::Real, value) => Number::Real(self.round(value.real())),
                        (Kind::Int, value) => value,
                    };
                    self.swept.borrow_mut().insert(key, value);
                    value
                }))
            }
            Expr::Part(of, part) => one(self.value(of, place)[*part]),
            Expr::Vector(parts) => parts.iter().map(|part| self.value(part, place)[0]).collect(),
            Expr::Binary(op, a, b) => self.part_by_part(a, b, place, |a, b| self.binary(*op, a, b)),
            Expr::Less(a, b) => self.part_by_part(a, b, place, |a, b| self.joined(Fold::Min, a, b)),
            Expr::Negate(a) => self.value(a, place).into_iter().map(negative).collect(),
            Expr::Abs(a) => {
                let abs = |x| match x {
                    Number::Real(x) => Number::Real(x.abs()),
                    Number::Int(x) => Number::Int(x.wrapping_abs()),
                };
                self.value(a, place).into_iter().map(abs).collect()
            }
            Expr::Dot(a, b) => {
                let products = self.part_by_part(a, b, place, |a, b| self.binary('*', a, b));
                one(products.into_iter().reduce(|a, b| self.binary('+', a, b)).unwrap_or(Number::Int(0)))
            }
            Expr::Choose(cond, a, b) => {
                let chosen = self.value(if self.holds(cond, place) { a } else { b }, place);
                // The other branch may make whole numbers real.
                let (kind, _) = super::generate::shape(self.stencil, expr);
                chosen
                    .into_iter()
                    .map(|x| if kind == Kind::Real { Number::Real(self.round(x.real())) } else { x })
                    .collect()
            }
            Expr::Fold { fold, counter, from, maps, term } => self.fold(*fold, *counter, *from, maps, term, place),
        }
    }

    /// What is read through a hole.
    fn hole(&self, missing: Missing, kind: Kind) -> Number {
        match (missing, kind) {
            (Missing::Value(x), Kind::Int) => Number::Int(x),
            (Missing::Value(x), Kind::Real) => Number::Real(self.round(f64::from(x))),
            (Missing::Never | Missing::Skip, _) => panic!("a read through a hole"),
        }
    }

    fn fold(
        &self,
        fold: Fold,
        counter: usize,
        from: Option<usize>,
        maps: &[(usize, Option<usize>)],
        term: &Expr,
        place: &Place,
    ) -> Vec<Number> {
        let all = &self.stencil.mesh.maps;
        let mut ways = vec![self.hops(&Way { counter: from, hops: Vec::new() }, place)];
        let before = ways[0].len();
        for &(map, slot) in maps {
            let longer = |way: &Vec<(usize, usize)>| {
                let way = way.clone();
                let slots = slot.map_or(0..all[map].arity, |slot| slot..slot + 1);
                slots.map(move |slot| [&way[..], &[(map, slot)]].concat())
            };
            ways = ways.iter().flat_map(longer).collect();
        }
        let mut total: Option<Vec<Number>> = None;
        for way in ways {
            // Left out is a slot through a hole of a map that says so, or that one would get to only through another hole.
            let skips = |end: usize| {
                all[way[end - 1].0].missing == Missing::Skip && self.follow(&way[..end], place.element).is_err()
            };
            if (before + 1..=way.len()).any(skips) {
                continue;
            }
            let mut inner = place.clone();
            inner.counters.push((counter, way));
            let next = self.value(term, &inner);
            total = Some(match total {
                None => next,
                Some(before) => before.into_iter().zip(next).map(|(a, b)| self.joined(fold, a, b)).collect(),
            });
        }
        let (kind, parts) = super::generate::shape(self.stencil, term);
        total.unwrap_or_else(|| {
            let nothing = if kind == Kind::Int { Number::Int(0) } else { Number::Real(empty(fold)) };
            vec![nothing; parts]
        })
    }

    fn part_by_part(&self, a: &Expr, b: &Expr, place: &Place, of: impl Fn(Number, Number) -> Number) -> Vec<Number> {
        let (a, b) = (self.value(a, place), self.value(b, place));
        let parts = a.len().max(b.len());
        let part = |all: &[Number], part: usize| if all.len() == 1 { all[0] } else { all[part] };
        (0..parts).map(|at| of(part(&a, at), part(&b, at))).collect()
    }

    fn holds(&self, cond: &Cond, place: &Place) -> bool {
        match cond {
            Cond::Below(a, b) => {
                let (a, b) = (self.value(a, place)[0], self.value(b, place)[0]);
                match (a, b) {
                    (Number::Int(a), Number::Int(b)) => a < b,
                    (a, b) => self.round(a.real()) < self.round(b.real()),
                }
            }
            Cond::Present(way) => self.walk(way, place).is_ok(),
            Cond::HasLevel(by) => {
                (0..self.stencil.mesh.levels.unwrap_or(1) as i64).contains(&(place.level + i64::from(*by)))
            }
            Cond::InZone(None, first, last) => self.is_in((*first, *last), place.element),
            Cond::InZone(Some((set, way)), first, last) => {
                let zones = &self.stencil.mesh.zones[*set].1;
                self.walk(way, place).is_ok_and(|element| (*first..=*last).contains(&zones[element]))
            }
            Cond::Not(cond) => !self.holds(cond, place),
            Cond::And(a, b) => self.holds(a, place) && self.holds(b, place),
        }
    }

    fn joined(&self, fold: Fold, a: Number, b: Number) -> Number {
        if fold == Fold::Sum {
            return self.binary('+', a, b);
        }
        if let (Number::Int(a), Number::Int(b)) = (a, b) {
            return Number::Int(if fold == Fold::Min { a.min(b) } else { a.max(b) });
        }
        let (a, b) = (self.round(a.real()), self.round(b.real()));
        let first = if fold == Fold::Min { a < b } else { a > b };
        Number::Real(if first || a.is_nan() { a } else { b })
    }

    fn binary(&self, op: char, a: Number, b: Number) -> Number {
        if let (Number::Int(a), Number::Int(b)) = (a, b) {
            match op {
                '+' => return Number::Int(a.wrapping_add(b)),
                '-' => return Number::Int(a.wrapping_sub(b)),
                '*' => return Number::Int(a.wrapping_mul(b)),
                _ => {}
            }
        }
        let (a, b) = (self.round(a.real()), self.round(b.real()));
        Number::Real(self.round(match op {
            '+' => a + b,
            '-' => a - b,
            '*' => a * b,
            _ => a / b,
        }))
    }
}

fn negative(x: Number) -> Number {
    match x {
        Number::Real(x) => Number::Real(-x),
        Number::Int(x) => Number::Int(x.wrapping_neg()),
    }
}

/// What nothing comes to.
fn empty(fold: Fold) -> f64 {
    match fold {
        Fold::Sum => 0.0,
        Fold::Min => f64::INFINITY,
        Fold::Max => f64::NEG_INFINITY,
    }
}
