//! Tests of the driver, the memory and the kernels; those that need a GPU are skipped where there is none.

use super::*;
use crate::Fault;
use crate::nvrtc::{self, Kind};

/// The first GPU of this machine; tests on it are skipped where there is none.
fn gpu() -> Option<Gpu> {
    Gpu::open(0).inspect_err(|_| println!("skipped: no GPU")).ok()
}

/// The kernels of a source, or `None` where there is no compiler.
fn load(gpu: &Gpu, source: &str, kind: Kind) -> Option<Module> {
    if nvrtc::find().is_err() {
        println!("skipped: no NVRTC");
        return None;
    }
    let compiled = nvrtc::compile(source, "test.cu", &gpu.arch(), kind).unwrap();
    Some(gpu.load(&compiled.image).unwrap())
}

const LIMITS: Limits = Limits { grid: [i32::MAX as u32, 65_535, 65_535], block: [1024, 1024, 64] };

#[test]
fn a_missing_gpu_is_an_error() {
    let count = match availability() {
        Ok(count) => count,
        Err(error) => {
            assert!(error.help.is_some(), "{error}");
            0
        }
    };
    assert_eq!(devices().len(), count);
    for ordinal in [count, usize::MAX] {
        let Err(error) = Gpu::open(ordinal) else { panic!("GPU {ordinal} of {count} was opened") };
        assert!(count == 0 || error.message.contains(&format!("this machine has {count}")), "{error}");
    }
}

#[test]
fn bytes_come_back_and_guards_are_watched() {
    let Some(gpu) = gpu() else { return };
    for length in [0, 1, 4095, 1 << 20] {
        let bytes: Vec<u8> = (0..length).map(|index| index as u8).collect();
        let buffer = gpu.upload(&bytes).unwrap();
        assert_eq!(buffer.pointer(0) % 256, 0);
        assert_eq!(gpu.download(&buffer).unwrap(), (bytes, Guards { before: None, after: None }));
        gpu.fill(&buffer, 7).unwrap();
        assert_eq!(gpu.download(&buffer).unwrap().0, vec![7; length]);
        assert!(gpu.write(&buffer, &vec![0; length + 1]).is_err());
    }
    let Err(error) = gpu.allocate(1 << 50, 0) else { panic!("a petabyte was reserved") };
    assert!(error.message.contains("does not suffice") && error.help.is_some(), "{error}");
    assert!(gpu.allocate(usize::MAX, 0).is_err());
    let (free, total) = gpu.memory().unwrap();
    assert!(0 < free && free <= total);
}

#[test]
fn kernels_run_and_take_their_arguments() {
    let Some(gpu) = gpu() else { return };
    let source = r#"extern "C" __global__ void store(bool b, double* a, float f, long long l, int i, double d) {
        a[threadIdx.x] = double(threadIdx.x) + b + f + l + i + d;
    }"#;
    for kind in [Kind::Cubin, Kind::Ptx] {
        let Some(module) = load(&gpu, source, kind) else { return };
        let kernel = module.kernel("store").unwrap();
        let buffer = gpu.allocate(8 * 64, 0).unwrap();
        let args = [
            Arg::U8(1),
            Arg::Pointer(buffer.pointer(0)),
            Arg::F32(0.5),
            Arg::I64(1 << 40),
            Arg::I32(-3),
            Arg::F64(0.25),
        ];
        gpu.launch(&kernel, &Launch::new([1, 1, 1], [64, 1, 1]), &args).unwrap();
        let (bytes, guards) = gpu.download(&buffer).unwrap();
        assert!(guards.intact());
        let last = f64::from_ne_bytes(*bytes.last_chunk().unwrap());
        assert_eq!(last, 63.0 + 1.0 + 0.5 + (1u64 << 40) as f64 - 3.0 + 0.25);

        if gpu.driver_version() >= (12, 4) {
            let error = gpu.launch(&kernel, &Launch::new([1, 1, 1], [64, 1, 1]), &args[..5]).unwrap_err();
            assert!(error.message.contains("is given 1, 8, 4, 8, 4"), "{error}");
        }
        assert!(gpu.launch(&kernel, &Launch::new([1, 1, 1], [2048, 1, 1]), &args).is_err());
        assert!(module.kernel("other").is_err());
        assert!(gpu.load(b"\x7fELF").is_err());
        // The kernel keeps what it needs.
        drop(module);
        let times = gpu.time_each(10, |_| gpu.launch(&kernel, &Launch::new([1, 1, 1], [64, 1, 1]), &args)).unwrap();
        assert!(times.len() == 10 && times.iter().all(|&time| time > 0.0 && time < 1e5), "{times:?}");
        assert!(gpu.time(|| Ok(())).unwrap() < 1e5);
    }
}

#[test]
fn a_stray_write_shows_in_the_guard() {
    let Some(gpu) = gpu() else { return };
    let source = r#"extern "C" __global__ void stray(float* a, int at) { a[at] = 0.0f; }"#;
    let Some(module) = load(&gpu, source, Kind::Cubin) else { return };
    let kernel = module.kernel("stray").unwrap();
    for (at, guards) in [(-2, Guards { before: Some(5), after: None }), (16, Guards { before: None, after: Some(1) })] {
        let buffer = gpu.allocate(64, 0).unwrap();
        let args = [Arg::Pointer(buffer.pointer(0)), Arg::I32(at)];
        gpu.launch(&kernel, &Launch::new([1, 1, 1], [1, 1, 1]), &args).unwrap();
        assert_eq!(gpu.download(&buffer).unwrap().1, guards);
    }
}

#[test]
#[ignore = "a failed kernel ends the GPU's use in this process: run it alone, with --ignored"]
fn a_failed_kernel_is_named() {
    let Some(gpu) = gpu() else { return };
    let source = r#"extern "C" __global__ void stray(float* a, int at) { a[at] = 0.0f; }"#;
    let Some(module) = load(&gpu, source, Kind::Cubin) else { return };
    let kernel = module.kernel("stray").unwrap();
    gpu.launch(&kernel, &Launch::new([1, 1, 1], [1, 1, 1]), &[Arg::Pointer(0), Arg::I32(99_999)]).unwrap();
    for _ in 0..2 {
        let error = gpu.synchronize().unwrap_err();
        assert!(error.fault == Fault::Check && error.message.starts_with("kernel stray failed"), "{error}");
    }
    assert!(gpu.upload(&[0]).is_err_and(|error| error.message.contains("kernel stray")));
}

#[test]
fn guards_tell_the_nearest_byte() {
    let guard = PATTERN.repeat(GUARD / PATTERN.len());
    let overwritten = |places: &[usize]| {
        let mut guard = guard.clone();
        places.iter().for_each(|&place| guard[place] = 0);
        guard
    };
    assert!(Guards::compare(&guard, &guard).intact());
    let guards = Guards::compare(&overwritten(&[3, 250]), &overwritten(&[7, 100]));
    assert_eq!(guards, Guards { before: Some(6), after: Some(8) });
    assert!(guards.to_string().contains("6 before the first and 8 after the last"));
    assert!(f32::from_le_bytes(PATTERN).is_nan());
    assert!(f64::from_le_bytes([PATTERN, PATTERN].concat().try_into().unwrap()).is_nan());
}

#[test]
fn arguments_are_aligned() {
    let packed = Packed::new(&[Arg::U8(1), Arg::F64(2.0), Arg::I32(3), Arg::U8(4), Arg::F32(5.0), Arg::Pointer(6)]);
    assert_eq!(packed.places, [(0, 1), (8, 8), (16, 4), (20, 1), (24, 4), (32, 8)]);
    assert_eq!(packed.bytes.len(), 40);
    assert_eq!(Packed::new(&[]).bytes.len(), 0);
}

#[test]
fn launches_beyond_the_limits_are_refused() {
    let check = |max_threads, grid, block| check_extents(&LIMITS, "lap", 96, max_threads, grid, block);
    assert!(check(1024, [1, 65_535, 1], [32, 32, 1]).is_ok());
    let message = |max_threads, grid, block| check(max_threads, grid, block).unwrap_err().to_string();
    assert!(message(640, [1, 1, 1], [32, 32, 1]).contains("can have 640"));
    assert!(message(1024, [1, 1, 1], [1, 1, 65]).contains("65 threads along z"));
    assert!(message(1024, [1, 1, 1], [u32::MAX; 3]).contains("along x"));
    assert!(message(1024, [1, 65_536, 1], [32, 1, 1]).contains("more threads along y"));
    assert_eq!(check(1024, [0, 1, 1], [32, 1, 1]).unwrap_err().fault, Fault::Call);
}

#[test]
fn images_cut_short_do_not_reach_the_driver() {
    assert!(check_image(b"").is_err());
    assert!(check_image(b"\x7fELF").is_err());
    assert!(check_image(b"text").is_err());
    assert!(check_image(b".version 9.0\0 and more").is_err());
    assert_eq!(check_image(b".version 9.0").unwrap(), b".version 9.0\0".as_slice());
    assert_eq!(check_image(b".version 9.0\0").unwrap(), b".version 9.0\0".as_slice());

    let Ok(nvrtc) = nvrtc::find() else { return println!("skipped: no NVRTC") };
    let source = r#"extern "C" __global__ void k(float* a) { __shared__ float t[32]; a[1] = t[threadIdx.x]; }"#;
    let image = nvrtc.compile(source, "k.cu", "sm_90", Kind::Cubin).unwrap().image;
    assert!(check_image(&image).is_ok());
    for length in 4..image.len() {
        assert!(check_image(&image[..length]).is_err(), "{length} of {}", image.len());
    }
}
