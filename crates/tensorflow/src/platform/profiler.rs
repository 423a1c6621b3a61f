//! The registration of a profiler (`pluggable_profiler.h`): `tf.profiler` starts it, stops it, and
//! takes its profile.

use super::plugin::device_type;
use super::profile::space;
use super::raw::Status;
use crate::c_api::functions::loaded;
use crate::c_api::status::report;
use prost::Message;
use std::ffi::{c_char, c_void};
use std::sync::{Mutex, PoisonError};

#[repr(C)]
pub struct Profiler {
    struct_size: usize,
    ext: *mut c_void,
    device_type: *const c_char,
}

#[repr(C)]
pub struct ProfilerFunctions {
    struct_size: usize,
    ext: *mut c_void,
    start: unsafe extern "C" fn(*const Profiler, Status),
    stop: unsafe extern "C" fn(*const Profiler, Status),
    collect_data_xspace: unsafe extern "C" fn(*const Profiler, *mut u8, *mut usize, Status),
}

/// TensorFlow's parameter of [`TF_InitProfiler`].
#[repr(C)]
pub struct ProfilerRegistration {
    struct_size: usize,
    ext: *mut c_void,
    major_version: i32,
    minor_version: i32,
    patch_version: i32,
    profiler: *mut Profiler,
    profiler_fns: *mut ProfilerFunctions,
    destroy_profiler: unsafe extern "C" fn(*mut Profiler),
    destroy_profiler_fns: unsafe extern "C" fn(*mut ProfilerFunctions),
}

/// What a profile has besides activities, and its bytes once it has ended.
struct State {
    warnings: Vec<String>,
    bytes: Vec<u8>,
}

static STATE: Mutex<State> = Mutex::new(State { warnings: Vec::new(), bytes: Vec::new() });

/// A device without timestamps is a warning in the profile, which has the other devices.
unsafe extern "C" fn start(_: *const Profiler, status: Status) {
    // SAFETY: TensorFlow's status.
    unsafe {
        report(status, || {
            let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
            let warning = dml_engine::start_profile().err().map(|error| error.to_string());
            *state = State { warnings: warning.into_iter().collect(), bytes: Vec::new() };
            Ok(())
        });
    }
}

unsafe extern "C" fn stop(_: *const Profiler, status: Status) {
    // SAFETY: TensorFlow's status.
    unsafe {
        report(status, || {
            let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
            let warnings = std::mem::take(&mut state.warnings);
            state.bytes = space(&dml_engine::stop_profile(), warnings).encode_to_vec();
            Ok(())
        });
    }
}

/// The size without a buffer; with one of that size the profile, once.
unsafe extern "C" fn collect(_: *const Profiler, buffer: *mut u8, size: *mut usize, status: Status) {
    // SAFETY: TensorFlow's buffer of as many bytes as `size` says, and its status.
    unsafe {
        report(status, || {
            let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
            let needed = state.bytes.len();
            if buffer.is_null() {
                size.write(needed);
                return Ok(());
            }
            crate::require!(*size >= needed, "the profile has {needed} bytes, and the buffer {}", *size);
            buffer.copy_from_nonoverlapping(state.bytes.as_ptr(), needed);
            size.write(needed);
            state.bytes = Vec::new();
            Ok(())
        });
    }
}

unsafe extern "C" fn destroy_profiler(_: *mut Profiler) {}
unsafe extern "C" fn destroy_profiler_fns(_: *mut ProfilerFunctions) {}

/// TensorFlow's call for profilers, when it loads the library.
///
/// # Safety
/// Called by TensorFlow.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TF_InitProfiler(registration: *mut ProfilerRegistration, status: Status) {
    // SAFETY: TensorFlow's structures, during its call.
    unsafe {
        let registration = &mut *registration;
        registration.struct_size = size_of::<ProfilerRegistration>();
        (registration.major_version, registration.minor_version, registration.patch_version) = (0, 0, 1);
        registration.profiler.write(Profiler {
            struct_size: size_of::<Profiler>(),
            ext: std::ptr::null_mut(),
            device_type: device_type().as_ptr(),
        });
        registration.profiler_fns.write(ProfilerFunctions {
            struct_size: size_of::<ProfilerFunctions>(),
            ext: std::ptr::null_mut(),
            start,
            stop,
            collect_data_xspace: collect,
        });
        registration.destroy_profiler = destroy_profiler;
        registration.destroy_profiler_fns = destroy_profiler_fns;
        if loaded().is_ok() {
            report(status, || Ok(()));
        }
    }
}
