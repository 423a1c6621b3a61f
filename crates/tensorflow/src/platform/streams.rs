//! Streams: all are the device's one queue.

use super::raw::{D, S, Status, StatusCallback};
use crate::c_api::status::{Status as OwnStatus, report};
use crate::error::Result;
use dml_engine::Device;
use std::ffi::c_void;
use std::sync::Arc;

/// What TensorFlow's streams point to.
pub struct Stream {
    device: &'static Arc<Device>,
}

impl Stream {
    /// The device of a stream.
    ///
    /// # Safety
    /// `stream` comes from [`create_stream`] and is not destroyed.
    pub unsafe fn device(stream: *mut c_void) -> &'static Arc<Device> {
        // SAFETY: the caller's promise.
        unsafe { (*stream.cast::<Self>()).device }
    }
}

/// The engine's device for TensorFlow's. The first call opens it.
///
/// # Safety
/// `device` is TensorFlow's, during its call.
pub unsafe fn engine_device(device: D) -> Result<&'static Arc<Device>> {
    // SAFETY: the caller's promise.
    let ordinal = unsafe { (*device).ordinal };
    Ok(dml_engine::device(ordinal as usize)?)
}

pub unsafe extern "C" fn create_stream(device: D, stream: *mut S, status: Status) {
    // SAFETY: TensorFlow's device, its place for a stream, and its status.
    unsafe {
        report(status, || {
            let device = engine_device(device)?;
            stream.write(Box::into_raw(Box::new(Stream { device })).cast());
            Ok(())
        });
    }
}

pub unsafe extern "C" fn destroy_stream(_: D, stream: S) {
    // SAFETY: from `create_stream`, and destroyed once.
    drop(unsafe { Box::from_raw(stream.cast::<Stream>()) });
}

pub unsafe extern "C" fn create_stream_dependency(_: D, _: S, _: S, status: Status) {
    // SAFETY: TensorFlow's status.
    unsafe { report(status, || Ok(())) };
}

pub unsafe extern "C" fn get_stream_status(_: D, stream: S, status: Status) {
    // SAFETY: TensorFlow's stream and status.
    unsafe {
        report(status, || {
            let device = Stream::device(stream);
            if device.is_lost() {
                device.synchronize()?;
            }
            Ok(())
        });
    }
}

pub unsafe extern "C" fn block_host_until_done(_: D, stream: S, status: Status) {
    // SAFETY: TensorFlow's stream and status.
    unsafe { report(status, || Ok(Stream::device(stream).synchronize()?)) };
}

pub unsafe extern "C" fn synchronize_all_activity(device: D, status: Status) {
    // SAFETY: TensorFlow's device and status.
    unsafe { report(status, || Ok(engine_device(device)?.synchronize()?)) };
}

/// Calls back after all work of the stream, for which it waits.
pub unsafe extern "C" fn host_callback(_: D, stream: S, callback: StatusCallback, argument: *mut c_void) -> u8 {
    // SAFETY: TensorFlow's stream; the callback with its argument, once.
    unsafe {
        let is_done = Stream::device(stream).synchronize().is_ok();
        let status = OwnStatus::new();
        callback(argument, status.raw());
        u8::from(is_done && status.check().is_ok())
    }
}
