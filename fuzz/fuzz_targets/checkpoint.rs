//! Feeds files to the reader of checkpoints.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stencilc_fuzz::checkpoint(bytes));
