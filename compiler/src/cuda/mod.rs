//! The printer: a plan as CUDA C++.
//!
//! Templates hold the skeletons of kernels, this module fills them with ready texts. The text is the same to the byte for
//! the same plan, and runs through NVRTC and nvcc alike.

mod body;
mod carried;
pub mod checked;
pub(crate) mod expression;
mod functions;
mod host;
mod index;
mod levels;
pub(crate) mod prelude;
mod runs;

use crate::access::{LevelsPerThread, Lookups};
use crate::device;
use crate::diagnostic::Refusal;
use crate::ir::{Direction, FieldId, ParamId, Role, Stencil};
use crate::names::Names;
use crate::plan::{Fixed, Plan, stored_type};
use crate::storage::Coordinates;
use crate::storage::fields;
use body::Loop;
use expression::{Helpers, computing_type};
pub use host::{Built, build};
use serde::Serialize;
use std::collections::BTreeMap;
use tera::{Context, Tera};

/// The templates, embedded so that the compiler works from any folder.
const TEMPLATES: &[(&str, &str)] = &[
    ("cell.cu.tera", include_str!("../../../templates/cell.cu.tera")),
    ("levels.cu.tera", include_str!("../../../templates/levels.cu.tera")),
    ("step_stream.cu.tera", include_str!("../../../templates/step_stream.cu.tera")),
    ("step_tiled.cu.tera", include_str!("../../../templates/step_tiled.cu.tera")),
    ("step_resident.cu.tera", include_str!("../../../templates/step_resident.cu.tera")),
    ("launch.cu.tera", include_str!("../../../templates/launch.cu.tera")),
    ("launch.h.tera", include_str!("../../../templates/launch.h.tera")),
];

/// A printed kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// Its CUDA C++.
    pub text: String,
    /// What it takes, in order.
    pub parameters: Vec<Parameter>,
    /// Of a checked kernel: where it touches fields, by the numbers that it reports.
    pub sites: Vec<checked::Site>,
}

/// What a kernel takes.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name in the code.
    pub name: String,
    /// Its C type.
    pub c_type: String,
    /// What it is.
    pub what: What,
}

/// What a parameter of a kernel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A field that is read: a pointer to the value of the first cell.
    Input(FieldId),
    /// A field that is written: a pointer to the value of the first cell.
    Output(FieldId),
    /// A parameter of the stencil.
    Param(ParamId),
    /// A table of the storage, by its number.
    Table(usize),
    /// Where a checked kernel writes what went wrong: [`checked::REPORT`] numbers of 64 bits, 0 before the launch.
    Report,
    /// The table [`checked::columns`], for a checked kernel.
    Columns,
    /// A size: first and end of the columns (by axis), of the levels, the number of levels, the distance of planes, and
    /// the storage's own.
    Size(Size),
}

/// A size that a kernel uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// The first column along an axis of threads.
    ColumnFirst(usize),
    /// One past the last column along an axis of threads.
    ColumnEnd(usize),
    /// The first level computed.
    LevelFirst,
    /// One past the last level computed.
    LevelEnd,
    /// The number of levels.
    Levels,
    /// The distance of planes.
    Plane,
    /// A size of the storage, by its number.
    Own(usize),
}

/// The names of everything in a kernel that has one before its body is written.
struct Named {
    names: Names,
    inputs: BTreeMap<FieldId, String>,
    outputs: BTreeMap<FieldId, String>,
    params: BTreeMap<ParamId, String>,
}

/// What a kernel's template is filled with.
#[derive(Serialize)]
struct KernelTexts {
    comment: Vec<String>,
    prelude: Vec<String>,
    threads: u32,
    name: String,
    signature: Vec<String>,
    sizes: Vec<String>,
    coordinates: Vec<String>,
    outside: String,
    level: String,
    level_name: String,
    level_first: String,
    level_start: String,
    level_end: String,
    slice: u32,
    /// Whether every slice is whole, so that its loop needs no check.
    whole_slices: bool,
    unroll: String,
    index_type: &'static str,
    cell: String,
    column_name: String,
    column: String,
    plane: String,
    together: Vec<String>,
    lookups: Vec<String>,
    declarations: Vec<String>,
    /// Loops over the levels; kernels of one level a thread, or a few, have one.
    loops: Vec<LoopTexts>,
    body: Vec<String>,
}

/// A loop over the levels.
#[derive(Serialize)]
struct LoopTexts {
    unroll: String,
    head: String,
    body: Vec<String>,
}

/// The kernel of a plan.
///
/// # Errors
/// It keeps values of sweeps on every level, and how many there are is not known; or a template is broken, which is a fault
/// of the compiler.
pub fn print(plan: &Plan) -> Result<Kernel, Refusal> {
    print_with(plan, &Helpers::new())
}

/// The kernel of a plan, with functions in its prelude that something else needs.
fn print_with(plan: &Plan, others: &Helpers) -> Result<Kernel, Refusal> {
    if plan.fixed.is_none() && plan.kept_bytes(1) > 0 {
        let name = &plan.stencil.name;
        return Err(Refusal::new(format!("how many levels a thread keeps of the sweeps of `{name}` is not known"))
            .help("give the grid: --grid 512x512x64"));
    }
    let mut named = name(plan);
    let kernel_name = named.names.fresh(&format!("{}_kernel", plan.stencil.name));
    let coordinates = plan.coordinates(&mut named.names);
    let lookups = plan.access.lookups(&plan.reach(&coordinates), &mut named.names);
    let written = body::write(plan, &mut named, &coordinates, &lookups)?;
    let sizes = size_declarations(plan, &mut named.names);
    let used = |name: &str| uses_word(written.lines(), &coordinates, &lookups, name);
    let [k, c, column, plane] = named.names.internals(["k", "c", "column", "plane"]);
    let [level_first, level_end, level_start] = named.names.internals(["k_first", "k_end", "k_start"]);
    let z = plan.choices.block[2];
    let thread = match z {
        1 => "blockIdx.z".to_owned(),
        _ => format!("blockIdx.z * {z} + threadIdx.z"),
    };
    let (slice, level) = match plan.levels_per_thread() {
        LevelsPerThread::One => (1, format!("const int {k} = {level_first} + {thread};")),
        LevelsPerThread::Slice(slice) => (slice, format!("{level_first} + ({thread}) * {slice}")),
        LevelsPerThread::All => (0, level_first.clone()),
    };
    let needs_column = used(&column);
    let mut parameters = field_parameters(plan, &named);
    let mut watched = Vec::new();
    let mut constant = None;
    parameters.extend(table_parameters(plan, &mut named.names, &used, &mut watched, &mut constant));
    parameters.extend(checked::parameters(plan, &mut named.names));
    let mut constants = Vec::new();
    for (declaration, what, text) in sizes {
        let always = [level_end.as_str(), level_first.as_str(), plane.as_str()];
        if !always.contains(&declaration.as_str()) && !used(&declaration) {
            continue;
        }
        let c_type = if is_wide(what) { named.names.index_type() } else { "int" };
        match text {
            Some(value) => constants.push(format!("constexpr {c_type} {declaration} = {value};")),
            None => parameters.push(Parameter { name: declaration, c_type: c_type.to_owned(), what: What::Size(what) }),
        }
    }
    constants.extend(checked::lines(plan, &mut named.names, &watched));
    let signature = parameters.iter().map(declaration).collect();
    let mut prelude = prelude::functions(&written.helpers.union(others).copied().collect(), plan.choices.precision);
    let mut add = |text: &str| prelude.extend(text.lines().map(str::to_owned));
    if plan.choices.checked {
        add(checked::PRELUDE);
    }
    if written.lines().any(|line| line.contains("neighbour_of(")) {
        add(plan.storage.helper());
    }
    if written.lines().any(|line| line.contains("load_run<") || line.contains("store_run(")) {
        add(runs::HELPER);
    }
    if written.lines().any(|line| line.contains("interleaved<")) {
        add(fields::HELPER);
    }
    if let Some((name, table)) = &constant {
        prelude.push(constant_table(name, table));
    }
    let mut texts = KernelTexts {
        comment: comment(plan),
        prelude,
        threads: plan.choices.block.iter().product(),
        name: kernel_name.clone(),
        signature,
        sizes: constants,
        coordinates: coordinates.lines.clone(),
        outside: coordinates.outside.clone(),
        level,
        level_name: k,
        level_first,
        level_start,
        level_end,
        slice,
        whole_slices: plan.has_whole_slices(),
        unroll: if slice == 0 { "#pragma unroll 4".into() } else { "#pragma unroll".into() },
        index_type: named.names.index_type(),
        cell: c.clone(),
        column_name: if needs_column { column } else { String::new() },
        column: coordinates.column.clone(),
        plane,
        together: lookups.together.clone(),
        lookups: lookups.lines.clone(),
        declarations: written.declarations,
        body: Vec::new(),
        loops: Vec::new(),
    };
    match plan.levels_per_thread() {
        LevelsPerThread::All => {
            let number = named.names.internal("n");
            let loops = written.loops.into_iter();
            texts.loops = loops.map(|own| loop_texts(own, &texts, &number)).collect();
        }
        LevelsPerThread::One | LevelsPerThread::Slice(_) => {
            texts.body = written.loops.into_iter().flat_map(|own| own.lines).collect();
        }
    }
    let mut text = render(plan.access.template(), &texts)?;
    let operations = device::lines(&text);
    if !operations.is_empty() {
        texts.prelude.extend(operations);
        text = render(plan.access.template(), &texts)?;
    }
    Ok(Kernel { name: kernel_name, text, parameters, sites: written.sites })
}

/// Levels that a sweep loads at once. Sweeps wait long for each level, if only for its divisions: so they do not wait for
/// memory, too.
const AHEAD: usize = 8;

/// A loop over all levels.
fn loop_texts(own: Loop, texts: &KernelTexts, number: &str) -> LoopTexts {
    let KernelTexts { level_name: k, level_first: first, level_end: end, cell, plane, index_type, .. } = texts;
    let column = if texts.column_name.is_empty() { &texts.column } else { &texts.column_name };
    let cell_line = format!("const {index_type} {cell} = {column} + {k} * {plane};");
    // A sweep may look at no cell, only at what others carried.
    let with_cell = |lines: Vec<String>| {
        let needs_cell = lines.iter().any(|line| has_word(line, cell));
        needs_cell.then(|| cell_line.clone()).into_iter().chain(lines).collect::<Vec<String>>()
    };
    let is_down = own.direction == Some(Direction::Down);
    if own.ahead.is_empty() {
        let head = match is_down {
            false => format!("for (int {k} = {first}; {k} < {end}; ++{k})"),
            true => format!("for (int {k} = {end} - 1; {k} >= {first}; --{k})"),
        };
        return LoopTexts { unroll: texts.unroll.clone(), head, body: with_cell(own.lines) };
    }
    let start = &texts.level_start;
    let (head, level, is_over) = match is_down {
        false => (
            format!("for (int {start} = {first}; {start} < {end}; {start} += {AHEAD})"),
            format!("const int {k} = {start} + {number};"),
            format!("if ({k} >= {end}) break;"),
        ),
        true => (
            format!("for (int {start} = {end} - 1; {start} >= {first}; {start} -= {AHEAD})"),
            format!("const int {k} = {start} - {number};"),
            format!("if ({k} < {first}) break;"),
        ),
    };
    let loads = own.ahead.iter().map(|ahead| format!("{}[{number}] = {};", ahead.name, ahead.element)).collect();
    let mut body: Vec<String> =
        own.ahead.iter().map(|ahead| format!("{} {}[{AHEAD}];", ahead.c_type, ahead.name)).collect();
    for lines in [loads, own.lines] {
        body.push("#pragma unroll".into());
        body.push(format!("for (int {number} = 0; {number} < {AHEAD}; ++{number}) {{"));
        let inner = [level.clone(), is_over.clone()].into_iter().chain(with_cell(lines));
        body.extend(inner.map(|line| format!("    {line}")));
        body.push("}".into());
    }
    LoopTexts { unroll: "#pragma unroll 1".into(), head, body }
}

fn is_wide(size: Size) -> bool {
    matches!(size, Size::Plane | Size::Own(_))
}

/// Renders a template; an error in one is ours.
pub(crate) fn render<T: Serialize>(template: &str, texts: &T) -> Result<String, Refusal> {
    let broken = |error: tera::Error| Refusal::new(format!("the template {template} is broken: {error}"));
    let mut tera = Tera::default();
    tera.autoescape_on(Vec::<&'static str>::new());
    tera.add_raw_templates(TEMPLATES.to_vec()).map_err(broken)?;
    let context = Context::from_serialize(texts).map_err(broken)?;
    tera.render(template, &context).map_err(broken)
}

/// The user's names first, so that they stay as they are.
fn name(plan: &Plan) -> Named {
    let mut names = Names::new(plan.wide);
    let mut named =
        Named { names: Names::default(), inputs: BTreeMap::new(), outputs: BTreeMap::new(), params: BTreeMap::new() };
    for (id, field) in plan.stencil.own_fields() {
        let name = names.fresh(&field.name);
        if field.role.is_read() {
            named.inputs.insert(id, name);
        } else {
            named.outputs.insert(id, name);
        }
    }
    for (id, param) in plan.stencil.params.iter() {
        named.params.insert(id, names.fresh(&param.name));
    }
    for (id, field) in plan.stencil.own_fields() {
        if field.role == Role::InOut {
            named.outputs.insert(id, names.fresh(&format!("{}_new", field.name)));
        }
    }
    named.names = names;
    named
}

fn field_parameters(plan: &Plan, named: &Named) -> Vec<Parameter> {
    let mut parameters = Vec::new();
    for (id, field) in plan.stencil.own_fields() {
        let c_type = stored_type(field.stored, plan.choices.precision);
        if let Some(name) = named.inputs.get(&id) {
            let c_type = format!("const {c_type}*");
            parameters.push(Parameter { name: name.clone(), c_type, what: What::Input(id) });
        }
        if let Some(name) = named.outputs.get(&id) {
            let c_type = format!("{c_type}*");
            parameters.push(Parameter { name: name.clone(), c_type, what: What::Output(id) });
        }
    }
    for (id, param) in plan.stencil.params.iter() {
        let c_type = computing_type(param.kind, plan.choices.precision).to_owned();
        parameters.push(Parameter { name: named.params[&id].clone(), c_type, what: What::Param(id) });
    }
    parameters
}

/// `__constant__ int table[2] = {1, 2};`
fn constant_table(name: &str, values: &[i32]) -> String {
    format!(
        "__constant__ int {name}[{}] = {{\n    {}\n}};",
        values.len(),
        host::wrapped(values.iter().map(i32::to_string))
    )
}

/// The tables that are used, and the one that is in constant memory; of a checked kernel, the names of those that it watches, and the number of each.
fn table_parameters(
    plan: &Plan,
    names: &mut Names,
    used: &dyn Fn(&str) -> bool,
    watched: &mut Vec<checked::Watched>,
    constant: &mut Option<(String, Vec<i32>)>,
) -> Vec<Parameter> {
    let mut parameters = Vec::new();
    for (number, (table, _)) in plan.tables().iter().enumerate() {
        let mut name = names.internal(table);
        if used(&name) {
            if plan.choices.checked {
                let entries = names.fresh(&format!("{name}_entries"));
                watched.push(checked::Watched { name: name.clone(), entries: entries.clone(), number });
                name = entries;
            }
            match &plan.fixed {
                Some(fixed) if plan.choices.constant && plan.storage.constant() == Some(number) => {
                    *constant = Some((name, fixed.layout.tables[number].clone()));
                }
                _ => parameters.push(Parameter { name, c_type: "const int*".into(), what: What::Table(number) }),
            }
        }
    }
    parameters
}

/// `const double* __restrict__ phi`
fn declaration(parameter: &Parameter) -> String {
    match parameter.c_type.strip_suffix('*') {
        Some(_) => format!("{} __restrict__ {}", parameter.c_type, parameter.name),
        None => format!("const {} {}", parameter.c_type, parameter.name),
    }
}

/// Names, meanings and (for a known grid) values of the sizes.
fn size_declarations(plan: &Plan, names: &mut Names) -> Vec<(String, Size, Option<usize>)> {
    let value = |get: &dyn Fn(&Fixed) -> usize| plan.fixed.as_ref().map(get);
    let mut sizes = Vec::new();
    for (axis, (first, end)) in plan.storage.bounds().iter().enumerate() {
        let bounds = |fixed: &Fixed| plan.storage.columns(&fixed.region, &fixed.layout)[axis].clone();
        sizes.push((names.internal(first), Size::ColumnFirst(axis), value(&|fixed| bounds(fixed).start)));
        sizes.push((names.internal(end), Size::ColumnEnd(axis), value(&|fixed| bounds(fixed).end)));
    }
    // The bounds of a loop over all levels are parameters even then: where NVRTC 13.0 unrolls such a loop and knows how
    // often it runs, it can lose the loop's end (`docs/trust.md`).
    let is_loop = plan.levels_per_thread() == LevelsPerThread::All;
    let levels_known = !is_loop && plan.fixed.as_ref().is_some_and(|fixed| fixed.levels_known);
    let level = |get: &dyn Fn(&Fixed) -> usize| value(get).filter(|_| levels_known);
    sizes.push((names.internal("k_first"), Size::LevelFirst, level(&|fixed| fixed.region.k.start)));
    sizes.push((names.internal("k_end"), Size::LevelEnd, level(&|fixed| fixed.region.k.end)));
    sizes.push((names.internal("nk"), Size::Levels, value(&|fixed| fixed.grid.nk)));
    sizes.push((names.internal("plane"), Size::Plane, value(&|fixed| fixed.layout.plane)));
    for (number, (name, _)) in plan.storage.sizes().iter().enumerate() {
        sizes.push((names.internal(name), Size::Own(number), value(&|fixed| fixed.layout.sizes[number])));
    }
    sizes
}

/// Whether a word occurs in what was written.
fn uses_word<'a>(
    body: impl Iterator<Item = &'a String>,
    coordinates: &'a Coordinates,
    lookups: &'a Lookups,
    word: &str,
) -> bool {
    let own = [&coordinates.outside, &coordinates.column];
    let lines = body.chain(&coordinates.lines).chain(&lookups.together).chain(&lookups.lines);
    let mut lines = lines.chain(own);
    lines.any(|line| has_word(line, word))
}

/// Whether a word occurs in a line.
fn has_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|found| found == word)
}

/// The file to build from, and the stencil in it where its name does not say so.
fn source(stencil: &Stencil) -> String {
    let (file, name) = (&stencil.file, &stencil.name);
    let stem = file.rsplit(['/', '\\']).next().unwrap_or(file).trim_end_matches(".stn");
    match (file.is_empty(), stem == name) {
        (true, _) => name.clone(),
        (false, true) => file.clone(),
        (false, false) => format!("{file} --stencil {name}"),
    }
}

/// The head of a generated file: what it is and how to make it again.
fn comment(plan: &Plan) -> Vec<String> {
    let choices = &plan.choices;
    let mut again = format!("stencilc build {} {}", source(&plan.stencil), choices.words());
    if let Some(fixed) = &plan.fixed {
        match &fixed.adjacency {
            None => again.push_str(&format!(" --grid {}", fixed.grid)),
            Some(adjacency) => again.push_str(&format!(" --grid {} --levels {}", adjacency.name, fixed.grid.nk)),
        }
    }
    let mut lines = vec![format!(
        "{}: {} access, {} storage, {}.",
        plan.stencil.name,
        choices.access,
        choices.storage,
        choices.precision.name()
    )];
    lines.extend(plan.stencil.doc.lines().map(str::to_owned));
    if let Some(fixed) = &plan.fixed {
        lines.push(format!("Grid {}, computed on {}.", fixed.grid, fixed.region));
    }
    lines.push(String::new());
    lines.push(format!("Made by {again}"));
    lines.push(
        "Exact only without contraction: nvcc -fmad=false -Xcompiler -ffp-contract=off, NVRTC --fmad=false.".into(),
    );
    lines.into_iter().map(comment_line).collect()
}

/// A line of a comment at the head of a file.
pub(crate) fn comment_line(line: String) -> String {
    format!(" * {}", line.replace("*/", "* /").replace('\\', "/")).trim_end().to_owned()
}
