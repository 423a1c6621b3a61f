//! Samples of rows of weights: multinomial.
//!
//! Without replacement the largest of `weight / exponential` win (P. Efraimidis and P. Spirakis, "Weighted random
//! sampling with a reservoir", 2006); with replacement the running sums of the weights are searched.

use crate::check;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::structured;
use crate::operator::{Operator, op};
use crate::pointwise::kernel::{self, Input};
use crate::primitives::launch::{GROUP, linear_id};
use crate::random::philox::{fill, per_block, unit, unit_open};
use crate::reduction::histogram::extremes;
use crate::reduction::scan;
use crate::reduction::{Axes, extremum};
use crate::sorting::{key, operands::Operands, rank};
use crate::tensor::{Dims, Tensor};
use dml_kernel::{Builder, DType, Kernel, Scalar, math};

/// This family's overloads.
pub const OPERATORS: &[Operator] =
    &[op("aten::multinomial", |c| multinomial(c, None)), op("aten::multinomial.out", |c| multinomial(c, Some(4)))];

/// `multinomial(self, num_samples, replacement, generator[, out])`. Waits for the check of the weights.
fn multinomial(call: &mut Call, out: Option<usize>) -> Result<()> {
    let input = call.tensor(0)?;
    let (count, replacement) = (call.int(1)?, call.flag(2)?);
    check!((1..=2).contains(&input.dim()), Runtime, "prob_dist must be 1 or 2 dim");
    check!(
        input.dtype.is_float(),
        Runtime,
        "multinomial only supports floating-point dtypes for input, got: {}",
        input.dtype
    );
    check!(count > 0, Runtime, "cannot sample n_sample <= 0 samples");
    let dim = input.dim() - 1;
    let n = input.sizes[dim];
    check!(
        replacement || count <= n,
        Runtime,
        "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
    );
    check!(n <= 1 << 24, Runtime, "number of categories cannot exceed 2^24");
    let mut sizes = input.sizes.clone();
    sizes[dim] = count;
    let out = structured::out(call, out, DType::I64, &sizes)?;
    if out.numel() > 0 {
        check_weights(call, input, dim)?;
        let wide = if input.dtype == DType::F64 { DType::F64 } else { DType::F32 };
        if replacement && count > 1 {
            with_replacement(call, input, dim, wide, &out)?;
        } else {
            without_replacement(call, input, dim, wide, &out)?;
        }
    }
    call.ret(out);
    Ok(())
}

fn check_weights(call: &Call, input: &Tensor, dim: usize) -> Result<()> {
    let [least, most] = extremes(call, input)?.map(Number::to_f64);
    check!(
        least >= 0.0 && most < f64::INFINITY,
        Runtime,
        "probability tensor contains either `inf`, `nan` or element < 0"
    );
    let axes = Axes::listed(call, &[dim as i64], input.dim(), false)?;
    let sizes = axes.sizes(&input.sizes);
    let (low, high) = (call.empty(input.dtype, &sizes)?, call.empty(input.dtype, &sizes)?);
    extremum::both(call, input, [&low, &high], axes)?;
    let [least, _] = extremes(call, &high)?.map(Number::to_f64);
    check!(least > 0.0, Runtime, "invalid multinomial distribution (sum of probabilities <= 0)");
    Ok(())
}

fn without_replacement(call: &Call, input: &Tensor, dim: usize, wide: DType, out: &Tensor) -> Result<()> {
    let scores = call.empty(wide, &input.sizes)?;
    fill(call, 3, "multinomial_noise", &scores, per_block(wide), &[], wide, &|_, words, _| {
        unit_open(words, wide).into_iter().map(|u| -math::log(u)).collect()
    })?;
    let inputs = [Input::Tensor(input.clone()), Input::Tensor(scores.clone())];
    kernel::run(call, "multinomial_score", 0, &[&scores], &inputs, wide, |_, v| vec![v[0] / v[1]])?;
    let values = call.empty(wide, &out.sizes)?;
    rank::first(call, &Operands::new(&scores, dim, &values, out), out.sizes[dim], true, true)
}

fn with_replacement(call: &Call, input: &Tensor, dim: usize, wide: DType, out: &Tensor) -> Result<()> {
    let (sums, noise) = (call.empty(wide, &input.sizes)?, call.empty(wide, &out.sizes)?);
    scan::sums(call, input, &sums, dim)?;
    fill(call, 3, "unit", &noise, per_block(wide), &[], wide, &|_, words, _| unit(words, wide))?;
    let mut strides: Dims = out.strides.clone();
    if strides.len() == 1 {
        strides.insert(0, 0);
    }
    let kernel = call.kernel("multinomial", [wide as u32, 0, 0, 0, 0, 0], || build(wide))?;
    let launcher = call.launch(kernel).read(&sums).read(&noise).write(out).u32(input.sizes[dim] as u32);
    let numbers = [out.numel(), out.sizes[dim], strides[0], strides[1]];
    numbers.iter().fold(launcher, |l, &x| l.i64(x)).threads(out.numel() as u64)
}

/// The first category whose running sum is above a uniform part of the whole: its weight is not 0.
fn build(wide: DType) -> Kernel {
    let b = Builder::new("multinomial", [GROUP, 1, 1]);
    let (sums, noise, out) = (b.pointer("sums", wide), b.pointer("noise", wide), b.pointer("out", DType::I64));
    let n = b.param("n", Scalar::U32);
    let [count, samples, row_stride, stride] =
        ["count", "samples", "row_stride", "stride"].map(|name| b.param(name, Scalar::U64));
    let i = linear_id(&b, Scalar::U64);
    b.if_(i.lt(count), || {
        let row = i / samples;
        let first = row * n.cast(Scalar::U64);
        let whole = sums.load(first + (n - 1).cast(Scalar::U64));
        let wanted = noise.load(i) * whole;
        let category = key::partition_point(n, |c| sums.load(first + c.cast(Scalar::U64)).le(wanted));
        // Rounding may reach the whole, beyond which there is none.
        let last = key::partition_point(n, |c| sums.load(first + c.cast(Scalar::U64)).lt(whole));
        out.store(row * row_stride + (i - row * samples) * stride, category.min(last));
    });
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_valid() {
        crate::primitives::validate::accepted(&build(DType::F32));
        crate::primitives::validate::accepted(&build(DType::F64));
    }
}
