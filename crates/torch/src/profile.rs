//! Activities of the devices, for PyTorch's profiler.

use crate::abi::{DmlActivity, work};
use crate::error::guard;
use dml_engine::{Activity, Work};
use std::ffi::{CString, c_void};

/// Starts to profile every device, including devices that are opened later. Fails for devices
/// without timestamps.
#[unsafe(no_mangle)]
pub extern "C" fn dml_profile_start() -> i32 {
    guard(|| Ok(dml_engine::start_profile()?))
}

/// Waits for every device, ends the profile, and passes each activity to `each`, for each device in
/// order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_profile_stop(
    context: *mut c_void,
    each: unsafe extern "C" fn(context: *mut c_void, activity: *const DmlActivity),
) -> i32 {
    guard(|| {
        for activity in dml_engine::stop_profile() {
            // SAFETY: the contract's host: `each` may be called with `context`. The activity and
            // its texts live through the call, and it copies what it keeps.
            with_activity(&activity, |activity| unsafe { each(context, activity) });
        }
        Ok(())
    })
}

/// From now on the calling thread's commands belong to this id; 0: to none.
#[unsafe(no_mangle)]
pub extern "C" fn dml_profile_correlate(id: u64) {
    dml_engine::set_correlation(id);
}

/// Calls `take` with an activity whose pointers are valid during the call.
fn with_activity(activity: &Activity, take: impl FnOnce(&DmlActivity)) {
    let text = |s: &str| CString::new(s).unwrap_or_default();
    let (name, op) = (text(activity.name()), text(activity.operator));
    let (work, groups, group_size, launches) = match &activity.work {
        Work::Kernel(kernel, groups) => (work::KERNEL, *groups, kernel.workgroup_size(), 1),
        Work::Replay(launches) => (work::REPLAY, [0; 3], [0; 3], *launches),
        Work::Upload => (work::UPLOAD, [0; 3], [0; 3], 1),
        Work::Download => (work::DOWNLOAD, [0; 3], [0; 3], 1),
    };
    take(&DmlActivity {
        name: name.as_ptr(),
        op: op.as_ptr(),
        correlation: activity.correlation,
        enqueued: activity.enqueued_ns.map(|t| t as i64),
        ran: activity.ran_ns.map(|t| t as i64),
        bytes_read: activity.bytes_read,
        bytes_written: activity.bytes_written,
        groups,
        group_size,
        launches,
        device: activity.device as i32,
        work,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn an_activity_keeps_its_fields() {
        let activity = Activity {
            device: 2,
            work: Work::Upload,
            operator: "aten::copy_",
            bytes_read: 1,
            bytes_written: 4,
            correlation: 9,
            enqueued_ns: [10, 20],
            ran_ns: [30, 40],
        };
        with_activity(&activity, |a| {
            // SAFETY: C strings during this call.
            let (name, op) = unsafe { (CStr::from_ptr(a.name), CStr::from_ptr(a.op)) };
            assert_eq!((name, op), (c"upload", c"aten::copy_"));
            assert_eq!((a.device, a.work, a.correlation), (2, work::UPLOAD, 9));
            assert_eq!((a.enqueued, a.ran), ([10, 20], [30, 40]));
            assert_eq!((a.bytes_read, a.bytes_written), (1, 4));
        });
        with_activity(&Activity { work: Work::Replay(7), operator: "graph", ..activity }, |a| {
            // SAFETY: a C string during this call.
            assert_eq!(unsafe { CStr::from_ptr(a.name) }, c"graph replay");
            assert_eq!((a.work, a.launches), (work::REPLAY, 7));
        });
    }
}
