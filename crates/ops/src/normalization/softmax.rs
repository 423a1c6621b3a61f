//! softmax and log_softmax, forward and backward.
//!
//! A row of up to a few thousand elements is read once and held in registers of the invocations that share it. Longer
//! rows are read twice; the first reading keeps a running maximum and a sum scaled to it (Milakov and Gimelshein,
//! "Online normalizer calculation for softmax", 2018).

use super::exponentials::{AHEAD, Exponentials};
use crate::movement::copy;
use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::rows::{Dealt, Extent, RowExtent, Share, pairwise};
use crate::tensor::Tensor;
use crate::tensor::layout::index_type;
use crate::tensor::promote::accumulator;
use crate::{check, operators};
use dml_engine::{interface::Each, parameters};
use dml_kernel::{Builder, DType, Pointer, Value, math};
use smallvec::{SmallVec, smallvec};

operators! {
    forward(self, dim, half_to_float, out; Mode::Softmax) {
        "aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
        "aten::_softmax.out(Tensor self, int dim, bool half_to_float, *, Tensor(a!) out) -> Tensor(a!)",
    }
    forward(self, dim, half_to_float, out; Mode::LogSoftmax) {
        "aten::_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
        "aten::_log_softmax.out(Tensor self, int dim, bool half_to_float, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, output, dim, input_dtype, out; Mode::SoftmaxGrad) {
        "aten::_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
        "aten::_softmax_backward_data.out(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    backward(grad_output, output, dim, input_dtype, out; Mode::LogSoftmaxGrad) {
        "aten::_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
        "aten::_log_softmax_backward_data.out(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// What is computed of a row.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
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

impl Mode {
    /// Tensors that it reads.
    fn inputs(self) -> usize {
        if matches!(self, Mode::Softmax | Mode::LogSoftmax) { 1 } else { 2 }
    }
}

fn forward(call: &mut Call, x: &Tensor, dim: i64, widen: bool, out: Out, mode: Mode) -> Result<()> {
    let dim = call.wrap_dim(dim, x.dim())?;
    let name = if mode == Mode::Softmax { "softmax" } else { "log_softmax" };
    let last = if dim + 1 < x.dim() { "" } else { "_lastdim" };
    // Empty tensors are of any dtype, as on the CPU.
    check!(
        x.dtype.is_float() || x.numel() == 0,
        NotImplemented,
        "\"{name}{last}_kernel_impl\" not implemented for '{}'",
        x.dtype
    );
    check!(
        !widen || matches!(x.dtype, DType::F16 | DType::BF16),
        Runtime,
        "{name}: conversion is supported for Half type only"
    );
    let dtype = if widen { DType::F32 } else { x.dtype };
    run(call, mode, &[x], dim, dtype, out)
}

fn backward(
    call: &mut Call,
    grad: &Tensor,
    output: &Tensor,
    dim: i64,
    input_dtype: Option<DType>,
    out: Out,
    mode: Mode,
) -> Result<()> {
    let dim = call.wrap_dim(dim, grad.dim())?;
    check!(
        grad.sizes == output.sizes && grad.dtype == output.dtype,
        Runtime,
        "{}: expected a gradient like the output {}, got {}",
        call.name,
        output.describe(),
        grad.describe()
    );
    let dtype = grad.dtype;
    let name = if mode == Mode::SoftmaxGrad { "softmax" } else { "log_softmax" };
    check!(
        dtype.is_float() || grad.numel() == 0,
        NotImplemented,
        "\"{name}_backward_kernel_impl\" not implemented for '{dtype}'"
    );
    run(call, mode, &[grad, output], dim, input_dtype.unwrap_or(dtype), out)
}

/// `softmax(x)` over dimension `dim`, of contiguous tensors of one dtype; `out` may be `x`.
pub fn softmax_into(call: &Call, x: &Tensor, dim: usize, out: &Tensor) -> Result<()> {
    rows(call, Mode::Softmax, std::slice::from_ref(x), dim, out)
}

/// The gradient of softmax from that of its result `y`, of contiguous tensors of one dtype; `out` may be `grad`.
pub fn softmax_gradient_into(call: &Call, grad: &Tensor, y: &Tensor, dim: usize, out: &Tensor) -> Result<()> {
    rows(call, Mode::SoftmaxGrad, &[grad.clone(), y.clone()], dim, out)
}

fn run(call: &mut Call, mode: Mode, inputs: &[&Tensor], dim: usize, dtype: DType, out: Out) -> Result<()> {
    let sizes = &inputs[0].sizes;
    let result = structured::result(call, out.given(), dtype, sizes)?;
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
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    mode: Mode,
    input: DType,
    out: DType,
    rows: Dealt,
}

parameters! {
    Spec as s => Arguments, Parameters {
        out: Output = s.out,
        inputs: Each<Input> = smallvec![s.input; s.mode.inputs()],
        extent: RowExtent = s.rows.rows.index,
    }
}

/// Runs over dimension `dim` of contiguous tensors.
fn rows(call: &Call, mode: Mode, inputs: &[Tensor], dim: usize, out: &Tensor) -> Result<()> {
    let input = &inputs[0];
    let extent = Extent::along(&input.sizes, dim);
    let index = index_type(input.numel());
    let rows = if extent.inner == 1 {
        let accessed: SmallVec<[(u64, u64); 3]> =
            inputs.iter().chain([out]).map(|t| (t.data, t.dtype.bytes())).collect();
        Dealt::neighbours(index, extent.n, input.dtype, &accessed)
    } else {
        Dealt::columns(index, extent.n, extent.rows)
    };
    let spec = Spec { mode, input: input.dtype, out: out.dtype, rows };
    call.run(&spec, &Arguments { out, inputs: inputs.iter().collect(), extent }, rows.rows.groups(&extent))
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "softmax"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let row = Share::dealt(b, &self.rows, p.extent, self.input, 1);
        if self.rows.held > 0 { held(self, &p.inputs, p.out, &row) } else { long(b, self, &p.inputs, p.out, &row) }
    }
}

/// Rows in registers.
fn held<'b>(spec: &Spec, inputs: &[Pointer<'b>], out: Pointer<'b>, row: &Share<'b>) {
    let at = row.elements(spec.rows.held);
    let load = |input: Pointer<'b>, beyond: f64| row.load(input, &at, beyond);
    let results: Vec<Value> = match spec.mode {
        Mode::Softmax | Mode::LogSoftmax => {
            let x = load(inputs[0], f64::NEG_INFINITY);
            let (Exponentials { largest, sum }, terms) = Exponentials::of_held(row, &at, &x);
            if spec.mode == Mode::Softmax {
                let scale = 1.0 / sum;
                terms.iter().map(|&e| e * scale).collect()
            } else {
                let log = math::log(sum);
                x.iter().map(|&x| x - largest - log).collect()
            }
        }
        Mode::SoftmaxGrad | Mode::LogSoftmaxGrad => {
            let (g, y) = (load(inputs[0], 0.0), load(inputs[1], 0.0));
            let pairs = g.iter().zip(&y);
            let terms = pairs.clone().map(|(&g, &y)| if spec.mode == Mode::SoftmaxGrad { g * y } else { g }).collect();
            let sum = row.sum(pairwise(terms, |x, y| x + y));
            pairs.map(|(&g, &y)| gradient(spec.mode, g, y, sum)).collect()
        }
    };
    row.store_all(out, &at, &results);
}

fn gradient<'b>(mode: Mode, g: Value<'b>, y: Value<'b>, sum: Value<'b>) -> Value<'b> {
    if mode == Mode::SoftmaxGrad { (g - sum) * y } else { g - math::exp(y) * sum }
}

/// Rows read twice.
fn long<'b>(b: &'b Builder, spec: &Spec, inputs: &[Pointer<'b>], out: Pointer<'b>, row: &Share<'b>) {
    let scalar = accumulator(spec.input).compute();
    let (largest, factor) = match spec.mode {
        Mode::Softmax | Mode::LogSoftmax => {
            let Exponentials { largest, sum } = Exponentials::of_long(b, row, inputs[0], scalar);
            (largest, if spec.mode == Mode::Softmax { 1.0 / sum } else { math::log(sum) })
        }
        Mode::SoftmaxGrad | Mode::LogSoftmaxGrad => {
            let sum = b.var(b.float(scalar, 0.0));
            row.walk(AHEAD, |row, at| {
                let mut terms = row.load(inputs[0], at, 0.0);
                if spec.mode == Mode::SoftmaxGrad {
                    terms = terms.iter().zip(row.load(inputs[1], at, 0.0)).map(|(&g, y)| g * y).collect();
                }
                sum.set(sum.get() + pairwise(terms, |x, y| x + y));
            });
            let total = row.sum(sum.get());
            (total, total)
        }
    };
    row.walk(AHEAD, |row, at| {
        let x = row.load(inputs[0], at, 0.0);
        let values: Vec<Value> = match spec.mode {
            Mode::Softmax => x.iter().map(|&x| math::exp(x - largest) * factor).collect(),
            Mode::LogSoftmax => x.iter().map(|&x| x - largest - factor).collect(),
            mode => {
                let y = row.load(inputs[1], at, 0.0);
                x.iter().zip(y).map(|(&g, y)| gradient(mode, g, y, factor)).collect()
            }
        };
        row.store_all(out, at, &values);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use dml_kernel::ScalarType;

    #[test]
    fn kernels_are_valid() {
        for mode in [Mode::Softmax, Mode::LogSoftmax, Mode::SoftmaxGrad, Mode::LogSoftmaxGrad] {
            for (input, out) in [(DType::F32, DType::F32), (DType::F16, DType::F32), (DType::F64, DType::F64)] {
                for rows in [
                    Dealt::neighbours(ScalarType::U32, 4096, input, &[]),
                    Dealt::neighbours(ScalarType::U32, 2, input, &[(1, 2)]),
                    Dealt::neighbours(ScalarType::U64, 100_000, input, &[]),
                    Dealt::columns(ScalarType::U64, 50, 8),
                ] {
                    crate::primitives::validate::accepted(&Spec { mode, input, out, rows }.build());
                }
            }
        }
    }
}
