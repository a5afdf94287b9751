//! The calls of the NVRTC library and their answers.

use std::ffi::{c_char, c_int, c_void};

use libloading::os::unix::Library;

/// NVRTC's handle of a program.
pub(super) type Program = *mut c_void;

/// A table of C functions that return a status: the fields, and a loader that looks each up.
macro_rules! calls {
    ($($field:ident: $symbol:literal ($($argument:ty),*);)*) => {
        pub(super) struct Calls {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl Calls {
            /// Looks up every call; an error is the name of the first that is not there.
            ///
            /// # Safety
            ///
            /// The library has to be NVRTC, and the calls must not outlive it.
            pub(super) unsafe fn load(library: &Library) -> std::result::Result<Self, &'static str> {
                // SAFETY: the types are those of `nvrtc.h`, which have not changed since they came to be.
                unsafe { Ok(Self { $($field: *library.get($symbol).map_err(|_| $symbol)?,)* }) }
            }
        }
    };
}

calls! {
    version: "nvrtcVersion"(*mut c_int, *mut c_int);
    count_archs: "nvrtcGetNumSupportedArchs"(*mut c_int);
    archs: "nvrtcGetSupportedArchs"(*mut c_int);
    create: "nvrtcCreateProgram"(
        *mut Program, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char);
    destroy: "nvrtcDestroyProgram"(*mut Program);
    compile: "nvrtcCompileProgram"(Program, c_int, *const *const c_char);
    log_size: "nvrtcGetProgramLogSize"(Program, *mut usize);
    log: "nvrtcGetProgramLog"(Program, *mut c_char);
    ptx_size: "nvrtcGetPTXSize"(Program, *mut usize);
    ptx: "nvrtcGetPTX"(Program, *mut c_char);
    cubin_size: "nvrtcGetCUBINSize"(Program, *mut usize);
    cubin: "nvrtcGetCUBIN"(Program, *mut c_char);
}

/// The statuses of `nvrtcResult` that are told apart.
pub(super) mod status {
    use std::ffi::c_int;

    pub const SUCCESS: c_int = 0;
    pub const OUT_OF_MEMORY: c_int = 1;
    pub const INVALID_OPTION: c_int = 5;
    pub const COMPILATION: c_int = 6;
    pub const BUILTINS: c_int = 7;
}
