//! A program over a mesh on several devices: each owns some elements of every set, and computes what is written there.
//!
//! ```text
//! owners: who owns which element -> cut: the mesh of each part, who brings what from whom <- reach: what stencils look at
//! mod: as one backend, whose buffers have a part on each device -> cpu, and `bring` beside the kernels: how a backend gets what is brought
//! tiles: what of a reduction each part folds by itself
//! rank: the part of this process, where others have the others -> cpu, and `carry` beside the kernels: how it gives and takes bytes
//! ```
//!
//! The driver above and the backends below know of no parts, as on grids ([`crate::program::parts`]). Every value is computed by
//! one device, in the order and from the values that a single device would have, so the bits do not depend on how many there are.

mod cpu;
mod cut;
mod owners;
mod rank;
mod reach;
mod share;
#[cfg(test)]
mod tests;
mod tiles;
mod traffic;

use super::MeshScript;
use super::cpu::Interpreter;
use crate::array::{Data, Element};
use crate::driver::{Arrays, Backend, Computed, Script};
use crate::error::{Error, Result};
use crate::peers::{Brought, PartsScript, Peer};
use crate::problem::element_of;
pub use cut::{Cut, Elements, Message, Part};
pub use owners::Owners;
pub use rank::{Carried, Rank};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use stencilc_compiler::ir::mesh::{Fold, How, Zones};
use stencilc_compiler::ir::{FieldId, Handle, SetId, VariableId};
use stencilc_compiler::mesh::Chain;
use tiles::Ranks;
pub use tiles::{Tiles, Told};
pub use traffic::{Folds, Traffic, Turn, traffic};

/// A backend that can have a part of a program over a mesh. What it would fold it leaves.
pub trait Tells: Peer {
    /// What a part tells of numbers that are to be folded over all.
    type Told;

    /// Makes what a part tells of the numbers that a stage has left, by its buffer of the number that they become.
    ///
    /// # Errors
    /// The machine fails, or nothing was left.
    fn told(&self, part: usize, folding: &Folding, buffer: &Self::Buffer) -> Result<Self::Told>;
}

/// A backend that brings what it needs from the memory of others.
pub trait ByPart: Tells {
    /// Brings elements of another part's buffer of a variable into its own.
    ///
    /// # Errors
    /// The machine fails.
    fn bring(
        &self,
        variable: VariableId,
        message: &Message,
        to: &Self::Buffer,
        other: &Self,
        from: &Self::Buffer,
    ) -> Result<()>;

    /// Makes one number of what all parts tell, by their buffers of it; the first part has it then.
    ///
    /// # Errors
    /// A machine fails.
    fn fold_together(parts: &[Self], folding: &Folding, told: &[Self::Told], buffers: &[Self::Buffer]) -> Result<()>;
}

/// A reduction over all parts.
pub struct Folding {
    /// The field of the number.
    pub field: FieldId,
    /// What it is stored as.
    pub element: Element,
    /// How numbers become one.
    pub fold: Fold,
    /// Over whose elements it goes.
    pub set: SetId,
    /// Over which zones of them.
    pub zones: Option<Zones>,
    /// Numbers of an element: levels that are computed.
    pub levels: usize,
    /// Who tells what of them.
    pub tiles: Arc<Tiles>,
}

impl Folding {
    /// The array of all parts, of what each tells: the totals of all tiles, but of those that no part has whole, and the numbers of these.
    fn joined(&self, told: &[&Data]) -> Data {
        let mut all = Data::fresh(self.element, self.tiles.len);
        for (own, data) in self.tiles.parts.iter().zip(told) {
            data.copy_runs(&mut all, 1, own.to.iter().map(|&[to, place]| [place as usize, to as usize]));
        }
        all
    }
}

/// What reductions go over: the elements of a set, or of some of its zones.
type Over = (SetId, Option<Zones>);

/// The same, and how many numbers there are of each element.
type OfElements = (Over, usize);

/// By stencil or chain: the fields that it reads at elements of other parts.
struct Foreign(Arc<[BTreeSet<FieldId>]>);

impl Brought<MeshScript> for Foreign {
    fn is_read(&self, whole: &MeshScript, stage: usize, variable: VariableId) -> bool {
        let call = &whole.stage(stage).call;
        self.0[call.stencil].iter().any(|field| call.fields[field.index()].read == Some(variable))
    }
}

type OverMesh = PartsScript<MeshScript, Foreign>;

/// What is known of a program in parts, whoever computes them.
struct Known {
    cut: Cut,
    script: Arc<OverMesh>,
    /// Who is who in reductions, by set and zones.
    ranks: Vec<(Over, Ranks)>,
    /// Who tells what of a reduction, by what it goes over and how many numbers an element has.
    tiles: RefCell<Vec<(OfElements, Arc<Tiles>)>>,
}

/// Computes a program by parts.
pub struct Parts<B: ByPart> {
    known: Known,
    backends: Vec<B>,
    /// The buffers that elements were brought of since all parts met last: others may still look at them.
    brought: RefCell<Vec<*const B::Buffer>>,
    /// What was told of the reductions before: the first part may still look at it until all have met.
    told: RefCell<Vec<B::Told>>,
}

impl Parts<Interpreter> {
    /// By the interpreter.
    ///
    /// # Errors
    /// None, but that there could be some of other backends.
    pub fn interpreted(cut: Cut) -> Result<Self> {
        let backend = |part: &Part| Interpreter::new(Arc::clone(&part.problem)).leaving();
        let backends = cut.parts.iter().map(backend).collect();
        Self::new(cut, backends, &|_| false)
    }
}

impl<B: ByPart> Parts<B> {
    /// By a backend for each part of a cut, which computes the same chains as one kernel as the others.
    ///
    /// # Errors
    /// The machines of two neighbours do not reach each other.
    pub fn new(cut: Cut, backends: Vec<B>, merges: &dyn Fn(&Chain) -> bool) -> Result<Self> {
        Self::of(MeshScript::new(&cut.whole, merges), cut, backends)
    }

    /// The same, where what is given stays there to the end.
    ///
    /// # Errors
    /// As there.
    pub fn keeping_inputs(cut: Cut, backends: Vec<B>, merges: &dyn Fn(&Chain) -> bool) -> Result<Self> {
        Self::of(MeshScript::new(&cut.whole, merges).keeping_inputs(), cut, backends)
    }

    fn of(script: MeshScript, cut: Cut, backends: Vec<B>) -> Result<Self> {
        let known = Known::new(script, cut);
        let met = met(&known.cut, !known.ranks.is_empty());
        for (part, own) in backends.iter().enumerate() {
            met[part].iter().try_for_each(|&other| own.look_at(&backends[other]))?;
            let place = |other: usize| Some((&backends[other], met[other].iter().position(|&own| own == part)?));
            own.join(&met[part].iter().map(|&other| place(other)).collect::<Vec<_>>())?;
        }
        Ok(Self { known, backends, brought: RefCell::default(), told: RefCell::default() })
    }

    /// What computes each part.
    pub fn backends(&self) -> &[B] {
        &self.backends
    }

    /// Lets parts wait for those that they look at, or that look at them.
    fn meet(&self) -> Result<()> {
        self.brought.borrow_mut().clear();
        self.backends.iter().try_for_each(Peer::meet)
    }

    /// Sees to it that nobody changes a buffer that others still look at.
    fn let_look(&self, written: &[B::Buffer]) -> Result<()> {
        let is_seen = self.brought.borrow().contains(&written.as_ptr());
        if is_seen { self.meet() } else { Ok(()) }
    }
}

impl Known {
    fn new(script: MeshScript, cut: Cut) -> Self {
        let script = Arc::new(PartsScript { whole: Arc::new(script), brought: Foreign(Arc::clone(&cut.foreign)) });
        let mut ranks: Vec<(Over, Ranks)> = Vec::new();
        for stencil in &cut.whole.program.stencils {
            let key = (stencil.set(), stencil.stencil.zones);
            let folds = stencil.writes.iter().any(|write| matches!(write.how, How::Reduce(_)));
            if folds && ranks.iter().all(|(own, _)| *own != key) {
                ranks.push((key, ranked(&cut, key)));
            }
        }
        Self { cut, script, ranks, tiles: RefCell::default() }
    }

    /// The set that a variable is on, and how its numbers lie in the user's order: of an element, and of so many levels. Nothing of one that
    /// is on none.
    fn shape(&self, variable: VariableId) -> Option<(SetId, [usize; 2])> {
        let whole = &self.cut.whole;
        let place = whole.program.program.variables[variable].place;
        let home = place.home?;
        Some((home.set, [home.width as usize, place.levels.count(whole.levels)]))
    }

    /// The messages by which parts bring elements of a variable.
    fn messages(&self, variable: VariableId) -> impl Iterator<Item = &Message> {
        let set = self.shape(variable).map(|(set, _)| set);
        self.cut.messages.iter().filter(move |message| Some(message.set) == set)
    }

    /// A part's numbers of the array of a variable, or all of one that is on no set.
    fn own_of<'a>(&self, variable: VariableId, part: usize, data: &'a Data) -> Cow<'a, Data> {
        let Some((set, shape)) = self.shape(variable) else { return Cow::Borrowed(data) };
        let users = &self.cut.parts[part].elements[set.index()].users;
        let mut own = Data::fresh(data.element(), users.len() * shape[0] * shape[1]);
        let places = users.iter().enumerate().map(|(place, &user)| [user as usize, place]);
        put((data, self.cut.whole.bound.size(set)), (&mut own, users.len()), shape, places);
        Cow::Owned(own)
    }

    /// Puts the numbers of the elements that a part owns in their places among those of all.
    fn join(&self, (set, shape): (SetId, [usize; 2]), part: usize, own: &Data, all: &mut Data) {
        let Elements { users, owned } = &self.cut.parts[part].elements[set.index()];
        let places = owned.iter().map(|&place| [place as usize, users[place as usize] as usize]);
        put((own, users.len()), (all, self.cut.whole.bound.size(set)), shape, places);
    }

    /// Whether there is a reduction over nothing: what it comes to the host writes.
    fn folds_nothing(&self) -> bool {
        self.ranks.iter().any(|((set, zones), _)| self.cut.whole.bound.range(*set, *zones).is_empty())
    }

    /// The reductions of a stage whose numbers somebody wants.
    fn foldings(&self, stage: &Computed, written: impl Fn(FieldId) -> bool) -> Result<Vec<Folding>> {
        let (whole, call) = (&self.cut.whole, &self.script.whole.stage(stage.stage).call);
        let mut all = Vec::new();
        for stencil in whole.stages(call.stencil) {
            for (store, write) in stencil.stores() {
                let How::Reduce(fold) = write.how else { continue };
                if !written(store.field) {
                    continue;
                }
                let (set, zones) = (stencil.set(), stencil.stencil.zones);
                let levels = whole.computed(call.stencil, &stage.params)?.len();
                let tiles = self.tiles((set, zones), levels)?;
                let element = element_of(stencil.stencil.fields[store.field].stored, whole.precision);
                all.push(Folding { field: store.field, element, fold, set, zones, levels, tiles });
            }
        }
        Ok(all)
    }

    /// Who tells what of a reduction over elements with so many numbers.
    fn tiles(&self, over: Over, levels: usize) -> Result<Arc<Tiles>> {
        if let Some((_, known)) = self.tiles.borrow().iter().find(|(own, _)| *own == (over, levels)) {
            return Ok(Arc::clone(known));
        }
        let ranks = self.ranks.iter().find(|(own, _)| *own == over).map(|(_, ranks)| ranks);
        let ranks = ranks.ok_or_else(|| Error::check("a reduction is over nobody's elements"))?;
        let tiles = Arc::new(Tiles::new(ranks, levels));
        self.tiles.borrow_mut().push(((over, levels), Arc::clone(&tiles)));
        Ok(tiles)
    }
}

/// By part, the others that it looks at or that look at it; where numbers of all are folded, the first looks at all.
fn met(cut: &Cut, is_folded: bool) -> Vec<Vec<usize>> {
    let messages = cut.messages.iter().map(|own| [own.to, own.from]);
    let folded = (1..cut.parts.len()).filter(|_| is_folded).map(|other| [0, other]);
    let mut all = vec![BTreeSet::new(); cut.parts.len()];
    for [one, other] in messages.chain(folded) {
        all[one].insert(other);
        all[other].insert(one);
    }
    all.into_iter().map(|own| own.into_iter().collect()).collect()
}

/// Of each element that a part owns, how many of some zones come before it among all, and among those of the part.
fn ranked(cut: &Cut, (set, zones): Over) -> Ranks {
    let is_in = |user: u32| zones.is_none_or(|zones| zones.contain(cut.whole.bound.zone(set, user as usize)));
    let mut before = Vec::new();
    let mut count = 0_u32;
    for user in 0..cut.whole.bound.size(set) as u32 {
        before.push(count);
        count += u32::from(is_in(user));
    }
    let of_part = |part: &Part| {
        let own = &part.elements[set.index()];
        let mut is_owned = vec![false; own.users.len()];
        own.owned.iter().for_each(|&place| is_owned[place as usize] = true);
        let there = own.users.iter().zip(is_owned).filter(|(user, _)| is_in(**user));
        let owned = (0..).zip(there).filter(|(_, (_, is_owned))| *is_owned);
        owned.map(|(rank, (&user, _))| [before[user as usize], rank]).collect()
    };
    cut.parts.iter().map(of_part).collect()
}

/// Copies the numbers of elements, of `width` each on so many levels, from places among so many elements to places among others.
fn put(
    from: (&Data, usize),
    to: (&mut Data, usize),
    [width, levels]: [usize; 2],
    places: impl Iterator<Item = [usize; 2]> + Clone,
) {
    let sizes = [from.1, to.1];
    let starts = (0..levels).flat_map(|level| {
        places
            .clone()
            .map(move |[first, place]| [level * sizes[0] + first, level * sizes[1] + place].map(|at| at * width))
    });
    from.0.copy_runs(to.0, width, starts);
}

impl<B: ByPart> Backend for Parts<B> {
    type Buffer = Vec<B::Buffer>;
    type Recording = B::Recording;

    fn script(&self) -> Arc<dyn Script> {
        Arc::<OverMesh>::clone(&self.known.script)
    }

    fn load(&self, variable: VariableId, data: &Data) -> Result<Self::Buffer> {
        let parts = self.backends.iter().enumerate();
        parts.map(|(part, backend)| backend.load(variable, &self.known.own_of(variable, part, data))).collect()
    }

    fn read(&self, variable: VariableId, buffer: &Self::Buffer) -> Result<Data> {
        let Some(home) = self.known.shape(variable) else { return self.backends[0].read(variable, &buffer[0]) };
        let mut all = self.known.script.fresh(variable);
        for (part, (backend, buffer)) in self.backends.iter().zip(buffer).enumerate() {
            self.known.join(home, part, &backend.read(variable, buffer)?, &mut all);
        }
        Ok(all)
    }

    fn fill_halo(&self, variable: VariableId, buffer: &Self::Buffer) -> Result<()> {
        self.fill_halos(&[(variable, buffer)])
    }

    fn fill_halos(&self, all: &[(VariableId, &Self::Buffer)]) -> Result<()> {
        let brought: Vec<_> =
            all.iter().filter(|(variable, _)| self.known.messages(*variable).next().is_some()).collect();
        if brought.is_empty() {
            return Ok(());
        }
        self.meet()?;
        for (variable, buffer) in &brought {
            for message in self.known.messages(*variable) {
                let &Message { to, from, .. } = message;
                self.backends[to].bring(*variable, message, &buffer[to], &self.backends[from], &buffer[from])?;
            }
        }
        // Whoever has come here has seen that all others have brought what came before.
        self.brought.replace(brought.iter().map(|(_, buffer)| buffer.as_ptr()).collect());
        Ok(())
    }

    fn copy(&self, from: &Self::Buffer, to: &Self::Buffer) -> Result<()> {
        self.let_look(to)?;
        self.backends.iter().zip(from.iter().zip(to)).try_for_each(|(backend, (from, to))| backend.copy(from, to))
    }

    fn compute(&self, stage: &Computed, arrays: Arrays<Self::Buffer>) -> Result<()> {
        if stage.times != 1 {
            return Err(Error::check("parts are computed step after step"));
        }
        arrays.writes.iter().try_for_each(|(_, written)| self.let_look(written))?;
        for (part, backend) in self.backends.iter().enumerate() {
            let [reads, writes] = arrays.of_part(part);
            backend.compute(stage, Arrays { reads: &reads, writes: &writes })?;
        }
        let foldings = self.known.foldings(stage, |own| arrays.writes.iter().any(|(field, _)| *field == own))?;
        if foldings.is_empty() {
            return Ok(());
        }
        let mut all = Vec::new();
        for folding in &foldings {
            let Some((_, buffers)) = arrays.writes.iter().find(|(field, _)| *field == folding.field) else { continue };
            let parts = self.backends.iter().zip(buffers.iter()).enumerate();
            let told = parts.map(|(part, (backend, buffer))| backend.told(part, folding, buffer));
            all.push((folding, told.collect::<Result<Vec<_>>>()?, *buffers));
        }
        self.meet()?;
        // Now the first has looked at what was told before, and its place may be taken: by what is told the next time, and not before.
        self.told.borrow_mut().clear();
        for (folding, told, buffers) in all {
            B::fold_together(&self.backends, folding, &told, buffers)?;
            self.told.borrow_mut().extend(told);
        }
        Ok(())
    }

    fn wait(&self) -> Result<()> {
        self.backends.iter().try_for_each(Backend::wait)
    }

    fn record(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Option<Self::Recording>> {
        if self.known.folds_nothing() {
            return Ok(None);
        }
        // What is recorded begins when all was done before, and all is done when it ends.
        self.brought.borrow_mut().clear();
        let recording = B::record_together(&self.backends, work)?;
        self.brought.borrow_mut().clear();
        Ok(recording)
    }

    fn replay(&self, recording: &Self::Recording) -> Result<()> {
        B::replay_together(&self.backends, recording)
    }
}
