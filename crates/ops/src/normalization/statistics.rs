//! Statistics of an input, and running ones of many inputs.

use crate::check;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::pointwise::kernel::{self, Input};
use crate::reduction::variance::{Moments, Results};
use crate::reduction::{Axes, Reduction, reduce};
use crate::tensor::Tensor;
use crate::tensor::promote::accumulator;
use dml_kernel::DType;
use smallvec::SmallVec;

/// Mean, `1 / sqrt(variance + eps)` and variance over some dimensions, into as many tensors as are given.
pub fn moments(call: &Call, input: &Tensor, axes: Axes, eps: f64, outs: &[&Tensor]) -> Result<()> {
    moments_of(call, input, axes, eps, outs, false)
}

/// The same of batches, whose running mean an infinite element makes infinite, as on CPU.
pub fn batch_moments(call: &Call, input: &Tensor, axes: Axes, eps: f64, outs: &[&Tensor]) -> Result<()> {
    moments_of(call, input, axes, eps, outs, true)
}

fn moments_of(call: &Call, input: &Tensor, axes: Axes, eps: f64, outs: &[&Tensor], infinite: bool) -> Result<()> {
    let dtype = accumulator(input.dtype);
    let fold = Moments { scalar: dtype.compute(), results: Results::Normalizer { infinite } };
    let numbers = &[(dtype, Number::Double(eps))][..];
    reduce(call, &fold, &Reduction { inputs: &[input], outs, axes, tables: &[], numbers })
}

/// The dtype of parameters and statistics, checked: the input's, or float32 beside a half-precision input.
pub fn parameter_dtype(input: &Tensor, parameters: &[Option<&Tensor>]) -> Result<DType> {
    let given = || parameters.iter().flatten().map(|t| t.dtype);
    let Some(first) = given().next() else { return Ok(input.dtype) };
    if first == input.dtype {
        for other in given() {
            check!(other == first, Runtime, "expected scalar type {first} but found {other}");
        }
        return Ok(first);
    }
    for other in given() {
        check!(other == DType::F32, Runtime, "mixed dtype: expect parameter to have scalar type of Float");
    }
    let half = matches!(input.dtype, DType::F16 | DType::BF16);
    check!(half, Runtime, "mixed dtype: all inputs must share same datatype.");
    Ok(DType::F32)
}

/// `running = (1 - momentum) * running + momentum * of the batch`, the variance corrected by a factor.
pub fn update(call: &Call, running: [&Tensor; 2], batch: [&Tensor; 2], momentum: f64, correction: f64) -> Result<()> {
    let dtype = accumulator(running[0].dtype);
    let mut inputs: SmallVec<[Input; 7]> = running.iter().chain(&batch).map(|&t| Input::Tensor(t.clone())).collect();
    let numbers = [1.0 - momentum, momentum, correction];
    inputs.extend(numbers.map(|x| Input::Number(Number::Double(x), dtype)));
    kernel::run(call, "update_statistics", &running, &inputs, dtype, |_, v| {
        vec![v[0] * v[4] + v[2] * v[5], v[1] * v[4] + v[3] * v[6] * v[5]]
    })
}
