//! Every test of what users see, and of whole passages through the compiler: a module a subject. `cargo test --test all cli::` runs
//! those of one.
//!
//! They are one executable, since to link one for each subject took longer than most of the tests take.

mod attacks;
mod callers;
mod calls;
mod cells;
mod chains;
mod checked;
mod cli;
mod common;
mod convergence;
mod corners;
mod corpus;
mod depth;
mod device;
mod diagnostics;
mod documents;
mod drivers;
mod emulated;
mod environment;
mod explain;
mod functions;
mod gpu;
mod grid_files;
mod headers;
mod jobs;
mod launcher;
mod memory;
mod meshes;
mod mixed;
mod native;
mod npy_files;
mod nvrtc;
mod plans;
mod programs;
mod python;
mod quotients;
mod random_programs;
mod reference;
mod report;
mod sanitised;
mod sharing;
mod snapshots;
mod step;
mod sweeps;
mod texts;
mod wrong_kernels;
