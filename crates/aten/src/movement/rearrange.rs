//! Rearranged elements: flip, roll, channel_shuffle, repeat_interleave; the gradient of unfold.

use crate::movement::copies::checked_copy;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::movement::copy::contiguous;
use dml_compute::movement::rearrange::{self, like, repeat, rotate};
use dml_compute::primitives::multi_copy::{self, Region};
use dml_compute::primitives::prefix_sum;
use dml_compute::view::View;
use dml_compute::view::layout;
use dml_compute::view::memory_format::{self, is_channels_last};
use dml_kernel::DType;

operators! {
    channel_shuffle(self, groups).complex(Complex::Run(complex::run_as_bits)) {
        "aten::channel_shuffle(Tensor self, SymInt groups) -> Tensor",
    }
    flip(self, dims).complex(Complex::Run(complex::run_as_bits)).float8(float8::run_as_bits) {
        "aten::flip(Tensor self, int[] dims) -> Tensor",
    }
    roll(self, shifts, dims).complex(Complex::Run(complex::run_as_bits)).float8(float8::run_as_bits) {
        "aten::roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",
    }
    repeat_interleave(repeats, output_size) {
        "aten::repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor",
    }
    unfold_backward(grad_in, input_sizes, dim, size, step).complex(Complex::Run(complex::by_parts)) {
        "aten::unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor",
    }
}

/// Interleaves the channels of `groups` groups.
fn channel_shuffle(call: &mut Call, t: &View, groups: i64) -> Result<()> {
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
    let split = |t: &View, strides: [i64; 2]| {
        let (mut sizes, mut all) = (t.sizes.clone(), t.strides.clone());
        sizes[1] = each;
        sizes.insert(2, groups);
        all[1] = strides[0];
        all.insert(2, strides[1]);
        t.as_strided(&sizes, &all, 0)
    };
    let to = split(&out, [out.strides[1] * groups, out.strides[1]]);
    checked_copy(call, &split(t, [stride, stride * each]), &to)?;
    call.ret(out);
    Ok(())
}

fn flip(call: &mut Call, t: &View, dims: &[i64]) -> Result<()> {
    let out = like(call, t)?;
    let mut region = Region::whole(out.clone(), t.clone());
    let mut seen = vec![false; t.dim().max(1)];
    for &d in dims {
        let d = call.wrap_dim(d, t.dim())?;
        check!(!seen[d], Runtime, "dim {d} appears multiple times in the list of dims");
        seen[d] = true;
        if d < t.dim() {
            region.start += (t.sizes[d] - 1) * t.strides[d];
            region.strides[d] = -t.strides[d];
        }
    }
    multi_copy::copy(call, t.dtype, &[region])?;
    call.ret(out);
    Ok(())
}

/// Elements that leave a dimension at one end enter at the other.
fn roll(call: &mut Call, t: &View, shifts: &[i64], dims: &[i64]) -> Result<()> {
    check!(!shifts.is_empty(), Runtime, "`shifts` required");
    if dims.is_empty() && shifts.len() == 1 {
        // The tensor as a vector.
        let row = contiguous(call, t)?;
        let out = call.empty(t.dtype, &t.sizes)?;
        let flat = |t: &View| t.as_strided(&[t.numel()], &[1], 0);
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
    if t.numel() == 0 {
        let out = like(call, t)?;
        call.ret(out);
        return Ok(());
    }
    // As the CPU, which concatenates two parts, of which one may be empty, dimension after
    // dimension; strides follow from that.
    let mut lies = t.clone();
    let mut by_dim: Vec<(usize, i64)> = Vec::new();
    for (&shift, &d) in shifts.iter().zip(dims) {
        check!(t.dim() > 0, Index, "Dimension specified as {d} but tensor has no dimensions");
        let d = call.wrap_dim(d, t.dim())?;
        match by_dim.iter_mut().find(|(other, _)| *other == d) {
            Some((_, sum)) => *sum += shift,
            None => by_dim.push((d, shift)),
        }
        let (n, end) = (t.sizes[d], shift.rem_euclid(t.sizes[d]));
        let last = is_channels_last(&lies.narrow(d, 0, n - end)) && is_channels_last(&lies.narrow(d, n - end, end));
        lies.strides = memory_format::strides(&t.sizes, last);
    }
    let out = call.empty_strided(t.dtype, &t.sizes, &lies.strides)?;
    rotate(call, t.clone(), out.clone(), &by_dim)?;
    call.ret(out);
    Ok(())
}

/// Repeats each index `repeats` times.
pub fn repeat_interleave(call: &mut Call, repeats: &View, output_size: Option<i64>) -> Result<()> {
    check!(repeats.dim() == 1, Runtime, "repeat_interleave only accept 1D vector as repeat");
    let dtype = repeats.dtype;
    let known = matches!(dtype, DType::I32 | DType::I64);
    check!(known, NotImplemented, "\"repeat_interleave\" not implemented for '{dtype}'");
    let n = repeats.sizes[0];
    if n == 0 {
        let out = call.empty(repeats.dtype, &[0])?;
        call.ret(out);
        return Ok(());
    }
    check!(n < layout::MAX_INDEX_32, NotImplemented, "repeat_interleave: {n} repeats are too many for dml");
    // The start of each index's repeats, and the total.
    let starts = call.empty(DType::I64, &[n + 1])?;
    checked_copy(call, repeats, &starts.narrow(0, 0, n))?;
    let total = match output_size {
        Some(size) => size,
        None => {
            let mut bytes = vec![0u8; 8 * n as usize];
            call.download(starts.data, &mut bytes)?;
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
    // The kernel checks a given size, so that the host does not wait for the repeats.
    let refusals = ["repeats can not be negative", "allocated size does not match required size"];
    repeat(call, &starts, output_size.map(|_| refusals), &out)?;
    call.ret(out);
    Ok(())
}

/// Each element gets the sum over the windows that contain it.
fn unfold_backward(call: &mut Call, grad: &View, sizes: &[i64], dim: i64, size: i64, step: i64) -> Result<()> {
    let dim = call.wrap_dim(dim, sizes.len())?;
    let out = call.empty(grad.dtype, sizes)?;
    if out.numel() == 0 {
        call.ret(out);
        return Ok(());
    }
    if sizes.is_empty() {
        checked_copy(call, &grad.as_strided(&[], &[], 0), &out)?;
        call.ret(out);
        return Ok(());
    }
    rearrange::unfold_backward(call, grad, dim, size, step, &out)?;
    call.ret(out);
    Ok(())
}
