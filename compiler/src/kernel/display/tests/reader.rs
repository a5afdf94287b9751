//! Reads the text of a kernel that `Display` has written.

use crate::ir::{self, Arena, Relation};
use crate::kernel::{
    Argument, ArgumentKind, Array, ArrayId, Attempt, Axis, Binary, Block, Contents, Coordinate, Element, Follow, For,
    Function, Kernel, Math, Meaning, Operand, Operation, Routine, Space, Statement, Step, Type, Unroll, Value, ValueId,
    Variable, VariableId, Watch, Watched,
};
use crate::names::{Identifier, Names};
use crate::text::Comment;
use std::collections::HashMap;

/// Reads a kernel that `Display` has written. What arguments mean is not in the text.
pub(super) fn read(text: &str) -> Kernel {
    let lines: Vec<&str> = text.lines().collect();
    let head = lines.iter().position(|line| line.starts_with("kernel ")).expect("a kernel");
    let comment = |line: &&str| Comment::new(line.trim_start_matches("//").strip_prefix(' ').unwrap_or_default());
    let has_made = head > 0 && lines[head - 1].starts_with("// Made by ");
    let doc = lines[..head - usize::from(has_made)].iter().map(comment);
    let words: Vec<&str> = lines[head].split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let &["kernel", name, "of", threads, "threads", ref rest @ ..] = &words[..] else { panic!("{}", lines[head]) };
    let kernel = Kernel {
        name: identifier(name),
        doc: doc.collect(),
        made: has_made.then(|| comment(&lines[head - 1])),
        threads: threads.parse().unwrap(),
        blocks: rest.first().map_or(0, |blocks| blocks.parse().unwrap()),
        arguments: Arena::new(),
        arrays: Arena::new(),
        variables: Arena::new(),
        values: Arena::new(),
        body: Block::default(),
        watch: None,
        attempt: None,
    };
    let scopes = vec![HashMap::new()];
    let mut reader = Reader { kernel, lines, line: head + 1, rest: "", scopes, watch: None };
    while reader.declaration() {}
    reader.kernel.body = reader.block(1);
    if let Some((name, [report, columns], plane)) = reader.watch.take() {
        let is_plane = |own: &ValueId| reader.kernel.values[*own].name.as_deref() == Some(plane);
        let size = reader.kernel.sizes().find(is_plane);
        reader.rest = plane;
        let plane = size.unwrap_or_else(|| reader.value());
        reader.kernel.watch = Some(Watch { name, report, columns, plane });
    }
    assert_eq!(reader.line, reader.lines.len(), "a line that is none: {}", reader.lines[reader.line]);
    reader.kernel
}

fn identifier(name: &str) -> Identifier {
    Names::default().declared(name)
}

/// What a name stands for.
#[derive(Clone, Copy)]
enum Symbol {
    Value(ValueId),
    Variable(VariableId),
    Array(ArrayId),
}

struct Reader<'a> {
    kernel: Kernel,
    lines: Vec<&'a str>,
    line: usize,
    /// What is left of the line at hand.
    rest: &'a str,
    scopes: Vec<HashMap<&'a str, Symbol>>,
    /// Of a checked kernel the name of its watch, its report and columns, and what it says of its plane, which may be one of
    /// the sizes that follow.
    watch: Option<(Identifier, [ArrayId; 2], &'a str)>,
}

impl<'a> Reader<'a> {
    /// Reads an argument, or an array that is there from the beginning.
    fn declaration(&mut self) -> bool {
        let Some(line) = self.lines.get(self.line).and_then(|line| line.strip_prefix("    ")) else { return false };
        self.rest = line;
        let word = self.word();
        if !["number", "input", "output", "shared", "dynamic", "part", "constant", "tried", "watch"].contains(&word)
            || !self.rest.starts_with(' ')
        {
            return false;
        }
        self.line += 1;
        self.rest = self.rest.trim_start();
        let name = self.word();
        if word == "tried" {
            let [is_quick, is_usual] = [name, self.after(" ", Self::word)].map(identifier);
            self.kernel.attempt = Some(Attempt { is_quick, is_usual });
            return true;
        }
        if word == "watch" {
            let [report, columns] = [": ", ", "].map(|before| self.after(before, Self::array));
            self.watch = Some((identifier(name), [report, columns], self.after(", ", Self::word)));
            return true;
        }
        self.expect(": ");
        if word == "number" {
            let kind = self.kind();
            let (name_of, what) = (identifier(name), ArgumentKind::Number(kind));
            let argument = Argument { name: name_of, what, meaning: Meaning::Documented };
            let argument = self.kernel.arguments.add(argument);
            let value = self.add(Operation::Argument(argument), kind);
            self.declare(name, Symbol::Value(value));
            return true;
        }
        let (element, space) = match word {
            "input" | "output" => (self.kind(), Space::Global { aliased: self.has(", aliased") }),
            "shared" => (self.kind(), Space::Shared(self.after(" ", Self::number))),
            "dynamic" => {
                let bytes = self.number();
                self.expect(" bytes");
                (Type::U8, Space::Dynamic(bytes))
            }
            "part" => {
                let (element, count) = (self.kind(), self.after(" ", Self::number));
                let (first, of) = (self.after(", from byte ", Self::number), self.after(" of ", Self::array));
                (element, Space::Part { of, first, count })
            }
            _ => {
                let element = self.kind();
                let mut values = Vec::new();
                while self.has(" ") {
                    values.push(self.integer() as i32);
                }
                (element, Space::Constant(values))
            }
        };
        let watched = self.has(", watched ").then(|| {
            let entries = identifier(self.word());
            let [length, site] = [" ", " "].map(|before| self.after(before, Self::number));
            Watched { entries, length, site }
        });
        let is_written = word == "output" || self.has(", written");
        let array = Array { name: identifier(name), element, space, is_written, watched };
        let array = self.kernel.arrays.add(array);
        if ["input", "output"].contains(&word) {
            let what = ArgumentKind::Array(array);
            // A watched table takes the name of what it is passed as.
            let passed = self.kernel.arrays[array].watched.as_ref().map(|own| own.entries.clone());
            let name = passed.unwrap_or_else(|| identifier(name));
            self.kernel.arguments.add(Argument { name, what, meaning: Meaning::Documented });
        }
        self.declare(name, Symbol::Array(array));
        true
    }

    fn block(&mut self, depth: usize) -> Block {
        self.scopes.push(HashMap::new());
        let mut statements = Vec::new();
        while let Some(&line) = self.lines.get(self.line) {
            let inner = line.trim_start_matches(' ');
            // An empty line stands before the next statement.
            let next = self.lines[self.line..].iter().find(|line| !line.is_empty());
            let is_here = next.is_some_and(|next| next.len() - next.trim_start_matches(' ').len() == 4 * depth);
            if !is_here || inner == "else" {
                break;
            }
            (self.line, self.rest) = (self.line + 1, inner);
            let statement = self.statement(depth);
            assert_eq!(self.rest, "", "the end of {line}");
            statements.push(statement);
        }
        self.scopes.pop();
        Block(statements)
    }

    fn statement(&mut self, depth: usize) -> Statement {
        match self.rest {
            "" => return Statement::Gap,
            "barrier" | "break" | "return" | "give up" => {
                return match std::mem::take(&mut self.rest) {
                    "barrier" => Statement::Barrier,
                    "break" => Statement::Break,
                    "return" => Statement::Return,
                    _ => Statement::GiveUp,
                };
            }
            _ => {}
        }
        if let Some(note) = self.rest.strip_prefix("// ") {
            self.rest = "";
            return Statement::Note(Comment::new(note));
        }
        let before = self.rest;
        let word = self.word();
        match word {
            "let" if self.has(" ") => {
                let name = self.word();
                let kind = self.after(": ", Self::kind);
                let value = self.after(" = ", Self::value);
                // The value is one that nothing else is.
                let value = Value { name: Some(identifier(name)), ..self.kernel.values[value].clone() };
                assert_eq!(value.kind, kind, "{before}");
                let value = self.kernel.values.add(value);
                self.declare(name, Symbol::Value(value));
                Statement::Let(value)
            }
            "var" if self.has(" ") => {
                let name = self.word();
                let kind = self.after(": ", Self::kind);
                let first = self.has(" = ").then(|| self.value());
                Statement::Declare(self.variable(name, kind, false), first)
            }
            "local" | "rows" | "view" if self.has(" ") => self.own_array(word),
            "if" if self.has(" ") => {
                let condition = self.value();
                let end = std::mem::take(&mut self.rest);
                let yes = self.block(depth + 1);
                let has_else = self.lines.get(self.line).is_some_and(|line| *line == "    ".repeat(depth) + "else");
                self.line += usize::from(has_else);
                let no = if has_else { self.block(depth + 1) } else { Block::default() };
                self.rest = end;
                Statement::If(condition, yes, no)
            }
            "for" if self.has(" ") => self.each(depth),
            name => match self.find(name) {
                Some(Symbol::Variable(variable)) => Statement::Assign(variable, self.after(" = ", Self::value)),
                Some(Symbol::Array(array)) => {
                    let index = self.after("[", Self::value);
                    if self.has("] += ") {
                        return Statement::AtomicAdd(array, index, self.all(Self::value));
                    }
                    Statement::Store(array, index, self.after("] = ", Self::value))
                }
                _ => {
                    let mut numbers = Vec::new();
                    while self.has(" ") {
                        numbers.push(self.number());
                    }
                    self.expect("(");
                    let operands = if self.has(")") { Vec::new() } else { self.all(Self::operand) };
                    if !operands.is_empty() {
                        self.expect(")");
                    }
                    Statement::Do(routine(name, &numbers), operands)
                }
            },
        }
    }

    /// An array of a thread's own, or a view.
    fn own_array(&mut self, word: &str) -> Statement {
        let name = self.word();
        let element = self.after(": ", Self::kind);
        let mut space = match word {
            "local" => Some(Space::Local(self.after(" ", Self::number))),
            "rows" => Some(Space::Rows(self.after(" ", Self::number), self.after(" of ", Self::number))),
            _ => None,
        };
        let is_written = self.has(", written");
        let contents = if !self.has(" = ") {
            Contents::Unset
        } else if self.has("zeros") {
            Contents::Zeros
        } else if space.is_some() {
            Contents::Listed(self.all(Self::value))
        } else {
            space = Some(Space::View(self.array()));
            if self.has(" from ") {
                Contents::From(self.value())
            } else {
                Contents::Either(self.after(" if ", Self::value), self.after(", else ", Self::array))
            }
        };
        let space = space.expect("a view is of something");
        let array = self.kernel.arrays.add(Array { name: identifier(name), element, space, is_written, watched: None });
        self.declare(name, Symbol::Array(array));
        Statement::Array(array, contents)
    }

    fn each(&mut self, depth: usize) -> Statement {
        let name = self.word();
        let kind = if self.has(": ") { self.kind() } else { Type::I32 };
        let (first, end) = (self.after(" from ", Self::value), self.after(" to ", Self::value));
        let step = if self.has(" by ") {
            Step::By(self.value())
        } else if self.has(" down by ") {
            Step::Down(self.value())
        } else {
            self.expect(" doubled");
            Step::Doubled
        };
        let unroll = match (self.has(", side by side"), self.has(", unrolled"), self.has(" ")) {
            (true, ..) => Unroll::SideBySide,
            (_, false, _) => Unroll::Free,
            (_, true, false) => Unroll::Whole,
            (_, true, true) => Unroll::Times(self.number() as u32),
        };
        if matches!(unroll, Unroll::Times(_)) {
            self.expect(" times");
        }
        let rest = std::mem::take(&mut self.rest);
        self.scopes.push(HashMap::new());
        let counter = self.variable(name, kind, true);
        let body = self.block(depth + 1);
        self.scopes.pop();
        self.rest = rest;
        Statement::For(Box::new(For { counter, first, end, step, unroll, body }))
    }

    fn operand(&mut self) -> Operand {
        if self.has("&") {
            let array = self.array();
            let index = self.after("[", Self::value);
            self.expect("]");
            return Operand::Place(array, index);
        }
        let before = self.rest;
        let word = self.word();
        if let (Some(Symbol::Array(array)), false) = (self.find(word), self.rest.starts_with('[')) {
            return Operand::Row(array);
        }
        self.rest = before;
        Operand::Value(self.value())
    }

    /// A value, with what is taken from it.
    fn value(&mut self) -> ValueId {
        let mut value = self.primary();
        while self.rest.starts_with('.') {
            self.expect(".");
            let lane = self.number() as u8;
            let kind = Type::one(self.kernel.values[value].kind.element);
            value = self.add(Operation::Lane(value, lane), kind);
        }
        value
    }

    fn primary(&mut self) -> ValueId {
        if self.rest.starts_with(|first: char| first.is_ascii_digit() || first == '-') {
            return self.literal();
        }
        let word = self.word();
        if let Some(symbol) = self.find(word) {
            return match symbol {
                Symbol::Value(value) => value,
                Symbol::Variable(variable) => {
                    self.add(Operation::Variable(variable), self.kernel.variables[variable].kind)
                }
                Symbol::Array(array) => {
                    let index = self.after("[", Self::value);
                    let kind = if self.has(": ") { self.kind() } else { self.kernel.arrays[array].element };
                    self.expect("]");
                    self.add(Operation::Load(array, index), kind)
                }
            };
        }
        if let "inf" | "NaN" = word {
            return self.real(word);
        }
        if let "true" | "false" = word {
            return self.add(Operation::Bool(word == "true"), Type::BOOL);
        }
        if self.has(".") {
            let axis = match self.word() {
                "x" => Axis::X,
                "y" => Axis::Y,
                _ => Axis::Z,
            };
            let all = [Coordinate::Thread, Coordinate::Block, Coordinate::Threads, Coordinate::Blocks];
            let coordinate = all.into_iter().find(|own| format!("{own:?}").to_lowercase() == word);
            return self.add(Operation::Coordinate(coordinate.unwrap_or_else(|| panic!("{word}")), axis), Type::I32);
        }
        self.expect("(");
        if word == "follow" {
            return self.follow();
        }
        let operands = if self.rest.starts_with(')') { Vec::new() } else { self.all(Self::value) };
        self.expect(")");
        self.called(word, operands)
    }

    fn follow(&mut self) -> ValueId {
        let table = self.array();
        self.expect(", ");
        let before = self.rest;
        let word = self.word();
        let patterns = match (self.find(word), self.has(", ")) {
            (Some(Symbol::Array(array)), true) => Some(array),
            _ => {
                self.rest = before;
                None
            }
        };
        let start = self.value();
        let place = self.after(", ", Self::value);
        self.expect(")");
        self.add(Operation::Follow(Box::new(Follow { patterns, table, start, place })), Type::I32)
    }

    /// What is written as a function.
    fn called(&mut self, name: &str, operands: Vec<ValueId>) -> ValueId {
        let kind_of = |number: usize| operands.get(number).map_or(Type::I32, |&value| self.kernel.values[value].kind);
        let first = kind_of(0);
        let all = [Binary::Add, Binary::Sub, Binary::Mul, Binary::Div, Binary::Rem, Binary::Xor, Binary::BitOr];
        let all = all.into_iter().chain([Binary::BitAnd, Binary::ShiftRight, Binary::Min, Binary::Max]);
        if let Some(binary) = all.into_iter().find(|own| own.name() == name) {
            return self.add(Operation::Binary(binary, operands[0], operands[1]), first);
        }
        let all = [Relation::Lt, Relation::Le, Relation::Gt, Relation::Ge, Relation::Eq, Relation::Ne];
        if let Some(relation) = all.into_iter().find(|own| format!("{own:?}").to_lowercase() == name) {
            return self.add(Operation::Compare(relation, operands[0], operands[1]), Type::BOOL);
        }
        let (operation, kind) = match (name, operands.as_slice()) {
            ("negate", &[a]) => (Operation::Negate(a), first),
            ("not", &[a]) => (Operation::Not(a), first),
            ("and", &[a, b]) => (Operation::And(a, b), first),
            ("or", &[a, b]) => (Operation::Or(a, b), first),
            ("choose", &[condition, yes, no]) => (Operation::Choose(condition, yes, no), kind_of(1)),
            ("lanes", _) => {
                let kind = Type { element: first.element, lanes: operands.len() as u8 };
                (Operation::Lanes(operands), kind)
            }
            ("shuffle_down", &[value, by]) => (Operation::ShuffleDown(value, by), first),
            ("shuffle", &[value, lane, lanes]) => (Operation::Shuffle { value, lane, lanes }, first),
            _ => match (kind_named(name), function(name)) {
                (Some(kind), _) => (Operation::Convert(operands[0]), kind),
                (None, Some(function)) => {
                    let kind = match function {
                        Function::Less | Function::WatchShift => Type::BOOL,
                        Function::WatchNeighbour | Function::WatchLevel => Type::BOOL,
                        _ => first,
                    };
                    (Operation::Call(function, operands), kind)
                }
                (None, None) => panic!("what is {name}({})", operands.len()),
            },
        };
        self.add(operation, kind)
    }

    /// A number; a whole one of 32 bits, and a real one of double precision, without its type.
    fn literal(&mut self) -> ValueId {
        let is_number = |(at, character): (usize, char)| {
            let after_e = at > 0 && self.rest.as_bytes()[at - 1] == b'e';
            character.is_ascii_alphanumeric() || character == '.' || character == '-' && (at == 0 || after_e)
        };
        let end = self.rest.char_indices().find(|&own| !is_number(own)).map_or(self.rest.len(), |(at, _)| at);
        let (number, rest) = self.rest.split_at(end);
        self.rest = rest;
        if let Some(mask) = number.strip_prefix("0x") {
            return self.add(Operation::Mask(u32::from_str_radix(mask, 16).unwrap()), Type::I32);
        }
        match number.parse() {
            Ok(whole) => {
                let before = self.rest;
                let kind = if self.has(": ") { self.kind() } else { Type::I32 };
                // Within brackets a type of several numbers is that of what is loaded.
                let is_own = kind.lanes == 1;
                if !is_own {
                    self.rest = before;
                }
                self.add(Operation::Int(whole), if is_own { kind } else { Type::I32 })
            }
            Err(_) => self.real(number),
        }
    }

    fn real(&mut self, number: &str) -> ValueId {
        let kind = if self.has(": f32") { Type::one(Element::F32) } else { Type::one(Element::F64) };
        let number: f64 = number.parse().unwrap_or_else(|error| panic!("{number}: {error}"));
        self.add(Operation::Real(number.to_bits()), kind)
    }

    fn add(&mut self, operation: Operation, kind: Type) -> ValueId {
        self.kernel.values.add(Value { operation, kind, name: None })
    }

    fn variable(&mut self, name: &'a str, kind: Type, is_counter: bool) -> VariableId {
        let variable = self.kernel.variables.add(Variable { name: identifier(name), kind, is_counter });
        self.declare(name, Symbol::Variable(variable));
        variable
    }

    fn declare(&mut self, name: &'a str, symbol: Symbol) {
        self.scopes.last_mut().unwrap().insert(name, symbol);
    }

    fn find(&self, name: &str) -> Option<Symbol> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name)).copied()
    }

    fn array(&mut self) -> ArrayId {
        let name = self.word();
        let Some(Symbol::Array(array)) = self.find(name) else { panic!("{name} is no array") };
        array
    }

    fn kind(&mut self) -> Type {
        let name = self.word();
        kind_named(name).unwrap_or_else(|| panic!("{name} is no type"))
    }

    /// Several, with commas between them.
    fn all<T>(&mut self, read: impl Fn(&mut Self) -> T) -> Vec<T> {
        let mut all = vec![read(self)];
        while self.has(", ") {
            all.push(read(self));
        }
        all
    }

    fn after<T>(&mut self, before: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        self.expect(before);
        read(self)
    }

    fn number(&mut self) -> usize {
        self.integer() as usize
    }

    fn integer(&mut self) -> i64 {
        let end = self.rest.find(|own: char| !own.is_ascii_digit() && own != '-').unwrap_or(self.rest.len());
        let (number, rest) = self.rest.split_at(end);
        self.rest = rest;
        number.parse().unwrap_or_else(|_| panic!("no number: {number}{rest}"))
    }

    fn word(&mut self) -> &'a str {
        let end = self.rest.find(|own: char| !own.is_ascii_alphanumeric() && own != '_').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn has(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, text: &str) {
        assert!(self.has(text), "`{text}` is missing before `{}` in {}", self.rest, self.lines[self.line - 1]);
    }
}

fn kind_named(name: &str) -> Option<Type> {
    let elements = [Element::F32, Element::F64, Element::I32, Element::I64, Element::U32, Element::Barrier];
    let all = elements.into_iter().chain([Element::U16, Element::U8, Element::Bool]);
    let all = all.flat_map(|element| [1, 2, 4, 8, 16].map(|lanes| Type { element, lanes }));
    all.into_iter().find(|own| own.to_string() == name)
}

fn function(name: &str) -> Option<Function> {
    let of_language = |name| ir::Function::named(name);
    let own = [Function::WrappingAdd, Function::WrappingSub, Function::WrappingMul, Function::Rem, Function::Less];
    let own = own.into_iter().chain([Function::Opaque, Function::Turned, Function::Inverse, Function::Quotient]);
    let own = own.chain([Function::ClusterRank, Function::WatchShift, Function::WatchNeighbour, Function::WatchLevel]);
    let own = own.chain((2..64).map(Function::Interleaved));
    match name.strip_prefix("device_").and_then(of_language) {
        Some(function) => Some(Function::Scalar(function, Math::Device)),
        None => match of_language(name) {
            Some(function) => Some(Function::Scalar(function, Math::Own)),
            None => own.into_iter().find(|own| own.to_string() == name),
        },
    }
}

fn routine(name: &str, numbers: &[usize]) -> Routine {
    let [a, b] = [0, 1].map(|at| numbers.get(at).copied().unwrap_or(0));
    let all = [Routine::CopyAsync(a), Routine::CopyRun(a), Routine::CopyAsyncCommit, Routine::CopyAsyncWait(a)];
    let all = all.into_iter().chain([Routine::LoadRow(a), Routine::LoadRowWhere, Routine::PutRow(a)]);
    let all = all.chain([Routine::PutBetween(a), Routine::CopyRow, Routine::WidenRow(a, b), Routine::JoinRows(a, b)]);
    let all = all.chain([Routine::GridBarrier, Routine::PushRow, Routine::PullRow, Routine::BarrierInit]);
    let all = all.chain([Routine::BarrierFence, Routine::BarrierExpect, Routine::BarrierWaitCluster]);
    let all = all.chain([Routine::ClusterArrive, Routine::ClusterWait, Routine::FlagRaise, Routine::FlagWait]);
    let mut all = all.chain([Routine::PeersMeet, Routine::Prefetch]);
    all.find(|own| own.name() == name).unwrap_or_else(|| panic!("{name} is no routine"))
}
