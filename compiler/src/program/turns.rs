//! What a program does on its grid: calls in order, and loops turn by turn.
//!
//! Which cells a call computes depends on where its arguments have values, and in a loop that may change from turn to turn: a
//! result of fewer cells, renamed, is what the next turn begins with. So a loop is followed as if it were written out, until a
//! turn begins with what an earlier one began with: from there on everything comes again. In most loops the second turn does
//! what the first did.

use super::numbers::Numbers;
use super::region::{self, Known, There, Wrong};
use super::{Loop, Stage, Staged, Step, Times, halo, narrowing};
use crate::analysis::bounds;
use crate::analysis::levels::{self, depend_on_params};
use crate::analysis::moving::{self, allowed_on_grid, check_said};
use crate::diagnostic::Refusal;
use crate::grid::{Adjacency, Region, shared};
use crate::ir::program::{Action, Call, GridAxis, Repeat, Side};
use crate::ir::scalar::Value;
use crate::ir::{Body, Handle, Node, ParamId, Stencil, VariableId};
use crate::plan::prepare;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// So many turns of loops may begin with other cells than all before them: each may have kernels of its own.
const CHANGING: usize = 256;

/// So many turns are looked at of a loop that has fewer: what it does if it is told to go on.
const AHEAD: usize = 8;

/// Makes steps and stages of actions.
pub(super) struct Stager<'a> {
    staged: &'a mut Staged,
    numbers: &'a Numbers,
    contract: bool,
    adjacency: Option<&'a Adjacency>,
    /// Which variables have values where.
    pub known: Known,
    /// By call: its stencil and the values of its parameters.
    prepared: HashMap<*const Call, (Stencil, Vec<Value>)>,
    /// The stages that calls became, by where what they read has values.
    found: Vec<(*const Call, Vec<Option<There>>, usize)>,
    /// What became of loops, by what they began with.
    loops: Vec<(*const Repeat, Known, Loop, Known)>,
    /// Of the loops around a call: how many turns of each are done.
    done: Vec<usize>,
    /// Turns after the second that began with other cells than all before them.
    changing: usize,
    /// How many turns around a call nobody takes: they are looked at for what would come.
    ahead: usize,
    /// What calls read of which some cells are older than others: where it was computed in any turn, and in the last one.
    pub old: BTreeMap<VariableId, [There; 2]>,
}

/// How much was found out by some time.
#[derive(Clone, Copy)]
struct Mark {
    stages: usize,
    found: usize,
    loops: usize,
}

impl<'a> Stager<'a> {
    pub fn new(staged: &'a mut Staged, numbers: &'a Numbers, contract: bool, adjacency: Option<&'a Adjacency>) -> Self {
        let known = Known::new(staged);
        Self {
            staged,
            numbers,
            contract,
            adjacency,
            known,
            prepared: HashMap::new(),
            found: Vec::new(),
            loops: Vec::new(),
            done: Vec::new(),
            changing: 0,
            ahead: 0,
            old: BTreeMap::new(),
        }
    }

    pub fn actions(&mut self, actions: &[Action]) -> Result<Vec<Step>, Refusal> {
        let mut steps = Vec::new();
        for action in actions {
            steps.push(match action {
                Action::Call(call) => Step::Stage(self.call(call)?),
                Action::Rename(rename) => {
                    self.known.rename(rename.from, rename.to);
                    Step::Rename(rename.from, rename.to)
                }
                Action::Number(number) => Step::Number(number.to, number.value.clone()),
                Action::Repeat(repeat) => Step::Repeat(self.repeat(repeat)?),
            });
        }
        Ok(steps)
    }

    fn repeat(&mut self, repeat: &Repeat) -> Result<Loop, Refusal> {
        let times = self.numbers.value(&repeat.times).int();
        let times = usize::try_from(times).map_err(|_| {
            Refusal::new(format!("program `{}` repeats something {times} times", self.staged.program.name))
                .help("the number of repetitions is at least 0")
        })?;
        let (own, before) = (std::ptr::from_ref(repeat), self.known.clone());
        let known = self.loops.iter().find(|(other, begin, ..)| *other == own && *begin == before);
        if let Some((_, _, own, after)) = known {
            self.known = after.clone();
            return Ok(own.clone());
        }
        let followed = self.followed(repeat, times)?;
        self.loops.push((own, before, followed.clone(), self.known.clone()));
        Ok(followed)
    }

    /// A loop, turn by turn.
    fn followed(&mut self, repeat: &Repeat, times: usize) -> Result<Loop, Refusal> {
        let before = self.known.clone();
        let variables = &self.staged.program.variables;
        let is_new = |id: &VariableId| !variables[*id].is_looked_at() && !before.has(*id);
        let new: Vec<VariableId> = variables.handles().filter(is_new).collect();
        let mut names: Vec<VariableId> = Vec::new();
        let mut marks = vec![self.mark()];
        // What each turn begins with, does, and leaves.
        let (mut begins, mut turns, mut ends) = (vec![before.clone()], Vec::<Vec<Step>>::new(), Vec::<Known>::new());
        let again = loop {
            let turn = turns.len();
            let is_over = turn >= times;
            if is_over && turn >= AHEAD {
                break turn;
            }
            if turn > 1 && !is_over {
                self.changing += 1;
                if self.changing > CHANGING {
                    return Err(self.too_many(turn));
                }
            }
            self.done.push(turn);
            self.ahead += usize::from(is_over);
            let steps = self.actions(&repeat.actions);
            self.ahead -= usize::from(is_over);
            self.done.pop();
            match steps {
                Ok(steps) => turns.push(steps),
                // A turn that nobody takes may be wrong.
                Err(_) if is_over => break turn,
                Err(wrong) => return Err(wrong),
            }
            marks.push(self.mark());
            ends.push(self.known.clone());
            names.extend(new.iter().filter(|&&id| turn == 0 && self.known.has(id)));
            // A name that a loop makes is new in each turn.
            new.iter().for_each(|&id| self.known.forget(id));
            if let Some(place) = begins.iter().position(|begin| *begin == self.known) {
                break place;
            }
            begins.push(self.known.clone());
        };
        let mut own = Loop {
            times: Times::Known(times),
            counter: repeat.counter,
            turns,
            again,
            names,
            unrolled: None,
            whole: None,
        };
        self.known = match times.checked_sub(1) {
            Some(last) => ends[own.number(last)].clone(),
            None => before,
        };
        let comes_again = own.again < own.turns.len();
        own.shorten();
        // Of a loop that is run no time there are kernels all the same.
        let kept = times.max(1);
        if !comes_again || own.turns.len() > kept {
            own.turns.truncate(kept);
            own.again = own.turns.len();
            self.reset(marks[own.turns.len()]);
        }
        Ok(own)
    }

    fn too_many(&self, turn: usize) -> Refusal {
        let last = self.staged.stages.last().and_then(|stage| {
            let same = |own: &&Stage| own.call.span == stage.call.span && own.call.stencil == stage.call.stencil;
            let regions: Vec<&Region> = self.staged.stages.iter().filter(same).map(|own| &own.region).collect();
            narrowing::endless(self.staged, &stage.call, &regions, turn)
        });
        last.unwrap_or_else(|| {
            let name = &self.staged.program.name;
            Refusal::new(format!(
                "what a loop of program `{name}` begins with differs in each of the first {turn} turns"
            ))
            .help("so many turns would have kernels of their own: write a loop in which fewer fields change places")
        })
    }

    fn mark(&self) -> Mark {
        Mark { stages: self.staged.stages.len(), found: self.found.len(), loops: self.loops.len() }
    }

    /// Forgets what was found out since.
    fn reset(&mut self, mark: Mark) {
        self.staged.stages.truncate(mark.stages);
        self.found.truncate(mark.found);
        self.loops.truncate(mark.loops);
    }

    /// The stage that computes a call now.
    fn call(&mut self, call: &Call) -> Result<usize, Refusal> {
        let own = std::ptr::from_ref(call);
        if !self.prepared.contains_key(&own) {
            let prepared = self.prepared(call)?;
            self.prepared.insert(own, prepared);
        }
        let (stencil, params) = &self.prepared[&own];
        let there = self.known.read_by(self.staged, call);
        let known = self.found.iter().find(|(other, known, _)| *other == own && *known == there);
        let number = match known {
            Some((.., number)) => *number,
            None => {
                let region = region::region(self.staged, stencil, call, params, self.adjacency, &there)
                    .map_err(|wrong| self.narrowed(call, &there, wrong))?;
                let is_whole = region == self.staged.inner();
                let (stencil, params, call) = (stencil.clone(), params.clone(), call.clone());
                let (carry, wraps, changes) = (Vec::new(), false, self.changes(&call));
                // What lies beyond an edge is no level that data, or a number, may say.
                let levels: Vec<Range<usize>> = (stencil.fields.iter().zip(&there))
                    .map(|((_, field), there)| {
                        let [.., inner] = self.staged.inner_of(field.place);
                        there.as_ref().map_or(inner.clone(), |there| shared(&inner, there.along(GridAxis::K)))
                    })
                    .collect();
                let known = levels::Known::new(&stencil, self.staged.precision, self.staged.grid.nk, &params);
                let computed = (self.staged.domain.form, region.k.clone());
                let halo = Side::BOTH.map(|side| self.staged.halo.width(GridAxis::K, side));
                let may_be_read = moving::There { of: Some(&levels), halo };
                check_said(&stencil, (&known, !changes), region.k.clone(), may_be_read)?;
                let stands = allowed_on_grid(&stencil, (&known, !changes), computed, may_be_read);
                let stage = Stage { stencil, params, changes, region, is_whole, wraps, carry, stands, call };
                self.staged.stages.push(stage);
                self.found.push((own, there, self.staged.stages.len() - 1));
                self.staged.stages.len() - 1
            }
        };
        let region = &self.staged.stages[number].region;
        if self.ahead == 0 {
            self.old.extend(self.known.old_read_by(call, region));
        }
        self.known.write(self.staged, call, region);
        Ok(number)
    }

    fn prepared(&self, call: &Call) -> Result<(Stencil, Vec<Value>), Refusal> {
        let staged = &self.staged;
        let levels = staged.halo.levels();
        let lowered = &staged.program.stencils[call.stencil];
        if !lowered.sweeps.is_empty() && levels != [0, 0] {
            return Err(Refusal::new(format!(
                "`{}` sweeps over the levels, and in program `{}` something is read beyond the edges along k",
                lowered.name, staged.program.name
            ))
            .help("guard the reads, as in `if k > 0 { a[k-1] } else { a }`, and leave out the boundary along k"));
        }
        let moved = halo::moved(lowered, levels);
        let stencil = prepare(&moved, staged.precision, self.contract);
        let mut params = Vec::new();
        for ((id, param), given) in stencil.params.iter().zip(&call.params) {
            let Some(value) = given.as_ref().or(param.default.as_ref()) else {
                let name = &stencil.params[id].name;
                return Err(Refusal::new(format!("the parameter `{name}` of `{}` has no value", stencil.told())));
            };
            params.push(self.numbers.value(value));
        }
        bounds::check_form(lowered, staged.domain)?;
        let known = levels::Known::new(lowered, staged.precision, staged.domain.nk, &params).on(staged.domain);
        GridAxis::ALL.into_iter().try_for_each(|axis| bounds::check(&known, axis))?;
        self.check_levels(call, &stencil, &params)?;
        Ok((stencil, params))
    }

    /// Whether what a call passes changes from turn to turn.
    fn changes(&self, call: &Call) -> bool {
        call.params.iter().flatten().any(|body| self.is_changing(body))
    }

    fn is_changing(&self, body: &Body) -> bool {
        !self.staged.program.numbers_in(body).is_empty()
    }

    /// Refuses a call that may compute other cells in each turn: what it computes is found out once.
    fn check_levels(&self, call: &Call, stencil: &Stencil, params: &[Value]) -> Result<(), Refusal> {
        let changing: Vec<bool> =
            call.params.iter().map(|given| given.as_ref().is_some_and(|body| self.is_changing(body))).collect();
        let Some(first) = changing.iter().position(|&own| own) else { return Ok(()) };
        let of_turn = stencil.map_bodies(|body| {
            body.map_nodes(|node| match node {
                Node::Param(param) if !changing[param.index()] => Node::literal(params[param.index()]),
                node => node.clone(),
            })
        });
        let name = &stencil.params[ParamId::new(first)].name;
        if let Some(field) = moving::said_by_params(&of_turn) {
            return Err(Refusal::new(format!(
                "which level of `{}` `{}` reads depends on `{name}`, which changes with each turn of a loop in program `{}`",
                stencil.fields[field].name,
                stencil.told(),
                self.staged.program.name
            ))
            .help("say the level by a number that stays the same, or write the turns out, each with its own"));
        }
        let what = match (depend_on_params(&of_turn), bounds::columns_depend_on_params(&of_turn)) {
            (true, _) => "levels",
            (false, true) => "columns",
            (false, false) => return Ok(()),
        };
        let help = match what {
            "levels" => {
                "guard reads of other levels by `k` and `nk`, whatever the turn: `if k > 0 { a[k-1] } else { a }`"
            }
            _ => {
                "say where it computes by numbers that stay the same; or choose in the stencil, by a field `on (i, j)`"
            }
        };
        Err(Refusal::new(format!(
            "which {what} `{}` computes depends on `{name}`, which changes with each turn of a loop in program `{}`",
            stencil.told(),
            self.staged.program.name
        ))
        .help(help))
    }

    /// Why a call cannot be computed: in a loop, perhaps since it computes fewer cells in each turn.
    fn narrowed(&self, call: &Call, there: &[Option<There>], wrong: Wrong) -> Refusal {
        let refusal = match wrong {
            Wrong::Empty(refusal) => refusal,
            Wrong::Other(refusal) => return refusal,
        };
        let own = std::ptr::from_ref(call);
        let known = self.found.iter().filter(|(other, ..)| *other == own);
        let regions: Vec<&Region> = known.map(|(.., number)| &self.staged.stages[*number].region).collect();
        match self.done.iter().rev().find(|&&done| done > 0) {
            Some(&done) => narrowing::refusal(self.staged, call, there, &regions, done).unwrap_or(refusal),
            None => refusal,
        }
    }
}
