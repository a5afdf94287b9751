//! Operations of the hardware that CUDA C++ has no word for: `templates/device.h`.
//!
//! Each has two bodies, one for the GPU and one for the emulator. A kernel that is printed gets the first of those that
//! it uses, so it needs no header; the emulator puts the whole file, with the second, before it.

use crate::sections::{self, File, Section, sections};
use std::collections::BTreeSet;

/// The operations, with both bodies. `STENCILC_EMULATED` chooses.
pub const HEADER: &str = sections::HARDWARE;

/// The words and the functions of CUDA C++ on a CPU that need no other threads: what stands before a kernel there.
pub const CPU: &str = include_str!("../../templates/cpu.h");

/// The names of all operations, in the order of the file.
pub fn operations() -> Vec<&'static str> {
    sections(File::Hardware).map(|operation| operation.name).collect()
}

/// The comment of an operation and its body for the GPU.
pub(crate) fn lines(operation: &Section) -> Vec<&'static str> {
    let (mut lines, mut keep) = (Vec::new(), true);
    for line in operation.text.lines() {
        match line {
            "#ifdef STENCILC_EMULATED" => keep = false,
            "#ifndef STENCILC_EMULATED" | "#else" | "#endif" => keep = true,
            line if keep => lines.push(line),
            _ => {}
        }
    }
    lines
}

/// The lines that a kernel needs before it for operations with these names; none if there are none.
pub fn of(names: &BTreeSet<&'static str>) -> Vec<String> {
    let mut names = names.clone();
    sections::add_used(&mut names);
    let used = sections(File::Hardware).filter(|operation| names.contains(operation.name));
    let mut lines: Vec<String> = used.flat_map(lines).map(str::to_owned).collect();
    if !lines.is_empty() {
        lines.insert(0, "#ifndef STENCILC_EMULATED".into());
        lines.push("#endif".into());
    }
    lines
}

/// A text with all operations before it: kernels written by hand that stand alone for NVRTC, nvcc and the emulator.
pub fn with_operations(text: &str) -> String {
    let mut whole: String = of(&operations().into_iter().collect()).iter().map(|line| format!("{line}\n")).collect();
    whole.push_str(text);
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_gets_what_it_uses_and_what_that_uses() {
        assert_eq!(of(&BTreeSet::new()), Vec::<String>::new());
        let text = of(&BTreeSet::from(["store_async"])).join("\n");
        assert!(text.starts_with("#ifndef STENCILC_EMULATED\n") && text.ends_with("\n#endif"), "{text}");
        let places = ["unsigned shared_address(", "unsigned cluster_address(", "void store_async("];
        let places = places.map(|place| text.find(place).unwrap());
        assert!(places.is_sorted(), "{places:?}");
        assert!(!text.contains("copy_async") && !text.contains("emulated::"));
        // A name within another is no use of it.
        assert!(!of(&BTreeSet::from(["copy_async_commit"])).join("\n").contains("void copy_async("));
    }

    #[test]
    fn every_operation_has_a_name_a_comment_and_a_body() {
        for operation in sections(File::Hardware) {
            let lines = lines(operation);
            assert!(lines.len() > 1 && lines[0].starts_with("// "), "{}", operation.name);
            assert!(lines[1..].join("\n").contains(operation.name), "{}", operation.name);
            assert_eq!(operation.text.matches("#if").count(), 1, "{}", operation.name);
            assert!(operation.text.ends_with("#endif"), "{}", operation.name);
        }
        assert!(operations().len() > 15);
    }
}
