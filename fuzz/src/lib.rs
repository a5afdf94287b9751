//! What the fuzzers do with their bytes. `tests/corpus.rs` replays the corpus through the same functions.

use stencilc_compiler::access::ACCESSES;
use stencilc_compiler::diagnostic::render;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::plan::{self, Choices};
use stencilc_compiler::source::Source;
use stencilc_compiler::storage::STORAGES;
use stencilc_compiler::{check, cuda};
use stencilc_runtime::npy;

/// Stencils longer than this, in operations, are lowered but not made into kernels: the next text is worth more.
const LARGE: usize = 2_000;

/// Takes bytes for the text of a stencil file, and everything that it holds as far as CUDA. Every text is accepted or
/// refused; nothing here may panic or take long.
pub fn language(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let source = Source::new("fuzz.stn", text);
    let lowered = check(&source);
    // Messages show places of the text, which must be there.
    let shown = render(&lowered.diagnostics, &source, false);
    assert_eq!(shown.is_empty(), lowered.diagnostics.is_empty());
    for stencil in &lowered.stencils {
        if stencil.defs.iter().map(|(_, def)| def.body.len()).sum::<usize>() > LARGE {
            continue;
        }
        // Any choice will do, as long as it is the same for the same text.
        let number = bytes.iter().fold(0, |sum: usize, &byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
        let choices = Choices {
            access: ACCESSES[number % ACCESSES.len()].name().to_owned(),
            storage: STORAGES[number / 4 % STORAGES.len()].name().to_owned(),
            precision: if number & 16 == 0 { Precision::F64 } else { Precision::F32 },
            contract: number & 32 == 0,
            ..Choices::default()
        };
        let prepared = plan::prepare(stencil, choices.precision, choices.contract);
        if let Ok(plan) = plan::plan(&prepared, &choices, None)
            && let Ok(built) = cuda::build(&plan)
        {
            assert!(built.source.contains("__global__"));
        }
    }
}

/// Takes bytes for a `.npy` file. What is accepted has as many numbers as its shape says, and comes back the same from a
/// file that is written of it.
pub fn npy(bytes: &[u8]) {
    let Ok(array) = npy::read(&mut &bytes[..], bytes.len() as u64) else { return };
    assert_eq!(array.shape.iter().product::<usize>(), array.data.len());
    let mut written = Vec::new();
    npy::write(&mut written, &array).expect("what was read can be written");
    let again = npy::read(&mut &written[..], written.len() as u64).expect("what was written can be read");
    assert_eq!(again.shape, array.shape);
    assert_eq!(again.data.element(), array.data.element());
    assert!((0..array.data.len()).all(|index| again.data.bits(index) == array.data.bits(index)));
}
