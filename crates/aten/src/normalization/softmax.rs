//! The operators softmax and log_softmax, forward and backward, which
//! [`dml_compute::normalization::softmax`] computes.

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::{check, operators};
use dml_compute::movement::copy;
use dml_compute::normalization::softmax::{Mode, rows};
use dml_compute::view::View;
use dml_kernel::DType;
use smallvec::SmallVec;

operators! {
    forward(self, dim, half_to_float, out; Mode::Softmax) {
        hot "aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
        "aten::_softmax.out(Tensor self, int dim, bool half_to_float, *, Tensor(a!) out) -> Tensor(a!)",
    }
    forward(self, dim, half_to_float, out; Mode::LogSoftmax) {
        hot "aten::_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
        "aten::_log_softmax.out(Tensor self, int dim, bool half_to_float, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, output, dim, input_dtype, out; Mode::SoftmaxGrad) {
        hot "aten::_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
        "aten::_softmax_backward_data.out(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    backward(grad_output, output, dim, input_dtype, out; Mode::LogSoftmaxGrad) {
        hot "aten::_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
        "aten::_log_softmax_backward_data.out(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

fn forward(call: &mut Call, x: &View, dim: i64, widen: bool, out: Out, mode: Mode) -> Result<()> {
    let dim = call.wrap_dim(dim, x.dim())?;
    let name = if mode == Mode::Softmax { "softmax" } else { "log_softmax" };
    let last = if dim + 1 < x.dim() { "" } else { "_lastdim" };
    // Empty tensors may have any dtype, as on the CPU.
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
    grad: &View,
    output: &View,
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

fn run(call: &mut Call, mode: Mode, inputs: &[&View], dim: usize, dtype: DType, out: Out) -> Result<()> {
    let sizes = &inputs[0].sizes;
    let result = structured::result(call, out.given(), dtype, sizes)?;
    if result.numel() > 0 {
        let dense = if result.is_contiguous() { result.clone() } else { call.empty(dtype, sizes)? };
        let inputs: Result<SmallVec<[View; 2]>> = inputs.iter().map(|t| Ok(copy::as_contiguous(call, t)?)).collect();
        rows(call, mode, &inputs?, dim, &dense)?;
        if dense.data != result.data {
            crate::movement::copies::checked_copy(call, &dense, &result)?;
        }
    }
    call.ret(result);
    Ok(())
}
