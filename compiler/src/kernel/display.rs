//! A kernel as a text that can be read: operations by their names, with what they are made of in brackets.

use super::{
    ArgumentKind, Array, Attempt, Binary, Block, Contents, Element, Function, Kernel, Math, Operand, Operation, Space,
    Statement, Step, Type, Unroll, ValueId, Variable, Watch, Watched,
};
use std::fmt::{self, Display, Formatter};

impl Display for Type {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let element = format!("{:?}", self.element).to_lowercase();
        if self.lanes == 1 { f.write_str(&element) } else { write!(f, "{element}x{}", self.lanes) }
    }
}

impl Display for Function {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Function::Scalar(function, Math::Own) => f.write_str(function.name()),
            Function::Scalar(function, Math::Device) => write!(f, "device_{}", function.name()),
            Function::WrappingAdd => f.write_str("wrapping_add"),
            Function::WrappingSub => f.write_str("wrapping_sub"),
            Function::WrappingMul => f.write_str("wrapping_mul"),
            Function::Rem => f.write_str("floored_rem"),
            Function::Less => f.write_str("less"),
            Function::Opaque => f.write_str("opaque"),
            Function::ClusterRank => f.write_str("cluster_rank"),
            Function::Turned => f.write_str("turned"),
            Function::Inverse => f.write_str("inverse"),
            Function::Quotient => f.write_str("quotient"),
            Function::Interleaved(fields) => write!(f, "interleaved{fields}"),
            Function::WatchShift => f.write_str("watch_shift"),
            Function::WatchNeighbour => f.write_str("watch_neighbour"),
            Function::WatchLevel => f.write_str("watch_level"),
        }
    }
}

impl Binary {
    /// What texts call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Binary::Add => "add",
            Binary::Sub => "sub",
            Binary::Mul => "mul",
            Binary::Div => "div",
            Binary::Rem => "rem",
            Binary::Xor => "xor",
            Binary::BitOr => "bitor",
            Binary::BitAnd => "bitand",
            Binary::ShiftRight => "shiftright",
            // Those of the language are `min` and `max`.
            Binary::Min => "whole_min",
            Binary::Max => "whole_max",
        }
    }
}

/// What is said of an array that a kernel writes to, where it is no argument.
fn written(array: &Array) -> &'static str {
    if array.is_written { ", written" } else { "" }
}

impl Display for Kernel {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for line in self.doc.iter().chain(&self.made) {
            writeln!(f, "{}", format!("// {line}").trim_end())?;
        }
        let blocks = if self.blocks > 0 { format!(", {} blocks at once", self.blocks) } else { String::new() };
        writeln!(f, "kernel {} of {} threads{blocks}", self.name, self.threads)?;
        for (_, argument) in self.arguments.iter() {
            match argument.what {
                ArgumentKind::Number(kind) => writeln!(f, "    number {}: {kind}", argument.name)?,
                ArgumentKind::Array(array) => {
                    let own = &self.arrays[array];
                    let role = if own.is_written { "output" } else { "input" };
                    let aliased = if own.space == (Space::Global { aliased: true }) { ", aliased" } else { "" };
                    let watched = own
                        .watched
                        .as_ref()
                        .map(|Watched { entries, length, site }| format!(", watched {entries} {length} {site}"));
                    writeln!(f, "    {role} {}: {}{aliased}{}", own.name, own.element, watched.unwrap_or_default())?;
                }
            }
        }
        for (_, array) in self.arrays.iter() {
            let written = written(array);
            match &array.space {
                Space::Global { .. } | Space::Local(_) | Space::Rows(..) | Space::View(_) => {}
                Space::Shared(count) => writeln!(f, "    shared {}: {} {count}{written}", array.name, array.element)?,
                Space::Dynamic(bytes) => writeln!(f, "    dynamic {}: {bytes} bytes{written}", array.name)?,
                Space::Part { of, first, count } => {
                    let of = &self.arrays[*of].name;
                    writeln!(
                        f,
                        "    part {}: {} {count}, from byte {first} of {of}{written}",
                        array.name, array.element
                    )?;
                }
                Space::Constant(values) => {
                    let values: Vec<String> = values.iter().map(i32::to_string).collect();
                    writeln!(f, "    constant {}: {} {}", array.name, array.element, values.join(" "))?;
                }
            }
        }
        if let Some(Attempt { is_quick, is_usual }) = &self.attempt {
            writeln!(f, "    tried {is_quick} {is_usual}")?;
        }
        if let Some(Watch { name, report, columns, plane }) = &self.watch {
            let [report, columns] = [report, columns].map(|array| &self.arrays[*array].name);
            writeln!(f, "    watch {name}: {report}, {columns}, {}", self.shown(*plane))?;
        }
        self.indented(&self.body).try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl Kernel {
    /// The statements of a block as lines.
    fn lines(&self, block: &Block) -> Vec<String> {
        block.0.iter().flat_map(|own| self.statement(own)).collect()
    }

    fn indented(&self, block: &Block) -> impl Iterator<Item = String> {
        self.lines(block).into_iter().map(|line| if line.is_empty() { line } else { format!("    {line}") })
    }

    fn statement(&self, statement: &Statement) -> Vec<String> {
        let shown = |value: &ValueId| self.shown(*value);
        let line = match statement {
            Statement::Let(value) => {
                let own = &self.values[*value];
                let name = own.name.as_ref().map_or("_", |name| name);
                format!("let {name}: {} = {}", own.kind, self.operation(*value))
            }
            Statement::Declare(variable, value) => {
                let own = &self.variables[*variable];
                let first = value.map(|value| format!(" = {}", self.shown(value)));
                format!("var {}: {}{}", own.name, own.kind, first.unwrap_or_default())
            }
            Statement::Assign(variable, value) => format!("{} = {}", self.variables[*variable].name, shown(value)),
            Statement::Store(array, index, value) => {
                format!("{}[{}] = {}", self.arrays[*array].name, shown(index), shown(value))
            }
            Statement::AtomicAdd(array, index, values) => {
                format!("{}[{}] += {}", self.arrays[*array].name, shown(index), self.all(values))
            }
            Statement::Array(array, contents) => {
                let own = &self.arrays[*array];
                let (name, element, written) = (&own.name, own.element, written(own));
                let what = match &own.space {
                    Space::Local(count) => format!("local {name}: {element} {count}{written}"),
                    Space::Rows(count, width) => format!("rows {name}: {element} {count} of {width}{written}"),
                    _ => format!("view {name}: {element}{written}"),
                };
                let base = own.space.base().map_or("", |base| &self.arrays[base].name);
                match contents {
                    Contents::Unset => what,
                    Contents::Zeros => format!("{what} = zeros"),
                    Contents::Listed(values) => format!("{what} = {}", self.all(values)),
                    Contents::From(index) => format!("{what} = {base} from {}", shown(index)),
                    Contents::Either(truth, other) => {
                        format!("{what} = {base} if {}, else {}", shown(truth), self.arrays[*other].name)
                    }
                }
            }
            Statement::Do(routine, operands) => {
                let numbers: String = routine.numbers().into_iter().map(|number| format!(" {number}")).collect();
                let operands = operands.iter().map(|operand| match operand {
                    Operand::Value(value) => shown(value),
                    Operand::Row(array) => self.arrays[*array].name.to_string(),
                    Operand::Place(array, index) => format!("&{}[{}]", self.arrays[*array].name, shown(index)),
                });
                format!("{}{numbers}({})", routine.name(), operands.collect::<Vec<_>>().join(", "))
            }
            Statement::If(condition, yes, no) => {
                let mut lines = vec![format!("if {}", shown(condition))];
                lines.extend(self.indented(yes));
                if !no.0.is_empty() {
                    lines.push("else".to_owned());
                    lines.extend(self.indented(no));
                }
                return lines;
            }
            Statement::For(own) => {
                let step = match own.step {
                    Step::By(step) => format!("by {}", self.shown(step)),
                    Step::Down(step) => format!("down by {}", self.shown(step)),
                    Step::Doubled => "doubled".to_owned(),
                };
                let unrolled = match own.unroll {
                    Unroll::Free => String::new(),
                    Unroll::Whole => ", unrolled".to_owned(),
                    Unroll::Times(times) => format!(", unrolled {times} times"),
                    Unroll::SideBySide => ", side by side".to_owned(),
                };
                let Variable { name, kind, .. } = &self.variables[own.counter];
                let kind = if *kind == Type::I32 { String::new() } else { format!(": {kind}") };
                let (first, end) = (shown(&own.first), shown(&own.end));
                let mut lines = vec![format!("for {name}{kind} from {first} to {end} {step}{unrolled}")];
                lines.extend(self.indented(&own.body));
                return lines;
            }
            Statement::Barrier => "barrier".to_owned(),
            Statement::Break => "break".to_owned(),
            Statement::Return => "return".to_owned(),
            Statement::GiveUp => "give up".to_owned(),
            Statement::Gap => String::new(),
            Statement::Note(note) => format!("// {note}"),
        };
        vec![line]
    }

    /// Several values.
    fn all(&self, values: &[ValueId]) -> String {
        values.iter().map(|&value| self.shown(value)).collect::<Vec<_>>().join(", ")
    }

    /// A value by its name, or else by what computes it.
    fn shown(&self, value: ValueId) -> String {
        self.values[value].name.as_ref().map_or_else(|| self.operation(value), ToString::to_string)
    }

    fn operation(&self, value: ValueId) -> String {
        let own = &self.values[value];
        let operands = || self.all(&own.operation.operands());
        let called = |name: &str| format!("{}({})", name.to_lowercase(), operands());
        match &own.operation {
            Operation::Int(number) if own.kind == Type::I32 => number.to_string(),
            Operation::Int(number) => format!("{number}: {}", own.kind),
            Operation::Real(bits) if own.kind.element == Element::F32 => format!("{:?}: f32", f64::from_bits(*bits)),
            Operation::Real(bits) => format!("{:?}", f64::from_bits(*bits)),
            Operation::Bool(truth) => truth.to_string(),
            Operation::Mask(lanes) => format!("{lanes:#x}"),
            Operation::Argument(argument) => self.arguments[*argument].name.to_string(),
            Operation::Variable(variable) => self.variables[*variable].name.to_string(),
            Operation::Coordinate(coordinate, axis) => format!("{coordinate:?}.{axis:?}").to_lowercase(),
            Operation::Binary(binary, ..) => called(binary.name()),
            Operation::Negate(_) => called("negate"),
            Operation::Not(_) => called("not"),
            Operation::Call(function, _) => called(&function.to_string()),
            Operation::Compare(relation, ..) => called(&format!("{relation:?}")),
            Operation::And(..) => called("and"),
            Operation::Or(..) => called("or"),
            Operation::Choose(..) => called("choose"),
            Operation::Convert(_) => called(&own.kind.to_string()),
            Operation::Lane(vector, lane) => format!("{}.{lane}", self.shown(*vector)),
            Operation::Lanes(_) => called("lanes"),
            Operation::Load(array, index) if own.kind != self.arrays[*array].element => {
                format!("{}[{}: {}]", self.arrays[*array].name, self.shown(*index), own.kind)
            }
            Operation::Load(array, index) => format!("{}[{}]", self.arrays[*array].name, self.shown(*index)),
            Operation::Follow(follow) => {
                let patterns = follow.patterns.map(|patterns| format!(", {}", self.arrays[patterns].name));
                let (start, place) = (self.shown(follow.start), self.shown(follow.place));
                format!("follow({}{}, {start}, {place})", self.arrays[follow.table].name, patterns.unwrap_or_default())
            }
            Operation::ShuffleDown(..) => called("shuffle_down"),
            Operation::Shuffle { .. } => called("shuffle"),
        }
    }
}

#[cfg(test)]
mod tests;
