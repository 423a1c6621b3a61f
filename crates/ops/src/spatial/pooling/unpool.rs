//! max_unpool2d and max_unpool3d: elements go back to where max pooling found them.
//!
//! Several elements may have one place, of which PyTorch keeps any. Here the last one in row-major order stays: a first
//! pass numbers for every place the last element that goes there, a second one fetches it.

use crate::check;
use crate::movement::copy::fill_with;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::fault;
use crate::operator::{Operator, op};
use crate::primitives::launch::{GROUP, linear_id};
use crate::spatial::geometry::{
    Place, Strides, axis_params, batched, index_type, pass_axes, pass_strides, result, sizes_with,
};
use crate::tensor::Tensor;
use crate::tensor::memory_format::is_channels_last;
use dml_kernel::{Atomic, Builder, DType, Kernel, Scalar};

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::max_unpool2d", |c| unpool(c, 2, None)),
    op("aten::max_unpool2d.out", |c| unpool(c, 2, Some(3))),
    op("aten::max_unpool3d", |c| unpool(c, 3, None)),
    op("aten::max_unpool3d.out", |c| unpool(c, 3, Some(5))),
];

/// `max_unpool2d(self, indices, output_size[, out])`, `max_unpool3d(self, indices, output_size, stride, padding[, out])`
fn unpool(call: &mut Call, rank: usize, out: Option<usize>) -> Result<()> {
    let (input, indices) = (call.tensor(0)?, call.tensor(1)?);
    let wanted = call.ints(2)?;
    let (count, names) = if rank == 2 { ("two", "height, width") } else { ("three", "depth, height, width") };
    check!(
        indices.dtype == DType::I64,
        Runtime,
        "elements in indices should be type int64{}",
        if rank == 2 { format!(" but got: {}", indices.dtype) } else { String::new() }
    );
    check!(
        wanted.len() == rank,
        Runtime,
        "There should be exactly {count} elements ({names}) in output_size, but got {} elements.",
        wanted.len()
    );
    check!(
        input.dim() == rank + 1 || input.dim() == rank + 2,
        Runtime,
        "Input to max_unpooling{rank}d should be a {}d or {}d Tensor, but got a tensor with {} dimensions.",
        rank + 1,
        rank + 2,
        input.dim()
    );
    if rank == 3 {
        for (what, i) in [("stride", 3), ("padding", 4)] {
            let list = call.ints(i)?;
            check!(
                list.len() == 3,
                Runtime,
                "There should be exactly three elements ({names}) in {what}, but got: {} elements.",
                list.len()
            );
        }
        let stride = call.ints(3)?;
        check!(
            stride.iter().all(|&s| s > 0),
            Runtime,
            "strides should be greater than zero, but got stride: {stride:?}"
        );
    }
    check!(
        input.sizes == indices.sizes,
        Runtime,
        "Expected shape of indices to be same as that of the input tensor ({:?}) but got indices tensor with shape: \
         {:?}",
        input.sizes.as_slice(),
        indices.sizes.as_slice()
    );
    for d in input.dim() - rank - 1..input.dim() {
        check!(
            input.sizes[d] > 0,
            Runtime,
            "max_unpooling{rank}d_forward_out_cpu(): Expected input to have non-zero size for non-batch dimensions, but \
             got {:?} with dimension {d} being empty.",
            input.sizes.as_slice()
        );
    }
    check!(input.dtype.is_float(), NotImplemented, "\"max_unpool{rank}d\" not implemented for '{}'", input.dtype);
    check!(wanted.iter().all(|&n| n >= 0), Runtime, "max_unpool{rank}d: output_size must not be negative: {wanted:?}");
    let last = rank == 2 && input.dim() == 4 && is_channels_last(input);
    let result = result(call, out, input.dtype, &sizes_with(input, wanted), last)?;
    let [from, places, to] = [input, indices, &result].map(|t| batched(t, rank));
    run(call, &from, &places, &to)?;
    call.ret(result);
    Ok(())
}

fn run(call: &Call, input: &Tensor, indices: &Tensor, out: &Tensor) -> Result<()> {
    let (n, rank) = (input.numel(), input.dim() - 2);
    check!(n < i64::from(u32::MAX), NotImplemented, "{}: {n} elements are more than dml can number", call.name);
    if n == 0 {
        return fill_with(call, out, Number::Int(0));
    }
    let numbers = call.empty(DType::U32, &[out.numel().max(1)])?;
    fill_with(call, &numbers, Number::Int(0))?;
    let index = index_type(&[input, indices, out]);
    let key = [index.bytes(), rank as u32, 0, 0, 0, 0];
    let kernel = call.kernel("max_unpool_numbers", key, || build_numbers(index, rank))?;
    let image: i64 = out.sizes[2..].iter().product();
    let mut launcher = call.launch(kernel).write(&numbers).read(indices).fault();
    launcher = launcher.index(index, n).index(index, input.sizes[1]).i64(image).u32(fault::operator(call.name));
    launcher = pass_axes(launcher, &input.sizes[2..]);
    pass_strides(launcher, index, indices).threads(n as u64)?;
    if out.numel() == 0 {
        return Ok(());
    }
    let dtype = out.dtype.bits();
    let kernel = call.kernel("max_unpool", [dtype as u32, index.bytes(), rank as u32, 0, 0, 0], || {
        build_fetch(dtype, index, rank)
    })?;
    let mut launcher = call.launch(kernel).write(out).read(input).read(&numbers);
    launcher = launcher.index(index, out.numel()).index(index, out.sizes[1]);
    launcher = pass_axes(pass_axes(launcher, &input.sizes[2..]), &out.sizes[2..]);
    for t in [input, out] {
        launcher = pass_strides(launcher, index, t);
    }
    launcher.threads(out.numel() as u64)
}

/// For each place, one more than the row-major number of the last element that goes there.
fn build_numbers(index: Scalar, rank: usize) -> Kernel {
    let b = Builder::new("max_unpool_numbers", [GROUP, 1, 1]);
    let (numbers, indices) = (b.pointer("numbers", DType::U32), b.pointer("indices", DType::I64));
    let faults = b.pointer("fault", DType::U32);
    let (n, channels) = (b.param("n", index), b.param("channels", index));
    let (image, name) = (b.param("image", Scalar::I64), b.param("operator", Scalar::U32));
    let size = axis_params(&b, "input", rank);
    let strides = Strides::declare(&b, index, rank);
    let i = linear_id(&b, index);
    b.if_(i.lt(n), || {
        let at = Place::new(i, channels, &size, false);
        let place = indices.load(strides.element(&at));
        b.if_else(
            place.ge(0) & place.lt(image),
            || {
                let plane = (at.batch * channels + at.channel).cast(Scalar::I64);
                numbers.atomic(Atomic::Max, plane * image + place, i.cast(Scalar::U32) + 1);
            },
            || fault::report(&b, faults, name, place, image, 0u32),
        );
    });
    b.finish()
}

/// Fetches the numbered elements; places of none get 0.
fn build_fetch(dtype: DType, index: Scalar, rank: usize) -> Kernel {
    let b = Builder::new("max_unpool", [GROUP, 1, 1]);
    let (out, input) = (b.pointer("out", dtype), b.pointer("input", dtype));
    let numbers = b.pointer("numbers", DType::U32);
    let (n, channels) = (b.param("n", index), b.param("channels", index));
    let [size, output] = ["input", "output"].map(|name| axis_params(&b, name, rank));
    let [in_strides, out_strides] = [(); 2].map(|()| Strides::declare(&b, index, rank));
    let i = linear_id(&b, index);
    b.if_(i.lt(n), || {
        let number = numbers.load(i);
        let value = b.var(b.constant_of(dtype.compute(), 0.0));
        b.if_(number.gt(0), || {
            let from = Place::new((number - 1).cast(index), channels, &size, false);
            value.set(input.load(in_strides.element(&from)));
        });
        out.store(out_strides.element(&Place::new(i, channels, &output, false)), value.get());
    });
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (index, rank) in [(Scalar::U32, 2), (Scalar::U64, 3)] {
            accepted(&build_numbers(index, rank));
            accepted(&build_fetch(DType::U16, index, rank));
        }
    }
}
