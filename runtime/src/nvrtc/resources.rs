//! What kernels take of the GPU, from the words of the assembler.

use serde::{Deserialize, Serialize};

/// What one kernel takes of the GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// Name of the kernel in the image.
    pub kernel: String,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes a thread stores for want of registers.
    pub spill_stores: u32,
    /// Bytes a thread loads for want of registers.
    pub spill_loads: u32,
    /// Bytes of a thread's stack, calls included.
    pub stack: u32,
    /// Bytes of a block's static shared memory.
    pub shared: u32,
    /// Bytes of constant memory, over all banks.
    pub constant: u32,
}

/// Reads what each kernel takes from the words of the assembler, `ptxas -v`:
///
/// ```text
/// ptxas info    : Compiling entry function 'lap' for 'sm_90'
/// ptxas info    : Function properties for lap
/// ptxas         .     880 bytes stack frame, 2000 bytes spill stores, 2000 bytes spill loads
/// ptxas info    : Used 32 registers, used 1 barriers, 880 bytes cumulative stack size, 1200 bytes smem
/// ```
///
/// The properties of functions that a kernel calls stand between the lines of the kernels and are passed over.
pub(super) fn read_resources(log: &str) -> Vec<Resources> {
    let mut kernels: Vec<Resources> = Vec::new();
    let mut described = "";
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let kernel = rest.split('\'').next().unwrap_or_default().to_owned();
            kernels.push(Resources { kernel, ..Resources::default() });
        } else if let Some((_, function)) = line.split_once("Function properties for ") {
            described = function.trim();
        } else if let Some(kernel) = kernels.last_mut() {
            let of_kernel = described == kernel.kernel;
            for part in line.rsplit(": ").next().unwrap_or_default().split(',') {
                let Some((number, what)) = amount(part) else { continue };
                match what {
                    "registers" => kernel.registers = number,
                    "bytes stack frame" if of_kernel => kernel.stack = kernel.stack.max(number),
                    "bytes cumulative stack size" => kernel.stack = kernel.stack.max(number),
                    "bytes spill stores" if of_kernel => kernel.spill_stores = number,
                    "bytes spill loads" if of_kernel => kernel.spill_loads = number,
                    "bytes smem" => kernel.shared = number,
                    _ if what.starts_with("bytes cmem") => kernel.constant = kernel.constant.saturating_add(number),
                    _ => {}
                }
            }
        }
    }
    kernels
}

/// The first number of a phrase and what is said of it: `Used 32 registers` gives 32 and `registers`.
fn amount(phrase: &str) -> Option<(u32, &str)> {
    let digits = phrase.find(|letter: char| letter.is_ascii_digit())?;
    let (number, what) = phrase[digits..].split_once(' ')?;
    Some((number.parse().ok()?, what.trim()))
}
