//! Writes the body of one kernel: what it takes, and what is known in each of its blocks.

mod elements;
pub mod numbers;
pub mod places;
pub mod values;

use super::ends::Ends;
use super::once::tried_if_short;
use super::sweep::Sweeping;
use super::{Items, Kernel, MeshChoices, MeshTask};
use crate::analysis::footprint::Footprint;
use crate::ir::{DefId, Field, FieldId, Hop, Kind, Levels, Path, Relation, Role};
use crate::kernel::build::{BlockKey, Builder, Computing, Making, Term};
use crate::kernel::scalar::Scalar;
use crate::kernel::simplify::simplify;
use crate::kernel::{
    self, ArgumentKind, Array, ArrayId, Attempt, Axis, Coordinate, Math, Meaning, MeshData, Space, Step, Type, Unroll,
    ValueId, VariableId,
};
use crate::names::{Identifier, Names};
use crate::text::Comment;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// What is known in a block of code.
#[derive(Default)]
struct Scope {
    /// Numbers of elements; -1 is a hole.
    raw: HashMap<Vec<Hop>, ValueId>,
    /// The same, and some element where there is a hole.
    index: HashMap<Vec<Hop>, ValueId>,
    reads: HashMap<(FieldId, Path, u32), ValueId>,
    values: HashMap<(DefId, Path), ValueId>,
    /// The inverses of divisors.
    inverses: HashMap<ValueId, ValueId>,
}

/// What tells at which of two places the thread's own element stands.
#[derive(Clone, Copy)]
pub struct Turn {
    /// Whether that is the second.
    pub is_second: ValueId,
    /// The bit of a sign, if so.
    pub bit: ValueId,
}

/// Writes one kernel.
pub struct Writer<'a> {
    pub task: &'a MeshTask<'a>,
    pub choices: &'a MeshChoices,
    pub own: Builder,
    /// The user's names, as they are in the code.
    users: HashMap<String, Identifier>,
    /// The numbers among the arguments so far, by what they mean.
    numbers: Vec<(Meaning, ValueId)>,
    /// The maps to the thread's own element and to the other one, if it computes what depends on which of two the own one is.
    pub ends: Option<Ends>,
    /// Which one that is, where it is known.
    pub turn: Option<Turn>,
    /// Where the element at hand stands in tables that are in the order of pieces, if there are any.
    pub in_piece: Option<ValueId>,
    scopes: Vec<Scope>,
    /// The level, if there are any.
    k: Option<ValueId>,
    /// Its number among those that are computed, where threads that follow each other have the levels of an item.
    level: Option<ValueId>,
    /// Fields that get new values in the arrays of the old ones.
    pub in_place: BTreeSet<FieldId>,
    /// How many levels a thread computes, from its own on.
    pub levels: usize,
    /// How many levels a thread goes through one after the other.
    pub slice: usize,
    /// What a thread that goes through all levels knows of the others.
    pub sweeping: Option<Sweeping<'a>>,
    /// The loops that all that follows stands in, outermost first.
    loops: Vec<OpenLoop>,
    /// How many items a thread goes through one after the other.
    items_of_thread: usize,
}

/// A loop that ends with the kernel.
struct OpenLoop {
    counter: VariableId,
    bounds: (ValueId, ValueId, Step),
    body: BlockKey,
    /// The block in which it stands.
    around: BlockKey,
}

impl Making for Writer<'_> {
    fn own(&mut self) -> &mut Builder {
        &mut self.own
    }

    fn begin(&mut self) {
        self.scopes.push(Scope::default());
    }

    fn end(&mut self) {
        self.scopes.pop();
    }
}

impl<'a> Writer<'a> {
    /// For a kernel of a stencil. The user's names come first, so that they stay as they are.
    pub fn new(task: &'a MeshTask<'a>, choices: &'a MeshChoices, name: &str) -> Self {
        let mut names = Names::default();
        let stencil = &task.stencil.stencil;
        let fields = stencil.fields.iter().map(|(_, field)| &field.name);
        let params = stencil.params.iter().map(|(_, param)| &param.name);
        let users = fields.chain(params).map(|name| (name.clone(), names.declared(name))).collect();
        let name = names.declared(name);
        let mut own = Builder::with_names(names, name, choices.threads.block, Vec::new());
        own.blocks_at_once(choices.threads.at_once);
        Self {
            task,
            choices,
            own,
            users,
            numbers: Vec::new(),
            ends: None,
            turn: None,
            in_piece: None,
            scopes: vec![Scope::default()],
            k: None,
            level: None,
            in_place: BTreeSet::new(),
            levels: 1,
            slice: 1,
            sweeping: None,
            loops: Vec::new(),
            items_of_thread: 1,
        }
    }

    /// Begins a loop that ends with the kernel, whose turns have nothing to do with each other but that they may add to the same numbers.
    fn open_loop(&mut self, wish: &str, first: impl Into<Term>, end: impl Into<Term>) -> ValueId {
        let bounds = (self.own.term(first), self.own.term(end), Step::By(self.own.int(1)));
        let (counter, value) = self.own.counter(wish, bounds.0);
        let body = self.own.open();
        let around = self.own.enter(body);
        self.begin();
        self.loops.push(OpenLoop { counter, bounds, body, around });
        value
    }

    /// Ends the loops that have begun.
    fn end_loops(&mut self) {
        while let Some(OpenLoop { counter, bounds, body, around }) = self.loops.pop() {
            self.end();
            self.own.enter(around);
            let unroll = if self.own.adds_atomically() { Unroll::Times(1) } else { Unroll::SideBySide };
            self.own.repeat(counter, bounds, unroll, body);
        }
    }

    /// Lets divisions share what they can, if there are any.
    pub fn share_divisions(&mut self, divides: bool) {
        // Those of CPUs are of several numbers at once.
        if divides && !self.choices.is_for_cpu {
            let [is_quick, is_usual] = ["is_quick", "is_usual"].map(|name| self.own.declared(name));
            self.own.attempt(Attempt { is_quick, is_usual });
        }
    }

    fn name_of(&mut self, wish: &str, meaning: &Meaning) -> Identifier {
        let is_users = match meaning {
            Meaning::Input(_) | Meaning::Param(_) | Meaning::Mesh(MeshData::Leaves(_)) => true,
            Meaning::Output(field) => self.field(*field).role != Role::InOut || self.in_place.contains(field),
            _ => false,
        };
        // The user's own names are theirs, as far as C++ lets them.
        match self.users.get(wish) {
            Some(known) if is_users => known.clone(),
            _ => self.own.declared(wish),
        }
    }

    /// The number that the kernel takes as `meaning`.
    pub fn number(&mut self, wish: &str, kind: Type, meaning: Meaning) -> ValueId {
        if let Some((_, known)) = self.numbers.iter().find(|(own, _)| *own == meaning) {
            return *known;
        }
        let name = self.name_of(wish, &meaning);
        let number = self.own.argument(name, kind, meaning.clone());
        self.numbers.push((meaning, number));
        number
    }

    /// The array that the kernel takes as `meaning`.
    pub fn array(&mut self, wish: &str, element: Type, is_written: bool, meaning: Meaning) -> ArrayId {
        let known = self.own.kernel().arguments.iter().find(|(_, own)| own.meaning == meaning);
        if let Some(ArgumentKind::Array(known)) = known.map(|(_, own)| &own.what) {
            return *known;
        }
        let name = self.name_of(wish, &meaning);
        let space = Space::Global { aliased: false };
        self.own.add_array(Array { name, element, space, is_written, watched: None }, meaning)
    }

    /// A table of whole numbers of the mesh.
    pub fn table(&mut self, wish: &str, data: MeshData) -> ArrayId {
        self.array(wish, Type::I32, false, Meaning::Mesh(data))
    }

    /// The number of items, or of the first one.
    pub fn count(&mut self, wish: &str, data: MeshData) -> ValueId {
        self.number(wish, Type::I32, Meaning::Mesh(data))
    }

    fn find<T: Copy>(&self, look: impl Fn(&Scope) -> Option<&T>) -> Option<T> {
        self.scopes.iter().rev().find_map(|scope| look(scope).copied())
    }

    fn scope(&mut self) -> &mut Scope {
        if self.scopes.is_empty() {
            self.scopes.push(Scope::default());
        }
        let last = self.scopes.len() - 1;
        &mut self.scopes[last]
    }

    /// Goes on with another stencil over the same fields and parameters; over the thread's own element, if that is known. What is known
    /// by paths and definitions is forgotten, but what was read of the own element is known.
    pub fn go_on_with(&mut self, task: &'a MeshTask<'a>, element: Option<ValueId>) {
        let mut scope = Scope::default();
        let own_end = self.ends.map(|ends| ends.own);
        for own in std::mem::take(&mut self.scopes) {
            scope.inverses.extend(own.inverses);
            for ((field, at, part), value) in own.reads {
                let is_own_end = own_end.is_some_and(|own| at.hops() == [own]);
                if element.is_some() && (at.hops().is_empty() || is_own_end) {
                    scope.reads.insert((field, Path::levels_only(at.levels()), part), value);
                }
                if is_own_end {
                    scope.reads.insert((field, at, part), value);
                }
            }
        }
        self.task = task;
        self.scopes = vec![scope];
        if let Some(element) = element {
            self.set_index(&[], element);
        }
    }

    /// How many threads that follow each other have the levels of one item. Nothing if they have items of one level.
    fn threads_of_column(&self) -> Option<usize> {
        if !self.task.stencil.stencil.sweeps.is_empty() {
            return Some(1);
        }
        let is_by_column = self.choices.layout.is_by_column() && self.task.stencil.mesh.levels;
        if is_by_column && self.choices.is_for_cpu {
            return Some(1);
        }
        is_by_column.then(|| (self.task.computed.len() / self.levels).div_ceil(self.slice).max(1))
    }

    /// Finds the level of the thread, if there are levels.
    pub fn find_level(&mut self) {
        let (Some(threads), first) = (self.threads_of_column(), self.task.computed.start) else {
            return self.find_level_of_block();
        };
        if self.choices.is_for_cpu {
            let k = self.open_loop("k", first, self.task.computed.end);
            return self.at_computed(k);
        }
        let level = Term::thread_of_launch(self.choices.threads.block).rem(threads).times(self.levels);
        let level = self.own.name(if first == 0 { "k" } else { "level" }, level);
        self.k = Some(if first == 0 { level } else { self.own.name("k", level.plus(first)) });
        self.level = Some(level);
    }

    /// Finds the level of the thread's block, if there are levels: launches have one for each that is computed along y.
    pub fn find_level_of_block(&mut self) {
        if self.task.stencil.mesh.levels {
            let k = Coordinate::Block.along(Axis::Y).plus(self.task.computed.start);
            self.k = Some(self.own.name("k", k));
        }
    }

    /// The first level that the thread goes through, the end, and how far one is from the next: neighbouring threads have neighbouring
    /// levels where these lie together.
    pub fn levels_of_thread(&mut self) -> (ValueId, ValueId, ValueId) {
        let Range { start, end } = *self.task.computed;
        let whole = (self.own.int(start as i64), self.own.int(end as i64), self.own.int(1));
        let Some(threads) = self.threads_of_column() else {
            let first = self.own.name("first", Coordinate::Block.along(Axis::Y).times(self.slice).plus(start));
            let end = self.own.name("end", first.plus(self.slice).at_most(end));
            return (first, end, self.own.int(1));
        };
        if self.choices.is_for_cpu {
            return whole;
        }
        let first = self.own.name("first", Term::thread_of_launch(self.choices.threads.block).rem(threads).plus(start));
        (first, self.own.int(end as i64), self.own.int(threads as i64))
    }

    /// Goes to a level that is computed.
    pub fn at_computed(&mut self, k: ValueId) {
        let start = self.task.computed.start;
        self.k = Some(k);
        self.level = Some(self.own.term(k.minus(start)));
    }

    /// Looks up what some stores read that does not depend on the level: where ways lead, and numbers without levels.
    pub fn look_up_what_has_no_levels(&mut self, stores: impl IntoIterator<Item = usize>) {
        let footprint = Footprint::new(self.task.stencil, stores);
        for hops in footprint.ways().filter(|hops| !hops.is_empty()) {
            self.index(hops);
        }
        for ((field, hops), parts) in &footprint.reads {
            if self.field(*field).place.levels == Levels::None {
                for &part in parts {
                    self.read(*field, &Path::through(hops.clone()), part);
                }
            }
        }
    }

    /// Goes to a level, of all levels.
    pub fn at_level(&mut self, k: ValueId) {
        (self.k, self.level) = (Some(k), Some(k));
    }

    /// The level at hand, if there are any.
    pub fn level_at_hand(&self) -> Option<ValueId> {
        self.k
    }

    /// The number of the thread's level among those that are computed.
    pub fn level_number(&self) -> Term {
        self.level.map_or_else(|| Coordinate::Block.along(Axis::Y), Term::from)
    }

    /// The number of the thread's item in its launch.
    pub fn item(&self) -> Term {
        let thread = Term::thread_of_launch(self.choices.threads.block);
        match self.threads_of_column() {
            Some(threads) => thread.over(threads),
            None => thread,
        }
    }

    /// The number of the thread's item in its launch, by a name. Threads that have no item of so many are done.
    pub fn item_below(&mut self, wish: &str, n: ValueId) -> ValueId {
        if self.choices.is_for_cpu {
            let [first, end] = self.items_of_block(self.choices.threads.block, n);
            return self.open_loop(wish, first, end);
        }
        let item = self.own.name(wish, self.item());
        self.own.leave_if(item.is(Relation::Ge, n));
        item
    }

    /// The first of so many items that the one thread of a block goes through, and the end of them, of `n` in all.
    pub fn items_of_block(&mut self, items: u32, n: ValueId) -> [ValueId; 2] {
        self.items_of_thread = items as usize;
        self.own.of_threads(1);
        let first = self.own.name("first_item", Coordinate::Block.along(Axis::X).times(items));
        [first, self.own.name("end_of_items", first.plus(items).at_most(n))]
    }

    /// A field of the stencil.
    pub fn field(&self, field: FieldId) -> &'a Field {
        &self.task.stencil.stencil.fields[field]
    }

    /// How operations of the stencil are made.
    pub fn scalar(&self) -> Scalar {
        Scalar { precision: self.task.precision, math: Math::Own }
    }

    /// The type that numbers of a kind are computed in.
    pub fn computing(&self, kind: Kind) -> Type {
        Type::computing(kind, self.task.precision)
    }

    /// The type of what a field holds.
    pub fn stored(&self, field: FieldId) -> Type {
        Type::stored(self.field(field).stored, self.task.precision)
    }

    /// The kernel, of a thread an item, and what is said of it.
    pub fn finish(mut self, what: &str, items: Items, in_place: Vec<FieldId>) -> Kernel {
        self.end_loops();
        let threads_of_column = self.threads_of_column().filter(|_| self.level.is_some() || self.sweeping.is_some());
        // Blocks that work on pieces have one level.
        debug_assert!(threads_of_column.is_none() || !matches!(items, Items::Pieces { .. }));
        let MeshTask { stencil, precision, .. } = *self.task;
        let over = format!("{}.{}", stencil.mesh.name, stencil.mesh.sets[stencil.set()].name);
        let mut doc = vec![Comment::new(format!("{} over {over}: {what}.", stencil.stencil.told()))];
        doc.extend(stencil.stencil.doc.comments());
        let levels = match self.levels {
            1 => String::new(),
            levels => format!(", {levels} levels a thread"),
        };
        doc.push(Comment::new(format!("Layout {}, {}{levels}.", self.choices.layout.name(), precision.name())));
        let code = kernel::Kernel { doc, ..simplify(tried_if_short(self.own.finish())) };
        Kernel { code, items, threads_of_column, slice: self.slice, items_of_thread: self.items_of_thread, in_place }
    }
}
