//! Grids whose columns stand in no rows: files, and grids to begin with.

mod file;
pub mod patches;
mod quadtree;
mod raster;
mod rows;

pub use file::{load, read, save, write};
pub use quadtree::{DEEPEST, Quadtree, Refinement};
pub use raster::Raster;
pub use rows::in_rows;
