//! Tests of the emulator's own parts. What kernels can do is tested in `tests/device.rs`.

use super::*;
use crate::Fault;
use crate::machine::GUARD;

const DOUBLE: &str = "extern \"C\" __global__ void twice(const int* a, int* b, int n)
{
    const int x = blockIdx.x * 32 + threadIdx.x;
    STENCILC_SHARED(int, tile, [32]);
    tile[threadIdx.x] = x < n ? a[x] : 0;
    __syncthreads();
    if (x < n) b[x] = 2 * tile[31 - threadIdx.x];
}";

fn build(name: &str, text: &str) -> Kernel {
    let source = Source { name, text };
    let settings = Settings { strict: true, ..Settings::default() };
    Compiler::find().unwrap().build(&[source], &settings).unwrap().remove(0)
}

#[test]
fn bytes_come_back_and_guards_are_watched() {
    let emulator = Emulator::default();
    for length in [0, 1, 4095, 1 << 20] {
        let bytes: Vec<u8> = (0..length).map(|index| index as u8).collect();
        let buffer = emulator.upload(&bytes).unwrap();
        assert_eq!(emulator.address(&buffer, 0) % 256, 0);
        assert_eq!(emulator.download(&buffer).unwrap(), (bytes, Guards { before: None, after: None }));
    }
    let kernel = build("stray", "extern \"C\" __global__ void stray(float* a, int at) { a[at] = 0.0f; }");
    let last = (GUARD / 4) as i32;
    for (at, guards) in [
        (-2, Guards { before: Some(5), after: None }),
        (16, Guards { before: None, after: Some(1) }),
        (15 + last, Guards { before: None, after: Some(GUARD - 3) }),
    ] {
        let buffer = emulator.upload(&[0; 64]).unwrap();
        let arguments = [Arg::Pointer(emulator.address(&buffer, 0)), Arg::I32(at)];
        emulator.launch(&kernel, &Launch::new([1; 3], [1; 3]), &arguments).unwrap();
        assert_eq!(emulator.download(&buffer).unwrap().1, guards);
    }
}

#[test]
fn arguments_of_every_type_arrive() {
    let kernel = build(
        "store",
        "extern \"C\" __global__ void store(bool b, double* a, float f, long long l, int i, double d, unsigned char c)
        { a[threadIdx.x] = double(threadIdx.x) + b + f + l + i + d + c; }",
    );
    let emulator = Emulator::default().in_order(Order::Shuffled(3));
    let buffer = emulator.upload(&[0; 8 * 64]).unwrap();
    let arguments = [
        Arg::U8(1),
        Arg::Pointer(emulator.address(&buffer, 0)),
        Arg::F32(0.5),
        Arg::I64(1 << 40),
        Arg::I32(-3),
        Arg::F64(0.25),
        Arg::U8(200),
    ];
    emulator.launch(&kernel, &Launch::new([1; 3], [64, 1, 1]), &arguments).unwrap();
    let (bytes, _) = emulator.download(&buffer).unwrap();
    let last = f64::from_ne_bytes(*bytes.last_chunk().unwrap());
    assert_eq!(last, 63.0 + 1.0 + 0.5 + (1u64 << 40) as f64 - 3.0 + 0.25 + 200.0);
}

#[test]
fn many_threads_share_a_library() {
    let kernel = build("twice", DOUBLE);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let kernel = kernel.clone();
            scope.spawn(move || {
                for round in 0..20 {
                    let order = Order::ALL[round % 3];
                    let emulator = Emulator::default().in_order(order);
                    let numbers: Vec<i32> = (0..100).map(|x| x * number).collect();
                    let (a, b) = (emulator.upload(bytemuck::cast_slice(&numbers)), emulator.upload(&[0; 400]));
                    let (a, b) = (a.unwrap(), b.unwrap());
                    let arguments = [&a, &b].map(|buffer| Arg::Pointer(emulator.address(buffer, 0)));
                    let arguments = [arguments[0], arguments[1], Arg::I32(100)];
                    emulator.launch(&kernel, &Launch::new([4, 1, 1], [32, 1, 1]), &arguments).unwrap();
                    let found: Vec<i32> = bytemuck::pod_collect_to_vec(&emulator.download(&b).unwrap().0);
                    let expected = |x: i32| {
                        let other = x / 32 * 32 + 31 - x % 32;
                        if other < 100 { 2 * other * number } else { 0 }
                    };
                    assert_eq!(found, (0..100).map(expected).collect::<Vec<i32>>());
                }
            });
        }
    });
}

#[test]
fn what_does_not_compile_is_told() {
    let source = Source { name: "broken", text: "extern \"C\" __global__ void broken(float* a) { a[0] = nothing; }" };
    let error = Compiler::find().unwrap().compile(&[source], &Settings::default()).unwrap_err();
    assert_eq!(error.fault, Fault::Check);
    assert!(error.message.contains("broken.cu:1") && error.message.contains("nothing"), "{error}");
}

#[test]
fn what_is_no_library_is_not_loaded() {
    let source = Source { name: "twice", text: DOUBLE };
    let image = Compiler::find().unwrap().compile(&[source], &Settings::default()).unwrap();
    assert!(load(&image, &[source]).is_ok());
    // A library that has fewer kernels than are asked for.
    assert!(load(&image, &[source, source]).is_err());
    // (Libraries cut short later are not tried: the loader ends the process. What comes from the cache has a checksum.)
    for length in [0, 1, 16] {
        assert!(load(&image[..length], &[source]).is_err(), "{length} bytes");
    }
}

#[test]
fn kernels_of_one_name_do_not_meet() {
    let texts = [3, 5].map(|by| {
        format!("extern \"C\" __global__ void scale(int* a) {{ a[threadIdx.x] = {by} * int(threadIdx.x); }}")
    });
    let sources: Vec<Source> = texts.iter().map(|text| Source { name: "scale", text }).collect();
    let kernels = Compiler::find().unwrap().build(&sources, &Settings::default()).unwrap();
    let emulator = Emulator::default();
    for (kernel, by) in kernels.iter().zip([3, 5]) {
        let buffer = emulator.upload(&[0; 32]).unwrap();
        let arguments = [Arg::Pointer(emulator.address(&buffer, 0))];
        emulator.launch(kernel, &Launch::new([1; 3], [8, 1, 1]), &arguments).unwrap();
        let found: Vec<i32> = bytemuck::pod_collect_to_vec(&emulator.download(&buffer).unwrap().0);
        assert_eq!(found, (0..8).map(|x| x * by).collect::<Vec<i32>>());
    }
}
