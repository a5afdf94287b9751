//! What is computed when, walking along k from plane to plane.
//!
//! At each step, one more plane of each field is there. A value *lags*: while the foremost field is at plane p, it is at plane
//! p - lag, because it reads planes further on; a value that only reads planes further back is ahead. What is read of planes
//! before a value's present one is *kept*.
//!
//! Links of sums are computed as soon as they can be. Other values that read beside their cells either are, too, and wait in registers;
//! or they are computed as late as their users need them, and planes wait in shared memory ([`Timing`]). All else, and what is read at the
//! cell alone, comes as late as its users need it.

use super::super::StepTask;
use super::super::flow::{Area, REACH, Source, Use, Window, used};
use crate::diagnostic::Refusal;
use crate::ir::{Body, DefId, FieldId, Handle, Levels, Stencil, varying};
use std::collections::{BTreeMap, BTreeSet};

/// A field that is read.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// How many planes it is behind the foremost.
    pub lag: i32,
    /// Where its values are.
    pub home: Home,
}

/// Where the values of a field are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// In global memory: they are the same on all columns, or are on no levels and read at the cell alone.
    Memory,
    /// In registers: they are read at the cell alone. So many planes before the present one are kept.
    Registers {
        /// How many.
        kept: usize,
    },
    /// In shared memory, so many planes before the present one among them, for these cells around an output.
    Shared {
        /// The cells.
        area: Area,
        /// How many planes before the present one are read beside the cell.
        back: usize,
        /// How many are read at the cell; those beyond `back` are in registers.
        kept: usize,
    },
}

/// A definition at so many columns from an output's: what a thread computes for the rows that its outputs read.
#[derive(Clone, Copy, Debug)]
pub struct Instance {
    /// The rows, from an output's.
    pub rows: Window,
    /// How many planes before the present one are read.
    pub kept: usize,
}

/// When a value is computed that reads beside its cell and is no link of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// As soon as it can be: few planes are in shared memory, and it waits in registers.
    Early,
    /// When its users need it: planes wait in shared memory, and few values in registers.
    Late,
}

/// The values of a stencil.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// The fields that are read.
    pub fields: BTreeMap<FieldId, Field>,
    /// How many planes each definition is behind the foremost.
    pub lags: Vec<i32>,
    /// The definitions that are computed by themselves, and for which columns.
    pub instances: BTreeMap<(DefId, i32), Instance>,
    /// How many planes each store is behind the foremost.
    pub stores: Vec<i32>,
    /// How many planes before that of the first output the first step is; it may be behind.
    pub before: i32,
    /// How many steps come before the last store has its first output.
    pub span: usize,
    /// The cells that outputs reach.
    pub reach: Area,
}

/// A read, and how many levels away it is.
#[derive(Clone, Copy)]
struct Read {
    of: Of,
    i: i32,
    j: i32,
    k: i32,
}

#[derive(Clone, Copy)]
enum Of {
    Field(FieldId),
    Def(DefId),
}

/// Who reads: a definition, or a store by its number.
#[derive(Clone, Copy)]
enum Reader {
    Def(DefId),
    Store(usize),
}

impl Flow {
    /// The values of a task's stencil, of whose definitions `links` are computed by themselves, whoever reads them.
    ///
    /// # Errors
    /// It reads too far.
    pub fn new(task: &StepTask, links: &BTreeSet<DefId>, timing: Timing) -> Result<Flow, Refusal> {
        task.check()?;
        let own = Reads::of(task.stencil);
        let mut flow = Flow::default();
        let columns = own.columns();
        let areas = own.areas(&columns);
        flow.reach = areas.values().copied().fold(Area::default(), Area::union);
        let is_early = |def: DefId| timing == Timing::Early || links.contains(&def);
        flow.schedule(&own, &areas, is_early);
        let ages = flow.ages(&own);
        flow.place(&own, &columns, &areas, &ages, links);
        let (levels, of_defs) = flow.levels(&own);
        let Area { i, j } = flow.reach;
        let all = [i, j].into_iter().chain(levels.values().copied());
        if all.flat_map(|window| [window.low, window.high]).any(|reach| reach.unsigned_abs() > REACH) {
            return Err(task.refusal(format!("reads more than {REACH} cells away")));
        }
        let early =
            |(field, window): (&FieldId, &Window)| own.is_walked(*field).then(|| -window.low - flow.fields[field].lag);
        let last = flow.stores.iter().copied().max().unwrap_or(0);
        // No store comes before the first step, where nothing is walked through either.
        let first = -flow.stores.iter().copied().min().unwrap_or(0);
        // What is kept was computed on all planes that are read, also where it reads no plane itself.
        let kept = flow.instances.iter().filter(|(_, instance)| instance.kept > 0);
        let kept = kept.filter_map(|(&(def, _), _)| Some(-of_defs[def.index()]?.low - flow.lags[def.index()]));
        let before = levels.iter().filter_map(early).chain(kept).fold(first, i32::max);
        flow.before = before;
        flow.span = usize::try_from(before.saturating_add(last)).unwrap_or(0);
        Ok(flow)
    }

    /// Finds lags: of what reads beside its cell, or reads what does, some are as early as they can be; all else as late as its users need it.
    fn schedule(&mut self, own: &Reads, areas: &BTreeMap<FieldId, Area>, is_early: impl Fn(DefId) -> bool) {
        let is_beside = |field: FieldId| own.is_walked(field) && areas[&field] != Area::default();
        let mut early: Vec<Option<i32>> = Vec::new();
        let ready = |early: &[Option<i32>], reads: &[Read]| {
            let of = |read: &Read| match read.of {
                Of::Field(field) => is_beside(field).then_some(read.k),
                Of::Def(def) => early[def.index()].map(|lag| lag.saturating_add(read.k)),
            };
            reads.iter().filter_map(of).max()
        };
        for reads in &own.defs {
            let lag = ready(&early, reads);
            early.push(lag);
        }
        let stores: Vec<Option<i32>> = own.stores.iter().map(|reads| ready(&early, reads)).collect();
        // A store that waits for nobody comes with the others.
        let last = stores.iter().copied().flatten().max().unwrap_or(0);
        self.stores = stores.into_iter().map(|lag| lag.unwrap_or(last)).collect();
        let mut late: BTreeMap<FieldId, i32> = BTreeMap::new();
        let mut asked: Vec<Option<i32>> = vec![None; own.defs.len()];
        let mut ask = |asked: &mut [Option<i32>], lag: i32, reads: &[Read]| {
            for read in reads {
                let wish = lag.saturating_sub(read.k);
                match read.of {
                    Of::Field(field) => {
                        let own = late.entry(field).or_insert(wish);
                        *own = wish.min(*own);
                    }
                    Of::Def(def) => {
                        let own = &mut asked[def.index()];
                        *own = Some(own.map_or(wish, |known| known.min(wish)));
                    }
                }
            }
        };
        for (reads, &lag) in own.stores.iter().zip(&self.stores) {
            ask(&mut asked, lag, reads);
        }
        self.lags = vec![0; own.defs.len()];
        for (number, reads) in own.defs.iter().enumerate().rev() {
            let soonest = early[number].filter(|_| is_early(DefId::new(number)));
            let lag = soonest.or(asked[number]).unwrap_or(0);
            self.lags[number] = lag;
            ask(&mut asked, lag, reads);
        }
        self.fields = late.into_iter().map(|(field, lag)| (field, Field { lag, home: Home::Memory })).collect();
    }

    fn lag(&self, reader: Reader) -> i32 {
        match reader {
            Reader::Def(def) => self.lags[def.index()],
            Reader::Store(number) => self.stores[number],
        }
    }

    /// How many planes before the present one a reader looks at.
    fn age(&self, reader: Reader, read: Read) -> usize {
        let lag = match read.of {
            Of::Field(field) => self.fields[&field].lag,
            Of::Def(def) => self.lags[def.index()],
        };
        usize::try_from(self.lag(reader).saturating_sub(read.k).saturating_sub(lag)).unwrap_or(0)
    }

    /// Of each definition the ages at which it is read, each as often as it is.
    fn ages(&self, own: &Reads) -> Vec<Vec<usize>> {
        let mut ages = vec![Vec::new(); own.defs.len()];
        for (reader, read) in own.all() {
            if let Of::Def(def) = read.of {
                ages[def.index()].push(self.age(reader, read));
            }
        }
        ages
    }

    /// Finds where values are: in memory, in registers, or in the bodies of those that read them.
    fn place(
        &mut self,
        own: &Reads,
        columns: &[BTreeMap<i32, Window>],
        areas: &BTreeMap<FieldId, Area>,
        ages: &[Vec<usize>],
        links: &BTreeSet<DefId>,
    ) {
        for (number, (columns, ages)) in columns.iter().zip(ages).enumerate() {
            let def = DefId::new(number);
            let is_inline = !own.varying[number] || ages.as_slice() == [0] && !links.contains(&def);
            if !is_inline {
                let kept = ages.iter().copied().max().unwrap_or(0);
                self.instances.extend(columns.iter().map(|(&i, &rows)| ((def, i), Instance { rows, kept })));
            }
        }
        let mut read: BTreeMap<FieldId, [usize; 2]> = BTreeMap::new();
        for (reader, own_read) in own.all() {
            let Of::Field(field) = own_read.of else { continue };
            let age = if own.is_walked(field) { self.age(reader, own_read) } else { 0 };
            let beside = match reader {
                Reader::Store(_) => (own_read.i, own_read.j) != (0, 0),
                Reader::Def(def) => {
                    let here =
                        Area::default().seen(Use { source: Source::Field(field, 0), i: own_read.i, j: own_read.j });
                    columns[def.index()].iter().any(|(&i, &rows)| {
                        Area {
                            i: here.i.moved(i),
                            j: Window { low: rows.low + own_read.j, high: rows.high + own_read.j },
                        } != Area::default()
                    })
                }
            };
            let ages = read.entry(field).or_default();
            ages[usize::from(beside)] = ages[usize::from(beside)].max(age);
        }
        for (&field, held) in &mut self.fields {
            let [kept, back] = read.get(&field).copied().unwrap_or_default();
            let area = areas[&field];
            held.home = match own.is_horizontal(field) {
                false => Home::Memory,
                true if area != Area::default() => Home::Shared { area, back, kept },
                true if own.is_walked(field) => Home::Registers { kept },
                true => Home::Memory,
            };
        }
    }

    /// Of each field, and of each definition that is used, the planes that an output reads, from its own.
    fn levels(&self, own: &Reads) -> (BTreeMap<FieldId, Window>, Vec<Option<Window>>) {
        let mut fields: BTreeMap<FieldId, Window> = BTreeMap::new();
        let mut defs: Vec<Option<Window>> = vec![None; own.defs.len()];
        let mut ask = |defs: &mut [Option<Window>], reads: &[Read], from: Window| {
            for read in reads {
                let seen = from.moved(read.k);
                match read.of {
                    Of::Field(field) => {
                        let own = fields.entry(field).or_insert(seen);
                        *own = own.union(seen);
                    }
                    Of::Def(def) => {
                        let own = &mut defs[def.index()];
                        *own = Some(own.map_or(seen, |known| known.union(seen)));
                    }
                }
            }
        };
        own.stores.iter().for_each(|reads| ask(&mut defs, reads, Window::default()));
        for (number, reads) in own.defs.iter().enumerate().rev() {
            let from = defs[number].unwrap_or_default();
            ask(&mut defs, reads, from);
        }
        (fields, defs)
    }

    /// How many planes before the present one something that a body looks at is, if that body is evaluated at a plane.
    pub fn age_of(&self, source: Source) -> usize {
        let (lag, shift) = match source {
            Source::Field(field, shift) => (self.fields.get(&field).map_or(0, |own| own.lag), shift),
            Source::Def(def, shift) => (self.lags[def.index()], shift),
        };
        usize::try_from(-lag.saturating_add(shift)).unwrap_or(0)
    }

    /// Whether a field's values of a plane so many before its present one are in shared memory.
    pub fn is_shared(&self, stencil: &Stencil, field: FieldId, age: usize) -> bool {
        match self.fields.get(&field).map(|own| own.home) {
            Some(Home::Shared { back, .. }) => age <= back || stencil.fields[field].place.levels == Levels::None,
            Some(Home::Memory | Home::Registers { .. }) | None => false,
        }
    }

    /// All that kernels have names for.
    pub fn sources(&self) -> Vec<Source> {
        let fields = self.fields.keys().map(|&field| Source::Field(field, 0));
        let mut sources: Vec<Source> = fields.collect();
        for &(def, _) in self.instances.keys() {
            let source = Source::Def(def, 0);
            if sources.last() != Some(&source) {
                sources.push(source);
            }
        }
        sources
    }
}

/// What each body of a stencil reads.
struct Reads<'a> {
    stencil: &'a Stencil,
    varying: Vec<bool>,
    defs: Vec<Vec<Read>>,
    stores: Vec<Vec<Read>>,
}

impl<'a> Reads<'a> {
    fn of(stencil: &'a Stencil) -> Self {
        let reads = |body: &Body| {
            let own = body.iter().filter_map(|(_, node)| used(stencil, node, 0)).collect::<BTreeSet<Use>>();
            let reads = own.into_iter().map(|Use { source, i, j }| match source {
                Source::Field(field, k) => Read { of: Of::Field(field), i, j, k },
                Source::Def(def, k) => Read { of: Of::Def(def), i, j, k },
            });
            reads.collect::<Vec<Read>>()
        };
        let defs: Vec<Vec<Read>> = stencil.defs.iter().map(|(_, def)| reads(&def.body)).collect();
        let stores = stencil.stores.iter().map(|store| reads(&store.body)).collect();
        let mut own = Self { stencil, varying: varying(stencil), defs, stores };
        own.leave_out_unused();
        own
    }

    /// What nobody uses reads nothing.
    fn leave_out_unused(&mut self) {
        let mut is_used = vec![false; self.defs.len()];
        let mark = |is_used: &mut [bool], reads: &[Read]| {
            for read in reads {
                if let Of::Def(def) = read.of {
                    is_used[def.index()] = true;
                }
            }
        };
        self.stores.iter().for_each(|reads| mark(&mut is_used, reads));
        for (number, reads) in self.defs.iter_mut().enumerate().rev() {
            match is_used[number] {
                true => mark(&mut is_used, reads),
                false => reads.clear(),
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = (Reader, Read)> {
        let of_defs = self.defs.iter().enumerate().map(|(number, reads)| (Reader::Def(DefId::new(number)), reads));
        let of_stores = self.stores.iter().enumerate().map(|(number, reads)| (Reader::Store(number), reads));
        of_defs.chain(of_stores).flat_map(|(reader, reads)| reads.iter().map(move |&read| (reader, read)))
    }

    fn is_horizontal(&self, field: FieldId) -> bool {
        self.stencil.fields[field].place.horizontal
    }

    /// Whether a field has another plane on each level.
    fn is_walked(&self, field: FieldId) -> bool {
        self.is_horizontal(field) && self.stencil.fields[field].place.levels != Levels::None
    }

    /// Of each definition for which columns, from an output's, it is needed, and for which rows there.
    fn columns(&self) -> Vec<BTreeMap<i32, Window>> {
        let mut columns: Vec<BTreeMap<i32, Window>> = vec![BTreeMap::new(); self.defs.len()];
        let ask = |columns: &mut [BTreeMap<i32, Window>], reads: &[Read], i: i32, rows: Window| {
            for read in reads {
                let Of::Def(def) = read.of else { continue };
                let seen = rows.moved(read.j);
                let own = columns[def.index()].entry(i.saturating_add(read.i)).or_insert(seen);
                *own = own.union(seen);
            }
        };
        self.stores.iter().for_each(|reads| ask(&mut columns, reads, 0, Window::default()));
        for (number, reads) in self.defs.iter().enumerate().rev() {
            for (i, rows) in columns[number].clone() {
                ask(&mut columns, reads, i, rows);
            }
        }
        columns
    }

    /// Of each field the cells around an output that are read.
    fn areas(&self, columns: &[BTreeMap<i32, Window>]) -> BTreeMap<FieldId, Area> {
        let mut areas: BTreeMap<FieldId, Area> = BTreeMap::new();
        let mut ask = |reads: &[Read], i: i32, rows: Window| {
            for read in reads {
                let Of::Field(field) = read.of else { continue };
                let seen = Area { i: Window::at(i.saturating_add(read.i)), j: rows.moved(read.j) };
                let own = areas.entry(field).or_insert(seen);
                *own = own.union(seen);
            }
        };
        self.stores.iter().for_each(|reads| ask(reads, 0, Window::default()));
        for (reads, columns) in self.defs.iter().zip(columns) {
            columns.iter().for_each(|(&i, &rows)| ask(reads, i, rows));
        }
        areas
    }
}
