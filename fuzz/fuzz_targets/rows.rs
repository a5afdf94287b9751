//! Feeds files to the reader of results, which `report` shows.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stencilc_fuzz::rows(bytes));
