//! Feeds files to the reader of NumPy's arrays.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stencilc_fuzz::npy(bytes));
