//! The gradient of an embedding. (The embedding itself is `index_select`.)

use crate::accumulate::{self, Accumulation, Combine};
use crate::call::{Call, Scalar as Number};
use crate::check;
use crate::copy::{as_contiguous, fill_with};
use crate::error::Result;
use crate::indexing::is_index;
use crate::indirect::{self, Action, Selector, Walk};
use crate::table::{Operator, op};
use crate::tensor::{Dims, Tensor};
use dml_kernel::DType;

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[op("aten::embedding_dense_backward", embedding_dense_backward)];

/// `embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)`
fn embedding_dense_backward(call: &mut Call) -> Result<()> {
    let (grad, indices) = (call.tensor(0)?, call.tensor(1)?);
    check!(
        is_index(indices.dtype),
        Runtime,
        "Expected tensor for argument #2 'indices' to have one of the following scalar types: Long, Int; but got {} \
         instead (while checking arguments for embedding_backward)",
        indices.dtype
    );
    let (rows, padding) = (call.int(2)?, call.int(3)?);
    let by_frequency = call.flag(4)?;
    let width = grad.sizes.last().copied().unwrap_or(1);
    let out = call.empty(grad.dtype, &[rows, width])?;
    fill_with(call, &out, Number::Int(0))?;
    let n = indices.numel();
    if n > 0 && width > 0 {
        let row = call.empty(DType::U32, &[n])?;
        let none = accumulate::no_key(call.name, &[rows])?;
        let own = Dims::from_elem(0, indices.dim());
        let selectors = [Selector { index: indices.clone(), size: rows, stride: 1, dim: 0 }];
        let walk = Walk { sizes: &indices.sizes, base: &out, strides: &own, selectors: &selectors, negative: false };
        indirect::run(call, &walk, &Action::Number { row: &row, none })?;
        let grad: Tensor = as_contiguous(call, grad)?;
        accumulate::run(
            call,
            &Accumulation {
                dst: &out,
                key_sizes: &[rows],
                key_strides: &[width],
                keys: &row,
                src: &grad,
                part_sizes: &[n],
                part_strides: &[width],
                slice_sizes: &[width],
                dst_strides: &[1],
                src_strides: &[1],
                // Each gradient divided by how often its row occurs: the mean.
                combine: if by_frequency { Combine::Mean } else { Combine::Add },
                include_self: false,
                skip: u32::try_from(padding).ok(),
            },
        )?;
    }
    call.ret(out);
    Ok(())
}
