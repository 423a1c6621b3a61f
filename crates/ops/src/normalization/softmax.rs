//! softmax and log_softmax, forward and backward.
//!
//! A row of up to a few thousand elements is read once and held in registers of the invocations that share it. Longer
//! rows are read twice; the first reading keeps a running maximum and a sum scaled to it (Milakov and Gimelshein,
//! "Online normalizer calculation for softmax", 2018).

use crate::check;
use crate::movement::copy;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::operator::{Operator, op};
use crate::primitives::launch::GROUP;
use crate::primitives::rows::{Rows, Share, pairwise};
use crate::tensor::Tensor;
use dml_kernel::{Builder, DType, Kernel, Pointer, Scalar, Value, math};
use smallvec::SmallVec;

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::_softmax", |c| forward(c, Mode::Softmax, None)),
    op("aten::_softmax.out", |c| forward(c, Mode::Softmax, Some(3))),
    op("aten::_log_softmax", |c| forward(c, Mode::LogSoftmax, None)),
    op("aten::_log_softmax.out", |c| forward(c, Mode::LogSoftmax, Some(3))),
    op("aten::_softmax_backward_data", |c| backward(c, Mode::SoftmaxGrad, None)),
    op("aten::_softmax_backward_data.out", |c| backward(c, Mode::SoftmaxGrad, Some(4))),
    op("aten::_log_softmax_backward_data", |c| backward(c, Mode::LogSoftmaxGrad, None)),
    op("aten::_log_softmax_backward_data.out", |c| backward(c, Mode::LogSoftmaxGrad, Some(4))),
];

/// What is computed of a row.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Mode {
    /// `exp(x - max) / sum`
    Softmax,
    /// `x - max - log(sum)`
    LogSoftmax,
    /// Of the gradient g and the result y: `(g - sum(g * y)) * y`
    SoftmaxGrad,
    /// `g - exp(y) * sum(g)`
    LogSoftmaxGrad,
}

/// Elements taken at a time from a row that is not held.
const AHEAD: u32 = 4;

/// `_softmax(self, dim, half_to_float[, out])`
fn forward(call: &mut Call, mode: Mode, out: Option<usize>) -> Result<()> {
    let x = call.tensor(0)?;
    let dim = call.wrap_dim(call.int(1)?, x.dim())?;
    let name = if mode == Mode::Softmax { "softmax" } else { "log_softmax" };
    let last = if dim + 1 < x.dim() { "" } else { "_lastdim" };
    check!(x.dtype.is_float(), NotImplemented, "\"{name}{last}_kernel_impl\" not implemented for '{}'", x.dtype);
    let widen = call.flag(2)?;
    check!(
        !widen || matches!(x.dtype, DType::F16 | DType::BF16),
        Runtime,
        "{name}: conversion is supported for Half type only"
    );
    let dtype = if widen { DType::F32 } else { x.dtype };
    run(call, mode, &[x], dim, dtype, out)
}

/// `_softmax_backward_data(grad_output, output, dim, input_dtype[, grad_input])`
fn backward(call: &mut Call, mode: Mode, out: Option<usize>) -> Result<()> {
    let (g, y) = (call.tensor(0)?, call.tensor(1)?);
    let dim = call.wrap_dim(call.int(2)?, g.dim())?;
    check!(
        g.sizes == y.sizes && g.dtype == y.dtype && g.dtype.is_float(),
        Runtime,
        "{}: expected a gradient like the output {}, got {}",
        call.name,
        y.describe(),
        g.describe()
    );
    let dtype = call.opt_dtype(3)?.unwrap_or(g.dtype);
    run(call, mode, &[g, y], dim, dtype, out)
}

/// `softmax(x)` over dimension `dim`, of contiguous tensors of one dtype; `out` may be `x`.
pub fn softmax_into(call: &Call, x: &Tensor, dim: usize, out: &Tensor) -> Result<()> {
    rows(call, Mode::Softmax, std::slice::from_ref(x), dim, out)
}

/// The gradient of softmax from that of its result `y`, of contiguous tensors of one dtype; `out` may be `grad`.
pub fn softmax_gradient_into(call: &Call, grad: &Tensor, y: &Tensor, dim: usize, out: &Tensor) -> Result<()> {
    rows(call, Mode::SoftmaxGrad, &[grad.clone(), y.clone()], dim, out)
}

fn run(call: &mut Call, mode: Mode, inputs: &[&Tensor], dim: usize, dtype: DType, out: Option<usize>) -> Result<()> {
    let sizes = &inputs[0].sizes;
    let result = structured::out(call, out, dtype, sizes)?;
    if result.numel() > 0 {
        let dense = if result.is_contiguous() { result.clone() } else { call.empty(dtype, sizes)? };
        let inputs: Result<SmallVec<[Tensor; 2]>> = inputs.iter().map(|t| copy::as_contiguous(call, t)).collect();
        rows(call, mode, &inputs?, dim, &dense)?;
        if dense.data != result.data {
            copy::device_copy(call, &dense, &result)?;
        }
    }
    call.ret(result);
    Ok(())
}

/// Everything that changes the code.
struct Shape {
    mode: Mode,
    input: DType,
    out: DType,
    rows: Rows,
    /// Elements of a row in registers of one invocation; 0 if rows are too long.
    held: u32,
}

impl Shape {
    fn new(mode: Mode, input: &Tensor, out: &Tensor, rows: i64, n: i64, inner: i64) -> Shape {
        let index = crate::tensor::layout::index_type(input.numel());
        let (rows, held) = if inner == 1 { Rows::of_neighbours(index, n) } else { Rows::of_columns(index, n, rows) };
        Shape { mode, input: input.dtype, out: out.dtype, rows, held }
    }

    fn key(&self) -> [u32; 6] {
        [self.mode as u32, self.input as u32, self.out as u32, self.rows.code(), self.held, 0]
    }
}

/// Runs over dimension `dim` of contiguous tensors.
fn rows(call: &Call, mode: Mode, inputs: &[Tensor], dim: usize, out: &Tensor) -> Result<()> {
    let sizes = &inputs[0].sizes;
    let n = sizes.get(dim).copied().unwrap_or(1);
    let inner: i64 = sizes.iter().skip(dim + 1).product();
    let rows = out.numel() / n;
    let shape = Shape::new(mode, &inputs[0], out, rows, n, inner);
    let kernel = call.kernel("softmax", shape.key(), || build(&shape, inputs.len()))?;
    let mut launcher = call.launch(kernel).write(out);
    for t in inputs {
        launcher = launcher.read(t);
    }
    shape.rows.run(launcher, rows, n, inner)
}

fn build(shape: &Shape, inputs: usize) -> Kernel {
    let b = Builder::new("softmax", [GROUP, 1, 1]);
    write(&b, shape, inputs);
    b.finish()
}

fn write(b: &Builder, shape: &Shape, inputs: usize) {
    let out = b.pointer("out", shape.out);
    let inputs: Vec<Pointer> = (0..inputs).map(|_| b.pointer("input", shape.input)).collect();
    let row = Share::new(b, &shape.rows, shape.input, 1);
    if shape.held > 0 { held(shape, &inputs, out, &row) } else { long(b, shape, &inputs, out, &row) }
}

/// Rows in registers.
fn held<'b>(shape: &Shape, inputs: &[Pointer<'b>], out: Pointer<'b>, row: &Share<'b>) {
    let at = row.elements(shape.held);
    let load = |input: Pointer<'b>, beyond: f64| row.load(input, &at, beyond);
    let results: Vec<Value> = match shape.mode {
        Mode::Softmax | Mode::LogSoftmax => {
            let x = load(inputs[0], f64::NEG_INFINITY);
            let max = row.max(pairwise(x.clone(), |x, y| x.max(y)));
            let exp: Vec<Value> =
                at.iter().zip(&x).map(|(k, &x)| k.lt(row.n).select(math::exp(x - max), 0.0)).collect();
            let sum = row.sum(pairwise(exp.clone(), |x, y| x + y));
            if shape.mode == Mode::Softmax {
                exp.iter().map(|&e| e / sum).collect()
            } else {
                let log = math::log(sum);
                x.iter().map(|&x| x - max - log).collect()
            }
        }
        Mode::SoftmaxGrad | Mode::LogSoftmaxGrad => {
            let (g, y) = (load(inputs[0], 0.0), load(inputs[1], 0.0));
            let pairs = g.iter().zip(&y);
            let terms = pairs.clone().map(|(&g, &y)| if shape.mode == Mode::SoftmaxGrad { g * y } else { g }).collect();
            let sum = row.sum(pairwise(terms, |x, y| x + y));
            pairs.map(|(&g, &y)| gradient(shape.mode, g, y, sum)).collect()
        }
    };
    for (&k, &value) in at.iter().zip(&results) {
        row.store(out, k, value);
    }
}

fn gradient<'b>(mode: Mode, g: Value<'b>, y: Value<'b>, sum: Value<'b>) -> Value<'b> {
    if mode == Mode::SoftmaxGrad { (g - sum) * y } else { g - math::exp(y) * sum }
}

/// Rows read twice.
fn long<'b>(b: &'b Builder, shape: &Shape, inputs: &[Pointer<'b>], out: Pointer<'b>, row: &Share<'b>) {
    let scalar = if shape.input == DType::F64 { Scalar::F64 } else { Scalar::F32 };
    let forward = matches!(shape.mode, Mode::Softmax | Mode::LogSoftmax);
    let max = b.var(b.float(scalar, f64::NEG_INFINITY));
    let sum = b.var(b.float(scalar, 0.0));
    // exp(x - m), which is 1 where both are the same infinity.
    let exp_below = |x: Value<'b>, m: Value<'b>| x.eq(m).select(x.like(1.0), math::exp(x - m));
    b.for_(row.lane, row.n, AHEAD * row.lanes, |k| {
        let at: Vec<Value> = (0..AHEAD).map(|q| k + q * row.lanes).collect();
        let inside = |k: Value<'b>, x: Value<'b>, beyond: f64| k.lt(row.n).select(x, x.like(beyond));
        if forward {
            let x: Vec<Value> =
                at.iter().map(|&k| inside(k, inputs[0].load(row.offset(k)), f64::NEG_INFINITY)).collect();
            let before = max.get();
            let now = before.max(pairwise(x.clone(), |x, y| x.max(y)));
            let terms = at.iter().zip(&x).map(|(&k, &x)| inside(k, exp_below(x, now), 0.0)).collect();
            sum.set(sum.get() * exp_below(before, now) + pairwise(terms, |x, y| x + y));
            max.set(now);
        } else {
            let term = |k: Value<'b>| {
                let g = inputs[0].load(row.offset(k));
                let x = if shape.mode == Mode::SoftmaxGrad { g * inputs[1].load(row.offset(k)) } else { g };
                inside(k, x, 0.0)
            };
            sum.set(sum.get() + pairwise(at.iter().map(|&k| term(k)).collect(), |x, y| x + y));
        }
    });
    let (largest, total) = if forward {
        let own = max.get();
        let largest = row.max(own);
        let total = row.sum(sum.get() * exp_below(own, largest));
        // As of infinity minus infinity, which drivers may simplify.
        (largest, largest.is_inf().select(b.float(scalar, f64::NAN), total))
    } else {
        (max.get(), row.sum(sum.get()))
    };
    let log = if shape.mode == Mode::LogSoftmax { math::log(total) } else { total };
    b.for_(row.lane, row.n, row.lanes, |k| {
        let x = inputs[0].load(row.offset(k));
        let value = match shape.mode {
            Mode::Softmax => math::exp(x - largest) / total,
            Mode::LogSoftmax => x - largest - log,
            mode => gradient(mode, x, inputs[1].load(row.offset(k)), total),
        };
        row.store(out, k, value);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_valid() {
        for mode in [Mode::Softmax, Mode::LogSoftmax, Mode::SoftmaxGrad, Mode::LogSoftmaxGrad] {
            for (input, out) in [(DType::F32, DType::F32), (DType::F16, DType::F32), (DType::F64, DType::F64)] {
                for (index, lanes, lanes_first, held) in [
                    (Scalar::U32, 256, true, 16),
                    (Scalar::U64, 8, false, 4),
                    (Scalar::U32, 1, true, 2),
                    (Scalar::U32, 64, true, 0),
                ] {
                    let shape = Shape { mode, input, out, rows: Rows { index, lanes, lanes_first }, held };
                    let inputs = if matches!(mode, Mode::Softmax | Mode::LogSoftmax) { 1 } else { 2 };
                    crate::primitives::validate::accepted(&build(&shape, inputs));
                }
            }
        }
    }
}
