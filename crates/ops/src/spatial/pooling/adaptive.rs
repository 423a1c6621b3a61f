//! adaptive_avg_pool2d and adaptive_avg_pool3d: as many windows as the result has elements, overlapping where sizes do
//! not divide.

use super::check_not_empty;
use super::cover::{Covering, Kind};
use crate::check;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured::type_name;
use crate::operator::{Operator, op};
use crate::primitives::launch::{GROUP, linear_id};
use crate::spatial::geometry::{
    Place, Strides, axis_params, batched, for_each, index_type, pass_axes, pass_strides, result, sizes_with,
};
use crate::tensor::Tensor;
use crate::tensor::memory_format::is_channels_last;
use dml_kernel::{Builder, DType, Kernel, Scalar, Value};

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::_adaptive_avg_pool2d", |c| forward(c, 2, None)),
    op("aten::_adaptive_avg_pool2d.out", |c| forward(c, 2, Some(2))),
    op("aten::adaptive_avg_pool2d.out", |c| forward(c, 2, Some(2))),
    op("aten::_adaptive_avg_pool2d_backward", |c| backward(c, 2, None)),
    op("aten::_adaptive_avg_pool3d", |c| forward(c, 3, None)),
    op("aten::_adaptive_avg_pool3d.out", |c| forward(c, 3, Some(2))),
    op("aten::adaptive_avg_pool3d.out", |c| forward(c, 3, Some(2))),
    op("aten::_adaptive_avg_pool3d_backward", |c| backward(c, 3, None)),
    op("aten::adaptive_avg_pool3d_backward.grad_input", |c| backward(c, 3, Some(2))),
];

/// `(self, output_size[, out])`
fn forward(call: &mut Call, rank: usize, out: Option<usize>) -> Result<()> {
    let input = call.tensor(0)?;
    let wanted = call.ints(1)?;
    let name = format!("adaptive_avg_pool{rank}d");
    check!(wanted.len() == rank, Runtime, "{name}: output_size must be {rank}");
    check_rank(&format!("{name}()"), input, rank)?;
    // CPU lets channels be missing in two dimensions only.
    check_not_empty(&name, "input", input, input.dim() - if rank == 2 { 2 } else { 4 })?;
    check!(
        wanted.iter().all(|&n| n >= 0),
        Runtime,
        "{name}: elements of output_size must be greater than or equal to 0 but received {wanted:?}"
    );
    check_dtype(input, if rank == 2 { "adaptive_avg_pool2d" } else { "adaptive_avg_pool3d_cpu" })?;
    let result = result(call, out, input.dtype, &sizes_with(input, wanted), last(input, rank))?;
    run(call, false, rank, input, &result)?;
    call.ret(result);
    Ok(())
}

/// `(grad_output, self[, grad_input])`
fn backward(call: &mut Call, rank: usize, out: Option<usize>) -> Result<()> {
    let (grad, input) = (call.tensor(0)?, call.tensor(1)?);
    let name = format!("adaptive_avg_pool{rank}d_backward");
    let (this, what) = (format!("{name}_out_cpu_template"), if rank == 2 { "grad_output" } else { "gradOutput_" });
    check_rank(&this, input, rank)?;
    check!(
        grad.dim() == input.dim(),
        Runtime,
        "{this}: Expected dimensions {} for `{what}` but got dimensions {}",
        input.dim(),
        grad.dim()
    );
    check_not_empty(&name, "grad_output", grad, grad.dim() - rank)?;
    check!(
        grad.dtype == input.dtype,
        Runtime,
        "{this}: Expected dtype {} for `{what}` but got dtype {}",
        type_name(input.dtype),
        type_name(grad.dtype)
    );
    let lead = input.dim() - rank;
    check!(
        grad.sizes[..lead] == input.sizes[..lead],
        Runtime,
        "{name}: expected a gradient of the batch and channels of {}, got {}",
        input.describe(),
        grad.describe()
    );
    check_dtype(input, if rank == 2 { &name } else { "adaptive_avg_pool3d_backward_cpu" })?;
    let result = result(call, out, input.dtype, &input.sizes, last(input, rank))?;
    run(call, true, rank, grad, &result)?;
    call.ret(result);
    Ok(())
}

fn check_rank(name: &str, t: &Tensor, rank: usize) -> Result<()> {
    check!(
        t.dim() == rank + 1 || t.dim() == rank + 2,
        Runtime,
        "{name}: Expected {}D or {}D tensor, but got {:?}",
        rank + 1,
        rank + 2,
        t.sizes.as_slice()
    );
    Ok(())
}

fn check_dtype(t: &Tensor, name: &str) -> Result<()> {
    check!(t.dtype.is_float(), NotImplemented, "\"{name}\" not implemented for '{}'", t.dtype);
    Ok(())
}

/// Whether the result has its channels closest in memory: CPU keeps that in two dimensions only.
fn last(input: &Tensor, rank: usize) -> bool {
    rank == 2 && input.dim() == 4 && is_channels_last(input)
}

fn run(call: &Call, backward: bool, rank: usize, from: &Tensor, to: &Tensor) -> Result<()> {
    if to.numel() == 0 {
        return Ok(());
    }
    let (from, to) = (batched(from, rank), batched(to, rank));
    let (index, last) = (index_type(&[&from, &to]), is_channels_last(&to));
    let flags = u32::from(backward) | u32::from(last) << 1 | u32::from(index == Scalar::U64) << 2;
    let kernel = call.kernel("adaptive_avg_pool", [from.dtype as u32, flags, rank as u32, 0, 0, 0], || {
        build(backward, from.dtype, index, last, rank)
    })?;
    let mut launcher = call.launch(kernel).write(&to).read(&from);
    launcher = launcher.index(index, to.numel()).index(index, to.sizes[1]);
    for t in [&from, &to] {
        launcher = pass_axes(launcher, &t.sizes[2..]);
    }
    for t in [&from, &to] {
        launcher = pass_strides(launcher, index, t);
    }
    launcher.threads(to.numel() as u64)
}

fn build(backward: bool, dtype: DType, index: Scalar, channels_last: bool, rank: usize) -> Kernel {
    let name = if backward { "adaptive_avg_pool_backward" } else { "adaptive_avg_pool" };
    let b = Builder::new(name, [GROUP, 1, 1]);
    write(&b, backward, dtype, index, channels_last, rank);
    b.finish()
}

fn write<'b>(b: &'b Builder, backward: bool, dtype: DType, index: Scalar, channels_last: bool, rank: usize) {
    let to = b.pointer("to", dtype);
    let from = b.pointer("from", dtype);
    let (n, channels) = (b.param("n", index), b.param("channels", index));
    let [here, there] = ["from", "to"].map(|name| axis_params(b, name, rank));
    let [from_strides, to_strides] = [(); 2].map(|()| Strides::declare(b, index, rank));
    let compute = dtype.compute();
    // Coverage is symmetric: backward, the windows over an element are what the element would cover as a window.
    let covering = Covering::declare(b, Kind::Adaptive, &here, &there);
    let count = |ranges: &[[Value<'b>; 3]]| {
        ranges.iter().fold(b.i32(1), |product, [first, end, _]| product * (*end - *first)).cast(compute)
    };
    let i = linear_id(b, index);
    b.if_(i.lt(n), || {
        let at = Place::new(i, channels, &there, channels_last);
        let image = from_strides.image(&at);
        let sum = b.var(b.constant_of(compute, 0.0));
        let ranges: Vec<_> = at.at.iter().enumerate().map(|(d, &x)| covering.elements(d, x, None)).collect();
        for_each(b, &ranges, |pixel| {
            let value = from.load(image + from_strides.pixel(pixel));
            let term = if backward {
                let window: Vec<_> = pixel.iter().enumerate().map(|(d, &x)| covering.windows(d, x)).collect();
                value / count(&window)
            } else {
                value
            };
            sum.set(sum.get() + term);
        });
        let total = if backward { sum.get() } else { sum.get() / count(&ranges) };
        to.store(to_strides.element(&at), total);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_valid() {
        for dtype in [DType::F32, DType::F16, DType::F64] {
            for (backward, index, last, rank) in [(false, Scalar::U32, true, 2), (true, Scalar::U64, false, 3)] {
                crate::primitives::validate::accepted(&build(backward, dtype, index, last, rank));
            }
        }
    }
}
