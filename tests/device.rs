//! Every operation of the device, by small kernels: on the emulator in every order of threads, through NVRTC, and on a
//! GPU. And kernels with a fault, which the emulator must find.

use crate::common::device::{OPERATIONS, WRITTEN, cases, kernel, launch, numbers, run, same};
use stencilc_compiler::device::{operations, with_operations};
use stencilc_runtime::cache::library_cached;
use stencilc_runtime::cuda::{Gpu, availability};
use stencilc_runtime::emulate::{Compiler, Emulator, Order, Settings, Source};
use stencilc_runtime::machine::{Arg, Launch, Machine};
use stencilc_runtime::nvrtc::{self, Kind};
use stencilc_runtime::{Error, Fault, Result};

/// What several kernels, each launched in its way, come to in each order.
fn emulated(kernels: &[(&str, String, Launch)], settings: &Settings) -> Vec<[Result<Vec<f32>>; 3]> {
    let sources: Vec<Source> = kernels.iter().map(|(name, text, _)| Source { name, text: text.as_str() }).collect();
    let built =
        library_cached(&Compiler::find().unwrap(), &sources, settings).unwrap_or_else(|error| panic!("{error}"));
    let outcomes = built.iter().zip(kernels);
    outcomes
        .map(|(built, (.., launch))| Order::ALL.map(|order| run(&Emulator::default().in_order(order), built, launch)))
        .collect()
}

#[test]
fn every_operation_on_the_emulator() {
    let kernels: Vec<_> = cases().iter().map(|case| (case.name, kernel(case.name).to_owned(), case.launch)).collect();
    for (optimise, ucontext) in [(0, false), (2, false), (1, true)] {
        let settings = Settings { optimise, ucontext, strict: false, ..Settings::default() };
        for (case, outcomes) in cases().iter().zip(emulated(&kernels, &settings)) {
            for (order, found) in Order::ALL.iter().zip(outcomes) {
                let what = format!("{} in {order} order, -O{optimise}, ucontext {ucontext}", case.name);
                let found = found.unwrap_or_else(|error| panic!("{what}: {error}"));
                let expected = (case.expected)(&numbers());
                let first = (0..WRITTEN).find(|&x| found[x].to_bits() != expected[x].to_bits());
                assert!(first.is_none(), "{what}: {first:?} {:?}", first.map(|x| (expected[x], found[x])));
            }
        }
    }
}

/// Where launches are shared among cores: kernels whose threads or blocks wait are told by the words in them.
#[test]
fn every_operation_where_kernels_are_fast() {
    let (compiler, settings) = (Compiler::find().unwrap(), Settings::native());
    let texts: Vec<_> = cases().iter().map(|case| kernel(case.name).to_owned()).collect();
    let sources: Vec<Source> =
        cases().iter().zip(&texts).map(|(case, text)| Source { name: case.name, text: text.as_str() }).collect();
    let built = library_cached(&compiler, &sources, &settings).unwrap_or_else(|error| panic!("{error}"));
    let machine = Emulator::new(compiler, settings);
    for (case, built) in cases().iter().zip(&built) {
        let found = run(&machine, built, &case.launch).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        let expected = (case.expected)(&numbers());
        let first = (0..WRITTEN).find(|&x| found[x].to_bits() != expected[x].to_bits());
        assert!(first.is_none(), "{}: {first:?} {:?}", case.name, first.map(|x| (expected[x], found[x])));
    }
}

#[test]
fn every_operation_is_in_a_kernel() {
    let text = OPERATIONS;
    for operation in operations().into_iter().filter(|operation| !operation.ends_with("_address")) {
        assert!(text.contains(operation), "{operation}");
    }
}

/// Kernels with something taken away: they may not come to the right numbers in every order.
#[test]
fn what_is_missing_shows_as_wrong_numbers() {
    let faults = [
        ("block_barrier", "__syncthreads();", ""),
        ("dynamic_shared", "__syncthreads();", ""),
        ("half_warps", "__syncwarp(mask);", ""),
        ("copies", "copy_async_wait<0>();", ""),
        ("copies", "copy_async_commit();", ""),
        ("copies", "__syncthreads();", ""),
        ("copies_in_stages", "copy_async_wait<1>();", "copy_async_wait<2>();"),
        ("copies_in_stages", "__syncthreads(); // before", "// before"),
        ("copies_bulk", "mbarrier_wait(&full[stage % 2], stage / 2 % 2);", "__syncthreads();"),
        ("copies_bulk", "__syncthreads(); // before", "// before"),
        ("arrivals", "mbarrier_wait(&written, 0);", ""),
        ("clusters", "cluster_arrive();\n    cluster_wait();\n    const", "const"),
        ("sends", "mbarrier_wait_cluster(&come[stage % 2], stage / 2 % 2);", ""),
        ("grid_steps", "grid_barrier(state); // the", "// the"),
        ("grid_steps", "grid_barrier(state);\n    for", "for"),
        ("flags", "flag_wait(&state[blockIdx.x]);", ""),
        ("flags", "flag_wait", "__syncthreads(); // "),
    ];
    let kernels: Vec<_> = faults
        .iter()
        .map(|(name, right, wrong)| {
            let text = kernel(name);
            assert!(text.contains(right), "{name} has no {right}");
            let case = cases().into_iter().find(|case| case.name == *name).unwrap();
            (*name, text.replacen(right, wrong, 1), case.launch)
        })
        .collect();
    for ((name, right, _), outcomes) in faults.iter().zip(emulated(&kernels, &Settings::default())) {
        let case = cases().into_iter().find(|case| case.name == *name).unwrap();
        let expected = (case.expected)(&numbers());
        let found = outcomes.iter().any(|found| found.as_ref().map_or(true, |found| !same(found, &expected)));
        assert!(found, "{name} without {right} is right in every order");
    }
}

/// The message of a kernel with this body, on 2 blocks of 128 threads.
fn messages(bodies: &[(&str, Launch)]) -> Vec<Error> {
    let kernels: Vec<_> = bodies
        .iter()
        .map(|(body, launch)| {
            let signature = "extern \"C\" __global__ void wrong(const float* a, float* b, unsigned* state)";
            ("wrong", format!("{signature}\n{{\nconst int x = threadIdx.x, lane = x % 32;\n{body}\n}}\n"), *launch)
        })
        .collect();
    let outcomes = emulated(&kernels, &Settings::default());
    let errors = outcomes.into_iter().zip(bodies).map(|(outcomes, (body, _))| {
        for found in &outcomes {
            assert!(found.is_err(), "not found: {body}");
        }
        let [forward, ..] = outcomes;
        forward.unwrap_err()
    });
    errors.collect()
}

#[test]
fn faults_are_told_with_kernel_block_and_thread() {
    let usual = launch(2, 128);
    let faults: Vec<(&str, Launch, &str)> = vec![
        (
            "if (x < 100) __syncthreads();",
            usual,
            "kernel wrong, block (0, 0, 0), thread (0, 0, 0): divergent barrier: waits at __syncthreads (line 4) for \
             thread (100, 0, 0) of block (0, 0, 0), which has ended",
        ),
        ("if (x < 64) __syncthreads();\nelse __syncthreads();", usual, "divergent barrier: waits at __syncthreads"),
        (
            "if (x == 3) __syncwarp();\nelse __syncthreads();",
            usual,
            "thread (3, 0, 0): deadlock: waits at __syncwarp (line 4) with mask 0xffffffff for thread (0, 0, 0) of block \
             (0, 0, 0), which waits at __syncthreads (line 5)",
        ),
        (
            "if (lane < 16) b[x] = __shfl_down_sync(~0u, a[x], 1);\nelse __syncwarp();",
            usual,
            "deadlock: waits at __shfl_down_sync (line 4) with mask 0xffffffff for thread (16, 0, 0)",
        ),
        (
            "b[x] = __shfl_up_sync(lane < 8 ? 0xffu : ~0u, a[x], 1);\n__syncthreads();",
            usual,
            "thread (8, 0, 0): deadlock: waits at __shfl_up_sync (line 4) with mask 0xffffffff for thread (0, 0, 0) of \
             block (0, 0, 0), which waits at __syncthreads (line 5)",
        ),
        ("b[x] = __shfl_sync(1u, a[x], 0);", usual, "its own lane 1 is not in its mask 0x00000001"),
        (
            "if (lane < 16) b[x] = __shfl_down_sync(0xffffu, a[x], 1);",
            usual,
            "thread (15, 0, 0): __shfl_down_sync (line 4) reads lane 16, which is not in its mask 0x0000ffff",
        ),
        (
            "STENCILC_SHARED(unsigned long long, full, );\nif (x == 0) mbarrier_init(&full, 2);\n__syncthreads();\n\
             if (x == 0) mbarrier_expect(&full, 64);\nmbarrier_wait(&full, 0);",
            usual,
            "for ever: arrivals missing 1, bytes missing 64",
        ),
        (
            "STENCILC_SHARED(unsigned long long, full, );\nSTENCILC_SHARED(float4, t, [8]);\n\
             if (x == 0) mbarrier_init(&full, 1);\n__syncthreads();\n\
             if (x == 0) { mbarrier_expect(&full, 128); copy_bulk(t, a, 64, &full); }\nmbarrier_wait(&full, 0);",
            usual,
            "arrivals missing 0, bytes missing 64",
        ),
        (
            "STENCILC_SHARED(unsigned long long, full, );\nif (x == 0) mbarrier_init(&full, 2);\n__syncthreads();\n\
             mbarrier_expect(&full, 64);",
            usual,
            "more than 2 threads arrive at an mbarrier",
        ),
        ("STENCILC_SHARED(unsigned long long, full, );\nmbarrier_wait(&full, 0);", usual, "that was not initialised"),
        ("STENCILC_SHARED(float, t, [128]);\ncopy_async<16>(&t[1], a);", usual, "is not a multiple of 16"),
        ("STENCILC_SHARED(float, t, [128]);\ncopy_async<4>(&t[x], a, 8);", usual, "of 8 bytes, and 4 is the most"),
        (
            "STENCILC_SHARED(float, t, [128]);\nt[x + 1] = 0;",
            usual,
            "the block wrote beyond `t` in shared memory, at byte 512",
        ),
        ("STENCILC_SHARED(double, t, [7000]);\nt[x] = 0;", usual, "`t` makes it 56000 bytes"),
        ("cluster_arrive();\ncluster_arrive();", usual, "again without having waited"),
        ("cluster_wait();", usual, "without having arrived"),
        (
            "if (blockIdx.x == 0) { cluster_arrive(); cluster_wait(); }\nelse __syncthreads_or(x < 0 && x == lane);\n\
             if (blockIdx.x == 1 && x != 5) { cluster_arrive(); cluster_wait(); }\n\
             else if (blockIdx.x == 1) __syncthreads();",
            Launch { cluster: [2, 1, 1], ..usual },
            "for thread (5, 0, 0) of block (1, 0, 0), which waits at __syncthreads",
        ),
        ("STENCILC_SHARED(float, t, [4]);\nb[x] = *cluster_shared(t, 1);", usual, "block 1 of a cluster of 1"),
        ("grid_barrier(state);", usual, "in a launch that is not cooperative"),
        ("flag_raise(state);", usual, "in a launch that is not cooperative"),
        (
            "flag_wait(state);",
            Launch { cooperative: true, ..usual },
            "kernel wrong, block (0, 0, 0), thread (0, 0, 0): deadlock: waits at flag_wait (line",
        ),
        (
            "if (blockIdx.x == 0) grid_barrier(state);",
            Launch { cooperative: true, ..usual },
            "for thread (0, 0, 0) of block (1, 0, 0), which has ended",
        ),
    ];
    let bodies: Vec<_> = faults.iter().map(|(body, launch, _)| (*body, *launch)).collect();
    for (error, (body, _, fragment)) in messages(&bodies).into_iter().zip(&faults) {
        assert_eq!(error.fault, Fault::Check, "{body}");
        assert!(error.message.contains(fragment), "{body}\n  says     {error}\n  expected {fragment}");
    }
}

#[test]
fn launches_that_cannot_be_are_refused() {
    let text = kernel("block_barrier");
    let source = Source { name: "block_barrier", text };
    let built = library_cached(&Compiler::find().unwrap(), &[source], &Settings::default()).unwrap();
    let emulator = Emulator::default();
    let refused = |launch: Launch, arguments: &[Arg]| {
        let error = emulator.launch(&built[0], &launch, arguments).unwrap_err();
        error.message
    };
    let arguments = [Arg::Pointer(0); 3];
    assert!(refused(launch(0, 1), &arguments).contains("0x1x1 blocks"));
    assert!(refused(launch(1, 2048), &arguments).contains("2048x1x1 threads"));
    assert!(refused(Launch { cluster: [2, 1, 1], ..launch(3, 1) }, &arguments).contains("clusters of 2x1x1"));
    assert!(refused(Launch { shared: 1 << 20, ..launch(3, 1) }, &arguments).contains("shared memory"));
    assert!(refused(Launch { cooperative: true, ..launch(1 << 20, 1024) }, &arguments).contains("at once"));
    assert!(refused(launch(1, 1), &arguments[..2]).contains("arguments of 8, 8 bytes"));
    assert!(refused(launch(1, 1), &[Arg::I32(0); 3]).contains("arguments of 4, 4, 4 bytes"));
}

/// The same texts through NVRTC: the bodies for the GPU at least assemble.
#[test]
fn every_operation_compiles_for_a_gpu() {
    if nvrtc::locate().is_err() {
        println!("skipped: no NVRTC");
        return;
    }
    for arch in ["sm_90", "sm_100"] {
        let text = with_operations(OPERATIONS);
        let compiled = nvrtc::compile(&text, "operations.cu", arch, Kind::Cubin).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(compiled.resources.len(), cases().len());
    }
}

#[test]
fn every_operation_on_a_gpu() {
    if availability().is_err() {
        println!("skipped: no GPU");
        return;
    }
    let gpu = Gpu::open(0).unwrap();
    for case in cases() {
        let text = with_operations(kernel(case.name));
        let compiled = nvrtc::compile(&text, "operations.cu", &gpu.arch(), Kind::Cubin).unwrap();
        let loaded = gpu.load(&compiled.image).unwrap().kernel(case.name).unwrap();
        let found = run(&gpu, &loaded, &case.launch).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        assert!(same(&found, &(case.expected)(&numbers())), "{}", case.name);
    }
}

/// What several runs of a kernel with this body write first, one in each order.
fn firsts(body: &str) -> [f32; 3] {
    let signature = "extern \"C\" __global__ void own(const float* a, float* b, unsigned* state)";
    let text =
        format!("{signature}\n{{\nSTENCILC_SHARED(float, tile, [32]);\nconst int x = threadIdx.x;\n{body}\n}}\n");
    let outcomes = emulated(&[("own", text, launch(1, 32))], &Settings::default()).remove(0);
    outcomes.map(|found| found.unwrap()[0])
}

#[test]
fn shared_memory_that_nobody_wrote_is_nan_and_orders_differ() {
    assert!(firsts("b[x] = tile[31 - x];").iter().all(|found| found.is_nan()));
    // The last thread to come wins.
    let [forward, reverse, _] = firsts("tile[0] = x; __syncthreads(); b[x] = tile[0];");
    assert_eq!((forward, reverse), (31.0, 0.0));
}
