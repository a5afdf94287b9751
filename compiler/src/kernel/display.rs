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

impl Display for Binary {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            // Those of the language are called `min` and `max`.
            Binary::Min => f.write_str("whole_min"),
            Binary::Max => f.write_str("whole_max"),
            other => write!(f, "{}", format!("{other:?}").to_lowercase()),
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
                    let watched = own.watched.as_ref().map(|Watched { entries, length, site }| {
                        format!(", watched {entries} {length} {site}")
                    });
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
                    writeln!(f, "    part {}: {} {count}, from byte {first} of {of}{written}", array.name, array.element)?;
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
        self.block(&self.body, 1, f)
    }
}

impl Kernel {
    fn block(&self, block: &Block, depth: usize, f: &mut Formatter<'_>) -> fmt::Result {
        for statement in &block.0 {
            let indent = "    ".repeat(depth);
            match statement {
                Statement::Let(value) => {
                    let own = &self.values[*value];
                    let name = own.name.as_ref().map_or("_", |name| name);
                    writeln!(f, "{indent}let {name}: {} = {}", own.kind, self.operation(*value))?;
                }
                Statement::Declare(variable, value) => {
                    let own = &self.variables[*variable];
                    let first = value.map(|value| format!(" = {}", self.shown(value)));
                    writeln!(f, "{indent}var {}: {}{}", own.name, own.kind, first.unwrap_or_default())?;
                }
                Statement::Assign(variable, value) => {
                    writeln!(f, "{indent}{} = {}", self.variables[*variable].name, self.shown(*value))?;
                }
                Statement::Store(array, index, value) => {
                    let (index, value) = (self.shown(*index), self.shown(*value));
                    writeln!(f, "{indent}{}[{index}] = {value}", self.arrays[*array].name)?;
                }
                Statement::AtomicAdd(array, index, values) => {
                    let (index, values) = (self.shown(*index), self.all(values));
                    writeln!(f, "{indent}{}[{index}] += {values}", self.arrays[*array].name)?;
                }
                Statement::Array(array, contents) => {
                    let own = &self.arrays[*array];
                    let (name, element, written) = (&own.name, own.element, written(own));
                    let what = match &own.space {
                        Space::Local(count) => format!("local {name}: {element} {count}{written}"),
                        Space::Rows(count, width) => format!("rows {name}: {element} {count} of {width}{written}"),
                        _ => format!("view {name}: {element}{written}"),
                    };
                    let first = match contents {
                        Contents::Unset => String::new(),
                        Contents::Zeros => " = zeros".to_owned(),
                        Contents::Listed(values) => format!(" = {}", self.all(values)),
                        Contents::From(index) => {
                            let base = own.space.base().map_or("", |base| &self.arrays[base].name);
                            format!(" = {base} from {}", self.shown(*index))
                        }
                        Contents::Either(truth, other) => {
                            let base = own.space.base().map_or("", |base| &self.arrays[base].name);
                            format!(" = {base} if {}, else {}", self.shown(*truth), self.arrays[*other].name)
                        }
                    };
                    writeln!(f, "{indent}{what}{first}")?;
                }
                Statement::Do(routine, operands) => {
                    let numbers: String = routine.numbers().into_iter().map(|number| format!(" {number}")).collect();
                    let operands = operands.iter().map(|operand| match operand {
                        Operand::Value(value) => self.shown(*value),
                        Operand::Row(array) => self.arrays[*array].name.to_string(),
                        Operand::Place(array, index) => {
                            format!("&{}[{}]", self.arrays[*array].name, self.shown(*index))
                        }
                    });
                    let operands: Vec<String> = operands.collect();
                    let (name, operands) = (routine.name(), operands.join(", "));
                    writeln!(f, "{indent}{name}{numbers}({operands})")?;
                }
                Statement::If(condition, yes, no) => {
                    writeln!(f, "{indent}if {}", self.shown(*condition))?;
                    self.block(yes, depth + 1, f)?;
                    if !no.0.is_empty() {
                        writeln!(f, "{indent}else")?;
                        self.block(no, depth + 1, f)?;
                    }
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
                    };
                    let Variable { name, kind, .. } = &self.variables[own.counter];
                    let kind = if *kind == Type::I32 { String::new() } else { format!(": {kind}") };
                    let (first, end) = (self.shown(own.first), self.shown(own.end));
                    writeln!(f, "{indent}for {name}{kind} from {first} to {end} {step}{unrolled}")?;
                    self.block(&own.body, depth + 1, f)?;
                }
                Statement::Barrier => writeln!(f, "{indent}barrier")?,
                Statement::Break => writeln!(f, "{indent}break")?,
                Statement::Return => writeln!(f, "{indent}return")?,
                Statement::GiveUp => writeln!(f, "{indent}give up")?,
                Statement::Gap => writeln!(f)?,
                Statement::Note(note) => writeln!(f, "{indent}// {note}")?,
            }
        }
        Ok(())
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
            Operation::Binary(binary, ..) => called(&binary.to_string()),
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
