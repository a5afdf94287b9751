//! The values of a builder: each once, and what is known is worked out.

use super::{Builder, Term};
use crate::ir::Relation;
use crate::kernel::{
    ArrayId, Axis, Binary, Coordinate, Element, Follow, Function, Operation, Space, Type, Value, ValueId, VariableId,
};

impl Builder {
    pub(super) fn value(&mut self, operation: Operation, kind: Type) -> ValueId {
        let key = (operation, kind);
        let mut at = Some(self.current);
        while let Some(block) = at {
            if let Some(&known) = self.blocks[block].known.get(&key) {
                return known;
            }
            at = self.blocks[block].parent;
        }
        let value = self.fresh(key.0.clone(), kind);
        if self.is_fixed(&key.0) {
            self.blocks[self.current].known.insert(key, value);
        }
        value
    }

    /// A value of its own, whatever else computes the same.
    pub(super) fn fresh(&mut self, operation: Operation, kind: Type) -> ValueId {
        self.is_used.push(false);
        self.made_in.push(self.current);
        self.kernel.values.add(Value { operation, kind, name: None })
    }

    /// Whether an operation comes to the same wherever it is done, as long as its operands do.
    pub(super) fn is_fixed(&self, operation: &Operation) -> bool {
        match operation {
            Operation::Variable(variable) => self.kernel.variables[*variable].is_counter,
            Operation::Load(array, _) => {
                let own = &self.kernel.arrays[*array];
                !own.is_written && self.kernel.whole(*array).space != (Space::Global { aliased: true })
            }
            Operation::ShuffleDown(..) | Operation::Shuffle { .. } => false,
            Operation::Int(_) | Operation::Real(_) | Operation::Bool(_) | Operation::Mask(_) => true,
            Operation::Argument(_) | Operation::Coordinate(..) | Operation::Follow(_) | Operation::Call(..) => true,
            Operation::Binary(..) | Operation::Negate(_) | Operation::Compare(..) | Operation::Convert(_) => true,
            Operation::Not(_) | Operation::And(..) | Operation::Or(..) | Operation::Choose(..) => true,
            Operation::Lane(..) | Operation::Lanes(_) => true,
        }
    }

    /// Whether a value is what it was, wherever it is asked for again: it is made of what has a name, and of arguments.
    pub fn is_settled(&self, value: ValueId) -> bool {
        let own = &self.kernel.values[value];
        let is_variable = matches!(own.operation, Operation::Variable(_));
        let is_fixed = !is_variable && self.is_fixed(&own.operation);
        own.name.is_some() || is_fixed && own.operation.operands().into_iter().all(|operand| self.is_settled(operand))
    }

    /// A whole number of 32 bits.
    pub fn int(&mut self, number: i64) -> ValueId {
        self.literal(number, Type::I32)
    }

    /// A whole number as one of a type.
    pub fn literal(&mut self, number: i64, kind: Type) -> ValueId {
        self.value(Operation::Int(number), kind)
    }

    /// A real number, exact in its type.
    pub fn real(&mut self, number: f64, kind: Type) -> ValueId {
        self.value(Operation::Real(number.to_bits()), kind)
    }

    /// A truth.
    pub fn truth(&mut self, truth: bool) -> ValueId {
        self.value(Operation::Bool(truth), Type::BOOL)
    }

    /// A bit for each of some lanes of a warp.
    pub fn mask(&mut self, lanes: u32) -> ValueId {
        self.value(Operation::Mask(lanes), Type::I32)
    }

    /// The whole number that a value is, if that is known and it has no name.
    fn known(&self, value: ValueId) -> Option<i64> {
        match self.kernel.values[value] {
            Value { operation: Operation::Int(number), kind, name: None } if kind.is_whole() => Some(number),
            _ => None,
        }
    }

    /// The operation of a value that has no name.
    fn inside(&self, value: ValueId) -> Option<&Operation> {
        let own = &self.kernel.values[value];
        own.name.is_none().then_some(&own.operation)
    }

    /// The coordinate of a thread or block, or how many there are.
    pub fn coordinate(&mut self, coordinate: Coordinate, axis: Axis) -> ValueId {
        self.value(Operation::Coordinate(coordinate, axis), Type::I32)
    }

    /// An operation on two numbers of one type.
    pub fn binary(&mut self, operation: Binary, a: ValueId, b: ValueId) -> ValueId {
        let kind = self.kind(a);
        match (operation, self.known(a), self.known(b)) {
            (Binary::Add, Some(0), _) | (Binary::Mul, Some(1), _) => return b,
            (Binary::Mul, Some(0), _) | (Binary::Mul, _, Some(0)) => return self.literal(0, kind),
            (Binary::Add | Binary::Sub, _, Some(0)) | (Binary::Mul | Binary::Div, _, Some(1)) => return a,
            (Binary::Min, Some(x), Some(y)) => return self.literal(x.min(y), kind),
            (Binary::Add, Some(x), Some(y)) => return self.literal(x.saturating_add(y), kind),
            (Binary::Sub, Some(x), Some(y)) => return self.literal(x.saturating_sub(y), kind),
            (Binary::Mul, Some(x), Some(y)) => return self.literal(x.saturating_mul(y), kind),
            (Binary::Add, _, Some(y @ i64::MIN..0)) => {
                let y = self.literal(y.saturating_neg(), kind);
                return self.sub(a, y);
            }
            _ => {}
        }
        // Sums of indices from left to right, so that each is a list of what is added.
        if kind.is_whole() && operation == Binary::Add {
            match self.inside(b) {
                Some(&Operation::Negate(b)) => return self.sub(a, b),
                Some(&Operation::Binary(Binary::Add, b, c)) => {
                    let sum = self.add(a, b);
                    return self.add(sum, c);
                }
                Some(&Operation::Binary(Binary::Sub, b, c)) => {
                    let sum = self.add(a, b);
                    return self.sub(sum, c);
                }
                _ => {}
            }
        }
        self.value(Operation::Binary(operation, a, b), kind)
    }

    /// Their sum.
    pub fn add(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.binary(Binary::Add, a, b)
    }

    /// Their difference.
    pub fn sub(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.binary(Binary::Sub, a, b)
    }

    /// Their product.
    pub fn mul(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.binary(Binary::Mul, a, b)
    }

    /// A number with the other sign.
    pub fn negate(&mut self, a: ValueId) -> ValueId {
        let kind = self.kind(a);
        match self.known(a) {
            Some(number) => self.literal(number.saturating_neg(), kind),
            None => self.value(Operation::Negate(a), kind),
        }
    }

    /// Whether a truth does not hold.
    pub fn not(&mut self, a: ValueId) -> ValueId {
        match self.known_truth(a) {
            Some(truth) => self.truth(!truth),
            None => self.value(Operation::Not(a), Type::BOOL),
        }
    }

    /// A function.
    pub fn call(&mut self, function: Function, operands: Vec<ValueId>, kind: Type) -> ValueId {
        self.value(Operation::Call(function, operands), kind)
    }

    /// A comparison of two values of one type.
    pub fn compare(&mut self, relation: Relation, a: ValueId, b: ValueId) -> ValueId {
        self.value(Operation::Compare(relation, a, b), Type::BOOL)
    }

    /// Whether the first number is less than the second.
    pub fn less(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.compare(Relation::Lt, a, b)
    }

    fn known_truth(&self, value: ValueId) -> Option<bool> {
        match self.inside(value) {
            Some(Operation::Bool(truth)) => Some(*truth),
            _ => None,
        }
    }

    /// Whether both truths hold.
    pub fn and(&mut self, a: ValueId, b: ValueId) -> ValueId {
        match (self.known_truth(a), self.known_truth(b)) {
            (Some(true), _) | (_, Some(false)) => b,
            (_, Some(true)) | (Some(false), _) => a,
            (None, None) if a == b => a,
            (None, None) => self.value(Operation::And(a, b), Type::BOOL),
        }
    }

    /// Whether one of two truths holds.
    pub fn or(&mut self, a: ValueId, b: ValueId) -> ValueId {
        match (self.known_truth(a), self.known_truth(b)) {
            (Some(false), _) | (_, Some(true)) => b,
            (_, Some(false)) | (Some(true), _) => a,
            (None, None) if a == b => a,
            (None, None) => self.value(Operation::Or(a, b), Type::BOOL),
        }
    }

    /// The first value where the truth holds, else the second.
    pub fn choose(&mut self, condition: ValueId, yes: ValueId, no: ValueId) -> ValueId {
        let kind = self.kind(yes);
        self.value(Operation::Choose(condition, yes, no), kind)
    }

    /// A number as one of another type.
    pub fn convert(&mut self, value: ValueId, kind: Type) -> ValueId {
        if self.kind(value) == kind {
            return value;
        }
        match self.known(value) {
            Some(number) if kind.is_whole() => self.literal(number, kind),
            _ => self.value(Operation::Convert(value), kind),
        }
    }

    /// One of the numbers of a value that has several.
    pub fn lane(&mut self, value: ValueId, lane: u8) -> ValueId {
        let kind = Type::one(self.kind(value).element);
        self.value(Operation::Lane(value, lane), kind)
    }

    /// Numbers of one type side by side.
    pub fn lanes(&mut self, lanes: Vec<ValueId>) -> ValueId {
        let element = lanes.first().map_or(Element::I32, |&lane| self.kind(lane).element);
        let kind = Type { element, lanes: lanes.len() as u8 };
        self.value(Operation::Lanes(lanes), kind)
    }

    /// An element of an array.
    pub fn load(&mut self, array: ArrayId, index: impl Into<Term>) -> ValueId {
        self.load_run(array, index, 1)
    }

    /// Elements that follow each other, moved at once.
    pub fn load_run(&mut self, array: ArrayId, index: impl Into<Term>, count: u8) -> ValueId {
        let index = self.term(index);
        let Type { element, lanes } = self.kernel.arrays[array].element;
        self.value(Operation::Load(array, index), Type { element, lanes: lanes * count })
    }

    /// The place that a table leads to from another place.
    pub fn follow(&mut self, follow: Follow) -> ValueId {
        self.value(Operation::Follow(Box::new(follow)), Type::I32)
    }

    /// What the thread so many lanes further on has.
    pub fn shuffle_down(&mut self, value: ValueId, by: ValueId) -> ValueId {
        let kind = self.kind(value);
        self.value(Operation::ShuffleDown(value, by), kind)
    }

    /// What another lane has, of those that do this together.
    pub fn shuffle(&mut self, value: ValueId, lane: ValueId, lanes: ValueId) -> ValueId {
        let kind = self.kind(value);
        self.value(Operation::Shuffle { value, lane, lanes }, kind)
    }

    /// What a variable holds now.
    pub fn get(&mut self, variable: VariableId) -> ValueId {
        let kind = self.kernel.variables[variable].kind;
        self.value(Operation::Variable(variable), kind)
    }
}
