//! Choices between tensors, and limits of elements.

use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{ALL_AND_I32, REALS};
use crate::operators::common::elementwise::{broadcast, compute, inputs, output_like};
use crate::operators::common::functions;
use crate::require;
use dml_compute::complex::copy::complex_as_bits;
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::pointwise::selection;
use dml_compute::{Dims, View};

/// `x` where the condition holds, else `y`, as bits; all broadcast to the result.
fn choose(call: &Call, condition: &View, values: [&View; 2], out: &View) -> Result<()> {
    let bits = |t: &View| {
        let mut bits = complex_as_bits(t);
        bits.dtype = bits.dtype.bits();
        bits
    };
    let out_bits = bits(out);
    // Elements of 16 bytes are pairs, which share a condition.
    let paired = out_bits.dim() > out.dim();
    let condition = condition.expand(&out.sizes);
    let one = |sizes: &Dims, last: i64| -> Dims { sizes.iter().copied().chain([last]).collect() };
    let condition = if paired {
        condition.as_strided(&one(&condition.sizes, 1), &one(&condition.strides, 0), 0)
    } else {
        condition
    };
    let operands = [condition, bits(values[0]), bits(values[1])].map(Input::Tensor);
    Ok(kernel::run(&call.cx(), &selection::WHERE, &[&out_bits], &operands, out_bits.dtype)?)
}

/// `SelectV2`: all three broadcast.
fn select_v2(call: &Call) -> Result<()> {
    let [condition, x, y] = [call.input(0)?, call.input(1)?, call.input(2)?];
    let sizes = broadcast(call.operator(), &x.sizes, &y.sizes)?;
    let sizes = broadcast(call.operator(), &condition.sizes, &sizes)?;
    let out = call.output(0, &sizes)?;
    choose(call, &condition, [&x, &y], &out)
}

/// `Select`: the condition is of the values' shape, one for all, or one for each row.
fn select(call: &Call) -> Result<()> {
    let [condition, x, y] = [call.input(0)?, call.input(1)?, call.input(2)?];
    require!(
        x.sizes == y.sizes,
        "'then' and 'else' must have the same size. but received: {:?} vs. {:?}",
        x.sizes,
        y.sizes
    );
    let condition = if condition.sizes == x.sizes || condition.dim() == 0 {
        condition
    } else {
        require!(
            condition.dim() == 1,
            "'cond' must be a vector, but saw shape: {:?}, or of the shape of 'then', {:?}",
            condition.sizes,
            x.sizes
        );
        require!(x.dim() > 0, "'then' must be at least a vector, but saw shape: {:?}", x.sizes);
        require!(
            condition.sizes[0] == x.sizes[0],
            "Number of batches of 'then' must match size of 'cond', but saw: {} vs. {}",
            x.sizes[0],
            condition.sizes[0]
        );
        let mut sizes = Dims::from_elem(1, x.dim());
        let mut strides = Dims::from_elem(0, x.dim());
        (sizes[0], strides[0]) = (condition.sizes[0], condition.strides[0]);
        condition.as_strided(&sizes, &strides, 0)
    };
    let out = call.output(0, &x.sizes)?;
    choose(call, &condition, [&x, &y], &out)
}

/// `ClipByValue`: limits of the tensor's shape, or of one element.
fn clip_by_value(call: &Call) -> Result<()> {
    let inputs = inputs(call)?;
    for (limit, name) in inputs[1..].iter().zip(["clip_value_min", "clip_value_max"]) {
        require!(
            limit.sizes == inputs[0].sizes || limit.dim() == 0,
            "{name} and t must have the same shape, or {name} must be a scalar: {:?} vs. {:?}",
            limit.sizes,
            inputs[0].sizes
        );
    }
    let out = output_like(call, &inputs[..1], &inputs[0].sizes)?;
    compute(&call.cx(), &functions::CLIP, &out, &inputs, &[])
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        Operator::plain("Select", select).of("T", ALL_AND_I32),
        Operator::plain("SelectV2", select_v2).of("T", ALL_AND_I32),
        Operator::plain("ClipByValue", clip_by_value).of("T", REALS),
    ]
}
