//! Handles of the engine's objects for the plugin: each handle is a number that owns one object. 0
//! is none.

use crate::error::Failure;
use dml_engine::{Capture, Error, Event, Generator, Graph, GraphPool, forked};
use std::sync::{Arc, Mutex};

/// A type of objects with handles. The plugin uses a handle on several threads at a time, and frees
/// it on any thread: Python collects garbage wherever it finds it.
pub trait Handled: Send + Sync {}

impl Handled for Capture {}
impl Handled for Event {}
impl Handled for Graph {}
impl Handled for Arc<GraphPool> {}
impl Handled for Arc<Mutex<Generator>> {}

/// A handle that owns the value.
pub fn new<T: Handled>(value: T) -> u64 {
    Box::into_raw(Box::new(value)) as usize as u64
}

/// The object of a handle; `None` for 0.
///
/// # Safety
/// `handle` is 0, or from [`new`] of a `T` and not freed during `'a`.
pub unsafe fn get<'a, T: Handled>(handle: u64) -> Option<&'a T> {
    // SAFETY: null, or by the caller's promise a box that lives for `'a`. Nobody has `&mut` to its
    // content, and `T` is `Sync`.
    unsafe { (handle as usize as *const T).as_ref() }
}

/// Takes the object of a handle, which ends the handle; `None` for 0. In a forked child the object
/// is left alone: another thread of the parent may have held a lock of the device, and dropping the
/// object would wait for it.
///
/// # Errors
/// That the process was forked.
///
/// # Safety
/// `handle` is 0, or from [`new`] of a `T`; it is not used meanwhile or later.
pub unsafe fn take<T: Handled>(handle: u64) -> Result<Option<T>, Failure> {
    if forked() {
        return Err(Error::Forked.into());
    }
    let pointer = handle as usize as *mut T;
    // SAFETY: by the caller's promise the box has no other owner, and `T` may be sent to another
    // thread.
    Ok((!pointer.is_null()).then(|| *unsafe { Box::from_raw(pointer) }))
}

/// Drops the object of a handle.
///
/// # Errors
/// As [`take`].
///
/// # Safety
/// As [`take`].
pub unsafe fn free<T: Handled>(handle: u64) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    unsafe { take::<T>(handle) }.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_owns_what_it_stands_for() {
        let generator = Arc::new(Mutex::new(Generator::new(1)));
        let handle = new(Arc::clone(&generator));
        // SAFETY: a handle of this type, freed once and not used after that; and 0.
        unsafe {
            assert!(get(handle).is_some_and(|own: &Arc<Mutex<Generator>>| Arc::ptr_eq(own, &generator)));
            assert_eq!(Arc::strong_count(&generator), 2);
            assert!(free::<Arc<Mutex<Generator>>>(handle).is_ok());
            assert!(get::<Graph>(0).is_none() && matches!(take::<Event>(0), Ok(None)));
            assert!(free::<Capture>(0).is_ok());
        }
        assert_eq!(Arc::strong_count(&generator), 1);
    }
}
