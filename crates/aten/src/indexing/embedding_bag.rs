//! Bags of embeddings: the sum, mean or maximum of some rows of a table, for each bag.
//!
//! A bag is a range of the list of indices; `offsets` has the start of each bag.

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::indexing::arguments::is_index;
use dml_compute::indexing::embedding_bag::{BagResults, Bags, Mode, bags};
use dml_compute::movement::copy::{as_contiguous, cast, fill_with};
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    forward(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx) {
        "aten::_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
        "aten::_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
    }
}

/// The mode with PyTorch's code.
pub fn mode_of(code: i64) -> Result<Mode> {
    check!((0..=2).contains(&code), Runtime, "embedding_bag: {code} is not a valid mode");
    Ok([Mode::Sum, Mode::Mean, Mode::Max][code as usize])
}

/// Checks that a tensor is a vector of indices.
pub fn check_index(t: &View, position: usize, name: &str) -> Result<()> {
    check!(
        is_index(t.dtype),
        Runtime,
        "Expected tensor for argument #{position} '{name}' to have one of the following scalar types: Long, Int; but \
         got {} instead (while checking arguments for embedding_bag)",
        t.dtype
    );
    check!(
        t.dim() == 1,
        Runtime,
        "embedding_bag: {name} must be a row, got a tensor of shape {:?}",
        t.sizes.as_slice()
    );
    Ok(())
}

/// Returns the bags' values, the bag of each index (-1 for indices of no bag), the bags' sizes
/// without padding, and the rows of the maxima.
fn forward(
    call: &mut Call,
    weight: &View,
    indices: &View,
    offsets: &View,
    mode: i64,
    each: Option<&View>,
    last: bool,
    padding: i64,
) -> Result<()> {
    let mode = mode_of(mode)?;
    check_index(indices, 1, "indices")?;
    check_index(offsets, 1, "offsets")?;
    check!(weight.dim() == 2, Runtime, "weight has to be a 2D Tensor, but got Tensor of dimension {}", weight.dim());
    check!(
        weight.dtype.is_float(),
        Runtime,
        "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, Float, \
         Double; but got {} instead (while checking arguments for embedding_bag)",
        weight.dtype
    );
    check!(!last || offsets.numel() > 0, Runtime, "include_last_offset: numBags should be at least 1");
    if let Some(each) = each {
        check!(mode == Mode::Sum, Runtime, "embedding_bag: per_sample_weights only supported with mode='sum'");
        check!(
            each.dtype == weight.dtype && each.dim() == 1 && each.numel() == indices.numel(),
            Runtime,
            "embedding_bag: expected per_sample_weights of {} and as many as indices, {}, but got {}",
            weight.dtype,
            indices.numel(),
            each.describe()
        );
    }
    let index = if indices.dtype == offsets.dtype { indices.dtype } else { DType::I64 };
    let dense = |t: &View| as_contiguous(call, &cast(call, t, index)?);
    let (indices, offsets) = (dense(indices)?, dense(offsets)?);
    let each = each.map(|t| as_contiguous(call, t)).transpose()?;
    let (count, width, n) = (offsets.numel() - i64::from(last), weight.sizes[1], indices.numel());
    let out = call.empty(weight.dtype, &[count, width])?;
    let (bag_of, size) = (call.empty(index, &[n])?, call.empty(index, &[count])?);
    fill_with(call, &bag_of, Number::Int(-1))?;
    let largest = if mode == Mode::Max {
        call.empty(index, &[count, width])?
    } else {
        let unused = call.empty(index, &[count])?;
        fill_with(call, &unused, Number::Int(0))?;
        unused
    };
    let given = Bags { weight, indices: &indices, offsets: &offsets, per_sample_weights: each.as_ref(), padding };
    let results = BagResults { out: &out, bag_of: &bag_of, max_indices: &largest };
    let size = bags(call, mode, &given, &results, size)?;
    for t in [out, bag_of, size, largest] {
        call.ret(t);
    }
    Ok(())
}
