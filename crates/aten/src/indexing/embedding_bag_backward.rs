//! The gradients of bags of embeddings: of the table, and of the weights of indices.

use crate::indexing::embedding_bag::check_index;
use crate::operator::call::Call;
use crate::operator::error::{Error, Result};
use crate::{check, group, operators};
use dml_compute::indexing::embedding::accumulate_rows;
use dml_compute::indexing::embedding_bag::Mode;
use dml_compute::indexing::embedding_bag_backward::{contributions, of_maxima, per_sample_weights};
use dml_compute::movement::copy::{as_contiguous, fill_with};
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;

operators! {
    backward(grad, indices, {Bags}, {Options}, sparse = false) {
        "aten::_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, Tensor bag_size, Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, int padding_idx=-1) -> Tensor",
        "aten::_embedding_bag_dense_backward(Tensor grad, Tensor indices, Tensor offset2bag, Tensor bag_size, Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, int padding_idx=-1) -> Tensor",
    }
    per_sample_weights_backward(grad, weight, indices, offset2bag, mode, padding_idx) {
        "aten::_embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight, Tensor indices, Tensor offsets, Tensor offset2bag, int mode, int padding_idx=-1) -> Tensor",
    }
}

group! {
    /// What the forward pass returned of its bags.
    struct Bags<'a> {
        offset2bag: &'a View,
        bag_size: &'a View,
        maximum_indices: &'a View,
    }
}

group! {
    /// What the forward pass took beside tables and indices.
    struct Options<'a> {
        num_weights: i64,
        scale_grad_by_freq: bool,
        mode: i64,
        per_sample_weights: Option<&'a View>,
        padding_idx: i64,
    }
}

fn backward(call: &mut Call, grad: &View, indices: &View, bags: Bags, options: Options, sparse: bool) -> Result<()> {
    let Bags { offset2bag: bag_of, bag_size: size, maximum_indices: largest } = bags;
    let Options { num_weights, scale_grad_by_freq, mode, per_sample_weights: each, padding_idx } = options;
    if sparse {
        return Err(Error::Fallback(format!("{}: a sparse gradient", call.name)));
    }
    let mode = crate::indexing::embedding_bag::mode_of(mode)?;
    check_index(indices, 2, "indices")?;
    check!(grad.dim() == 2 && grad.dtype.is_float(), Runtime, "embedding_bag: a gradient of {}", grad.describe());
    let (bags, width) = (grad.sizes[0], grad.sizes[1]);
    check!(
        size.numel() == bags
            && (mode == Mode::Max && largest.sizes == grad.sizes
                || mode != Mode::Max && bag_of.numel() == indices.numel()),
        Runtime,
        "embedding_bag: a gradient of {} does not belong to bags {}, {}, {}",
        grad.describe(),
        bag_of.describe(),
        size.describe(),
        largest.describe()
    );
    let out = call.empty(grad.dtype, &[num_weights, width])?;
    fill_with(call, &out, Number::Int(0))?;
    if mode == Mode::Max {
        of_maxima(call, grad, size, largest, &out)?;
    } else if indices.numel() > 0 && width > 0 {
        let parts = contributions(call, mode, grad, bag_of, size, each)?;
        accumulate_rows(call, &parts, indices, &out, padding_idx, scale_grad_by_freq)?;
    }
    call.ret(out);
    Ok(())
}

/// For each index, the product of its row and its bag's gradient.
fn per_sample_weights_backward(
    call: &mut Call,
    grad: &View,
    weight: &View,
    indices: &View,
    bag_of: &View,
    mode: i64,
    padding: i64,
) -> Result<()> {
    check!(
        crate::indexing::embedding_bag::mode_of(mode)? == Mode::Sum,
        Runtime,
        "embedding_bag_backward: per_sample_weights only supported for mode='sum'"
    );
    check_index(indices, 2, "indices")?;
    check!(
        grad.dim() == 2
            && weight.dim() == 2
            && grad.sizes[1] == weight.sizes[1]
            && grad.dtype == weight.dtype
            && grad.dtype.is_float()
            && bag_of.numel() == indices.numel(),
        Runtime,
        "embedding_bag: a gradient of {} does not belong to weight {} and indices {}",
        grad.describe(),
        weight.describe(),
        bag_of.describe()
    );
    let n = indices.numel();
    let out = call.empty(grad.dtype, &[n])?;
    if n > 0 {
        let dense = |t: &View| as_contiguous(call, t);
        let (grad, weight, indices, bag_of) = (dense(grad)?, dense(weight)?, dense(indices)?, dense(bag_of)?);
        per_sample_weights(call, &grad, &weight, &indices, &bag_of, padding, &out)?;
    }
    call.ret(out);
    Ok(())
}
