//! The kernels that make one number of many: neighbours become one pairwise, as in the interpreter, bit for bit.

use stencilc_compiler::ir::Precision;
use stencilc_compiler::ir::mesh::Fold;

/// Threads of a block.
pub const BLOCK: u32 = 256;

/// Numbers that a block makes one of.
pub const NUMBERS: usize = 1024;

/// The kernel's name.
pub fn name(fold: Fold, precision: Precision) -> String {
    format!("fold_{}_{}", fold.name(), precision.name())
}

/// The kernel, which makes one number of each block of [`NUMBERS`]. A number whose neighbour does not exist stays as it is.
pub fn text(fold: Fold, precision: Precision) -> String {
    let real = match precision {
        Precision::F32 => "float",
        Precision::F64 => "double",
    };
    let both = match fold {
        Fold::Sum => "a + b",
        Fold::Min => "a < b || a != a ? a : b",
        Fold::Max => "a > b || a != a ? a : b",
    };
    let name = name(fold, precision);
    format!(
        r#"__device__ __forceinline__ {real} both({real} a, {real} b) {{ return {both}; }}

extern "C" __global__ void __launch_bounds__({BLOCK})
{name}(const {real}* __restrict__ numbers, {real}* __restrict__ totals, const int n)
{{
    STENCILC_SHARED({real}, of_warps, [8]);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int first_of_block = blockIdx.x * {NUMBERS}, first = first_of_block + 4 * threadIdx.x;
    {real} total = 0;
    if (first < n) {{
        total = numbers[first];
        if (first + 1 < n) total = both(total, numbers[first + 1]);
        if (first + 2 < n) {{
            {real} next = numbers[first + 2];
            if (first + 3 < n) next = both(next, numbers[first + 3]);
            total = both(total, next);
        }}
    }}
    for (int by = 1; by < 32; by *= 2) {{
        const {real} next = __shfl_down_sync(0xffffffffu, total, by);
        if (first + 4 * by < n) total = both(total, next);
    }}
    if (lane == 0) of_warps[warp] = total;
    __syncthreads();
    if (threadIdx.x == 0) {{
        for (int by = 1; by < 8; by *= 2) {{
            for (int own = 0; own + by < 8; own += 2 * by) {{
                if (first_of_block + 128 * (own + by) < n) of_warps[own] = both(of_warps[own], of_warps[own + by]);
            }}
        }}
        totals[blockIdx.x] = of_warps[0];
    }}
}}
"#
    )
}
