//! Long kernels are not tried: a kernel that is tried first with quick divisions is compiled twice, once for either attempt.

use super::writer::places::WRITTEN_OUT;
use crate::kernel::{Binary, Block, Function, Kernel, Operation, Statement};

/// The most values of a kernel that is tried: compiling longer ones takes more time than quick divisions save.
const MOST: usize = 6 * WRITTEN_OUT;

/// The kernel, or, if it is too long to be tried, the same whose divisions are all plain ones.
pub fn tried_if_short(mut kernel: Kernel) -> Kernel {
    if kernel.attempt.is_none() || kernel.values.len() <= MOST {
        return kernel;
    }
    kernel.attempt = None;
    for value in kernel.values.values_mut() {
        let plain = match &value.operation {
            Operation::Call(Function::Quotient, operands) => match operands[..] {
                [a, b, _] => Operation::Binary(Binary::Div, a, b),
                _ => continue,
            },
            _ => continue,
        };
        value.operation = plain;
    }
    sure(&mut kernel.body);
    kernel
}

/// Leaves out where an attempt gives up: these stand in no loops.
fn sure(block: &mut Block) {
    block.0.retain(|statement| !matches!(statement, Statement::GiveUp));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::build::Builder;
    use crate::kernel::simplify::simplify;
    use crate::kernel::{Attempt, Axis, Coordinate, Element, Type};

    /// A kernel with so many quotients.
    fn kernel(quotients: usize) -> Kernel {
        let mut own = Builder::new("k", 32, "");
        let [is_quick, is_usual] = ["is_quick", "is_usual"].map(|name| own.declared(name));
        own.attempt(Attempt { is_quick, is_usual });
        let real = Type::one(Element::F64);
        let (a, b) = (own.input("a", real), own.output("b", real));
        let thread = own.coordinate(Coordinate::Thread, Axis::X);
        let first = own.load(a, thread);
        let mut value = own.name("x", first);
        for _ in 0..quotients {
            let inverse = own.call(Function::Inverse, vec![value], real);
            let quotient = own.call(Function::Quotient, vec![first, value, inverse], real);
            value = own.name("x", quotient);
        }
        own.give_up();
        own.store(b, thread, value);
        own.finish()
    }

    #[test]
    fn long_kernels_have_plain_divisions() {
        let short = simplify(tried_if_short(kernel(10)));
        assert!(short.attempt.is_some() && short.to_string().contains("quotient("));
        let long = simplify(tried_if_short(kernel(MOST)));
        let text = long.to_string();
        assert!(long.attempt.is_none() && !text.contains("quotient(") && !text.contains("give up"));
        assert!(text.matches("div(").count() == MOST && !text.contains("inverse("));
    }
}
