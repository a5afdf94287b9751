//! A mesh and a stencil over it, as data, and as text.

use std::collections::BTreeSet;
use std::fmt;

/// Where a slot of a map leads nowhere.
pub const HOLE: i32 = -1;

/// What a hole means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Missing {
    Never,
    Skip,
    Value(i32),
}

#[derive(Clone, Debug)]
pub struct Map {
    pub from: usize,
    pub to: usize,
    pub arity: usize,
    pub missing: Missing,
    pub table: Vec<i32>,
}

#[derive(Clone, Debug)]
pub struct Mesh {
    /// How many elements each set has.
    pub sets: Vec<usize>,
    pub maps: Vec<Map>,
    /// How many levels there are, if there are any.
    pub levels: Option<usize>,
    /// By set, how many zones it has, and the zone of each element.
    pub zones: Vec<(u8, Vec<u8>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Real,
    Int,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    Real,
    F32,
    F64,
    Int,
}

/// Which levels a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Levels {
    /// It is the same on all of them.
    None,
    All,
    /// One more: what is above and below them.
    Interfaces,
}

/// A field: `f3`.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub stored: Stored,
    pub set: usize,
    /// Once for each slot of this map.
    pub map: Option<usize>,
    pub parts: usize,
    pub levels: Levels,
    /// On no set: once a level.
    pub everywhere: bool,
}

/// A way through the mesh: from a counter, or else from the element itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Way {
    pub counter: Option<usize>,
    /// Maps and slots.
    pub hops: Vec<(usize, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    Sum,
    Min,
    Max,
}

/// What leads to a level.
#[derive(Clone, Debug)]
pub enum Leads {
    /// A number of another field says how many levels further it is.
    Further(usize, Way),
    /// A number of another field says the level, together with the offset.
    Itself(usize, Way),
    /// The level itself, or, where it counts from the end, how many less than the last of the levels.
    Said { level: i32, from_end: bool },
}

#[derive(Clone, Debug)]
pub enum Expr {
    Real(f64),
    Int(i32),
    /// A parameter: `p0`.
    Param(usize),
    Read {
        field: usize,
        way: Way,
        k: i32,
        /// What leads to the level, if it is no offset.
        by: Option<Leads>,
    },
    Let {
        number: usize,
        way: Way,
        k: i32,
    },
    /// A value of a sweep: `y0`.
    Swept {
        number: usize,
        k: i32,
    },
    Part(Box<Expr>, usize),
    Vector(Vec<Expr>),
    Binary(char, Box<Expr>, Box<Expr>),
    Negate(Box<Expr>),
    Abs(Box<Expr>),
    Less(Box<Expr>, Box<Expr>),
    Dot(Box<Expr>, Box<Expr>),
    Choose(Box<Cond>, Box<Expr>, Box<Expr>),
    /// The counter's number, the maps that it goes through, of some of them one slot, from a way, and the term.
    Fold {
        fold: Fold,
        counter: usize,
        from: Option<usize>,
        maps: Vec<(usize, Option<usize>)>,
        term: Box<Expr>,
    },
}

#[derive(Clone, Debug)]
pub enum Cond {
    Below(Expr, Expr),
    Present(Way),
    /// Whether there is a level so far away.
    HasLevel(i32),
    /// Whether the element, or the one of this set where a way leads, is in one of some zones: the first and the last of them.
    InZone(Option<(usize, Way)>, u8, u8),
    Not(Box<Cond>),
    And(Box<Cond>, Box<Cond>),
}

/// What is done with a value.
#[derive(Clone, Debug)]
pub enum Write {
    /// A field, on the stencil's own set.
    Out(Field),
    /// Which of the incremented fields, where, and whether it is taken away.
    Inc(usize, Way, bool),
    Reduce(Fold, bool),
}

#[derive(Clone, Debug)]
pub struct Stencil {
    pub mesh: Mesh,
    pub over: usize,
    pub inputs: Vec<Field>,
    /// What is added to: `a0`.
    pub sums: Vec<Field>,
    /// How many real parameters it has.
    pub params: usize,
    pub lets: Vec<Let>,
    pub writes: Vec<(Write, Expr)>,
    /// The inputs whose numbers say which levels are read.
    pub offsets: BTreeSet<usize>,
    /// Which levels are computed: the first, and how far from the end of the mesh's levels they end; or one alone.
    pub levels: Option<(i64, Option<i64>)>,
    /// Which zones of its set are: the first and the last.
    pub zones: Option<(u8, u8)>,
    pub sweeps: Vec<Sweep>,
    /// Values of sweeps, which are plain numbers, and of which kind.
    pub swept: Vec<(Kind, Expr)>,
}

/// A named value: `x3`.
#[derive(Clone, Debug)]
pub struct Let {
    /// At the elements of which set.
    pub set: usize,
    pub value: Expr,
}

/// What is computed level by level.
#[derive(Clone, Debug)]
pub struct Sweep {
    pub is_down: bool,
    /// Its values: those before this one, and not of a sweep before.
    pub end: usize,
    /// The outputs that it assigns, by their writes.
    pub writes: Vec<usize>,
}

impl Expr {
    /// The expressions directly inside, those of conditions left out.
    pub fn children_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            Expr::Real(_) | Expr::Int(_) | Expr::Param(_) | Expr::Read { .. } | Expr::Let { .. } => Vec::new(),
            Expr::Swept { .. } => Vec::new(),
            Expr::Part(a, _) | Expr::Negate(a) | Expr::Abs(a) | Expr::Fold { term: a, .. } => vec![a],
            Expr::Vector(parts) => parts.iter_mut().collect(),
            Expr::Binary(_, a, b) | Expr::Less(a, b) | Expr::Dot(a, b) | Expr::Choose(_, a, b) => vec![a, b],
        }
    }
}

impl Stored {
    pub fn kind(self) -> Kind {
        if self == Stored::Int { Kind::Int } else { Kind::Real }
    }
}

impl Fold {
    fn name(self) -> &'static str {
        match self {
            Fold::Sum => "sum",
            Fold::Min => "min",
            Fold::Max => "max",
        }
    }
}

/// What is written with the mesh at hand.
struct In<'a, T>(&'a Mesh, T);

impl fmt::Display for In<'_, &Way> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let In(mesh, way) = self;
        let counter = way.counter.map(|counter| format!("c{counter}"));
        let hops = way.hops.iter().map(|&(map, slot)| match mesh.maps[map].arity {
            1 => format!("m{map}"),
            _ => format!("m{map}.{slot}"),
        });
        f.write_str(&counter.into_iter().chain(hops).collect::<Vec<_>>().join("."))
    }
}

/// `[m0.1, k-1]`
fn index(mesh: &Mesh, way: &Way, k: i32) -> String {
    let text = In(mesh, way).to_string();
    match (text.is_empty(), k) {
        (true, 0) => String::new(),
        (false, 0) => format!("[{text}]"),
        (true, k) => format!("[k{k:+}]"),
        (false, k) => format!("[{text}, k{k:+}]"),
    }
}

impl fmt::Display for In<'_, &Expr> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let In(mesh, expr) = *self;
        let own = |expr: &Expr| In(mesh, expr).to_string();
        match expr {
            Expr::Real(x) => write!(f, "{x:?}"),
            Expr::Param(number) => write!(f, "p{number}"),
            Expr::Int(x) if *x < 0 => write!(f, "({x})"),
            Expr::Int(x) => write!(f, "{x}"),
            Expr::Read { field, way, k, by: None } => write!(f, "f{field}{}", index(mesh, way, *k)),
            Expr::Read { field, way, k, by: Some(by) } => {
                let way = In(mesh, way).to_string();
                let way = if way.is_empty() { way } else { format!("{way}, ") };
                let plus =
                    if *k == 0 { String::new() } else { format!(" {} {}", if *k < 0 { '-' } else { '+' }, k.abs()) };
                let level = match by {
                    Leads::Further(by, at) => format!("k + f{by}{}{plus}", index(mesh, at, 0)),
                    Leads::Itself(by, at) => format!("level f{by}{}{plus}", index(mesh, at, 0)),
                    Leads::Said { level, from_end: false } => format!("level {level}"),
                    Leads::Said { level, from_end: true } => format!("level nk - {level}"),
                };
                write!(f, "f{field}[{way}{level}]")
            }
            Expr::Let { number, way, k } => write!(f, "x{number}{}", index(mesh, way, *k)),
            Expr::Swept { number, k } => write!(f, "y{number}{}", index(mesh, &Way::default(), *k)),
            Expr::Part(of, part) => write!(f, "{}.{part}", own(of)),
            Expr::Vector(parts) => write!(f, "[{}]", parts.iter().map(own).collect::<Vec<_>>().join(", ")),
            Expr::Binary(op, a, b) => write!(f, "({} {op} {})", own(a), own(b)),
            Expr::Negate(a) => write!(f, "(-{})", own(a)),
            Expr::Abs(a) => write!(f, "abs({})", own(a)),
            Expr::Less(a, b) => write!(f, "min({}, {})", own(a), own(b)),
            Expr::Dot(a, b) => write!(f, "dot({}, {})", own(a), own(b)),
            Expr::Choose(cond, a, b) => {
                write!(f, "(if {} {{ {} }} else {{ {} }})", In(mesh, &**cond), own(a), own(b))
            }
            Expr::Fold { fold, counter, from, maps, term } => {
                let from = from.map(|from| format!("c{from}"));
                let maps: Vec<String> = from
                    .into_iter()
                    .chain(maps.iter().map(|(map, slot)| match slot {
                        Some(slot) => format!("m{map}.{slot}"),
                        None => format!("m{map}"),
                    }))
                    .collect();
                write!(f, "({}(c{counter} in {}) {{ {} }})", fold.name(), maps.join("."), own(term))
            }
        }
    }
}

impl fmt::Display for In<'_, &Cond> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let In(mesh, cond) = *self;
        match cond {
            Cond::Below(a, b) => write!(f, "{} < {}", In(mesh, a), In(mesh, b)),
            Cond::Present(way) => write!(f, "present({})", In(mesh, way)),
            Cond::HasLevel(by) if *by < 0 => write!(f, "k >= {}", -by),
            Cond::HasLevel(by) => write!(f, "k < nk - {by}"),
            Cond::InZone(None, first, last) => write!(f, "in_zone({})", zones(*first, *last)),
            Cond::InZone(Some((_, way)), first, last) => {
                write!(f, "in_zone({})[{}]", zones(*first, *last), In(mesh, way))
            }
            Cond::Not(cond) => write!(f, "!({})", In(mesh, &**cond)),
            Cond::And(a, b) => write!(f, "({} && {})", In(mesh, &**a), In(mesh, &**b)),
        }
    }
}

/// `z1, z2`
pub(super) fn zones(first: u8, last: u8) -> String {
    (first..=last).map(|zone| format!("z{zone}")).collect::<Vec<_>>().join(", ")
}

/// `real[2] on s0.m1, no k`
pub(super) fn declared(mesh: &Mesh, field: &Field) -> String {
    let stored = match field.stored {
        Stored::Real => "real",
        Stored::F32 => "f32",
        Stored::F64 => "f64",
        Stored::Int => "int",
    };
    if field.everywhere {
        return format!("{stored} on ({})", if field.levels == Levels::Interfaces { "k+1" } else { "k" });
    }
    let parts = if field.parts == 1 { String::new() } else { format!("[{}]", field.parts) };
    let map = field.map.map_or(String::new(), |map| format!(".m{map}"));
    let levels = match field.levels {
        Levels::None if mesh.levels.is_some() => ", no k",
        Levels::None | Levels::All => "",
        Levels::Interfaces => ", k+1",
    };
    format!("{stored}{parts} on s{}{map}{levels}", field.set)
}

impl fmt::Display for Mesh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mesh = self;
        let sets: Vec<String> = (0..mesh.sets.len()).map(|set| format!("s{set}")).collect();
        writeln!(f, "mesh m {{\n    set {}", sets.join(", "))?;
        for (number, map) in mesh.maps.iter().enumerate() {
            let arity = if map.arity == 1 { String::new() } else { format!("[{}]", map.arity) };
            let missing = match map.missing {
                Missing::Never => String::new(),
                Missing::Skip => " missing skip".to_owned(),
                Missing::Value(x) => format!(" missing value({x})"),
            };
            writeln!(f, "    map s{}.m{number} -> s{}{arity}{missing}", map.from, map.to)?;
        }
        for (set, (count, _)) in mesh.zones.iter().enumerate().filter(|(_, (count, _))| *count > 0) {
            writeln!(f, "    zone {} on s{set}", zones(0, count - 1))?;
        }
        writeln!(f, "{}}}", if mesh.levels.is_some() { "    levels k\n" } else { "" })
    }
}

impl fmt::Display for Stencil {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.mesh)?;
        self.print("s", f)
    }
}

impl Stencil {
    /// Whether it writes at interfaces of levels alone.
    pub fn is_on_interfaces(&self) -> bool {
        let of = |write: &Write| match write {
            Write::Out(field) => field.levels == Levels::Interfaces,
            Write::Inc(sum, ..) => self.sums[*sum].levels == Levels::Interfaces,
            Write::Reduce(..) => false,
        };
        self.writes.iter().all(|(write, _)| of(write))
    }

    /// Writes it under a name, without its mesh.
    pub(super) fn print(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mesh = &self.mesh;
        writeln!(f, "stencil {name} over m.s{} {{", self.over)?;
        for (number, field) in self.inputs.iter().enumerate() {
            writeln!(f, "    in f{number}: {}", declared(mesh, field))?;
        }
        for (number, field) in self.sums.iter().enumerate() {
            writeln!(f, "    inc a{number}: {}", declared(mesh, field))?;
        }
        for (number, (write, _)) in self.writes.iter().enumerate() {
            match write {
                Write::Out(field) => writeln!(f, "    out w{number}: {}", declared(mesh, field))?,
                Write::Inc(..) => {}
                Write::Reduce(fold, _) => writeln!(f, "    reduce w{number}: {}", fold.name())?,
            }
        }
        for number in 0..self.params {
            writeln!(f, "    param p{number}: real")?;
        }
        match self.levels {
            Some((first, Some(by))) => writeln!(f, "    levels {first}..nk + {by}")?,
            Some((only, None)) => writeln!(f, "    level {only}")?,
            None => {}
        }
        if let Some((first, last)) = self.zones {
            writeln!(f, "    zones {}", zones(first, last))?;
        }
        for (number, Let { set, value }) in self.lets.iter().enumerate() {
            let on = if *set == self.over { String::new() } else { format!(" on s{set}") };
            writeln!(f, "    let x{number}{on} = {}", In(mesh, value))?;
        }
        let mut first = 0;
        for sweep in &self.sweeps {
            writeln!(f, "    sweep k {} {{", if sweep.is_down { "down" } else { "up" })?;
            for number in first..sweep.end {
                writeln!(f, "        let y{number} = {}", In(mesh, &self.swept[number].1))?;
            }
            for &number in &sweep.writes {
                writeln!(f, "        w{number} = {}", In(mesh, &self.writes[number].1))?;
            }
            writeln!(f, "    }}")?;
            first = sweep.end;
        }
        let is_swept = |number: &usize| self.sweeps.iter().any(|sweep| sweep.writes.contains(number));
        for (number, (write, value)) in self.writes.iter().enumerate().filter(|(number, _)| !is_swept(number)) {
            let value = In(mesh, value);
            let op = |taken: &bool| if *taken { "-=" } else { "+=" };
            match write {
                Write::Out(_) | Write::Reduce(Fold::Min | Fold::Max, _) => writeln!(f, "    w{number} = {value}")?,
                Write::Inc(sum, way, taken) => {
                    writeln!(f, "    a{sum}{} {} {value}", index(mesh, way, 0), op(taken))?;
                }
                Write::Reduce(Fold::Sum, taken) => writeln!(f, "    w{number} {} {value}", op(taken))?,
            }
        }
        writeln!(f, "}}")
    }
}
