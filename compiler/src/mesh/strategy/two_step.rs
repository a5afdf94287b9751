//! Two kernels: a thread an element writes what it adds to memory, then a thread a target gathers that, in order.

use super::{Additions, Strategy};
use crate::diagnostic::Refusal;
use crate::ir::FieldId;
use crate::mesh::emit::{At, Emitter};
use crate::mesh::group::Group;
use crate::mesh::rows::{is_row, row};
use crate::mesh::sums::Sums;
use crate::mesh::{Choices, Items, Kernel, Subject, Table, What};

/// Each element writes its contributions to memory, then each target gathers them.
pub struct TwoStep;

impl Strategy for TwoStep {
    fn name(&self) -> &'static str {
        "two-step"
    }

    fn summary(&self) -> &'static str {
        "elements write what they add to memory, then each target gathers it"
    }

    fn additions(&self) -> Additions {
        Additions::InOrder
    }

    fn kernels(&self, subject: &Subject, choices: &Choices, group: &Group) -> Result<Vec<Kernel>, Refusal> {
        Ok(kernels(subject, choices, group)?.into())
    }
}

/// The kernels of a group.
///
/// # Errors
/// The increments of its fields come in orders that differ, or they are of several kinds.
fn kernels(subject: &Subject, choices: &Choices, group: &Group) -> Result<[Kernel; 2], Refusal> {
    group.check_order(subject)?;
    let kind = |field: FieldId| subject.stencil.stencil.fields[field].stored.kind();
    let (fields, name) = (group.fields(), &subject.stencil.stencil.name);
    let own = |field: FieldId| &subject.stencil.stencil.fields[field].name;
    if let Some(&other) = fields.iter().find(|&&field| kind(field) != kind(fields[0])) {
        let (first, second) = (own(fields[0]), own(other));
        return Err(Refusal::new(format!(
            "`{name}` adds to `{first}` and `{second}`, of which one holds whole numbers: two-step keeps what is added in one array"
        ))
        .help("take another strategy, such as owner, or make two stencils of it"));
    }
    Ok([written(subject, choices, group), gathered(subject, choices, group)])
}

/// What lies between the steps: of each element (and level) what it adds along each path, path after path; or once, where paths
/// differ in signs alone. So what comes along an entry, which is an element's number times the paths plus that of the path, stands
/// together.
struct Between {
    name: String,
    /// By increment and path, whether it is the negative of what lies there, if that lies there once.
    turned: Option<Vec<Vec<bool>>>,
    /// How many values come along a path.
    each: usize,
    paths: usize,
    c_type: &'static str,
}

impl Between {
    fn new(emitter: &mut Emitter, group: &Group) -> Self {
        let body = &emitter.subject.stencil.stencil.stores[group.adds[0].store].body;
        let c_type = emitter.c_type(body.kind());
        let name = emitter.parameter("between", &format!("{c_type}*"), What::Between(group.number));
        let turned = group.turned(emitter.subject.stencil);
        let paths = if turned.is_some() { 1 } else { group.paths.len() };
        let each = (0..paths).map(|path| group.along(path).len()).max().unwrap_or(0);
        Self { name, turned, each, paths, c_type }
    }

    /// How many values one instruction moves.
    fn at_once(&self) -> usize {
        match self.c_type {
            "double" if self.each.is_multiple_of(2) => 2,
            "float" if self.each.is_multiple_of(4) => 4,
            _ => 1,
        }
    }

    /// Where the values begin that stand for an element, or for an element and a path.
    fn place(&self, emitter: &mut Emitter, entry: &str) -> String {
        let n = emitter.size(emitter.subject.stencil.set());
        match emitter.subject.computed.len() {
            1 => format!("{} * {entry}", self.each),
            _ => format!("{} * ({entry} + blockIdx.y * {n} * {})", self.each, self.paths),
        }
    }
}

fn written(subject: &Subject, choices: &Choices, group: &Group) -> Kernel {
    let (stencil, set) = (subject.stencil, subject.stencil.set());
    let mut emitter = Emitter::new(subject, choices);
    let element = emitter.thread_of(set);
    emitter.level_line();
    emitter.set_index(&[], &element);
    let between = Between::new(&mut emitter, group);
    let at_once = between.at_once();
    for path in 0..between.paths {
        let mut values = Vec::new();
        for add in group.along(path) {
            values.push(emitter.body(&stencil.stencil.stores[add.store].body, &At::default()));
        }
        // A path along which less comes leaves some places as they are.
        let entry = match (between.paths, path) {
            (1, _) => element.clone(),
            (paths, 0) => format!("({paths} * {element})"),
            (paths, _) => format!("({paths} * {element} + {path})"),
        };
        let place = between.place(&mut emitter, &entry);
        for (n, some) in values.chunks(at_once).enumerate() {
            let to = format!("{place} + {}", n * at_once);
            if some.len() == 1 || some.len() < at_once {
                for (m, value) in some.iter().enumerate() {
                    emitter.line(format!("{}[{to} + {m}] = {value};", between.name));
                }
                continue;
            }
            let vector = format!("{}{at_once}", between.c_type);
            let all = some.join(", ");
            emitter.line(format!("*reinterpret_cast<{vector}*>({} + {to}) = make_{vector}({all});", between.name));
        }
    }
    let name = emitter.names.declared(&format!("{}_values", stencil.stencil.name));
    let (text, parameters) = emitter.text(&name, "a thread an element, which writes what it adds", &[]);
    Kernel { name, text, parameters, items: Items::Set(set), block: choices.block, in_place: Vec::new() }
}

fn gathered(subject: &Subject, choices: &Choices, group: &Group) -> Kernel {
    let stencil = subject.stencil;
    let mut emitter = Emitter::new(subject, choices);
    let set_name = &stencil.mesh.sets[group.target].name;
    let target = emitter.thread_of(group.target);
    emitter.level_line();
    let sums = Sums::new(&mut emitter, &group.fields(), &target, false);
    let degrees = subject.degrees(group);
    let between = Between::new(&mut emitter, group);
    let entries = emitter.parameter("entries", "const int*", What::Table(group.number, Table::Entries));
    let (place, entry) = (emitter.names.internal("place"), emitter.names.internal("entry"));
    let in_rows = is_row(degrees);
    let is_led_to = if in_rows {
        let here = row(&mut emitter, &entries, degrees.max, &target);
        emitter.line("#pragma unroll");
        emitter.open(&format!("for (int {place} = 0; {place} < {}; ++{place})", degrees.max));
        emitter.line(format!("const int {entry} = {here}[{place}];"));
        emitter.open(&format!("if ({entry} >= 0)"));
        format!("{here}[0] >= 0")
    } else {
        let offsets = emitter.parameter("offsets", "const int*", What::Table(group.number, Table::Offsets));
        let range = format!("{place} = {offsets}[{target}]; {place} < {offsets}[{target} + 1]");
        emitter.open(&format!("for (int {range}; ++{place})"));
        emitter.line(format!("const int {entry} = {entries}[{place}];"));
        format!("{offsets}[{target}] < {offsets}[{target} + 1]")
    };
    let paths = group.paths.len();
    let from = if between.turned.is_some() {
        let element = emitter.names.internal("element");
        emitter.line(format!("const int {element} = unsigned({entry}) / {paths};"));
        between.place(&mut emitter, &element)
    } else {
        between.place(&mut emitter, &entry)
    };
    let at_once = between.at_once();
    let mut values = Vec::new();
    for first in (0..between.each).step_by(at_once) {
        let value = emitter.names.fresh("added");
        let (c_type, name) = (between.c_type, &between.name);
        if at_once == 1 {
            emitter.line(format!("const {c_type} {value} = {name}[{from} + {first}];"));
            values.push(value);
            continue;
        }
        let vector = format!("{c_type}{at_once}");
        emitter
            .line(format!("const {vector} {value} = *reinterpret_cast<const {vector}*>({name} + {from} + {first});"));
        values.extend(["x", "y", "z", "w"].iter().take(at_once).map(|part| format!("{value}.{part}")));
    }
    // Where paths add to the same numbers, it does not matter which one it was, but for signs.
    let is_alike = group.is_alike();
    if let Some(turned) = &between.turned {
        let path = emitter.names.internal("path");
        let mut is_used = false;
        for (number, value) in values.iter_mut().enumerate() {
            let negative: Vec<String> =
                (0..paths).filter(|&own| turned[number][own]).map(|own| format!("{path} == {own}")).collect();
            if !negative.is_empty() {
                is_used = true;
                *value = format!("({} ? -{value} : {value})", negative.join(" || "));
            }
        }
        if is_used {
            emitter.line(format!("const int {path} = unsigned({entry}) % {paths};"));
        }
    }
    for path in 0..if is_alike { 1 } else { between.paths } {
        if !is_alike {
            emitter.open(&format!("if ({entry} % {} == {path})", between.paths));
        }
        for (add, value) in group.along(path).iter().zip(&values) {
            sums.add(&mut emitter, add.field, add.part, value);
        }
        if !is_alike {
            emitter.close();
        }
    }
    if in_rows {
        emitter.close();
    }
    emitter.close();
    sums.store(&mut emitter, &target, &|_| true, &is_led_to);
    let name = emitter.names.declared(&format!("{}_gathered", stencil.stencil.name));
    let (text, parameters) = emitter.text(&name, &format!("a thread a {set_name}, which gathers"), &[]);
    let in_place = group.fields().into_iter().filter(|&field| !(subject.from_zero)(field)).collect();
    Kernel { name, text, parameters, items: Items::Set(group.target), block: choices.block, in_place }
}
