//! What the Python package asks the library: its version and its adapters.

use dml_engine::AdapterInfo;
use serde_json::{Value, json};
use std::ffi::{CString, c_char};

/// An adapter, by its index among TensorFlow's devices.
fn description(index: usize, info: &AdapterInfo) -> Value {
    let (major, minor, patch) = info.api_version;
    json!({
        "index": index,
        "name": info.name,
        "vendor": info.vendor,
        "kind": info.kind.name(),
        "driver": info.driver_name,
        "driver_info": info.driver_info,
        "api_version": format!("{major}.{minor}.{patch}"),
        "memory_total": info.memory_total,
    })
}

fn information() -> Value {
    let unsupported = || -> Vec<Value> {
        let all = dml_engine::unsupported_adapters().into_iter();
        all.map(|(name, reason)| json!({ "name": name, "reason": reason })).collect()
    };
    let found = dml_engine::device_count().and_then(|count| {
        (0..count).map(|index| Ok(description(index, dml_engine::adapter_info(index)?))).collect::<Result<Vec<_>, _>>()
    });
    let (devices, error) = match found {
        Ok(devices) => (devices, Value::Null),
        Err(error) => (Vec::new(), json!(error.to_string())),
    };
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "devices": devices,
        "error": error,
        "unsupported": unsupported(),
    })
}

/// The version, the adapters, those that cannot be used, and why there are none, as JSON. Opens no
/// device, and needs no TensorFlow. [`dml_tensorflow_free`] frees the text; null if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn dml_tensorflow_information() -> *mut c_char {
    dml_log::start();
    let text = std::panic::catch_unwind(|| information().to_string()).ok();
    text.and_then(|text| CString::new(text).ok()).map_or(std::ptr::null_mut(), CString::into_raw)
}

/// Frees a text of [`dml_tensorflow_information`].
///
/// # Safety
/// The text is null or from there, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_tensorflow_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { CString::from_raw(text) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_information_is_json_with_all_keys() {
        let text = dml_tensorflow_information();
        // SAFETY: a text of the library.
        let parsed: Value = serde_json::from_slice(unsafe { std::ffi::CStr::from_ptr(text) }.to_bytes()).expect("JSON");
        // SAFETY: as above, once.
        unsafe { dml_tensorflow_free(text) };
        assert_eq!(parsed["version"], env!("CARGO_PKG_VERSION"));
        assert!(parsed["devices"].is_array() && parsed["unsupported"].is_array());
    }
}
