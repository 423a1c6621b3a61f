//! softmax with a mask, which PyTorch's attention for inference calls.

use crate::operator::call::Call;
use crate::operator::error::{Error, Result};
use crate::{check, operators};
use dml_compute::attention::masked_softmax::masked;
use dml_compute::movement::copy;
use dml_compute::normalization::softmax;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    forward(self, mask, dim, mask_type) {
        "aten::_masked_softmax(Tensor self, Tensor mask, int? dim=None, int? mask_type=None) -> Tensor",
    }
    backward(grad_output, output, mask, dim) {
        "aten::_masked_softmax_backward(Tensor grad_output, Tensor output, Tensor mask, int? dim=None) -> Tensor",
    }
}

/// The mask is true where an element is excluded. `kind` is the type of the mask: 0 for `[L, L]`, 1
/// for `[batch, L]` with scores `[batch, heads, L, L]`, 2 for the shape of `self`.
fn forward(call: &mut Call, x: &View, mask: &View, dim: Option<i64>, kind: Option<i64>) -> Result<()> {
    check!(mask.dtype == DType::Bool, Runtime, "Mask should be a boolean tensor");
    let Some(kind) = kind else { return Err(Error::Runtime("Mask Type should be defined".into())) };
    let scores = |wanted: &[i64], what: &str| {
        check!(
            x.dim() == 4 && mask.sizes.as_slice() == wanted,
            Runtime,
            "For mask_type == {kind} mask shape should be {what}"
        );
        Ok(())
    };
    let mask = match kind {
        0 => {
            scores(x.sizes.get(2..4).unwrap_or_default(), "(L, L)")?;
            mask.expand(&x.sizes)
        }
        1 => {
            let wanted = if x.dim() == 4 { [x.sizes[0], x.sizes[2]] } else { [-1, -1] };
            scores(&wanted, "(B, L)")?;
            let strides = [mask.strides[0], 0, 0, mask.strides[1]];
            mask.as_strided(&[x.sizes[0], 1, 1, x.sizes[3]], &strides, 0).expand(&x.sizes)
        }
        2 => {
            check!(mask.sizes == x.sizes, Runtime, "For mask_type == 2 mask shape should match input shape");
            mask.clone()
        }
        _ => {
            return Err(Error::Runtime(
                "Mask Type should be 0 (src_mask) or 1 (src_key_padding_mask), or 2 (default_mask)".into(),
            ));
        }
    };
    check!(x.dtype.is_float(), Dtype, "\"masked_softmax\" not implemented for '{}'", x.dtype);
    let dim = call.wrap_dim(dim.unwrap_or(-1), x.dim())?;
    let out = masked(call, x, &mask, f64::NEG_INFINITY)?;
    if out.numel() > 0 {
        softmax::softmax_into(call, &out, dim, &out)?;
    }
    call.ret(out);
    Ok(())
}

fn backward(call: &mut Call, grad: &View, y: &View, mask: &View, dim: Option<i64>) -> Result<()> {
    check!(mask.dtype == DType::Bool, Runtime, "Mask should be a boolean tensor");
    check!(mask.sizes == grad.sizes, Runtime, "Mask shape should match grad shape");
    check!(
        y.sizes == grad.sizes && y.dtype == grad.dtype && y.dtype.is_float(),
        Runtime,
        "{}: expected a gradient like the output {}, got {}",
        call.name,
        y.describe(),
        grad.describe()
    );
    let dim = call.wrap_dim(dim.unwrap_or(-1), grad.dim())?;
    let out = masked(call, grad, mask, 0.0)?;
    if out.numel() > 0 {
        softmax::softmax_gradient_into(call, &out, &copy::as_contiguous(call, y)?, dim, &out)?;
    }
    // A fully masked row is NaN, and its gradient 0.
    let out = masked(call, &out, mask, 0.0)?;
    call.ret(out);
    Ok(())
}
