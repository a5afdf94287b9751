//! Random programs in time that the checker takes, or refuses for what lies beyond an edge.

mod calls;
mod sweeps;

use super::tree::{Action, Boundary, Number, Op, Param, Role, Rule, Shape, Stencil, Stored, Term, Timed, Variable};
use sweeps::{Known, real_of};

/// The most steps of all loops together.
const STEPS: usize = 16;

/// Numbers that every precision holds.
const NUMBERS: [f64; 7] = [0.5, -0.25, 0.125, 1.5, -0.75, 2.0, 0.0625];

const FULL: Shape = Shape { axes: [true; 2], interfaces: false, stored: Stored::Real };
const FLAT: Shape = Shape { axes: [true, false], ..FULL };
const LINE: Shape = Shape { axes: [false, true], ..FULL };

/// Which programs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any.
    Any,
    /// Those whose planes are circles along both axes, and whose levels know nothing of each other.
    Circles,
}

/// The program of a seed. One that does nothing is passed over.
pub fn timed(seed: u64, kind: Kind) -> Timed {
    let mut rng = fastrand::Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x7f4a_7c15);
    loop {
        let timed = Timed {
            stencils: Vec::new(),
            variables: Vec::new(),
            params: Vec::new(),
            boundaries: Vec::new(),
            actions: Vec::new(),
        };
        let (visible, numbers, shapes) = (Vec::new(), Vec::new(), Vec::new());
        let timed =
            Generator { rng: rng.fork(), kind, timed, visible, numbers, named: 0, shapes, sweeps: None, levels: None }
                .write();
        let has_output = timed.variables.iter().any(|own| own.role.is_some_and(Role::is_written));
        if has_output && timed.actions.iter().all(does_something) && timed.actions.iter().any(calls) {
            return timed;
        }
    }
}

/// Whether a stencil is called.
fn calls(action: &Action) -> bool {
    match action {
        Action::Call { .. } => true,
        Action::Rename { .. } | Action::Let(..) => false,
        Action::Repeat(_, inner) => inner.iter().any(calls),
    }
}

/// Whether each loop calls a stencil.
fn does_something(action: &Action) -> bool {
    match action {
        Action::Call { .. } | Action::Rename { .. } | Action::Let(..) => true,
        Action::Repeat(_, inner) => inner.iter().any(calls) && inner.iter().all(does_something),
    }
}

struct Generator {
    rng: fastrand::Rng,
    kind: Kind,
    timed: Timed,
    /// Variables that have a value and a name, at this place of the text.
    visible: Vec<usize>,
    /// Names of numbers, and whether they are whole.
    numbers: Vec<(Number, bool)>,
    named: usize,
    /// Shapes that come up: few, so that there is something that fits.
    shapes: Vec<Shape>,
    /// Of a stencil with sweeps, what is known of them.
    sweeps: Option<Known>,
    /// The shape of a field whose numbers say which levels are read, if there is one.
    levels: Option<Shape>,
}

/// Variables that are assigned.
fn all_targets(actions: &[Action], found: &mut Vec<usize>) {
    for action in actions {
        match action {
            Action::Call { targets, .. } => found.extend(targets),
            Action::Rename { to, .. } => found.push(*to),
            Action::Let(..) => {}
            Action::Repeat(_, inner) => all_targets(inner, found),
        }
    }
}

/// A real number of a whole one.
fn quarter(term: Term) -> Term {
    Term::Binary(Op::Add, Box::new(Term::Number(0.25)), Box::new(term))
}

impl Generator {
    fn chance(&mut self, percent: u32) -> bool {
        self.rng.u32(0..100) < percent
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.rng.usize(0..from.len())].clone()
    }

    fn write(mut self) -> Timed {
        self.shapes = vec![FULL];
        let is_any = self.kind == Kind::Any;
        if self.chance(30) {
            let stored = self.pick(&[Stored::Single, Stored::Double, Stored::Int]);
            self.shapes.push(Shape { stored, ..FULL });
        }
        if self.chance(30) {
            self.shapes.push(FLAT);
        }
        if is_any && self.chance(15) {
            self.shapes.push(LINE);
        }
        if is_any && self.chance(12) {
            self.shapes.push(Shape { interfaces: true, ..FULL });
        }
        self.declare();
        if is_any && self.chance(30) {
            let place = self.pick(&[FULL, FULL, FULL, FLAT, LINE, Shape { interfaces: true, ..FULL }]);
            let shape = Shape { stored: Stored::Levels, ..place };
            self.variable(shape, Some(Role::In));
            self.levels = Some(shape);
        }
        for _ in 0..self.rng.usize(1..5) {
            let stencil = self.stencil();
            self.timed.stencils.push(stencil);
        }
        let count = self.rng.usize(1..5);
        self.timed.actions = match self.kind {
            Kind::Any => self.actions(count, 0, STEPS),
            Kind::Circles => {
                let (times, most) = self.times(STEPS);
                vec![Action::Repeat(times, self.actions(count, 1, STEPS / most.max(1)))]
            }
        };
        self.complete();
        self.boundaries();
        self.timed
    }

    fn declare(&mut self) {
        let shapes = self.shapes.clone();
        for (n, &shape) in shapes.iter().enumerate() {
            let roles: &[Role] = if n == 0 { &[Role::InOut] } else { &[Role::In, Role::InOut] };
            let role = self.pick(roles);
            self.variable(shape, Some(role));
        }
        for _ in 0..self.rng.usize(0..3) {
            let (shape, role) = (self.pick(&shapes), self.pick(&[Role::In, Role::InOut, Role::InOut, Role::Out]));
            self.variable(shape, Some(role));
        }
        for n in 0..self.rng.usize(0..3) {
            let whole = self.chance(50);
            let default = if whole { self.pick(&[1.0, 2.0, 3.0]) } else { self.pick(&NUMBERS) };
            self.timed.params.push(Param { whole, default });
            self.numbers.push((Number::Param(n), whole));
        }
    }

    /// A new variable; one that has a value is visible.
    fn variable(&mut self, shape: Shape, role: Option<Role>) -> usize {
        self.timed.variables.push(Variable { shape, role });
        let own = self.timed.variables.len() - 1;
        if role.is_none_or(Role::is_read) {
            self.visible.push(own);
        }
        own
    }

    fn stencil(&mut self) -> Stencil {
        let shapes = self.shapes.clone();
        // An output on fewer axes depends on nothing that varies along the others.
        let main = if self.chance(75) { FULL } else { self.pick(&shapes) };
        let main = if main == LINE { FULL } else { main };
        let suits = |own: &Shape| (0..2).all(|axis| main.axes[axis] || !own.axes[axis]);
        let inputs: Vec<Shape> = shapes.iter().copied().filter(suits).collect();
        let mut fields: Vec<(Role, Shape)> = Vec::new();
        for _ in 0..self.rng.usize(1..4) {
            let shape = if self.chance(60) { main } else { self.pick(&inputs) };
            fields.push((Role::In, shape));
        }
        let outputs: Vec<Shape> = shapes.iter().copied().filter(|own| own.axes == main.axes).collect();
        for _ in 0..self.rng.usize(1..3) {
            let shape = if self.chance(70) { main } else { self.pick(&outputs) };
            fields.push((self.pick(&[Role::Out, Role::Out, Role::InOut]), shape));
        }
        if let Some(levels) = self.levels.filter(|own| suits(own)) {
            fields.extend(self.chance(60).then_some((Role::In, levels)));
        }
        self.rng.shuffle(&mut fields);
        let params: Vec<Option<f64>> =
            (0..self.rng.usize(0..3)).map(|_| self.chance(50).then(|| self.pick(&NUMBERS))).collect();
        let mut stencil = Stencil { fields, params, lets: Vec::new(), sweeps: Vec::new(), outputs: Vec::new() };
        let reaches = self.chance(75);
        let has_sweeps = self.kind == Kind::Any && main.axes == FULL.axes && self.chance(30);
        self.sweeps = has_sweeps.then(Known::default);
        for _ in 0..self.rng.usize(0..3) {
            let size = self.rng.usize(1..4);
            let term = self.real(&stencil, size, reaches);
            stencil.lets.push(term);
        }
        let mut written: Vec<usize> = (0..stencil.fields.len()).filter(|&n| stencil.fields[n].0.is_written()).collect();
        if has_sweeps {
            self.sweep(&mut stencil, &mut written, reaches);
        }
        for field in written {
            let (size, stored) = (self.rng.usize(1..6), stencil.fields[field].1.stored);
            let term = self.term(&stencil, size, stored, reaches);
            stencil.outputs.push((field, term));
        }
        self.sweeps = None;
        stencil
    }

    /// A value to be stored as something.
    fn term(&mut self, stencil: &Stencil, size: usize, stored: Stored, reaches: bool) -> Term {
        match stored {
            Stored::Int | Stored::Levels => self.whole(stencil, size, reaches),
            Stored::Real | Stored::Single | Stored::Double => self.real(stencil, size, reaches),
        }
    }

    /// An offset along the axes that a shape has.
    fn offset(&mut self, shape: Shape, reaches: bool) -> [i64; 3] {
        let mut by = [0; 3];
        for (axis, by) in by.iter_mut().enumerate() {
            let percent = match (axis, self.kind) {
                (2, Kind::Circles) => 0,
                (2, Kind::Any) => 10,
                _ => 35,
            };
            if !reaches || !shape.has(axis) || !self.chance(percent) {
                continue;
            }
            *by = match axis == 2 && self.sweeps.is_some() {
                // There is an interface below each level.
                true => i64::from(shape.interfaces),
                false => self.pick(&[-1, 1, -1, 1, 2, -2]),
            };
        }
        by
    }

    fn readable(&mut self, stencil: &Stencil, whole: bool) -> Option<(usize, Shape)> {
        let fields = stencil.fields.iter().enumerate();
        let fields: Vec<(usize, Shape)> = fields
            .filter(|(_, (role, shape))| role.is_read() && (!whole || shape.stored == Stored::Int))
            .filter(|(_, (_, shape))| shape.stored != Stored::Levels)
            .map(|(n, (_, shape))| (n, *shape))
            .collect();
        (!fields.is_empty()).then(|| self.pick(&fields))
    }

    fn is_flat(stencil: &Stencil) -> bool {
        stencil.fields.iter().any(|(role, shape)| role.is_written() && !shape.axes[1])
    }

    /// A real value of about so many parts.
    fn real(&mut self, stencil: &Stencil, size: usize, reaches: bool) -> Term {
        if size < 2 {
            return self.leaf(stencil, reaches);
        }
        let left = self.rng.usize(1..size);
        let two = |own: &mut Self| {
            (Box::new(own.real(stencil, left, reaches)), Box::new(own.real(stencil, size - left, reaches)))
        };
        match self.rng.u32(0..100) {
            0..76 => {
                let op = self.pick(&[Op::Add, Op::Add, Op::Sub, Op::Sub, Op::Mul, Op::Min, Op::Max]);
                let (a, b) = two(self);
                Term::Binary(op, a, b)
            }
            76..90 if !Self::is_flat(stencil) && self.kind == Kind::Any => {
                let n = self.rng.i64(0..3);
                let is_above = self.chance(50);
                let (a, b) = two(self);
                // The branch that looks down is taken where there is something below.
                let other = self.guarded(stencil, if is_above { n } else { n.max(1) }, is_above);
                let a = match other {
                    Some(down) if self.chance(60) => {
                        let half = Term::Binary(Op::Mul, Box::new(Term::Number(0.5)), Box::new(down));
                        Box::new(Term::Binary(Op::Add, a, Box::new(half)))
                    }
                    _ => a,
                };
                if is_above { Term::Above(n, a, b) } else { Term::Below(n.max(1), a, b) }
            }
            _ => {
                let (a, c) = two(self);
                let (b, d) = (self.leaf(stencil, reaches), self.leaf(stencil, false));
                Term::Greater(Box::new([*a, b, *c, d]))
            }
        }
    }

    fn leaf(&mut self, stencil: &Stencil, reaches: bool) -> Term {
        let names = self.sweeps.as_ref().map_or(Vec::new(), |known| [&known.before[..], &known.above].concat());
        if !names.is_empty() && self.chance(30) {
            return real_of(stencil, self.pick(&names), 0);
        }
        match self.rng.u32(0..100) {
            0..12 => Term::Number(self.pick(&NUMBERS)),
            12..22 if !stencil.params.is_empty() => Term::Param(self.rng.usize(0..stencil.params.len())),
            // Whole numbers stay by themselves: 0 times -1 is 0 of them, and -0 of real ones.
            22..27 if !Self::is_flat(stencil) => quarter(Term::Level),
            27..52 if !stencil.lets.is_empty() => {
                let shape = if Self::is_flat(stencil) { FLAT } else { FULL };
                Term::Use(self.rng.usize(0..stencil.lets.len()), self.offset(shape, reaches))
            }
            _ => match self.readable(stencil, false) {
                Some((field, shape)) => {
                    let mut by = self.offset(shape, reaches);
                    if self.sweeps.is_some() && stencil.fields[field].0 != Role::In {
                        by[2] = 0;
                    }
                    let on_level = self.on_level(stencil, field, by);
                    let moved = on_level.or_else(|| self.moved(stencil, field, by, reaches));
                    let read = moved.unwrap_or(Term::Read(field, by));
                    if shape.stored == Stored::Int { quarter(read) } else { read }
                }
                None => Term::Number(self.pick(&NUMBERS)),
            },
        }
    }

    /// A field on one level of all.
    fn on_level(&mut self, stencil: &Stencil, field: usize, [i, j, _]: [i64; 3]) -> Option<Term> {
        let (role, shape) = stencil.fields[field];
        let may_be = shape.axes[1] && (self.sweeps.is_none() || role == Role::In);
        let level = may_be && self.kind == Kind::Any && self.chance(8);
        level.then(|| Term::OnLevel(field, [i, j], self.pick(&[0, 0, 1, 2, -1, -1, -2])))
    }

    /// A field on levels that another says, if there is one that does.
    fn moved(&mut self, stencil: &Stencil, field: usize, [i, j, _]: [i64; 3], reaches: bool) -> Option<Term> {
        let (role, shape) = stencil.fields[field];
        let levels = stencil.fields.iter().position(|(_, own)| own.stored == Stored::Levels)?;
        let may_move = shape.axes[1] && (self.sweeps.is_none() || role == Role::In);
        if !may_move || self.chance(40) {
            return None;
        }
        let at = self.offset(stencil.fields[levels].1, reaches);
        let more = if self.chance(20) { self.pick(&[-1, 1]) } else { 0 };
        let of = if self.chance(40) { Term::ByNumber } else { Term::Moved };
        Some(of([field, levels], [[i, j, more], at]))
    }

    /// A whole value.
    fn whole(&mut self, stencil: &Stencil, size: usize, reaches: bool) -> Term {
        if size < 2 {
            return match self.readable(stencil, true) {
                Some((field, shape)) if self.chance(70) => Term::Read(field, self.offset(shape, reaches)),
                _ if self.chance(30) && !Self::is_flat(stencil) => Term::Level,
                _ => Term::Whole(self.pick(&[1, 2, 3, -1])),
            };
        }
        let op = self.pick(&[Op::Add, Op::Sub, Op::Min, Op::Max]);
        let left = self.rng.usize(1..size);
        let (a, b) = (self.whole(stencil, left, reaches), self.whole(stencil, size - left, reaches));
        Term::Binary(op, Box::new(a), Box::new(b))
    }

    fn actions(&mut self, count: usize, deep: usize, steps: usize) -> Vec<Action> {
        let mut actions = Vec::new();
        let (visible, numbers) = (self.visible.len(), self.numbers.len());
        for _ in 0..count {
            match self.rng.u32(0..100) {
                0..62 => actions.extend(self.call()),
                62..72 => actions.extend(self.rename()),
                72..78 => actions.push(self.name_a_number()),
                _ if deep < 2 && steps > 1 => {
                    let (times, at_most) = self.times(steps);
                    let count = self.rng.usize(1..4);
                    let inner = self.actions(count, deep + 1, steps / at_most.max(1));
                    actions.push(Action::Repeat(times, inner));
                }
                _ => actions.extend(self.call()),
            }
        }
        if actions.is_empty() {
            actions.extend(self.call());
        }
        if deep > 0 {
            // Names of a loop end with it, and what got a first value there may have none if it is run no time.
            self.visible.truncate(visible);
            self.numbers.truncate(numbers);
        }
        actions
    }

    /// How often something is repeated, and how often that is at most.
    fn times(&mut self, steps: usize) -> (Number, usize) {
        // Of long loops, launches are recorded.
        let most = if self.chance(15) { steps } else { steps.min(5) };
        let wholes: Vec<Number> = self.numbers.iter().filter(|(_, whole)| *whole).map(|(own, _)| own.clone()).collect();
        if !wholes.is_empty() && self.chance(50) && most >= 4 {
            let own = self.pick(&wholes);
            return match self.chance(30) {
                true => (Number::Sum(Box::new(own), Box::new(Number::Whole(1))), 4),
                false => (own, 4),
            };
        }
        let times = if self.chance(4) { 0 } else { self.rng.usize(1..most + 1) };
        (Number::Whole(times as i64), times)
    }

    fn name_a_number(&mut self) -> Action {
        let real = self.real_number();
        let more = self.pick(&NUMBERS);
        let own = Number::Sum(Box::new(real), Box::new(Number::Literal(more)));
        self.numbers.push((Number::Named(self.named), false));
        self.named += 1;
        Action::Let(self.named - 1, own)
    }

    fn real_number(&mut self) -> Number {
        let reals: Vec<Number> = self.numbers.iter().filter(|(_, whole)| !whole).map(|(own, _)| own.clone()).collect();
        match reals.is_empty() || self.chance(40) {
            true => Number::Literal(self.pick(&NUMBERS)),
            false => self.pick(&reals),
        }
    }

    /// Every declared output is assigned somewhere.
    fn complete(&mut self) {
        let mut assigned = Vec::new();
        all_targets(&self.timed.actions, &mut assigned);
        for variable in 0..self.timed.variables.len() {
            let Variable { role: Some(role), shape } = self.timed.variables[variable] else { continue };
            if !role.is_written() || assigned.contains(&variable) {
                continue;
            }
            let fitting = self.fitting(shape, |own, from| own.visible.contains(&from) && from != variable);
            if fitting.is_empty() {
                self.timed.variables[variable].role = Some(Role::In);
                continue;
            }
            let from = self.pick(&fitting);
            self.timed.actions.push(Action::Rename { from, to: variable, fresh: false });
        }
    }

    fn boundaries(&mut self) {
        if self.kind == Kind::Circles {
            let circle = [Some(Rule::Periodic); 2];
            self.timed.boundaries.push(Boundary { of: None, rules: [circle, circle, [None; 2]] });
            return;
        }
        let has_sweeps = self.timed.stencils.iter().any(|own| !own.sweeps.is_empty());
        let is_whole = |own: &Variable| matches!(own.shape.stored, Stored::Int | Stored::Levels);
        let any_whole = self.timed.variables.iter().any(is_whole);
        let interfaces = self.timed.variables.iter().any(|own| own.shape.interfaces);
        if self.chance(75) {
            let rules = self.rules(FULL, any_whole, interfaces, has_sweeps, 70);
            self.timed.boundaries.push(Boundary { of: None, rules });
        }
        for variable in 0..self.timed.variables.len() {
            if self.chance(15) {
                let shape = self.timed.variables[variable].shape;
                let rules = self.rules(shape, any_whole, interfaces, has_sweeps, 60);
                if rules.iter().flatten().any(Option::is_some) {
                    self.timed.boundaries.push(Boundary { of: Some(variable), rules });
                }
            }
        }
        self.timed.boundaries.retain(|own| own.rules.iter().flatten().any(Option::is_some));
    }

    fn rules(
        &mut self,
        shape: Shape,
        any_whole: bool,
        interfaces: bool,
        flat: bool,
        percent: u32,
    ) -> [[Option<Rule>; 2]; 3] {
        let mut rules = [[None; 2]; 3];
        for (axis, rules) in rules.iter_mut().enumerate() {
            // With sweeps, nothing is read beyond an edge along k.
            let percent = if axis == 2 { if flat { 0 } else { 25 } } else { percent };
            if !shape.has(axis) || !self.chance(percent) {
                continue;
            }
            let value = if any_whole { self.pick(&[2.0, -1.0]) } else { self.pick(&[0.75, -0.5, 2.0]) };
            let single = [Rule::Copy, Rule::Mirror, Rule::OddMirror, Rule::Value(value), Rule::Halo];
            let single = if axis == 2 && interfaces { &[Rule::Copy, Rule::Value(value)][..] } else { &single[..] };
            let periodic = !(axis == 2 && interfaces);
            *rules = match self.rng.u32(0..100) {
                0..55 if periodic => [Some(Rule::Periodic); 2],
                55..80 => [Some(self.pick(single)); 2],
                _ => [Some(self.pick(single)), Some(self.pick(single))],
            };
        }
        rules
    }
}
