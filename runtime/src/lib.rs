//! Runs stencils: arrays and files, devices, NVRTC, the interpreter, verification.

pub mod array;
pub mod cache;
pub mod cuda;
pub mod doctor;
pub mod error;
pub mod files;
pub mod npy;
pub mod nvrtc;
pub mod plot;
pub mod random;

pub use array::{Array, Data, Element};
pub use error::{Error, Fault, Result};
