//! Resampling of images (`torch.nn.functional.interpolate`): nearest, linear, cubic, with and without antialiasing.
//!
//! An interpolation is a weighted sum along each axis ([`axis`]). Both directions gather: an element of a result visits
//! what it is made of in a fixed order. Where that is much, axes are resampled one after the other ([`kernel`]).

mod axis;
mod kernel;

pub use self::axis::cubic_weights;

use self::axis::{AxisPlan, Filter};
use self::kernel::Plan;
use crate::check;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::spatial::geometry::{result, sizes_with};
use crate::tensor::Tensor;
use crate::tensor::memory_format::is_channels_last;
use dml_kernel::DType;

/// The four overloads of an interpolation over so many axes.
macro_rules! resampling {
    ($filter:ident, $rank:literal, $name:literal) => {
        [
            op(concat!("aten::", $name), |c| forward(c, Filter::$filter, $rank, false)),
            op(concat!("aten::", $name, ".out"), |c| forward(c, Filter::$filter, $rank, true)),
            op(concat!("aten::", $name, "_backward"), |c| backward(c, Filter::$filter, $rank, false)),
            op(concat!("aten::", $name, "_backward.grad_input"), |c| backward(c, Filter::$filter, $rank, true)),
        ]
    };
}

/// This family's overloads.
pub const OPERATORS: &[&[Operator]] = &[
    &resampling!(Nearest, 1, "upsample_nearest1d"),
    &resampling!(Nearest, 2, "upsample_nearest2d"),
    &resampling!(Nearest, 3, "upsample_nearest3d"),
    &resampling!(NearestExact, 1, "_upsample_nearest_exact1d"),
    &resampling!(NearestExact, 2, "_upsample_nearest_exact2d"),
    &resampling!(NearestExact, 3, "_upsample_nearest_exact3d"),
    &resampling!(Linear, 1, "upsample_linear1d"),
    &resampling!(Linear, 2, "upsample_bilinear2d"),
    &resampling!(Linear, 3, "upsample_trilinear3d"),
    &resampling!(Cubic, 2, "upsample_bicubic2d"),
    &resampling!(LinearAntialias, 2, "_upsample_bilinear2d_aa"),
    &resampling!(CubicAntialias, 2, "_upsample_bicubic2d_aa"),
];

/// `(self, output_size[, align_corners], scales...[, out])`
fn forward(call: &mut Call, filter: Filter, rank: usize, out: bool) -> Result<()> {
    let input = call.tensor(0)?;
    let output = call.ints(1)?;
    check_sizes(rank, &input.sizes, output)?;
    check!(
        input.sizes[1..].iter().all(|&n| n > 0),
        Runtime,
        "Non-empty {}D data tensor expected but got a tensor with sizes {:?}",
        rank + 2,
        input.sizes.as_slice()
    );
    let bytes = input.dtype == DType::U8 && (filter.nearest() || rank == 2);
    check!(
        input.dtype.is_float() || bytes,
        NotImplemented,
        "\"{}\" not implemented for '{}'",
        name(filter, rank),
        input.dtype
    );
    let (plan, end) = plan(call, 2, filter, &input.sizes[2..], output, input.dtype)?;
    let result = result(call, out.then_some(end), input.dtype, &sizes_with(input, output), is_channels_last(input))?;
    kernel::run(call, &plan, false, input, &result)?;
    call.ret(result);
    Ok(())
}

/// `(grad_output, output_size, input_size[, align_corners], scales...[, grad_input])`
fn backward(call: &mut Call, filter: Filter, rank: usize, out: bool) -> Result<()> {
    let grad = call.tensor(0)?;
    let (output, sizes) = (call.ints(1)?, call.ints(2)?);
    check_sizes(rank, sizes, output)?;
    check_gradient(grad, rank, sizes, output)?;
    check!(
        grad.dtype.is_float(),
        NotImplemented,
        "\"{}\" not implemented for '{}'",
        call.name.trim_start_matches("aten::").trim_end_matches(".grad_input"),
        grad.dtype
    );
    let (plan, end) = plan(call, 3, filter, &sizes[2..], output, grad.dtype)?;
    let result = result(call, out.then_some(end), grad.dtype, sizes, is_channels_last(grad))?;
    kernel::run(call, &plan, true, grad, &result)?;
    call.ret(result);
    Ok(())
}

/// The arguments from position `first`, and the position after them.
fn plan(
    call: &Call,
    first: usize,
    filter: Filter,
    input: &[i64],
    output: &[i64],
    dtype: DType,
) -> Result<(Plan, usize)> {
    let (align_corners, first) = if filter.nearest() { (false, first) } else { (call.flag(first)?, first + 1) };
    let axes = input.iter().zip(output).enumerate().map(|(d, (&from, &to))| {
        let given = call.opt_scalar(first + d)?.map(Number::to_f64);
        Ok(AxisPlan::new(filter, align_corners, from, to, given, dtype == DType::F64))
    });
    Ok((Plan { filter, align_corners, axes: axes.collect::<Result<_>>()? }, first + input.len()))
}

/// What CPU calls the kernel in its refusal of a dtype.
fn name(filter: Filter, rank: usize) -> &'static str {
    match (filter, rank) {
        (Filter::Nearest | Filter::NearestExact, 2) => "upsample_nearest2d_channels_last",
        (Filter::Nearest | Filter::NearestExact, _) => "compute_indices_weights_nearest",
        (Filter::Linear, 2) => "upsample_bilinear2d_channels_last",
        (Filter::Linear, _) => "compute_indices_weights_linear",
        (Filter::Cubic, _) => "compute_indices_weights_cubic",
        _ => "compute_index_ranges_weights",
    }
}

fn check_sizes(rank: usize, input: &[i64], output: &[i64]) -> Result<()> {
    check!(output.len() == rank, Runtime, "It is expected output_size equals to {rank}, but got size {}", output.len());
    let all = rank + 2;
    check!(input.len() == all, Runtime, "It is expected input_size equals to {all}, but got size {}", input.len());
    let named = |sizes: &[i64]| {
        let names = &["D", "H", "W"][3 - rank..];
        names.iter().zip(sizes).map(|(name, n)| format!("{name}: {n}")).collect::<Vec<_>>().join(", ")
    };
    check!(
        input[2..].iter().chain(output).all(|&n| n > 0),
        Runtime,
        "Input and output sizes should be greater than 0, but got input ({}){} output ({})",
        named(&input[2..]),
        if rank == 1 { " and" } else { "" },
        named(output)
    );
    Ok(())
}

fn check_gradient(grad: &Tensor, rank: usize, sizes: &[i64], output: &[i64]) -> Result<()> {
    let all = rank + 2;
    let expected = sizes[..2].iter().chain(output);
    if rank == 1 {
        for (d, n) in expected.enumerate() {
            check!(
                grad.dim() == all && grad.sizes[d] == *n,
                Runtime,
                "Expected a tensor of dimension {all} and tensor.size[{d}] == {n} but got: dimension {} and \
                 tensor.size[{d}] = {}",
                grad.dim(),
                grad.sizes.get(d).unwrap_or(&0)
            );
        }
        return Ok(());
    }
    check!(
        grad.dim() == all,
        Runtime,
        "Expected grad_output to be a tensor of dimension {all} but got: dimension {}",
        grad.dim()
    );
    for (d, n) in expected.enumerate() {
        check!(
            grad.sizes[d] == *n,
            Runtime,
            "Expected grad_output to have the same shape as output; output.size({d}) = {n} but got \
             grad_output.size({d}) = {}",
            grad.sizes[d]
        );
    }
    Ok(())
}
