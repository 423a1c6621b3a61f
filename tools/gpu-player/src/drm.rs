//! Requests of the kernel interface that drivers of all makers make.

use std::ffi::c_ulong;

/// The letter of DRM's requests.
pub(crate) const DRM: c_ulong = b'd' as c_ulong;
/// The number of a request.
#[must_use]
pub fn number(request: c_ulong) -> c_ulong {
    request & 255
}
/// How many bytes its argument has.
#[must_use]
pub fn size(request: c_ulong) -> usize {
    (request >> 16 & 0x3fff) as usize
}
/// The letter of a request.
pub(crate) fn letter(request: c_ulong) -> c_ulong {
    request >> 8 & 255
}

/// A buffer's handle is given back: [`GemClose`].
pub const GEM_CLOSE: c_ulong = 0x09;
pub(crate) const SYNCOBJ_CREATE: c_ulong = 0xbf;
pub(crate) const SYNCOBJ_DESTROY: c_ulong = 0xc0;
pub(crate) const SYNCOBJ_WAIT: c_ulong = 0xc3;
pub(crate) const SYNCOBJ_RESET: c_ulong = 0xc4;
pub(crate) const SYNCOBJ_SIGNAL: c_ulong = 0xc5;
pub(crate) const SYNCOBJ_TIMELINE_WAIT: c_ulong = 0xca;
pub(crate) const SYNCOBJ_QUERY: c_ulong = 0xcb;
pub(crate) const SYNCOBJ_TRANSFER: c_ulong = 0xcc;
pub(crate) const SYNCOBJ_TIMELINE_SIGNAL: c_ulong = 0xcd;

/// The argument of [`GEM_CLOSE`].
#[repr(C)]
pub struct GemClose {
    /// The buffer's handle.
    pub handle: u32,
}

#[repr(C)]
pub(crate) struct SyncobjCreate {
    pub handle: u32,
    pub flags: u32,
}
/// Of [`SyncobjCreate::flags`]: signalled from the start.
pub(crate) const CREATE_SIGNALED: u32 = 1;

#[repr(C)]
pub(crate) struct SyncobjWait {
    pub handles: u64,
    pub timeout: i64,
    pub count: u32,
    pub flags: u32,
    pub first_signaled: u32,
}

#[repr(C)]
pub(crate) struct SyncobjTimelineWait {
    pub handles: u64,
    pub points: u64,
    pub timeout: i64,
    pub count: u32,
    pub flags: u32,
    pub first_signaled: u32,
}
/// Of a wait's flags: for all, otherwise for any.
pub(crate) const WAIT_ALL: u32 = 1;

#[repr(C)]
pub(crate) struct SyncobjArray {
    pub handles: u64,
    pub count: u32,
}

#[repr(C)]
pub(crate) struct SyncobjTimelineArray {
    pub handles: u64,
    pub points: u64,
    pub count: u32,
    pub flags: u32,
}

#[repr(C)]
pub(crate) struct SyncobjTransfer {
    pub from: u32,
    pub to: u32,
    pub from_point: u64,
    pub to_point: u64,
    pub flags: u32,
}

/// An array of the driver's.
///
/// # Safety
///
/// There are `count` values at the address, or the count is 0.
#[must_use]
pub unsafe fn slice<'a, T>(address: u64, count: u32) -> &'a [T] {
    if address == 0 || count == 0 {
        return &[];
    }
    // SAFETY: the caller's.
    unsafe { std::slice::from_raw_parts(address as *const T, count as usize) }
}
