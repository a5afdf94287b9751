//! Feeds files to the reader of what was tuned.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stencilc_fuzz::tuned(bytes));
