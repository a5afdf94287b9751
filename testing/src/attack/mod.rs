//! Attacks: texts and files as a stranger would make them who means harm, and what has to hold whatever they are.
//!
//! [`texts`] changes stencils that are right: tokens and lines are lost, doubled and moved, numbers become extreme ones, brackets and
//! chains of names grow deep, comments are drawn from an alphabet of all that means something to a C++ compiler ([`hostile`]).
//! [`through`] takes a text as far as kernels, and looks at places, names and characters on the way; [`code`] takes the comments out of
//! a kernel, as compilers do. [`files`] knows the files that the program reads and the calls that read them; [`damage`] changes their
//! bytes, and their headers, shapes and sizes. Each attack is a function of its seed.

pub mod archive;
pub mod code;
pub mod damage;
pub mod files;
pub mod hostile;
pub mod texts;
pub mod through;
pub mod verdict;
