//! Kernels of several texts, compiled at once: NVRTC takes some 40 ms to begin, whatever it is given.

use super::{Kind, compile};
use crate::Result;
use crate::emulate::Source;
use std::fmt::Write;

/// The name of a kernel among others.
pub fn name_among(number: usize) -> String {
    format!("stencilc_kernel_{number}")
}

/// Machine code of the kernels of all texts, each under its [name among them](name_among).
///
/// # Errors
///
/// As [`compile`], and where a single text is none.
pub fn compile_together(texts: &[Source], arch: &str) -> Result<Vec<u8>> {
    Ok(compile(&text(texts), "together.cu", arch, Kind::Cubin)?.image)
}

/// One text of all.
fn text(texts: &[Source]) -> String {
    let mut text = String::new();
    for (number, Source { name, text: own }) in texts.iter().enumerate() {
        let among = name_among(number);
        // C linkage knows no namespaces. Writing to a string cannot fail.
        let _ = writeln!(text, "#define {name} {among}\nnamespace space_{number} {{\n{own}\n}}\n#undef {name}");
    }
    text
}
