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
mod print;
mod runs;

use crate::access::LevelsPerThread;
use crate::device;
use crate::diagnostic::Refusal;
use crate::ir::{Direction, FieldId, ParamId, Role, Stencil};
use crate::names::{Identifier, Names};
use crate::plan::{Fixed, Plan, stored_type};
use crate::storage::fields;
use crate::text::{Comment, ShellWord};
use body::Loop;
use expression::{Helpers, computing_type};
pub use host::{Built, build};
pub use print::text;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
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
    pub name: Identifier,
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
    pub name: Identifier,
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
    inputs: BTreeMap<FieldId, Identifier>,
    outputs: BTreeMap<FieldId, Identifier>,
    params: BTreeMap<ParamId, Identifier>,
}

/// What a kernel's template is filled with.
#[derive(Serialize)]
struct KernelTexts {
    comment: Vec<Comment>,
    prelude: Vec<String>,
    threads: u32,
    name: Identifier,
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
    /// What the place of the column is called, where that is needed more than once.
    column_name: Option<String>,
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
    let kernel_name = named.names.declared(&format!("{}_kernel", plan.stencil.name));
    let coordinates = plan.coordinates(&mut named.names);
    let lookups = plan.access.lookups(&plan.reach(&coordinates), &mut named.names);
    let written = body::write(plan, &mut named, &coordinates, &lookups)?;
    let sizes = size_declarations(plan, &mut named.names);
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
    let number = named.names.internal("n");
    let mut texts = KernelTexts {
        comment: Vec::new(),
        prelude: Vec::new(),
        threads: plan.choices.block.iter().product(),
        name: kernel_name.clone(),
        signature: Vec::new(),
        sizes: Vec::new(),
        coordinates: coordinates.lines,
        outside: coordinates.outside,
        level,
        level_name: k,
        level_first,
        level_start,
        level_end,
        slice,
        whole_slices: plan.has_whole_slices(),
        unroll: if slice == 0 { "#pragma unroll 4".into() } else { "#pragma unroll".into() },
        index_type: named.names.index_type(),
        cell: c,
        column_name: None,
        column: coordinates.column,
        plane,
        together: lookups.together,
        lookups: lookups.lines,
        declarations: written.declarations,
        body: Vec::new(),
        loops: Vec::new(),
    };
    let template = plan.access.template();
    let is_loop = plan.levels_per_thread() == LevelsPerThread::All;
    let fill = |texts: &mut KernelTexts| match is_loop {
        true => texts.loops = written.loops.iter().map(|own| loop_texts(own, texts, &number)).collect(),
        false => texts.body = written.loops.iter().flat_map(|own| own.lines.clone()).collect(),
    };
    fill(&mut texts);
    // What the kernel declares is what its text uses, wherever in it: so it is written without any declarations, twice where the
    // place of the column has a name, since what that is made of is used, too.
    let mut draft = render(template, &texts)?;
    if Words::of(&draft).has(&column) {
        texts.column_name = Some(column);
        fill(&mut texts);
        draft = render(template, &texts)?;
    }
    let words = Words::of(&draft);
    let used = |name: &str| words.has(name);
    let mut parameters = field_parameters(plan, &named);
    let mut watched = Vec::new();
    let mut constant = None;
    parameters.extend(table_parameters(plan, &mut named.names, &used, &mut watched, &mut constant));
    parameters.extend(checked::parameters(plan, &mut named.names));
    let checks = checked::lines(plan, &mut named.names, &watched);
    let text_of_checks = checks.join("\n");
    let used_to_check = Words::of(&text_of_checks);
    let mut constants = Vec::new();
    for (declaration, what, text) in sizes {
        let always = [&texts.level_end, &texts.level_first, &texts.plane];
        if !always.iter().any(|own| **own == *declaration) && !used(&declaration) && !used_to_check.has(&declaration) {
            continue;
        }
        let c_type = if is_wide(what) { named.names.index_type() } else { "int" };
        match text {
            Some(value) => constants.push(format!("constexpr {c_type} {declaration} = {value};")),
            None => parameters.push(Parameter { name: declaration, c_type: c_type.to_owned(), what: What::Size(what) }),
        }
    }
    constants.extend(checks);
    let mut prelude = prelude::functions(&written.helpers.union(others).copied().collect(), plan.choices.precision);
    let mut add = |text: &str| prelude.extend(text.lines().map(str::to_owned));
    if plan.choices.checked {
        add(checked::PRELUDE);
    }
    if used("neighbour_of") {
        add(plan.storage.helper());
    }
    if used("load_run") || used("store_run") {
        add(runs::HELPER);
    }
    if used("interleaved") {
        add(fields::HELPER);
    }
    if let Some((name, table)) = &constant {
        prelude.push(constant_table(name, table));
    }
    texts.prelude = prelude;
    texts.signature = parameters.iter().map(declaration).collect();
    texts.sizes = constants;
    // What a comment says is no use of it.
    let operations = device::lines(&render(template, &texts)?);
    texts.prelude.extend(operations);
    texts.comment = comment(plan);
    let text = render(template, &texts)?;
    Ok(Kernel { name: kernel_name, text, parameters, sites: written.sites })
}

/// Levels that a sweep loads at once. Sweeps wait long for each level, if only for its divisions: so they do not wait for
/// memory, too.
const AHEAD: usize = 8;

/// A loop over all levels.
fn loop_texts(own: &Loop, texts: &KernelTexts, number: &str) -> LoopTexts {
    let KernelTexts { level_name: k, level_first: first, level_end: end, cell, plane, index_type, .. } = texts;
    let column = texts.column_name.as_deref().unwrap_or(&texts.column);
    let cell_line = format!("const {index_type} {cell} = {column} + {k} * {plane};");
    // A sweep may look at no cell, only at what others carried.
    let with_cell = |lines: &[String]| {
        let needs_cell = lines.iter().any(|line| Words::of(line).has(cell));
        needs_cell.then(|| cell_line.clone()).into_iter().chain(lines.iter().cloned()).collect::<Vec<String>>()
    };
    let is_down = own.direction == Some(Direction::Down);
    if own.ahead.is_empty() {
        let head = match is_down {
            false => format!("for (int {k} = {first}; {k} < {end}; ++{k})"),
            true => format!("for (int {k} = {end} - 1; {k} >= {first}; --{k})"),
        };
        return LoopTexts { unroll: texts.unroll.clone(), head, body: with_cell(&own.lines) };
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
    let loads: Vec<String> =
        own.ahead.iter().map(|ahead| format!("{}[{number}] = {};", ahead.name, ahead.element)).collect();
    let mut body: Vec<String> =
        own.ahead.iter().map(|ahead| format!("{} {}[{AHEAD}];", ahead.c_type, ahead.name)).collect();
    for lines in [&loads, &own.lines] {
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
        let name = names.declared(&field.name);
        if field.role.is_read() {
            named.inputs.insert(id, name);
        } else {
            named.outputs.insert(id, name);
        }
    }
    for (id, param) in plan.stencil.params.iter() {
        named.params.insert(id, names.declared(&param.name));
    }
    for (id, field) in plan.stencil.own_fields() {
        if field.role == Role::InOut {
            named.outputs.insert(id, names.declared(&format!("{}_new", field.name)));
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
    constant: &mut Option<(Identifier, Vec<i32>)>,
) -> Vec<Parameter> {
    let mut parameters = Vec::new();
    for (number, (table, _)) in plan.tables().iter().enumerate() {
        let mut name = names.declared_internal(table);
        if used(&name) {
            if plan.choices.checked {
                let entries = names.declared(&format!("{name}_entries"));
                watched.push(checked::Watched { name, entries: entries.clone(), number });
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
fn size_declarations(plan: &Plan, names: &mut Names) -> Vec<(Identifier, Size, Option<usize>)> {
    let value = |get: &dyn Fn(&Fixed) -> usize| plan.fixed.as_ref().map(get);
    let mut sizes = Vec::new();
    for (axis, (first, end)) in plan.storage.bounds().iter().enumerate() {
        let bounds = |fixed: &Fixed| plan.storage.columns(&fixed.region, &fixed.layout)[axis].clone();
        sizes.push((names.declared_internal(first), Size::ColumnFirst(axis), value(&|fixed| bounds(fixed).start)));
        sizes.push((names.declared_internal(end), Size::ColumnEnd(axis), value(&|fixed| bounds(fixed).end)));
    }
    // The bounds of a loop over all levels are parameters even then: where NVRTC 13.0 unrolls such a loop and knows how
    // often it runs, it can lose the loop's end (`docs/trust.md`).
    let is_loop = plan.levels_per_thread() == LevelsPerThread::All;
    let levels_known = !is_loop && plan.fixed.as_ref().is_some_and(|fixed| fixed.levels_known);
    let level = |get: &dyn Fn(&Fixed) -> usize| value(get).filter(|_| levels_known);
    sizes.push((names.declared_internal("k_first"), Size::LevelFirst, level(&|fixed| fixed.region.k.start)));
    sizes.push((names.declared_internal("k_end"), Size::LevelEnd, level(&|fixed| fixed.region.k.end)));
    sizes.push((names.declared_internal("nk"), Size::Levels, value(&|fixed| fixed.grid.nk)));
    sizes.push((names.declared_internal("plane"), Size::Plane, value(&|fixed| fixed.layout.plane)));
    for (number, (name, _)) in plan.storage.sizes().iter().enumerate() {
        sizes.push((names.declared_internal(name), Size::Own(number), value(&|fixed| fixed.layout.sizes[number])));
    }
    sizes
}

/// The words of a text of code.
struct Words<'a>(BTreeSet<&'a str>);

impl<'a> Words<'a> {
    fn of(text: &'a str) -> Self {
        Self(text.split(|c: char| !c.is_alphanumeric() && c != '_').collect())
    }

    fn has(&self, word: &str) -> bool {
        self.0.contains(word)
    }
}

/// The file to build from, and the stencil in it where its name does not say so.
fn source(stencil: &Stencil) -> String {
    let (file, name) = (stencil.file.as_told(), &stencil.name);
    let stem = file.rsplit(['/', '\\']).next().unwrap_or(file).trim_end_matches(".stn");
    match (file.is_empty(), stem == name) {
        (true, _) => name.clone(),
        (false, true) => ShellWord::path(file).to_string(),
        (false, false) => format!("{} --stencil {name}", ShellWord::path(file)),
    }
}

/// How the line of a head begins that says how to make the file again.
const MADE: &str = "Made by stencilc build";

/// Whether a text begins as a generated kernel does, or its header: with the head, which says how it was made, or with the guard
/// behind what is said of the launcher.
pub fn is_generated(text: &str) -> bool {
    let Some((head, rest)) = text.strip_prefix("/*\n").and_then(|text| text.split_once("\n */\n")) else {
        return false;
    };
    let is_made = |line: &str| line.strip_prefix(" * ").is_some_and(|line| line.starts_with(MADE));
    head.lines().all(|line| line.starts_with(" *"))
        && (head.lines().any(is_made) || rest.starts_with("#ifndef STENCILC_"))
}

/// The head of a generated file: what it is and how to make it again.
fn comment(plan: &Plan) -> Vec<Comment> {
    let choices = &plan.choices;
    let mut again = format!("{MADE} {} {}", source(&plan.stencil), choices.words());
    if let Some(fixed) = &plan.fixed {
        match &fixed.adjacency {
            None => again.push_str(&format!(" --grid {}", fixed.grid)),
            Some(adjacency) => {
                let file = ShellWord::path(adjacency.name.as_told());
                again.push_str(&format!(" --grid {file} --levels {}", fixed.grid.nk));
            }
        }
    }
    let mut lines = vec![Comment::new(format!(
        "{}: {} access, {} storage, {}.",
        plan.stencil.name,
        choices.access,
        choices.storage,
        choices.precision.name()
    ))];
    lines.extend(plan.stencil.doc.comments());
    if let Some(fixed) = &plan.fixed {
        lines.push(Comment::new(format!("Grid {}, computed on {}.", fixed.grid, fixed.region)));
    }
    let contraction =
        "Exact only without contraction: nvcc -fmad=false -Xcompiler -ffp-contract=off, NVRTC --fmad=false.";
    lines.extend(["", &again, contraction].map(Comment::new));
    lines
}
