//! max_unpool2d and max_unpool3d: elements go back to where max pooling found them.
//!
//! Several elements may have one place, of which PyTorch keeps any. Here the last one in row-major order stays: a first
//! pass numbers for every place the last element that goes there, a second one fetches it.

use crate::movement::copy::fill_with;
use crate::operator::argument::Out;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::fault::Fault;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::spatial::geometry::{
    Coordinates, ImageStrides, PerAxis, batched, channels_last, index_type, result, sizes_with,
};
use crate::tensor::Tensor;
use crate::{check, operators};
use dml_engine::interface::{I64, Index, ReadRange, WriteRange};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Atomic, Builder, DType, ScalarType};

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

/// Stride and padding, which three dimensions have, are only checked.
fn unpool(
    call: &mut Call,
    input: &Tensor,
    indices: &Tensor,
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
    let arguments = NumbersArguments {
        numbers: &numbers,
        indices,
        fault: call.fault_of_index(),
        numel: n,
        channels: input.sizes[1],
        image: out.sizes[2..].iter().product(),
        size: &input.sizes[2..],
        strides: indices,
    };
    call.run_threads(&Numbers { index, rank }, &arguments, n as u64)?;
    if out.numel() == 0 {
        return Ok(());
    }
    let arguments = FetchArguments {
        out: out.range(),
        input: input.range(),
        numbers: &numbers,
        numel: out.numel(),
        channels: out.sizes[1],
        size: &input.sizes[2..],
        output: &out.sizes[2..],
        in_strides: input,
        out_strides: out,
    };
    call.run_threads(&Fetch { dtype: out.dtype.bits(), index, rank }, &arguments, out.numel() as u64)
}

/// Everything that changes the code of the kernel that numbers elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Numbers {
    index: ScalarType,
    rank: usize,
}

parameters! {
    Numbers as s => NumbersArguments, NumbersParameters {
        numbers: Output = DType::U32,
        indices: Input = DType::I64,
        fault: Fault,
        numel: Index = s.index,
        channels: Index = s.index,
        /// Places of an image of the result.
        image: I64,
        size: PerAxis = s.rank,
        strides: ImageStrides = (s.index, s.rank),
    }
}

/// For each place, one more than the row-major number of the last element that goes there.
impl KernelSpec for Numbers {
    fn name(&self) -> &'static str {
        "max_unpool_numbers"
    }

    fn write<'b>(&self, b: &'b Builder, p: NumbersParameters<'b>) {
        let i = linear_id(b, self.index);
        b.if_(i.lt(p.numel), || {
            let at = Coordinates::new(i, p.channels, &p.size, false);
            let place = p.indices.load(p.strides.element(&at));
            b.if_else(
                place.ge(0) & place.lt(p.image),
                || {
                    let plane = (at.batch * p.channels + at.channel).cast(ScalarType::I64);
                    p.numbers.atomic(Atomic::Max, plane * p.image + place, i.cast(ScalarType::U32) + 1);
                },
                || p.fault.report(place, p.image, 0u32),
            );
        });
    }
}

/// Everything that changes the code of the kernel that fetches elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Fetch {
    /// Elements as bits: they are only moved.
    dtype: DType,
    index: ScalarType,
    rank: usize,
}

parameters! {
    Fetch as s => FetchArguments, FetchParameters {
        out: WriteRange = s.dtype,
        input: ReadRange = s.dtype,
        numbers: Input = DType::U32,
        numel: Index = s.index,
        channels: Index = s.index,
        size: PerAxis = s.rank,
        output: PerAxis = s.rank,
        in_strides: ImageStrides = (s.index, s.rank),
        out_strides: ImageStrides = (s.index, s.rank),
    }
}

/// Fetches the numbered elements; places of none get 0.
impl KernelSpec for Fetch {
    fn name(&self) -> &'static str {
        "max_unpool"
    }

    fn write<'b>(&self, b: &'b Builder, p: FetchParameters<'b>) {
        let i = linear_id(b, self.index);
        b.if_(i.lt(p.numel), || {
            let number = p.numbers.load(i);
            let value = b.var(b.constant_of(self.dtype.compute(), 0.0));
            b.if_(number.gt(0), || {
                let from = Coordinates::new((number - 1).cast(self.index), p.channels, &p.size, false);
                value.set(p.input.load(p.in_strides.element(&from)));
            });
            p.out.store(p.out_strides.element(&Coordinates::new(i, p.channels, &p.output, false)), value.get());
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (index, rank) in [(ScalarType::U32, 2), (ScalarType::U64, 3)] {
            accepted(&Numbers { index, rank }.build());
            accepted(&Fetch { dtype: DType::U16, index, rank }.build());
        }
    }
}
