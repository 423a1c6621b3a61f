//! Random generators. A handle is a reference to a generator; 0 is the device's default generator.

use crate::device::open;
use crate::error::{Failure, guard};
use crate::handle;
use dml_engine::Generator;
use std::sync::{Arc, Mutex, PoisonError};

/// The seed of generators that were never seeded: PyTorch's default.
pub const DEFAULT_SEED: u64 = 67_280_421_310_721;

/// The generator of a handle, shared; `None` for 0.
///
/// # Safety
/// `handle` is 0, or from [`dml_generator_new`] and not freed during the call.
pub unsafe fn shared(handle: u64) -> Option<Arc<Mutex<Generator>>> {
    // SAFETY: the caller's promise.
    unsafe { handle::get(handle) }.cloned()
}

/// # Safety
/// As [`shared`].
unsafe fn with<T>(handle: u64, device: i32, f: impl FnOnce(&mut Generator) -> T) -> Result<T, Failure> {
    // A panic of another thread cannot leave a generator, which is two numbers, in an invalid
    // state. SAFETY: the caller's promise.
    Ok(match unsafe { shared(handle) } {
        Some(own) => f(&mut own.lock().unwrap_or_else(PoisonError::into_inner)),
        None => f(&mut open(device)?.generator().lock().unwrap_or_else(PoisonError::into_inner)),
    })
}

/// Fails in a capture: a replay would not seed again.
fn refuse_in_capture(device: i32) -> Result<(), Failure> {
    let open = usize::try_from(device).ok().and_then(dml_engine::opened);
    open.map_or(Ok(()), |device| Ok(device.refuse_in_capture("seeding a generator")?))
}

/// A new generator, in addition to the device's default one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_generator_new(device: i32, generator: *mut u64) -> i32 {
    guard(|| {
        open(device)?;
        // SAFETY: the contract's places.
        unsafe { generator.write(handle::new(Arc::new(Mutex::new(Generator::new(DEFAULT_SEED))))) };
        Ok(())
    })
}

/// Drops a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_generator_free(generator: u64) {
    // SAFETY: the contract's handles.
    guard(|| unsafe { handle::free::<Arc<Mutex<Generator>>>(generator) });
}

/// Moves to the start of `seed`'s stream. Generator 0 is the device's default one, here and below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_generator_seed(generator: u64, device: i32, seed: u64) -> i32 {
    // SAFETY: the contract's handles.
    guard(|| unsafe {
        refuse_in_capture(device)?;
        with(generator, device, |g| g.set_seed(seed))
    })
}

/// Seeds the default generators of all devices; opens none.
#[unsafe(no_mangle)]
pub extern "C" fn dml_generator_seed_all(seed: u64) {
    guard(|| {
        dml_engine::seed_all(seed);
        Ok(())
    });
}

/// Seed and offset.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_generator_get(generator: u64, device: i32, seed: *mut u64, offset: *mut u64) -> i32 {
    // SAFETY: the contract's handles and places.
    guard(|| unsafe {
        let (s, o) = with(generator, device, |g| (g.seed(), g.offset()))?;
        seed.write(s);
        offset.write(o);
        Ok(())
    })
}

/// Sets seed and offset.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_generator_set(generator: u64, device: i32, seed: u64, offset: u64) -> i32 {
    // SAFETY: the contract's handles.
    guard(|| unsafe {
        refuse_in_capture(device)?;
        with(generator, device, |g| {
            g.set_seed(seed);
            g.set_offset(offset);
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_keeps_its_own_state() {
        let made = Arc::new(Mutex::new(Generator::new(1)));
        let handle = handle::new(made.clone());
        // SAFETY: a handle of a generator, which is freed last, and valid places.
        unsafe {
            assert_eq!(dml_generator_seed(handle, -1, 42), 0);
            assert_eq!(dml_generator_set(handle, -1, 42, 7), 0);
            let (mut seed, mut offset) = (0, 0);
            assert_eq!(dml_generator_get(handle, -1, &raw mut seed, &raw mut offset), 0);
            assert_eq!((seed, offset), (42, 7));
            assert_eq!(Arc::strong_count(&made), 2);
            drop(shared(handle));
            dml_generator_free(handle);
        }
        assert_eq!(Arc::strong_count(&made), 1);
    }
}
