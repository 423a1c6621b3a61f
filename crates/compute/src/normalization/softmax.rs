//! softmax and log_softmax, forward and backward.
//!
//! A row of up to a few thousand elements is read once and held in registers of the invocations
//! that share it. Longer rows are read twice; the first pass keeps a running maximum and a sum
//! scaled to it (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018).

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::normalization::exponentials::{Exponentials, LOADS_IN_FLIGHT};
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::rows::{Extent, RowDistribution, RowExtent, RowPart, pairwise};
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::interface::Each;
use dml_engine::parameters;
use dml_kernel::{Builder, DType, Pointer, Value, math};
use smallvec::{SmallVec, smallvec};

/// What is computed of a row.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// `exp(x - max) / sum`
    Softmax,
    /// `x - max - log(sum)`
    LogSoftmax,
    /// `(g - sum(g * y)) * y`, of the gradient g and the result y.
    SoftmaxGrad,
    /// `g - exp(y) * sum(g)`
    LogSoftmaxGrad,
}

impl Mode {
    /// Number of tensors that are read.
    fn inputs(self) -> usize {
        if matches!(self, Mode::Softmax | Mode::LogSoftmax) { 1 } else { 2 }
    }
}

/// `softmax(x)` along dimension `dim`, for contiguous tensors of one dtype; `out` may be `x`.
pub fn softmax_into(cx: &Context, x: &View, dim: usize, out: &View) -> Result<()> {
    rows(cx, Mode::Softmax, std::slice::from_ref(x), dim, out)
}

/// The gradient of softmax from the gradient of its result `y`, for contiguous tensors of one
/// dtype; `out` may be `grad`.
pub fn softmax_gradient_into(cx: &Context, grad: &View, y: &View, dim: usize, out: &View) -> Result<()> {
    rows(cx, Mode::SoftmaxGrad, &[grad.clone(), y.clone()], dim, out)
}

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    mode: Mode,
    input: DType,
    out: DType,
    rows: RowDistribution,
}

parameters! {
    Spec as s => Arguments, Parameters {
        out: Output = s.out,
        inputs: Each<Input> = smallvec![s.input; s.mode.inputs()],
        extent: RowExtent = s.rows.rows.index,
    }
}

/// Computes `mode` along dimension `dim` of contiguous tensors.
pub fn rows(cx: &Context, mode: Mode, inputs: &[View], dim: usize, out: &View) -> Result<()> {
    let input = &inputs[0];
    let extent = Extent::along(&input.sizes, dim);
    let index = index_type(input.numel());
    let rows = if extent.inner == 1 {
        let accessed: SmallVec<[(u64, u64); 3]> =
            inputs.iter().chain([out]).map(|t| (t.data, t.dtype.bytes())).collect();
        RowDistribution::contiguous(index, extent.n, input.dtype, &accessed)
    } else {
        RowDistribution::columns(index, extent.n, extent.rows)
    };
    let spec = Spec { mode, input: input.dtype, out: out.dtype, rows };
    cx.run(&spec, &Arguments { out, inputs: inputs.iter().collect(), extent }, rows.rows.groups(&extent))
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "softmax"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let row = RowPart::part_of_row(b, &self.rows, p.extent, self.input, 1);
        if self.rows.register_elements > 0 {
            in_registers(self, &p.inputs, p.out, &row)
        } else {
            streamed(b, self, &p.inputs, p.out, &row)
        }
    }
}

/// Rows that are held in registers.
fn in_registers<'b>(spec: &Spec, inputs: &[Pointer<'b>], out: Pointer<'b>, row: &RowPart<'b>) {
    let at = row.elements(spec.rows.register_elements);
    let load = |input: Pointer<'b>, beyond: f64| row.load(input, &at, beyond);
    let results: Vec<Value> = match spec.mode {
        Mode::Softmax | Mode::LogSoftmax => {
            let x = load(inputs[0], f64::NEG_INFINITY);
            let (Exponentials { largest, sum }, terms) = Exponentials::in_registers(row, &at, &x);
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

/// Rows that are read twice.
fn streamed<'b>(b: &'b Builder, spec: &Spec, inputs: &[Pointer<'b>], out: Pointer<'b>, row: &RowPart<'b>) {
    let scalar = accumulator(spec.input).compute();
    let (largest, factor) = match spec.mode {
        Mode::Softmax | Mode::LogSoftmax => {
            let Exponentials { largest, sum } = Exponentials::streamed(b, row, inputs[0], scalar);
            (largest, if spec.mode == Mode::Softmax { 1.0 / sum } else { math::log(sum) })
        }
        Mode::SoftmaxGrad | Mode::LogSoftmaxGrad => {
            let sum = b.var(b.float(scalar, 0.0));
            row.for_each_chunk(LOADS_IN_FLIGHT, |row, at| {
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
    row.for_each_chunk(LOADS_IN_FLIGHT, |row, at| {
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
                    RowDistribution::contiguous(ScalarType::U32, 4096, input, &[]),
                    RowDistribution::contiguous(ScalarType::U32, 2, input, &[(1, 2)]),
                    RowDistribution::contiguous(ScalarType::U64, 100_000, input, &[]),
                    RowDistribution::columns(ScalarType::U64, 50, 8),
                ] {
                    crate::primitives::validate::accepted(&Spec { mode, input, out, rows }.build());
                }
            }
        }
    }
}
