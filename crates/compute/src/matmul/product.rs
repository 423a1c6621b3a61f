//! Products of tensors: their result, what is added to them, and the `Problem` that computes them.

use crate::context::{Context, MatmulPrecision};
use crate::error::Result;
use crate::matmul::epilogue::{Bias, EpilogueOperands, MOST_TENSORS, Output, ResultTensor, Then};
use crate::matmul::operand::{Access, Axis, Digits, Pattern, PatternStrides, Source, Step};
use crate::matmul::padded;
use crate::matmul::problem::Problem;
use crate::movement::copy;
use crate::pointwise::activation::GELU;
use crate::pointwise::arithmetic::SCALE;
use crate::pointwise::expr::Expr;
use crate::pointwise::kernel::{self, Input};
use crate::scalar::Scalar;
use crate::view::overlap::ranges_overlap;
use crate::view::{Dims, View};
use dml_kernel::DType;
use smallvec::smallvec;

/// The dtype in which an operand is multiplied: its own, or the one to which autocast rounds
/// float32.
pub fn compute_dtype(cx: &Context, operand: &View) -> DType {
    let rounded = (operand.dtype == DType::F32).then(|| cx.environment.policy().product_dtype()).flatten();
    rounded.unwrap_or(operand.dtype)
}

/// What is added to a product, expanded to its shape, and its factor.
pub type Addend = Option<(View, Scalar)>;

/// Whether a factor is 0 in this dtype: then the tensor that it multiplies is not read, and NaN in
/// it is ignored.
pub fn is_zero(dtype: DType, factor: Scalar) -> bool {
    if dtype.is_integer() { factor.to_i64() == 0 } else { factor.to_f64() == 0.0 }
}

/// Sizes or strides of the last `N` dimensions, with `fill` for missing ones.
fn last<const N: usize>(dims: &Dims, fill: i64) -> [i64; N] {
    std::array::from_fn(|i| (dims.len() + i).checked_sub(N).map_or(fill, |d| dims[d]))
}

/// `then(alpha * a @ b + addend)`.
pub struct Product<'t> {
    /// `[m, k]` and `[k, n]`, or as many batches of them; of any strides.
    pub factors: [&'t View; 2],
    /// The dtype in which each is multiplied: its own, or one of 16 bits that float32 is rounded
    /// to.
    pub dtypes: [DType; 2],
    /// The factor of the sums. If it is 0, nothing is multiplied.
    pub alpha: Scalar,
    /// What is added. A factor of 0 must have been left out.
    pub addend: Addend,
    /// What becomes of each element, in a result of floats: an expression of it, and of tensors of
    /// the result's shape.
    pub then: Option<(Expr, &'t [View])>,
}

impl<'t> Product<'t> {
    /// The product alone, in the factors' own dtype.
    pub fn new(a: &'t View, b: &'t View) -> Self {
        let dtypes = [a.dtype, b.dtype];
        Product { factors: [a, b], dtypes, alpha: Scalar::Int(1), addend: None, then: None }
    }

    /// With a tensor of the product's shape added.
    #[must_use]
    pub fn with(self, addend: View) -> Self {
        Product { addend: Some((addend, Scalar::Int(1))), ..self }
    }

    /// Enqueues it into `out`: `[m, n]` or as many batches, which may lack dimensions of size 1 at
    /// its end, and may overlap operands.
    pub fn run(self, cx: &Context, out: &View) -> Result<()> {
        let Product { factors: [a, b], dtypes, alpha, addend, then } = self;
        let ([batch, m, k], [.., n]) = (last::<3>(&a.sizes, 1), last::<3>(&b.sizes, 1));
        let (sa, sb) = (last::<3>(&a.strides, 0), last::<3>(&b.strides, 0));
        // Matrix units' kernels have few invocations and no registers left for gelu's hundred
        // operations an element: 4096 x 4096 of float16 took 731 µs in one launch on an H100, and
        // 524 in two.
        let fused = then
            .filter(|(expr, tensors)| tensors.len() <= MOST_TENSORS && (out.dtype.bytes() > 2 || !expr.calls(&GELU)));
        let multiplied = multiply_into(cx, out, [a, b], alpha, addend, k, |finish| {
            Ok(Problem {
                size: [batch, m, n, k],
                a: padded::source(cx, a, [batch, m, k], sa, n, dtypes[0])?,
                b: padded::source(cx, b, [batch, n, k], [sb[0], sb[2], sb[1]], m, dtypes[1])?,
                finish: EpilogueOperands { then: fused.map(|(expr, tensors)| epilogue(expr, tensors)), ..finish },
            })
        })?;
        match then {
            Some((expr, tensors)) if out.numel() > 0 && !(multiplied && fused.is_some()) => {
                kernel::run_over(cx, expr, out, tensors)
            }
            _ => Ok(()),
        }
    }
}

/// The epilogue of an expression of at most [`MOST_TENSORS`] tensors.
fn epilogue(expr: Expr, tensors: &[View]) -> Then {
    let tensor = |t: &View| ResultTensor::new(t.into(), result_strides(t));
    Then { expr, tensors: std::array::from_fn(|i| tensors.get(i).map(tensor)) }
}

/// The strides of the batch, rows and columns. A tensor of fewer dimensions than two is a column,
/// or one element.
fn result_strides(t: &View) -> [i64; 3] {
    match t.strides[..] {
        [] => [0, 1, 1],
        [m] => [0, m, 1],
        [m, n] => [0, m, n],
        _ => last::<3>(&t.strides, 0),
    }
}

/// `out = alpha * (sum over the batch of a @ b) + addend`: one product, whose inner index is batch
/// and k together. `a` is `[batch, m, k]`, `b` `[batch, k, n]`, both of the dtype of `out`
/// (`[m, n]`).
pub fn sum_of_batch(cx: &Context, a: &View, b: &View, alpha: Scalar, addend: Addend, out: &View) -> Result<()> {
    let operand = |t: &View, outer: usize, inner: usize| {
        let digits = |plain| Digits { plain, plain_is_slowest: true };
        let pattern = Pattern::Digits { outer: digits(1), inner: digits(2), windows: 0, divided: false };
        let step = |d: usize| Step { size: t.sizes[d], stride: t.strides[d] };
        let strides = PatternStrides::Digits {
            outer: smallvec![step(outer)],
            inner: smallvec![step(0), step(inner)],
            windows: smallvec![],
        };
        let axis = if t.strides[outer] == 1 { Axis::Outer } else { Axis::Inner };
        let access = Access { dtype: t.dtype, rounds_to: None, axis, wide: false, pattern, is_multiple_of_step: false };
        Source::new(t.into(), 0, access, strides)
    };
    let k = a.sizes[0] * a.sizes[2];
    multiply_into(cx, out, [a, b], alpha, addend, k, |finish| {
        let size = [1, a.sizes[1], b.sizes[2], k];
        Ok(Problem { size, a: operand(a, 1, 2), b: operand(b, 2, 1), finish })
    })?;
    Ok(())
}

/// Runs a problem into `out`, which may overlap its operands, and says whether there was one: not
/// if the result is empty, or nothing is multiplied.
pub(crate) fn multiply_into(
    cx: &Context,
    out: &View,
    operands: [&View; 2],
    alpha: Scalar,
    addend: Addend,
    k: i64,
    problem: impl FnOnce(EpilogueOperands) -> Result<Problem>,
) -> Result<bool> {
    if out.numel() == 0 {
        return Ok(false);
    }
    // As in BLAS, what is multiplied by 0 is not read, and its infinities are not seen.
    let k = if is_zero(out.dtype, alpha) { 0 } else { k };
    if k == 0 && addend.is_none() {
        copy::fill_with(cx, out, Scalar::Int(0))?;
        return Ok(false);
    }
    // A result that overlaps an operand is computed in memory of its own.
    let overlaps = operands.iter().any(|t| ranges_overlap(t, out))
        || addend
            .as_ref()
            .is_some_and(|(t, _)| ranges_overlap(t, out) && (t.data, &t.strides) != (out.data, &out.strides));
    let apart = if overlaps { Some(cx.empty(out.dtype, &out.sizes)?) } else { None };
    let target = apart.as_ref().unwrap_or(out);
    if let (0, Some((bias, beta))) = (k, &addend) {
        let inputs = [Input::Tensor(bias.clone()), Input::Number(*beta, out.dtype)];
        kernel::run(cx, &SCALE, &[target], &inputs, out.dtype)?;
    } else {
        let bias = addend.map(|(tensor, beta)| {
            let tensor = ResultTensor::new((&tensor).into(), result_strides(&tensor));
            Bias { tensor, beta }
        });
        let output = Output { strides: result_strides(target), memory: target.into(), split: None };
        let mut problem = problem(EpilogueOperands { out: output, alpha, bias, then: None })?;
        if problem.size[0] == 1 {
            problem.finish.out.strides[0] = 0;
            for tensor in problem.finish.read_mut() {
                tensor.strides[0] = 0;
            }
        }
        let single = out.dtype == DType::F32;
        let precision = if single { cx.environment.policy().matmul_precision() } else { MatmulPrecision::Highest };
        problem.run_with_precision(cx, precision)?;
    }
    if let Some(result) = apart {
        copy::device_copy(cx, &result, out)?;
    }
    Ok(k > 0)
}
