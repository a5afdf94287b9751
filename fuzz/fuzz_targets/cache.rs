//! Feeds files to the reader of the cache's entries.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stencilc_fuzz::cache(bytes));
