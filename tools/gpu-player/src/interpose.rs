//! What stands before functions of the C library, for drivers that call them. A player exports the
//! functions themselves, which lead here: only the library that is preloaded may have their names.

use std::ffi::{CStr, c_int, c_ulong, c_void};
use std::io;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use crate::{buffers, drm};

/// The function of a name in the library that is loaded after this one.
fn next_function(cache: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    let known = cache.load(Relaxed);
    if !known.is_null() {
        return known;
    }
    // SAFETY: a name that ends in zero.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    cache.store(found, Relaxed);
    found
}

static NEXT_IOCTL: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static NEXT_MMAP: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// `ioctl` of the process. `answer` answers a request of DRM, or asks the library after this one by
/// the function that it is given.
///
/// # Safety
///
/// Like `ioctl`.
pub unsafe fn ioctl(
    file: c_int,
    request: c_ulong,
    argument: *mut c_void,
    answer: impl FnOnce(&dyn Fn() -> c_int) -> io::Result<c_int>,
) -> c_int {
    let next = next_function(&NEXT_IOCTL, c"ioctl");
    if next.is_null() {
        // SAFETY: the caller's.
        return unsafe { libc::syscall(libc::SYS_ioctl, file, request, argument) as c_int };
    }
    // SAFETY: the C library's type; the third argument is passed the same way where it is one of
    // any number.
    let next: unsafe extern "C" fn(c_int, c_ulong, ...) -> c_int = unsafe { std::mem::transmute(next) };
    // SAFETY: the caller's.
    let ask = || unsafe { next(file, request, argument) };
    if drm::letter(request) != drm::DRM {
        return ask();
    }
    answer(&ask).unwrap_or_else(|error| {
        // SAFETY: this thread's.
        unsafe { *libc::__errno_location() = error.raw_os_error().unwrap_or(libc::EINVAL) };
        -1
    })
}

/// `mmap` of the process: at an offset of [`buffers::Buffers::offset`], of the player's file.
///
/// # Safety
///
/// Like `mmap`.
pub unsafe fn mmap(
    at: *mut c_void,
    bytes: usize,
    access: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> *mut c_void {
    let next = next_function(&NEXT_MMAP, c"mmap");
    // SAFETY: the caller's.
    unsafe {
        if file >= 0 && offset as u64 >= buffers::OFFSET && offset > 0 {
            return buffers::map_for_driver(at, bytes, access, flags, offset as u64);
        }
        if next.is_null() {
            return libc::syscall(libc::SYS_mmap, at, bytes, access, flags, file, offset) as *mut c_void;
        }
        type Mmap = unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, c_int, i64) -> *mut c_void;
        std::mem::transmute::<*mut c_void, Mmap>(next)(at, bytes, access, flags, file, offset)
    }
}
