//! Kernels of one's own. A text is one kernel of the engine's language,
//! `kernel double [64, 1, 1] { .. }`: its reference is the rustdoc of `dml_kernel::text`, an
//! example is `examples/own_kernel.py`.

use crate::abi::{DmlLaunch, DmlRange, Status};
use crate::convert::slice;
use crate::device::{open, publish};
use crate::error::{Failure, guard, guard_value};
use crate::handle::{self, Handled};
use dml_engine::{AddressRange, ArgumentBlock, Device, FaultKind, KernelRef, fault_id};
use dml_kernel::ir::{Inst, Kernel, Param, ParamKind, PointerBase, param_offsets};
use serde_json::{Value, json};
use std::ffi::c_char;
use std::sync::{Arc, OnceLock};

/// What messages and profiles call a launch.
const OPERATOR: &str = "torch_dml::kernel";

/// What an error calls a compiled graph.
const COMPILED: &str = "a compiled graph";

/// A kernel of a device, and what it was written as.
pub struct TextKernel {
    device: usize,
    source: Arc<Kernel>,
    compiled: KernelRef,
}

impl Handled for TextKernel {}

fn wrong(what: impl Into<String>) -> Failure {
    Failure::new(Status::ValueError, what)
}

impl TextKernel {
    /// The kernel of a text. The same kernel is compiled once, however often it is asked for and
    /// however its text is laid out: it is its own key.
    fn new(device: &Device, text: &str) -> Result<Self, Failure> {
        let source = dml_compute::text::kernels::kernel(text).map_err(|error| wrong(error.to_string()))?;
        let addresses = source.values.iter().any(|value| matches!(value.inst, Inst::Address(_)))
            || source.pointers.iter().any(|pointer| matches!(pointer.base, PointerBase::Address(_)))
            || source.params.iter().any(|param| param.kind == ParamKind::Words);
        if addresses {
            return Err(wrong("a kernel has its tensors as parameters, and no addresses as values"));
        }
        let source = Arc::new(source);
        let compiled = device.kernel(&source, || Kernel::clone(&source))?.clone();
        Ok(Self { device: device.index(), source, compiled })
    }

    /// Enqueues a run whose parameters and memory are what the kernel takes.
    fn launch(&self, device: &Device, params: &[u8], groups: [u32; 3], memory: &Memory) -> Result<(), Failure> {
        let name = &self.source.name;
        if device.index() != self.device {
            return Err(wrong(format!("kernel {name} is one of device {}, not of {}", self.device, device.index())));
        }
        let (offsets, bytes) = param_offsets(&self.source.params);
        if params.len() != bytes as usize {
            return Err(wrong(format!("kernel {name} takes {bytes} bytes of parameters, not {}", params.len())));
        }
        ArgumentBlock::with_spare(|block| {
            block.begin(device.placeholder_address());
            memory.reads.iter().for_each(|&range| block.reads(range));
            memory.writes.iter().for_each(|&range| block.writes(range));
            for (param, &offset) in self.source.params.iter().zip(&offsets) {
                pack(param, &params[offset as usize..], memory, block)
                    .map_err(|what| wrong(format!("kernel {name}: {what}")))?;
            }
            Ok(device.launch(block.launch(&self.compiled, groups, OPERATOR)?)?)
        })
    }

    /// Enqueues a run with a value for each parameter.
    fn launch_values(&self, device: &Device, values: &[u64], groups: [u32; 3]) -> Result<(), Failure> {
        let (name, params) = (&self.source.name, &self.source.params);
        if device.index() != self.device || values.len() != params.len() {
            return Err(wrong(format!(
                "kernel {name} is one of device {} with {} parameters, not of {} with {}",
                self.device,
                params.len(),
                device.index(),
                values.len()
            )));
        }
        ArgumentBlock::with_spare(|block| {
            block.begin(device.placeholder_address());
            for (param, &value) in params.iter().zip(values) {
                match param.kind {
                    ParamKind::Pointer { dtype, writable, .. } => {
                        if value != 0 {
                            if value == device.fault_address() {
                                block.address(value);
                                continue;
                            }
                            let used = device.block(value).filter(|_| value.is_multiple_of(dtype.bytes()));
                            let used = used.ok_or_else(|| {
                                wrong(format!("kernel {name}: {} is {value:#x}, which is no memory for it", param.name))
                            })?;
                            if writable { block.writes(used.range) } else { block.reads(used.range) }
                        }
                        block.memory(value);
                    }
                    kind if kind.bytes() == 8 => block.scalar(value.to_ne_bytes()),
                    _ => block.scalar((value as u32).to_ne_bytes()),
                }
            }
            Ok(device.launch(block.launch(&self.compiled, groups, OPERATOR)?)?)
        })
    }

    fn interface(&self) -> Value {
        let (offsets, bytes) = param_offsets(&self.source.params);
        let params = self.source.params.iter().zip(&offsets).map(|(param, offset)| {
            let (kind, dtype) = match param.kind {
                ParamKind::Pointer { dtype, writable: true, .. } => ("output", dtype.short_name()),
                ParamKind::Pointer { dtype, .. } => ("input", dtype.short_name()),
                ParamKind::Scalar(scalar) => ("param", scalar.name()),
                ParamKind::Words => ("param", "words"),
            };
            json!({ "name": param.name, "kind": kind, "dtype": dtype, "offset": offset })
        });
        json!({
            "name": self.source.name,
            "workgroup": self.source.workgroup_size,
            "bytes": bytes,
            "params": params.collect::<Value>(),
        })
    }
}

/// The memory that a launch names.
struct Memory {
    reads: Vec<AddressRange>,
    writes: Vec<AddressRange>,
}

impl Memory {
    /// Whether a parameter may be this address: of an output, one that may be written.
    fn holds(&self, address: u64, writable: bool) -> bool {
        let inside = |range: &AddressRange| (range.start..range.end).contains(&address);
        self.writes.iter().any(inside) || !writable && self.reads.iter().any(inside)
    }
}

/// Packs a parameter, which the bytes given begin with. An address must be in the launch's memory.
fn pack(param: &Param, given: &[u8], memory: &Memory, block: &mut ArgumentBlock) -> Result<(), String> {
    match (param.kind, given.first_chunk::<8>(), given.first_chunk::<4>()) {
        (ParamKind::Pointer { dtype, writable, .. }, Some(&bytes), _) => {
            let address = u64::from_ne_bytes(bytes);
            if address != 0 && !memory.holds(address, writable) {
                let what = if writable { "writes" } else { "reads" };
                return Err(format!("{} is {address:#x}, which the launch {what} nothing of", param.name));
            }
            if !address.is_multiple_of(dtype.bytes()) {
                return Err(format!("{} is {address:#x}, which is not aligned to {}", param.name, dtype.short_name()));
            }
            block.memory(address);
        }
        (kind, Some(&bytes), _) if kind.bytes() == 8 => block.scalar(bytes),
        (_, _, Some(&bytes)) => block.scalar(bytes),
        _ => return Err(format!("{} is missing", param.name)),
    }
    Ok(())
}

/// Bytes that the caller names, which must be memory in use of the device.
///
/// # Safety
/// As [`slice()`].
unsafe fn ranges(device: &Device, ranges: *const DmlRange, len: usize) -> Result<Vec<AddressRange>, Failure> {
    // SAFETY: the caller's promise.
    let ranges = unsafe { slice(ranges, len) }.iter().filter(|range| range.bytes > 0);
    let checked = ranges.map(|&DmlRange { address, bytes }| {
        let range = address.checked_add(bytes).map(|end| AddressRange { start: address, end });
        match (device.block(address), range) {
            (Some(block), Some(range)) if block.range.contains(range) => Ok(range),
            _ => Err(wrong(format!("{bytes} bytes at {address:#x} are not memory of this device"))),
        }
    });
    checked.collect()
}

/// # Safety
/// `kernel` is 0, or from [`dml_kernel_from_text`] and not freed during `'a`.
unsafe fn kernel_of<'a>(kernel: u64) -> Result<&'a TextKernel, Failure> {
    // SAFETY: the caller's promise.
    unsafe { handle::get(kernel) }.ok_or_else(|| wrong("there is no kernel"))
}

/// A kernel of a device, from `length` bytes of text. A text that is no kernel is a
/// `DML_VALUE_ERROR` whose message begins with line and column, "3:15: "; a kernel that needs a
/// feature that the adapter lacks is a `DML_NOT_IMPLEMENTED`. Equal kernels are compiled once, in
/// the background, however their texts are laid out.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_kernel_from_text(
    device: i32,
    text: *const c_char,
    length: usize,
    kernel: *mut u64,
) -> i32 {
    guard(|| {
        // SAFETY: the contract's arrays.
        let text = std::str::from_utf8(unsafe { slice(text.cast::<u8>(), length) });
        let text = text.map_err(|e| wrong(format!("byte {} of a kernel's text is not UTF-8", e.valid_up_to())))?;
        let made = TextKernel::new(open(device)?, text)?;
        // SAFETY: the contract's places.
        unsafe { kernel.write(handle::new(made)) };
        Ok(())
    })
}

/// Drops a handle of a kernel. Launches that are enqueued still run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_kernel_free(kernel: u64) {
    // SAFETY: the contract's handles.
    guard(|| unsafe { handle::free::<TextKernel>(kernel) });
}

/// A kernel's interface as JSON; null on error. Keys: `name`, `workgroup` (invocations in each
/// dimension), `bytes` (of the parameter block), `params`: of each, in order, `name`, `kind`
/// ("input", "output" or "param"), `dtype` ("f32"), `offset` in the block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_kernel_interface_json(kernel: u64) -> *const c_char {
    guard_value(std::ptr::null(), || {
        // SAFETY: the contract's handles.
        Ok(publish(&unsafe { kernel_of(kernel)? }.interface()))
    })
}

/// Enqueues a run of a kernel, in order with all other work, or captures it.
///
/// Checked: each range is memory in use of the device; the address of an output is in what may be
/// written, that of an input in what may be read or written; addresses are aligned to their
/// elements; the adapter runs so many workgroups. Not checked: the indices that the kernel
/// computes. A kernel that leaves its ranges reads or overwrites other tensors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_launch(device: i32, kernel: u64, launch: *const DmlLaunch) -> i32 {
    guard(|| {
        let device = open(device)?;
        // SAFETY: the contract's arrays: one launch, and those that it names; and its handles.
        let (kernel, launch, params, memory) = unsafe {
            let launch = launch.read();
            let params = slice(launch.params.cast::<u8>(), launch.params_bytes);
            let reads = ranges(device, launch.reads, launch.reads_count)?;
            let writes = ranges(device, launch.writes, launch.writes_count)?;
            (kernel_of(kernel)?, launch, params, Memory { reads, writes })
        };
        kernel.launch(device, params, launch.groups, &memory)
    })
}

/// Enqueues a run of a kernel whose arguments have been checked, or captures it: what compiled
/// programs call. There are `count` values, one for each parameter: the address of a tensor's first
/// element, or 0 of an empty tensor, or that of [`dml_index_fault`], and the bits of a number in
/// the low bytes.
///
/// A tensor's allocation counts as read or written in whole. Checked: addresses are in allocations
/// in use of the device, and aligned to their elements. Not checked: the indices that the kernel
/// computes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_launch_values(
    device: i32,
    kernel: u64,
    values: *const u64,
    count: usize,
    groups: *const u32,
) -> i32 {
    guard(|| {
        let device = open(device)?;
        // SAFETY: the contract's arrays, of which that of groups has three numbers, and handles.
        let (kernel, values, groups) =
            unsafe { (kernel_of(kernel)?, slice(values, count), groups.cast::<[u32; 3]>().read_unaligned()) };
        kernel.launch_values(device, values, groups)
    })
}

/// Where a kernel that the calling thread launches reports an index out of range, as elements of
/// u32, and the number to report for the error. The first invocation that exchanges element 0 from
/// 0 to 1 writes the others: 1 the number, 2 and 3 the index as i64, 4 and 5 the size, 6 the
/// dimension. The next launch or synchronisation raises an `IndexError`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_index_fault(device: i32, address: *mut u64, number: *mut u32) -> i32 {
    static NUMBER: OnceLock<u32> = OnceLock::new();
    guard(|| {
        let device = open(device)?;
        // SAFETY: the contract's places.
        unsafe {
            address.write(device.fault_address());
            number.write(*NUMBER.get_or_init(|| fault_id(COMPILED, FaultKind::Index)));
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    const DOUBLE: &str = "kernel double [4, 1, 1] {
        output @y: f32  input @x: f32  param %n: u32
        %first: u32 = mul group.x, 4
        %i: u32 = add %first, local.x
        %inside: bool = lt %i, %n
        if %inside {
            %number: f32 = load @x[%i]
            %twice: f32 = mul %number, 2.0
            store @y[%i], %twice
        }
    }";

    fn parsed(text: &str) -> Result<u64, String> {
        let mut kernel = 0;
        // SAFETY: a text with its length, and a place.
        let status = unsafe { dml_kernel_from_text(0, text.as_ptr().cast(), text.len(), &raw mut kernel) };
        if status == 0 { Ok(kernel) } else { Err(last()) }
    }

    fn last() -> String {
        // SAFETY: a C string that lives until the next failed call.
        unsafe { CStr::from_ptr(crate::error::dml_last_error()) }.to_string_lossy().into_owned()
    }

    fn launch(kernel: u64, params: &[u8], reads: &[DmlRange], writes: &[DmlRange]) -> Result<(), String> {
        let launch = DmlLaunch {
            params: params.as_ptr().cast(),
            params_bytes: params.len(),
            reads: reads.as_ptr(),
            reads_count: reads.len(),
            writes: writes.as_ptr(),
            writes_count: writes.len(),
            groups: [3, 1, 1],
        };
        // SAFETY: a launch whose arrays have their lengths, and a handle of a kernel.
        let status = unsafe { dml_launch(0, kernel, &raw const launch) };
        if status == 0 { Ok(()) } else { Err(last()) }
    }

    #[test]
    fn a_kernel_of_ones_own_runs_and_what_does_not_fit_it_is_refused() {
        let Ok(device) = open(0) else { return }; // a machine with no Vulkan
        let kernel = parsed(DOUBLE).expect("a kernel");
        // SAFETY: a handle of a kernel, and a C string that lives until the thread's next.
        let text = unsafe { CStr::from_ptr(dml_kernel_interface_json(kernel)) }.to_string_lossy().into_owned();
        let interface: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((&interface["bytes"], &interface["params"][2]["offset"]), (&json!(20), &json!(16)));
        assert_eq!(
            (&interface["params"][0]["kind"], &interface["params"][1]["dtype"]),
            (&json!("output"), &json!("f32"))
        );

        let x = device.allocate(40).expect("memory");
        let y = device.allocate(40).expect("memory");
        let numbers: Vec<u8> = (0..10).flat_map(|i| (i as f32).to_ne_bytes()).collect();
        device.upload(x, &numbers).expect("uploaded");
        let params = |y: u64, x: u64| [&y.to_ne_bytes()[..], &x.to_ne_bytes(), &10u32.to_ne_bytes()].concat();
        let range = |address| [DmlRange { address, bytes: 40 }];
        assert_eq!(launch(kernel, &params(y, x), &range(x), &range(y)), Ok(()));
        let mut result = [0; 40];
        device.download(y, &mut result).expect("downloaded");
        assert_eq!(result[36..], 18f32.to_ne_bytes());

        let of_values = |values: &[u64]| {
            // SAFETY: arrays with their lengths, and a handle of a kernel.
            match unsafe { dml_launch_values(0, kernel, values.as_ptr(), values.len(), [3, 1, 1].as_ptr()) } {
                0 => Ok(()),
                _ => Err(last()),
            }
        };
        assert_eq!(of_values(&[x, y, 10]), Ok(()));
        device.download(x, &mut result).expect("downloaded");
        assert_eq!(result[36..], 36f32.to_ne_bytes());
        assert!(of_values(&[x, y]).expect_err("refused").contains("with 3 parameters"));
        assert!(of_values(&[x, 16, 10]).expect_err("refused").contains("x is 0x10"));
        assert!(of_values(&[x + 2, y, 10]).expect_err("refused").contains("no memory for it"));
        device.upload(x, &numbers).expect("uploaded");

        let error = |result: Result<(), String>| result.expect_err("refused");
        assert!(error(launch(kernel, &params(y, x)[..19], &range(x), &range(y))).contains("takes 20 bytes"));
        assert!(error(launch(kernel, &params(x, x), &range(x), &range(y))).contains("y is 0x"));
        assert!(error(launch(kernel, &params(y, y + 80), &range(x), &range(y))).contains("x is 0x"));
        assert!(error(launch(kernel, &params(y + 2, x), &range(x), &range(y))).contains("not aligned"));
        for bytes in [1 << 40, u64::MAX] {
            let wide = [DmlRange { address: x, bytes }];
            assert!(error(launch(kernel, &params(y, x), &wide, &range(y))).contains("not memory of this device"));
        }
        assert!(error(launch(0, &params(y, x), &range(x), &range(y))).contains("no kernel"));
        assert!(parsed("kernel k [1, 1, 1] { %a: u32 = add 1, %b }").expect_err("refused").starts_with("1:39: "));
        assert!(parsed("kernel k [1, 1, 1] { param %a: words }").expect_err("refused").contains("no addresses"));
        device.free(x);
        device.free(y);
        // SAFETY: handles that nobody uses later.
        unsafe {
            dml_kernel_free(kernel);
            dml_kernel_free(0);
        }
    }
}
