//! The registration of the platform.

use super::raw::{
    self, CreateStreamExecutor, P, PLATFORM_SIZE, Platform, PlatformFunctions, Registration, StreamExecutor,
};
use super::{copies, devices, events, memory, streams};
use crate::c_api::functions::loaded;
use crate::c_api::status::report;
use std::ffi::CStr;

/// The type of the devices: `GPU`, unless `TF_DML_DEVICE_TYPE=DML`, for use beside a TensorFlow
/// that computes on NVIDIA's GPUs by itself.
pub fn device_type() -> &'static CStr {
    let is_dml = std::env::var_os("TF_DML_DEVICE_TYPE").is_some_and(|name| name.eq_ignore_ascii_case("dml"));
    if is_dml { c"DML" } else { c"GPU" }
}

/// Whether TensorFlow's own allocator (BFC) divides blocks of device memory,
/// `TF_DML_ALLOCATOR=bfc`, in place of the engine's.
pub fn uses_bfc() -> bool {
    std::env::var_os("TF_DML_ALLOCATOR").is_some_and(|name| name.eq_ignore_ascii_case("bfc"))
}

unsafe extern "C" fn create_stream_executor(_: P, parameters: *mut CreateStreamExecutor, status: raw::Status) {
    // SAFETY: TensorFlow's structures, during its call.
    unsafe {
        (*parameters).stream_executor.write(StreamExecutor {
            struct_size: size_of::<StreamExecutor>(),
            ext: std::ptr::null_mut(),
            allocate: memory::allocate,
            deallocate: memory::deallocate,
            host_memory_allocate: memory::host_memory_allocate,
            host_memory_deallocate: memory::host_memory_deallocate,
            unified_memory_allocate: None,
            unified_memory_deallocate: None,
            get_allocator_stats: memory::get_allocator_stats,
            device_memory_usage: memory::device_memory_usage,
            create_stream: streams::create_stream,
            destroy_stream: streams::destroy_stream,
            create_stream_dependency: streams::create_stream_dependency,
            get_stream_status: streams::get_stream_status,
            create_event: events::create_event,
            destroy_event: events::destroy_event,
            get_event_status: events::get_event_status,
            record_event: events::record_event,
            wait_for_event: events::wait_for_event,
            create_timer: events::create_timer,
            destroy_timer: events::destroy_timer,
            start_timer: events::start_timer,
            stop_timer: events::stop_timer,
            memcpy_dtoh: copies::memcpy_dtoh,
            memcpy_htod: copies::memcpy_htod,
            memcpy_dtod: copies::memcpy_dtod,
            sync_memcpy_dtoh: copies::sync_memcpy_dtoh,
            sync_memcpy_htod: copies::sync_memcpy_htod,
            sync_memcpy_dtod: copies::sync_memcpy_dtod,
            block_host_for_event: events::block_host_for_event,
            block_host_until_done: streams::block_host_until_done,
            synchronize_all_activity: streams::synchronize_all_activity,
            mem_zero: copies::mem_zero,
            memset: copies::memset,
            memset32: copies::memset32,
            host_callback: streams::host_callback,
        });
        report(status, || Ok(()));
    }
}

unsafe extern "C" fn destroy_stream_executor(_: P, _: *mut StreamExecutor) {}
unsafe extern "C" fn destroy_platform(_: *mut Platform) {}
unsafe extern "C" fn destroy_platform_fns(_: *mut PlatformFunctions) {}

/// TensorFlow's call when it loads the library. Where this TensorFlow cannot be used, a line on
/// stderr says why, and there are no devices: an error here would end `import tensorflow`.
///
/// # Safety
/// Called by TensorFlow.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SE_InitPlugin(registration: *mut Registration, status: raw::Status) {
    // SAFETY: TensorFlow's structures, during its call.
    unsafe {
        dml_log::start();
        let registration = &mut *registration;
        (registration.major_version, registration.minor_version, registration.patch_version) = (0, 0, 1);
        registration.platform.write(Platform {
            struct_size: PLATFORM_SIZE,
            ext: std::ptr::null_mut(),
            name: c"DML".as_ptr(),
            device_type: device_type().as_ptr(),
            supports_unified_memory: 0,
            use_bfc_allocator: uses_bfc().into(),
            // Else BFC would begin with one block of nearly all memory, larger than many drivers
            // allow.
            force_memory_growth: uses_bfc().into(),
        });
        registration.platform_fns.write(PlatformFunctions {
            struct_size: size_of::<PlatformFunctions>(),
            ext: std::ptr::null_mut(),
            get_device_count: devices::get_device_count,
            create_device: devices::create_device,
            destroy_device: devices::destroy_device,
            create_device_fns: devices::create_device_fns,
            destroy_device_fns: devices::destroy_device_fns,
            create_stream_executor,
            destroy_stream_executor,
            create_timer_fns: events::create_timer_fns,
            destroy_timer_fns: events::destroy_timer_fns,
        });
        registration.destroy_platform = destroy_platform;
        registration.destroy_platform_fns = destroy_platform_fns;
        match loaded() {
            Ok(_) => report(status, || Ok(())),
            // A new status says success.
            Err(why) => eprintln!("tensorflow-dml: no devices with this TensorFlow: {why}"),
        }
    }
}
