//! Calls on a device whose driver refuses kernels, or that lacks what kernels of the call need.
//!
//! A refused kernel is an error only when it would run, and by then other kernels of the call may
//! have written to its arguments. So a call first runs without launching anything
//! ([`Phase::Probe`]): its kernels are compiled, and if one is refused in every form, the plugin
//! runs the operator on the CPU, or [composes](crate::operator::Fields::declines) it. A call whose
//! kernels depend on values on the device is probed only up to the first of them. So each kernel is
//! also asked for right before its launch ([`Phase::Checked`]).

use crate::inference::probe;
use crate::operator::Operator;
use crate::operator::call::{Arg, Call, Host};
use crate::operator::error::{Error, Result};
use crate::special_dtypes::dispatch;
use dml_compute::context::Phase;
use dml_compute::{Environment, Policy, View};
use dml_engine::{AddressRange, Device, Error as DeviceError, KernelRef};
use dml_kernel::DType;
use std::cell::Cell;

/// Whether a device may not have the kernels of a call: its driver [refuses](Device::has_refusals)
/// some, or there are 64-bit floats and it has none. (Most kernels compute them in software. Some
/// cannot, or need more shared memory than there is.)
#[inline]
pub fn may_lack_kernels(device: &Device, args: &[Arg]) -> bool {
    let is_wide = |t: &View| matches!(t.dtype, DType::F64 | DType::C128);
    let has_wide = || args.iter().any(|argument| argument.has_tensor(is_wide));
    device.has_refusals() || !device.info().capabilities.f64 && has_wide()
}

/// As [`dispatch`], on a device that [may lack kernels](may_lack_kernels).
///
/// # Errors
/// The operator's; [`Error::Fallback`] if the device has no form of a kernel, or
/// [`DeviceError::Graph`] while a graph is captured, of which the CPU can do nothing.
#[cold]
pub fn dispatch_checked(call: &mut Call, operator: &Operator) -> Result<()> {
    match probe(operator, call) {
        Err(refused) if is_lacking(&refused) => return without_kernel(call, operator, refused),
        Err(interrupted @ Error::Engine(DeviceError::Interrupted)) => return Err(interrupted),
        _ => {} // Errors of the arguments are the call's own, below.
    }
    let host =
        CheckedHost { host: call.host, args: call.args, has_written: Cell::new(false), can_be_left: Cell::new(false) };
    let mut checked = call.with_host(call.args, &host);
    checked.context.phase = Phase::Checked;
    let ran = dispatch(&mut checked, operator);
    let returns = std::mem::take(&mut checked.returns);
    match ran {
        Err(refused @ Error::Engine(DeviceError::Unsupported { .. })) if !host.has_written.get() => {
            without_kernel(call, operator, refused)
        }
        // Not if it is an error of earlier work, whose results are lost.
        Err(refused) if is_lacking(&refused) && host.can_be_left.get() => without_kernel(call, operator, refused),
        ran => {
            call.returns = returns;
            ran
        }
    }
}

/// Whether the device has no form of a kernel.
fn is_lacking(error: &Error) -> bool {
    matches!(error, Error::Engine(DeviceError::Compile { .. } | DeviceError::Unsupported { .. }))
}

/// Leaves a call to the plugin.
fn without_kernel(call: &Call, operator: &Operator, refused: Error) -> Result<()> {
    if operator.fields.declines {
        call.host.warn(&format!("The operator '{}' is composed of others, which is slower: {refused}", operator.name));
        return Ok(());
    }
    call.device.refuse_in_capture(&format!("{}, which the CPU has to run ({refused}),", operator.name))?;
    Err(Error::Fallback(refused.to_string()))
}

/// A host that is asked before each launch.
struct CheckedHost<'h> {
    host: &'h dyn Host,
    args: &'h [Arg<'h>],
    /// A kernel was launched that writes to an argument.
    has_written: Cell<bool>,
    /// A kernel of the call was refused before that.
    can_be_left: Cell<bool>,
}

impl CheckedHost<'_> {
    /// Whether memory is that of an argument.
    fn is_argument(&self, range: AddressRange) -> bool {
        self.args.iter().any(|argument| argument.has_tensor(|t| t.storage.overlaps(range)))
    }
}

impl Environment for CheckedHost<'_> {
    fn allocate(&self, device: u8, dtype: DType, sizes: &[i64], strides: &[i64]) -> dml_compute::Result<View> {
        self.host.allocate(device, dtype, sizes, strides)
    }

    fn policy(&self) -> &dyn Policy {
        self.host.policy()
    }

    fn probe(&self, device: &Device, kernel: &KernelRef, writes: &[AddressRange]) -> dml_compute::Result<()> {
        let accepted = device.check_accepted(kernel);
        if accepted.is_err() {
            self.can_be_left.set(!self.has_written.get());
        }
        accepted?;
        if writes.iter().any(|&range| self.is_argument(range)) {
            self.has_written.set(true);
        }
        Ok(())
    }
}

impl Host for CheckedHost<'_> {
    fn resize(&self, tensor: &mut View, sizes: &[i64], strides: &[i64]) -> Result<()> {
        self.host.resize(tensor, sizes, strides)
    }

    fn view(&self, base: &View, view: &View) -> Result<View> {
        self.host.view(base, view)
    }

    fn warn(&self, message: &str) {
        self.host.warn(message);
    }

    fn default_dtype(&self) -> DType {
        self.host.default_dtype()
    }
}
