//! The operator of non-maximum suppression: of boxes that overlap by more than a threshold, only
//! the one with the best score stays.

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::detection::nms::suppress;
use dml_compute::indexing::mask::{Count, MaskAction};
use dml_compute::movement::copy::as_contiguous;
use dml_compute::sorting::sort::by_rows;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    nms(dets, scores, iou_threshold) {
        "torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    }
}

/// Returns the indices (int64) of the boxes that stay, by descending score; equal scores by index.
fn nms(call: &mut Call, boxes: &View, scores: &View, threshold: f64) -> Result<()> {
    check_shapes(boxes, scores)?;
    if boxes.numel() == 0 {
        let none = call.empty(DType::I64, &[0])?;
        call.ret(none);
        return Ok(());
    }
    let n = boxes.sizes[0];
    check!(n < i64::from(i32::MAX), NotImplemented, "nms: {n} boxes are too many for dml");
    let (_, order) = by_rows(call, scores, 0, true)?;
    let keep = suppress(call, &as_contiguous(call, boxes)?, &order, threshold)?;
    let count = Count::new(call, &keep)?;
    let total = count.total(call)?;
    let out = call.empty(DType::I64, &[total])?;
    if total > 0 {
        count.apply(call, MaskAction::Select { from: &order, row: &out }, total)?;
    }
    call.ret(out);
    Ok(())
}

fn check_shapes(boxes: &View, scores: &View) -> Result<()> {
    check!(boxes.dim() == 2, Runtime, "boxes should be a 2d tensor, got {}D", boxes.dim());
    check!(boxes.sizes[1] == 4, Runtime, "boxes should have 4 elements in dimension 1, got {}", boxes.sizes[1]);
    check!(scores.dim() == 1, Runtime, "scores should be a 1d tensor, got {}D", scores.dim());
    check!(
        boxes.sizes[0] == scores.sizes[0],
        Runtime,
        "boxes and scores should have same number of elements in dimension 0, got {} and {}",
        boxes.sizes[0],
        scores.sizes[0]
    );
    check!(boxes.dtype.is_float(), NotImplemented, "\"nms_kernel\" not implemented for '{}'", boxes.dtype);
    check!(boxes.dtype == scores.dtype, Runtime, "dets should have the same type as scores");
    Ok(())
}
