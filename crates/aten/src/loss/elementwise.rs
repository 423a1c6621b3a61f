//! Losses that compare an input with a target element by element: mse, smooth l1, huber, binary
//! cross-entropy.

use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::pointwise::operator::{Argument, arguments_of, common_dtype, ruled_operator, strided};
use crate::tensor::casting::can_cast;
use crate::{check, group, operators};
use dml_compute::loss::elementwise::{Loss, reduced};
use dml_compute::loss::reduce::Reduce;
use dml_compute::pointwise::operator::Rule;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::layout::preserved_strides;
use dml_compute::view::{Dims, Location, View};
use dml_kernel::DType;
use smallvec::{SmallVec, smallvec};

operators! {
    forward(self, target, {Options}, out; Loss::Mse) {
        hot "aten::mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
        "aten::mse_loss.out(Tensor self, Tensor target, int reduction=1, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, self, target, {Options}, out; Loss::Mse) {
        hot "aten::mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
        "aten::mse_loss_backward.grad_input(Tensor grad_output, Tensor self, Tensor target, int reduction, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    forward(self, target, {Options}, out; Loss::SmoothL1) {
        "aten::smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor",
        "aten::smooth_l1_loss.out(Tensor self, Tensor target, int reduction=1, float beta=1., *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, self, target, {Options}, out; Loss::SmoothL1) {
        "aten::smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta) -> Tensor",
        "aten::smooth_l1_loss_backward.grad_input(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    forward(self, target, {Options}, out; Loss::Huber) {
        "aten::huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor",
        "aten::huber_loss.out(Tensor self, Tensor target, int reduction=1, float delta=1., *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, self, target, {Options}, out; Loss::Huber) {
        "aten::huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta) -> Tensor",
        "aten::huber_loss_backward.out(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    forward(self, target, {Options}, out; Loss::BinaryCrossEntropy) {
        "aten::binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor",
        "aten::binary_cross_entropy.out(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, self, target, {Options}, out; Loss::BinaryCrossEntropy) {
        "aten::binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor",
        "aten::binary_cross_entropy_backward.grad_input(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, int reduction=1, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
}

group! {
    /// What a loss takes beside its operands.
    struct Options<'a> {
        weight: Option<&'a View> = None,
        reduction: i64,
        /// Of the smooth l1 loss: where it becomes linear.
        beta: Option<Number> = None,
        /// Of the Huber loss: where it becomes linear.
        delta: Option<Number> = None,
    }
}

/// The operands other than the input `x`, and gradients, in the loss's shape: for probabilities the
/// shape of the input.
fn aligned<const N: usize>(
    loss: Loss,
    call: &Call,
    others: [&View; N],
    x: &View,
    weight: Option<&View>,
) -> Result<[View; N]> {
    let mut aligned = others.map(View::clone);
    if loss == Loss::BinaryCrossEntropy {
        for t in &mut aligned {
            *t = squeeze_to_rank(call, t, &x.sizes)?;
        }
        if let Some(weight) = weight {
            check_fits(call, &weight.sizes, &x.sizes)?;
        }
    }
    Ok(aligned)
}

/// The strides of a new result of the input's shape, or of its gradient, if they do not follow from
/// all operands.
fn strides_of(loss: Loss, x: &View, gradient: bool) -> Option<Dims> {
    match loss {
        Loss::BinaryCrossEntropy => Some(preserved_strides(x)),
        _ if gradient => Some(View::contiguous_strides(&x.sizes)),
        Loss::Huber => Some(preserved_strides(x)),
        Loss::Mse | Loss::SmoothL1 => None,
    }
}

/// The dtype of the loss, or of its gradient.
fn result_dtype(loss: Loss, call: &Call, x: &View, y: &View, gradient: bool) -> DType {
    match loss {
        Loss::Mse | Loss::SmoothL1 if !gradient => common_dtype(call, &[AnyTensor(x), AnyTensor(y)]),
        _ => x.dtype,
    }
}

/// Checks the dtypes of an input, of the target, and of the gradient, for the loss's gradient: in
/// some losses they promote.
fn check_dtypes(loss: Loss, call: &Call, x: &View, y: &View, grad: Option<&View>, out: Out) -> Result<()> {
    let promotes = match loss {
        Loss::Huber => grad.is_none(),
        Loss::Mse | Loss::SmoothL1 => true,
        Loss::BinaryCrossEntropy => false,
    };
    let all: Operands = [x, y].into_iter().chain(grad).map(AnyTensor).collect();
    if !promotes {
        structured::check_inputs(all.iter().map(|t| t.0), x.dtype)?;
        structured::check_same(out, x.dtype)?;
    }
    let common = common_dtype(call, &all);
    let result = out.given().map_or_else(|| result_dtype(loss, call, x, y, grad.is_some()), |out| out.dtype);
    check!(can_cast(common, result), Runtime, "result type {common} can't be cast to the desired output type {result}");
    let name = loss.function().name;
    let cpu_name = name.strip_suffix("_loss").unwrap_or(name);
    check!(common.is_float(), NotImplemented, "\"{cpu_name}_cpu\" not implemented for '{common}'");
    Ok(())
}

/// Checks the parameter beta or delta.
fn check_threshold(loss: Loss, threshold: Option<Number>) -> Result<()> {
    let Some(threshold) = threshold.map(Number::to_f64) else { return Ok(()) };
    let (positive, negative) = (threshold > 0.0, threshold < 0.0);
    if loss == Loss::SmoothL1 {
        check!(!negative, Runtime, "smooth_l1_loss does not support negative values for beta.");
    } else {
        check!(positive, Runtime, "huber_loss does not support non-positive values for delta.");
    }
    Ok(())
}

/// `t` in the shape that the CPU's binary cross-entropy gives it for an input of these sizes:
/// dimensions of size 1 are ignored.
fn squeeze_to_rank(call: &Call, t: &View, sizes: &[i64]) -> Result<View> {
    if t.location == Location::Host {
        return Ok(t.clone());
    }
    let kept = || (0..t.dim()).filter(|&d| t.sizes[d] != 1);
    let squeezed: Dims = kept().map(|d| t.sizes[d]).collect();
    let strides: Dims = kept().map(|d| t.strides[d]).collect();
    let others: Dims = sizes.iter().copied().filter(|&n| n != 1).collect();
    check_fits(call, &squeezed, &others)?;
    let mut strides = t.as_strided(&squeezed, &strides, 0).expanded_strides(&others).into_iter();
    let strides: Dims = sizes.iter().map(|&n| if n == 1 { 0 } else { strides.next().unwrap_or(0) }).collect();
    Ok(t.as_strided(sizes, &strides, 0))
}

/// Checks that an operand of these sizes broadcasts to a result of the others.
fn check_fits(call: &Call, operand: &[i64], result: &[i64]) -> Result<()> {
    let joint = call.broadcast(operand, result)?;
    structured::check_shape(result, &joint)?;
    Ok(())
}

/// The compared operands: input, target and optionally weight.
type Operands<'t> = SmallVec<[AnyTensor<'t>; 4]>;

fn operands<'t>(x: &'t View, y: &'t View, weight: Option<&'t View>) -> Operands<'t> {
    [x, y].into_iter().chain(weight).map(AnyTensor).collect()
}

/// Tensors and numbers as the arguments of a pointwise operator.
fn arguments<'a>(tensors: &[AnyTensor<'a>], numbers: &[Number]) -> SmallVec<[Argument<'a>; 4]> {
    let numbers = numbers.iter().map(|&n| Argument::Number(n));
    tensors.iter().map(|&t| Argument::Tensor(t)).chain(numbers).collect()
}

/// The broadcast shape of all operands.
fn broadcast_sizes_of(call: &Call, operands: &[AnyTensor]) -> Result<Dims> {
    operands.iter().try_fold(Dims::new(), |sizes, t| call.broadcast(&sizes, &t.sizes))
}

/// `out`, or a new result with these strides, unless `x` is smaller than the broadcast shape.
fn output_like<'t>(
    call: &Call,
    strides: Option<Dims>,
    x: &View,
    sizes: &[i64],
    out: Out<'t>,
    slot: &'t mut Option<View>,
) -> Result<Out<'t>> {
    match strides {
        Some(strides) if x.sizes.as_slice() == sizes => strided(call, out, slot, x.dtype, (sizes, &strides)),
        _ => Ok(out),
    }
}

fn forward(call: &mut Call, x: &View, y: &View, options: Options, out: Out, loss: Loss) -> Result<()> {
    let Options { weight, reduction, beta, delta } = options;
    let threshold = beta.or(delta);
    check_dtypes(loss, call, x, y, None, out)?;
    let [y] = aligned(loss, call, [y], x, weight)?;
    let all = operands(x, &y, weight);
    let reduction = crate::loss::reduce::reduce_of(call, reduction)?;
    check_threshold(loss, threshold)?;
    let weighted = all.len() == 3;
    let result =
        if matches!(out, Out::New) { result_dtype(loss, call, x, &y, false) } else { common_dtype(call, &all) };
    let sizes = broadcast_sizes_of(call, &all)?;
    if reduction == Reduce::None {
        let mut new = None;
        let out = output_like(call, strides_of(loss, x, false), x, &sizes, out, &mut new)?;
        let arguments = arguments(&all, threshold.as_slice());
        return ruled_operator(call, out, Rule::As(result), loss.function().with([weighted]), &arguments, &|_| Ok(()));
    }
    if let Out::Into(t) = out
        && loss != Loss::BinaryCrossEntropy
        && all.iter().any(|operand| operand.handle == t.handle)
    {
        // The CPU computes the losses in this tensor first.
        check_fits(call, &sizes, &t.sizes)?;
    }
    let dtype = common_dtype(call, &all);
    let expanded: SmallVec<[View; 3]> = all.iter().map(|t| t.expand(&sizes)).collect();
    let inputs: SmallVec<[&View; 3]> = expanded.iter().collect();
    let result = call.result(out.given(), result, &[])?;
    reduced(call, loss, &inputs, dtype, reduction == Reduce::Mean, threshold, &result)?;
    call.ret(result);
    Ok(())
}

fn backward(
    call: &mut Call,
    grad: AnyTensor,
    x: &View,
    y: &View,
    options: Options,
    out: Out,
    loss: Loss,
) -> Result<()> {
    let Options { weight, reduction, beta, delta } = options;
    let threshold = beta.or(delta);
    check_dtypes(loss, call, x, y, Some(&grad), out)?;
    let reduction = crate::loss::reduce::reduce_of(call, reduction)?;
    let [y, grad] = aligned(loss, call, [y, &grad], x, weight)?;
    // In the CPU's order, which determines the strides of a result.
    let mut all = operands(x, &y, Some(&grad));
    all.extend(weight.map(AnyTensor));
    // As on the CPU, a mean divides by the number of the input's elements, even if the target has
    // more.
    let count = if reduction == Reduce::Mean { x.numel() } else { 1 };
    let share = loss.slope_factor() / count as f64;
    let mut numbers: SmallVec<[Number; 2]> = smallvec![Number::Double(share)];
    numbers.extend(threshold);
    let sizes = broadcast_sizes_of(call, &all)?;
    let mut new = None;
    let out = output_like(call, strides_of(loss, x, true), x, &sizes, out, &mut new)?;
    let result = if matches!(out, Out::New) { x.dtype } else { common_dtype(call, &all) };
    let gradient = loss.gradient().with([weight.is_some()]);
    ruled_operator(call, out, Rule::As(result), gradient, &arguments_of(&all, &numbers), &|_| Ok(()))
}
