//! Feeds stencil texts to the compiler.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stencilc_fuzz::language(bytes));
