//! Whole programs: declarations, functions, lets and outputs.

use super::scope::{ARGUMENTS, FIELDS, Function, Guard, Kind, LETS, NAMES, NUMBERS, Origin, Takes, Var, Varies};
use super::{Context, Generator};
use crate::tree::{Declaration, Expr, Program, Statement};

/// Fewest and most expressions that are asked for; what comes out is of this order.
const SIZES: (f64, f64) = (3.0, 130.0);

/// Anything, anywhere.
const OPEN: Context =
    Context { allow: Varies::ALL, constant: false, guard: Guard { down: false, up: false }, folds: 0 };
/// Known when compiling.
const CONSTANT: Context = Context { allow: Varies { horizontal: false, levels: false }, constant: true, ..OPEN };

const PLACES: &[(Option<&str>, Varies, bool)] = &[
    (None, Varies::ALL, false),
    (None, Varies::ALL, false),
    (None, Varies::ALL, false),
    (Some("i, j, k"), Varies::ALL, false),
    (Some("i, j"), Varies { horizontal: true, levels: false }, false),
    (Some("k"), Varies { horizontal: false, levels: true }, false),
    (Some("i, j, k+1"), Varies::ALL, true),
    (Some("k+1"), Varies { horizontal: false, levels: true }, true),
];

/// What `f32` is also called.
pub const NAMED: &str = "vp";

const STORED: &[(Option<&str>, Kind)] = &[
    (None, Kind::Real),
    (None, Kind::Real),
    (None, Kind::Real),
    (Some("real"), Kind::Real),
    (Some("f32"), Kind::Real),
    (Some("f64"), Kind::Real),
    (Some("int"), Kind::Int),
    (Some("bool"), Kind::Bool),
];

impl Generator {
    pub(super) fn program(&mut self) -> Program {
        let (least, most) = SIZES;
        let size = (least * (most / least).powf(self.rng.f64())) as usize;
        let mut items = Vec::new();
        for _ in 0..self.rng.usize(0..3) {
            items.push(self.number_declaration(size));
        }
        for _ in 0..self.rng.usize(0..(1 + size / 12).min(4)) {
            items.push(self.function_declaration(size / 4));
        }
        let name = self.fresh(&["step", "smoothing", "stencil1", "advance", "kernel", "run"]);
        let mut statements = Vec::new();
        let inputs = self.rng.usize(1..(2 + size / 8).min(6));
        let mut outputs: Vec<(String, Kind, Varies)> = Vec::new();
        for _ in 0..inputs {
            statements.push(self.input(&mut outputs));
        }
        if self.is_moving {
            statements.push(self.offset_field());
        }
        let middle = self.rng.usize(0..(2 + size / 10).min(7));
        for _ in 0..middle {
            let statement = match self.rng.u32(0..100) {
                0..12 => Statement::Declare(self.number_declaration(size)),
                12..22 => Statement::Declare(self.function_declaration(size / 4)),
                _ => self.name_a_value((size / (middle + 1)).max(2)),
            };
            statements.push(statement);
        }
        let further = if outputs.is_empty() { 1 } else { 0 } + self.rng.usize(0..(1 + size / 15).min(3));
        for _ in 0..further {
            statements.push(self.output(&mut outputs));
        }
        self.rng.shuffle(&mut outputs);
        let levels = self.chance(12).then(|| self.levels(&statements));
        let has_one_level = matches!(levels, Some(Statement::Within(_, _, None)));
        statements.splice(0..0, levels);
        for (axis, ends) in [('i', ["ni", "ni - 1"]), ('j', ["nj", "nj - 1"])] {
            if self.chance(6) {
                let first = self.pick(&["0", "1", "2", ends[1]]);
                let end = if self.chance(60) { Some(self.pick(&[ends[0], ends[1], "3"])) } else { None };
                statements.insert(0, Statement::Within(axis, first, end));
            }
        }
        let each = (size / (middle + outputs.len()).max(1)).max(2);
        for (name, kind, place) in outputs {
            let allow = Varies { levels: place.levels || has_one_level, ..place };
            let context = Context { allow, ..OPEN };
            let value = match kind {
                Kind::Int => self.int(each, context).0,
                Kind::Bool => self.truth(each, context),
                Kind::Real | Kind::Vector(_) => self.mixed(each, context),
            };
            statements.push(Statement::Assign(name, value));
        }
        // At file level the order is free.
        self.rng.shuffle(&mut items);
        if self.by_level {
            statements.insert(0, Statement::SumsByLevel);
        }
        Program { items, name, statements }
    }

    /// Which levels are computed by a stencil with these fields.
    fn levels(&mut self, fields: &[Statement]) -> Statement {
        let is_on_interfaces = |own: &Statement| match own {
            Statement::Field { role, place, .. } => *role == "in" || place.is_some_and(|place| place.contains("k+1")),
            _ => true,
        };
        let goes_on = fields.iter().all(is_on_interfaces);
        let end = match (goes_on, self.rng.u32(0..4)) {
            (true, 0 | 1) => "nk + 1",
            (_, 0 | 2) => "nk",
            (_, _) => "nk - 1",
        };
        match (goes_on, self.rng.u32(0..6)) {
            (true, 0) => Statement::Within('k', "nk", None),
            (_, 0 | 1) => Statement::Within('k', self.pick(&["0", "1", "nk - 1", "2"]), None),
            (_, _) => Statement::Within('k', self.pick(&["0", "1", "2", "nk - 2"]), Some(end)),
        }
    }

    /// A parameter or a constant.
    fn number_declaration(&mut self, size: usize) -> Declaration {
        let name = self.fresh(NUMBERS);
        let kind = self.pick(&[Kind::Real, Kind::Real, Kind::Int, Kind::Bool]);
        let small = self.rng.usize(1..(2 + size / 10).min(6));
        let varies = Varies::default();
        if self.chance(45) {
            let typed = match kind {
                Kind::Int => Some("int"),
                Kind::Bool => Some("bool"),
                Kind::Real | Kind::Vector(_) => {
                    let typed = self.pick(&[None, Some("real"), Some("f32")]);
                    typed.filter(|_| !self.by_level)
                }
            };
            let default = self.chance(50).then(|| match kind {
                // Not 0, since it may divide.
                Kind::Int => Expr::whole(self.pick(&[1, 2, 3, 5, -1])),
                Kind::Bool => self.truth(small, CONSTANT),
                Kind::Real | Kind::Vector(_) => self.mixed(small, CONSTANT),
            });
            self.vars.push(Var { name: name.clone(), kind, origin: Origin::Param, varies, range: None });
            return Declaration::Param { name, typed, default };
        }
        if self.chance(35) {
            let parts = self.rng.usize(1..5);
            let value = Expr::Vector((0..parts).map(|_| self.real(small.min(3), CONSTANT)).collect());
            let kind = Kind::Vector(parts);
            self.vars.push(Var { name: name.clone(), kind, origin: Origin::Constant, varies, range: None });
            return Declaration::Constant { name, typed: self.pick(&[None, None, Some("f32"), Some("real")]), value };
        }
        let (value, range, typed) = match kind {
            Kind::Int => {
                let (value, range) = self.int(small, CONSTANT);
                (value, range, self.pick(&[None, Some("int")]))
            }
            Kind::Bool => (self.truth(small, CONSTANT), None, self.pick(&[None, Some("bool")])),
            Kind::Real | Kind::Vector(_) => {
                let typed = self.pick(&[None, Some("real"), Some("f32"), Some("f64")]);
                (self.real(small, CONSTANT), None, typed)
            }
        };
        self.vars.push(Var { name: name.clone(), kind, origin: Origin::Constant, varies, range });
        Declaration::Constant { name, typed, value }
    }

    fn function_declaration(&mut self, size: usize) -> Declaration {
        let name = self.fresh(NAMES);
        let mark = self.vars.len();
        let mut takes = Vec::new();
        let mut params = Vec::new();
        for index in 0..self.rng.usize(1..4) {
            let param = self.fresh(ARGUMENTS);
            let own = match self.rng.u32(0..100) {
                _ if index == 0 => Takes::Value(Kind::Real),
                0..40 => Takes::Value(Kind::Real),
                40..50 => Takes::Value(Kind::Int),
                50..57 => Takes::Value(Kind::Bool),
                57..65 => Takes::Value(Kind::Vector(self.rng.usize(1..4))),
                _ => Takes::Whole(self.pick(&[-2, 1, 1]), self.pick(&[1, 2])),
            };
            let (kind, origin, range) = match own {
                Takes::Value(kind) => (kind, Origin::Value, None),
                Takes::Whole(low, high) => (Kind::Int, Origin::Counter, Some((low, high))),
            };
            let varies = Varies::default();
            self.vars.push(Var { name: param.clone(), kind, origin, varies, range });
            params.push(param);
            takes.push(own);
        }
        let gives = self.pick(&[Kind::Real, Kind::Real, Kind::Real, Kind::Int, Kind::Bool, Kind::Vector(2)]);
        let mut range = None;
        let size = self.rng.usize(2..size.max(4));
        // A loop in a function that is called in a loop would grow without bounds.
        let heavy = self.chance(50);
        let context = Context { folds: if heavy { 0 } else { 1 }, ..OPEN };
        let (body, varies) = self.measured(|own| {
            own.block(context, size, |own, size| match gives {
                Kind::Real => own.real(size, context),
                Kind::Bool => own.truth(size, context),
                Kind::Vector(parts) => own.vector(parts, size, context),
                Kind::Int => {
                    let whole = own.int(size, context);
                    range = whole.1;
                    whole.0
                }
            })
        });
        self.vars.truncate(mark);
        self.functions.push(Function { name: name.clone(), takes, gives, varies, range, heavy });
        Declaration::Function { name, params, body }
    }

    /// An `in` or an `inout`, which is also an output.
    fn input(&mut self, outputs: &mut Vec<(String, Kind, Varies)>) -> Statement {
        let (place, varies, interfaces) = self.pick(PLACES);
        let (typed, kind) = self.stored();
        let role = if self.chance(12) { "inout" } else { "in" };
        let mut names = Vec::new();
        for _ in 0..if self.chance(15) { 2 } else { 1 } {
            let name = self.fresh(FIELDS);
            let origin = Origin::Field { interfaces, is_only_read: role == "in" };
            self.vars.push(Var { name: name.clone(), kind, origin, varies, range: None });
            if role == "inout" {
                outputs.push((name.clone(), kind, varies));
            }
            names.push(name);
        }
        let range = (kind != Kind::Bool && self.chance(45)).then(|| match self.rng.u32(0..6) {
            0 if kind == Kind::Int => (Expr::whole(-2_000_000_000), Expr::whole(2_000_000_000)),
            0 => (Expr::whole(0), Expr::whole(4000)),
            1 => (Expr::whole(-20), Expr::whole(20)),
            2 => (Expr::literal("0.5"), Expr::literal("1.5")),
            3 => (Expr::infix("/", Expr::literal(1), Expr::literal(4)), Expr::whole(2)),
            4 => (Expr::whole(-1), Expr::infix("*", Expr::literal(2), Expr::name("pi"))),
            _ => (Expr::whole(0), Expr::whole(3)),
        });
        Statement::Field { role, names, typed, place, range }
    }

    /// A field whose numbers say which levels are read.
    fn offset_field(&mut self) -> Statement {
        let (place, varies, interfaces) = self.pick(PLACES);
        let name = self.fresh(FIELDS);
        let origin = Origin::Field { interfaces, is_only_read: true };
        self.vars.push(Var { name: name.clone(), kind: Kind::Int, origin, varies, range: None });
        let range = self.chance(70).then(|| (Expr::whole(self.pick(&[-9, -2, 0])), Expr::whole(self.pick(&[9, 3, 1]))));
        Statement::Field { role: "in", names: vec![name], typed: Some("int"), place, range }
    }

    /// How a field is stored, and what is read of it.
    fn stored(&mut self) -> (Option<&'static str>, Kind) {
        let (typed, kind) = self.pick(STORED);
        // Sums that are put in order are not rounded on the way.
        let is_named = typed == Some("f32") && !self.by_level && self.chance(50);
        (if is_named { Some(NAMED) } else { typed }, kind)
    }

    fn output(&mut self, outputs: &mut Vec<(String, Kind, Varies)>) -> Statement {
        let (place, varies, _) = self.pick(PLACES);
        let (typed, kind) = self.stored();
        let name = self.fresh(FIELDS);
        self.vars.push(Var { name: name.clone(), kind, origin: Origin::Output, varies, range: None });
        outputs.push((name.clone(), kind, varies));
        Statement::Field { role: "out", names: vec![name], typed, place, range: None }
    }

    fn name_a_value(&mut self, size: usize) -> Statement {
        let size = self.rng.usize(1..size.max(2) * 2);
        let ((value, kind, range), varies) = self.measured(|own| own.any(size, OPEN));
        let name = self.fresh(LETS);
        // The name of a whole constant is one, too.
        let origin = if range.is_some() && value.is_plain() { Origin::Counter } else { Origin::Value };
        self.vars.push(Var { name: name.clone(), kind, origin, varies, range });
        let types = match kind {
            _ if self.by_level => [None, None, None],
            Kind::Real => [Some("f32"), Some("real"), None],
            Kind::Int => [Some("int"), None, None],
            Kind::Bool => [Some("bool"), None, None],
            Kind::Vector(_) => [None, None, None],
        };
        let typed = if self.chance(30) { self.pick(&types) } else { None };
        Statement::Let(name, typed, value)
    }
}
