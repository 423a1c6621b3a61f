//! Softmax, and losses of logits.

use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{FLOATS, INDICES};
use crate::operators::common::elementwise::broadcast;
use crate::operators::common::functions;
use crate::require;
use dml_compute::dtype::accumulator;
use dml_compute::loss::cross_entropy::problem::{Problem, Unknown};
use dml_compute::loss::cross_entropy::{backward, forward};
use dml_compute::loss::reduce::Reduce;
use dml_compute::matmul::product::Product;
use dml_compute::movement::copy;
use dml_compute::normalization::softmax::{Mode, rows};
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::primitives::rows::Extent;
use dml_compute::reduction::axes::Axes;
use dml_compute::reduction::sum::sum_into;
use dml_compute::{Scalar, View};

/// `Softmax` and `LogSoftmax`, of the last dimension.
fn softmax(name: &'static str, mode: Mode) -> Operator {
    Operator::plain(name, move |call: &Call| {
        let logits = call.input(0)?;
        require!(logits.dim() >= 1, "logits must have >= 1 dimension, got {:?}", logits.sizes);
        let out = call.output_over(&[0], 0, &logits.sizes)?;
        if out.numel() == 0 {
            return Ok(());
        }
        let last = logits.dim() - 1;
        Ok(rows(&call.cx(), mode, &[logits], last, &out)?)
    })
    .of("T", FLOATS)
}

/// `SoftmaxCrossEntropyWithLogits`: labels are probabilities.
fn cross_entropy(call: &Call) -> Result<()> {
    let [logits, labels] = [call.input(0)?, call.input(1)?];
    let sizes = broadcast(call.operator(), &logits.sizes, &labels.sizes)?;
    require!(sizes.len() == 2, "logits and labels must be either 2-dimensional, or broadcasted to be: {sizes:?}");
    let [loss, gradient] = [call.output(0, &sizes[..1])?, call.output(1, &sizes)?];
    if loss.numel() == 0 {
        return Ok(());
    }
    let cx = call.cx();
    if gradient.numel() == 0 {
        return Ok(copy::fill_with(&cx, &loss, Scalar::Int(0))?);
    }
    let wide = accumulator(logits.dtype);
    let logs = cx.empty(wide, &logits.sizes)?;
    rows(&cx, Mode::LogSoftmax, &[logits], logs.dim() - 1, &logs)?;
    let terms = cx.empty(wide, &sizes)?;
    let operands = [logs.expand(&sizes), labels.expand(&sizes)].map(Input::Tensor);
    kernel::run(&cx, &functions::CROSS_ENTROPY, &[&terms, &gradient], &operands, wide)?;
    Ok(sum_into(&cx, &terms, &loss, Axes::of_dims(&[1], 2, false))?)
}

/// `SparseSoftmaxCrossEntropyWithLogits`: labels are classes. Those that do not exist give NaN, as
/// on CUDA.
fn sparse_cross_entropy(call: &Call) -> Result<()> {
    let [logits, labels] = [call.input(0)?, call.input(1)?];
    require!(logits.dim() == 2, "logits must be 2-D, but got shape {:?}", logits.sizes);
    require!(labels.dim() == 1, "labels must be 1-D, but got shape {:?}", labels.sizes);
    require!(
        logits.sizes[0] == labels.sizes[0],
        "logits and labels must have the same first dimension, got logits shape {:?} and labels shape {:?}",
        logits.sizes,
        labels.sizes
    );
    require!(logits.sizes[1] > 0, "Must have at least one class, but got logits shape {:?}", logits.sizes);
    let [loss, gradient] = [call.output(0, &labels.sizes)?, call.output(1, &logits.sizes)?];
    let count = labels.sizes[0];
    if count == 0 {
        return Ok(());
    }
    let cx = call.cx();
    let wide = accumulator(logits.dtype);
    let statistics = cx.empty(wide, &[2, count])?;
    let extent = Extent::along(&logits.sizes, 1);
    let problem = Problem {
        input: logits,
        extent,
        target: labels,
        weight: None,
        reduction: Reduce::Sum,
        ignore: i64::MIN,
        unknown: Unknown::IsNan,
        name: "SparseSoftmaxCrossEntropyWithLogits",
        smoothing: 0.0,
    };
    forward::losses(&cx, &problem, &loss, &statistics)?;
    let one = cx.empty(wide, &[])?;
    copy::fill_with(&cx, &one, Scalar::Int(1))?;
    Ok(backward::gradient(&cx, &problem, &one, &statistics, None, &gradient)?)
}

/// `L2Loss`: half the sum of squares, as a product of the elements with themselves.
fn l2_loss(call: &Call) -> Result<()> {
    let t = call.input(0)?;
    let out: View = call.output(0, &[])?;
    let n = t.numel();
    let (row, column) = (t.as_strided(&[1, n], &[n, 1], 0), t.as_strided(&[n, 1], &[1, 1], 0));
    let alpha = Scalar::Double(0.5);
    Ok(Product { alpha, ..Product::new(&row, &column) }.run(&call.cx(), &out.as_strided(&[1, 1], &[1, 1], 0))?)
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        softmax("Softmax", Mode::Softmax),
        softmax("LogSoftmax", Mode::LogSoftmax),
        Operator::plain("SoftmaxCrossEntropyWithLogits", cross_entropy).of("T", FLOATS),
        Operator::plain("SparseSoftmaxCrossEntropyWithLogits", sparse_cross_entropy)
            .of("T", FLOATS)
            .of("Tlabels", INDICES),
        Operator::plain("L2Loss", l2_loss).of("T", FLOATS),
    ]
}
