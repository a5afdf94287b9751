//! The functions of the language: one table of what is known of each. What they compute is [`scalar`](super::scalar).

use super::operation::Operation;
use std::ops::RangeInclusive;

/// What is known of a function.
struct Facts {
    name: &'static str,
    /// How many arguments it takes.
    arguments: RangeInclusive<usize>,
    numbers: Numbers,
    /// What it costs, of real numbers.
    cost: Option<Operation>,
}

/// Which numbers a function takes, and gives.
#[derive(PartialEq)]
enum Numbers {
    Real,
    RealOrWhole,
}

/// So many arguments or more.
const ANY: usize = usize::MAX;

/// Declares the functions by their table.
macro_rules! functions {
    ($($(#[$doc:meta])* $function:ident: $name:literal, $arguments:expr, $numbers:ident, $cost:expr;)*) => {
        /// A function that every device computes alike.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Function { $($(#[$doc])* $function,)* }

        impl Function {
            /// All of them, in the order in which messages list them.
            pub const ALL: &[Function] = &[$(Function::$function,)*];

            const fn facts(self) -> Facts {
                match self {
                    $(Function::$function => {
                        Facts { name: $name, arguments: $arguments, numbers: Numbers::$numbers, cost: $cost }
                    })*
                }
            }
        }
    };
}

functions! {
    /// The smaller; NaN if either is.
    Min: "min", 2..=ANY, RealOrWhole, Some(Operation::MinMax);
    /// The larger; NaN if either is.
    Max: "max", 2..=ANY, RealOrWhole, Some(Operation::MinMax);
    /// Without its sign: a bit of the number, no arithmetic.
    Abs: "abs", 1..=1, RealOrWhole, None;
    /// Square root.
    Sqrt: "sqrt", 1..=1, Real, Some(Operation::Root);
    /// The next whole number below.
    Floor: "floor", 1..=1, Real, Some(Operation::Round);
    /// The next whole number above.
    Ceil: "ceil", 1..=1, Real, Some(Operation::Round);
    /// 1, -1, or the argument itself if it is 0 or NaN.
    Sign: "sign", 1..=1, RealOrWhole, Some(Operation::Round);
    /// The first with the sign of the second; without a sign if that is NaN.
    CopySign: "copysign", 2..=2, Real, None;
    /// `a * b + c`, rounded once.
    Fma: "fma", 3..=3, Real, Some(Operation::Fma);
    /// The cube root.
    Cbrt: "cbrt", 1..=1, Real, Some(Operation::Function);
    /// e to the power of the argument.
    Exp: "exp", 1..=1, Real, Some(Operation::Function);
    /// The natural logarithm; NaN of what is less than 0.
    Log: "log", 1..=1, Real, Some(Operation::Function);
    /// The first to the power of the second, as C's `pow`.
    Pow: "pow", 2..=2, Real, Some(Operation::Function);
    /// The sine of an angle in radians.
    Sin: "sin", 1..=1, Real, Some(Operation::Function);
    /// The cosine of an angle in radians.
    Cos: "cos", 1..=1, Real, Some(Operation::Function);
    /// The tangent of an angle in radians.
    Tan: "tan", 1..=1, Real, Some(Operation::Function);
    /// The angle whose tangent is the argument, from -pi/2 to pi/2.
    Atan: "atan", 1..=1, Real, Some(Operation::Function);
    /// The angle of the point at x = the second, y = the first, from -pi to pi.
    Atan2: "atan2", 2..=2, Real, Some(Operation::Function);
    /// The hyperbolic tangent.
    Tanh: "tanh", 1..=1, Real, Some(Operation::Function);
}

impl Function {
    /// The function with this name in the language.
    pub fn named(name: &str) -> Option<Function> {
        Function::ALL.iter().copied().find(|function| function.name() == name)
    }

    /// The language's name for it.
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// How many arguments it takes in the language: some functions take any number of them, two at a time.
    pub const fn arguments(self) -> RangeInclusive<usize> {
        self.facts().arguments
    }

    /// How many operands it takes.
    pub const fn arity(self) -> usize {
        *self.facts().arguments.start()
    }

    /// Whether it is one of whole numbers, too.
    pub fn takes_whole_numbers(self) -> bool {
        self.facts().numbers == Numbers::RealOrWhole
    }

    /// What it costs, of real numbers; what is no floating-point operation is free.
    pub const fn cost(self) -> Option<Operation> {
        self.facts().cost
    }

    /// Whether devices' own round it differently, so that it is an algorithm of the language's.
    pub fn is_inexact(self) -> bool {
        self.cost() == Some(Operation::Function)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_their_functions() {
        for &function in Function::ALL {
            assert_eq!(Function::named(function.name()), Some(function));
            assert!((1..=3).contains(&function.arity()));
        }
    }
}
