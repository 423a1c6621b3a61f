//! Normalisation: batch, layer, group and RMS norm, weight norm and renorm.
//!
//! All norms but the last two subtract a mean and multiply by the inverse of a deviation, both taken over some
//! dimensions of the input: `y = (x - mean) * scale * weight + bias`. What differs is the dimensions, so the parts are
//! common: [`moments`] (one pass over the input, see [`crate::reduction::variance`]), [`Terms::normalize`], [`sums`] for
//! the gradient and [`Terms::gradient`]. Rows that fit into registers are normalised in one pass ([`rows`]).

mod batch;
mod group;
mod layer;
pub mod renorm;
mod rms;
mod rows;
pub mod softmax;
mod sums;
mod synchronized;
mod weight;

use crate::check;
use crate::operator::Operator;
use crate::operator::call::{Call, Ret, Scalar as Number};
use crate::operator::error::Result;
use crate::pointwise::kernel::{self, Input};
use crate::reduction::variance::{Moments, Results};
use crate::reduction::{Axes, Reduction, reduce};
use crate::tensor::promote::accumulator;
use crate::tensor::{Dims, Tensor};
use dml_kernel::{DType, Value};
use smallvec::SmallVec;

/// This family's overloads.
pub const OPERATORS: &[&[Operator]] = &[
    batch::OPERATORS,
    group::OPERATORS,
    layer::OPERATORS,
    renorm::OPERATORS,
    rms::OPERATORS,
    synchronized::OPERATORS,
    weight::OPERATORS,
];

/// What normalises an input: views of the input's shape, most of them expanded.
#[derive(Default)]
struct Terms {
    mean: Option<Tensor>,
    /// The inverse of the deviation.
    scale: Option<Tensor>,
    weight: Option<Tensor>,
    bias: Option<Tensor>,
}

impl Terms {
    /// `out = (x - mean) * scale * weight + bias`, of what there is.
    fn normalize(&self, call: &Call, x: &Tensor, out: &Tensor) -> Result<()> {
        let terms = [Some(x), self.mean.as_ref(), self.scale.as_ref(), self.weight.as_ref(), self.bias.as_ref()];
        let (variant, inputs) = present(&terms);
        kernel::run(call, "normalize", variant, &[out], &inputs, accumulator(x.dtype), |_, v| {
            let term = |i| pick(v, variant, i);
            let centred = minus(v[0], term(1));
            vec![plus(times(times(centred, term(2)), term(3)), term(4))]
        })
    }

    /// The input's gradient: `(g * weight - (total + y * product) / n) * scale` with `y = (x - mean) * scale`.
    fn gradient(&self, call: &Call, grad: &Tensor, x: &Tensor, sums: &Sums, out: &Tensor) -> Result<()> {
        let (total, product) = (sums.total.as_ref(), sums.product.as_ref());
        let weight = self.weight.as_ref();
        let terms = [Some(grad), Some(x), self.mean.as_ref(), self.scale.as_ref(), weight, total, product];
        let (variant, mut inputs) = present(&terms);
        let dtype = accumulator(x.dtype);
        inputs.push(Input::Number(Number::Double(1.0 / sums.count as f64), dtype));
        let outside = sums.weighted_after;
        kernel::run(call, "normalize_backward", variant | u32::from(outside) << 8, &[out], &inputs, dtype, |_, v| {
            let term = |i| pick(v, variant, i);
            let share = v[v.len() - 1];
            let (inner, outer) = if outside { (None, term(4)) } else { (term(4), None) };
            let normal = times(minus(v[1], term(2)), term(3));
            let mut mean = term(5);
            if let Some(product) = term(6) {
                mean = Some(plus(normal * product, mean));
            }
            let centred = minus(times(v[0], inner), mean.map(|m| m * share));
            vec![times(times(centred, term(3)), outer)]
        })
    }
}

/// Sums over what was normalised together, as views of the input's shape.
struct Sums {
    /// Of the weighted gradient.
    total: Option<Tensor>,
    /// Of the weighted gradient times the normalised input.
    product: Option<Tensor>,
    /// Elements normalised together.
    count: i64,
    /// The weight is one number for all of them, and the sums are without it.
    weighted_after: bool,
}

/// A bit for each term that there is, and those as inputs.
fn present(terms: &[Option<&Tensor>]) -> (u32, SmallVec<[Input; 8]>) {
    let variant = terms.iter().enumerate().fold(0, |bits, (i, t)| bits | u32::from(t.is_some()) << i);
    (variant, terms.iter().flatten().map(|&t| Input::Tensor(t.clone())).collect())
}

/// Term `i`, given the values of those that there are.
fn pick<'b>(values: &[Value<'b>], variant: u32, i: u32) -> Option<Value<'b>> {
    let before = (variant & ((1 << i) - 1)).count_ones();
    (variant >> i & 1 == 1).then(|| values[before as usize])
}

fn minus<'b>(x: Value<'b>, y: Option<Value<'b>>) -> Value<'b> {
    y.map_or(x, |y| x - y)
}

fn plus<'b>(x: Value<'b>, y: Option<Value<'b>>) -> Value<'b> {
    y.map_or(x, |y| x + y)
}

fn times<'b>(x: Value<'b>, y: Option<Value<'b>>) -> Value<'b> {
    y.map_or(x, |y| x * y)
}

/// Mean, `1 / sqrt(variance + eps)` and variance over some dimensions, into as many tensors as are given.
fn moments(call: &Call, input: &Tensor, axes: Axes, eps: f64, outs: &[&Tensor]) -> Result<()> {
    let dtype = accumulator(input.dtype);
    let fold = Moments { scalar: dtype.compute(), results: Results::Normalizer };
    let numbers = &[(dtype, Number::Double(eps))][..];
    reduce(call, &fold, &Reduction { inputs: &[input], outs, axes, tables: &[], numbers })
}

/// The dtype of parameters and statistics, checked: the input's, or float32 beside a half-precision input.
fn parameter_dtype(input: &Tensor, parameters: &[Option<&Tensor>]) -> Result<DType> {
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

/// A row of one number a channel (dimension 1), as a view of the shape of `like`.
fn of_channels(row: &Tensor, like: &Tensor) -> Tensor {
    let mut strides = Dims::from_elem(0, like.dim());
    strides[1] = row.strides[0];
    row.as_strided(&like.sizes, &strides, 0)
}

/// Every dimension but that of channels.
fn all_but_channels(call: &Call, rank: usize) -> Result<Axes> {
    let dims: Dims = (0..rank as i64).filter(|&d| d != 1).collect();
    Axes::listed(call, &dims, rank, false)
}

/// Checks a row of one number a channel.
fn check_channels(name: &str, row: Option<&Tensor>, channels: i64) -> Result<()> {
    if let Some(row) = row {
        let n = row.numel();
        check!(row.dim() == 1 && n == channels, Runtime, "{name} should contain {channels} elements not {n}");
    }
    Ok(())
}

/// Adds a result that was asked for, or none.
fn ret_if(call: &mut Call, t: Option<Tensor>) {
    call.ret_value(t.map_or(Ret::None, Ret::Tensor));
}
