//! XLA's interface for foreign functions, as far as it is used: structures and numbers are those of its header `xla/ffi/api/c_api.h`,
//! versions 0.1 to 0.5.
//!
//! Every structure begins with its size, and one that is newer has more behind it. So no field is read before it is known to be there.

use std::ffi::{CString, c_char, c_int, c_void};

/// The versions that are known, major and minor: of a newer one nobody knows what it has changed.
const MAJOR: c_int = 0;
const OLDEST: c_int = 1;
const NEWEST: c_int = 5;

/// `XLA_FFI_Extension_Base`.
#[repr(C)]
pub struct Extension {
    size: usize,
    kind: c_int,
    next: *const Extension,
}

/// `XLA_FFI_Extension_Metadata`.
const IS_METADATA: c_int = 1;

/// `XLA_FFI_Api_Version`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Version {
    size: usize,
    extension: *const Extension,
    major: c_int,
    minor: c_int,
}

/// `XLA_FFI_Metadata`.
#[repr(C)]
struct Metadata {
    size: usize,
    version: Version,
    traits: u32,
}

/// `XLA_FFI_Metadata_Extension`.
#[repr(C)]
struct MetadataExtension {
    base: Extension,
    metadata: *mut Metadata,
}

/// `XLA_FFI_Error_Create_Args`.
#[repr(C)]
struct ErrorArgs {
    size: usize,
    extension: *const Extension,
    message: *const c_char,
    code: c_int,
}

/// `XLA_FFI_Stream_Get_Args`.
#[repr(C)]
struct StreamArgs {
    size: usize,
    extension: *const Extension,
    context: *mut c_void,
    stream: *mut c_void,
}

/// `XLA_FFI_DeviceOrdinal_Get_Args`.
#[repr(C)]
struct DeviceArgs {
    size: usize,
    extension: *const Extension,
    context: *mut c_void,
    device: i32,
}

/// `XLA_FFI_Error_Destroy_Args`.
#[repr(C)]
struct DestroyArgs {
    size: usize,
    extension: *const Extension,
    error: *mut c_void,
}

/// A function of XLA's that takes a structure; nothing where there is none. What it returns is an error, or null.
type Function<A> = Option<unsafe extern "C" fn(*mut A) -> *mut c_void>;

/// `XLA_FFI_Api`.
#[repr(C)]
struct Api {
    size: usize,
    extension: *const Extension,
    version: Version,
    internal: *const c_void,
    error_create: Function<ErrorArgs>,
    error_get_message: *const c_void,
    error_destroy: Option<unsafe extern "C" fn(*mut DestroyArgs)>,
    handler_register: *const c_void,
    stream_get: Function<StreamArgs>,
    /// Types, contexts, states, memory, threads, futures and runs.
    others: [*const c_void; 12],
    device_get: Function<DeviceArgs>,
}

/// `XLA_FFI_Buffer`.
#[repr(C)]
struct Buffer {
    size: usize,
    extension: *const Extension,
    dtype: c_int,
    data: *mut c_void,
    rank: i64,
    dims: *const i64,
}

/// `XLA_FFI_Args` and `XLA_FFI_Rets`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Values {
    size: usize,
    extension: *const Extension,
    count: i64,
    types: *const c_int,
    values: *const *const c_void,
}

/// `XLA_FFI_ArgType_BUFFER` and `XLA_FFI_RetType_BUFFER`.
const IS_BUFFER: c_int = 1;

/// `XLA_FFI_ByteSpan`.
#[repr(C)]
struct Span {
    start: *const u8,
    count: usize,
}

/// `XLA_FFI_Attrs`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Attributes {
    size: usize,
    extension: *const Extension,
    count: i64,
    types: *const c_int,
    names: *const *const Span,
    values: *const *const c_void,
}

/// `XLA_FFI_AttrType_STRING`.
const IS_STRING: c_int = 4;

/// `XLA_FFI_CallFrame`.
#[repr(C)]
pub struct Frame {
    size: usize,
    extension: *const Extension,
    api: *const Api,
    context: *mut c_void,
    stage: c_int,
    args: Values,
    rets: Values,
    attributes: Attributes,
}

/// `XLA_FFI_ExecutionStage_EXECUTE`.
const EXECUTES: c_int = 3;

/// Codes of errors.
#[derive(Clone, Copy, Debug)]
#[repr(i32)]
pub enum Code {
    InvalidArgument = 3,
    FailedPrecondition = 9,
    Internal = 13,
}

/// What is wrong, as XLA is told.
#[derive(Debug)]
pub struct Refusal {
    pub code: Code,
    pub message: String,
}

impl Refusal {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// An array of a call: numbers in C's order.
pub struct Array {
    /// The number of its type, as XLA counts them.
    pub dtype: c_int,
    pub address: u64,
    pub shape: Vec<usize>,
}

/// A field of a structure of XLA's, if the structure is large enough to have it.
macro_rules! field {
    ($own:expr, $kind:ty, $name:ident) => {
        read($own, std::mem::offset_of!($kind, $name), |own: &$kind| own.$name)
    };
}

/// Reads a field that is so many bytes behind the beginning of a structure, and of the type that a function gives, which is not called.
///
/// # Safety
/// The pointer is null, or leads to a structure that begins with its size in bytes.
unsafe fn read<S, F: Copy>(own: *const S, offset: usize, _: impl Fn(&S) -> F) -> Option<F> {
    if own.is_null() {
        return None;
    }
    // SAFETY: the caller's; and a field is read only if it is within the size.
    unsafe {
        let size = own.cast::<usize>().read();
        (offset + size_of::<F>() <= size).then(|| own.byte_add(offset).cast::<F>().read())
    }
}

/// The numbers that a pointer leads to.
///
/// # Safety
/// There are as many, or the pointer is null.
unsafe fn numbers<'a, T>(first: *const T, count: i64) -> Option<&'a [T]> {
    match usize::try_from(count) {
        Ok(0) => Some(&[]),
        // SAFETY: the caller's.
        Ok(count) if !first.is_null() => Some(unsafe { std::slice::from_raw_parts(first, count) }),
        _ => None,
    }
}

/// A call of XLA's.
pub struct Call {
    frame: *const Frame,
}

impl Call {
    /// # Safety
    /// The frame is one of XLA's, and is there as long as this.
    pub unsafe fn of(frame: *const Frame) -> Self {
        Self { frame }
    }

    fn api(&self) -> *const Api {
        // SAFETY: the frame is XLA's.
        unsafe { field!(self.frame, Frame, api) }.unwrap_or(std::ptr::null())
    }

    fn context(&self) -> *mut c_void {
        // SAFETY: the frame is XLA's.
        unsafe { field!(self.frame, Frame, context) }.unwrap_or(std::ptr::null_mut())
    }

    fn version(&self) -> Option<(c_int, c_int)> {
        // SAFETY: the structure is XLA's.
        unsafe { field!(self.api(), Api, version) }.map(|own| (own.major, own.minor))
    }

    /// Whether this version of the interface is known.
    ///
    /// # Errors
    /// It is not.
    pub fn check(&self) -> Result<(), Refusal> {
        match self.version() {
            Some((MAJOR, OLDEST..=NEWEST)) => Ok(()),
            version => {
                let version =
                    version.map_or("does not say its version".to_owned(), |(a, b)| format!("is of version {a}.{b}"));
                Err(Refusal::new(
                    Code::FailedPrecondition,
                    format!(
                        "the interface of this jaxlib for foreign functions {version}, and stencilc knows \
                         {MAJOR}.{OLDEST} to {MAJOR}.{NEWEST}\n  help: jaxlib 0.5.0 to 0.12 have these"
                    ),
                ))
            }
        }
    }

    /// Answers which version the handler is of, if that is what is asked.
    ///
    /// # Errors
    /// The version that XLA has is none that is known.
    pub fn answered(&self) -> Result<bool, Refusal> {
        // SAFETY: the frame is XLA's.
        let mut extension = unsafe { field!(self.frame, Frame, extension) }.unwrap_or(std::ptr::null());
        // SAFETY: so are its extensions.
        while let Some(kind) = unsafe { field!(extension, Extension, kind) } {
            if kind != IS_METADATA {
                // SAFETY: as above.
                extension = unsafe { field!(extension, Extension, next) }.unwrap_or(std::ptr::null());
                continue;
            }
            if !self.api().is_null() {
                self.check()?;
            }
            // SAFETY: an extension of this kind has a pointer behind it, to a structure that is to be written as far as it goes.
            unsafe {
                let own = extension.cast::<MetadataExtension>();
                let metadata = field!(own, MetadataExtension, metadata).unwrap_or(std::ptr::null_mut());
                if field!(metadata, Metadata, traits).is_some() {
                    // That which XLA has, since all that are known agree in what is used. The oldest does not tell before.
                    let minor = self.version().map_or(OLDEST, |(_, minor)| minor.clamp(OLDEST, NEWEST));
                    (*metadata).version.major = MAJOR;
                    (*metadata).version.minor = minor;
                    (*metadata).traits = 0;
                }
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// Whether it is to be computed now, and not prepared.
    pub fn executes(&self) -> bool {
        // SAFETY: the frame is XLA's.
        let stage = unsafe { field!(self.frame, Frame, stage) };
        stage == Some(EXECUTES)
    }

    /// What it is given, and where results go.
    ///
    /// # Errors
    /// Some are no arrays, or the structures are others.
    pub fn arrays(&self) -> Result<(Vec<Array>, Vec<Array>), Refusal> {
        // SAFETY: the frame is XLA's.
        let values = unsafe { [field!(self.frame, Frame, args), field!(self.frame, Frame, rets)] };
        match values.map(|own| own.and_then(arrays)) {
            [Some(args), Some(rets)] => Ok((args, rets)),
            _ => Err(Refusal::new(Code::InvalidArgument, "something that stencilc is called with is no array")),
        }
    }

    /// What was said of the call under a name.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        // SAFETY: the frame is XLA's, and its lists are as long as it says, of pointers that lead to spans.
        unsafe {
            let all = field!(self.frame, Frame, attributes).filter(|own| own.size >= size_of::<Attributes>())?;
            let types = numbers(all.types, all.count)?;
            let (names, values) = (numbers(all.names, all.count)?, numbers(all.values, all.count)?);
            let at = names.iter().position(|own| text(*own) == Some(name))?;
            if types[at] == IS_STRING { text(values[at].cast()) } else { None }
        }
    }

    /// The stream of CUDA's that it is to be started in.
    ///
    /// # Errors
    /// XLA does not tell.
    pub fn stream(&self) -> Result<usize, Refusal> {
        let mut args = StreamArgs {
            size: size_of::<StreamArgs>(),
            extension: std::ptr::null(),
            context: self.context(),
            stream: std::ptr::null_mut(),
        };
        // SAFETY: the structure is XLA's.
        self.asked(unsafe { field!(self.api(), Api, stream_get) }.flatten(), &mut args, "the stream")?;
        Ok(args.stream.expose_provenance())
    }

    /// The number of the GPU.
    ///
    /// # Errors
    /// XLA does not tell.
    pub fn device(&self) -> Result<usize, Refusal> {
        let size = std::mem::offset_of!(DeviceArgs, device) + size_of::<i32>();
        let mut args = DeviceArgs { size, extension: std::ptr::null(), context: self.context(), device: -1 };
        // SAFETY: the structure is XLA's.
        self.asked(unsafe { field!(self.api(), Api, device_get) }.flatten(), &mut args, "the number of the GPU")?;
        usize::try_from(args.device)
            .map_err(|_| Refusal::new(Code::Internal, "jaxlib gives no number of the GPU that computes"))
    }

    fn asked<A>(&self, function: Function<A>, args: &mut A, what: &str) -> Result<(), Refusal> {
        let Some(function) = function else {
            let message = format!("this jaxlib does not tell {what}\n  help: `pip install -U jax`: newer ones do");
            return Err(Refusal::new(Code::FailedPrecondition, message));
        };
        // SAFETY: the function is one of XLA's for this structure.
        let error = unsafe { function(args) };
        if error.is_null() {
            return Ok(());
        }
        let mut args = DestroyArgs { size: size_of::<DestroyArgs>(), extension: std::ptr::null(), error };
        // SAFETY: the structure is XLA's, and the error is ours to destroy.
        unsafe {
            if let Some(destroy) = field!(self.api(), Api, error_destroy).flatten() {
                destroy(&mut args);
            }
        }
        Err(Refusal::new(Code::Internal, format!("jaxlib does not tell {what}")))
    }

    /// An error of XLA's, which it destroys; null if it makes none.
    pub fn error(&self, refusal: &Refusal) -> *mut c_void {
        let message = refusal.message.replace('\0', "\u{fffd}");
        let message = CString::new(message).unwrap_or_default();
        let size = std::mem::offset_of!(ErrorArgs, code) + size_of::<c_int>();
        let (extension, code) = (std::ptr::null(), refusal.code as c_int);
        let mut args = ErrorArgs { size, extension, message: message.as_ptr(), code };
        // SAFETY: the structure is XLA's; in no version with this major number does the function stand elsewhere. The text is copied.
        unsafe {
            let create = field!(self.api(), Api, error_create).flatten();
            create.map_or(std::ptr::null_mut(), |create| create(&mut args))
        }
    }
}

/// Values as arrays, if they are.
fn arrays(values: Values) -> Option<Vec<Array>> {
    if values.size < size_of::<Values>() {
        return None;
    }
    // SAFETY: XLA's lists are as long as it says, and a value of this type is a buffer.
    unsafe {
        let (types, all) = (numbers(values.types, values.count)?, numbers(values.values, values.count)?);
        let is_buffer = types.iter().all(|own| *own == IS_BUFFER);
        is_buffer.then(|| all.iter().map(|own| array(own.cast())).collect())?
    }
}

/// # Safety
/// The buffer is one of XLA's.
unsafe fn array(own: *const Buffer) -> Option<Array> {
    // SAFETY: the caller's; there are as many lengths as axes.
    unsafe {
        let dims = numbers(field!(own, Buffer, dims)?, field!(own, Buffer, rank)?)?;
        let shape = dims.iter().map(|own| usize::try_from(*own).ok()).collect::<Option<Vec<usize>>>()?;
        let address = field!(own, Buffer, data)?.expose_provenance() as u64;
        Some(Array { dtype: field!(own, Buffer, dtype)?, address, shape })
    }
}

/// # Safety
/// The span is null or one of XLA's, and its text is there as long as the lifetime.
unsafe fn text<'a>(own: *const Span) -> Option<&'a str> {
    if own.is_null() {
        return None;
    }
    // SAFETY: the caller's.
    let bytes = unsafe { numbers((*own).start, i64::try_from((*own).count).ok()?) }?;
    std::str::from_utf8(bytes).ok()
}
