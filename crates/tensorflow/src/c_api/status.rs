//! Statuses: errors of TensorFlow's functions, and what is reported to it.

use super::functions::{RawStatus, api, loaded};
use crate::error::{Error, Result, code};
use std::ffi::{CStr, CString};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A status of our own.
pub struct Status(*mut RawStatus);

impl Default for Status {
    fn default() -> Self {
        Self::new()
    }
}

impl Status {
    /// A status that says success.
    pub fn new() -> Self {
        // SAFETY: it takes nothing.
        Self(unsafe { (api().TF_NewStatus)() })
    }

    /// A status that says what an error is.
    pub fn of(error: &Error) -> Self {
        let status = Self::new();
        // SAFETY: the status lives.
        unsafe { set(status.0, error.code(), &error.to_string()) };
        status
    }

    /// The pointer, for a call.
    pub fn raw(&self) -> *mut RawStatus {
        self.0
    }

    /// The error, if it says one.
    pub fn check(&self) -> Result<()> {
        // SAFETY: the status lives, and its message lives as long.
        let (code, message) = unsafe { ((api().TF_GetCode)(self.0), (api().TF_Message)(self.0)) };
        if code == code::OK {
            return Ok(());
        }
        // SAFETY: as above; it is a C string.
        let message = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
        Err(Error::TensorFlow { code, message })
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        // SAFETY: it is ours, and dropped once.
        unsafe { (api().TF_DeleteStatus)(self.0) };
    }
}

/// Sets a status.
///
/// # Safety
/// `status` is a live status.
unsafe fn set(status: *mut RawStatus, code: i32, message: &str) {
    // Where functions are missing there are no devices, and a new status says success.
    let Ok(api) = loaded() else { return };
    let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
    // SAFETY: the caller's promise; the message is copied.
    unsafe { (api.functions.TF_SetStatus)(status, code, message.as_ptr()) };
}

/// Calls TensorFlow with a status, and returns the value or the status' error.
pub fn checked<T>(call: impl FnOnce(*mut RawStatus) -> T) -> Result<T> {
    let status = Status::new();
    let value = call(status.raw());
    status.check().map(|()| value)
}

/// Runs a body whose panic is an error.
pub fn guarded<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        let message = format!("internal error of tensorflow-dml, please report it: {}", text.unwrap_or("panic"));
        Err(Error::TensorFlow { code: code::INTERNAL, message })
    })
}

/// Runs a body and reports its result in TensorFlow's status.
///
/// # Safety
/// `status` is a live status.
pub unsafe fn report(status: *mut RawStatus, body: impl FnOnce() -> Result<()>) {
    let (code, message) = match guarded(body) {
        Ok(()) => (code::OK, String::new()),
        Err(error) => (error.code(), error.to_string()),
    };
    // SAFETY: the caller's promise.
    unsafe { set(status, code, &message) };
}
