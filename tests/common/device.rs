//! Small kernels that use every operation of the device, and what they compute.

use stencilc_runtime::Result;
use stencilc_runtime::machine::{Arg, Launch, Machine};

/// Their texts.
pub const OPERATIONS: &str = include_str!("../operations.cu");

/// Numbers that kernels read.
pub const READ: usize = 1024;
/// Numbers that they write.
pub const WRITTEN: usize = 8192;

/// A kernel that is right.
pub struct Case {
    /// Its name in `operations.cu`.
    pub name: &'static str,
    /// How it is launched.
    pub launch: Launch,
    /// What it writes, given what it reads.
    pub expected: fn(&[f32]) -> Vec<f32>,
}

/// So many blocks of so many threads, along x.
pub fn launch(blocks: u32, threads: u32) -> Launch {
    Launch::new([blocks, 1, 1], [threads, 1, 1])
}

/// What is written where `at` says so; 0 elsewhere.
fn written(count: usize, at: impl Fn(usize) -> f32) -> Vec<f32> {
    (0..WRITTEN).map(|x| if x < count { at(x) } else { 0.0 }).collect()
}

fn reversed(a: &[f32], tile: usize, offset: usize) -> Vec<f32> {
    written(READ, |x| a[x / tile * tile + (tile - 1 - x % tile + offset) % tile])
}

/// Every kernel of `operations.cu`.
pub fn cases() -> Vec<Case> {
    let case = |name, launch, expected| Case { name, launch, expected };
    vec![
        case("block_barrier", launch(8, 128), |a| reversed(a, 128, 0)),
        case("dynamic_shared", Launch { shared: 64 << 10, ..Launch::new([16, 1, 1], [32, 2, 1]) }, |a| {
            written(READ, |x| a[x / 64 * 64 + (x + 1) % 64])
        }),
        case("block_votes", launch(10, 96), |a| {
            written(960, |x| {
                let block = &a[x / 96 * 96..x / 96 * 96 + 96];
                let count = block.iter().filter(|&&v| v > 0.0).count();
                let all = block.iter().all(|&v| v > -40.0);
                let any = block.iter().any(|&v| v > 48.0);
                (count + 1000 * usize::from(all) + 2000 * usize::from(any)) as f32
            })
        }),
        case("shuffles", launch(16, 64), |a| {
            written(8 * READ, |at| {
                let (what, x) = (at / READ, at % READ);
                let (warp, lane) = (x / 32 * 32, x % 32);
                let lanes = &a[warp..warp + 32];
                match what {
                    0 => lanes[lane.saturating_sub(1)],
                    1 => lanes[if lane + 3 < 32 { lane + 3 } else { lane }],
                    2 => lanes[lane ^ 5],
                    3 => lanes[lane * 7 % 32],
                    4 => lanes[if lane % 8 >= 2 { lane - 2 } else { lane }],
                    5 => lanes[if lane % 16 < 15 { lane + 1 } else { lane }],
                    6 => lanes.iter().filter(|&&v| v > 0.0).count() as f32,
                    _ => {
                        let (any, all) = (lanes.iter().any(|&v| v > 48.0), lanes.iter().all(|&v| v > -50.0));
                        f32::from(2 * u8::from(any) + u8::from(all))
                    }
                }
            })
        }),
        case("half_warps", launch(16, 64), |a| written(READ, |x| a[x ^ 15] + a[x ^ 1])),
        case("copies", launch(16, 64), |a| {
            written(3 * READ, |at| {
                let (what, x) = (at / READ, at % READ);
                let other = 63 - x % 64;
                let is_zero = what == 0 && other >= 50 || what == 1 && other == 63;
                if is_zero { 0.0 } else { a[x / 64 * 64 + other] }
            })
        }),
        case("copies_in_stages", launch(1, 128), |a| reversed(a, 128, 0)),
        case("copies_bulk", launch(1, 128), |a| reversed(a, 128, 0)),
        case("arrivals", launch(16, 64), |a| reversed(a, 64, 0)),
        case("clusters", Launch { cluster: [4, 1, 1], ..launch(16, 64) }, |a| {
            written(READ, |x| {
                let (block, rank) = (x / 64, x / 64 % 4);
                let other = block - rank + (rank + 1) % 4;
                a[other * 64 + 63 - x % 64] + 1000.0 * rank as f32
            })
        }),
        case("sends", Launch { cluster: [2, 1, 1], ..launch(2, 32) }, |a| {
            written(READ, |x| a[(x + READ / 2) % READ / 128 * 128 + 127 - x % 128])
        }),
        case("grid_steps", Launch { cooperative: true, ..launch(16, 64) }, |a| {
            let mut states = vec![a.to_vec()];
            for step in 0..3 {
                let from: &Vec<f32> = &states[step];
                states.push((0..READ).map(|x| from[(x + 1) % READ] - from[(x + READ - 1) % READ]).collect());
            }
            written(2 * READ, |at| states[if at < READ { 2 } else { 3 }][at % READ])
        }),
        case("flags", Launch { cooperative: true, ..launch(16, 64) }, |a| {
            let mut sums = vec![0.0; READ];
            for x in 0..READ {
                let block = x / 64 * 64;
                sums[x] = a[x] + if block > 0 { sums[block - 1 - x % 64] } else { 0.0 };
            }
            written(READ, |x| sums[x])
        }),
        case("meetings", launch(16, 64), |a| written(READ, |x| a[x])),
        case("atomics", launch(16, 64), |a| {
            let sum: f32 = a.iter().sum();
            let least = a.iter().copied().fold(0.0, f32::min) as i32;
            let most = a.iter().copied().fold(0.0, f32::max) as i32;
            let bits = f64::from(sum).to_bits();
            let whole =
                [bits as u32, (bits >> 32) as u32, sum as i32 as u32, least as u32, most as u32, 3 * READ as u32];
            written(8, |at| if at == 0 { sum } else { at.checked_sub(2).map_or(0.0, |at| f32::from_bits(whole[at])) })
        }),
        case("caches", launch(16, 64), |a| {
            written(2 * READ, |at| match at.checked_sub(READ) {
                None => 5.0 * a[at],
                Some(x) => {
                    let pair = a[2 * (x % 512)] - a[2 * (x % 512) + 1];
                    let own = if x % 3 == 0 { a[x] } else { -1.0 };
                    let whole = if x % 2 == 0 { a[x].to_bits() as i32 } else { 5 };
                    let bits = |at: usize| u64::from(a[at].to_bits());
                    let wide = f64::from_bits(bits(x / 2 * 2) | bits(x / 2 * 2 + 1) << 32);
                    let is_large = x % 5 != 0 || wide > 1.0;
                    let byte = if x % 7 == 0 { a[x / 4].to_le_bytes()[x % 4] } else { 7 };
                    pair + own + (whole % 16) as f32 + f32::from(u8::from(is_large)) + f32::from(byte)
                }
            })
        }),
    ]
}

/// What kernels read: whole numbers, so that sums are exact in any order.
pub fn numbers() -> Vec<f32> {
    (0..READ).map(|i| (i * 37 % 101) as f32 - 50.0).collect()
}

/// The text of a kernel in `operations.cu`.
pub fn kernel(name: &str) -> &'static str {
    let sections = OPERATIONS.split("//: ").skip(1);
    let named = sections.filter_map(|section| section.split_once('\n'));
    named.into_iter().find(|(own, _)| *own == name).unwrap_or_else(|| panic!("no kernel {name}")).1
}

/// Runs a kernel on a machine: what it wrote.
pub fn run<M: Machine>(machine: &M, kernel: &M::Kernel, launch: &Launch) -> Result<Vec<f32>> {
    let read = machine.upload(bytemuck::cast_slice(&numbers()))?;
    let write = machine.upload(bytemuck::cast_slice(&vec![0f32; WRITTEN]))?;
    let state = machine.upload(&[0; 64])?;
    let arguments = [&read, &write, &state].map(|buffer| Arg::Pointer(machine.address(buffer, 0)));
    machine.launch(kernel, launch, &arguments)?;
    let (bytes, guards) = machine.download(&write)?;
    assert!(guards.intact(), "{guards}");
    Ok(bytemuck::pod_collect_to_vec(&bytes))
}

/// Whether all bits are the same.
pub fn same(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}
