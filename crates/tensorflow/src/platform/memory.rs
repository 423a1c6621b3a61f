//! Memory of the device and of the host.

use super::raw::{AllocatorStats, D, Memory};
use super::streams::engine_device;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

/// The first of the addresses that a lost device gives: no device has memory there.
const LOST: u64 = 1 << 62;

/// Memory of a lost device, which nothing can use any more. A null pointer would make TensorFlow
/// report that memory is exhausted; so what the memory is for reports the loss.
fn of_lost_device(size: u64) -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(LOST);
    NEXT.fetch_add(size.next_multiple_of(256).max(256), Ordering::Relaxed)
}

/// Null if memory is exhausted: TensorFlow tells the user then.
pub unsafe extern "C" fn allocate(device: D, size: u64, _: i64, memory: *mut Memory) {
    // SAFETY: TensorFlow's device, and its structure.
    unsafe {
        let address = engine_device(device).and_then(|device| match device.allocate(size) {
            Err(_) if device.is_lost() => Ok(of_lost_device(size)),
            allocated => Ok(allocated?),
        });
        let address =
            address.inspect_err(|error| tracing::info!("{size} bytes are not allocated: {error}")).unwrap_or(0);
        (*memory).struct_size = size_of::<Memory>();
        (*memory).opaque = address as *mut c_void;
        (*memory).size = size;
        (*memory).payload = 0;
    }
}

pub unsafe extern "C" fn deallocate(device: D, memory: *mut Memory) {
    // SAFETY: TensorFlow's device, and a structure that `allocate` has filled.
    unsafe {
        let address = (*memory).opaque as u64;
        if address < LOST
            && let Ok(device) = engine_device(device)
        {
            device.free(address);
        }
        (*memory).opaque = std::ptr::null_mut();
        (*memory).size = 0;
    }
}

pub unsafe extern "C" fn host_memory_allocate(device: D, size: u64) -> *mut c_void {
    // SAFETY: TensorFlow's device.
    let memory = unsafe { engine_device(device) }.and_then(|device| Ok(device.allocate_pinned(size.max(1))?));
    memory.map_or(std::ptr::null_mut(), |memory| memory.as_ptr().cast())
}

pub unsafe extern "C" fn host_memory_deallocate(device: D, memory: *mut c_void) {
    // SAFETY: TensorFlow's device.
    if let Ok(device) = unsafe { engine_device(device) } {
        device.free_pinned(memory as u64);
    }
}

pub unsafe extern "C" fn get_allocator_stats(device: D, out: *mut AllocatorStats) -> u8 {
    // SAFETY: TensorFlow's device, and its structure.
    unsafe {
        let Ok(device) = engine_device(device) else { return 0 };
        let stats = device.memory_stats().all;
        let total = device.info().memory_total as i64;
        out.write(AllocatorStats {
            struct_size: size_of::<AllocatorStats>(),
            num_allocs: stats.allocations.current as i64,
            bytes_in_use: stats.allocated_bytes.current as i64,
            peak_bytes_in_use: stats.allocated_bytes.peak as i64,
            largest_alloc_size: 0,
            has_bytes_limit: 1,
            bytes_limit: total,
            bytes_reserved: stats.reserved_bytes.current as i64,
            peak_bytes_reserved: stats.reserved_bytes.peak as i64,
            has_bytes_reservable_limit: 0,
            bytes_reservable_limit: 0,
            largest_free_block_bytes: 0,
        });
        1
    }
}

pub unsafe extern "C" fn device_memory_usage(device: D, free: *mut i64, total: *mut i64) -> u8 {
    // SAFETY: TensorFlow's device, and its places for numbers.
    unsafe {
        let Ok(device) = engine_device(device) else { return 0 };
        let (free_bytes, total_bytes) = device.memory_info();
        free.write(free_bytes as i64);
        total.write(total_bytes as i64);
        1
    }
}
