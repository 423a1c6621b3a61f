//! Copies between tensors, devices and dtypes; fill; reading elements.

use crate::context::Context;
use crate::error::Result;
use crate::host;
use crate::movement::functions::{COPY, COPY_NEG, FILL};
use crate::pointwise::kernel::{self, Input, Operand};
use crate::scalar::Scalar;
use crate::view::{View, memory_format, overlap};
use dml_engine::Verdict;
use dml_kernel::DType;

/// Uploads bytes to the device address `dst`. Unless `wait`, pinned memory may be read after the
/// return.
pub fn upload_bytes(cx: &Context, dst: u64, bytes: &[u8], wait: bool) -> Result<()> {
    if !cx.infers() && !cx.device.upload_pinned(dst, bytes, wait)? {
        cx.upload(dst, bytes)?;
    }
    Ok(())
}

/// Downloads a tensor of any strides as contiguous bytes. Unless `wait`, pinned memory may be
/// written after the return.
pub fn read_back(cx: &Context, src: &View, bytes: &mut [u8], wait: bool) -> Result<()> {
    let dense = if src.negative { contiguous(cx, src)? } else { as_contiguous(cx, src)? };
    if cx.infers() || !cx.device.download_pinned(dense.data, bytes, wait)? {
        cx.download(dense.data, bytes)?;
    }
    Ok(())
}

/// Reads the elements of a tensor in row-major order. Waits for them.
pub fn read_numbers<T: FromIterator<Scalar>>(cx: &Context, t: &View) -> Result<T> {
    let size = t.element_size() as usize;
    let mut bytes = vec![0; t.numel() as usize * size];
    read_back(cx, t, &mut bytes, true)?;
    Ok(bytes.chunks_exact(size).map(|bytes| host::element(t.dtype, bytes)).collect())
}

/// Returns a contiguous copy.
pub fn contiguous(cx: &Context, t: &View) -> Result<View> {
    let dense = cx.empty(t.dtype, &t.sizes)?;
    device_copy(cx, t, &dense)?;
    Ok(dense)
}

/// Returns the elements in dense memory: channels last (dimension 1 innermost) if `last`, else
/// row-major. The tensor itself if it has this order.
pub fn in_memory_format(cx: &Context, t: &View, last: bool) -> Result<View> {
    let strides = memory_format::strides(&t.sizes, last);
    let fits = t.sizes.iter().zip(&t.strides).zip(&strides).all(|((&n, s), want)| n == 1 || s == want);
    if fits {
        // Strides of dimensions of size 1 are arbitrary: with the canonical ones dimensions can be
        // merged.
        return Ok(t.as_strided(&t.sizes, &strides, 0));
    }
    let copy = cx.empty_strided(t.dtype, &t.sizes, &strides)?;
    device_copy(cx, t, &copy)?;
    Ok(copy)
}

/// Returns the tensor itself if it is contiguous, otherwise a contiguous copy.
pub fn as_contiguous(cx: &Context, t: &View) -> Result<View> {
    if t.is_contiguous() { Ok(t.clone()) } else { contiguous(cx, t) }
}

/// Returns the input, or a copy if it may share memory with `out`.
pub fn separate(cx: &Context, out: &View, input: &View) -> Result<View> {
    if overlap::ranges_overlap(out, input) { contiguous(cx, input) } else { Ok(input.clone()) }
}

/// Returns a contiguous copy in another dtype, or the tensor itself if nothing changes.
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
    let same = src.dtype == dst.dtype;
    let (src, dst) = as_bits(src, dst);
    let copy = |cx: &Context| kernel::run_operands(cx, (&COPY).into(), &[&dst], &[Operand::Tensor(&src)], dst.dtype);
    if !same {
        return copy(cx);
    }
    // The CPU gets all of its operands by copies, and so copies need another way themselves.
    if cx.run_if_accepted(Verdict::Halved, copy)? { Ok(()) } else { copy_by_host(cx, &src, &dst) }
}

/// Copies elements of one dtype by way of the host.
fn copy_by_host(cx: &Context, src: &View, dst: &View) -> Result<()> {
    if dst.numel() == 0 || cx.infers() {
        return Ok(());
    }
    let src = src.expand(&dst.sizes);
    let read = |t: &View| {
        let range = t.range();
        let mut bytes = vec![0; (range.end - range.start) as usize];
        cx.download(range.start, &mut bytes).map(|()| bytes)
    };
    // Between the elements of `dst` are others, which stay.
    let (from, mut to, size) = (read(&src)?, read(dst)?, dst.element_size() as usize);
    for (i, o) in host::offsets(&src).into_iter().zip(host::offsets(dst)) {
        to[o * size..][..size].copy_from_slice(&from[i * size..][..size]);
    }
    cx.upload(dst.range().start, &to)
}

/// Source and destination as operands of a copy kernel. Elements of equal dtypes are copied as
/// bits: NaN payloads are preserved, and the adapter needs no support of the float type.
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
