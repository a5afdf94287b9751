//! Compiles, runs and checks stencils, on GPUs and on the CPU.
//!
//! [`job`] is the way in: a [`job::Job`] is a stencil or a program of a text, with its arrays, parameters, grid or mesh and device, and
//! is started, or called on arrays that belong to somebody else. Inputs and results are [`Array`]s; arrays that are lent are
//! [`Lent`]; what goes wrong is an [`Error`], which says what mends it.
//!
//! The other modules are what the command line is made of, and may change with it.

pub mod array;
pub mod bench;
pub mod build;
pub mod cache;
pub mod checked;
pub mod checkpoint;
pub mod clock;
pub mod cuda;
pub mod device;
pub mod doctor;
pub mod drawing;
pub mod driver;
pub mod emulate;
pub mod error;
pub mod execute;
pub mod files;
pub mod given;
pub mod grid;
pub mod interpreter;
pub mod job;
pub mod lent;
pub mod machine;
pub mod measure;
pub mod memory;
pub mod mesh;
pub mod moving;
pub mod npy;
pub mod nvrtc;
pub mod pack;
pub mod peers;
pub mod plot;
pub mod print;
pub mod problem;
pub mod profile;
pub mod program;
pub mod random;
pub mod ranks;
pub mod rows;
pub mod same;
pub mod test;
pub mod threads;
pub mod tune;
pub mod verify;

pub use array::{Array, Data, Element};
pub use device::Device;
pub use drawing::Drawing;
pub use error::{Error, Fault, Result};
pub use given::Cast;
pub use lent::Lent;
