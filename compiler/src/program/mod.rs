//! A program on a grid: the halo that its fields need, the cells that each call computes, the numbers that it passes.
//!
//! A field whose boundary says what lies beyond an edge gets a **halo** of cells there, as many as any call reads beyond
//! the edge, filled by the rule. On the grid with its halo, a call is a stencil like any other; all else stays as it is.

mod fuse;
mod halo;
mod narrowing;
mod numbers;
mod part;
mod region;
mod turns;

use crate::analysis::bounds;
use crate::analysis::extents::{Extents, reaches};
use crate::analysis::levels::{self, Known};
use crate::analysis::moving::{Allowed, Stand};
use crate::diagnostic::Refusal;
use crate::grid::{Adjacency, Form, Grid, Region, shared};
use crate::ir::Role;
use crate::ir::program::{Call, GridAxis, Side};
use crate::ir::scalar::Value;
use crate::ir::{
    Body, FieldId, Handle, Kind, Levels, Node, Place, Precision, Program, Stencil, VariableId, fold, needed,
};
pub use fuse::{Fuse, Fusing};
pub use halo::{Beyond, EdgeValues, Halo, Source};
pub use narrowing::Rim;
pub use numbers::{Numbers, evaluate};
pub use part::rows_of_part;
use std::collections::BTreeMap;
use std::ops::Range;
use turns::Stager;

/// A program on a grid.
#[derive(Clone, Debug)]
pub struct Staged {
    /// The program.
    pub program: Program,
    /// What `real` is.
    pub precision: Precision,
    /// The grid of the arrays.
    pub domain: Grid,
    /// The same grid with its halo.
    pub grid: Grid,
    /// The cells around it.
    pub halo: Halo,
    /// What its numbers are worth.
    pub numbers: Numbers,
    /// By variable: what lies beyond its edges.
    pub edges: Vec<EdgeValues>,
    /// By the calls of the program, in the order of the text: the stencils that are computed. A call that computes other cells
    /// in other turns of a loop has a stage for each.
    pub stages: Vec<Stage>,
    /// What it does, with numbers for bodies.
    pub steps: Vec<Step>,
    /// The cells of the arrays on which every declared output is computed, without a halo.
    pub computed: Region,
    /// The outer cells of declared outputs that no call computes.
    pub rims: Vec<Rim>,
}

/// A call: a stencil on the grid with its halo.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The stencil, contracted and folded, where `k` and `nk` are those of the arrays.
    pub stencil: Stencil,
    /// The values of its parameters.
    pub params: Vec<Value>,
    /// Whether they change from turn to turn, as numbers of the program say that the call passes; then those above are none that count.
    pub changes: bool,
    /// What it computes, on the grid with its halo.
    pub region: Region,
    /// Whether that is every cell of the arrays.
    pub is_whole: bool,
    /// Whether it fetches what lies beyond an edge from the other end, and needs no halo.
    pub wraps: bool,
    /// Of a stage that may be done any number of times at once: which output becomes which input the next time.
    pub carry: Vec<(FieldId, FieldId)>,
    /// Where numbers stand, on the grid with its halo, that say which levels it reads, and which they may be; nothing is said of what several
    /// calls became.
    pub stands: BTreeMap<Stand, Allowed>,
    /// The call.
    pub call: Call,
}

/// What a program does.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Computes a stage, by its number.
    Stage(usize),
    /// Gives a variable (the second) the value of another.
    Rename(VariableId, VariableId),
    /// Gives a number a value.
    Number(VariableId, Body),
    /// Does something several times.
    Repeat(Loop),
}

/// Something that is done several times.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// How often.
    pub times: Times,
    /// The number that counts its turns, from 0.
    pub counter: Option<VariableId>,
    /// What is done in each turn, as long as turns differ in the cells that they compute; usually there is one for all.
    pub turns: Vec<Vec<Step>>,
    /// After the last of `turns` comes the one with this number again. If there is none, the loop ends with the last.
    pub again: usize,
    /// Variables that are made in it, anew each time.
    pub names: Vec<VariableId>,
    /// What does the same as several times of the last turn, where that alone comes again.
    pub unrolled: Option<Unrolled>,
    /// The stage that does the same as any number of times of the last turn, one at least, where that alone comes again.
    pub whole: Option<usize>,
}

/// How often a loop is run.
#[derive(Clone, Debug, PartialEq)]
pub enum Times {
    /// So often.
    Known(usize),
    /// As often as a number says when the loop begins: over a mesh, it may come from a reduction.
    Of(Body),
}

impl Times {
    /// How often, as far as that is known before.
    pub fn known(&self) -> usize {
        match self {
            Times::Known(times) => *times,
            Times::Of(_) => 0,
        }
    }
}

impl Loop {
    /// Which of the turns is done at a time, counted from 0.
    pub fn number(&self, time: usize) -> usize {
        match self.turns.len() {
            len if time < len || self.again >= len => time,
            len => self.again + (time - self.again) % (len - self.again),
        }
    }

    /// What is done at a time, counted from 0.
    pub fn turn(&self, time: usize) -> &[Step] {
        self.turns.get(self.number(time)).map_or(&[], Vec::as_slice)
    }

    /// Whether the same is done at a time, counted from 0, and ever after.
    pub fn is_steady(&self, time: usize) -> bool {
        let last = self.turns.len().saturating_sub(1);
        !self.turns.is_empty() && self.again == last && time >= last
    }

    /// How often it can be done, if one asks for so many times: a loop whose turns never come again ends with the last.
    pub fn at_most(&self, times: usize) -> usize {
        if self.again < self.turns.len() { times } else { times.min(self.turns.len()) }
    }

    /// Leaves out turns that do what others do at their place.
    fn shorten(&mut self) {
        if self.again >= self.turns.len() {
            return;
        }
        let own = &self.turns[self.again..];
        let comes_again =
            |&period: &usize| own.len().is_multiple_of(period) && own[period..] == own[..own.len() - period];
        let period = (1..=own.len()).find(comes_again).unwrap_or(own.len());
        self.turns.truncate(self.again + period);
        while self.again > 0 && self.turns[self.again - 1] == self.turns[self.turns.len() - 1] {
            self.turns.pop();
            self.again -= 1;
        }
    }
}

impl Step {
    /// How often an outermost loop is run; 0 of what is none.
    pub fn times(&self) -> u64 {
        match self {
            Step::Repeat(own) => own.times.known() as u64,
            Step::Stage(_) | Step::Rename(..) | Step::Number(..) => 0,
        }
    }
}

/// Several times of a loop at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Unrolled {
    /// How many.
    pub times: usize,
    /// What is done.
    pub steps: Vec<Step>,
}

impl Staged {
    /// A program for arrays of the extents `domain`, whose columns `adjacency` links if they stand in no rows.
    ///
    /// # Errors
    /// The grid is too small for a call or a boundary, something is read beyond an edge that has no boundary, a number of
    /// repetitions is negative.
    pub fn new(
        program: &Program,
        precision: Precision,
        contract: bool,
        domain: Grid,
        adjacency: Option<&Adjacency>,
        params: &[Value],
    ) -> Result<Self, Refusal> {
        let numbers = Numbers::new(&program.numbers, precision, contract, domain, params);
        check_form(program, domain, adjacency)?;
        let halo = widths(program, precision);
        check_widths(program, domain, &halo)?;
        let edges = program.variables.iter().map(|(_, variable)| EdgeValues::new(&variable.edges, &numbers)).collect();
        let mut staged = Self {
            program: program.clone(),
            precision,
            domain,
            grid: halo.around(domain),
            halo,
            numbers: numbers.clone(),
            edges,
            stages: Vec::new(),
            steps: Vec::new(),
            computed: Region::rows(0..0, 0..0, 0..0),
            rims: Vec::new(),
        };
        let mut stager = Stager::new(&mut staged, &numbers, contract, adjacency);
        let steps = stager.actions(&program.actions)?;
        let (known, old) = (stager.known, stager.old);
        staged.steps = steps;
        staged.computed = staged.without_edges(&known.valued(&staged, staged.common()));
        staged.rims = known.rims(&staged, &old);
        Ok(staged)
    }

    /// The stencil of a stage for a grid without its halo: there, `k` and `nk` are those of the arrays.
    pub fn without_halo(&self, stencil: &Stencil) -> Stencil {
        halo::moved(stencil, self.halo.levels().map(|levels| -levels))
    }

    /// The cells of the arrays, on the grid with its halo.
    pub fn inner(&self) -> Region {
        let Grid { ni, nj, nk, form } = self.domain;
        let cells = (form == Form::Cells).then(|| (0..ni as u32).collect());
        Region { i: 0..ni, j: 0..nj, k: 0..nk, cells }.map(|axis, cells| {
            let before = self.halo.width(axis, Side::Low);
            before..before + cells.end
        })
    }

    /// Of the cells of the arrays those where a stencil says that it is computed, on the grid with its halo; with levels beyond the last
    /// where it goes on.
    fn wanted(&self, known: &Known) -> Region {
        self.inner().map(|axis, all| match axis {
            GridAxis::K => bounds::within(known, axis, levels::candidates(known.stencil(), all.clone())),
            GridAxis::I | GridAxis::J => {
                let own = bounds::within(known, axis, 0..all.len());
                all.start + own.start..all.start + own.end
            }
        })
    }

    /// The cells on which every declared output is computed.
    fn common(&self) -> Region {
        let is_written = |&id: &VariableId| {
            let is_outer = self.program.variables[id].role.is_some();
            is_outer && self.stages.iter().any(|stage| stage.call.writes().any(|own| own == id))
        };
        let written = self.program.variables.handles().filter(is_written);
        written.fold(self.inner(), |all, id| all.common(&self.region_of(id)))
    }

    /// The cells, without a halo, on which a variable is computed in whatever turn, on the last interface, too.
    pub fn computed_of(&self, variable: VariableId) -> Region {
        self.without_edges(&self.region_of(variable))
    }

    fn region_of(&self, variable: VariableId) -> Region {
        let own = &self.program.variables[variable];
        let is_given = own.role == Some(Role::InOut);
        let mut inner = self.inner();
        inner.k.end += usize::from(own.place.levels == Levels::Interfaces);
        let writes = |stage: &Stage| stage.call.writes().any(|id| id == variable);
        // Calls that say where they compute share their work, and leave the rest as it was given.
        self.shared_by(&inner, &writes).map(|axis, _| {
            let says = |stage: &&Stage| writes(stage) && stage.stencil.says(axis);
            let all = self.shared_by(&inner, &|stage| writes(stage) && !stage.stencil.says(axis));
            let said = self.stages.iter().filter(says).map(|stage| stage.region.along(axis).clone());
            let said = said.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)).filter(|_| !is_given);
            said.map_or(all.along(axis).clone(), |said| shared(all.along(axis), &said))
        })
    }

    /// Those of some cells that some stages all compute.
    fn shared_by(&self, cells: &Region, is_one: &dyn Fn(&Stage) -> bool) -> Region {
        let stages = self.stages.iter().filter(|stage| is_one(stage));
        stages.fold(cells.clone(), |common, stage| common.common(&stage.region))
    }

    /// A region on the grid without its halo.
    fn without_edges(&self, region: &Region) -> Region {
        region.map(|axis, cells| {
            let before = self.halo.width(axis, Side::Low);
            cells.start - before..cells.end - before
        })
    }

    /// The same of a field on `place`: first and end along i, j and k; one along an axis that it lacks.
    pub fn inner_of(&self, place: Place) -> [Range<usize>; 3] {
        let Region { i, j, k, .. } = self.inner();
        let levels = match place.levels {
            Levels::None => 0..1,
            Levels::Full => k,
            Levels::Interfaces => k.start..k.end + 1,
        };
        if place.horizontal { [i, j, levels] } else { [0..1, 0..1, levels] }
    }

    /// Whether a stage on a region computes every element of a variable: of interfaces the last is never computed.
    pub fn computes_all(&self, region: &Region, variable: VariableId) -> bool {
        *region == self.inner() && self.program.variables[variable].place.levels != Levels::Interfaces
    }

    /// Whether a variable is read beyond an edge that has a rule, so that its halo has to be filled.
    pub fn needs_halo(&self, variable: VariableId) -> bool {
        let (edges, place) = (&self.edges[variable.index()], self.program.variables[variable].place);
        GridAxis::ends()
            .any(|(axis, side)| axis.is_of(place) && self.halo.width(axis, side) > 0 && edges.has(axis, side))
    }
}

/// Boundaries along i and j are of grids in rows.
fn check_form(program: &Program, domain: Grid, adjacency: Option<&Adjacency>) -> Result<(), Refusal> {
    if domain.form == Form::Rows {
        return Ok(());
    }
    for (_, variable) in program.variables.iter() {
        let is_wrong = |&(axis, side): &(GridAxis, Side)| axis != GridAxis::K && variable.edges.has(axis, side);
        if let Some((axis, _)) = GridAxis::ends().find(is_wrong) {
            let grid = adjacency.map_or("", |adjacency| adjacency.name.as_told());
            return Err(Refusal::new(format!(
                "`{}` has a boundary along `{axis}`, and the grid `{grid}` has no edge there: its cells stand in no rows",
                variable.name
            ))
            .help("of such a grid its file says which cells are neighbours: link those on both sides, or leave the boundary out"));
        }
    }
    Ok(())
}

/// How far any call reads beyond edges that have a rule.
fn widths(program: &Program, precision: Precision) -> Halo {
    let mut halo = Halo::default();
    for call in program.calls() {
        let reaches = reaches(&needed(&fold(&program.stencils[call.stencil], precision)));
        for (binding, reach) in call.fields.iter().zip(reaches) {
            let (Some(read), Some(reach)) = (binding.read, reach) else { continue };
            let edges = &program.variables[read].edges;
            for (axis, side) in GridAxis::ends().filter(|&(axis, side)| edges.has(axis, side)) {
                halo.widen(axis, side, beyond(reach, axis, side));
            }
        }
    }
    halo
}

/// How many cells beyond a side lie within a reach.
fn beyond(reach: Extents, axis: GridAxis, side: Side) -> usize {
    reach.along(axis)[side as usize].unsigned_abs() as usize
}

/// A reach beyond the array's length has no meaning.
fn check_widths(program: &Program, domain: Grid, halo: &Halo) -> Result<(), Refusal> {
    for (axis, n) in GridAxis::ALL.into_iter().zip([domain.ni, domain.nj, domain.nk]) {
        let width = Side::BOTH.map(|side| halo.width(axis, side)).into_iter().max().unwrap_or(0);
        if width > n {
            return Err(Refusal::new(format!(
                "the grid {domain} is too small for program `{}`: it has {n} cells along {axis}, and {width} beyond an edge are read",
                program.name
            ))
            .help("give a larger grid"));
        }
    }
    Ok(())
}

impl Program {
    /// A stencil that has the program's declared fields and parameters, and computes nothing: what there is to give to
    /// the program, and to take from it.
    pub fn facade(&self) -> Stencil {
        let mut facade = Stencil { name: self.name.clone(), doc: self.doc.clone(), ..self.numbers.clone() };
        facade.file = self.file.clone();
        // Those that stand for numbers are nothing to be given, and what is made of them is worth nothing here.
        facade.fields = crate::ir::Arena::new();
        for (id, def) in self.numbers.defs.iter() {
            if !self.numbers_in(&def.body).is_empty() {
                let mut body = Body::new();
                let zero = match def.body.kind() {
                    Kind::Real => Value::Real(0.0),
                    Kind::Int => Value::Int(0),
                    Kind::Bool => Value::Bool(false),
                };
                body.add(Node::literal(zero), def.body.kind(), Default::default());
                facade.defs[id].body = body;
            }
        }
        for (_, variable) in self.variables.iter() {
            if let Some(role) = variable.role {
                facade.fields.add(variable.field(role));
            }
        }
        facade
    }

    /// Those of its variables that are declared: the fields of its [`Program::facade`].
    pub fn outer(&self) -> impl Iterator<Item = VariableId> {
        self.variables.iter().filter(|(_, variable)| variable.role.is_some()).map(|(id, _)| id)
    }
}

#[cfg(test)]
mod tests;
