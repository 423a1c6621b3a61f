//! What the Python package and the tests tell the library, and ask of an opened device.

use crate::c_api::status::guarded;
use crate::error::Result;
use std::ffi::c_int;

fn limit(device: usize, bytes: u64) -> Result<()> {
    let device = dml_engine::device(device)?;
    let total = device.info().memory_total;
    device.set_memory_fraction((bytes as f64 / total as f64).min(1.0));
    Ok(())
}

/// The most bytes that a device gives to tensors and to scratch memory together, which a program
/// sets with `tf.config.set_logical_device_configuration`: TensorFlow tells only its own allocator.
/// Opens the device. False if there is no such device.
#[unsafe(no_mangle)]
pub extern "C" fn dml_tensorflow_limit_memory(device: c_int, bytes: u64) -> bool {
    let limited = guarded(|| limit(device as usize, bytes));
    limited.inspect_err(|error| tracing::warn!("the limit of device {device}'s memory is not set: {error}")).is_ok()
}

/// The bytes that tensors and scratch memory of a device take, and the most that they have taken,
/// in `current` and `peak`; with `reset`, the peak becomes the current number. False if there is no
/// such device.
///
/// # Safety
/// Both are places for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_tensorflow_memory(device: c_int, reset: bool, current: *mut u64, peak: *mut u64) -> bool {
    let read = guarded(|| {
        let device = dml_engine::device(device as usize)?;
        if reset {
            device.reset_peak_stats();
        }
        let bytes = device.memory_stats().all.allocated_bytes;
        // SAFETY: the caller's promise.
        unsafe {
            current.write(bytes.current);
            peak.write(bytes.peak);
        }
        Ok(())
    });
    read.is_ok()
}

/// Makes a device lost, for tests. False if there is no such device.
#[unsafe(no_mangle)]
pub extern "C" fn dml_tensorflow_simulate_loss(device: c_int) -> bool {
    guarded(|| {
        dml_engine::device(device as usize)?.simulate_loss();
        Ok(())
    })
    .is_ok()
}
