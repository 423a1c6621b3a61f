//! Copies between the host and the device, and on the device.

use super::raw::{D, Memory, S, Status};
use super::streams::{Stream, engine_device};
use crate::c_api::status::report;
use crate::error::Result;
use crate::settings::Settings;
use dml_compute::context::Phase;
use dml_compute::movement::copy;
use dml_compute::{Context, Environment, Location, Policy, Scalar, View};
use dml_engine::{AddressRange, Device, FaultKind, KernelRef};
use dml_kernel::DType;
use smallvec::smallvec;
use std::ffi::c_void;
use std::sync::Arc;

/// The environment of computations without scratch memory.
struct NoScratch;

impl Environment for NoScratch {
    fn allocate(&self, _: u8, _: DType, _: &[i64], _: &[i64]) -> dml_compute::Result<View> {
        Err(dml_compute::Error::Invalid("a copy needs no scratch memory".to_owned()))
    }

    fn policy(&self) -> &dyn Policy {
        &Settings
    }

    fn probe(&self, _: &Device, _: &KernelRef, _: &[AddressRange]) -> dml_compute::Result<()> {
        Ok(())
    }
}

fn context(device: &Arc<Device>) -> Context<'_> {
    Context {
        device,
        environment: &NoScratch,
        name: "copy of TensorFlow",
        index_fault: FaultKind::RuntimeIndex,
        phase: Phase::Run,
    }
}

/// Device memory as a row of elements.
fn row(device: &Device, address: u64, bytes: u64, dtype: DType) -> View {
    let storage = AddressRange { start: address, end: address + bytes };
    let location = Location::Device(device.index() as u8);
    View::over(storage, location, dtype, smallvec![(bytes / dtype.bytes()) as i64], smallvec![1])
}

/// Copies to the host. Into pinned memory it returns at once, unless it shall `wait`.
///
/// # Safety
/// `target` has place for `size` bytes that nobody else uses before the copy is done.
unsafe fn to_host(device: &Arc<Device>, target: *mut c_void, source: u64, size: u64, wait: bool) -> Result<()> {
    if size == 0 {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    let target = unsafe { std::slice::from_raw_parts_mut(target.cast::<u8>(), size as usize) };
    if !device.download_pinned(source, target, wait)? {
        device.download(source, target)?;
    }
    Ok(())
}

/// Copies to the device. From pinned memory it returns at once, unless it shall `wait`.
///
/// # Safety
/// `source` has `size` bytes that nobody writes to before the copy is done.
unsafe fn to_device(device: &Arc<Device>, target: u64, source: *const c_void, size: u64, wait: bool) -> Result<()> {
    if size == 0 {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    let source = unsafe { std::slice::from_raw_parts(source.cast::<u8>(), size as usize) };
    if !device.upload_pinned(target, source, wait)? {
        device.upload(target, source)?;
    }
    Ok(())
}

fn on_device(device: &Arc<Device>, target: u64, source: u64, size: u64) -> Result<()> {
    let view = |address| row(device, address, size, DType::U8);
    Ok(copy::device_copy(&context(device), &view(source), &view(target))?)
}

fn fill(device: &Arc<Device>, target: u64, size: u64, dtype: DType, pattern: u32) -> Result<()> {
    let view = row(device, target, size, dtype);
    Ok(copy::fill_with(&context(device), &view, Scalar::Int(i64::from(pattern)))?)
}

pub unsafe extern "C" fn memcpy_dtoh(_: D, stream: S, to: *mut c_void, from: *const Memory, size: u64, status: Status) {
    // SAFETY: TensorFlow's stream, memory and status.
    unsafe { report(status, || to_host(Stream::device(stream), to, (*from).opaque as u64, size, false)) };
}

pub unsafe extern "C" fn memcpy_htod(_: D, stream: S, to: *mut Memory, from: *const c_void, size: u64, status: Status) {
    // SAFETY: TensorFlow's stream, memory and status.
    unsafe { report(status, || to_device(Stream::device(stream), (*to).opaque as u64, from, size, false)) };
}

pub unsafe extern "C" fn memcpy_dtod(_: D, stream: S, to: *mut Memory, from: *const Memory, size: u64, status: Status) {
    // SAFETY: TensorFlow's stream, memory and status.
    unsafe {
        report(status, || on_device(Stream::device(stream), (*to).opaque as u64, (*from).opaque as u64, size));
    }
}

pub unsafe extern "C" fn sync_memcpy_dtoh(device: D, to: *mut c_void, from: *const Memory, size: u64, status: Status) {
    // SAFETY: TensorFlow's device, memory and status.
    unsafe { report(status, || to_host(engine_device(device)?, to, (*from).opaque as u64, size, true)) };
}

pub unsafe extern "C" fn sync_memcpy_htod(device: D, to: *mut Memory, from: *const c_void, size: u64, status: Status) {
    // SAFETY: TensorFlow's device, memory and status.
    unsafe { report(status, || to_device(engine_device(device)?, (*to).opaque as u64, from, size, true)) };
}

pub unsafe extern "C" fn sync_memcpy_dtod(device: D, to: *mut Memory, from: *const Memory, size: u64, status: Status) {
    // SAFETY: TensorFlow's device, memory and status.
    unsafe {
        report(status, || {
            let device = engine_device(device)?;
            on_device(device, (*to).opaque as u64, (*from).opaque as u64, size)?;
            Ok(device.synchronize()?)
        });
    }
}

pub unsafe extern "C" fn mem_zero(_: D, stream: S, at: *mut Memory, size: u64, status: Status) {
    // SAFETY: TensorFlow's stream, memory and status.
    unsafe { report(status, || fill(Stream::device(stream), (*at).opaque as u64, size, DType::U8, 0)) };
}

pub unsafe extern "C" fn memset(_: D, stream: S, at: *mut Memory, pattern: u8, size: u64, status: Status) {
    // SAFETY: TensorFlow's stream, memory and status.
    unsafe { report(status, || fill(Stream::device(stream), (*at).opaque as u64, size, DType::U8, pattern.into())) };
}

pub unsafe extern "C" fn memset32(_: D, stream: S, at: *mut Memory, pattern: u32, size: u64, status: Status) {
    // SAFETY: TensorFlow's stream, memory and status.
    unsafe { report(status, || fill(Stream::device(stream), (*at).opaque as u64, size, DType::I32, pattern)) };
}
