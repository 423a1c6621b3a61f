//! Which of Grappler's passes over graphs run for our devices.
//!
//! A plugin says so by registering a pass of its own, which here returns the graph as it is.

use super::plugin::device_type;
use super::raw::Status;
use crate::c_api::functions::RawBuffer;
use crate::c_api::status::report;
use crate::error::Error;
use std::ffi::{c_char, c_int, c_void};

/// `TF_TriState`.
mod tri_state {
    pub const OFF: i32 = 1;
}

/// `TP_OptimizerConfigs`: one number for each pass, in the header's order.
#[repr(C)]
pub struct Passes {
    struct_size: usize,
    ext: *mut c_void,
    states: [c_int; 19],
}

/// The position of the pass that makes `_FusedConv2D` and the like of several nodes.
const REMAPPING: usize = 13;

/// `TP_Optimizer`.
#[repr(C)]
pub struct Pass {
    struct_size: usize,
    ext: *mut c_void,
    create: unsafe extern "C" fn() -> *mut c_void,
    optimize: unsafe extern "C" fn(*mut c_void, *const RawBuffer, *const c_void, *mut RawBuffer, Status),
    destroy: unsafe extern "C" fn(*mut c_void),
}

/// `TP_OptimizerRegistrationParams`.
#[repr(C)]
pub struct Registration {
    struct_size: usize,
    ext: *mut c_void,
    major_version: i32,
    minor_version: i32,
    patch_version: i32,
    device_type: *const c_char,
    passes: *mut Passes,
    pass: *mut Pass,
}

/// The end of [`Passes`]' last member: TensorFlow's sizes have no padding at the end.
const PASSES_SIZE: usize = std::mem::offset_of!(Passes, states) + size_of::<[c_int; 19]>();

/// TensorFlow deletes what is not null.
unsafe extern "C" fn create() -> *mut c_void {
    std::ptr::dangling_mut::<u8>().cast()
}

unsafe extern "C" fn destroy(_: *mut c_void) {}

unsafe extern "C" fn delete_bytes(data: *mut c_void, length: usize) {
    // SAFETY: from `optimize`, once.
    drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(data.cast::<u8>(), length)) });
}

/// Returns the graph as it is.
unsafe extern "C" fn optimize(
    _: *mut c_void,
    graph: *const RawBuffer,
    _: *const c_void,
    result: *mut RawBuffer,
    status: Status,
) {
    // SAFETY: TensorFlow's buffers, of which the result is empty, and its status.
    unsafe {
        report(status, || {
            if (*graph).data.is_null() {
                return Err(Error::InvalidArgument("a graph without bytes".to_owned()));
            }
            let bytes: Box<[u8]> = std::slice::from_raw_parts((*graph).data.cast::<u8>(), (*graph).length).into();
            (*result).length = bytes.len();
            (*result).data = Box::into_raw(bytes).cast::<c_void>();
            (*result).deallocator = Some(delete_bytes);
            Ok(())
        });
    }
}

/// TensorFlow's call when it loads the library, for its passes over graphs.
///
/// # Safety
/// Called by TensorFlow.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TF_InitGraph(registration: *mut Registration, status: Status) {
    // SAFETY: TensorFlow's structures, during its call.
    unsafe {
        let registration = &mut *registration;
        registration.struct_size = size_of::<Registration>();
        (registration.major_version, registration.minor_version, registration.patch_version) = (0, 0, 1);
        registration.device_type = device_type().as_ptr();
        (*registration.passes).struct_size = PASSES_SIZE;
        // There are no kernels for its results.
        (*registration.passes).states[REMAPPING] = tri_state::OFF;
        (*registration.pass).struct_size = size_of::<Pass>();
        (*registration.pass).create = create;
        (*registration.pass).optimize = optimize;
        (*registration.pass).destroy = destroy;
        // Without the C functions there are no devices, and a new status says success.
        if crate::c_api::functions::loaded().is_ok() {
            report(status, || Ok(()));
        }
    }
}
