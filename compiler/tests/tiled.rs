//! A kernel of tiles as it reads: names, comments and loops, without the prelude.

use stencilc_compiler::ir::Precision;
use stencilc_compiler::plan::prepare;
use stencilc_compiler::source::Source;
use stencilc_compiler::step::tiled::{Shape, tiled};
use stencilc_compiler::step::{Edge, Rows, Subject};

const STENCIL: &str = "stencil smooth { in a; out b
let sides = a[i-1] + a[i+1]
b = a - 0.25 * (sides[j-1] + sides[j+1]) }";

#[test]
fn a_kernel_of_tiles_reads_as_what_it_does() {
    let lowered = stencilc_compiler::check(&Source::new("smooth.stn", STENCIL));
    let stencil = prepare(&lowered.stencils[0], Precision::F64, true);
    let subject = Subject {
        stencil: &stencil,
        precision: Precision::F64,
        extents: [256, 20, 2],
        rows: Rows { first: 0, row: 256, plane: 5120 },
        edges: [Edge::Open; 2],
    };
    let kernel = tiled(&subject, &Shape { tile: [32, 7], threads: 64, rows: 3 }).unwrap();
    let (_, text) = kernel.text.split_once("#endif\n").unwrap();
    assert_eq!(text, EXPECTED, "{text}");
    assert_eq!((kernel.launch.grid, kernel.launch.shared), ([48, 1, 1], 5760));
}

const EXPECTED: &str = r#"extern "C" __global__ void __launch_bounds__(64)
smooth_tiled(const double* __restrict__ a,
    double* __restrict__ b)
{
    STENCILC_DYNAMIC_SHARED(unsigned char, memory);
    double* const a_tile = reinterpret_cast<double*>(memory);
    double* const sides_tile = reinterpret_cast<double*>(memory + 2880);
    const int block = blockIdx.x;
    const int first_column = block % 8 * 32;
    const int first_row = min(block / 8 % 3 * 7, 11) + 1;
    const int k = block / 24;
    const double* const a_from = a + 5120 * (long long)k;
    double* const b_to = b + 5120 * (long long)k;
    #pragma unroll 1
    for (unsigned item = threadIdx.x; item < 162; item += 64) {
        const int column = int(item % 18 * 2);
        const int row = int(item / 18);
        const int i = int(unsigned(first_column + column + 254) % 256);
        const int j = int(unsigned(first_row + row + 19) % 20);
        const int cell = j * 256 + i;
        copy_async<16>(a_tile + row * 40 + column + 2, a_from + cell);
    }
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();

    // sides: 32x9 cells.
    #pragma unroll 1
    for (unsigned item = threadIdx.x; item < 96; item += 64) {
        const int column = int(item % 32);
        const int part = int(item / 32);
        const int row = part * 3;
        const int at = row * 40 + column;
        double sides[3];
        #pragma unroll
        for (int r = 0; r < 3; ++r) {
            const int here = at + r * 40;
            sides[r] = a_tile[here + 3] + a_tile[here + 5];
        }
        #pragma unroll
        for (int r = 0; r < 3; ++r) {
            sides_tile[at + r * 40 + 4] = sides[r];
        }
    }
    __syncthreads();

    // The outputs: 32x7 cells.
    #pragma unroll 1
    for (unsigned item = threadIdx.x; item < 96; item += 64) {
        const int column = int(item % 32);
        const int part = int(item / 32);
        const int row = part * 2 + min(part, 1);
        const int at = row * 40 + column;
        const int i = first_column + column;
        #pragma unroll
        for (int r = 0; r < 3; ++r) {
            if (r == 2 && part >= 1) break;
            const int here = at + r * 40;
            const int j = first_row + row + r;
            const int cell = j * 256 + i;
            if (i >= 1 && i < 255) b_to[cell] = fma(-0.25, sides_tile[here + 4] + sides_tile[here + 84], a_tile[here + 44]);
        }
    }
}
"#;
