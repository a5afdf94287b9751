//! What surrounds a built kernel: a launcher in C++ and its header in C.

mod within;

use super::prelude::Helpers;
use super::{Kernel, Parameter, levels, render, values};
use crate::access::LevelsPerThread;
use crate::analysis::bounds::columns_depend_on_params;
use crate::analysis::extents::{Extents, extents};
use crate::analysis::levels::{depend_on_params, goes_on};
use crate::cells;
use crate::diagnostic::Refusal;
use crate::grid::{Form, Grid};
use crate::ir::program::GridAxis;
use crate::ir::{Binary, Kind, Node, Path};
use crate::kernel::{Meaning, Size, Type};
use crate::names::{Identifier, Names, path_name};
use crate::plan::{KnownGrid, Plan};
use crate::storage::{Along, Columns, Stride, Strides, patches};
use crate::text::Comment;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A kernel with all that it takes to use it from C.
#[derive(Clone, Debug)]
pub struct Built {
    /// The kernel.
    pub kernel: Kernel,
    /// CUDA C++: the kernel and, outside NVRTC, its launcher.
    pub source: String,
    /// The launcher's header, for C and C++.
    pub header: String,
}

/// Members of the struct of arguments, of one type.
#[derive(Serialize)]
struct Member {
    c_type: String,
    names: Vec<Identifier>,
    meaning: Comment,
}

/// A table that is part of the source.
#[derive(Serialize)]
struct Table {
    name: Identifier,
    symbol: Identifier,
    length: usize,
    values: String,
}

impl Table {
    fn new<T: ToString>(name: &Identifier, symbol: Identifier, values: &[T]) -> Self {
        let (length, values) = (values.len(), wrapped(values.iter().map(T::to_string)));
        Self { name: name.clone(), symbol, length, values }
    }
}

/// What a launcher is made from.
pub(super) struct Host<'a> {
    plan: &'a Plan,
    kernel: &'a Kernel,
    /// What members of the struct of arguments that are not the user's are called.
    own: BTreeMap<&'static str, Identifier>,
    /// What the functions are called that say where what is computed begins and ends along i and j.
    within: Vec<Identifier>,
}

#[derive(Serialize)]
pub(super) struct HostTexts {
    /// What its files are called, without their endings.
    pub(super) stem: Identifier,
    kernel: Identifier,
    guard: Identifier,
    args: Identifier,
    pub(super) launch: Identifier,
    pub(super) in_queue: Identifier,
    pub(super) message: Identifier,
    computed: Identifier,
    place: Identifier,
    summary: Comment,
    doc: Vec<Comment>,
    members: Vec<Member>,
    layout: Vec<Comment>,
    tables: Vec<Table>,
    /// Where columns are, for the host.
    places: Option<Table>,
    /// What finds a column's place: its parameters, when there is no such column, and its number.
    column: [String; 3],
    /// Functions that say where what is computed begins and ends along i and j.
    within: Vec<within::Text>,
    level_parameters: String,
    level_lines: Vec<String>,
    level_arguments: String,
    /// How many levels may be computed.
    levels: &'static str,
    sizes: Vec<String>,
    checks: Vec<String>,
    block: String,
    blocks: String,
    /// Bytes of shared memory that the launch gives a block.
    shared: u32,
    /// Threads of a block, if blocks stay.
    threads_that_stay: Option<u32>,
    arguments: Vec<String>,
    /// What may be wrong where nothing can be computed, as a literal.
    refusals: String,
    /// Whether there is no stream.
    pub(super) is_on_cpu: bool,
}

/// The functions of the prelude that the launcher needs.
pub(super) fn helpers(plan: &Plan) -> Helpers {
    let levels = levels::write(&plan.stencil, plan.choices.precision).helpers;
    within::helpers(plan).chain(levels).collect()
}

/// A kernel's source with its launcher, and the header.
///
/// # Errors
/// A template is broken, which is a fault of the compiler.
pub fn build(plan: &Plan) -> Result<Built, Refusal> {
    build_with(plan, "")
}

/// The same; `words` are options that `build` was given beside those of the kernel, for the line that says how to make it again.
///
/// # Errors
/// As [`build`].
pub fn build_with(plan: &Plan, words: &str) -> Result<Built, Refusal> {
    if plan.choices.checked {
        return Err(Refusal::new("a checked kernel cannot be called from C: nobody would read its report")
            .help("checked kernels are for `stencilc run` and `stencilc verify`; `--emit cuda` shows one"));
    }
    let kernel = super::print_with(plan, &helpers(plan), words)?;
    let texts = Host::new(plan, &kernel).texts();
    let source = format!("{}\n{}", kernel.text, render("launch.cu.tera", &texts)?);
    let header = render("launch.h.tera", &texts)?;
    Ok(Built { kernel, source, header })
}

impl<'a> Host<'a> {
    pub(super) fn new(plan: &'a Plan, kernel: &'a Kernel) -> Self {
        // Names of the struct's members: first those of the kernel's parameters that are the user's, which they keep.
        let mut names = Names::default();
        for parameter in &kernel.parameters {
            if let Meaning::Input(_) | Meaning::Output(_) | Meaning::Param(_) = parameter.meaning {
                names.fresh(&parameter.name);
            }
        }
        let bounds = plan.bounds().iter().flat_map(|(first, end)| [*first, *end]);
        let sizes = plan.sizes().iter().map(|(name, _)| *name);
        let tables = plan.tables().into_iter().map(|(name, _)| name);
        let all = ["ni", "nj", "nk"].into_iter().chain(bounds).chain(sizes).chain(tables);
        let mut own = BTreeMap::new();
        for name in all {
            own.entry(name).or_insert_with(|| match names.has(name) {
                true => names.declared(&format!("{name}_of_grid")),
                false => names.declared(name),
            });
        }
        Self { plan, kernel, own, within: within::names(plan) }
    }

    /// What one of our own members is called.
    pub(super) fn member(&self, name: &str) -> &Identifier {
        &self.own[name]
    }

    /// A parameter of the stencil, in the launcher.
    fn param(&self, name: &str) -> String {
        let params = &self.plan.stencil.params;
        let mut own = self.kernel.parameters.iter();
        let found = own.find(|own| matches!(own.meaning, Meaning::Param(id) if params[id].name == name));
        found.map(|own| format!("args->{}", own.name)).unwrap_or_default()
    }

    pub(super) fn texts(&self) -> HostTexts {
        let Host { plan, kernel, .. } = *self;
        let stencil = &plan.stencil;
        let levels = levels::write(stencil, plan.choices.precision);
        let mut names = Names::default();
        let mut global = |what: &str| names.declared(&format!("{}_{what}", stencil.name));
        let [args, launch, in_queue, message, computed, place, places] =
            ["args", "launch", "in_queue", "message", "computed", "place", "places"].map(&mut global);
        let (level_lines, [level_parameters, level_arguments]) = self.function(levels, &args);
        let layout = plan.known_grid.as_ref().map(|known_grid| &known_grid.layout);
        let tables = kernel.parameters.iter().filter_map(|own| match own.meaning {
            Meaning::Table(number) => Some(Table::new(&own.name, global(&own.name), &layout?.tables[number])),
            _ => None,
        });
        let tables: Vec<Table> = tables.collect();
        let places = layout.and_then(|layout| match &layout.columns {
            Columns::Rows { .. } => None,
            Columns::Places(list) => Some(Table::new(&places, places.clone(), list)),
        });
        let [x, y, z] = plan.choices.block;
        HostTexts {
            kernel: kernel.name.clone(),
            stem: Identifier::of_files(&stencil.name),
            guard: Identifier::of_guard(&stencil.name),
            summary: Comment::new(format!(
                "{}: {} access, {} storage, {}",
                stencil.name,
                plan.choices.access,
                plan.choices.storage,
                plan.choices.precision.name()
            )),
            doc: stencil.doc.comments().collect(),
            members: self.members(),
            layout: layout_text(plan, &place).into_iter().map(Comment::new).collect(),
            tables,
            places,
            column: plan.known_grid.as_ref().map(column_texts).unwrap_or_default(),
            within: self.within_texts(&args),
            level_parameters,
            level_arguments,
            level_lines,
            levels: levels_of(plan),
            sizes: self.sizes(),
            checks: self.checks(),
            block: format!("{x}, {y}, {z}"),
            blocks: blocks(plan),
            shared: plan.shared(),
            threads_that_stay: plan.blocks_stay().then(|| x * y * z),
            arguments: kernel.parameters.iter().map(|parameter| self.argument(parameter)).collect(),
            refusals: refusals(plan),
            is_on_cpu: false,
            args,
            launch,
            in_queue,
            message,
            computed,
            place,
        }
    }

    /// The lines of a function, and how it is declared to take the arguments, and called with them, where it needs some.
    fn function(&self, written: levels::Written, args: &Identifier) -> (Vec<String>, [String; 2]) {
        let params = written.params.iter().map(|(id, name)| {
            let param = &self.plan.stencil.params[*id];
            let c_type = values::c_type(Type::computing(param.kind, self.plan.choices.precision));
            format!("const {c_type} {name} = {};", self.param(&param.name))
        });
        let taken = match written.params.is_empty() {
            true => Default::default(),
            false => [format!("const {args}* args, "), "args, ".to_owned()],
        };
        (params.chain(written.lines).collect(), taken)
    }

    /// Fields and parameters, and what is not known when compiling.
    fn members(&self) -> Vec<Member> {
        let Host { plan, kernel, .. } = *self;
        let mut members = Vec::new();
        for parameter in &kernel.parameters {
            let meaning = match &parameter.meaning {
                Meaning::Input(id) | Meaning::Output(id) => {
                    let field = &plan.stencil.fields[*id];
                    let new = *parameter.name != *field.name
                        && field.role.is_read()
                        && matches!(parameter.meaning, Meaning::Output(_));
                    let way = match (&parameter.meaning, new) {
                        (Meaning::Output(_), true) => "out, must not be the array that is read",
                        (Meaning::Output(_), false) => "out",
                        _ => "in",
                    };
                    let doc = field.doc.first_comment();
                    Comment::new(format!("{way}{}{}{doc}", field.place, if doc.is_empty() { "" } else { ": " }))
                }
                Meaning::Param(id) => {
                    let doc = plan.stencil.params[*id].doc.first_comment();
                    if doc.is_empty() { Comment::new("a parameter") } else { doc }
                }
                Meaning::Documented | Meaning::Table(_) | Meaning::Report | Meaning::Columns => continue,
                Meaning::Size(_) | Meaning::Mesh(_) | Meaning::Step(_) => continue,
            };
            // The header is one of C, which has no `bool` without another.
            let is_truth =
                matches!(parameter.meaning, Meaning::Param(id) if plan.stencil.params[id].kind == Kind::Bool);
            let c_type = if is_truth { "int".to_owned() } else { parameter.c_type.clone() };
            members.push(Member { c_type, names: vec![parameter.name.clone()], meaning });
        }
        if plan.known_grid.is_some() {
            return members;
        }
        let mut add = |c_type: &str, names: &[&str], meaning: &str| {
            let names = names.iter().map(|name| self.member(name).clone()).collect();
            members.push(Member { c_type: c_type.to_owned(), names, meaning: Comment::new(meaning) });
        };
        if !plan.storage.has_tables() {
            add("int", &["ni", "nj"], "columns along i and j, halo included");
        } else {
            for (first, end) in plan.bounds() {
                match plan.patches {
                    Some(_) => add("int", &[end], "the rows of the table"),
                    None => add("int", &[first, end], "the cells of a plane to compute: first, and one past the last"),
                }
            }
        }
        add("int", &["nk"], "levels");
        for (size, meaning) in plan.sizes() {
            add("long long", &[size], meaning);
        }
        for (table, meaning) in plan.tables() {
            add("const int*", &[table], meaning);
        }
        members
    }

    /// Declarations of what the launch needs.
    fn sizes(&self) -> Vec<String> {
        let plan = self.plan;
        let member = |name: &str| format!("args->{}", self.member(name));
        let less = |name: &str, by: i32| if by == 0 { member(name) } else { format!("{} - {by}", member(name)) };
        let (bounds, said) = (plan.bounds(), self.bounds());
        // First and end of the columns, along each axis.
        let columns: Vec<[String; 2]> = match &plan.known_grid {
            Some(known_grid) => {
                let columns = plan.storage.columns(&known_grid.region, &known_grid.layout);
                columns.iter().map(|range| [range.start.to_string(), range.end.to_string()]).collect()
            }
            None if !plan.storage.has_tables() => {
                let Extents { low, high } = extents(&plan.stencil);
                let along = |axis: GridAxis, low: i32, high| {
                    let mut ends = [low.unsigned_abs().to_string(), less(&format!("n{axis}"), high)];
                    let own = said.iter().filter(|(_, bound, _)| bound.axis == axis);
                    own.for_each(|(name, bound, _)| within::clip(&mut ends, name, bound.is));
                    ends
                };
                vec![along(GridAxis::I, low.i, high.i), along(GridAxis::J, low.j, high.j)]
            }
            None if plan.patches.is_some() => bounds.iter().map(|(_, end)| ["0".to_owned(), member(end)]).collect(),
            None => bounds.iter().map(|(first, end)| [member(first), member(end)]).collect(),
        };
        let declared = bounds.iter().zip(columns);
        let declared = declared.map(|((first, end), [from, to])| format!("const int {first} = {from}, {end} = {to};"));
        let nk = plan.known_grid.as_ref().map_or_else(|| member("nk"), |known_grid| known_grid.grid.nk.to_string());
        let said = said.iter().map(|(name, _, number)| format!("const int {name} = {number};"));
        said.chain(declared).chain([format!("const int nk = {nk};")]).collect()
    }

    /// Conditions under which nothing can be launched.
    fn checks(&self) -> Vec<String> {
        let plan = self.plan;
        let mut checks: Vec<String> = plan.bounds().iter().map(|(first, end)| format!("{first} >= {end}")).collect();
        for ((first, end), columns) in plan.bounds().iter().zip(plan.tile.columns) {
            if columns > 1 && plan.known_grid.is_none() && plan.patches.is_none() {
                checks.push(format!("{end} - {first} < {columns}"));
            }
        }
        if self.plan.known_grid.is_none() && goes_on(&self.plan.stencil) {
            // What reads levels finds none, and there is an interface all the same.
            checks.push(format!("args->{} <= 0", self.member("nk")));
        }
        checks.extend(self.bound_checks());
        checks.extend(misaligned(plan));
        if let Some(patches) = &plan.patches {
            checks.push(format!("1LL * {} > INT_MAX / 2", turns(plan)));
            if plan.known_grid.is_none() {
                let behind = patches::BEHIND;
                checks.push(format!("1LL * row_end * {} > INT_MAX - {behind}", patches.wanted.width()));
            }
        }
        checks.extend(divisors(plan).into_iter().map(|param| format!("{} == 0", self.param(&param))));
        if !plan.stencil.sweeps.is_empty() {
            checks.push(format!("k_first > 0 || k_end < {}", levels_of(plan)));
        }
        let size = |number: usize| format!("args->{}", self.member(plan.storage.sizes()[number].0));
        if let (None, Stride::Size(number)) = (&plan.known_grid, plan.storage.strides().place) {
            let highest = if plan.stencil.highest(0) > 0 { "nk + 1" } else { "nk" };
            checks.push(format!("{} < {highest}", size(number)));
        }
        if plan.known_grid.is_none() && !plan.wide {
            match plan.storage.strides() {
                Strides { level: Stride::Size(number), .. } => {
                    checks.push(format!("(nk + 2LL) * {} > INT_MAX", size(number)));
                }
                Strides { place: Stride::Size(number), level: Stride::One } => {
                    let places = match plan.storage.has_tables() {
                        true => format!("1LL * {}", plan.bounds()[0].1),
                        false => format!("args->{} * args->{}", self.member("nj"), self.member("row")),
                    };
                    checks.push(format!("{places} * {} > INT_MAX", size(number)));
                }
                Strides { place: Stride::One, level: Stride::One } => {}
            }
        }
        checks
    }

    /// What the launcher passes for a parameter of the kernel.
    fn argument(&self, parameter: &Parameter) -> String {
        let plan = self.plan;
        match &parameter.meaning {
            Meaning::Input(_) | Meaning::Output(_) | Meaning::Param(_) => format!("args->{}", parameter.name),
            Meaning::Table(_) if plan.known_grid.is_some() => format!("{}_device", parameter.name),
            Meaning::Table(number) => format!("args->{}", self.member(plan.tables()[*number].0)),
            // Refused before: a launcher has no place for a report, and knows no meshes and steps.
            Meaning::Documented | Meaning::Report | Meaning::Columns | Meaning::Mesh(_) | Meaning::Step(_) => {
                "nullptr".into()
            }
            Meaning::Size(size) => match size {
                Size::ColumnFirst(axis) => plan.bounds()[*axis].0.to_owned(),
                Size::ColumnEnd(axis) => plan.bounds()[*axis].1.to_owned(),
                Size::LevelFirst => "k_first".into(),
                Size::LevelEnd => "k_end".into(),
                Size::Levels => "nk".into(),
                Size::Own(number) => self.narrowed(plan.storage.sizes()[*number].0),
            },
        }
    }

    fn narrowed(&self, name: &str) -> String {
        let name = self.member(name);
        if self.plan.wide { format!("args->{name}") } else { format!("int(args->{name})") }
    }
}

/// The parameters of the function that finds a column's place, when there is no such column, and the column's number.
fn column_texts(known_grid: &KnownGrid) -> [String; 3] {
    let Grid { ni, nj, form, .. } = known_grid.grid;
    match form {
        Form::Rows => {
            ["int i, int j".into(), format!("i < 0 || i >= {ni} || j < 0 || j >= {nj}"), format!("j * {ni} + i")]
        }
        Form::Cells => ["int cell".into(), format!("cell < 0 || cell >= {ni}"), "cell".into()],
    }
}

/// How fields lie in memory, for the header.
fn layout_text(plan: &Plan, place: &Identifier) -> Vec<String> {
    let apart = match plan.storage.strides().level {
        Stride::One => "k".to_owned(),
        Stride::Size(number) => format!("k * {}", plan.storage.sizes()[number].0),
    };
    let mut lines = vec![
        "Pointers are to device memory, to the value of the first cell (level 0).".to_owned(),
        format!("Level k of a cell lies {apart} elements further; a field on (k) is dense."),
    ];
    let known_grid = plan.known_grid.as_ref();
    lines.extend(plan.storage.arrangement(known_grid.map(|known| (known.grid, &*known.layout)), place));
    match known_grid {
        Some(known_grid) => {
            lines.push(format!("Computed: {}.", known_grid.region));
            if plan.walk.is_some() || plan.run_width().is_some() && plan.patches.is_some() {
                lines.push("Of each array the first computed element is aligned to 16 bytes, or".into());
                lines.push("cudaErrorInvalidValue is returned.".into());
            } else if let Some(width) = plan.run_width() {
                lines.push(format!("Of each array the first computed element is aligned to {width} elements, or"));
                lines.push("cudaErrorInvalidValue is returned.".into());
            }
        }
        None if plan.patches.is_some() => lines.extend(row_texts(plan)),
        None if plan.storage.has_tables() => lines.extend(plan.relations.iter().enumerate().map(|(relation, path)| {
            format!("Relation {relation}: {}, the cell at {path}.", crate::names::path_name(path))
        })),
        None => {
            let [i, j] = plan.tile.columns;
            if i * j > 1 {
                lines.push(format!(
                    "With fewer than {i} columns along i or {j} along j to compute, cudaErrorInvalidValue is returned."
                ));
            }
        }
    }
    lines
}

/// How many levels there are among which those are that are computed.
fn levels_of(plan: &Plan) -> &'static str {
    if goes_on(&plan.stencil) { "nk + 1" } else { "nk" }
}

/// What stands in a row of patches.
fn row_texts(plan: &Plan) -> Vec<String> {
    let Some(wanted) = plan.patches.as_ref().map(|own| &own.wanted) else { return Vec::new() };
    let names = |paths: &mut dyn Iterator<Item = Path>| -> String {
        paths
            .map(|path| if path.is_here() { "here".to_owned() } else { path_name(&path) })
            .collect::<Vec<_>>()
            .join(", ")
    };
    vec![
        format!("A row of `patches` has {} entries, and {} stand behind the last.", wanted.width(), patches::BEHIND),
        format!(
            "Of a patch the places of: {}.",
            names(&mut wanted.footprint.iter().map(|&own| Path::from_offset(own)))
        ),
        format!(
            "Of a column in none -1 less its place, then those of: {}.",
            names(&mut wanted.lone.iter().skip(1).cloned())
        ),
    ]
}

/// Conditions under which runs of elements are not aligned.
fn misaligned(plan: &Plan) -> Vec<String> {
    let Some(layout) = plan.known_grid.as_ref().map(|known_grid| &known_grid.layout) else { return Vec::new() };
    let (arrays, _) = cells::declared(plan, &mut Names::default());
    // What is read comes before what is written.
    let sides = [false, true].map(|side| arrays.iter().filter(move |((_, is_written), _)| *is_written == side));
    let all = sides.into_iter().flatten();
    let wide = all.filter_map(|((field, _), name)| Some((plan.run_width_of(*field)?, field, name)));
    wide.map(|(width, field, name)| {
        let bytes = width as usize * plan.stencil.fields[*field].stored.bytes(plan.choices.precision);
        format!("reinterpret_cast<size_t>(args->{name} + {}) % {bytes} != 0", layout.index(layout.lead, 0))
    })
    .collect()
}

/// What may be wrong where nothing can be computed, as a literal of C.
fn refusals(plan: &Plan) -> String {
    let mut text = "nothing can be computed: the grid has too few columns or levels".to_owned();
    if !plan.stencil.within.is_empty() {
        text.push_str(", or fewer than the stencil says that it computes");
    }
    if depend_on_params(&plan.stencil) || columns_depend_on_params(&plan.stencil) {
        text.push_str(", or parameters leave none to compute");
    }
    if !divisors(plan).is_empty() {
        text.push_str(", or a parameter that divides is 0");
    }
    if plan.run_width().is_some() || plan.walk.is_some() {
        text.push_str(", or an array is not aligned as the header says");
    }
    if plan.known_grid.is_none() && !plan.wide {
        text.push_str(", or arrays are too large for indices of 32 bits (build it with --index 64)");
    }
    format!("\"{text}\"")
}

/// Parameters that a whole remainder divides by, which must not be 0.
fn divisors(plan: &Plan) -> BTreeSet<String> {
    let nodes = plan.stencil.bodies().flat_map(|body| body.iter().map(move |(_, node)| (body, node)));
    let divisors = nodes.filter_map(|(body, node)| match node {
        Node::Binary(Binary::Rem, _, divisor) if body.kind_of(*divisor) == Kind::Int => Some(&body[*divisor]),
        _ => None,
    });
    let params = divisors.filter_map(|divisor| match divisor {
        Node::Param(param) => Some(plan.stencil.params[*param].name.clone()),
        _ => None,
    });
    params.collect()
}

/// How many groups of patches there are, each once for as many levels as a block has.
fn turns(plan: &Plan) -> String {
    let [x, y, z] = plan.choices.block;
    let (levels, group) = (x * plan.tile.levels, y * z);
    let slices = format!("((k_end - k_first + {}) / {levels})", levels - 1);
    format!("((row_end - row_first + {}) / {group}) * {slices}", group - 1)
}

/// How many blocks are launched along x, y and z.
fn blocks(plan: &Plan) -> String {
    if let Some(walk) = &plan.walk {
        return walk.launch.grid.map(|blocks| blocks.to_string()).join(", ");
    }
    if plan.blocks_stay() {
        let blocks = format!("({} + 1) / 2", turns(plan));
        return format!("{blocks} < room ? {blocks} : room, 1, 1");
    }
    let mut blocks = ["1", "1", "1"].map(str::to_owned);
    let mut launch = |along: Along, (first, end): (&str, &str), each: u32| {
        let threads = along.threads_of(plan.choices.block) * each;
        blocks[along.blocks as usize] = match threads {
            1 => format!("{end} - {first}"),
            _ => format!("({end} - {first} + {}) / {threads}", threads - 1),
        };
    };
    for ((&along, &bounds), columns) in plan.columns_along().iter().zip(plan.bounds()).zip(plan.columns_of_a_thread()) {
        launch(along, bounds, columns);
    }
    match plan.levels_per_thread() {
        LevelsPerThread::One => launch(plan.levels_along(), ("k_first", "k_end"), 1),
        LevelsPerThread::Slice(slice) => launch(plan.levels_along(), ("k_first", "k_end"), slice),
        LevelsPerThread::All => {}
    }
    blocks.join(", ")
}

/// Numbers in lines of a readable length.
pub(super) fn wrapped(numbers: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    let mut width = 0;
    for number in numbers {
        if width > 100 {
            text.push_str("\n    ");
            width = 0;
        }
        width += number.len() + 2;
        text.push_str(&number);
        text.push_str(", ");
    }
    text.trim_end_matches([',', ' ']).to_owned()
}
