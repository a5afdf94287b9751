//! Everything that there is to tell about a stencil, as data: what `--json` prints, and the text is written from.

use super::kernels::CostFacts;
use super::level_facts::{LevelFacts, Said};
use super::walks::WalkFacts;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use stencilc_compiler::analysis::levels::Known;
use stencilc_compiler::analysis::moving::{read_where_data_says, read_where_said};
use stencilc_compiler::analysis::operations::Operations;
use stencilc_compiler::analysis::reached::{Class, classes};
use stencilc_compiler::analysis::reuse::{Evaluation, evaluate};
use stencilc_compiler::analysis::roofline::{Bound, Limits};
use stencilc_compiler::analysis::traffic::traffic;
use stencilc_compiler::analysis::{self, extents};
use stencilc_compiler::cells::lookups::{Work, work};
use stencilc_compiler::cuda;
use stencilc_compiler::diagnostic::Refusal;
use stencilc_compiler::grid::{Grid, Region};
use stencilc_compiler::ir::program::GridAxis;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{DefId, Field, FieldId, Handle, Offset, Origin, Precision, Stencil};
use stencilc_compiler::plan::{Choices, Plan};
use stencilc_compiler::source::Source;

/// What is explained.
pub struct Explained<'a> {
    /// The text that it was read from.
    pub source: &'a Source,
    /// The stencil, prepared.
    pub stencil: &'a Stencil,
    /// A value for each parameter.
    pub params: &'a [Value],
    /// Names of the parameters whose value is arbitrary.
    pub drawn: &'a [String],
}

/// A machine that bounds the time.
pub struct Bounds {
    /// What it is called.
    pub machine: String,
    /// What it can do at best.
    pub limits: Limits,
    /// Who says so.
    pub source: String,
}

/// All that there is to tell. Counts of a cell are means over the computed cells where their name does not say otherwise.
#[derive(Serialize)]
pub struct Explanation {
    pub stencil: String,
    pub doc: String,
    pub precision: Precision,
    pub grid: Grid,
    /// What is computed; nothing if nothing can be.
    pub region: Option<Region>,
    pub cells: usize,
    pub fields: Vec<FieldFacts>,
    pub params: Vec<ParamFacts>,
    /// How far all reads together lie along i and j.
    pub halo: Halo,
    /// Offsets of all reads, along i and j.
    #[serde(skip)]
    pub columns: BTreeSet<Offset>,
    pub levels: LevelFacts,
    /// Where the stencil says which part of i and j it computes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns_said: Vec<Said>,
    /// What cells need, by their level.
    pub work: Vec<WorkFacts>,
    /// Definitions, with what is computed of them on the levels that need most of them.
    pub values: Vec<ValueFacts>,
    pub flops_per_cell: f64,
    pub bytes_per_cell: f64,
    /// Flops a byte.
    pub intensity: f64,
    pub bounds: Vec<BoundFacts>,
    pub lookups: Vec<LookupFacts>,
    /// What would wait if blocks walked along k, where other levels are read.
    pub walks: Option<WalkFacts>,
}

#[derive(Serialize)]
pub struct FieldFacts {
    pub name: String,
    pub doc: String,
    pub role: &'static str,
    /// ` on (k)`, or nothing for a field on every cell.
    pub place: String,
    pub stored: String,
    pub bytes: usize,
    pub range: Option<(f64, f64)>,
    /// Offsets of its reads, on whatever level.
    pub reads: Vec<[i32; 3]>,
    /// Whether data says how many levels further some of these are.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub on_levels_that_are_data: bool,
    /// Whether some are of one level of all, which the text says by its number.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub on_one_level_of_all: bool,
    #[serde(skip)]
    pub offsets: BTreeSet<Offset>,
    pub horizontal: bool,
    pub read_bytes_per_cell: f64,
    pub written_bytes_per_cell: f64,
}

#[derive(Serialize)]
pub struct ParamFacts {
    pub name: String,
    pub doc: String,
    pub kind: &'static str,
    pub value: String,
    /// Whether the value is arbitrary, since there is none.
    pub arbitrary: bool,
}

/// Reads lie from the first to the second offset, both included.
#[derive(Clone, Copy, Serialize)]
pub struct Halo {
    pub i: (i32, i32),
    pub j: (i32, i32),
}

/// What a cell needs on the levels of one kind.
#[derive(Serialize)]
pub struct WorkFacts {
    pub levels: Vec<Range<usize>>,
    /// Distinct reads of fields.
    pub reads: usize,
    /// Reads as the values write them, each value computed once.
    pub reads_written: u64,
    /// Reads if every use of a value computed it anew.
    pub reads_anew: u64,
    /// Values: a definition at an offset each.
    pub values: usize,
    /// How often they would be computed if every use did so anew.
    pub values_anew: u64,
    pub flops: u64,
    pub flops_anew: u64,
    /// Operations by their name, with every value computed once.
    pub operations: BTreeMap<&'static str, u64>,
    #[serde(skip)]
    pub once: Operations,
}

/// What is computed of a definition.
#[derive(Serialize)]
pub struct ValueFacts {
    pub name: String,
    pub origin: &'static str,
    /// At how many offsets its value is computed, once each.
    pub offsets: usize,
    /// How often it would be computed if every use did so anew.
    pub anew: u64,
}

/// The least time on one machine.
#[derive(Serialize)]
pub struct BoundFacts {
    pub machine: String,
    pub source: String,
    #[serde(flatten)]
    pub limits: Limits,
    #[serde(flatten)]
    pub bound: Bound,
    pub cells_per_second: f64,
}

/// A kernel, or why there is none.
pub enum Planned<'a> {
    /// Its plan, and the registers of a thread, if they were asked for.
    Kernel(&'a Plan, Option<u32>),
    Refused(&'a Choices, &'a Refusal),
}

/// What a kernel looks up.
#[derive(Serialize)]
pub struct LookupFacts {
    pub access: String,
    pub storage: String,
    /// Nothing if there is no such kernel.
    #[serde(flatten)]
    pub work: Option<Work>,
    /// What a thread of it does and needs, on any grid.
    pub cost: Option<CostFacts>,
    /// Registers of a thread, if they were asked for.
    pub registers: Option<u32>,
    /// Why there is no such kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl Explanation {
    /// Explains a stencil on a grid; why nothing can be computed comes beside, if that is so.
    pub fn new(
        subject: &Explained,
        precision: Precision,
        grid: Grid,
        machines: &[Bounds],
        kernels: &[Planned],
    ) -> (Self, Option<Refusal>) {
        let Explained { stencil, params, .. } = subject;
        let (region, refusal) = match analysis::region(stencil, precision, grid, None, params) {
            Ok(region) => (Some(region), None),
            Err(refusal) => (None, Some(refusal)),
        };
        let nk = grid.nk.min(analysis::LEVELS);
        let known = Known::new(stencil, precision, nk, params);
        let classes = classes(stencil, &known, analysis::levels::candidates(stencil, 0..nk).end);
        let evaluations: Vec<Evaluation> = classes.iter().map(|class| evaluate(stencil, &class.reached)).collect();
        let evaluated: Vec<(&Class, &Evaluation)> = classes.iter().zip(&evaluations).collect();

        let cells = region.as_ref().map_or(0, Region::cells);
        let levels = region.as_ref().map_or(0..0, |region| region.k.clone());
        let per_cell = |count: u64| if cells == 0 { 0.0 } else { count as f64 / cells as f64 };
        let touched = region.as_ref().map(|region| traffic(stencil, precision, grid, region, &evaluated));
        let (moved, said) = (read_where_data_says(stencil), read_where_said(stencil));
        let mut bytes = 0;
        let mut fields = Vec::new();
        for (id, field) in stencil.own_fields() {
            let mut facts = field_facts(field, precision, offsets(&evaluations, id));
            facts.on_levels_that_are_data = moved.contains(&id);
            facts.on_one_level_of_all = said.contains(&id);
            if let Some(touched) = touched.as_ref().and_then(|touched| touched.get(id.index())) {
                let size = field.stored.bytes(precision) as u64;
                facts.read_bytes_per_cell = per_cell(touched.read * size);
                facts.written_bytes_per_cell = per_cell(touched.written * size);
                bytes += touched.bytes;
            }
            fields.push(facts);
        }

        let mut total = Operations::default();
        let columns = region.as_ref().map_or(0, |region| (region.i.len() * region.j.len()) as u64);
        let mut column: Vec<(&Evaluation, usize)> = Vec::new();
        let mut work_of_levels = Vec::new();
        for (class, evaluation) in &evaluated {
            let here = class.levels_in(&levels);
            if here > 0 {
                total.add_all(&evaluation.once, columns.saturating_mul(here as u64));
                column.push((evaluation, here));
                work_of_levels.push(work_facts(class, &levels, evaluation));
            }
        }
        let flops = total.flops();
        let bound_on = |machine: &Bounds| {
            let bound = machine.limits.bound(bytes as f64, total.instructions() as f64);
            BoundFacts {
                machine: machine.machine.clone(),
                source: machine.source.clone(),
                limits: machine.limits,
                bound,
                cells_per_second: cells as f64 / bound.bound_us * 1e6,
            }
        };
        let lookups_of = |planned: &Planned| match planned {
            Planned::Kernel(plan, registers) => LookupFacts {
                access: plan.access.name().to_owned(),
                storage: plan.storage.name().to_owned(),
                work: Some(work(plan, levels.len(), &column)),
                cost: cuda::lower(plan).ok().map(|kernel| CostFacts::new(&kernel)),
                registers: *registers,
                refused: None,
            },
            Planned::Refused(choices, refusal) => LookupFacts {
                access: choices.access.clone(),
                storage: choices.storage.clone(),
                work: None,
                cost: None,
                registers: None,
                refused: Some(refusal.message.clone()),
            },
        };
        let reach = extents::extents(stencil);
        let explanation = Self {
            stencil: stencil.name.clone(),
            doc: stencil.doc.as_told().to_owned(),
            precision,
            grid,
            cells,
            columns: fields.iter().flat_map(|field| &field.offsets).map(|offset| offset.horizontal()).collect(),
            fields,
            params: param_facts(subject, precision),
            halo: Halo { i: (reach.low.i, reach.high.i), j: (reach.low.j, reach.high.j) },
            columns_said: GridAxis::ACROSS.into_iter().filter_map(|axis| Said::of(subject, axis)).collect(),
            levels: LevelFacts::new(subject, nk, &classes),
            work: work_of_levels,
            values: value_facts(stencil, &column),
            flops_per_cell: per_cell(flops),
            bytes_per_cell: per_cell(bytes),
            intensity: if bytes == 0 { 0.0 } else { flops as f64 / bytes as f64 },
            bounds: if cells == 0 { Vec::new() } else { machines.iter().map(bound_on).collect() },
            lookups: if cells == 0 { Vec::new() } else { kernels.iter().map(lookups_of).collect() },
            walks: None,
            region,
        };
        (explanation, refusal)
    }
}

/// Offsets at which a field is read, on whatever level.
fn offsets(evaluations: &[Evaluation], field: FieldId) -> BTreeSet<Offset> {
    evaluations
        .iter()
        .filter_map(|evaluation| evaluation.reads.get(&field))
        .flat_map(|reads| reads.keys().copied())
        .collect()
}

fn field_facts(field: &Field, precision: Precision, offsets: BTreeSet<Offset>) -> FieldFacts {
    FieldFacts {
        name: field.name.clone(),
        doc: field.doc.as_told().to_owned(),
        role: field.role.name(),
        place: field.place.to_string(),
        stored: field.stored.to_string(),
        bytes: field.stored.bytes(precision),
        range: field.range,
        reads: offsets.iter().map(|offset| [offset.i, offset.j, offset.k]).collect(),
        on_levels_that_are_data: false,
        on_one_level_of_all: false,
        offsets,
        horizontal: field.place.horizontal,
        read_bytes_per_cell: 0.0,
        written_bytes_per_cell: 0.0,
    }
}

fn param_facts(subject: &Explained, precision: Precision) -> Vec<ParamFacts> {
    let params = subject.stencil.params.iter().zip(subject.params);
    let facts = |((_, param), value): ((_, &stencilc_compiler::ir::Param), &Value)| ParamFacts {
        name: param.name.clone(),
        doc: param.doc.as_told().to_owned(),
        kind: param.kind.name(),
        value: match value {
            Value::Real(x) if precision == Precision::F32 => (*x as f32).to_string(),
            Value::Real(x) => x.to_string(),
            Value::Int(x) => x.to_string(),
            Value::Bool(x) => x.to_string(),
        },
        arbitrary: subject.drawn.contains(&param.name),
    };
    params.map(facts).collect()
}

fn work_facts(class: &Class, computed: &Range<usize>, evaluation: &Evaluation) -> WorkFacts {
    let sum = |counts: &mut dyn Iterator<Item = u64>| counts.fold(0u64, u64::saturating_add);
    let within = |run: &Range<usize>| run.start.max(computed.start)..run.end.min(computed.end);
    WorkFacts {
        levels: class.levels.iter().map(within).filter(|run| !run.is_empty()).collect(),
        reads: evaluation.distinct_reads(),
        reads_written: sum(&mut evaluation.reads.values().flat_map(|reads| reads.values().copied())),
        reads_anew: evaluation.reads_anew,
        values: evaluation.distinct_values(),
        values_anew: sum(&mut evaluation.values.values().flat_map(|values| values.values().copied())),
        flops: evaluation.once.flops(),
        flops_anew: evaluation.anew.flops(),
        operations: evaluation.once.iter().map(|(operation, count)| (operation.name(), count)).collect(),
        once: evaluation.once,
    }
}

/// What is computed of each definition, on the levels that need most of it.
fn value_facts(stencil: &Stencil, column: &[(&Evaluation, usize)]) -> Vec<ValueFacts> {
    let facts = |id: DefId| {
        let values = column.iter().filter_map(|(evaluation, _)| evaluation.values.get(&id));
        let most = values.max_by_key(|values| values.len())?;
        let def = &stencil.defs[id];
        Some(ValueFacts {
            name: def.name.clone(),
            origin: match def.origin {
                Origin::Let => "let",
                Origin::Argument => "argument",
                Origin::Result => "result",
                Origin::Constant => "constant",
                Origin::Base => "base of a power",
            },
            offsets: most.len(),
            anew: most.values().fold(0, |sum, &times| sum.saturating_add(times)),
        })
    };
    stencil.defs.handles().filter_map(facts).collect()
}
