//! A kernel as a text that can be read: operations by their names, with what they are made of in brackets.

use super::{Block, Kernel, Operation, Space, Statement, Step, Type, ValueId, What};
use std::fmt::{self, Display, Formatter};

impl Display for Type {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let element = format!("{:?}", self.element).to_lowercase();
        if self.lanes == 1 { f.write_str(&element) } else { write!(f, "{element}x{}", self.lanes) }
    }
}

impl Display for Kernel {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "kernel {} of {} threads", self.name, self.threads)?;
        for (_, argument) in self.arguments.iter() {
            match argument.what {
                What::Number(kind) => writeln!(f, "    number {}: {kind}", argument.name)?,
                What::Array(array) => {
                    let own = &self.arrays[array];
                    let role = if own.is_written { "output" } else { "input" };
                    let aliased = if own.space == (Space::Global { aliased: true }) { ", aliased" } else { "" };
                    writeln!(f, "    {role} {}: {}{aliased}", own.name, own.element)?;
                }
            }
        }
        for (_, array) in self.arrays.iter() {
            if let Space::Shared(count) = array.space {
                writeln!(f, "    shared {}: {} {count}", array.name, array.element)?;
            }
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
                    writeln!(f, "{indent}var {}: {} = {}", own.name, own.kind, self.shown(*value))?;
                }
                Statement::Assign(variable, value) => {
                    writeln!(f, "{indent}{} = {}", self.variables[*variable].name, self.shown(*value))?;
                }
                Statement::Store(array, index, value) => {
                    let (index, value) = (self.shown(*index), self.shown(*value));
                    writeln!(f, "{indent}{}[{index}] = {value}", self.arrays[*array].name)?;
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
                        Step::Doubled => "doubled".to_owned(),
                    };
                    let unrolled = if own.is_unrolled { ", unrolled" } else { "" };
                    let (name, first, end) =
                        (&self.variables[own.counter].name, self.shown(own.first), self.shown(own.end));
                    writeln!(f, "{indent}for {name} from {first} to {end} {step}{unrolled}")?;
                    self.block(&own.body, depth + 1, f)?;
                }
                Statement::Barrier => writeln!(f, "{indent}barrier")?,
                Statement::Return => writeln!(f, "{indent}return")?,
            }
        }
        Ok(())
    }

    /// A value by its name, or else by what computes it.
    fn shown(&self, value: ValueId) -> String {
        self.values[value].name.as_ref().map_or_else(|| self.operation(value), ToString::to_string)
    }

    fn operation(&self, value: ValueId) -> String {
        let own = &self.values[value];
        let operands =
            || own.operation.operands().into_iter().map(|operand| self.shown(operand)).collect::<Vec<_>>().join(", ");
        let called = |name: &str| format!("{}({})", name.to_lowercase(), operands());
        match &own.operation {
            Operation::Int(number) if own.kind == Type::I32 => number.to_string(),
            Operation::Int(number) => format!("{number}: {}", own.kind),
            Operation::Argument(argument) => self.arguments[*argument].name.to_string(),
            Operation::Variable(variable) => self.variables[*variable].name.to_string(),
            Operation::Coordinate(coordinate, axis) => format!("{coordinate:?}.{axis:?}").to_lowercase(),
            Operation::Binary(binary, ..) => called(&format!("{binary:?}")),
            Operation::Compare(relation, ..) => called(&format!("{relation:?}")),
            Operation::And(..) => called("and"),
            Operation::Or(..) => called("or"),
            Operation::Choose(..) => called("choose"),
            Operation::Convert(_) => called(&own.kind.to_string()),
            Operation::Lane(vector, lane) => format!("{}.{lane}", self.shown(*vector)),
            Operation::Lanes(_) => called("lanes"),
            Operation::Load(array, index) => format!("{}[{}]", self.arrays[*array].name, self.shown(*index)),
            Operation::ShuffleDown(..) => called("shuffle_down"),
        }
    }
}
