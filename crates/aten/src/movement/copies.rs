//! Copies between tensors, devices and dtypes; fill; reading a single element.

use crate::operator::argument::AnyTensor;
use crate::operator::call::{Call, Ret};
use crate::operator::conversion::check_fits;
use crate::operator::error::{Error, Result};
use crate::operator::structured;
use crate::tensor::overlap;
use crate::{check, operators};
use dml_compute::host;
use dml_compute::movement::copy::{self, fill_with, read_back, separate, upload_bytes};
use dml_compute::scalar::Scalar;
use dml_compute::view::{Location, View};
use dml_kernel::DType;

operators! {
    copy_from(self, dst, non_blocking).complex(Complex::AsGiven(complex::movement::copy_from)).float8(float8::own) {
        "aten::_copy_from(Tensor self, Tensor dst, bool non_blocking=False) -> Tensor",
    }
    local_scalar_dense(self).complex(Complex::Run(complex::movement::local_scalar_dense)).float8(float8::own) {
        hot "aten::_local_scalar_dense(Tensor self) -> Scalar",
    }
    fill(self, value).complex(Complex::Run(complex::movement::fill)).float8(float8::own) {
        hot "aten::fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)",
    }
    fill_from(self, value).complex(Complex::Run(complex::movement::fill)).float8(float8::own) {
        "aten::fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)",
    }
    fill(self; Scalar::Int(0)).complex(Complex::Run(complex::movement::zero)).float8(float8::own) {
        hot "aten::zero_(Tensor(a!) self) -> Tensor(a!)",
    }
}

/// Copies between devices, dtypes and strides; `src` broadcasts to `dst`. A CPU tensor has to be
/// contiguous, with the other tensor's dtype and sizes: the plugin ensures that. With
/// `non_blocking`, a copy with pinned memory may still be in progress when this returns.
fn copy_from(call: &mut Call, AnyTensor(src): AnyTensor, AnyTensor(dst): AnyTensor, non_blocking: bool) -> Result<()> {
    copy_tensor(call, src, dst, !non_blocking)?;
    call.ret(dst.clone());
    Ok(())
}

/// Checks that a tensor broadcasts to the shape of one that it is copied to.
pub fn check_broadcasts(call: &Call, src: &View, dst: &View) -> Result<()> {
    let sizes = call.broadcast(&src.sizes, &dst.sizes)?;
    structured::check_shape(&dst.sizes, &sizes)?;
    Ok(())
}

/// Copies on one device; `src` broadcasts to `dst`, which may not be expanded.
pub fn checked_copy(call: &Call, src: &View, dst: &View) -> Result<()> {
    check_broadcasts(call, src, dst)?;
    overlap::check_internal(dst)?;
    Ok(copy::device_copy(call, src, dst)?)
}

/// Copies between devices. Unless `wait` is set, a copy with pinned memory may still be in progress
/// when this returns.
pub fn copy_tensor(call: &Call, src: &View, dst: &View, wait: bool) -> Result<()> {
    if call.needs_no_kernel() {
        return Ok(());
    }
    match (src.location, dst.location) {
        (Location::Device(a), Location::Device(b)) if a == b => checked_copy(call, src, dst)?,
        (Location::Device(_), Location::Device(b)) => {
            check_broadcasts(call, src, dst)?;
            let mut bytes = vec![0; src.numel() as usize * src.element_size() as usize];
            read_back(call, src, &mut bytes, true)?;
            let other = dml_engine::device(b as usize)?;
            let there = call.on(other);
            let staged = there.empty(src.dtype, &src.sizes)?;
            there.upload(staged.data, &bytes)?;
            copy::device_copy(&there, &staged, dst)?;
        }
        (Location::Host, Location::Device(_)) => upload(call, src, dst, wait)?,
        (Location::Device(_), Location::Host) => {
            let mut target = dst.clone();
            check!(
                src.dtype == dst.dtype && src.sizes == dst.sizes,
                Runtime,
                "_copy_from: cannot copy {} to a CPU tensor {}",
                src.describe(),
                dst.describe()
            );
            read_back(call, src, host::bytes_mut(&mut target)?, wait)?;
        }
        _ => check!(false, Runtime, "_copy_from: cannot copy between {:?} and {:?}", src.location, dst.location),
    }
    Ok(())
}

/// Copies a CPU tensor to this device; a strided one is an error, since the caller has to make it
/// contiguous. Unless `wait` is set, the device may read pinned memory after this returns.
pub fn upload(call: &Call, src: &View, dst: &View, wait: bool) -> Result<()> {
    if !src.is_contiguous() || src.negative {
        return Err(Error::Fallback("copy of a strided CPU tensor".into()));
    }
    let bytes = host::bytes(src)?;
    if dst.is_contiguous() && src.dtype == dst.dtype && src.sizes == dst.sizes {
        return Ok(upload_bytes(call, dst.data, bytes, wait)?);
    }
    let staged = call.empty(src.dtype, &src.sizes)?;
    upload_bytes(call, staged.data, bytes, wait)?;
    checked_copy(call, &staged, dst)
}

/// An input that a kernel may read while it writes `out`: a copy if they may overlap and
/// [`overlap::check_none`] allows it.
pub fn without_overlap(call: &Call, out: &View, input: &View) -> Result<View> {
    overlap::check_none(out, &[input])?;
    Ok(separate(call, out, input)?)
}

/// The value of a tensor's only element, for `.item()`: waits for the device.
fn local_scalar_dense(call: &mut Call, t: &View) -> Result<()> {
    let mut bytes = [0u8; 8];
    call.download(t.data, &mut bytes[..t.element_size() as usize])?;
    call.ret_value(match t.dtype {
        DType::U64 => Ret::Unsigned(u64::from_le_bytes(bytes)),
        dtype => Ret::Scalar(host::decode(dtype, bytes)),
    });
    Ok(())
}

fn fill_from(call: &mut Call, out: &View, AnyTensor(value): AnyTensor) -> Result<()> {
    check!(
        value.dim() == 0,
        Runtime,
        "fill_ only supports 0-dimension value tensor but got tensor with {} dimensions.",
        value.dim()
    );
    if value.location == Location::Host {
        return fill(call, out, host::read_number(value)?);
    }
    checked_copy(call, value, out)?;
    call.ret(out.clone());
    Ok(())
}

/// As on the CPU an expanded tensor can be filled too.
fn fill(call: &mut Call, out: &View, value: Scalar) -> Result<()> {
    // A single element in half precision accepts numbers that become infinite.
    if out.numel() != 1 || !matches!(out.dtype, DType::F16 | DType::BF16) {
        check_fits(value, out.dtype)?;
    }
    if dml_compute::view::overlap::is_expanded(out) {
        fill_with(call, &dml_compute::view::overlap::unexpanded(out), value)?;
    } else {
        fill_with(call, out, value)?;
    }
    call.ret(out.clone());
    Ok(())
}
