//! Devices.

use crate::abi::Status;
use crate::error::{Failure, guard, guard_value};
use crate::generator::DEFAULT_SEED;
use dml_engine::interface::{ReadRange, WriteRange};
use dml_engine::{AdapterKind, AddressRange, ArgumentBlock, Device, Interface, parameters};
use dml_environment::SOFTWARE;
use dml_kernel::{Builder, DType};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::sync::{Arc, Mutex, PoisonError};

thread_local! {
    /// The last JSON text, which the caller has a pointer to.
    static TEXT: RefCell<CString> = RefCell::default();
}

/// Keeps a JSON text until the calling thread's next one.
pub fn publish(value: &Value) -> *const c_char {
    let text = CString::new(value.to_string()).unwrap_or_default();
    TEXT.with(|kept| {
        kept.replace(text);
        kept.borrow().as_ptr()
    })
}

/// The index as the engine takes it; the engine checks whether there is such a device.
fn index(device: i32) -> Result<usize, Failure> {
    usize::try_from(device)
        .map_err(|_| Failure::new(Status::RuntimeError, format!("invalid dml device index {device}")))
}

/// The device, opened at its first use.
#[inline]
pub fn open(device: i32) -> Result<&'static Arc<Device>, Failure> {
    let index = index(device)?;
    match dml_engine::opened(index) {
        Some(device) => Ok(device),
        None => open_first(index),
    }
}

#[cold]
fn open_first(index: usize) -> Result<&'static Arc<Device>, Failure> {
    dml_engine::set_default_seed(DEFAULT_SEED);
    let device = dml_engine::device(index)?;
    warn_of_software(device);
    Ok(device)
}

/// Warns, once per device, of a device that is no GPU, unless `TORCH_DML_SOFTWARE` is set.
fn warn_of_software(device: &Device) {
    static WARNED: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let (index, info) = (device.index(), device.info());
    if info.kind != AdapterKind::Software || SOFTWARE.get().is_some() {
        return;
    }
    let mut warned = WARNED.lock().unwrap_or_else(PoisonError::into_inner);
    if warned.contains(&index) {
        return; // Another thread opened it at the same time.
    }
    warned.push(index);
    tracing::warn!(
        "device {index} is {}: no GPU, but the processor with a driver between, slower than PyTorch's \"cpu\". `python -m \
         torch_dml doctor` says how to get a driver; TORCH_DML_SOFTWARE=1 silences this",
        info.name
    );
}

/// The number of devices. The error says what is missing: the loader, or a usable adapter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_device_count(count: *mut i32) -> i32 {
    guard(|| {
        dml_log::start();
        let n = dml_engine::device_count()?;
        // SAFETY: the contract's places.
        unsafe { count.write(n as i32) };
        Ok(())
    })
}

/// The description of a device as JSON; null on error. Does not open the device.
///
/// Keys: `name`, `vendor`, `kind` ("discrete", "integrated", "virtual", "software"), `driver`,
/// `driver_info`, `api_version` ("1.3.224"), `memory_total` and `memory_free` (bytes), `f16`,
/// `bf16`, `f64`, `i64` (arithmetic), `matrix` (matrix units), `timestamps` (times of kernels can
/// be measured), `subnormals` (sums and products keep them), `software`, `uuid` (hexadecimal).
#[unsafe(no_mangle)]
pub extern "C" fn dml_device_info_json(device: i32) -> *const c_char {
    guard_value(std::ptr::null(), || {
        let i = index(device)?;
        let info = dml_engine::adapter_info(i)?;
        let caps = &info.capabilities;
        let free = dml_engine::opened(i).map_or(info.memory_total, |d| d.memory_info().0);
        let (major, minor, patch) = info.api_version;
        Ok(publish(&json!({
            "name": info.name,
            "vendor": info.vendor,
            "kind": info.kind.name(),
            "driver": info.driver_name,
            "driver_info": info.driver_info,
            "api_version": format!("{major}.{minor}.{patch}"),
            "memory_total": info.memory_total,
            "memory_free": free,
            "f16": caps.f16_arithmetic,
            "bf16": caps.f16_storage,
            "f64": caps.f64 && caps.i64,
            "i64": true,
            "matrix": caps.matrix,
            "timestamps": caps.timestamp_period_ns > 0.0,
            "subnormals": caps.keeps_subnormals(),
            "software": info.kind == AdapterKind::Software,
            "uuid": info.device_uuid.iter().map(|b| format!("{b:02x}")).collect::<String>(),
        })))
    })
}

/// The adapters that cannot be used, as JSON: `[{"name": ..., "reason": ...}]`.
#[unsafe(no_mangle)]
pub extern "C" fn dml_unsupported_adapters_json() -> *const c_char {
    guard_value(std::ptr::null(), || {
        let all: Vec<Value> = dml_engine::unsupported_adapters()
            .into_iter()
            .map(|(name, reason)| json!({ "name": name, "reason": reason }))
            .collect();
        Ok(publish(&Value::Array(all)))
    })
}

/// The dtypes that a device computes with: bit `n` is the `DmlDType` n.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_device_dtypes(device: i32, mask: *mut u32) -> i32 {
    guard(|| {
        let caps = &dml_engine::adapter_info(index(device)?)?.capabilities;
        let bits = (0..=u8::MAX)
            .filter_map(DType::from_code)
            .filter(|dtype| match dtype {
                // float64 uses 64-bit integers for its bits. Integers of 64 bits alone are emulated
                // if they are missing.
                DType::F64 | DType::C128 => caps.f64 && caps.i64,
                _ => true,
            })
            .fold(0, |bits, dtype| bits | 1 << dtype as u32);
        // SAFETY: the contract's places.
        unsafe { mask.write(bits) };
        Ok(())
    })
}

/// Runs a kernel that computes 1 + 2 and checks the sum.
#[unsafe(no_mangle)]
pub extern "C" fn dml_self_test(device: i32) -> i32 {
    guard(|| {
        let device = open(device)?;
        let block = device.allocate(12)?;
        let sum = add_one_and_two(device, block);
        device.free(block);
        let sum = sum?;
        if sum == 3.0 {
            return Ok(());
        }
        Err(Failure::new(Status::RuntimeError, format!("1 + 2 gave {sum} on {}", device.info().name)))
    })
}

/// Adds two numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SelfTest;

parameters! {
    /// The numbers, and their sum.
    SelfTest as _spec => SelfTestArguments, SelfTestParameters {
        sum: WriteRange = DType::F32,
        terms: ReadRange = DType::F32,
    }
}

fn add_one_and_two(device: &Device, block: u64) -> Result<f32, Failure> {
    let kernel = device.kernel(&SelfTest, || {
        let b = Builder::new("self_test", [1, 1, 1]);
        let SelfTestParameters { sum, terms } = SelfTest.declare(&b);
        sum.store(0, terms.load(0) + terms.load(1));
        b.finish()
    })?;
    let mut terms = [0; 8];
    terms[..4].copy_from_slice(&1.0f32.to_ne_bytes());
    terms[4..].copy_from_slice(&2.0f32.to_ne_bytes());
    device.upload(block + 4, &terms)?;
    let arguments = SelfTestArguments { sum: AddressRange::new(block, 4), terms: AddressRange::new(block + 4, 8) };
    ArgumentBlock::with_spare(|packed| {
        SelfTest.pass(&arguments, packed);
        device.launch(packed.launch(kernel, [1, 1, 1], "self_test")?)
    })?;
    let mut sum = [0; 4];
    device.download(block, &mut sum)?;
    Ok(f32::from_ne_bytes(sum))
}

/// Waits for all work of a device, and returns its errors.
#[unsafe(no_mangle)]
pub extern "C" fn dml_synchronize(device: i32) -> i32 {
    guard(|| {
        let device = open(device)?;
        device.synchronize()?;
        Ok(device.check_faults()?)
    })
}

/// Submits pending work.
#[unsafe(no_mangle)]
pub extern "C" fn dml_flush(device: i32) -> i32 {
    guard(|| Ok(open(device)?.flush()?))
}

/// Whether all work is done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_idle(device: i32, idle: *mut i32) -> i32 {
    guard(|| {
        let done = open(device)?.idle()?;
        // SAFETY: the contract's places.
        unsafe { idle.write(i32::from(done)) };
        Ok(())
    })
}

/// 1 in a child of a process that had started Vulkan: it can use no device.
#[unsafe(no_mangle)]
pub extern "C" fn dml_forked() -> i32 {
    i32::from(dml_engine::forked())
}

/// For tests: the device is lost from now on.
#[unsafe(no_mangle)]
pub extern "C" fn dml_simulate_loss(device: i32) -> i32 {
    guard(|| {
        open(device)?.simulate_loss();
        Ok(())
    })
}

/// From now on every wait for a device calls `check` every 50 ms, on the waiting thread and without
/// a lock of the engine. If the result is not 0, the wait ends with `DML_INTERRUPTED`. A wait of an
/// operator that only enqueues also ends, but the operator is enqueued and succeeds. Null: waits
/// are not interrupted.
#[unsafe(no_mangle)]
pub extern "C" fn dml_set_interrupt_check(check: Option<extern "C" fn() -> i32>) {
    guard(|| {
        dml_engine::set_interrupt_check(check.map(|check| Arc::new(move || check() != 0) as _));
        Ok(())
    });
}

/// From now on messages call the devices CUDA devices.
#[unsafe(no_mangle)]
pub extern "C" fn dml_stand_in_for_cuda() {
    dml_aten::operator::device_type::present_as_cuda();
}

/// Sets PyTorch's version, 2.`minor`: the CPU accepts different arguments in different versions.
#[unsafe(no_mangle)]
pub extern "C" fn dml_set_torch_minor(minor: u32) {
    dml_aten::operator::torch_version::set(minor);
}

/// Before the process ends: waits for all work that drivers have, and saves compiled kernels. Work
/// that no driver has is not run.
#[unsafe(no_mangle)]
pub extern "C" fn dml_shutdown() {
    guard(|| {
        dml_engine::shutdown();
        Ok(())
    });
}

/// Statistics of a device's queue as JSON; null on error. Keys: `commands` (enqueued launches and
/// copies), `fused_launches` (launches that ran as part of a fused kernel), `fused_kernels` (runs
/// of fused kernels), `barriers`, `submits`, `waits`.
#[unsafe(no_mangle)]
pub extern "C" fn dml_queue_stats_json(device: i32) -> *const c_char {
    guard_value(std::ptr::null(), || {
        let stats = open(device)?.queue_stats();
        Ok(publish(&json!({
            "commands": stats.commands,
            "fused_launches": stats.fused_launches,
            "fused_kernels": stats.fused_kernels,
            "barriers": stats.barriers,
            "submits": stats.submits,
            "waits": stats.waits,
        })))
    })
}

/// The cost of kernels in this process as JSON; null on error. Keys: `kernels` (compiled, or found
/// in the cache), `emit_ns`, `compile_ns` (over all threads), `longest_ns`, `wait_ns` (time during
/// which submissions waited for kernels).
#[unsafe(no_mangle)]
pub extern "C" fn dml_kernel_stats_json() -> *const c_char {
    guard_value(std::ptr::null(), || {
        let stats = dml_engine::kernel_stats();
        Ok(publish(&json!({
            "kernels": stats.kernels,
            "emit_ns": stats.emit_ns,
            "compile_ns": stats.compile_ns,
            "longest_ns": stats.longest_ns,
            "wait_ns": stats.wait_ns,
        })))
    })
}

/// The messages of Vulkan's validation layer in this process as JSON: a list, empty without
/// `TORCH_DML_VALIDATION=1`; null on error. Keys: `id` (the rule), `text` (the first message),
/// `count`.
#[unsafe(no_mangle)]
pub extern "C" fn dml_validation_json() -> *const c_char {
    guard_value(std::ptr::null(), || {
        let messages = dml_engine::validation_messages();
        Ok(publish(&messages.iter().map(|m| json!({ "id": m.id, "text": m.text, "count": m.count })).collect()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn parsed(text: *const c_char) -> Value {
        assert!(!text.is_null());
        // SAFETY: published C strings.
        serde_json::from_slice(unsafe { CStr::from_ptr(text) }.to_bytes()).expect("JSON")
    }

    #[test]
    fn a_negative_index_is_refused() {
        assert_eq!(dml_synchronize(-1), Status::RuntimeError as i32);
        assert!(dml_device_info_json(-1).is_null());
    }

    #[test]
    fn every_device_describes_itself_and_adds() {
        let mut count = 0;
        // SAFETY: a valid place.
        if unsafe { dml_device_count(&raw mut count) } != 0 {
            return; // a machine with no Vulkan
        }
        for i in 0..count {
            let info = parsed(dml_device_info_json(i));
            assert!(info["name"].is_string() && info["memory_total"].as_u64() > Some(0), "{info}");
            assert_eq!(info["uuid"].as_str().map(str::len), Some(32));
            let mut mask = 0;
            // SAFETY: a valid place.
            assert_eq!(unsafe { dml_device_dtypes(i, &raw mut mask) }, 0);
            assert!(mask >> DType::F32 as u32 & 1 == 1);
            assert_eq!(dml_self_test(i), 0);
        }
        assert!(parsed(dml_unsupported_adapters_json()).is_array());
    }
}
