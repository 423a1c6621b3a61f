//! Pinned host memory. Its addresses are unique in the process, so only the allocation names a
//! device.

use crate::abi::{DmlPoolStats, DmlStat};
use crate::device::open;
use crate::error::{guard, guard_value};
use crate::memory::pool;
use std::ffi::c_void;

/// Memory of the host that a device reads and writes itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_host_allocate(device: i32, bytes: u64, address: *mut *mut c_void) -> i32 {
    guard(|| {
        let got = open(device)?.allocate_pinned(bytes)?;
        // SAFETY: the contract's places.
        unsafe { address.write(got.as_ptr().cast()) };
        Ok(())
    })
}

/// Frees pinned memory. Copies that were enqueued before may still use it.
#[unsafe(no_mangle)]
pub extern "C" fn dml_host_free(address: *const c_void) {
    guard(|| {
        let _found = dml_engine::all_opened().any(|device| device.free_pinned(address as u64));
        Ok(())
    });
}

/// 1 if an address is inside pinned memory of any device.
#[unsafe(no_mangle)]
pub extern "C" fn dml_host_is_pinned(address: *const c_void) -> i32 {
    guard_value(0, || Ok(i32::from(dml_engine::all_opened().any(|device| device.is_pinned(address as u64)))))
}

/// Returns unused pinned memory to the system.
#[unsafe(no_mangle)]
pub extern "C" fn dml_host_empty_cache() -> i32 {
    guard(|| {
        for device in dml_engine::all_opened() {
            device.empty_pinned_cache()?;
        }
        Ok(())
    })
}

/// The figures of all devices' pinned memory together. A peak is the sum of their peaks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_host_stats(out: *mut DmlPoolStats) -> i32 {
    guard(|| {
        let mut sum = DmlPoolStats::default();
        for device in dml_engine::all_opened() {
            let one = pool(&device.pinned_stats().all);
            add(&mut sum.allocation, &one.allocation);
            add(&mut sum.segment, &one.segment);
            add(&mut sum.allocated_bytes, &one.allocated_bytes);
            add(&mut sum.reserved_bytes, &one.reserved_bytes);
            add(&mut sum.requested_bytes, &one.requested_bytes);
        }
        // SAFETY: the contract's places.
        unsafe { out.write(sum) };
        Ok(())
    })
}

fn add(sum: &mut DmlStat, one: &DmlStat) {
    sum.current += one.current;
    sum.peak += one.peak;
    sum.allocated += one.allocated;
    sum.freed += one.freed;
}

/// Sets each peak to the current figure, or with 0 the totals to zero.
#[unsafe(no_mangle)]
pub extern "C" fn dml_host_reset_stats(peaks: i32) {
    guard(|| {
        dml_engine::all_opened().for_each(|device| device.reset_pinned_stats(peaks != 0));
        Ok(())
    });
}
