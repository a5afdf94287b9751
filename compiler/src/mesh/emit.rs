//! The texts of values: reads, definitions and bodies, each a constant with a name, where some path leads.

use super::layout::at_once;
use super::{Choices, Parameter, PieceTable, Subject, What, mirror, quotient};
use crate::cuda::expression::{Helpers, computing_type, read_as, written};
use crate::cuda::prelude;
use crate::ir::mesh::Missing;
use crate::ir::{
    Binary, Binding, Body, DefId, FieldId, Handle, Hop, Kind, Levels, MapId, Node, NodeId, Path, SetId, Texts,
};
use crate::names::Names;
use crate::plan::{Math, stored_type};
use std::collections::HashMap;

/// Where a value is looked at: hops from the element at hand, and levels away.
pub type At = (Vec<Hop>, i32);

/// What is known by name in a block of code.
#[derive(Default)]
struct Scope {
    /// Numbers of elements; -1 is a hole.
    raw: HashMap<Vec<Hop>, String>,
    /// The same, and some element where there is a hole.
    index: HashMap<Vec<Hop>, String>,
    reads: HashMap<(FieldId, At, u32), String>,
    values: HashMap<(DefId, At), String>,
    /// Names of the inverses of divisors.
    inverses: HashMap<String, String>,
}

/// Writes the text of one kernel.
pub struct Emitter<'a> {
    pub subject: &'a Subject<'a>,
    pub choices: &'a Choices,
    pub names: Names,
    /// The user's names, as they are in the text.
    users: HashMap<String, String>,
    /// By set: the name of the thread's own element.
    elements: HashMap<SetId, String>,
    pub parameters: Vec<Parameter>,
    pub lines: Vec<String>,
    /// The condition that the thread's own element stands at the second place.
    pub is_second: String,
    /// Where the element at hand stands in tables that are in the order of pieces, if there are any.
    pub in_piece: Option<String>,
    /// Whether divisions share what they can, and the kernel is a function that says whether all were usual ones.
    is_quick: bool,
    depth: usize,
    helpers: Helpers,
    scopes: Vec<Scope>,
    k: String,
}

/// Where hops lead that no map has: to the thread's own element, and to the other one; and whether the own one stands at the
/// second of two places.
pub const OWN: u32 = 0;
/// See [`OWN`].
pub const OTHER: u32 = 1;
/// See [`OWN`].
pub const SECOND: u32 = 2;

/// The hops to one of these.
pub fn pseudo(who: u32) -> Vec<Hop> {
    vec![Hop { map: MapId::new(u32::MAX as usize), slot: who }]
}

/// Which of these hops begin with, if with any.
pub fn pseudo_of(hops: &[Hop]) -> Option<u32> {
    hops.first().filter(|hop| **hop == pseudo(hop.slot)[0]).map(|hop| hop.slot)
}

impl<'a> Emitter<'a> {
    /// For a kernel of a stencil. The user's names come first, so that they stay as they are.
    pub fn new(subject: &'a Subject<'a>, choices: &'a Choices) -> Self {
        let mut names = Names::default();
        let stencil = &subject.stencil.stencil;
        let fields = stencil.fields.iter().map(|(_, field)| &field.name);
        let params = stencil.params.iter().map(|(_, param)| &param.name);
        let users = fields.chain(params).map(|name| (name.clone(), names.fresh(name))).collect();
        let k = names.internal("k");
        Self {
            subject,
            choices,
            names,
            users,
            elements: HashMap::new(),
            parameters: Vec::new(),
            lines: Vec::new(),
            is_second: String::new(),
            in_piece: None,
            is_quick: false,
            depth: 1,
            helpers: Helpers::new(),
            scopes: vec![Scope::default()],
            k,
        }
    }

    /// Lets divisions share what they can, if there are any.
    pub fn share_divisions(&mut self) {
        self.is_quick = quotient::divides(self.subject.stencil);
        if self.is_quick {
            let is_usual = self.names.internal("is_usual");
            self.line(format!("bool {is_usual} = true;"));
        }
    }

    /// Leaves before anything is written, if a division was not a usual one.
    pub fn leave_if_unusual(&mut self) {
        if self.is_quick {
            let (is_quick, is_usual) = (self.names.internal("is_quick"), self.names.internal("is_usual"));
            self.line(format!("if ({is_quick} && !{is_usual}) return false;"));
        }
    }

    /// The text of a quotient.
    fn quotient(&mut self, a: &str, b: &str) -> String {
        let (is_quick, is_usual) = (self.names.internal("is_quick"), self.names.internal("is_usual"));
        let c_type = self.c_type(Kind::Real);
        let is_name = b.chars().all(|c| c.is_alphanumeric() || c == '_');
        let literal = quotient::inverse_of(b, self.subject.precision);
        let named = |own: &mut Self, wish: &str, text: String| {
            let name = own.names.fresh(wish);
            own.line(format!("const {c_type} {name} = {text};"));
            name
        };
        let b = if is_name || literal.is_some() { b.to_owned() } else { named(self, "divisor", b.to_owned()) };
        let inverse = match (literal, self.find(|scope| scope.inverses.get(&b))) {
            (Some(inverse), _) => crate::cuda::expression::real(inverse, self.subject.precision).0,
            (None, Some(known)) => known.clone(),
            (None, None) => {
                let name = named(self, &format!("over_{b}"), format!("real_inverse({b}, {is_usual})"));
                if let Some(scope) = self.scopes.last_mut() {
                    scope.inverses.insert(b.clone(), name.clone());
                }
                name
            }
        };
        format!("real_quotient({a}, {b}, {inverse}, {is_quick}, {is_usual})")
    }

    /// Adds a line.
    pub fn line(&mut self, text: impl AsRef<str>) {
        self.lines.push(format!("{}{}", "    ".repeat(self.depth), text.as_ref()));
    }

    /// Begins a block of code after a line; what is named in it is forgotten at its end.
    pub fn open(&mut self, head: &str) {
        self.line(format!("{head} {{"));
        self.depth += 1;
        self.scopes.push(Scope::default());
    }

    /// Ends it.
    pub fn close(&mut self) {
        self.scopes.pop();
        self.depth -= 1;
        self.line("}");
    }

    /// The parameter that is `what`.
    pub fn parameter(&mut self, wish: &str, c_type: &str, what: What) -> String {
        if let Some(known) = self.parameters.iter().find(|own| own.what == what) {
            return known.name.clone();
        }
        let is_users = match &what {
            What::Input(_) | What::Param(_) => true,
            What::Output(field) => !self.subject.stencil.stencil.fields[*field].role.is_read(),
            _ => false,
        };
        // The user's own names are theirs, as far as C++ lets them.
        let name = match self.users.get(wish) {
            Some(known) if is_users => known.clone(),
            _ => self.names.fresh(wish),
        };
        self.parameters.push(Parameter { name: name.clone(), c_type: c_type.to_owned(), what });
        name
    }

    /// Says which element hops lead to.
    pub fn set_index(&mut self, hops: &[Hop], name: &str) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.raw.insert(hops.to_vec(), name.to_owned());
            scope.index.insert(hops.to_vec(), name.to_owned());
        }
    }

    /// Says which element hops lead to, if any.
    pub fn set_raw(&mut self, hops: &[Hop], name: &str) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.raw.insert(hops.to_vec(), name.to_owned());
        }
    }

    fn find<'s, T: ?Sized>(&'s self, look: impl Fn(&'s Scope) -> Option<&'s T>) -> Option<&'s T> {
        self.scopes.iter().rev().find_map(look)
    }

    /// Whether signs depend on where the target stands.
    fn is_mirrored(&self) -> bool {
        !self.is_second.is_empty()
    }

    /// The statement that ends a thread.
    pub fn leave(&self) -> &'static str {
        if self.is_quick { "return true;" } else { "return;" }
    }

    /// The name of the thread's own element of a set, the same at every call. A set may be called like something of ours.
    pub fn element_of(&mut self, set: SetId) -> String {
        let wish = &self.subject.stencil.mesh.sets[set].name;
        self.elements.entry(set).or_insert_with(|| self.names.fresh(wish)).clone()
    }

    /// A thread an element of a set: the lines that find it, and its name.
    pub fn thread_of(&mut self, set: SetId) -> String {
        let element = self.element_of(set);
        let n = self.size(set);
        self.line(format!("const int {element} = blockIdx.x * {} + threadIdx.x;", self.choices.block));
        self.line(format!("if ({element} >= {n}) {}", self.leave()));
        element
    }

    /// How many elements a set has.
    pub fn size(&mut self, set: SetId) -> String {
        let wish = format!("n_{}", self.subject.stencil.mesh.sets[set].name);
        self.parameter(&wish, "int", What::Size(set))
    }

    /// Whether hops may end at a hole.
    pub fn can_miss(&self, hops: &[Hop]) -> bool {
        hops.iter().any(|hop| {
            hop.map.index() < self.subject.stencil.mesh.maps.len()
                && self.subject.stencil.mesh.maps[hop.map].missing != Missing::Never
        })
    }

    /// The number of the element where hops lead; -1 from a hole.
    pub fn raw(&mut self, hops: &[Hop]) -> String {
        if let Some(known) = self.find(|scope| scope.raw.get(hops)) {
            return known.clone();
        }
        let Some((last, before)) = hops.split_last() else { return self.element() };
        let mesh = &self.subject.stencil.mesh;
        let (arity, map_name) = (mesh.maps[last.map].arity, mesh.full_name(last.map).replace('.', "_"));
        let (map, from) = match self.in_piece.clone() {
            Some(place) if before.is_empty() => {
                let table = What::Piece(PieceTable::Rows(last.map));
                (self.parameter(&format!("{map_name}_in_pieces"), "const int*", table), place)
            }
            _ => (self.parameter(&map_name, "const int*", What::Map(last.map)), self.index(before)),
        };
        let at = match (arity, last.slot) {
            (1, _) => from.clone(),
            (_, 0) => format!("{arity} * {from}"),
            (_, slot) => format!("{arity} * {from} + {slot}"),
        };
        let text = match self.can_miss(before) {
            false => format!("{map}[{at}]"),
            true => {
                let raw = self.raw(before);
                format!("{raw} < 0 ? -1 : {map}[{at}]")
            }
        };
        let name = self.names.fresh(&self.hops_name(hops));
        self.line(format!("const int {name} = {text};"));
        self.set_raw(hops, &name);
        name
    }

    /// The number of the element at hand, in pieces: where nothing is read of it, nobody needs it.
    fn element(&mut self) -> String {
        // A fault of ours that no compiler would let pass.
        let Some(place) = self.in_piece.clone() else { return "no_element_is_known_here".to_owned() };
        let stencil = self.subject.stencil;
        let elements = self.parameter("elements", "const int*", What::Piece(PieceTable::Elements));
        let name = self.names.fresh(&stencil.mesh.sets[stencil.set()].name);
        self.line(format!("const int {name} = {elements}[{place}];"));
        self.set_index(&[], &name);
        name
    }

    /// The number of the element where hops lead; that of some element from a hole.
    pub fn index(&mut self, hops: &[Hop]) -> String {
        if let Some(known) = self.find(|scope| scope.index.get(hops)) {
            return known.clone();
        }
        let raw = self.raw(hops);
        if !self.can_miss(hops) {
            self.set_index(hops, &raw);
            return raw;
        }
        let name = self.names.fresh(&format!("{}_or_0", self.hops_name(hops)));
        self.line(format!("const int {name} = {raw} < 0 ? 0 : {raw};"));
        if let Some(scope) = self.scopes.last_mut() {
            scope.index.insert(hops.to_vec(), name.clone());
        }
        name
    }

    /// A name for the element where a path ends.
    pub fn end_of(&mut self, path: &Path) -> String {
        let wish = self.hops_name(path.hops());
        self.names.fresh(&wish)
    }

    /// `cells_0`, for names.
    pub fn hops_name(&self, hops: &[Hop]) -> String {
        let mesh = &self.subject.stencil.mesh;
        let names = hops.iter().map(|hop| match pseudo_of(&[*hop]) {
            Some(OWN) => "own".to_owned(),
            Some(_) => "other".to_owned(),
            None if mesh.maps[hop.map].arity == 1 => mesh.maps[hop.map].name.clone(),
            None => format!("{}_{}", mesh.maps[hop.map].name, hop.slot),
        });
        names.collect::<Vec<_>>().join("_")
    }

    /// The index of a field's number, apart from its part: what stands before it in brackets.
    fn place(&mut self, field: FieldId, element: &str, shift: i32) -> (String, usize) {
        let own = &self.subject.stencil.stencil.fields[field];
        let level = self.level(shift, own.place.levels);
        let Some(home) = own.place.home else { return (level.unwrap_or_else(|| "0".to_owned()), 1) };
        let together = self.choices.layout.together(home, own.stored, self.subject.precision);
        let groups = home.width as usize / together;
        let text = match level {
            None => element.to_owned(),
            Some(level) => {
                let n = self.size(home.set);
                let level = if level.contains(' ') { format!("({level})") } else { level };
                let rows = if groups == 1 { level } else { format!("{level} * {groups}") };
                format!("({rows}) * {n} + {element}")
            }
        };
        (text, together)
    }

    /// The text of a field's number `part` at an element, in the array `array`.
    pub fn number_at(&mut self, array: &str, field: FieldId, element: &str, shift: i32, part: u32) -> String {
        let (place, together) = self.place(field, element, shift);
        let index = self.part_index(field, &place, together, part as usize);
        format!("{array}[{index}]")
    }

    /// The index of a field's number `part` at an element.
    pub fn index_at(&mut self, field: FieldId, element: &str, part: usize) -> String {
        let (place, together) = self.place(field, element, 0);
        self.part_index(field, &place, together, part)
    }

    fn part_index(&mut self, field: FieldId, place: &str, together: usize, part: usize) -> String {
        let own = &self.subject.stencil.stencil.fields[field];
        let (group, part) = (part / together, part % together);
        let Some(home) = own.place.home else { return place.to_owned() };
        let mut text = place.to_owned();
        if group > 0 {
            let n = self.size(home.set);
            text = if group == 1 { format!("{text} + {n}") } else { format!("{text} + {group} * {n}") };
        }
        if together > 1 {
            let simple = !text.contains(' ');
            text = if simple { format!("{together} * {text}") } else { format!("{together} * ({text})") };
        }
        if part > 0 { format!("{text} + {part}") } else { text }
    }

    /// The level `shift` away, kept inside, where there are several.
    fn level(&mut self, shift: i32, levels: Levels) -> Option<String> {
        let last = match levels {
            Levels::None => return None,
            Levels::Full => self.subject.levels as i32 - 1,
            Levels::Interfaces => self.subject.levels as i32,
        };
        let computed = self.subject.computed;
        let k = &self.k;
        // What lies beyond the levels is looked at by nobody.
        Some(match shift {
            0 => k.clone(),
            1.. if computed.end as i32 - 1 + shift > last => format!("min({k} + {shift}, {last})"),
            1.. => format!("{k} + {shift}"),
            _ if (computed.start as i32) < -shift => format!("max({k} - {}, 0)", -shift),
            _ => format!("{k} - {}", -shift),
        })
    }

    /// The pointer to a field that is read.
    pub fn input(&mut self, field: FieldId) -> String {
        let own = &self.subject.stencil.stencil.fields[field];
        let c_type = format!("const {}*", stored_type(own.stored, self.subject.precision));
        let name = own.name.clone();
        self.parameter(&name, &c_type, What::Input(field))
    }

    /// The pointer to a field that is written.
    pub fn output(&mut self, field: FieldId) -> String {
        let own = &self.subject.stencil.stencil.fields[field];
        let c_type = format!("{}*", stored_type(own.stored, self.subject.precision));
        let name = own.name.clone();
        let wish = if own.role == crate::ir::Role::InOut { format!("{name}_new") } else { name };
        self.parameter(&wish, &c_type, What::Output(field))
    }

    /// Numbers of a field at an element, as one computes with them: their names.
    pub fn load(&mut self, array: &str, field: FieldId, element: &str, shift: i32, wish: &str) -> Vec<String> {
        let stored = self.subject.stencil.stencil.fields[field].stored;
        let (c_type, precision) = (self.c_type(stored.kind()), self.subject.precision);
        self.load_as(array, (field, element, shift), wish, c_type, &|text| read_as(text, stored, precision))
    }

    /// Numbers of a field at an element, as they are stored: their names.
    pub fn load_stored(&mut self, array: &str, field: FieldId, element: &str, shift: i32, wish: &str) -> Vec<String> {
        let stored = self.subject.stencil.stencil.fields[field].stored;
        let c_type = stored_type(stored, self.subject.precision);
        self.load_as(array, (field, element, shift), wish, c_type, &|text| text)
    }

    fn load_as(
        &mut self,
        array: &str,
        (field, element, shift): (FieldId, &str, i32),
        wish: &str,
        c_type: &str,
        read: &dyn Fn(String) -> String,
    ) -> Vec<String> {
        let own = &self.subject.stencil.stencil.fields[field];
        let (stored, precision) = (own.stored, self.subject.precision);
        let width = own.place.home.map_or(1, |home| home.width as usize);
        let (place, together) = self.place(field, element, shift);
        let at_once = at_once(together, stored, precision);
        let mut names = Vec::new();
        for first in (0..width).step_by(at_once) {
            let index = self.part_index(field, &place, together, first);
            if at_once == 1 {
                let name = self.names.fresh(&part_name(wish, width, first));
                let text = read(format!("{array}[{index}]"));
                self.line(format!("const {c_type} {name} = {text};"));
                names.push(name);
                continue;
            }
            let vector = format!("{}{at_once}", stored_type(stored, precision));
            let whole = self.names.fresh(&format!("{wish}_{}", if at_once == 2 { "pair" } else { "four" }));
            self.line(format!("const {vector} {whole} = *reinterpret_cast<const {vector}*>({array} + {index});"));
            for (n, component) in ["x", "y", "z", "w"].iter().enumerate().take(at_once) {
                let text = read(format!("{whole}.{component}"));
                let name = self.names.fresh(&part_name(wish, width, first + n));
                self.line(format!("const {c_type} {name} = {text};"));
                names.push(name);
            }
        }
        names
    }

    /// Writes numbers to a field at an element: all of them, as they are stored.
    pub fn store_all(&mut self, array: &str, field: FieldId, element: &str, texts: &[String]) {
        let own = &self.subject.stencil.stencil.fields[field];
        let (stored, precision) = (own.stored, self.subject.precision);
        let (place, together) = self.place(field, element, 0);
        let at_once = at_once(together, stored, precision);
        for (n, some) in texts.chunks(at_once).enumerate() {
            let index = self.part_index(field, &place, together, n * at_once);
            if at_once == 1 {
                self.line(format!("{array}[{index}] = {};", some[0]));
                continue;
            }
            let vector = format!("{}{at_once}", stored_type(stored, precision));
            self.line(format!("*reinterpret_cast<{vector}*>({array} + {index}) = make_{vector}({});", some.join(", ")));
        }
    }

    /// A number of a field where `at` leads.
    pub fn read(&mut self, field: FieldId, at: &At, part: u32) -> String {
        let key = (field, at.clone(), part);
        if let Some(known) = self.find(|scope| scope.reads.get(&key)) {
            return known.clone();
        }
        let own = &self.subject.stencil.stencil.fields[field];
        let (stored, place) = (own.stored, own.place);
        let (array, wish) = (self.input(field), self.read_name(field, at));
        let element = if place.horizontal { self.index(&at.0) } else { String::new() };
        // On a map, each slot is looked at by itself.
        if place.home.is_some_and(|home| home.map.is_some()) {
            let text = self.number_at(&array, field, &element, at.1, part);
            let (text, c_type) =
                (read_as(text, stored, self.subject.precision), computing_type(stored.kind(), self.subject.precision));
            let name = self.names.fresh(&format!("{wish}_{part}"));
            self.line(format!("const {c_type} {name} = {text};"));
            self.remember(key, &name);
            return name;
        }
        let names = self.load(&array, field, &element, at.1, &wish);
        for (part, name) in names.iter().enumerate() {
            self.remember((field, at.clone(), part as u32), name);
        }
        names[part as usize].clone()
    }

    /// Says by which name a number of a field is known.
    pub fn remember(&mut self, key: (FieldId, At, u32), name: &str) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.reads.insert(key, name.to_owned());
        }
    }

    /// `q_cells_0`, for names.
    pub fn read_name(&self, field: FieldId, at: &At) -> String {
        let name = &self.subject.stencil.stencil.fields[field].name;
        let level = match at.1 {
            0 => String::new(),
            1.. => format!("_down{}", at.1),
            _ => format!("_up{}", -at.1),
        };
        match self.hops_name(&at.0).as_str() {
            "" => format!("{name}_here{level}"),
            hops => format!("{name}_{hops}{level}"),
        }
    }

    /// A definition where `at` leads.
    pub fn value(&mut self, def: DefId, at: &At) -> String {
        let key = (def, at.clone());
        if let Some(known) = self.find(|scope| scope.values.get(&key)) {
            return known.clone();
        }
        let own = &self.subject.stencil.stencil.defs[def];
        let text = self.body(&own.body, at);
        // Numbers and names stay as they are.
        let is_short = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
        let name = if is_short {
            text
        } else {
            let wish = match self.hops_name(&at.0).as_str() {
                "" => own.name.clone(),
                hops => format!("{}_{hops}", own.name),
            };
            let name = self.names.fresh(&wish);
            let c_type = computing_type(own.body.kind(), self.subject.precision);
            self.line(format!("const {c_type} {name} = {text};"));
            name
        };
        if let Some(scope) = self.scopes.last_mut() {
            scope.values.insert(key, name.clone());
        }
        name
    }

    /// The text of a body where `at` leads; what it is made of gets names before.
    pub fn body(&mut self, body: &Body, at: &At) -> String {
        let moved = |path: &Path| {
            let hops: Vec<Hop> = at.0.iter().chain(path.hops()).copied().collect();
            (hops, at.1 + path.levels())
        };
        let mut leaves: Vec<(Node, String, Binding)> = Vec::new();
        for (_, node) in body.iter() {
            if leaves.iter().any(|(known, ..)| known == node) {
                continue;
            }
            let (text, binding) = match node {
                Node::Read { field, path, part } => {
                    let at = moved(path);
                    let at = if self.subject.stencil.stencil.fields[*field].place.horizontal {
                        at
                    } else {
                        (Vec::new(), at.1)
                    };
                    (self.read(*field, &at, *part), Binding::Atom)
                }
                Node::Use { def, path } => (self.value(*def, &moved(path)), Binding::Atom),
                Node::Present { path } if pseudo_of(path.hops()) == Some(SECOND) => {
                    (self.is_second.clone(), Binding::Atom)
                }
                Node::Present { path } => {
                    let (hops, _) = moved(path);
                    match self.can_miss(&hops) {
                        true => (format!("{} >= 0", self.raw(&hops)), Binding::Comparison),
                        false => ("true".to_owned(), Binding::Atom),
                    }
                }
                Node::Param(param) => {
                    let own = &self.subject.stencil.stencil.params[*param];
                    let (name, c_type) = (own.name.clone(), computing_type(own.kind, self.subject.precision));
                    (self.parameter(&name, c_type, What::Param(*param)), Binding::Atom)
                }
                Node::Level if !self.subject.stencil.mesh.levels => (at.1.to_string(), Binding::Atom),
                Node::Level => match at.1 {
                    0 => (self.k.clone(), Binding::Atom),
                    1.. => (format!("{} + {}", self.k, at.1), Binding::Sum),
                    _ => (format!("{} - {}", self.k, -at.1), Binding::Sum),
                },
                Node::LevelCount => (self.subject.levels.to_string(), Binding::Atom),
                _ => continue,
            };
            leaves.push((node.clone(), text, binding));
        }
        let leaf = |node: &Node| {
            let found = leaves.iter().find(|(known, ..)| known == node);
            found.map_or((String::new(), Binding::Atom), |(_, text, binding)| (text.clone(), *binding))
        };
        let mut helpers = std::mem::take(&mut self.helpers);
        let precision = self.subject.precision;
        let mut other = |id: NodeId, texts: &mut Texts| match &body[id] {
            Node::Binary(Binary::Div, a, b) if self.is_quick && body.kind_of(id) == Kind::Real => {
                let (a, b) = (texts.operand(*a, Binding::Choice), texts.operand(*b, Binding::Choice));
                Some((self.quotient(&a, &b), Binding::Atom))
            }
            Node::Choose { condition, yes, no } if is_turned(body, *condition, *yes, *no) => {
                let text = texts.operand(*no, Binding::Choice);
                Some((format!("real_turned({text}, {})", self.names.internal("turn")), Binding::Atom))
            }
            _ => None,
        };
        let text = written(body, precision, Math::Own, &mut helpers, &leaf, &mut other);
        self.helpers = helpers;
        text
    }

    /// `const int k = blockIdx.y;`, if there are levels.
    pub fn level_line(&mut self) {
        if self.subject.stencil.mesh.levels {
            let first = self.subject.computed.start;
            let from = if first == 0 { "blockIdx.y".to_owned() } else { format!("blockIdx.y + {first}") };
            self.line(format!("const int {} = {from};", self.k));
        }
    }

    /// The type that numbers of a kind are computed in.
    pub fn c_type(&self, kind: Kind) -> &'static str {
        computing_type(kind, self.subject.precision)
    }

    /// The whole text: comment, functions, head and body.
    pub fn text(mut self, name: &str, what: &str, functions_before: &[&str]) -> (String, Vec<Parameter>) {
        let Subject { stencil, precision, .. } = *self.subject;
        let Choices { layout, block, blocks_at_once, .. } = *self.choices;
        let mut text = String::from("/*\n");
        let over = format!("{}.{}", stencil.mesh.name, stencil.mesh.sets[stencil.set()].name);
        let mut comment = vec![format!("{} over {over}: {what}.", stencil.stencil.name)];
        comment.extend(stencil.stencil.doc.lines().map(str::to_owned));
        comment.push(format!("Layout {}, {}.", layout.name(), precision.name()));
        comment.push(String::new());
        comment.push("Exact only without contraction: nvcc -fmad=false, NVRTC --fmad=false.".to_owned());
        for line in comment.into_iter().map(crate::cuda::comment_line) {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text.push_str(" */\n");
        for line in prelude::functions(&self.helpers, precision) {
            text.push_str(&line);
            text.push('\n');
        }
        for lines in functions_before {
            text.push_str(lines);
        }
        let bounds = match blocks_at_once {
            0 => format!("__launch_bounds__({block})"),
            blocks => format!("__launch_bounds__({block}, {blocks})"),
        };
        let parameters: Vec<String> = self
            .parameters
            .iter()
            .map(|own| match own.c_type.strip_suffix('*') {
                Some(_) => format!("{} __restrict__ {}", own.c_type, own.name),
                None => format!("const {} {}", own.c_type, own.name),
            })
            .collect();
        let head = format!("extern \"C\" __global__ void {bounds}\n{name}({})\n{{\n", parameters.join(",\n    "));
        let mut lines = self.lines.join("\n");
        lines.push('\n');
        if self.is_mirrored() {
            text.push_str(mirror::function(precision));
        }
        if self.is_quick {
            let arguments: Vec<&str> = self.parameters.iter().map(|own| own.name.as_str()).collect();
            let (parameters, arguments) = (parameters.join(",\n    "), arguments.join(", "));
            let is_quick = self.names.internal("is_quick");
            text.push_str(quotient::functions(precision));
            text.push_str(&format!("static __device__ __forceinline__ bool {name}_if(const bool {is_quick},\n    {parameters})\n{{\n{lines}    return true;\n}}\n"));
            text.push_str("// Where a division is not a usual one.\n");
            text.push_str(&format!("static __device__ __noinline__ void {name}_again({parameters})\n{{\n    {name}_if(false, {arguments});\n}}\n"));
            text.push_str(&format!("{head}    if (!{name}_if(true, {arguments})) {name}_again({arguments});\n}}\n"));
        } else {
            text.push_str(&format!("{head}{lines}}}\n"));
        }
        (text, self.parameters)
    }
}

/// Whether a choice is a change of sign where the target stands at the second place.
fn is_turned(body: &Body, condition: NodeId, yes: NodeId, no: NodeId) -> bool {
    let is_second = |node: &Node| matches!(node, Node::Present { path } if pseudo_of(path.hops()) == Some(SECOND));
    is_second(&body[condition]) && body[yes] == Node::Negate(no) && body.kind_of(no) == Kind::Real
}

fn part_name(wish: &str, width: usize, part: usize) -> String {
    if width == 1 { wish.to_owned() } else { format!("{wish}_{part}") }
}
