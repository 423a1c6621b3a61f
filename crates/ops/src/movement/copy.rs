//! Copies between tensors, devices and dtypes; fill; reading one element.

use crate::operator::argument::AnyTensor;
use crate::operator::call::{Call, Ret, Scalar};
use crate::operator::conversion::check_fits;
use crate::operator::error::{Error, Result};
use crate::operator::host;
use crate::pointwise::kernel::{self, Input};
use crate::tensor::{DeviceKind, Tensor, overlap};
use crate::{check, operators};
use dml_kernel::DType;

operators! {
    copy_from(self, dst, non_blocking) {
        "aten::_copy_from(Tensor self, Tensor dst, bool non_blocking=False) -> Tensor",
    }
    local_scalar_dense(self) {
        "aten::_local_scalar_dense(Tensor self) -> Scalar",
    }
    fill(self, value) {
        "aten::fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)",
    }
    fill_from(self, value) {
        "aten::fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)",
    }
    fill(self; Scalar::Int(0)) {
        "aten::zero_(Tensor(a!) self) -> Tensor(a!)",
    }
}

/// Copies between devices, dtypes and strides; `src` broadcasts to `dst`. A CPU side must be contiguous and of the other side's dtype and sizes: the plugin prepares it so. With `non_blocking`, a
/// copy with pinned memory may still be under way at the return.
fn copy_from(call: &mut Call, AnyTensor(src): AnyTensor, AnyTensor(dst): AnyTensor, non_blocking: bool) -> Result<()> {
    copy_tensor(call, src, dst, !non_blocking)?;
    call.ret(dst.clone());
    Ok(())
}

/// Copies between places. Unless it is to `wait`, a copy with pinned memory may still be under way at the return.
pub fn copy_tensor(call: &Call, src: &Tensor, dst: &Tensor, wait: bool) -> Result<()> {
    match (src.place, dst.place) {
        (DeviceKind::Dml(a), DeviceKind::Dml(b)) if a == b => device_copy(call, src, dst)?,
        (DeviceKind::Dml(_), DeviceKind::Dml(b)) => {
            let mut bytes = vec![0; src.numel() as usize * src.element_size() as usize];
            read_back(call, src, &mut bytes, true)?;
            let other = dml_engine::device(b as usize)?;
            let there =
                Call { name: call.name, args: call.args, device: other, host: call.host, returns: Default::default() };
            let staged = there.empty(src.dtype, &src.sizes)?;
            other.upload(staged.data, &bytes)?;
            device_copy(&there, &staged, dst)?;
        }
        (DeviceKind::Cpu, DeviceKind::Dml(_)) => upload(call, src, dst, wait)?,
        (DeviceKind::Dml(_), DeviceKind::Cpu) => {
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
        _ => check!(false, Runtime, "_copy_from: cannot copy between {:?} and {:?}", src.place, dst.place),
    }
    Ok(())
}

/// Copies a CPU tensor to this device; a strided one is refused, for the caller to prepare. Unless it is to `wait`, the device
/// may read pinned memory after the return.
pub fn upload(call: &Call, src: &Tensor, dst: &Tensor, wait: bool) -> Result<()> {
    if !src.is_contiguous() || src.negative {
        return Err(Error::Fallback("copy of a strided CPU tensor".into()));
    }
    let bytes = host::bytes(src)?;
    if dst.is_contiguous() && src.dtype == dst.dtype && src.sizes == dst.sizes {
        return upload_bytes(call, dst.data, bytes, wait);
    }
    let staged = call.empty(src.dtype, &src.sizes)?;
    upload_bytes(call, staged.data, bytes, wait)?;
    device_copy(call, &staged, dst)
}

fn upload_bytes(call: &Call, dst: u64, bytes: &[u8], wait: bool) -> Result<()> {
    if !call.device.upload_pinned(dst, bytes, wait)? {
        call.device.upload(dst, bytes)?;
    }
    Ok(())
}

/// Downloads a tensor of any strides as contiguous bytes. Unless it is to `wait`, pinned memory may be written after the return.
fn read_back(call: &Call, src: &Tensor, bytes: &mut [u8], wait: bool) -> Result<()> {
    let dense = if src.negative { contiguous(call, src)? } else { as_contiguous(call, src)? };
    if !call.device.download_pinned(dense.data, bytes, wait)? {
        call.device.download(dense.data, bytes)?;
    }
    Ok(())
}

/// The elements of a tensor, in order. Waits for them.
pub fn read_numbers<T: FromIterator<Scalar>>(call: &Call, t: &Tensor) -> Result<T> {
    let size = t.element_size() as usize;
    let mut bytes = vec![0; t.numel() as usize * size];
    read_back(call, t, &mut bytes, true)?;
    let element = |one: &[u8]| {
        let mut element = [0; 8];
        element[..size].copy_from_slice(one);
        host::decode(t.dtype, element)
    };
    Ok(bytes.chunks_exact(size).map(element).collect())
}

/// A contiguous copy.
pub fn contiguous(call: &Call, t: &Tensor) -> Result<Tensor> {
    let dense = call.empty(t.dtype, &t.sizes)?;
    device_copy(call, t, &dense)?;
    Ok(dense)
}

/// The tensor itself if it is contiguous, else a contiguous copy.
pub fn as_contiguous(call: &Call, t: &Tensor) -> Result<Tensor> {
    if t.is_contiguous() { Ok(t.clone()) } else { contiguous(call, t) }
}

/// An input that a kernel may read while it writes `out`: a copy where they may share memory and
/// [`overlap::check_none`] lets them.
pub fn apart(call: &Call, out: &Tensor, input: &Tensor) -> Result<Tensor> {
    overlap::check_none(out, &[input])?;
    separate(call, out, input)
}

/// The input, or a copy where it may share memory with `out`.
pub fn separate(call: &Call, out: &Tensor, input: &Tensor) -> Result<Tensor> {
    if overlap::touches(out, input) { contiguous(call, input) } else { Ok(input.clone()) }
}

/// A copy in another dtype, contiguous; the tensor itself if nothing changes.
pub fn cast(call: &Call, t: &Tensor, dtype: DType) -> Result<Tensor> {
    if t.dtype == dtype {
        return Ok(t.clone());
    }
    let out = call.empty(dtype, &t.sizes)?;
    device_copy(call, t, &out)?;
    Ok(out)
}

/// Copies on one device; `src` broadcasts to `dst`.
pub fn device_copy(call: &Call, src: &Tensor, dst: &Tensor) -> Result<()> {
    call.broadcast(&src.sizes, &dst.sizes)?;
    overlap::check_internal(dst)?;
    if src.negative != dst.negative {
        let dtype = dst.dtype;
        return kernel::run(call, "copy_neg", &[dst], &[Input::Tensor(src.clone())], dtype, |_, v| vec![-v[0]]);
    }
    let (src, dst) = as_bits(src, dst);
    let dtype = dst.dtype;
    kernel::run(call, "copy", &[&dst], &[Input::Tensor(src)], dtype, |_, v| vec![v[0]])
}

/// Source and target as a copy kernel sees them. Bits of one dtype move as they are: NaN payloads survive, and no float
/// capability is asked of the adapter.
pub fn as_bits(src: &Tensor, dst: &Tensor) -> (Tensor, Tensor) {
    let (mut src, mut dst) = (src.clone(), dst.clone());
    if src.dtype == dst.dtype {
        src.dtype = src.dtype.bits();
        dst.dtype = src.dtype;
    }
    (src, dst)
}

/// The value of a tensor's only element, behind `.item()`: waits for the device.
fn local_scalar_dense(call: &mut Call, t: &Tensor) -> Result<()> {
    let mut bytes = [0u8; 8];
    call.device.download(t.data, &mut bytes[..t.element_size() as usize])?;
    call.ret_value(match t.dtype {
        DType::U64 => Ret::Unsigned(u64::from_le_bytes(bytes)),
        dtype => Ret::Scalar(host::decode(dtype, bytes)),
    });
    Ok(())
}

fn fill_from(call: &mut Call, out: &Tensor, AnyTensor(value): AnyTensor) -> Result<()> {
    check!(
        value.dim() == 0,
        Runtime,
        "fill_ only supports 0-dimension value tensor but got tensor with {} dimensions.",
        value.dim()
    );
    if value.place == DeviceKind::Cpu {
        return fill(call, out, host::read_number(value)?);
    }
    device_copy(call, value, out)?;
    call.ret(out.clone());
    Ok(())
}

/// As on the CPU an expanded tensor is filled too.
fn fill(call: &mut Call, out: &Tensor, value: Scalar) -> Result<()> {
    // A single half takes what becomes infinite.
    if out.numel() != 1 || !matches!(out.dtype, DType::F16 | DType::BF16) {
        check_fits(value, out.dtype)?;
    }
    if overlap::is_expanded(out) {
        fill_with(call, &overlap::unexpanded(out), value)?;
    } else {
        fill_with(call, out, value)?;
    }
    call.ret(out.clone());
    Ok(())
}

/// Sets every element.
pub fn fill_with(call: &Call, out: &Tensor, value: Scalar) -> Result<()> {
    let dtype = out.dtype;
    kernel::run(call, "fill", &[out], &[Input::Number(value, dtype)], dtype, |_, v| vec![v[0]])
}
