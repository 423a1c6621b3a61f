//! The largest elements of rows.

use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{INDICES, REALS_AND_I32};
use crate::operators::common::index_access::read;
use crate::operators::common::regions::reshaped;
use crate::require;
use dml_compute::Scalar;
use dml_compute::movement::copy::device_copy;
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::primitives::indexed_access::Selector;
use dml_compute::primitives::row_operands::Operands;
use dml_compute::reduction::Axes;
use dml_compute::reduction::sum::{Kind, fold_sum};
use dml_compute::sorting::rank::first;
use dml_kernel::{DType, ScalarType};

/// Writes the `k` largest elements of each row of input 0, and their positions; the first of equal
/// elements comes first.
fn top_k(call: &Call, k: i64, sorted: bool) -> Result<()> {
    let (cx, input) = (call.cx(), call.input(0)?);
    require!(input.dim() >= 1, "input must be >= 1-D, got shape {:?}", input.sizes.as_slice());
    require!(k >= 0, "Need k >= 0, got {k}");
    let dim = input.dim() - 1;
    require!(input.sizes[dim] >= k, "input must have at least k columns. Had {}, needed {k}", input.sizes[dim]);
    let mut sizes = input.sizes.clone();
    sizes[dim] = k;
    let [values, indices] = [call.output(0, &sizes)?, call.output(1, &sizes)?];
    if values.numel() == 0 {
        return Ok(());
    }
    let positions = if indices.dtype == DType::I64 { indices.clone() } else { cx.empty(DType::I64, &sizes)? };
    first(&cx, &Operands::new(&input, dim, &values, &positions), k, true, sorted)?;
    if indices.dtype != DType::I64 {
        device_copy(&cx, &positions, &indices)?;
    }
    Ok(())
}

dml_compute::functions! {
    /// How much an element adds to the rank of the target: 1 if it is larger, and more than there
    /// are elements if one of the two is no number.
    RANK = "in_top_k_rank"(x, target) => {
        let number = x.is_finite() & target.is_finite();
        let larger = x.gt(target).cast(ScalarType::I64);
        number.select(larger, larger.like(4294967296.0))
    };
    /// Whether a rank is below `k`, for a target from 0 to below `n`.
    IN_TOP_K = "in_top_k"(rank, target, k, n) => rank.lt(k) & target.ge(0) & target.lt(n);
}

/// `InTopKV2`: whether fewer than `k` elements of a row are larger than the target's.
fn in_top_k(call: &Call) -> Result<()> {
    let (cx, predictions, targets, k) = (call.cx(), call.input(0)?, call.input(1)?, call.input(2)?);
    require!(predictions.dim() == 2, "predictions must be 2-dimensional");
    require!(targets.dim() == 1, "targets must be 1-dimensional");
    require!(k.dim() == 0, "k must be 0-D, got shape {:?}", k.sizes.as_slice());
    let [rows, classes] = [predictions.sizes[0], predictions.sizes[1]];
    require!(
        rows == targets.sizes[0],
        "First dimension of predictions {rows} must match length of targets {}",
        targets.sizes[0]
    );
    let out = call.output(0, &[rows])?;
    if rows == 0 {
        return Ok(());
    }
    let of_target = cx.empty(DType::F32, &[rows])?;
    let selector = Selector { index: targets.clone(), size: classes, stride: 1, dim: 1 };
    read(call, &predictions, &[classes], &[selector], &of_target)?;
    let ranks = cx.empty(DType::I64, &[rows, classes])?;
    let operands = [Input::Tensor(predictions), Input::Tensor(reshaped(&of_target, &[rows, 1]))];
    kernel::run(&cx, &RANK, &[&ranks], &operands, DType::F32)?;
    let rank = cx.empty(DType::I64, &[rows])?;
    fold_sum(&cx, Kind::Sum, &ranks, &rank, Axes::of_dims(&[1], 2, false), DType::I64)?;
    let operands = [
        Input::Tensor(rank),
        Input::Tensor(targets),
        Input::Tensor(k),
        Input::Number(Scalar::Int(classes), DType::I64),
    ];
    Ok(kernel::run(&cx, &IN_TOP_K, &[&out], &operands, DType::I64)?)
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        Operator::new("TopKV2", |attributes: &Attributes| {
            let sorted = attributes.bool("sorted")?;
            Ok(move |call: &Call| {
                let k = call.host_number(1)?.to_i64();
                top_k(call, k, sorted)
            })
        })
        .of("T", REALS_AND_I32)
        .of("index_type", INDICES)
        .on_host(&["k"]),
        Operator::plain("InTopKV2", in_top_k).of("T", INDICES),
    ]
}
