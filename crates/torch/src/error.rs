//! Errors as statuses, messages per thread, and the conversion of panics.

use crate::abi::Status;
use crate::message::message;
use dml_aten::operator::torch_version;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// A failure at the ABI. With a message of `None`, the plugin has already set the message.
#[derive(Debug)]
pub struct Failure {
    /// The status to return.
    pub status: Status,
    /// The message.
    pub message: Option<String>,
}

impl Failure {
    /// A failure with a message.
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: Some(message.into()) }
    }
}

impl From<dml_engine::Error> for Failure {
    fn from(e: dml_engine::Error) -> Self {
        use dml_engine::Error as E;
        let status = match &e {
            E::OutOfMemory { .. } | E::HostOutOfMemory { .. } => Status::OutOfMemory,
            E::DeviceLost { .. } => Status::DeviceLost,
            E::IndexOutOfRange { runtime: false, .. } => Status::IndexError,
            E::Unsupported { .. } | E::Gpu(dml_gpu::Error::Unsupported { .. }) => Status::NotImplemented,
            E::Interrupted => Status::Interrupted,
            _ => Status::RuntimeError,
        };
        match e {
            E::InvalidValue(value) => Self::new(status, dml_aten::message_of_refused(value)),
            e => Self::new(status, message(&e)),
        }
    }
}

impl From<dml_aten::Error> for Failure {
    fn from(e: dml_aten::Error) -> Self {
        use dml_aten::Error as E;
        let status = match e {
            E::Engine(e) => return e.into(),
            E::Host(status) => return Self { status: status_of(status), message: None },
            E::Runtime(_) => Status::RuntimeError,
            E::Dtype(_) if torch_version::at_least(15) => Status::NotImplemented,
            E::Dtype(_) => Status::RuntimeError,
            E::Index(_) => Status::IndexError,
            E::Type(_) => Status::TypeError,
            E::Value(_) => Status::ValueError,
            E::NotImplemented(_) => Status::NotImplemented,
            E::Fallback(_) => Status::Fallback,
            E::NeedsData(_) => Status::NeedsData,
        };
        Self::new(status, e.to_string())
    }
}

/// The status that a callback returned.
fn status_of(code: i32) -> Status {
    use Status::*;
    [IndexError, TypeError, ValueError, NotImplemented, OutOfMemory, DeviceLost, Interrupted]
        .into_iter()
        .find(|s| *s as i32 == code)
        .unwrap_or(RuntimeError)
}

/// Sets the calling thread's message.
pub fn set(message: &str) {
    // A message with a zero byte is truncated there.
    let end = message.find('\0').unwrap_or(message.len());
    let text = CString::new(&message[..end]).unwrap_or_default();
    LAST.with(|last| last.replace(text));
}

/// Runs the body of an ABI function: an error or a panic becomes a status and a message.
pub fn guard(body: impl FnOnce() -> Result<(), Failure>) -> i32 {
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return Status::Ok as i32,
        Ok(Err(failure)) => failure,
        Err(panic) => Failure::new(Status::RuntimeError, panic_message(panic.as_ref())),
    };
    if let Some(message) = failure.message {
        set(&message);
    }
    failure.status as i32
}

/// As [`guard`], for functions with another result: `failed` on failure.
pub fn guard_value<T>(failed: T, body: impl FnOnce() -> Result<T, Failure>) -> T {
    let mut value = failed;
    guard(|| {
        value = body()?;
        Ok(())
    });
    value
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let what = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("unknown");
    format!("internal error of torch-dml, please report it: {what}")
}

/// The message of the calling thread's last failed call, valid until its next call.
#[unsafe(no_mangle)]
pub extern "C" fn dml_last_error() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}

/// Sets the calling thread's message. Called by the plugin's callbacks before they return a status.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_set_error(message: *const c_char) {
    if !message.is_null() {
        // SAFETY: the contract's texts; it is not null.
        set(&unsafe { CStr::from_ptr(message) }.to_string_lossy());
    }
}

/// Version of this interface: `DML_ABI_VERSION` as the engine was built for.
#[unsafe(no_mangle)]
pub extern "C" fn dml_abi_version() -> u32 {
    crate::abi::ABI_VERSION
}

/// Version of the engine, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn dml_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last() -> String {
        // SAFETY: `dml_last_error` returns a C string that lives until the thread's next failed
        // call; it is copied before.
        unsafe { CStr::from_ptr(dml_last_error()) }.to_string_lossy().into_owned()
    }

    #[test]
    fn errors_become_statuses_and_messages() {
        let e = dml_aten::Error::Index("Dimension out of range".into());
        assert_eq!(guard(|| Err(e.into())), Status::IndexError as i32);
        assert_eq!(last(), "Dimension out of range");
        let e = dml_engine::Error::InvalidDevice { index: 9, count: 1 };
        assert_eq!(guard(|| Err(dml_aten::Error::from(e).into())), Status::RuntimeError as i32);
        assert!(last().contains('9'));
    }

    #[test]
    fn a_callbacks_message_is_kept() {
        set("said by the plugin");
        let e = dml_aten::Error::Host(Status::OutOfMemory as i32);
        assert_eq!(guard(|| Err(e.into())), Status::OutOfMemory as i32);
        assert_eq!(last(), "said by the plugin");
        assert_eq!(status_of(99), Status::RuntimeError);
    }

    #[test]
    fn a_panic_stops_here() {
        assert_eq!(guard(|| panic!("lost {}", "count")), Status::RuntimeError as i32);
        assert!(last().contains("lost count"));
        assert_eq!(guard_value(7, || panic!("again")), 7);
    }

    #[test]
    fn a_zero_byte_cuts_the_message() {
        set("before\0after");
        assert_eq!(last(), "before");
    }
}
