//! The host's time, for `bench ops --breakdown`.

use crate::device::publish;
use crate::error::{guard, guard_value};
use dml_engine::measure::{self, Stage};
use serde_json::json;
use std::ffi::c_char;
use std::sync::atomic::AtomicU32;

/// A word that is not 0 while some thread measures: callers check it before they enter a stage.
#[unsafe(no_mangle)]
pub extern "C" fn dml_measuring() -> *const AtomicU32 {
    measure::measuring()
}

/// Enters the plugin's code, whose own time counts as unpacking. Returns the token of
/// `dml_measure_leave`.
#[unsafe(no_mangle)]
pub extern "C" fn dml_measure_enter() -> u32 {
    measure::enter(Stage::Unpack).into_token()
}

/// Leaves the plugin's code.
#[unsafe(no_mangle)]
pub extern "C" fn dml_measure_leave(token: u32) {
    measure::leave(token);
}

/// Measures the calling thread from now on.
#[unsafe(no_mangle)]
pub extern "C" fn dml_measure_begin() -> i32 {
    guard(|| {
        measure::begin();
        Ok(())
    })
}

/// The calling thread's time since `dml_measure_begin` as JSON; null if that was not called.
///
/// Keys: `elapsed_ns`, `clock_ns` (the cost of reading the clock at both ends of a stage;
/// subtracted), and `stages`: for each, `ns` without the stages inside it, and how often it was
/// `entered`. `beside` is the work of the submitting threads meanwhile: nanoseconds of `record` and
/// `submit`, and the number of `commands`.
#[unsafe(no_mangle)]
pub extern "C" fn dml_measure_end_json() -> *const c_char {
    guard_value(std::ptr::null(), || {
        let Some(told) = measure::end() else { return Ok(std::ptr::null()) };
        let stage =
            |stage: Stage| json!({ "ns": told.stage_ns[stage as usize], "entered": told.entered[stage as usize] });
        Ok(publish(&json!({
            "elapsed_ns": told.elapsed_ns,
            "clock_ns": told.clock_ns,
            "stages": {
                "outside": stage(Stage::Outside),
                "unpack": stage(Stage::Unpack),
                "shape": stage(Stage::Shape),
                "lookup": stage(Stage::Lookup),
                "allocate": stage(Stage::Allocate),
                "enqueue": stage(Stage::Enqueue),
                "record": stage(Stage::Record),
                "submit": stage(Stage::Submit),
            },
            "beside": {
                "commands": told.background_commands,
                "record": told.background_ns[Stage::Record as usize],
                "submit": told.background_ns[Stage::Submit as usize],
            },
        })))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::ffi::CStr;

    #[test]
    fn a_breakdown_is_json() {
        assert!(dml_measure_end_json().is_null());
        assert_eq!(dml_measure_begin(), 0);
        dml_measure_leave(dml_measure_enter());
        // SAFETY: a published C string.
        let text = unsafe { CStr::from_ptr(dml_measure_end_json()) };
        let told: Value = serde_json::from_slice(text.to_bytes()).expect("JSON");
        assert_eq!(told["stages"]["unpack"]["entered"], 1);
        assert!(told["elapsed_ns"].as_f64() > Some(0.0) && told["clock_ns"].as_f64() > Some(0.0));
    }
}
