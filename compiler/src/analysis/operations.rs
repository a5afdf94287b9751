//! Which operations a body costs, by kind, and how many floating-point operations that makes.

pub use crate::ir::operation::Operation;

/// How many of each operation; more than fit are the most that fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations([u64; Operation::ALL.len()]);

impl Operations {
    /// Adds `times` operations.
    pub fn add(&mut self, operation: Operation, times: u64) {
        let count = &mut self.0[operation as usize];
        *count = count.saturating_add(times);
    }

    /// Adds `times` of others.
    pub fn add_all(&mut self, others: &Operations, times: u64) {
        for (operation, count) in others.iter() {
            self.add(operation, count.saturating_mul(times));
        }
    }

    /// How many of one.
    pub fn count(&self, operation: Operation) -> u64 {
        self.0[operation as usize]
    }

    /// Each operation with how many there are of it, none included.
    pub fn iter(&self) -> impl Iterator<Item = (Operation, u64)> {
        Operation::ALL.into_iter().map(|operation| (operation, self.count(operation)))
    }

    /// Floating-point operations: a fused multiply-add counts two.
    pub fn flops(&self) -> u64 {
        self.iter().fold(0, |sum, (operation, count)| sum.saturating_add(count.saturating_mul(operation.flops())))
    }

    /// Floating-point instructions at the least: each operation that counts as flops is one, whether it counts one or two.
    pub fn instructions(&self) -> u64 {
        let counted = self.iter().filter(|(operation, _)| operation.flops() > 0);
        counted.fold(0, |sum, (_, count)| sum.saturating_add(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_has_its_own_place() {
        for (place, operation) in Operation::ALL.into_iter().enumerate() {
            assert_eq!(operation as usize, place);
        }
    }

    #[test]
    fn an_fma_is_two_flops_of_one_instruction() {
        let mut operations = Operations::default();
        operations.add(Operation::Fma, 3);
        operations.add(Operation::Divide, 1);
        operations.add(Operation::Compare, 5);
        assert_eq!((operations.flops(), operations.instructions()), (7, 4));
        operations.add_all(&operations.clone(), u64::MAX);
        assert_eq!(operations.flops(), u64::MAX);
    }
}
