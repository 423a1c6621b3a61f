//! max_unpool2d and max_unpool3d: elements are put back to the positions from which max pooling
//! took them.
//!
//! If several elements have one position, PyTorch's result is any of them. Here it is the last one
//! in row-major order: a first pass finds for every position the index of the last element that
//! goes there, and a second one gathers.

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::spatial::geometry::result;
use crate::{check, operators};
use dml_compute::spatial::geometry::{batched, channels_last, sizes_with};
use dml_compute::spatial::pooling::unpool::run;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    unpool(self, indices, output_size, stride = &[1; 3], padding = &[0; 3], out; 2) {
        "aten::max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor",
        "aten::max_unpool2d.out(Tensor self, Tensor indices, SymInt[2] output_size, *, Tensor(a!) out) -> Tensor(a!)",
    }
    unpool(self, indices, output_size, stride, padding, out; 3) {
        "aten::max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> Tensor",
        "aten::max_unpool3d.out(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// Stride and padding, which the operator has in three dimensions, are only checked.
fn unpool(
    call: &mut Call,
    input: &View,
    indices: &View,
    wanted: &[i64],
    stride: &[i64],
    padding: &[i64],
    out: Out,
    rank: usize,
) -> Result<()> {
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
    for (what, list) in [("stride", stride), ("padding", padding)] {
        check!(
            list.len() == 3,
            Runtime,
            "There should be exactly three elements ({names}) in {what}, but got: {} elements.",
            list.len()
        );
    }
    check!(stride.iter().all(|&s| s > 0), Runtime, "strides should be greater than zero, but got stride: {stride:?}");
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
    let last = rank == 2 && channels_last(input, rank);
    let result = result(call, out.given(), input.dtype, &sizes_with(input, wanted), last)?;
    let [from, batched_indices, to] = [input, indices, &result].map(|t| batched(t, rank));
    run(call, &from, &batched_indices, &to)?;
    call.ret(result);
    Ok(())
}
