//! Random programs over meshes that the checker takes.

use super::tree::{Action, End, Number, Place, Program, Role, Variable, results};
use crate::over::generate::{self, Style};
use crate::over::tree::{Field, Levels, Stencil, Stored};
use fastrand::Rng;

/// The program of a seed.
pub fn program(seed: u64) -> Program {
    let mut rng = Rng::with_seed(seed ^ 0x6368_6169_6e73);
    // A third are one call of any stencil.
    let is_alone = rng.usize(0..3) == 0;
    let mesh = loop {
        let mesh = generate::mesh(&mut rng);
        // Somebody leads somewhere.
        if is_alone || mesh.maps.iter().any(|map| mesh.sets[map.from] > 0 && mesh.sets[map.to] > 0) {
            break mesh;
        }
    };
    let (stencils, variables) = (Vec::new(), Vec::new());
    let program = Program { mesh, stencils, variables, params: Vec::new(), actions: Vec::new() };
    let mut writer = Writer { rng, program, visible: Vec::new(), is_last: false };
    writer.write(is_alone);
    writer.program.declared_as_used()
}

struct Writer {
    rng: Rng,
    program: Program,
    /// Variables that have a value here, numbers among them, the latest last.
    visible: Vec<usize>,
    /// Whether the last call is written: what it gives is declared.
    is_last: bool,
}

impl Writer {
    fn one_in(&mut self, count: usize) -> bool {
        self.rng.usize(0..count) == 0
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.rng.usize(0..from.len())].clone()
    }

    fn write(&mut self, is_alone: bool) {
        for _ in 0..self.rng.usize(0..3) {
            let is_whole = self.rng.bool();
            let default = if is_whole { self.pick(&[1.0, 2.0, 3.0]) } else { self.pick(&[0.5, -0.25, 1.5]) };
            self.program.params.push((default, is_whole));
        }
        let mut actions = Vec::new();
        if is_alone {
            let (mesh, over) = (self.program.mesh.clone(), self.rng.usize(0..self.program.mesh.sets.len()));
            let stencil = generate::of_program(&mut self.rng, &mesh, over, Style::Any, &[]);
            self.program.stencils.push(stencil);
        } else {
            self.stencils();
            self.actions_and_loops(&mut actions);
        }
        // Something comes out.
        self.is_last = true;
        actions.extend(self.call(true));
        self.program.actions = actions;
    }

    fn actions_and_loops(&mut self, actions: &mut Vec<Action>) {
        for _ in 0..self.rng.usize(1..3) {
            let inside = if self.one_in(2) { 0 } else { self.rng.usize(1..5) };
            let count = self.rng.usize(1..5);
            actions.extend(self.actions(count));
            if inside > 0 {
                let (times, visible) = (self.times(), self.visible.clone());
                actions.push(Action::Repeat(times, self.actions(inside)));
                // What a loop makes ends with it.
                self.visible = visible;
            }
        }
    }

    /// Stencils that add to the elements of a set, those over that set, and others.
    fn stencils(&mut self) {
        let mesh = self.program.mesh.clone();
        let maps: Vec<(usize, usize)> = mesh.maps.iter().map(|map| (map.from, map.to)).collect();
        let maps: Vec<_> = maps.into_iter().filter(|(from, to)| mesh.sets[*from] > 0 && mesh.sets[*to] > 0).collect();
        let (_, target) = self.pick(&maps);
        let levels = if mesh.levels.is_some() { Levels::All } else { Levels::None };
        let of = |set: usize, stored: Stored, parts: usize| Field {
            stored,
            set,
            map: None,
            parts,
            levels,
            everywhere: false,
        };
        let mut types = vec![of(target, Stored::Real, 1)];
        for _ in 0..self.rng.usize(0..4) {
            let stored = self.pick(&[Stored::Real, Stored::Real, Stored::F32, Stored::F64, Stored::Int]);
            let set = if self.one_in(3) { self.rng.usize(0..mesh.sets.len()) } else { target };
            let parts = self.pick(&[1, 1, 2]);
            types.push(of(set, stored, parts));
        }
        for other in [Levels::None, Levels::Interfaces] {
            if let Some(field) = types.last().cloned().filter(|_| mesh.levels.is_some() && self.one_in(3)) {
                types.push(Field { levels: other, ..field });
            }
        }
        for _ in 0..self.rng.usize(2..6) {
            let adding: Vec<usize> = maps.iter().filter(|(_, to)| *to == target).map(|(from, _)| *from).collect();
            let (over, style) = match self.rng.usize(0..8) {
                0..3 => (self.pick(&adding), Style::Adds(target)),
                3..7 => (target, Style::Own),
                _ => (self.rng.usize(0..mesh.sets.len()), Style::Any),
            };
            let stencil = generate::of_program(&mut self.rng, &mesh, over, style, &types);
            self.program.stencils.push(stencil);
        }
    }

    fn actions(&mut self, count: usize) -> Vec<Action> {
        let mut actions = Vec::new();
        for _ in 0..count {
            let declared = self.one_in(2);
            actions.extend(match self.rng.usize(0..12) {
                0 => self.rename(),
                1 => Some(self.number()),
                _ => self.call(declared),
            });
        }
        if !actions.iter().any(|own| matches!(own, Action::Call { .. })) {
            actions.extend(self.call(false));
        }
        actions
    }

    /// How often something is repeated.
    fn times(&mut self) -> Number {
        let wholes: Vec<usize> = (0..self.program.params.len()).filter(|&n| self.program.params[n].1).collect();
        match self.rng.usize(0..3) {
            0 if !wholes.is_empty() => Number::Param(self.pick(&wholes)),
            1 if !wholes.is_empty() => {
                Number::Binary('+', Box::new(Number::Param(self.pick(&wholes))), Box::new(Number::Int(1)))
            }
            _ => Number::Int(self.rng.i32(1..5)),
        }
    }

    fn variable(&mut self, field: Option<Field>, role: Option<Role>) -> usize {
        self.program.variables.push(Variable { field, role });
        self.program.variables.len() - 1
    }

    /// Variables of a type that have a value.
    fn at_hand(&self, field: Option<&Field>) -> Vec<usize> {
        let is_fitting = |n: &&usize| self.program.variables[**n].field.as_ref() == field;
        self.visible.iter().filter(is_fitting).copied().collect()
    }

    /// A variable to read: mostly a late one, or else a new input.
    fn read(&mut self, field: &Field) -> usize {
        let own = self.at_hand(Some(field));
        if own.is_empty() || self.one_in(8) {
            let role = if field.map.is_some() || field.everywhere || self.rng.bool() { Role::In } else { Role::InOut };
            let new = self.variable(Some(field.clone()), Some(role));
            self.visible.insert(0, new);
            return new;
        }
        own[self.rng.usize(own.len().saturating_sub(3)..own.len())]
    }

    /// A variable that nobody changes.
    fn read_input(&mut self, field: &Field) -> usize {
        let all = self.program.variables.iter().enumerate();
        let own: Vec<usize> = all
            .filter(|(_, own)| own.role == Some(Role::In) && own.field.as_ref() == Some(field))
            .map(|(number, _)| number)
            .collect();
        if own.is_empty() || self.one_in(4) {
            let new = self.variable(Some(field.clone()), Some(Role::In));
            self.visible.insert(0, new);
            return new;
        }
        self.pick(&own)
    }

    /// A name for a result.
    fn target(&mut self, field: Option<&Field>, fresh: bool, taken: &[usize]) -> usize {
        if fresh {
            return self.variable(field.cloned(), None);
        }
        let variables = self.program.variables.iter().enumerate();
        let own = variables.filter(|(n, own)| {
            let is_written = match own.role {
                Some(role) => role != Role::In,
                // What `let` has made of a field can be given another value.
                None => field.is_some() && self.visible.contains(n),
            };
            is_written && own.field.as_ref() == field && !taken.contains(n)
        });
        let own: Vec<usize> = own.map(|(n, _)| n).collect();
        match self.is_last || own.is_empty() || self.one_in(4) {
            // A number has a value before it is read, and comes from nowhere.
            true if field.is_none() => self.variable(None, Some(Role::Out)),
            true => self.variable(field.cloned(), Some(Role::InOut)),
            false => self.pick(&own),
        }
    }

    fn see(&mut self, own: usize) {
        self.visible.retain(|other| *other != own);
        self.visible.push(own);
    }

    fn call(&mut self, declared: bool) -> Option<Action> {
        let stencil = self.rng.usize(0..self.program.stencils.len());
        let own: Stencil = self.program.stencils[stencil].clone();
        let mut inputs = Vec::new();
        for (number, field) in own.inputs.iter().enumerate() {
            inputs.push(if own.offsets.contains(&number) { self.read_input(field) } else { self.read(field) });
        }
        let mut sums: Vec<Option<usize>> = Vec::new();
        for field in &own.sums {
            let from = if self.one_in(2) { None } else { Some(self.read(field)) };
            sums.push(from);
        }
        let params = (0..own.params).map(|_| self.real()).collect();
        let (fresh, mut targets) = (!declared, Vec::new());
        for field in results(&own) {
            let target = self.target(field.as_ref(), fresh, &targets);
            targets.push(target);
        }
        targets.iter().for_each(|&target| self.see(target));
        let place = self.place(&own);
        Some(Action::Call { stencil, inputs, sums, params, targets, fresh, place })
    }

    /// Where a call is computed: mostly wherever its stencil is.
    fn place(&mut self, own: &Stencil) -> Place {
        let count = own.mesh.zones[own.over].0;
        let zones = (count > 0 && self.one_in(4)).then(|| {
            let (low, high) = own.zones.unwrap_or((0, count - 1));
            // Something of what the stencil computes itself.
            let first = self.rng.u8(0..=high);
            (first, self.rng.u8(first.max(low)..count))
        });
        let Some(levels) = own.mesh.levels.filter(|_| own.sweeps.is_empty() && self.one_in(4)) else {
            return Place { zones, levels: None };
        };
        let few = levels > 2;
        // Bounds that are no levels are refused.
        let is_level = |&(default, is_whole): &(f64, bool)| is_whole && default <= levels as f64;
        let params = &self.program.params;
        let wholes: Vec<usize> = (0..params.len()).filter(|&n| is_level(&params[n])).collect();
        // Often those at the ends are left out, next to which there is nothing to read.
        let first = Number::Int(if self.one_in(4) { 0 } else { i32::from(few) });
        let end = match self.rng.usize(0..4) {
            0 => None,
            1 if !wholes.is_empty() => Some(End::At(Number::Param(self.pick(&wholes)))),
            _ if self.one_in(4) => Some(End::All(i64::from(own.is_on_interfaces()))),
            _ => Some(End::All(-i64::from(few))),
        };
        Place { zones, levels: Some((first, end)) }
    }

    /// A real number.
    fn real(&mut self) -> Number {
        let numbers = self.at_hand(None);
        let reals: Vec<usize> = (0..self.program.params.len()).filter(|&n| !self.program.params[n].1).collect();
        match self.rng.usize(0..5) {
            0 | 1 if !numbers.is_empty() => Number::Of(numbers[numbers.len() - 1]),
            2 if !numbers.is_empty() => {
                let op = self.pick(&['+', '*', '/']);
                Number::Binary(op, Box::new(Number::Of(self.pick(&numbers))), Box::new(Number::Real(1.5)))
            }
            3 if !reals.is_empty() => Number::Param(self.pick(&reals)),
            _ => Number::Real(self.pick(&[0.5, 0.125, 1.5])),
        }
    }

    fn number(&mut self) -> Action {
        let (real, set) = (self.real(), self.rng.usize(0..self.program.mesh.sets.len()));
        let value = Number::Binary('+', Box::new(real), Box::new(Number::Size(set)));
        let fresh = self.rng.bool();
        let to = self.target(None, fresh, &[]);
        self.see(to);
        Action::Number { to, value, fresh }
    }

    fn rename(&mut self) -> Option<Action> {
        let fields = |own: &&usize| {
            let field = &self.program.variables[**own].field;
            field.as_ref().is_some_and(|field| field.map.is_none() && !field.everywhere)
        };
        let all: Vec<usize> = self.visible.iter().filter(fields).copied().collect();
        if all.is_empty() {
            return None;
        }
        let (from, fresh) = (self.pick(&all), self.rng.bool());
        let field = self.program.variables[from].field.clone();
        let to = self.target(field.as_ref(), fresh, &[from]);
        self.see(to);
        Some(Action::Rename { from, to, fresh })
    }
}
