//! Tests of finding NVRTC and of compiling; the latter are skipped where there is none.

use super::search::{library_below, library_version, named_library, trusted};
use super::*;
use crate::Fault;

/// The NVRTC of this machine; tests of it are skipped where there is none.
fn nvrtc() -> Option<&'static Nvrtc> {
    find().inspect_err(|_| println!("skipped: no NVRTC")).ok()
}

const SCALE: &str = r#"extern "C" __global__ void scale(double* a, double f) {
    __shared__ double t[128];
    t[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    a[threadIdx.x] = f * t[127 - threadIdx.x] + 1.0;
}"#;

#[test]
fn a_cubin_knows_its_resources() {
    let Some(nvrtc) = nvrtc() else { return };
    let compiled = nvrtc.compile(SCALE, "scale.cu", "sm_90", Kind::Cubin).unwrap();
    assert!(compiled.image.starts_with(b"\x7fELF"));
    let [kernel] = &compiled.resources[..] else { panic!("one kernel: {:?}", compiled.resources) };
    assert_eq!((kernel.kernel.as_str(), kernel.shared, kernel.spill_stores), ("scale", 1024, 0));
    assert!(kernel.registers > 0);
}

#[test]
fn nothing_is_contracted() {
    let Some(nvrtc) = nvrtc() else { return };
    let compiled = nvrtc.compile(SCALE, "scale.cu", "sm_90", Kind::Ptx).unwrap();
    let text = CStr::from_bytes_with_nul(&compiled.image).unwrap().to_str().unwrap();
    assert!(text.contains(".target sm_90") && !text.contains("fma."), "{text}");
    assert!(compiled.resources.is_empty());
}

#[test]
fn refusals_are_errors() {
    let Some(nvrtc) = nvrtc() else { return };
    let fault = |source, arch| {
        let error = nvrtc.compile(source, "k.cu", arch, Kind::Cubin).unwrap_err();
        (error.fault, error.to_string())
    };
    let (broken, text) = fault("extern \"C\" __global__ void k(float* a) { a[0] = zz; }", "sm_90");
    assert_eq!(broken, Fault::Check);
    assert!(text.contains("k.cu(1): error: identifier \"zz\" is undefined"), "{text}");

    let (arch, text) = fault(SCALE, "sm_999");
    assert_eq!(arch, Fault::Input);
    assert!(text.contains("sm_999") && text.contains("sm_90,"), "{text}");
    assert_eq!(fault(SCALE, "sm_").0, Fault::Call);
    assert_eq!(fault(SCALE, "sm_+90").0, Fault::Call);
    assert_eq!(fault(SCALE, "gfx90a").0, Fault::Call);
    assert!(fault("a\0b", "sm_90").1.contains("zero byte"));

    let greedy = SCALE.replace("128", "20000");
    assert!(fault(&greedy, "sm_90").1.contains("wants 160000 bytes of shared memory"));
}

#[test]
fn long_expressions_do_not_overflow_the_stack() {
    let Some(nvrtc) = nvrtc() else { return };
    let sum = format!("{}a[1]{}", "(".repeat(10_000), " + 1.0f)".repeat(10_000));
    let source = format!("extern \"C\" __global__ void k(float* a) {{ a[0] = {sum}; }}");
    nvrtc.compile(&source, "k.cu", "sm_90", Kind::Cubin).unwrap();
}

#[test]
fn many_threads_compile_at_once() {
    let Some(nvrtc) = nvrtc() else { return };
    std::thread::scope(|scope| {
        let compile = || nvrtc.compile(SCALE, "scale.cu", "sm_80", Kind::Cubin).unwrap().image;
        let images: Vec<_> = (0..4).map(|_| scope.spawn(compile)).collect();
        let images: Vec<Vec<u8>> = images.into_iter().map(|image| image.join().unwrap()).collect();
        assert!(images.iter().all(|image| *image == images[0]));
    });
}

#[test]
fn resources_are_read_from_the_log() {
    let log = "ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'c' for 'sm_90'
ptxas info    : Function properties for c
ptxas         .     880 bytes stack frame, 2000 bytes spill stores, 1996 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 912 bytes cumulative stack size, 1200 bytes smem, 360 bytes cmem[0], 8 bytes cmem[2]
ptxas info    : Compile time = 79.961 ms
ptxas info    : Function properties for _Z1gf
ptxas         .     64 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Compiling entry function 'd' for 'sm_90'
ptxas info    : Used 8 registers, used 0 barriers";
    let c = Resources {
        kernel: "c".to_owned(),
        registers: 32,
        spill_stores: 2000,
        spill_loads: 1996,
        stack: 912,
        shared: 1200,
        constant: 368,
    };
    let d = Resources { kernel: "d".to_owned(), registers: 8, ..Resources::default() };
    assert_eq!(read_resources(log), [c, d]);
}

#[test]
fn libraries_are_told_by_their_names() {
    assert_eq!(library_version("libnvrtc.so"), Some(vec![]));
    assert_eq!(library_version("libnvrtc.so.13.0.88"), Some(vec![13, 0, 88]));
    for other in ["libnvrtc.alt.so.13", "libnvrtc-builtins.so.13.0", "libnvrtc.so.old", "libnvrtc.sox", ""] {
        assert_eq!(library_version(other), None, "{other}");
    }
}

#[test]
fn the_newest_library_of_an_unpacked_wheel_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let lib = folder.path().join("nvidia/cu13/lib");
    std::fs::create_dir_all(&lib).unwrap();
    assert_eq!(library_below(folder.path(), 4), None);
    for name in ["libnvrtc.so", "libnvrtc.so.9", "libnvrtc.so.13", "libnvrtc.alt.so.14"] {
        std::fs::write(lib.join(name), "").unwrap();
    }
    assert_eq!(library_below(folder.path(), 4), Some(lib.join("libnvrtc.so.13")));
    assert_eq!(library_below(&lib, 0), Some(lib.join("libnvrtc.so.13")));
    assert_eq!(library_below(folder.path(), 2), None);
}

#[test]
fn a_file_that_is_no_library_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("libnvrtc.so.13");
    std::fs::write(&path, "not a library").unwrap();
    let Err(error) = Nvrtc::open(&path) else { panic!("text was opened as a library") };
    assert!(error.message.contains("cannot be used"));
    assert!(named_library(&folder.path().join("nothing")).is_err());
    assert_eq!(named_library(folder.path()).unwrap(), path);
}

/// Kernels of one name that need different numbers of registers.
fn kernels(count: usize) -> Vec<String> {
    let kernel = |number: usize| {
        let loads: String = (0..=number).map(|at| format!("    double x{at} = a[i * {at} + {number}];\n")).collect();
        let sum: Vec<String> = (0..=number).map(|at| format!("x{at} * x{}", number - at)).collect();
        format!(
            "extern \"C\" __global__ void k(const double* __restrict__ a, double* b)\n{{\n    \
             const int i = threadIdx.x;\n{loads}    __syncthreads();\n    b[i] = {};\n}}\n",
            sum.join(" + ")
        )
    };
    (0..count).map(|number| kernel(number * 3)).collect()
}

#[test]
fn what_a_kernel_takes_is_told_every_time() {
    use rayon::prelude::*;
    let Ok(nvrtc) = find() else { return println!("skipped: no NVRTC") };
    let texts = kernels(8);
    let compile = |text: &String| nvrtc.compile(text, "k.cu", "sm_90", Kind::Cubin).unwrap().resources;
    let alone: Vec<_> = texts.iter().map(compile).collect();
    assert!(alone.iter().all(|resources| resources.len() == 1 && resources[0].registers > 0), "{alone:?}");
    assert!(alone.windows(2).any(|pair| pair[0] != pair[1]), "{alone:?}");
    // The same again, from several threads: nothing comes from a cache that forgot it, or from another's kernel.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
    let together: Vec<_> = pool.install(|| texts.par_iter().map(compile).collect());
    assert_eq!(together, alone);
}

#[test]
fn what_others_could_have_put_into_the_folder_is_not_opened() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().unwrap();
    let lib = home.path().join("nvrtc/nvidia/cu13/lib");
    crate::files::trust::make_folder(&lib).unwrap();
    let [library, builtins] = ["libnvrtc.so.13", "libnvrtc-builtins.so.13.0"].map(|name| lib.join(name));
    for path in [&library, &builtins] {
        std::fs::write(path, "").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
    }
    let found = || trusted(library_below(&home.path().join("nvrtc"), 4).unwrap(), home.path());
    assert_eq!(found().as_deref(), Some(library.as_path()));
    for path in [library.as_path(), &builtins, &lib, lib.parent().unwrap(), &home.path().join("nvrtc")] {
        let before = std::fs::metadata(path).unwrap().permissions();
        let mode = before.mode() | 0o020;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(found(), None, "{}", path.display());
        std::fs::set_permissions(path, before).unwrap();
    }
    let told = crate::files::trust::ever_refused();
    let is_told = |told: &String| told.contains("NVRTC is not taken") && told.contains(&library.display().to_string());
    assert!(told.iter().any(is_told), "{told:?}");
    assert!(found().is_some());
}
