//! The structures of `stream_executor.h`. Each begins with its size, by which TensorFlow sees what
//! a plugin knows of it.
#![allow(missing_docs)]

use crate::c_api::functions::RawStatus;
use std::ffi::{c_char, c_int, c_void};

pub type StatusCallback = unsafe extern "C" fn(*mut c_void, *mut RawStatus);

#[repr(C)]
pub struct Memory {
    pub struct_size: usize,
    pub ext: *mut c_void,
    /// The address on the device.
    pub opaque: *mut c_void,
    pub size: u64,
    pub payload: u64,
}

#[repr(C)]
pub struct Device {
    pub struct_size: usize,
    pub ext: *mut c_void,
    pub ordinal: i32,
    pub device_handle: *mut c_void,
    pub hardware_name: *const c_char,
    pub device_vendor: *const c_char,
    pub pci_bus_id: *const c_char,
}

#[repr(C)]
pub struct CreateDevice {
    pub struct_size: usize,
    pub ext: *mut c_void,
    pub ordinal: i32,
    pub device: *mut Device,
}

#[repr(C)]
pub struct DeviceFunctions {
    pub struct_size: usize,
    pub ext: *mut c_void,
    pub get_numa_node: Option<unsafe extern "C" fn(*const Device) -> i32>,
    pub get_memory_bandwidth: Option<unsafe extern "C" fn(*const Device) -> i64>,
    pub get_gflops: Option<unsafe extern "C" fn(*const Device) -> f64>,
}

#[repr(C)]
pub struct CreateDeviceFunctions {
    pub struct_size: usize,
    pub ext: *mut c_void,
    pub device_fns: *mut DeviceFunctions,
}

#[repr(C)]
pub struct AllocatorStats {
    pub struct_size: usize,
    pub num_allocs: i64,
    pub bytes_in_use: i64,
    pub peak_bytes_in_use: i64,
    pub largest_alloc_size: i64,
    pub has_bytes_limit: i8,
    pub bytes_limit: i64,
    pub bytes_reserved: i64,
    pub peak_bytes_reserved: i64,
    pub has_bytes_reservable_limit: i8,
    pub bytes_reservable_limit: i64,
    pub largest_free_block_bytes: i64,
}

pub type D = *const Device;
pub type S = *mut c_void;
pub type E = *mut c_void;
pub type T = *mut c_void;
pub type Status = *mut RawStatus;

/// `SE_EventStatus`.
pub mod event_status {
    pub const ERROR: i32 = 1;
    pub const PENDING: i32 = 2;
    pub const COMPLETE: i32 = 3;
}

#[repr(C)]
pub struct StreamExecutor {
    pub struct_size: usize,
    pub ext: *mut c_void,
    pub allocate: unsafe extern "C" fn(D, u64, i64, *mut Memory),
    pub deallocate: unsafe extern "C" fn(D, *mut Memory),
    pub host_memory_allocate: unsafe extern "C" fn(D, u64) -> *mut c_void,
    pub host_memory_deallocate: unsafe extern "C" fn(D, *mut c_void),
    pub unified_memory_allocate: Option<unsafe extern "C" fn(D, u64) -> *mut c_void>,
    pub unified_memory_deallocate: Option<unsafe extern "C" fn(D, *mut c_void)>,
    pub get_allocator_stats: unsafe extern "C" fn(D, *mut AllocatorStats) -> u8,
    pub device_memory_usage: unsafe extern "C" fn(D, *mut i64, *mut i64) -> u8,
    pub create_stream: unsafe extern "C" fn(D, *mut S, Status),
    pub destroy_stream: unsafe extern "C" fn(D, S),
    pub create_stream_dependency: unsafe extern "C" fn(D, S, S, Status),
    pub get_stream_status: unsafe extern "C" fn(D, S, Status),
    pub create_event: unsafe extern "C" fn(D, *mut E, Status),
    pub destroy_event: unsafe extern "C" fn(D, E),
    pub get_event_status: unsafe extern "C" fn(D, E) -> c_int,
    pub record_event: unsafe extern "C" fn(D, S, E, Status),
    pub wait_for_event: unsafe extern "C" fn(D, S, E, Status),
    pub create_timer: unsafe extern "C" fn(D, *mut T, Status),
    pub destroy_timer: unsafe extern "C" fn(D, T),
    pub start_timer: unsafe extern "C" fn(D, S, T, Status),
    pub stop_timer: unsafe extern "C" fn(D, S, T, Status),
    pub memcpy_dtoh: unsafe extern "C" fn(D, S, *mut c_void, *const Memory, u64, Status),
    pub memcpy_htod: unsafe extern "C" fn(D, S, *mut Memory, *const c_void, u64, Status),
    pub memcpy_dtod: unsafe extern "C" fn(D, S, *mut Memory, *const Memory, u64, Status),
    pub sync_memcpy_dtoh: unsafe extern "C" fn(D, *mut c_void, *const Memory, u64, Status),
    pub sync_memcpy_htod: unsafe extern "C" fn(D, *mut Memory, *const c_void, u64, Status),
    pub sync_memcpy_dtod: unsafe extern "C" fn(D, *mut Memory, *const Memory, u64, Status),
    pub block_host_for_event: unsafe extern "C" fn(D, E, Status),
    pub block_host_until_done: unsafe extern "C" fn(D, S, Status),
    pub synchronize_all_activity: unsafe extern "C" fn(D, Status),
    pub mem_zero: unsafe extern "C" fn(D, S, *mut Memory, u64, Status),
    pub memset: unsafe extern "C" fn(D, S, *mut Memory, u8, u64, Status),
    pub memset32: unsafe extern "C" fn(D, S, *mut Memory, u32, u64, Status),
    pub host_callback: unsafe extern "C" fn(D, S, StatusCallback, *mut c_void) -> u8,
}

#[repr(C)]
pub struct CreateStreamExecutor {
    pub struct_size: usize,
    pub ext: *mut c_void,
    pub stream_executor: *mut StreamExecutor,
}

#[repr(C)]
pub struct TimerFunctions {
    pub struct_size: usize,
    pub ext: *mut c_void,
    pub nanoseconds: unsafe extern "C" fn(T) -> u64,
}

#[repr(C)]
pub struct Platform {
    pub struct_size: usize,
    pub ext: *mut c_void,
    pub name: *const c_char,
    pub device_type: *const c_char,
    pub supports_unified_memory: u8,
    pub use_bfc_allocator: u8,
    pub force_memory_growth: u8,
}

/// The end of the last member: TensorFlow's sizes have no padding at the end.
pub const PLATFORM_SIZE: usize = std::mem::offset_of!(Platform, force_memory_growth) + 1;

pub type P = *const Platform;

#[repr(C)]
pub struct PlatformFunctions {
    pub struct_size: usize,
    pub ext: *mut c_void,
    pub get_device_count: unsafe extern "C" fn(P, *mut c_int, Status),
    pub create_device: unsafe extern "C" fn(P, *mut CreateDevice, Status),
    pub destroy_device: unsafe extern "C" fn(P, *mut Device),
    pub create_device_fns: unsafe extern "C" fn(P, *mut CreateDeviceFunctions, Status),
    pub destroy_device_fns: unsafe extern "C" fn(P, *mut DeviceFunctions),
    pub create_stream_executor: unsafe extern "C" fn(P, *mut CreateStreamExecutor, Status),
    pub destroy_stream_executor: unsafe extern "C" fn(P, *mut StreamExecutor),
    pub create_timer_fns: unsafe extern "C" fn(P, *mut TimerFunctions, Status),
    pub destroy_timer_fns: unsafe extern "C" fn(P, *mut TimerFunctions),
}

#[repr(C)]
pub struct Registration {
    pub struct_size: usize,
    pub ext: *mut c_void,
    pub major_version: i32,
    pub minor_version: i32,
    pub patch_version: i32,
    pub platform: *mut Platform,
    pub platform_fns: *mut PlatformFunctions,
    pub destroy_platform: unsafe extern "C" fn(*mut Platform),
    pub destroy_platform_fns: unsafe extern "C" fn(*mut PlatformFunctions),
}
