//! The convolution operator to which all modules are reduced, and its gradients.

use crate::matmul::product::expand;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, group, matmul, operators};
use dml_compute::convolution::geometry::Arguments;
use dml_compute::convolution::named::UNIT_STRIDE;
use dml_compute::convolution::overrideable::{by_channels, empty};
use dml_compute::convolution::passes;
use dml_compute::convolution::winograd::choice::Pass;
use dml_compute::movement::copy;
use dml_compute::pointwise::expr::Expr;
use dml_compute::view::View;
use dml_compute::view::memory_format::is_channels_last;
use dml_kernel::DType;
use smallvec::SmallVec;

operators! {
    convolution(input, weight, bias, {Arguments}) {
        hot "aten::convolution_overrideable(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor",
    }
    convolution_backward(grad_output, input, weight, {Arguments}, output_mask) {
        hot "aten::convolution_backward_overrideable(Tensor grad_output, Tensor input, Tensor weight, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)",
    }
}

group!(for Arguments<'a> {
    stride,
    padding,
    dilation = UNIT_STRIDE.dilation,
    transposed = UNIT_STRIDE.transposed,
    output_padding = UNIT_STRIDE.output_padding,
    groups = UNIT_STRIDE.groups,
});

fn convolution(call: &mut Call, input: &View, weight: &View, bias: Option<&View>, arguments: Arguments) -> Result<()> {
    let out = forward(call, input, weight, bias, &arguments, None)?;
    call.ret(out);
    Ok(())
}

fn convolution_backward(
    call: &mut Call,
    grad: &View,
    input: &View,
    weight: &View,
    arguments: Arguments,
    wanted: &[u8],
) -> Result<()> {
    for t in backward(call, [grad, input, weight], &arguments, wanted)? {
        call.ret_optional(t);
    }
    Ok(())
}

/// What becomes of a convolution's result: an expression of it, and of tensors that broadcast to
/// it.
pub type Then<'a> = (Expr, &'a [&'a View]);

/// Computes the convolution of `input` by `weight`, plus `bias`, as a new tensor. Only a
/// convolution that is not transposed may have an expression of its result.
pub fn forward(
    call: &Call,
    input: &View,
    weight: &View,
    bias: Option<&View>,
    arguments: &Arguments,
    then: Option<Then>,
) -> Result<View> {
    let geometry = crate::convolution::geometry::checked(input, weight, arguments)?;
    check_dtypes(call, input, weight)?;
    // What the CPU supports of integers: all plain convolutions, and others of int64.
    let plain = !geometry.transposed && geometry.dilation.iter().all(|&d| d == 1);
    check!(
        plain || input.dtype.is_float() || input.dtype == DType::I64,
        NotImplemented,
        "\"{}\" not implemented for '{}'",
        if geometry.transposed { "slow_conv_transpose" } else { "slow_conv_dilated" },
        input.dtype
    );
    let sizes = geometry.result();
    if let Some(bias) = bias {
        check!(
            bias.dtype == input.dtype,
            Runtime,
            "Input type ({}) and bias type ({}) should be the same",
            input.dtype,
            bias.dtype
        );
        check!(
            bias.sizes.as_slice() == [sizes[1]],
            Runtime,
            "Given weight of size {:?}, expected bias to be 1-dimensional with {} elements, but got bias of size {:?} \
             instead",
            weight.sizes.as_slice(),
            sizes[1],
            bias.sizes.as_slice()
        );
    }
    let last = is_channels_last(input) || is_channels_last(weight);
    let pass = if geometry.transposed { Pass::Data } else { Pass::Forward };
    let by_channels = last || by_channels(call, &geometry, input.dtype, &[pass])?;
    let (input, weight) =
        (copy::in_memory_format(call, input, by_channels)?, copy::in_memory_format(call, weight, by_channels)?);
    let out = empty(call, &input, &sizes, last)?;
    if out.numel() > 0 {
        if geometry.transposed {
            passes::backward_data(call, &geometry, &input, &weight, &out, bias)?;
        } else {
            let tensors = then.map_or(Ok(Vec::new()), |(_, tensors)| {
                tensors.iter().map(|t| expand(t, &sizes)).collect::<Result<Vec<View>>>()
            })?;
            let then = then.map(|(expr, _)| (expr, &tensors[..]));
            passes::forward_then(call, &geometry, &input, &weight, &out, bias, then)?;
        }
    }
    Ok(out)
}

/// The gradients of input, weight and bias that `wanted` asks for.
pub fn backward(
    call: &Call,
    [grad, input, weight]: [&View; 3],
    arguments: &Arguments,
    wanted: &[u8],
) -> Result<[Option<View>; 3]> {
    let geometry = crate::convolution::geometry::checked(input, weight, arguments)?;
    check_dtypes(call, input, weight)?;
    check_dtypes(call, input, grad)?;
    check!(
        grad.sizes == geometry.result(),
        Runtime,
        "Expected grad_output of size {:?}, but got {:?}",
        geometry.result().as_slice(),
        grad.sizes.as_slice()
    );
    let last = is_channels_last(input) || is_channels_last(weight);
    let wants = |i: usize| wanted.get(i).is_some_and(|&w| w != 0);
    let of_input = if geometry.transposed { Pass::Forward } else { Pass::Data };
    let passes = [(0, of_input), (1, Pass::Weight)].into_iter().filter(|&(i, _)| wants(i)).map(|(_, pass)| pass);
    let by_channels = last || by_channels(call, &geometry, grad.dtype, &passes.collect::<SmallVec<[Pass; 2]>>())?;
    let grad = copy::in_memory_format(call, grad, by_channels)?;
    let mut gradients = [const { None }; 3];
    if wants(0) {
        let weight = copy::in_memory_format(call, weight, by_channels)?;
        let out = empty(call, &grad, &input.sizes, last)?;
        if geometry.transposed {
            passes::forward(call, &geometry, &grad, &weight, &out, None)?;
        } else {
            passes::backward_data(call, &geometry, &grad, &weight, &out, None)?;
        }
        gradients[0] = Some(out);
    }
    if wants(1) {
        let input = copy::in_memory_format(call, input, by_channels)?;
        let out = empty(call, &grad, &weight.sizes, last)?;
        let (inner, outer) = if geometry.transposed { (&grad, &input) } else { (&input, &grad) };
        passes::backward_weight(call, &geometry, inner, outer, &out)?;
        gradients[1] = Some(out);
    }
    if wants(2) {
        let out = call.empty(grad.dtype, &[grad.sizes[1]])?;
        passes::backward_bias(call, &grad, &out)?;
        gradients[2] = Some(out);
    }
    Ok(gradients)
}

fn check_dtypes(call: &Call, a: &View, b: &View) -> Result<()> {
    check!(a.dtype == b.dtype, Runtime, "expected scalar type {} but found {}", a.dtype, b.dtype);
    matmul::check_dtype(call, a.dtype)
}
