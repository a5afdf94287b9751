//! Ways over a mesh, as they are measured.

use super::super::kernels::{Kernels, Maker, Reader, Renumbered, Works};
use super::super::measure::{self, Measured, Reference};
use super::{Candidate, Variant, Ways};
use crate::build::{Build, Usage};
use crate::cache::Built;
use crate::clock::Budget;
use crate::device::Platform;
use crate::measure::{self as measuring, Asked, How, Progress, Subject, Timed};
use crate::program::planned::{Text, names};
use crate::tune::search::{Found, Kind};
use crate::verify::Verdict;
use crate::{Error, Fault, Result};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

/// What a thread of a kernel takes.
#[derive(Clone, Debug, Serialize)]
pub struct Taken {
    /// Which kernel.
    pub kernel: String,
    /// What it takes.
    #[serde(flatten)]
    pub usage: Usage,
}

/// What came of a way.
#[derive(Clone, Serialize)]
pub struct Row {
    /// Which.
    #[serde(flatten)]
    pub variant: Variant,
    /// Of each kernel of a stencil, in the order of their launches; nothing on the emulator, or of a program.
    pub taken: Vec<Taken>,
    /// Gigabytes a second, as [`measure::bytes`] counts.
    pub gb_per_s: f64,
    /// That, of a copy's.
    pub of_copy: f64,
    /// How often an average datum of a block's working set is used.
    pub reuse: Option<f64>,
    /// Launches, one a colour.
    pub colours: Option<usize>,
    /// Bytes of tables and maps for each target.
    pub table_bytes: f64,
    /// Times, of a step of a program, and how the results compare.
    #[serde(flatten)]
    pub measured: Measured,
}

impl Row {
    /// Whether what came out is wrong.
    pub fn is_wrong(&self) -> bool {
        measure::wrong(&self.measured.verdict).is_some()
    }

    /// How what came out compares.
    pub fn verdict(&self) -> String {
        match (&self.measured.verdict, measure::wrong(&self.measured.verdict)) {
            (_, Some(what)) => format!("WRONG: {what}"),
            (Verdict::Within { share }, None) => format!("within {share:.2} of the bound"),
            (_, None) => "equal".to_owned(),
        }
    }
}

/// What measures.
pub struct Meter<'a> {
    platform: &'a Platform,
    reference: Reference,
    runs: usize,
    reader: Option<Rc<Reader>>,
    /// Gigabytes a second of a copy of so many bytes.
    pub copy: f64,
    /// How many.
    pub copied: usize,
}

impl<'a> Meter<'a> {
    /// Measures the copy; `reader` is told the texts of all kernels.
    ///
    /// # Errors
    /// There is not enough memory, a kernel has failed, or the interpreter finds nothing to compare with.
    pub fn new(platform: &'a Platform, runs: usize, ways: &Ways, reader: Option<Rc<Reader>>) -> Result<Self> {
        let copied = match platform {
            // More than the caches of most hold, and no more than takes a moment.
            Platform::Emulator(emulator) if emulator.is_native() => 256 << 20,
            _ if ways.bytes[0] > 64 << 20 => 1 << 30,
            _ => 1 << 20,
        };
        let copy = match platform {
            Platform::Cpu => return Err(no_strategies()),
            Platform::Emulator(emulator) => measure::copy_rate(&**emulator, copied, runs)?,
            Platform::Gpu(gpu) => measure::copy_rate(&**gpu, copied, runs)?,
        };
        let reference = Reference::new(&ways.problem)?;
        Ok(Self { platform, reference, runs, reader, copy, copied })
    }

    fn on<M: Build + 'static>(&self, machine: &Arc<M>, ways: &Ways, way: usize, ready: &Ready) -> Result<Row> {
        let own = &ways.all[way];
        let placed = Arc::clone(ways.renumbered(way));
        let (images, builder) = (Arc::clone(&ready.images), Arc::clone(machine));
        // What is not known before anything is computed is compiled then.
        let maker: Rc<Maker<M>> = Rc::new(move |name, text| match images.get(text) {
            Some(built) => builder.bring(&built.compiled.image, name, text),
            None => builder.build(name, text),
        });
        let mut kernels = Kernels::new(Arc::clone(&ways.problem), Arc::clone(machine), own.variant.choices, placed);
        kernels = kernels.made_by(maker);
        if let Some(reader) = &self.reader {
            let (reader, variant) = (Rc::clone(reader), own.variant.name());
            kernels = kernels.read_by(Rc::new(move |name, text| reader(&format!("{name}-{variant}"), text)));
        }
        let measured = self.reference.measured(&ways.problem, &kernels, self.runs)?;
        let gb_per_s = ways.bytes[0] as f64 / measured.statistics.median_us / 1e3;
        let works: Vec<&Works> = own.works.iter().map(|(works, _)| works).collect();
        let all = Works {
            kernels: works.iter().flat_map(|works| works.kernels.clone()).collect(),
            colours: works.iter().filter_map(|works| works.colours).reduce(|a, b| a + b),
            targets: works.iter().map(|works| works.targets).sum(),
        };
        let is_own = |kernel: &str| works.len() == 1 && all.kernels.iter().any(|work| work.name == kernel);
        let taken = kernels.usages().into_iter().filter(|(kernel, _)| is_own(kernel));
        Ok(Row {
            variant: own.variant.clone(),
            taken: taken.map(|(kernel, usage)| Taken { kernel, usage }).collect(),
            gb_per_s,
            of_copy: gb_per_s / self.copy,
            reuse: all.reuse(),
            colours: all.colours,
            table_bytes: all.table_bytes(),
            measured,
        })
    }
}

fn no_strategies() -> Error {
    Error::call("the interpreter has no strategies to measure")
}

/// The texts of a way, and what the compiler makes of each.
pub struct Ready {
    texts: Vec<Text>,
    images: Arc<HashMap<String, Built>>,
}

/// What came of ways, by their numbers.
#[derive(Default)]
struct Came {
    rows: BTreeMap<usize, Row>,
    refused: BTreeMap<usize, Error>,
    failed: BTreeMap<usize, Error>,
}

/// Ways as the subject of measurements.
struct On<'a> {
    ways: &'a Ways,
    platform: &'a Platform,
}

/// What measures ways, and what came of them.
struct State<'a> {
    meter: &'a Meter<'a>,
    came: Came,
}

impl<'a> Subject for On<'a> {
    type Planned = Ready;
    type State = State<'a>;
    const ROUGHLY: Option<usize> = None;
    const HOPELESS: f64 = 2.0;

    fn platform(&self) -> &Platform {
        self.platform
    }

    fn plan(&self, way: usize) -> Result<Ready> {
        let Ways { problem, all, .. } = self.ways;
        let texts = self.ways.renumbered(way).texts(problem, &all[way].variant.choices)?;
        Ok(Ready { texts, images: Arc::default() })
    }

    fn bytes(&self, ready: &Ready) -> usize {
        ready.texts.iter().map(|own| own.text.len()).sum()
    }

    fn compile(&self, ready: &mut Ready) -> Result<f64> {
        let (mut images, mut seconds) = (HashMap::new(), 0.0);
        for Text { name, text } in ready.texts.drain(..) {
            let built = self.platform.compile(&name, &text)?;
            seconds += if built.cached { 0.0 } else { built.seconds };
            images.insert(text, built);
        }
        ready.images = Arc::new(images);
        Ok(seconds)
    }

    fn time(&self, State { meter, came }: &mut State<'a>, way: usize, ready: &Ready, _: How) -> Result<Timed> {
        let row = match self.platform {
            Platform::Cpu => Err(no_strategies()),
            Platform::Emulator(emulator) => meter.on(emulator, self.ways, way, ready),
            Platform::Gpu(gpu) => meter.on(gpu, self.ways, way, ready),
        }?;
        let statistics = row.measured.statistics;
        let timed = if row.is_wrong() { Err(row.verdict()) } else { Ok(statistics) };
        let is_slower = |before: &Row| before.measured.statistics.median_us > statistics.median_us;
        if timed.is_err() || came.rows.get(&way).is_none_or(is_slower) {
            came.rows.insert(way, row);
        }
        Ok(timed)
    }

    /// What a strategy cannot do, or what is wrong with its kernels, is no reason not to measure the others.
    fn failed(&self, State { came, .. }: &mut State<'a>, way: usize, error: Error) -> Result<()> {
        match error.fault {
            Fault::Input => drop(came.refused.insert(way, error)),
            Fault::Check => drop(came.failed.insert(way, error)),
            Fault::Call | Fault::Machine => return Err(error),
        }
        Ok(())
    }

    fn kinds(&self, _: &mut State<'a>) -> (Vec<Kind>, Vec<usize>) {
        let mut kinds: BTreeMap<usize, Kind> = BTreeMap::new();
        for (number, own) in self.ways.all.iter().enumerate() {
            let first = || Kind { begin: vec![number], estimate: own.predicted_us, turn: 0 };
            kinds.entry(own.kind).or_insert_with(first);
        }
        (kinds.into_values().collect(), self.ways.all.iter().map(|own| own.kind).collect())
    }

    fn are_beside(&self, one: usize, other: usize) -> bool {
        self.ways.all[one].kind == self.ways.all[other].kind
    }
}

impl Ways {
    fn renumbered(&self, way: usize) -> &Arc<Renumbered> {
        &self.places[self.all[way].place].renumbered
    }

    /// The names of a way's kernels.
    ///
    /// # Errors
    /// It cannot be computed.
    pub fn kernels(&self, way: usize) -> Result<Vec<String>> {
        Ok(names(self.renumbered(way).texts(&self.problem, &self.all[way].variant.choices)?))
    }

    /// Measures all, the fastest first. `progress` is told of [`measuring::STEPS`] for each.
    ///
    /// # Errors
    /// None can be computed; there is not enough memory, or a kernel has failed.
    pub fn measure(&mut self, meter: &Meter, progress: &Progress) -> Result<()> {
        let mut state = State { meter, came: Came::default() };
        let on = On { ways: self, platform: meter.platform };
        measuring::each(&on, &mut state, (0..self.all.len()).collect(), progress)?;
        self.take(state.came);
        if self.rows().next().is_none() {
            let failed = self.failed.pop().map(|(_, error)| error);
            if let Some(error) = failed.or_else(|| self.refused.pop_first().map(|(_, error)| error)) {
                return Err(error);
            }
        }
        let us = |own: &Candidate| own.measured.as_ref().map_or(f64::INFINITY, |row| row.measured.statistics.median_us);
        self.all.sort_by(|a, b| us(a).total_cmp(&us(b)));
        Ok(())
    }

    /// Measures what is usual, and those that may be faster, as many as a budget allows. `progress` is called after each that was compiled
    /// or measured.
    ///
    /// # Errors
    /// There is not enough memory, or a kernel has failed.
    pub fn search(&mut self, meter: &Meter, usual: &Variant, budget: Budget, progress: &Progress) -> Result<Found> {
        let options = usual.words();
        // Where that cannot be made, what the model ranks first is.
        let usual = self.all.iter().position(|own| own.options == options).unwrap_or(0);
        let mut state = State { meter, came: Came::default() };
        let asked = Asked { usual, is_asked: &|way| self.all[way].is_asked };
        let on = On { ways: self, platform: meter.platform };
        let found = measuring::search(&on, &mut state, asked, budget, progress)?;
        self.take(state.came);
        self.all.sort_by(|a, b| a.us().total_cmp(&b.us()).then(a.predicted_us.total_cmp(&b.predicted_us)));
        Ok(found)
    }

    fn take(&mut self, Came { rows, refused, failed }: Came) {
        self.failed.extend(failed.into_iter().map(|(way, error)| (self.all[way].variant.words(), error)));
        for (way, error) in refused {
            self.refused.entry(self.all[way].variant.strategy).or_insert(error);
        }
        rows.into_iter().for_each(|(way, row)| self.all[way].measured = Some(row));
    }
}
