//! Runs stencils: arrays and files, devices, NVRTC, the interpreter, verification.

pub mod array;
pub mod bench;
pub mod cache;
pub mod checked;
pub mod clock;
pub mod cuda;
pub mod doctor;
pub mod drawing;
pub mod emulate;
pub mod error;
pub mod execute;
pub mod files;
pub mod given;
pub mod grid;
pub mod interpreter;
pub mod machine;
pub mod memory;
pub mod mesh;
pub mod npy;
pub mod nvrtc;
pub mod pack;
pub mod plot;
pub mod print;
pub mod problem;
pub mod profile;
pub mod program;
pub mod random;
pub mod same;
pub mod test;
pub mod threads;
pub mod tune;
pub mod verify;

pub use array::{Array, Data, Element};
pub use drawing::Drawing;
pub use error::{Error, Fault, Result};
pub use given::Cast;
