//! The devices' number and descriptions.

use super::raw::{CreateDevice, CreateDeviceFunctions, Device, DeviceFunctions, P, Status};
use crate::c_api::functions::loaded;
use crate::c_api::status::report;
use crate::error::Result;
use dml_engine::AdapterInfo;
use std::ffi::{CString, c_char, c_int};

/// The number of devices; 0, with a line on stderr, where none can be used.
fn count() -> usize {
    if loaded().is_err() {
        return 0;
    }
    dml_engine::device_count().unwrap_or_else(|error| {
        eprintln!("tensorflow-dml: no devices: {error}");
        0
    })
}

pub unsafe extern "C" fn get_device_count(_: P, number: *mut c_int, status: Status) {
    // SAFETY: TensorFlow's place for a number, and its status.
    unsafe {
        number.write(count() as c_int);
        if loaded().is_ok() {
            report(status, || Ok(()));
        }
    }
}

/// A text that lives until [`destroy_device`].
fn text(text: String) -> *const c_char {
    CString::new(text).unwrap_or_default().into_raw()
}

/// What TensorFlow shows of an adapter.
fn describe(ordinal: i32) -> Result<&'static AdapterInfo> {
    Ok(dml_engine::adapter_info(ordinal as usize)?)
}

pub unsafe extern "C" fn create_device(_: P, parameters: *mut CreateDevice, status: Status) {
    // SAFETY: TensorFlow's structures, during its call, and its status.
    unsafe {
        report(status, || {
            let ordinal = (*parameters).ordinal;
            let info = describe(ordinal)?;
            let device = &mut *(*parameters).device;
            device.ordinal = ordinal;
            device.hardware_name = text(info.name.clone());
            device.device_vendor = text(info.vendor.clone());
            device.pci_bus_id = text(format!("{:04x}:{:04x}", info.vendor_id, info.device_id));
            Ok(())
        });
    }
}

pub unsafe extern "C" fn destroy_device(_: P, device: *mut Device) {
    // SAFETY: TensorFlow's structure, which `create_device` has filled.
    unsafe {
        for text in [(*device).hardware_name, (*device).device_vendor, (*device).pci_bus_id] {
            if !text.is_null() {
                drop(CString::from_raw(text.cast_mut()));
            }
        }
    }
}

pub unsafe extern "C" fn create_device_fns(_: P, parameters: *mut CreateDeviceFunctions, status: Status) {
    // SAFETY: TensorFlow's structures, during its call, and its status.
    unsafe {
        (*parameters).device_fns.write(DeviceFunctions {
            struct_size: size_of::<DeviceFunctions>(),
            ext: std::ptr::null_mut(),
            get_numa_node: None,
            get_memory_bandwidth: None,
            get_gflops: None,
        });
        report(status, || Ok(()));
    }
}

pub unsafe extern "C" fn destroy_device_fns(_: P, _: *mut DeviceFunctions) {}
