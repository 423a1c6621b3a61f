//! Elements in another order: flip, roll, channel_shuffle, repeat_interleave; the gradient of unfold.

use crate::check;
use crate::movement::copy::{contiguous, device_copy};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::primitives::launch::{GROUP, linear_id};
use crate::primitives::multi_copy::{self, Region};
use crate::primitives::prefix_sum;
use crate::tensor::layout::{self, Layout};
use crate::tensor::memory_format::{self, is_channels_last};
use crate::tensor::{Dims, Tensor};
use dml_kernel::{Builder, DType, Kernel, Scalar};

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::channel_shuffle", channel_shuffle),
    op("aten::flip", flip),
    op("aten::roll", roll),
    op("aten::repeat_interleave.Tensor", repeat_interleave),
    op("aten::unfold_backward", unfold_backward),
];

/// The tensor to return: of `t`'s sizes, and of its strides if it is dense.
fn like(call: &Call, t: &Tensor) -> Result<Tensor> {
    call.empty_strided(t.dtype, &t.sizes, &crate::tensor::layout::result_strides(&t.sizes, &[t]))
}

/// `channel_shuffle(self, groups)`: channels of `groups` groups in turn.
fn channel_shuffle(call: &mut Call) -> Result<()> {
    let t = call.tensor(0)?;
    let groups = call.int(1)?;
    check!(
        t.dim() > 2,
        Runtime,
        "channel_shuffle expects input with > 2 dims, but got input with sizes {:?}",
        t.sizes.as_slice()
    );
    let (channels, stride) = (t.sizes[1], t.strides[1]);
    check!(groups > 0, Runtime, "Number of groups to divide channels in must be positive. Value of groups:{groups}");
    check!(
        channels % groups == 0,
        Runtime,
        "Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
    );
    let last = is_channels_last(t);
    let out = call.empty_strided(t.dtype, &t.sizes, &memory_format::strides(&t.sizes, last))?;
    // Channel `group * each + i` of the input is channel `i * groups + group` of the result.
    let each = channels / groups;
    let split = |t: &Tensor, strides: [i64; 2]| {
        let (mut sizes, mut all) = (t.sizes.clone(), t.strides.clone());
        sizes[1] = each;
        sizes.insert(2, groups);
        all[1] = strides[0];
        all.insert(2, strides[1]);
        t.as_strided(&sizes, &all, 0)
    };
    let to = split(&out, [out.strides[1] * groups, out.strides[1]]);
    device_copy(call, &split(t, [stride, stride * each]), &to)?;
    call.ret(out);
    Ok(())
}

/// `flip(self, dims)`
fn flip(call: &mut Call) -> Result<()> {
    let t = call.tensor(0)?;
    let out = like(call, t)?;
    let mut piece = Region::whole(out.clone(), t.clone());
    let mut seen = vec![false; t.dim().max(1)];
    for &d in call.ints(1)? {
        let d = call.wrap_dim(d, t.dim())?;
        check!(!seen[d], Runtime, "dim {d} appears multiple times in the list of dims");
        seen[d] = true;
        if d < t.dim() {
            piece.start += (t.sizes[d] - 1) * t.strides[d];
            piece.strides[d] = -t.strides[d];
        }
    }
    multi_copy::copy(call, t.dtype, &[piece])?;
    call.ret(out);
    Ok(())
}

/// `roll(self, shifts, dims)`: along each dimension, what leaves at one end enters at the other.
fn roll(call: &mut Call) -> Result<()> {
    let t = call.tensor(0)?;
    let (shifts, dims) = (call.ints(1)?, call.ints(2)?);
    check!(!shifts.is_empty(), Runtime, "`shifts` required");
    if dims.is_empty() && shifts.len() == 1 {
        // The tensor as one row.
        let row = contiguous(call, t)?;
        let out = call.empty(t.dtype, &t.sizes)?;
        let flat = |t: &Tensor| t.as_strided(&[t.numel()], &[1], 0);
        rotate(call, flat(&row), flat(&out), &[(0, shifts[0])])?;
        call.ret(out);
        return Ok(());
    }
    check!(
        shifts.len() == dims.len(),
        Runtime,
        "shifts and dimensions must align. shifts: {}, dims:{}",
        shifts.len(),
        dims.len()
    );
    let out = like(call, t)?;
    let mut by_dim: Vec<(usize, i64)> = Vec::new();
    for (&shift, &d) in shifts.iter().zip(dims) {
        check!(t.dim() > 0, Index, "Dimension specified as {d} but tensor has no dimensions");
        let d = call.wrap_dim(d, t.dim())?;
        match by_dim.iter_mut().find(|(other, _)| *other == d) {
            Some((_, sum)) => *sum += shift,
            None => by_dim.push((d, shift)),
        }
    }
    rotate(call, t.clone(), out.clone(), &by_dim)?;
    call.ret(out);
    Ok(())
}

/// Copies `src` to `dst` rotated: each dimension splits what is to be copied in two.
fn rotate(call: &Call, src: Tensor, dst: Tensor, shifts: &[(usize, i64)]) -> Result<()> {
    let dtype = src.dtype;
    let mut parts = vec![(src, dst)];
    for &(d, shift) in shifts {
        parts = parts
            .into_iter()
            .flat_map(|(src, dst)| {
                let n = src.sizes[d];
                let shift = shift.rem_euclid(n.max(1));
                [
                    (src.narrow(d, 0, n - shift), dst.narrow(d, shift, n - shift)),
                    (src.narrow(d, n - shift, shift), dst.narrow(d, 0, shift)),
                ]
            })
            .filter(|(src, _)| src.numel() > 0)
            .collect();
    }
    let parts: Vec<Region> = parts.into_iter().map(|(src, dst)| Region::whole(dst, src)).collect();
    multi_copy::copy(call, dtype, &parts)
}

/// `repeat_interleave.Tensor(repeats, *, output_size)`: each index as often as `repeats` says.
fn repeat_interleave(call: &mut Call) -> Result<()> {
    let repeats = call.tensor(0)?;
    check!(repeats.dim() == 1, Runtime, "repeat_interleave only accept 1D vector as repeat");
    check!(matches!(repeats.dtype, DType::I32 | DType::I64), Runtime, "repeats has to be Long or Int tensor");
    let n = repeats.sizes[0];
    if n == 0 {
        let out = call.empty(repeats.dtype, &[0])?;
        call.ret(out);
        return Ok(());
    }
    check!(n < layout::SHORT, NotImplemented, "repeat_interleave: {n} repeats are too many for dml");
    // The places where each index begins, and how many there are.
    let starts = call.empty(DType::I64, &[n + 1])?;
    device_copy(call, repeats, &starts.narrow(0, 0, n))?;
    let total = match call.opt_scalar(1)? {
        Some(size) => size.to_i64(),
        None => {
            let mut bytes = vec![0u8; 8 * n as usize];
            call.device.download(starts.data, &mut bytes)?;
            let mut total = 0;
            for count in bytes.as_chunks::<8>().0 {
                let count = i64::from_le_bytes(*count);
                check!(count >= 0, Runtime, "repeats can not be negative");
                total += count;
            }
            total
        }
    };
    prefix_sum::exclusive(call, &starts, n)?;
    let out = call.empty(repeats.dtype, &[total])?;
    if total > 0 {
        let dtype = out.dtype;
        let kernel = call.kernel("repeat_interleave", [dtype as u32, 0, 0, 0, 0, 0], || build_repeat(dtype))?;
        call.launch(kernel).write(&out).read(&starts).u64(total as u64).u32(n as u32).threads(total as u64)?;
    }
    call.ret(out);
    Ok(())
}

/// The last index that begins at or before each place.
fn build_repeat(dtype: DType) -> Kernel {
    let b = Builder::new("repeat_interleave", [GROUP, 1, 1]);
    let (out, starts) = (b.pointer("out", dtype), b.pointer("starts", DType::I64));
    let (total, n) = (b.param("total", Scalar::U64), b.param("n", Scalar::U32));
    let i = linear_id(&b, Scalar::U64);
    b.if_(i.lt(total), || {
        let place = i.cast(Scalar::I64);
        let (low, high) = (b.var(b.u32(0)), b.var(n));
        b.while_(
            || (low.get() + 1).lt(high.get()),
            || {
                let middle = (low.get() + high.get()) >> 1;
                let before = starts.load(middle).le(place);
                low.set(before.select(middle, low.get()));
                high.set(before.select(high.get(), middle));
            },
        );
        out.store(i, low.get());
    });
    b.finish()
}

/// `unfold_backward(grad_in, input_sizes, dim, size, step)`: each element gets the sum over the windows that show it.
fn unfold_backward(call: &mut Call) -> Result<()> {
    let grad = call.tensor(0)?;
    let sizes = call.ints(1)?;
    let dim = call.wrap_dim(call.int(2)?, sizes.len())?;
    let (size, step) = (call.int(3)?, call.int(4)?);
    let out = call.empty(grad.dtype, sizes)?;
    if out.numel() == 0 {
        call.ret(out);
        return Ok(());
    }
    if sizes.is_empty() {
        device_copy(call, &grad.as_strided(&[], &[], 0), &out)?;
        call.ret(out);
        return Ok(());
    }
    let rank = sizes.len();
    let windows = grad.sizes[dim];
    let along = |d: usize| i64::from(d == dim);
    let place: Dims = (0..rank).map(along).collect();
    let rest: Dims = (0..rank).map(|d| if d == dim { 0 } else { grad.strides[d] }).collect();
    let mut layout = Layout::row_major(sizes, &[&out.strides, &rest, &place]);
    if grad.range().end - grad.range().start >= layout::SHORT as u64 {
        layout.index = Scalar::U64;
    }
    let (dtype, index) = (grad.dtype, layout.index);
    let key = [dtype as u32, layout.rank() as u32, index.bytes(), 0, 0, 0];
    let kernel = call.kernel("unfold_backward", key, || build_unfold_backward(dtype, layout.rank(), index))?;
    let mut launcher = call.launch(kernel).write(&out).read(grad);
    for x in [out.numel(), windows, size, step, grad.strides[dim], grad.strides[rank]] {
        launcher = launcher.index(index, x);
    }
    layout.pass(launcher).threads(out.numel() as u64)?;
    call.ret(out);
    Ok(())
}

fn build_unfold_backward(dtype: DType, rank: usize, index: Scalar) -> Kernel {
    let b = Builder::new("unfold_backward", [GROUP, 1, 1]);
    let (out, grad) = (b.pointer("out", dtype), b.pointer("grad", dtype));
    let [n, windows, size, step] = ["n", "windows", "size", "step"].map(|name| b.param(name, index));
    let (window_stride, stride) = (b.param("window_stride", index), b.param("stride", index));
    let params = layout::declare(&b, rank, 3, index);
    let i = linear_id(&b, index);
    b.if_(i.lt(n), || {
        let at = params.offsets(&b, i);
        let place = at[2];
        // Window w shows the places from w * step to w * step + size - 1.
        let first = b.var(b.int(index, 0));
        b.if_(place.ge(size), || first.set((place - size) / step + 1));
        let end = (place / step + 1).min(windows);
        let scalar = if dtype == DType::Bool { Scalar::I32 } else { dtype.compute() };
        let sum = b.var(b.constant_of(scalar, 0.0));
        b.for_(first.get(), end, 1, |w| {
            let from = at[1] + w * window_stride + (place - w * step) * stride;
            sum.set(sum.get() + grad.load(from).cast(scalar));
        });
        out.store(at[0], sum.get());
    });
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        accepted(&build_repeat(DType::I32));
        accepted(&build_repeat(DType::I64));
        accepted(&build_unfold_backward(DType::BF16, 3, Scalar::U32));
        accepted(&build_unfold_backward(DType::F64, 1, Scalar::U64));
    }
}
