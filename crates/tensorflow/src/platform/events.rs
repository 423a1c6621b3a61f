//! Events, which TensorFlow asks again and again whether they are reached, and timers.

use super::raw::{D, E, P, S, Status, T, TimerFunctions, event_status};
use super::streams::Stream;
use crate::c_api::status::{guarded, report};
use crate::error::Result;
use dml_engine::Event;
use std::sync::{Mutex, PoisonError};

/// What TensorFlow's events point to: a place of the queue, once it is recorded.
type Recorded = Mutex<Option<Event>>;

/// What TensorFlow's timers point to: their start and their end.
type Timer = Mutex<[Option<Event>; 2]>;

/// The event as it was last recorded.
///
/// # Safety
/// `event` comes from [`create_event`] and is not destroyed.
unsafe fn recorded(event: E) -> Option<Event> {
    // SAFETY: the caller's promise.
    unsafe { &*event.cast::<Recorded>() }.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

pub unsafe extern "C" fn create_event(_: D, event: *mut E, status: Status) {
    // SAFETY: TensorFlow's place for an event, and its status.
    unsafe {
        event.write(Box::into_raw(Box::<Recorded>::default()).cast());
        report(status, || Ok(()));
    }
}

pub unsafe extern "C" fn destroy_event(_: D, event: E) {
    // SAFETY: from `create_event`, and destroyed once.
    drop(unsafe { Box::from_raw(event.cast::<Recorded>()) });
}

pub unsafe extern "C" fn get_event_status(_: D, event: E) -> i32 {
    let reached = guarded(|| {
        // SAFETY: TensorFlow's event.
        match unsafe { recorded(event) } {
            Some(event) => Ok(event.query()?),
            None => Ok(true),
        }
    });
    match reached {
        Ok(true) => event_status::COMPLETE,
        Ok(false) => event_status::PENDING,
        Err(error) => {
            tracing::error!("an event is not reached: {error}");
            event_status::ERROR
        }
    }
}

pub unsafe extern "C" fn record_event(_: D, stream: S, event: E, status: Status) {
    // SAFETY: TensorFlow's stream, event and status.
    unsafe {
        report(status, || {
            let now = Stream::device(stream).record_event(false)?;
            *(*event.cast::<Recorded>()).lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
            Ok(())
        });
    }
}

/// Nothing to do on the event's own queue; an event of another device is waited for.
pub unsafe extern "C" fn wait_for_event(_: D, stream: S, event: E, status: Status) {
    // SAFETY: TensorFlow's stream, event and status.
    unsafe {
        report(status, || match recorded(event) {
            Some(event) if event.device_index() != Stream::device(stream).index() => Ok(event.wait()?),
            _ => Ok(()),
        });
    }
}

pub unsafe extern "C" fn block_host_for_event(_: D, event: E, status: Status) {
    // SAFETY: TensorFlow's event and status.
    unsafe {
        report(status, || match recorded(event) {
            Some(event) => Ok(event.wait()?),
            None => Ok(()),
        });
    }
}

pub unsafe extern "C" fn create_timer(_: D, timer: *mut T, status: Status) {
    // SAFETY: TensorFlow's place for a timer, and its status.
    unsafe {
        timer.write(Box::into_raw(Box::<Timer>::default()).cast());
        report(status, || Ok(()));
    }
}

pub unsafe extern "C" fn destroy_timer(_: D, timer: T) {
    // SAFETY: from `create_timer`, and destroyed once.
    drop(unsafe { Box::from_raw(timer.cast::<Timer>()) });
}

/// Records the start or the end of a timer.
///
/// # Safety
/// TensorFlow's stream and timer.
unsafe fn record_time(stream: S, timer: T, which: usize) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        let now = Stream::device(stream).record_event(true)?;
        (*timer.cast::<Timer>()).lock().unwrap_or_else(PoisonError::into_inner)[which] = Some(now);
    }
    Ok(())
}

pub unsafe extern "C" fn start_timer(_: D, stream: S, timer: T, status: Status) {
    // SAFETY: TensorFlow's stream, timer and status.
    unsafe { report(status, || record_time(stream, timer, 0)) };
}

pub unsafe extern "C" fn stop_timer(_: D, stream: S, timer: T, status: Status) {
    // SAFETY: TensorFlow's stream, timer and status.
    unsafe { report(status, || record_time(stream, timer, 1)) };
}

unsafe extern "C" fn nanoseconds(timer: T) -> u64 {
    // SAFETY: TensorFlow's timer.
    let times = unsafe { &*timer.cast::<Timer>() }.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let elapsed = guarded(|| match &times {
        [Some(start), Some(end)] => Ok(start.elapsed_ms(end)?),
        _ => Ok(0.0),
    });
    (elapsed.unwrap_or(0.0) * 1e6) as u64
}

pub unsafe extern "C" fn create_timer_fns(_: P, timer: *mut TimerFunctions, status: Status) {
    // SAFETY: TensorFlow's structure and status.
    unsafe {
        (*timer).nanoseconds = nanoseconds;
        report(status, || Ok(()));
    }
}

pub unsafe extern "C" fn destroy_timer_fns(_: P, _: *mut TimerFunctions) {}
