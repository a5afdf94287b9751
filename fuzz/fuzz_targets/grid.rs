//! Feeds files to the reader of grids.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stencilc_fuzz::grid(bytes));
