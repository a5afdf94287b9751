//! Random programs over random meshes: calls that add to elements, go on with the sums, look at them through maps, fold numbers, in
//! loops; by the evaluator, by the interpreter, and by kernels, those of several calls among them.

pub mod case;
mod evaluate;
mod generate;
mod shrink;
mod tree;
