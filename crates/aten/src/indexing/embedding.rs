//! The gradient of an embedding, and the normalisation of its rows. (The embedding itself is
//! `index_select`.)

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::tensor::overlap::SHARED;
use crate::{check, operators};
use dml_compute::indexing::arguments::is_index;
use dml_compute::indexing::embedding::{accumulate_rows, renorm};
use dml_compute::movement::copy::fill_with;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;

operators! {
    embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq) {
        hot "aten::embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool scale_grad_by_freq) -> Tensor",
    }
    embedding_renorm(self, indices, max_norm, norm_type) {
        "aten::embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> Tensor(a!)",
    }
}

fn embedding_dense_backward(
    call: &mut Call,
    grad: &View,
    indices: &View,
    rows: i64,
    padding: i64,
    by_frequency: bool,
) -> Result<()> {
    check!(
        is_index(indices.dtype),
        Runtime,
        "Expected tensor for argument #2 'indices' to have one of the following scalar types: Long, Int; but got {} \
         instead (while checking arguments for embedding_backward)",
        indices.dtype
    );
    let width = grad.sizes.last().copied().unwrap_or(1);
    let out = call.empty(grad.dtype, &[rows, width])?;
    fill_with(call, &out, Number::Int(0))?;
    accumulate_rows(call, grad, indices, &out, padding, by_frequency)?;
    call.ret(out);
    Ok(())
}

/// Scales the rows with these indices down to a maximum norm. Expanded rows are accepted only if
/// none needs scaling.
fn embedding_renorm(call: &mut Call, table: &View, indices: &View, limit: f64, p: f64) -> Result<()> {
    check!(
        table.dim() == 2,
        Runtime,
        "Expected 2-dimensional tensor, but got {}-dimensional tensor for argument #1 'self' (while checking arguments \
         for embedding_renorm_)",
        table.dim()
    );
    check!(
        is_index(indices.dtype),
        Runtime,
        "Expected tensor for argument #2 'indices' to have one of the following scalar types: Long, Int; but got {} \
         instead (while checking arguments for embedding_renorm_)",
        indices.dtype
    );
    check!(
        table.dtype.is_float(),
        Runtime,
        "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}",
        table.dtype
    );
    renorm(call, table, indices, limit, p, SHARED)?;
    call.ret(table.clone());
    Ok(())
}
