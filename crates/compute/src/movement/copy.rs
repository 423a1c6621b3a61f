//! Copies between tensors, devices and dtypes; fill; reading one element.

use crate::context::Context;
use crate::error::Result;
use crate::host;
use crate::movement::functions::{COPY, COPY_NEG, FILL};
use crate::pointwise::kernel::{self, Input};
use crate::scalar::Scalar;
use crate::view::{View, memory_format, overlap};
use dml_kernel::DType;

pub fn upload_bytes(cx: &Context, dst: u64, bytes: &[u8], wait: bool) -> Result<()> {
    if !cx.infers() && !cx.device.upload_pinned(dst, bytes, wait)? {
        cx.upload(dst, bytes)?;
    }
    Ok(())
}

/// Downloads a tensor of any strides as contiguous bytes. Unless it is to `wait`, pinned memory may
/// be written after the return.
pub fn read_back(cx: &Context, src: &View, bytes: &mut [u8], wait: bool) -> Result<()> {
    let dense = if src.negative { contiguous(cx, src)? } else { as_contiguous(cx, src)? };
    if cx.infers() || !cx.device.download_pinned(dense.data, bytes, wait)? {
        cx.download(dense.data, bytes)?;
    }
    Ok(())
}

/// The elements of a tensor, in order. Waits for them.
pub fn read_numbers<T: FromIterator<Scalar>>(cx: &Context, t: &View) -> Result<T> {
    let size = t.element_size() as usize;
    let mut bytes = vec![0; t.numel() as usize * size];
    read_back(cx, t, &mut bytes, true)?;
    let element = |one: &[u8]| {
        let mut element = [0; 8];
        element[..size].copy_from_slice(one);
        host::decode(t.dtype, element)
    };
    Ok(bytes.chunks_exact(size).map(element).collect())
}

/// A contiguous copy.
pub fn contiguous(cx: &Context, t: &View) -> Result<View> {
    let dense = cx.empty(t.dtype, &t.sizes)?;
    device_copy(cx, t, &dense)?;
    Ok(dense)
}

/// The elements in dense memory of the wanted order: with channels (dimension 1) closest if `last`,
/// else row-major. The tensor itself if it lies so.
pub fn in_memory_format(cx: &Context, t: &View, last: bool) -> Result<View> {
    let strides = memory_format::strides(&t.sizes, last);
    let fits = t.sizes.iter().zip(&t.strides).zip(&strides).all(|((&n, s), want)| n == 1 || s == want);
    if fits {
        // Strides of dimensions of size 1 are anything: the canonical ones let dimensions merge.
        return Ok(t.as_strided(&t.sizes, &strides, 0));
    }
    let copy = cx.empty_strided(t.dtype, &t.sizes, &strides)?;
    device_copy(cx, t, &copy)?;
    Ok(copy)
}

/// The tensor itself if it is contiguous, else a contiguous copy.
pub fn as_contiguous(cx: &Context, t: &View) -> Result<View> {
    if t.is_contiguous() { Ok(t.clone()) } else { contiguous(cx, t) }
}

/// The input, or a copy where it may share memory with `out`.
pub fn separate(cx: &Context, out: &View, input: &View) -> Result<View> {
    if overlap::touches(out, input) { contiguous(cx, input) } else { Ok(input.clone()) }
}

/// A copy in another dtype, contiguous; the tensor itself if nothing changes.
pub fn cast(cx: &Context, t: &View, dtype: DType) -> Result<View> {
    if t.dtype == dtype {
        return Ok(t.clone());
    }
    let out = cx.empty(dtype, &t.sizes)?;
    device_copy(cx, t, &out)?;
    Ok(out)
}

/// Copies on one device; `src` broadcasts to `dst`.
pub fn device_copy(cx: &Context, src: &View, dst: &View) -> Result<()> {
    if src.negative != dst.negative {
        let dtype = dst.dtype;
        return kernel::run(cx, &COPY_NEG, &[dst], &[Input::Tensor(src.clone())], dtype);
    }
    let (src, dst) = as_bits(src, dst);
    let dtype = dst.dtype;
    kernel::run(cx, &COPY, &[&dst], &[Input::Tensor(src)], dtype)
}

/// Source and target as a copy kernel sees them. Bits of one dtype move as they are: NaN payloads
/// survive, and no float capability is asked of the adapter.
pub fn as_bits(src: &View, dst: &View) -> (View, View) {
    let (mut src, mut dst) = (src.clone(), dst.clone());
    if src.dtype == dst.dtype {
        src.dtype = src.dtype.bits();
        dst.dtype = src.dtype;
    }
    (src, dst)
}

/// Sets every element.
pub fn fill_with(cx: &Context, out: &View, value: Scalar) -> Result<()> {
    let dtype = out.dtype;
    kernel::run(cx, &FILL, &[out], &[Input::Number(value, dtype)], dtype)
}
