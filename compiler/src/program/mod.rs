//! A program on a grid: the halo that its fields need, the cells that each call computes, the numbers that it passes.
//!
//! A field whose boundary says what lies beyond an edge gets a **halo** of cells there, as many as any call reads beyond
//! the edge, filled by the rule. On the grid with its halo, a call is a stencil like any other; all else stays as it is.

mod fuse;
mod halo;
mod numbers;
mod region;

use crate::analysis::extents::{Extents, reaches};
use crate::diagnostic::Refusal;
use crate::grid::{Adjacency, Form, Grid, Region};
use crate::ir::program::{Action, Call, EdgeRule, GridAxis, Side};
use crate::ir::scalar::Value;
use crate::ir::{FieldId, Handle, Levels, Place, Precision, Program, Stencil, VariableId, fold};
use crate::plan::prepare;
pub use fuse::{Fuse, Fusing};
pub use halo::{Beyond, EdgeValues, Halo, Source};
use numbers::Numbers;
use region::Known;

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
    /// By variable: what lies beyond its edges.
    pub edges: Vec<EdgeValues>,
    /// By the calls of the program, in the order of the text: the stencils that are computed.
    pub stages: Vec<Stage>,
    /// What it does, with numbers for bodies.
    pub steps: Vec<Step>,
}

/// A call: a stencil on the grid with its halo.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The stencil, contracted and folded, where `k` and `nk` are those of the arrays.
    pub stencil: Stencil,
    /// The values of its parameters.
    pub params: Vec<Value>,
    /// What it computes, on the grid with its halo.
    pub region: Region,
    /// Whether that is every cell of the arrays.
    pub is_whole: bool,
    /// Whether it fetches what lies beyond an edge from the other end, and needs no halo.
    pub wraps: bool,
    /// Of a stage that may be done any number of times at once: which output becomes which input the next time.
    pub carry: Vec<(FieldId, FieldId)>,
    /// The call.
    pub call: Call,
}

/// What a program does.
#[derive(Clone, Debug)]
pub enum Step {
    /// Computes a stage, by its number.
    Stage(usize),
    /// Gives a variable (the second) the value of another.
    Rename(VariableId, VariableId),
    /// Does something several times.
    Repeat(Loop),
}

/// Something that is done several times.
#[derive(Clone, Debug)]
pub struct Loop {
    /// How often.
    pub times: usize,
    /// What is done each time.
    pub steps: Vec<Step>,
    /// Variables that are made in it, anew each time.
    pub names: Vec<VariableId>,
    /// What does the same as several times.
    pub wide: Option<Wide>,
    /// The stage that does the same as any number of times, one at least.
    pub whole: Option<usize>,
}

impl Step {
    /// How often an outermost loop is run; 0 of what is none.
    pub fn times(&self) -> u64 {
        match self {
            Step::Repeat(own) => own.times as u64,
            Step::Stage(_) | Step::Rename(..) => 0,
        }
    }
}

/// Several times of a loop at once.
#[derive(Clone, Debug)]
pub struct Wide {
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
        let numbers = Numbers::new(&program.numbers, precision, contract, domain.nk, params);
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
            edges,
            stages: Vec::new(),
            steps: Vec::new(),
        };
        let mut known = Known::new(&staged);
        staged.steps = staged.actions(&program.actions, &numbers, contract, adjacency, &mut known)?;
        Ok(staged)
    }

    fn actions(
        &mut self,
        actions: &[Action],
        numbers: &Numbers,
        contract: bool,
        adjacency: Option<&Adjacency>,
        known: &mut Known,
    ) -> Result<Vec<Step>, Refusal> {
        let mut steps = Vec::new();
        for action in actions {
            steps.push(match action {
                Action::Call(call) => {
                    let stage = self.stage(call, numbers, contract, adjacency, known)?;
                    self.stages.push(stage);
                    Step::Stage(self.stages.len() - 1)
                }
                Action::Rename(rename) => {
                    known.rename(rename.from, rename.to);
                    Step::Rename(rename.from, rename.to)
                }
                Action::Number(_) => return Err(Refusal::new("numbers change in programs over a mesh alone")),
                Action::Repeat(repeat) => {
                    let times = numbers.value(&repeat.times).int();
                    let times = usize::try_from(times).map_err(|_| {
                        Refusal::new(format!("program `{}` repeats something {times} times", self.program.name))
                            .help("the number of repetitions is at least 0")
                    })?;
                    let ids = || self.program.variables.handles();
                    let before: Vec<bool> = ids().map(|id| known.has(id)).collect();
                    // What has values before the first time has them each time.
                    let steps = self.actions(&repeat.actions, numbers, contract, adjacency, known)?;
                    let is_new = |id: &VariableId| {
                        self.program.variables[*id].role.is_none() && !before[id.index()] && known.has(*id)
                    };
                    let names = self.program.variables.handles().filter(is_new).collect();
                    Step::Repeat(Loop { times, steps, names, wide: None, whole: None })
                }
            });
        }
        Ok(steps)
    }

    fn stage(
        &self,
        call: &Call,
        numbers: &Numbers,
        contract: bool,
        adjacency: Option<&Adjacency>,
        known: &mut Known,
    ) -> Result<Stage, Refusal> {
        let levels = [self.halo.low[2], self.halo.high[2]];
        let lowered = &self.program.stencils[call.stencil];
        if !lowered.sweeps.is_empty() && levels != [0, 0] {
            return Err(Refusal::new(format!(
                "`{}` sweeps over the levels, and in program `{}` something is read beyond the edges along k",
                lowered.name, self.program.name
            ))
            .help("guard the reads, as in `if k > 0 { a[k-1] } else { a }`, and leave out the boundary along k"));
        }
        let stencil = prepare(&halo::moved(lowered, levels.map(|levels| levels as i32)), self.precision, contract);
        let mut params = Vec::new();
        for ((id, param), given) in stencil.params.iter().zip(&call.params) {
            let value = match (given, param.default.as_ref()) {
                (Some(body), _) => numbers.value(body),
                (None, Some(default)) => numbers.literal(default),
                (None, None) => {
                    let name = &stencil.params[id].name;
                    return Err(Refusal::new(format!("the parameter `{name}` of `{}` has no value", stencil.name)));
                }
            };
            params.push(value);
        }
        let region = region::region(self, &stencil, call, &params, adjacency, known)?;
        known.write(self, call, &region);
        let is_whole = region::is_whole(self, &region);
        Ok(Stage { stencil, params, region, is_whole, wraps: false, carry: Vec::new(), call: call.clone() })
    }

    /// The stencil of a stage for a grid without its halo: there, `k` and `nk` are those of the arrays.
    pub fn without_halo(&self, stencil: &Stencil) -> Stencil {
        halo::moved(stencil, [-(self.halo.low[2] as i32), -(self.halo.high[2] as i32)])
    }

    /// The cells of the arrays, on the grid with its halo.
    pub fn inner(&self) -> Region {
        let along = |axis: usize, count: usize| self.halo.low[axis]..self.halo.low[axis] + count;
        let Grid { ni, nj, nk, form } = self.domain;
        let cells = (form == Form::Cells).then(|| (0..ni as u32).collect());
        Region { i: along(0, ni), j: along(1, nj), k: along(2, nk), cells }
    }

    /// The cells of the arrays on which every declared output is computed, without a halo.
    pub fn computed(&self) -> Region {
        let Grid { ni, nj, nk, form } = self.domain;
        let mut region =
            Region { i: 0..ni, j: 0..nj, k: 0..nk, cells: (form == Form::Cells).then(|| (0..ni as u32).collect()) };
        let is_outer = |id: VariableId| self.program.variables[id].role.is_some();
        for stage in self.stages.iter().filter(|stage| stage.call.writes().any(is_outer)) {
            let common = |own: std::ops::Range<usize>, of: &std::ops::Range<usize>, low: usize| {
                let start = own.start.max(of.start - low);
                start..own.end.min(of.end - low).max(start)
            };
            region.i = common(region.i, &stage.region.i, self.halo.low[0]);
            region.j = common(region.j, &stage.region.j, self.halo.low[1]);
            region.k = common(region.k, &stage.region.k, self.halo.low[2]);
            if let (Some(own), Some(of)) = (&region.cells, &stage.region.cells) {
                region.cells = Some(own.iter().copied().filter(|cell| of.binary_search(cell).is_ok()).collect());
            }
        }
        region
    }

    /// The same of a field on `place`: first and end along i, j and k; one along an axis that it lacks.
    pub fn inner_of(&self, place: Place) -> [std::ops::Range<usize>; 3] {
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
        region::is_whole(self, region) && self.program.variables[variable].place.levels != Levels::Interfaces
    }

    /// Whether a variable is read beyond an edge that has a rule, so that its halo has to be filled.
    pub fn needs_halo(&self, variable: VariableId) -> bool {
        let (edges, place) = (&self.edges[variable.index()], self.program.variables[variable].place);
        GridAxis::ALL.into_iter().any(|axis| {
            let width = |side: Side| self.halo.width(axis, side);
            axis.is_of(place) && Side::BOTH.into_iter().any(|side| width(side) > 0 && edges.has(axis, side))
        })
    }
}

/// Boundaries along i and j are of grids in rows.
fn check_form(program: &Program, domain: Grid, adjacency: Option<&Adjacency>) -> Result<(), Refusal> {
    if domain.form == Form::Rows {
        return Ok(());
    }
    for (_, variable) in program.variables.iter() {
        for axis in [GridAxis::I, GridAxis::J] {
            if Side::BOTH.into_iter().any(|side| variable.edges.has(axis, side)) {
                let grid = adjacency.map_or("", |adjacency| adjacency.name.as_str());
                return Err(Refusal::new(format!(
                    "`{}` has a boundary along `{axis}`, and the grid `{grid}` has no edge there: its cells stand in no rows",
                    variable.name
                ))
                .help("of such a grid its file says which cells are neighbours: link those on both sides, or leave the boundary out"));
            }
        }
    }
    Ok(())
}

/// How far any call reads beyond edges that have a rule.
fn widths(program: &Program, precision: Precision) -> Halo {
    let mut halo = Halo::default();
    for call in program.calls() {
        let reaches = reaches(&fold(&program.stencils[call.stencil], precision));
        for (seat, reach) in call.fields.iter().zip(reaches) {
            let (Some(read), Some(reach)) = (seat.read, reach) else { continue };
            let edges = &program.variables[read].edges;
            for axis in GridAxis::ALL {
                for side in Side::BOTH.into_iter().filter(|&side| edges.has(axis, side)) {
                    halo.widen(axis, side, beyond(reach, axis, side));
                }
            }
        }
    }
    halo
}

/// How many cells beyond a side lie within a reach.
fn beyond(Extents { low, high }: Extents, axis: GridAxis, side: Side) -> usize {
    let (low, high) = match axis {
        GridAxis::I => (low.i, high.i),
        GridAxis::J => (low.j, high.j),
        GridAxis::K => (low.k, high.k),
    };
    if side == Side::Low { low.unsigned_abs() as usize } else { high.unsigned_abs() as usize }
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
        for (_, variable) in self.variables.iter() {
            let crate::ir::program::Variable { name, doc, place, stored, range, span, .. } = variable.clone();
            if let Some(role) = variable.role {
                facade.fields.add(crate::ir::Field { name, doc, role, place, stored, range, span });
            }
        }
        facade
    }

    /// Those of its variables that are declared: the fields of its [`Program::facade`].
    pub fn outer(&self) -> impl Iterator<Item = VariableId> {
        self.variables.iter().filter(|(_, variable)| variable.role.is_some()).map(|(id, _)| id)
    }
}

/// What a rule gives beyond an edge.
fn beyond_of(rule: &EdgeRule, numbers: &Numbers) -> Option<Beyond> {
    Some(match rule {
        EdgeRule::Halo => return None,
        EdgeRule::Periodic => Beyond::Periodic,
        EdgeRule::Copy => Beyond::Copy,
        EdgeRule::Mirror => Beyond::Mirror,
        EdgeRule::Value(body) => Beyond::Value(numbers.value(body)),
    })
}

#[cfg(test)]
mod tests;
