//! `stencilc explain` of a stencil over a mesh: what is read and written where, who races, and what each strategy does about it.

use super::kernels::CostFacts;
use super::{Args, Told};
use crate::build::mesh::kernels_for_any;
use crate::drawn::{DrawnOver, refuse_of_grids};
use crate::terminal;
use serde::Serialize;
use std::collections::BTreeMap;
use stencilc_compiler::analysis::footprint::Footprint;
use stencilc_compiler::analysis::levels::leaves_levels;
use stencilc_compiler::ir::mesh::How;
use stencilc_compiler::ir::program::GridAxis;
use stencilc_compiler::ir::{Direction, FieldId, Levels, MeshStencil, Path, Precision};
use stencilc_compiler::mesh::Group;
use stencilc_runtime::mesh::program::kernels::{Renumbered, Works};
use stencilc_runtime::mesh::program::{measure, prepared};
use stencilc_runtime::{Fault, Result};

/// What is known of a stencil over a mesh.
#[derive(Serialize)]
struct Explanation {
    stencil: String,
    doc: String,
    precision: Precision,
    over: String,
    fields: Vec<FieldFacts>,
    /// The zones whose elements are computed alone, if the stencil says so.
    zones: Option<String>,
    /// Whether the stencil says which levels are computed.
    says_levels: bool,
    /// Which ways it sweeps through the levels.
    sweeps: Vec<Direction>,
    /// Whether there may be levels that are not computed.
    leaves_levels: bool,
    operations: BTreeMap<&'static str, u64>,
    flops_per_element: u64,
    races: Vec<Race>,
    strategies: Vec<OfStrategy>,
    /// The mesh that figures are for, and its order.
    mesh: Option<OfMesh>,
}

#[derive(Serialize)]
struct FieldFacts {
    role: &'static str,
    name: String,
    place: String,
    parts: u32,
    stored: String,
    bytes: usize,
    /// Paths along which it is read.
    read: Vec<String>,
    /// What is done with it, and along which paths.
    written: Vec<String>,
}

/// Several elements that add to one.
#[derive(Serialize)]
struct Race {
    set: String,
    /// Paths that lead there.
    along: Vec<String>,
    fields: Vec<String>,
    /// How many numbers an element adds.
    adds: usize,
}

/// What a strategy does.
#[derive(Serialize)]
struct OfStrategy {
    name: &'static str,
    does: &'static str,
    /// Whether the bits are the interpreter's.
    in_order: bool,
    kernels: Vec<String>,
    /// What a thread of each does and needs.
    costs: Vec<CostFacts>,
    /// Why it cannot compute the stencil.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    /// On the mesh that is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    figures: Option<Figures>,
}

#[derive(Serialize)]
struct Figures {
    memory_bytes: f64,
    flops: f64,
    atomics: f64,
    reuse: Option<f64>,
    colours: Option<usize>,
    table_bytes: f64,
}

#[derive(Serialize)]
struct OfMesh {
    file: String,
    order: &'static str,
}

impl Figures {
    fn new(works: &Works) -> Self {
        Self {
            memory_bytes: works.memory_bytes(),
            flops: works.kernels.iter().map(|work| work.instructions).sum(),
            atomics: works.kernels.iter().map(|work| work.atomics).sum(),
            reuse: works.reuse(),
            colours: works.colours,
            table_bytes: works.table_bytes(),
        }
    }
}

/// Explains a stencil over a mesh.
///
/// # Errors
/// Something is wrong with the call, or with the mesh if one is given.
pub fn explain(args: &Args, stencil: &MeshStencil, json: bool) -> Result<Told> {
    refuse_of_grids(&args.names, &[], &stencil.stencil.name)?;
    let explanation = Explanation::new(args, stencil)?;
    Told::new(&explanation, json, || explanation.text())
}

impl Explanation {
    fn new(args: &Args, stencil: &MeshStencil) -> Result<Self> {
        let contract = args.launch.code.contract;
        let own = prepared(stencil, args.precision, contract);
        let all = own.stencil.stores.len();
        let looks = Footprint::new(&own, 0..all);
        let operations = looks.operations.iter().filter(|(_, count)| *count > 0);
        let (strategies, mesh) = strategies(args, stencil)?;
        Ok(Self {
            stencil: own.stencil.name.clone(),
            doc: own.stencil.doc.as_told().to_owned(),
            precision: args.precision,
            over: format!("{}.{}", own.mesh.name, own.mesh.sets[own.set()].name),
            zones: own.stencil.zones.map(|zones| own.mesh.zone_names(own.set(), zones)),
            says_levels: own.stencil.says(GridAxis::K),
            sweeps: own.stencil.sweeps.iter().map(|(_, sweep)| sweep.direction).collect(),
            leaves_levels: own.mesh.levels && leaves_levels(&own.stencil),
            fields: own.stencil.own_fields().map(|(id, _)| field(&own, id, &looks, args.precision)).collect(),
            operations: operations.map(|(operation, count)| (operation.name(), count)).collect(),
            flops_per_element: looks.operations.flops(),
            races: races(&own),
            strategies,
            mesh,
        })
    }
}

/// Where a path leads, as it is written.
fn written_path(stencil: &MeshStencil, path: &Path) -> String {
    let text = stencil.mesh.written(path);
    if text.is_empty() { "here".to_owned() } else { text }
}

fn field(stencil: &MeshStencil, id: FieldId, looks: &Footprint, precision: Precision) -> FieldFacts {
    let own = &stencil.stencil.fields[id];
    let reads = looks.reads.keys().filter(|(field, _)| *field == id);
    let mut written: Vec<String> = Vec::new();
    for (_, write) in stencil.stores().filter(|(store, _)| store.field == id) {
        let text = match &write.how {
            How::Assign => "written here".to_owned(),
            How::Add(path) if path.is_here() => "added here".to_owned(),
            How::Add(path) => format!("added at {}", written_path(stencil, path)),
            How::Reduce(fold) => format!("the {} of all", fold.name()),
        };
        if !written.contains(&text) {
            written.push(text);
        }
    }
    let mut place = stencil.mesh.place(own.place).trim_start().to_owned();
    if own.place.home.is_none() && own.place.levels == Levels::None {
        place = "a number".to_owned();
    }
    FieldFacts {
        role: own.role.name(),
        name: own.name.clone(),
        place,
        parts: own.place.home.map_or(1, |home| home.parts),
        stored: own.stored.to_string(),
        bytes: own.stored.bytes(precision),
        read: reads
            .flat_map(|key| {
                let way = Path::through(key.1.clone());
                let shifts = looks.shifts.get(key).into_iter().flatten();
                let plain = shifts.map(|&shift| written_path(stencil, &way.then(&Path::levels_only(shift))));
                let anywhere = [(&looks.moved, "on levels that are data"), (&looks.said, "on one level of all")];
                let anywhere = anywhere.into_iter().filter(|(keys, _)| keys.contains(key));
                plain
                    .chain(anywhere.map(|(_, how)| format!("{} {how}", written_path(stencil, &way))))
                    .collect::<Vec<_>>()
            })
            .collect(),
        written,
    }
}

fn races(stencil: &MeshStencil) -> Vec<Race> {
    let race = |group: &Group| Race {
        set: stencil.mesh.sets[group.target].name.clone(),
        along: group.paths.iter().map(|path| written_path(stencil, path)).collect(),
        fields: group.fields().into_iter().map(|field| stencil.stencil.fields[field].name.clone()).collect(),
        adds: group.adds.len(),
    };
    // Who adds to itself alone races with nobody.
    let groups = stencilc_compiler::mesh::groups(stencil);
    groups.iter().filter(|group| group.paths.iter().any(|path| !path.is_here())).map(race).collect()
}

/// What each strategy does, and, on a mesh, what that comes to.
fn strategies(args: &Args, stencil: &MeshStencil) -> Result<(Vec<OfStrategy>, Option<OfMesh>)> {
    let (precision, contract, set) = (args.precision, args.launch.code.contract, &args.set);
    let on_mesh = match &args.over.mesh {
        None => None,
        Some(path) => {
            let (over, levels) = (&args.over, args.levels);
            let program = &measure::program(stencil, false);
            let drawn = DrawnOver { program, precision, contract, over, levels, set, seed: 0 };
            let problem = drawn.problem()?;
            let layout = |strategy| Ok(over.choices_of(strategy, stencil.mesh.levels)?.layout);
            let layouts = over.strategies_for(stencil).into_iter().map(layout).collect::<Result<Vec<_>>>()?;
            let order = over.one_ordering(&problem, &layouts)?;
            let renumbered = Renumbered::new(&problem, &order.ordering)?;
            let of_mesh = OfMesh { file: path.display().to_string(), order: order.name };
            Some((problem, renumbered, of_mesh))
        }
    };
    // Which kernels there are is the same for any number of levels.
    let levels = stencil.mesh.levels.then(|| args.levels.unwrap_or(LEVELS));
    let mut all = Vec::new();
    for strategy in args.over.strategies_for(stencil) {
        let choices = args.over.choices_of(strategy, stencil.mesh.levels)?;
        let mut own = OfStrategy {
            name: strategy.name(),
            does: strategy.summary(),
            in_order: strategy.is_ordered(),
            kernels: Vec::new(),
            costs: Vec::new(),
            refused: None,
            figures: None,
        };
        let found = match &on_mesh {
            Some((problem, renumbered, _)) => {
                let call = measure::only_call(problem)?;
                renumbered.works(problem, call, &choices).and_then(|works| {
                    own.figures = Some(Figures::new(&works));
                    renumbered.kernels(problem, call, &choices)
                })
            }
            None => kernels_for_any(stencil, (precision, contract), levels, set, &choices),
        };
        match found {
            Ok(kernels) => {
                own.costs = kernels.iter().map(|kernel| CostFacts::new(&kernel.code)).collect();
                own.kernels = kernels.into_iter().map(|kernel| kernel.code.name.into()).collect();
            }
            Err(error) if error.fault == Fault::Input => own.refused = Some(error.message),
            Err(error) => return Err(error),
        }
        all.push(own);
    }
    Ok((all, on_mesh.map(|(.., of_mesh)| of_mesh)))
}

/// Levels where nobody says how many there are.
const LEVELS: usize = 64;

impl Explanation {
    /// The same, to be read.
    fn text(&self) -> String {
        let title = match self.doc.lines().next() {
            Some(line) => format!("{}: {line}", self.stencil),
            None => self.stencil.clone(),
        };
        let mut text = format!("{title}\nin {}, over {}\n\nfields\n", self.precision.name(), self.over);
        text.push_str(&terminal::table(&self.fields.iter().map(FieldFacts::row).collect::<Vec<_>>(), &[]));
        if let Some(zones) = &self.zones {
            text.push_str(&format!("  zones: computed are elements of {zones}; the others keep what was there\n"));
        }
        if !self.sweeps.is_empty() {
            let ways: Vec<&str> = self.sweeps.iter().map(|own| own.name()).collect();
            text.push_str(&format!("  sweeps: {} through the levels of each element\n", ways.join(", then ")));
        }
        if self.says_levels {
            text.push_str(
                "  levels: computed are those that the stencil says, as far as all levels exist that are read\n",
            );
        } else if self.leaves_levels {
            text.push_str("  levels: computed are those for which all levels exist that are read; the others keep what was there\n");
        }
        let element = self.over.split('.').next_back().unwrap_or("element");
        text.push_str(&format!("\nwork, for each {element}\n"));
        let mut rows: Vec<Vec<String>> = Vec::new();
        rows.extend(self.operations.iter().map(|(name, count)| vec![format!("  {name}"), count.to_string()]));
        rows.push(vec!["  flops, an fma counts two".to_owned(), self.flops_per_element.to_string()]);
        text.push_str(&terminal::table(&rows, &[1]));
        text.push_str("\nraces\n");
        if self.races.is_empty() {
            text.push_str(&format!(
                "  none: each {element} is written by its own thread alone, whatever the strategy\n"
            ));
        }
        for race in &self.races {
            let Race { set, along, fields, adds } = race;
            text.push_str(&format!(
                "  each {element} adds {} to {} of {set}, at {}; several may add to one {set}\n",
                terminal::count(*adds, "number"),
                fields.join(", "),
                along.join(" and ")
            ));
        }
        if self.races.is_empty() && self.mesh.is_none() {
            return text;
        }
        text.push_str("\nstrategies\n");
        for own in &self.strategies {
            text.push_str(&own.text());
        }
        text.push_str(&self.costs());
        match &self.mesh {
            Some(OfMesh { file, order }) => {
                text.push_str(&format!("\n{file}, order {order}\n{}", self.figures()));
            }
            None => text.push_str("\nwith --mesh FILE, what that comes to\n"),
        }
        text
    }

    /// What a thread of each kernel does and needs.
    fn costs(&self) -> String {
        let mut kernels = Vec::new();
        for own in &self.strategies {
            let names = own.kernels.iter().map(|name| vec![format!("  {}", own.name), name.clone()]);
            kernels.extend(names.zip(&own.costs));
        }
        if kernels.is_empty() {
            return String::new();
        }
        format!(
            "\nkernels as written: what a thread does at most, real and whole operations, and what it needs\n{}",
            CostFacts::table(&kernels, &["  strategy", "kernel"])
        )
    }

    fn figures(&self) -> String {
        let head = ["  strategy", "MB", "Mflop", "atomics", "reuse", "colours", "tables"].map(str::to_owned).to_vec();
        let mut rows = vec![head];
        for own in &self.strategies {
            let Some(figures) = &own.figures else { continue };
            let million = |number: f64| {
                if number < 1e7 { format!("{:.3}", number / 1e6) } else { format!("{:.1}", number / 1e6) }
            };
            rows.push(vec![
                format!("  {}", own.name),
                million(figures.memory_bytes),
                million(figures.flops),
                if figures.atomics > 0.0 { million(figures.atomics) } else { String::new() },
                figures.reuse.map_or(String::new(), |reuse| format!("{reuse:.2}")),
                figures.colours.map_or(String::new(), |colours| colours.to_string()),
                format!("{:.1}", figures.table_bytes),
            ]);
        }
        terminal::table(&rows, &[1, 2, 3, 4, 5, 6])
            + "  MB: from and to memory, by the model of `tune`; Mflop: instructions, those computed again and slow ones as ten; atomics: millions\n"
            + "  reuse: threads of a block that use an average datum; tables: bytes of tables and maps for each target\n"
    }
}

impl FieldFacts {
    fn row(&self) -> Vec<String> {
        let parts = if self.parts > 1 { format!("[{}]", self.parts) } else { String::new() };
        let read = if self.read.is_empty() { String::new() } else { format!("read {}", self.read.join(", ")) };
        let written = if self.written.is_empty() { String::new() } else { self.written.join(", ") };
        let all = [read, written].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ");
        let stored = format!("{}{parts}, {} B", self.stored, self.bytes * self.parts as usize);
        vec![format!("  {}", self.role), self.name.clone(), self.place.clone(), stored, all]
    }
}

impl OfStrategy {
    fn text(&self) -> String {
        let mut text = format!("  {}: {}\n", self.name, self.does);
        match &self.refused {
            Some(reason) => text.push_str(&format!("    not here: {reason}\n")),
            None => {
                let bits = if self.in_order { "the interpreter's bits" } else { "bits of another order of additions" };
                text.push_str(&format!("    {}; {bits}\n", self.kernels.join(", then ")));
            }
        }
        text
    }
}
