//! Texts from C, and for it.

use std::ffi::{CStr, CString, c_char};
use stencilc_compiler::text::shown;
use stencilc_runtime::Error;

/// A text from C; `what` is what messages call it.
///
/// # Safety
/// It is null, or ends with a zero byte, and is there as long as what comes of it.
///
/// # Errors
/// It is null, or no UTF-8.
pub unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str, Error> {
    if text.is_null() {
        return Err(Error::call(format!("{what} is a null pointer, and a text is needed")));
    }
    // SAFETY: the caller's.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Error::input(format!("{what} is no text in UTF-8")))
}

/// A text for C. Names of files and texts of others can hold anything, and whoever prints it has a screen.
pub fn c_text(text: &str) -> CString {
    CString::new(shown(text).into_owned()).unwrap_or_default()
}
