//! Feeds files to the readers of meshes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stencilc_fuzz::mesh(bytes));
