//! Synchronisation objects, of which the no-op shim makes one and never answers for.
//!
//! Each is a number that grows: the point of a timeline, or 0 and 1 of a binary one. A submission
//! is carried out before its request returns, so a point that is signalled at all was reached.

use std::collections::HashMap;
use std::ffi::{c_ulong, c_void};
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::drm::{self, slice};

#[derive(Default)]
struct Objects {
    points: HashMap<u32, u64>,
    last: u32,
}

/// All synchronisation objects of the process.
#[derive(Default)]
pub struct SyncObjects {
    objects: Mutex<Objects>,
    changed: Condvar,
}

impl SyncObjects {
    /// Answers a request of DRM; none if it is about something else.
    ///
    /// # Errors
    ///
    /// `ETIME` of a wait that ends by its time.
    ///
    /// # Safety
    ///
    /// The argument is that of the request.
    pub unsafe fn request(&self, request: c_ulong, argument: *mut c_void) -> Option<io::Result<()>> {
        let objects = self;
        // SAFETY: each request's argument is of its type, and arrays are as long as it says.
        unsafe {
            match request {
                drm::SYNCOBJ_CREATE => {
                    let create = &mut *argument.cast::<drm::SyncobjCreate>();
                    create.handle = objects.create(create.flags & drm::CREATE_SIGNALED != 0);
                }
                drm::SYNCOBJ_DESTROY => objects.destroy(*argument.cast()),
                drm::SYNCOBJ_WAIT => {
                    let wait = &mut *argument.cast::<drm::SyncobjWait>();
                    let wanted: Vec<_> = slice::<u32>(wait.handles, wait.count).iter().map(|&it| (it, 1)).collect();
                    match objects.wait(&wanted, wait.flags & drm::WAIT_ALL != 0, wait.timeout) {
                        Some(first) => wait.first_signaled = first,
                        None => return Some(Err(io::Error::from_raw_os_error(libc::ETIME))),
                    }
                }
                drm::SYNCOBJ_TIMELINE_WAIT => {
                    let wait = &mut *argument.cast::<drm::SyncobjTimelineWait>();
                    let handles = slice::<u32>(wait.handles, wait.count).iter().copied();
                    let wanted: Vec<_> = handles.zip(slice::<u64>(wait.points, wait.count).iter().copied()).collect();
                    match objects.wait(&wanted, wait.flags & drm::WAIT_ALL != 0, wait.timeout) {
                        Some(first) => wait.first_signaled = first,
                        None => return Some(Err(io::Error::from_raw_os_error(libc::ETIME))),
                    }
                }
                drm::SYNCOBJ_RESET => {
                    let array = &*argument.cast::<drm::SyncobjArray>();
                    slice::<u32>(array.handles, array.count).iter().for_each(|&handle| objects.reset(handle));
                }
                drm::SYNCOBJ_SIGNAL => {
                    let array = &*argument.cast::<drm::SyncobjArray>();
                    slice::<u32>(array.handles, array.count).iter().for_each(|&handle| objects.signal(handle, 1));
                }
                drm::SYNCOBJ_QUERY => {
                    let array = &*argument.cast::<drm::SyncobjTimelineArray>();
                    for (k, &handle) in slice::<u32>(array.handles, array.count).iter().enumerate() {
                        (array.points as *mut u64).add(k).write(objects.point(handle));
                    }
                }
                drm::SYNCOBJ_TIMELINE_SIGNAL => {
                    let array = &*argument.cast::<drm::SyncobjTimelineArray>();
                    let points = slice::<u64>(array.points, array.count);
                    for (&handle, &point) in slice::<u32>(array.handles, array.count).iter().zip(points) {
                        objects.signal(handle, point);
                    }
                }
                drm::SYNCOBJ_TRANSFER => {
                    let transfer = &*argument.cast::<drm::SyncobjTransfer>();
                    objects.signal(transfer.to, transfer.to_point);
                }
                _ => return None,
            }
        }
        Some(Ok(()))
    }

    fn lock(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new one, by its handle.
    pub fn create(&self, signaled: bool) -> u32 {
        let mut objects = self.lock();
        objects.last += 1;
        let handle = objects.last;
        objects.points.insert(handle, u64::from(signaled));
        handle
    }

    /// Forgets one.
    pub fn destroy(&self, handle: u32) {
        self.lock().points.remove(&handle);
    }

    /// The point that it is at.
    pub fn point(&self, handle: u32) -> u64 {
        self.lock().points.get(&handle).copied().unwrap_or(0)
    }

    /// Back to 0.
    pub fn reset(&self, handle: u32) {
        self.lock().points.insert(handle, 0);
    }

    /// On to a point, 1 where none is given.
    pub fn signal(&self, handle: u32, point: u64) {
        let mut objects = self.lock();
        let now = objects.points.entry(handle).or_default();
        *now = (*now).max(point.max(1));
        self.changed.notify_all();
    }

    /// Waits until all, or any, of the objects are at their points, and returns which is; none if
    /// the time, of the monotonic clock, comes first.
    pub fn wait(&self, wanted: &[(u32, u64)], all: bool, until: i64) -> Option<u32> {
        let mut objects = self.lock();
        loop {
            let reached =
                |&(handle, point): &(u32, u64)| objects.points.get(&handle).copied().unwrap_or(0) >= point.max(1);
            let first = wanted.iter().position(reached);
            if wanted.is_empty() || first.is_some() && (!all || wanted.iter().all(reached)) {
                return Some(first.unwrap_or(0) as u32);
            }
            let left = until.saturating_sub(now());
            if left <= 0 {
                return None;
            }
            // An hour at most, which fits every clock; the loop goes on after it.
            let left = Duration::from_nanos(left as u64).min(Duration::from_secs(3600));
            objects = self.changed.wait_timeout(objects, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Nanoseconds of the monotonic clock, which the driver's times are of.
pub fn now() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the value that it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_waited_for() {
        let objects = SyncObjects::default();
        let (a, b) = (objects.create(false), objects.create(true));
        assert_eq!((objects.point(a), objects.point(b)), (0, 1));
        assert_eq!(objects.wait(&[(a, 0), (b, 0)], false, 0), Some(1));
        assert_eq!(objects.wait(&[(a, 0), (b, 0)], true, 0), None);
        objects.signal(a, 5);
        objects.signal(a, 3);
        assert_eq!(objects.wait(&[(a, 5), (b, 0)], true, 0), Some(0));
        assert_eq!(objects.wait(&[(a, 6)], true, now() + 1_000_000), None);
        objects.reset(b);
        assert_eq!(objects.wait(&[(b, 0)], true, 0), None);
        std::thread::scope(|scope| {
            scope.spawn(|| objects.signal(b, 0));
            assert_eq!(objects.wait(&[(b, 0)], true, i64::MAX), Some(0));
        });
    }
}
