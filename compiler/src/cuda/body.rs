//! The statements of a kernel: values in the order of the schedule, then the outputs.

use super::Named;
use super::carried::{self, Carried};
use super::checked::{self, Site};
use super::expression::{Helpers, computing_type, operation, read_as, stored_as};
use super::index::{index, level_exists};
use super::runs::Runs;
use crate::access::Lookups;
use crate::diagnostic::Refusal;
use crate::ir::{
    Binding, Body, DefId, Direction, FieldId, Handle, Kind, Levels, Node, NodeId, Path, Precision, Role, Store, Texts,
};
use crate::names::path_name;
use crate::plan::phases::Phase;
use crate::plan::schedule::{BlockId, Context, Item, KERNEL};
use crate::plan::{Math, Plan, stored_type};
use crate::storage::Coordinates;
use std::collections::BTreeMap;

/// The text of a kernel's body, and the helper functions that it calls.
#[derive(Default)]
pub struct Written {
    /// What stands before the loops.
    pub declarations: Vec<String>,
    /// What is done on each level, loop after loop; all but stencils with sweeps have one.
    pub loops: Vec<Loop>,
    /// Names of functions in the prelude.
    pub helpers: Helpers,
    /// Of a checked kernel: where it touches fields.
    pub sites: Vec<Site>,
}

/// What is done on each level.
pub struct Loop {
    /// In which order, where that matters.
    pub direction: Option<Direction>,
    /// Of a sweep: what is loaded for several levels before the first of them is computed.
    pub ahead: Vec<Ahead>,
    /// Lines, indented from 0.
    pub lines: Vec<String>,
}

/// An element of a field that is loaded for several levels at once.
pub struct Ahead {
    /// The type of the element.
    pub c_type: &'static str,
    /// The array that it is loaded into.
    pub name: String,
    /// `phi[c]`
    pub element: String,
}

/// A branch with more operations than this is written as a statement.
const INLINE: usize = 8;

/// Writes the body of `plan`'s kernel.
pub fn write(plan: &Plan, named: &mut Named, coordinates: &Coordinates, lookups: &Lookups) -> Result<Written, Refusal> {
    let mut runs = Runs::new(plan, named, lookups);
    let carried = carried::declare(plan, named);
    let mut written = Written { declarations: carried.declarations(), ..Written::default() };
    for phase in &plan.phases {
        let mut writer = Writer {
            plan,
            phase,
            named,
            lookups,
            values: BTreeMap::new(),
            blocks: vec![Vec::new(); phase.schedule.blocks()],
            runs: std::mem::take(&mut runs),
            run: BTreeMap::new(),
            carried: &carried,
            helpers: std::mem::take(&mut written.helpers),
            sites: std::mem::take(&mut written.sites),
            reads: Vec::new(),
            reading: Vec::new(),
            ahead: BTreeMap::new(),
        };
        let lines = writer.phase(coordinates);
        let ahead = std::mem::take(&mut writer.ahead).into_values().collect();
        (written.helpers, written.sites) = (writer.helpers, writer.sites);
        written.loops.push(Loop { direction: phase.direction, ahead, lines });
    }
    Ok(written)
}

struct Writer<'a> {
    plan: &'a Plan,
    phase: &'a Phase,
    named: &'a mut Named,
    lookups: &'a Lookups,
    /// Names of the values written so far.
    values: BTreeMap<(DefId, Path), String>,
    /// Lines of each block.
    blocks: Vec<Vec<String>>,
    helpers: Helpers,
    sites: Vec<Site>,
    /// What is read many elements at a time.
    runs: Runs,
    /// Of each field whose elements are being written as one: the index of the first, and the values so far.
    run: BTreeMap<FieldId, (String, Vec<String>)>,
    /// Where the values of sweeps are kept.
    carried: &'a Carried,
    /// What sweeps load ahead.
    ahead: BTreeMap<(FieldId, Path), Ahead>,
    /// Whether each node of the body at hand depends on a field.
    reads: Vec<bool>,
    /// Whether each definition does.
    reading: Vec<bool>,
}

impl Writer<'_> {
    fn precision(&self) -> Precision {
        self.plan.choices.precision
    }

    /// The lines of a phase: values, then outputs, then what the levels after this one need.
    fn phase(&mut self, coordinates: &Coordinates) -> Vec<String> {
        let phase = self.phase;
        self.blocks[KERNEL.index()].append(&mut self.runs.lines);
        for (_, def) in phase.stencil.defs.iter() {
            let reads = reading(&def.body, &self.reading);
            self.reading.push(reads.last().is_some_and(|&reads| reads));
        }
        for ((def, at), item) in &phase.schedule.values {
            self.value(*def, at, item);
        }
        let is_carried = |store: &Store| phase.stencil.fields[store.field].role == Role::Carried;
        for (store, item) in phase.stores().filter(|(store, _)| !is_carried(store)) {
            self.store(store.field, &store.body, item, coordinates);
        }
        let (mut stored, mut moved) = (Vec::new(), Vec::new());
        for (store, item) in phase.stores().filter(|(store, _)| is_carried(store)) {
            let text = self.body(&store.body, item, None).unwrap_or_default();
            let k = self.named.names.internal("k");
            self.carried.keep(store.field, &text, &k, &mut stored, &mut moved);
        }
        let mut lines = std::mem::take(&mut self.blocks[KERNEL.index()]);
        lines.append(&mut stored);
        lines.append(&mut moved);
        lines
    }

    /// A value of a sweep, some levels away.
    fn carried(&mut self, field: FieldId, shift: i32, context: Context) -> String {
        let phase = self.phase;
        let own = phase.stencil.stores.iter().find(|store| store.field == field);
        if let (Some(store), Some(direction)) = (own, phase.direction) {
            if shift == 0 {
                // What it stores is a name or a number.
                let (body, here) = (&store.body, Context { block: KERNEL, sure: true });
                let (root, at) = (body.root(), Path::default());
                return self.node(body, root, &body[root], &at, here, &mut Texts::new(body)).0;
            }
            if let Some(name) = self.carried.before(field, direction.before(shift)) {
                return name.to_owned();
            }
        }
        let k = self.named.names.internal("k");
        let level = match (shift, context.sure) {
            (0, _) => k,
            (_, true) => format!("{k} {} {}", if shift < 0 { "-" } else { "+" }, shift.unsigned_abs()),
            (_, false) => {
                let exists = level_exists(self.named, shift, Levels::Full);
                format!("{k} + ({exists} ? {shift} : 0)")
            }
        };
        self.carried.at(field, &level)
    }

    /// `const double lap_right = ...;`
    fn value(&mut self, def: DefId, at: &Path, item: &Item) {
        let plan = self.plan;
        let own = &plan.stencil.defs[def];
        let suffix = if at.is_here() { String::new() } else { format!("_{}", path_name(at)) };
        let name = self.named.names.fresh(&format!("{}{suffix}", own.name));
        let c_type = computing_type(own.body.kind(), self.precision());
        if let Some(text) = self.body(&own.body, item, Some(&name)) {
            self.blocks[item.block().index()].push(format!("const {c_type} {name} = {text};"));
        }
        self.values.insert((def, at.clone()), name);
    }

    fn store(&mut self, field: FieldId, body: &Body, item: &Item, coordinates: &Coordinates) {
        let plan = self.plan;
        let declared = &plan.stencil.fields[field];
        // Columns have the value of a field on fewer axes together.
        if !declared.place.horizontal && !item.at.is_here() {
            return;
        }
        let target = self.named.outputs[&field].clone();
        let text = self.body(body, item, None).unwrap_or_default();
        let text = stored_as(text, declared.stored, self.precision());
        let here = Context { block: KERNEL, sure: true };
        let index = index(plan, self.named, self.lookups, field, &item.at, here);
        let assignment = match plan.run_width().filter(|_| declared.place.horizontal) {
            Some(width) => {
                let (start, texts) = self.run.entry(field).or_insert((index, Vec::new()));
                texts.push(text);
                if texts.len() < width as usize {
                    return;
                }
                let assignment = format!("store_run(&{target}[{start}], {});", texts.join(", "));
                self.run.remove(&field);
                assignment
            }
            None => {
                let site = Site { field, path: item.at.clone(), written: true };
                let assignment = format!("{target}[{}] = {text};", self.element(field, true, &index));
                match checked::condition(plan, self.named, &mut self.sites, site, &index) {
                    None => assignment,
                    Some(condition) => format!("if ({condition}) {assignment}"),
                }
            }
        };
        // A field on fewer axes is written by one thread of those that compute the same.
        let [k, k_first] = self.named.names.internals(["k", "k_first"]);
        let line = match (declared.place.horizontal, declared.place.levels) {
            (true, Levels::Full | Levels::Interfaces) => assignment,
            (true, Levels::None) => format!("if ({k} == {k_first}) {assignment}"),
            (false, Levels::Full | Levels::Interfaces) => format!("if ({}) {assignment}", coordinates.first),
            (false, Levels::None) => format!("if ({} && {k} == {k_first}) {assignment}", coordinates.first),
        };
        self.blocks[KERNEL.index()].push(line);
    }

    /// Writes what a body needs into the blocks of its nodes. Returns its text, or nothing if its value is in the variable
    /// `target` already.
    fn body(&mut self, body: &Body, item: &Item, target: Option<&str>) -> Option<String> {
        self.reads = reading(body, &self.reading);
        let statements = self.statements(body, item);
        let targets = self.targets(body, item, &statements, target);
        let mut texts = Texts::new(body);
        for (id, node) in body.iter() {
            let (text, binding) = match (item.contexts[id.index()], &targets[id.index()]) {
                // Not evaluated anywhere.
                (None, _) => (String::new(), Binding::Atom),
                (Some(context), Some(name)) => {
                    let Node::Choose { condition, yes, no } = node else { continue };
                    let inherited = name.inherited;
                    let name = name.text.clone();
                    let branches = item.branches[&id];
                    let condition = texts.operand(*condition, Binding::Choice);
                    let kind = body.kind_of(id);
                    let yes = texts.operand(*yes, Binding::Choice);
                    let no = texts.operand(*no, Binding::Choice);
                    self.choice(context.block, branches, kind, &name, inherited, condition, yes, no);
                    (name, Binding::Atom)
                }
                (Some(context), None) => self.node(body, id, node, &item.at, context, &mut texts),
            };
            texts.add(text, binding);
        }
        let root = body.root().index();
        let done = targets[root].is_some() && target.is_some();
        let (text, _) = texts.finish();
        (!done).then_some(text)
    }

    /// The choices that are written as statements: those with values of their own in a branch, or with large branches.
    fn statements(&self, body: &Body, item: &Item) -> Vec<bool> {
        let mut sizes = vec![1usize; body.len()];
        let mut statements = vec![false; body.len()];
        for (id, node) in body.iter() {
            sizes[id.index()] += node.operands().iter().map(|operand| sizes[operand.index()]).sum::<usize>();
            if let (Node::Choose { yes, no, .. }, Some((yes_block, no_block))) = (node, item.branches.get(&id)) {
                let filled = [yes_block, no_block].iter().any(|block| !self.blocks[block.index()].is_empty());
                let large = [yes, no].iter().any(|branch| sizes[branch.index()] > INLINE);
                let nested = [yes, no].iter().any(|branch| {
                    // Whatever is nested deeper makes its branch large or filled in its turn.
                    statements[branch.index()]
                });
                statements[id.index()] =
                    filled || large || nested || self.holds_statement(body, *yes, *no, &statements);
            }
        }
        statements
    }

    /// Whether a branch's expression holds a choice that is a statement.
    fn holds_statement(&self, body: &Body, yes: NodeId, no: NodeId, statements: &[bool]) -> bool {
        let mut pending = vec![yes, no];
        let mut visited = 0;
        while let Some(node) = pending.pop() {
            visited += 1;
            // Larger branches are statements anyway.
            if statements[node.index()] || visited > 4 * INLINE {
                return true;
            }
            pending.extend(body[node].operands());
        }
        false
    }

    /// The variables of the choices that are statements. A choice that is a branch of another shares its variable, which
    /// makes a chain of `else if`.
    fn targets(&mut self, body: &Body, item: &Item, statements: &[bool], target: Option<&str>) -> Vec<Option<Target>> {
        let mut targets: Vec<Option<Target>> = vec![None; body.len()];
        let mut uses = vec![0usize; body.len()];
        for (_, node) in body.iter() {
            node.operands().iter().for_each(|operand| uses[operand.index()] += 1);
        }
        for (id, node) in body.iter().rev() {
            if !statements[id.index()] || item.contexts[id.index()].is_none() {
                continue;
            }
            if targets[id.index()].is_none() {
                let own = match target {
                    Some(target) if id == body.root() => target.to_owned(),
                    _ => self.named.names.fresh(target.unwrap_or("chosen")),
                };
                targets[id.index()] = Some(Target { text: own, inherited: false });
            }
            let text = targets[id.index()].as_ref().map(|target| target.text.clone()).unwrap_or_default();
            if let Node::Choose { yes, no, .. } = node {
                for branch in [yes, no] {
                    if statements[branch.index()] && uses[branch.index()] == 1 {
                        targets[branch.index()] = Some(Target { text: text.clone(), inherited: true });
                    }
                }
            }
        }
        targets
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of one statement")]
    fn choice(
        &mut self,
        block: BlockId,
        branches: (BlockId, BlockId),
        kind: Kind,
        name: &str,
        inherited: bool,
        condition: String,
        yes: String,
        no: String,
    ) {
        let mut branch = |id: BlockId, text: String| {
            let mut lines = std::mem::take(&mut self.blocks[id.index()]);
            // A choice that shares the variable has assigned it already.
            if text != name {
                lines.push(format!("{name} = {text};"));
            }
            lines
        };
        let (yes, no) = (branch(branches.0, yes), branch(branches.1, no));
        let c_type = computing_type(kind, self.plan.choices.precision);
        let lines = &mut self.blocks[block.index()];
        if !inherited {
            lines.push(format!("{c_type} {name};"));
        }
        lines.push(format!("if ({condition}) {{"));
        lines.extend(yes.into_iter().map(|line| format!("    {line}")));
        // `else { if ... }` reads better as `else if ...`.
        if no.first().is_some_and(|line| line.starts_with("if (") && line.ends_with('{')) && is_one_if(&no) {
            let mut rest = no.into_iter();
            lines.push(format!("}} else {}", rest.next().unwrap_or_default()));
            lines.extend(rest);
        } else {
            lines.push("} else {".into());
            lines.extend(no.into_iter().map(|line| format!("    {line}")));
            lines.push("}".into());
        }
    }

    fn node(
        &mut self,
        body: &Body,
        id: NodeId,
        node: &Node,
        at: &Path,
        context: Context,
        texts: &mut Texts,
    ) -> (String, Binding) {
        match node {
            Node::Param(param) => (self.named.params[param].to_string(), Binding::Atom),
            Node::Level => self.level(at.levels()),
            Node::LevelCount => (self.named.names.internal("nk"), Binding::Atom),
            Node::Read { field, path, .. } => {
                (self.read(*field, &self.plan.ways.join(at, path), context), Binding::Atom)
            }
            Node::Use { def, path } => {
                let key = (*def, self.plan.ways.join(at, path));
                (self.values.get(&key).cloned().unwrap_or_default(), Binding::Atom)
            }
            _ => {
                // What decides levels is the language's own, or a kernel might look for levels that do not exist.
                let math = if self.reads[id.index()] { self.plan.choices.math } else { Math::Own };
                operation(body, id, self.precision(), math, texts, &mut self.helpers)
            }
        }
    }

    /// `k + 1`
    fn level(&mut self, shift: i32) -> (String, Binding) {
        let k = self.named.names.internal("k");
        match shift {
            0 => (k, Binding::Atom),
            1.. => (format!("{k} + {shift}"), Binding::Sum),
            _ => (format!("{k} - {}", shift.unsigned_abs()), Binding::Sum),
        }
    }

    /// Where a field's element is that has an index among its own.
    fn element(&self, field: FieldId, written: bool, index: &str) -> String {
        let Plan { choices, seats, .. } = self.plan;
        choices.fields.text(&self.named.names, seats[&(field, written)], index)
    }

    /// Whether a sweep knows early enough which element it reads: one of its own column.
    fn loads_ahead(&self, field: FieldId, at: &Path) -> bool {
        let levels = self.plan.stencil.fields[field].place.levels;
        let is_own = at.clone().without_levels().is_here() && levels != Levels::None;
        self.phase.direction.is_some() && is_own && !self.plan.choices.checked
    }

    /// The element of a field that was loaded with those of the levels around.
    fn load_ahead(&mut self, field: FieldId, at: &Path) -> String {
        let (plan, declared) = (self.plan, &self.plan.stencil.fields[field]);
        let key = (field, at.clone());
        if !self.ahead.contains_key(&key) {
            // It is loaded whether or not it is used, so not from a level that does not exist.
            let anywhere = Context { block: KERNEL, sure: false };
            let index = index(plan, self.named, self.lookups, field, at, anywhere);
            let element = format!("{}[{}]", self.named.inputs[&field], self.element(field, false, &index));
            let suffix = if at.is_here() { String::new() } else { format!("_{}", path_name(at)) };
            let name = self.named.names.fresh(&format!("{}{suffix}_ahead", declared.name));
            let c_type = stored_type(declared.stored, self.precision());
            self.ahead.insert(key.clone(), Ahead { c_type, name, element });
        }
        let ahead = &self.ahead[&key];
        let number = self.named.names.internal("n");
        read_as(format!("{}[{number}]", ahead.name), declared.stored, self.precision())
    }

    /// `phi[right + plane]`, converted to what is computed in.
    fn read(&mut self, field: FieldId, at: &Path, context: Context) -> String {
        let plan = self.plan;
        if plan.stencil.fields[field].role == Role::Carried {
            return self.carried(field, at.levels(), context);
        }
        if self.loads_ahead(field, at) {
            return self.load_ahead(field, at);
        }
        let text = match self.runs.elements.get(&(field, at.clone())) {
            Some(element) => element.clone(),
            None => {
                let name = self.named.inputs[&field].clone();
                let index = index(plan, self.named, self.lookups, field, at, context);
                let site = Site { field, path: at.clone(), written: false };
                match checked::condition(plan, self.named, &mut self.sites, site, &index) {
                    None => format!("{name}[{}]", self.element(field, false, &index)),
                    Some(condition) => format!("({condition} ? {name}[{}] : 0)", self.element(field, false, &index)),
                }
            }
        };
        read_as(text, plan.stencil.fields[field].stored, self.precision())
    }
}

/// Whether each node of a body depends on a field, given whether definitions do.
fn reading(body: &Body, defs: &[bool]) -> Vec<bool> {
    let mut reads: Vec<bool> = Vec::with_capacity(body.len());
    for (_, node) in body.iter() {
        let own = match node {
            Node::Read { .. } => true,
            Node::Use { def, .. } => defs[def.index()],
            _ => node.operands().iter().any(|operand| reads[operand.index()]),
        };
        reads.push(own);
    }
    reads
}

/// The variable of a choice.
#[derive(Clone, Debug)]
struct Target {
    text: String,
    /// Whether it belongs to the choice around it.
    inherited: bool,
}

/// Whether the lines are one `if` with all that belongs to it.
fn is_one_if(lines: &[String]) -> bool {
    let ends = lines.iter().filter(|line| line.as_str() == "}").count();
    ends == 1 && lines.last().is_some_and(|line| line == "}")
}
