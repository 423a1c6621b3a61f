//! The checked arguments of a cross-entropy.

use crate::check;
use crate::operator::call::Call;
use crate::operator::error::Result;
use dml_compute::loss::cross_entropy::problem::{Problem, classes_last, without};
use dml_compute::movement::copy::as_contiguous;
use dml_compute::primitives::rows::Extent;
use dml_compute::view::View;
use dml_kernel::DType;

pub fn checked(
    call: &Call,
    input: &View,
    target: &View,
    weight: Option<&View>,
    reduction: i64,
    ignore: i64,
    smoothing: f64,
) -> Result<Problem> {
    let dim = usize::from(input.dim() > 1);
    let fits = input.dim() > 0 && input.numel() > 0 && target.sizes.iter().eq(without(&input.sizes, dim).iter());
    check!(
        fits && input.dtype.is_float() && matches!(target.dtype, DType::I64 | DType::U8),
        Runtime,
        "{}: expected logits and the indices of classes, but got {} and {}",
        call.name,
        input.describe(),
        target.describe()
    );
    let classes = input.sizes[dim];
    if let Some(w) = weight {
        check!(
            w.sizes[..] == [classes] && w.dtype.is_float() && smoothing == 0.0,
            Runtime,
            "{}: expected weights of {classes} classes and no smoothing, but got {} and {smoothing}",
            call.name,
            w.describe()
        );
    }
    // Images whose channels come last are rows already.
    let last = classes_last(input, dim);
    let input = if last { input.clone() } else { as_contiguous(call, input)? };
    let extent = if last {
        Extent { rows: input.numel() / classes, n: classes, inner: 1 }
    } else {
        Extent::along(&input.sizes, dim)
    };
    Ok(Problem {
        input,
        extent,
        target: as_contiguous(call, target)?,
        weight: weight.map(|w| as_contiguous(call, w)).transpose()?,
        reduction: crate::loss::reduce::reduce_of(call, reduction)?,
        ignore,
        smoothing,
    })
}
