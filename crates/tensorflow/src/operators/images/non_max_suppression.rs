//! Non-maximum suppression: of boxes that overlap by more than a threshold, only the one with the
//! best score stays; of equal scores the first is the best.

use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::require;
use dml_compute::detection::nms::suppress;
use dml_compute::indexing::mask::{Count, MaskAction};
use dml_compute::movement::copy;
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::sorting::sort::by_rows;
use dml_compute::{Scalar, View};
use dml_kernel::DType;

dml_compute::functions! {
    /// The smaller and the larger corner of a box given by any two corners.
    CORNERS = "corners"(top, left, bottom, right) => {
        [top.min(bottom), left.min(right), top.max(bottom), left.max(right)]
    };
}

/// The indices of at most `most` boxes that stay, by descending score, int64 on the device. Boxes
/// are `[n, 4]`, scores `[n]`.
fn selected(call: &Call, boxes: &View, scores: &View, most: i64, overlap: f64, least: Option<f64>) -> Result<View> {
    let cx = call.cx();
    let none = || Ok(cx.empty(DType::I64, &[0])?);
    if boxes.sizes[0] == 0 || most == 0 {
        return none();
    }
    let (sorted, order) = by_rows(&cx, scores, 0, true)?;
    // Descending, but NaN is first; it is no score.
    let numbers: Vec<Scalar> = copy::read_numbers(&cx, &sorted)?;
    let numbers: Vec<f64> = numbers.into_iter().map(Scalar::to_f64).collect();
    let first = numbers.iter().take_while(|score| score.is_nan()).count();
    let least = least.unwrap_or(f64::from(f32::MIN));
    let count = numbers[first..].iter().take_while(|&&score| score > least).count();
    if count == 0 {
        return none();
    }
    let order = order.narrow(0, first as i64, count as i64);
    let corners = cx.empty(DType::F32, &boxes.sizes)?;
    let sides = |t: &View| [0, 1, 2, 3].map(|side| t.narrow(1, side, 1));
    let [top, left, bottom, right] = sides(&corners);
    let operands = sides(boxes).map(Input::Tensor);
    kernel::run(&cx, &CORNERS, &[&top, &left, &bottom, &right], &operands, DType::F32)?;
    let keep = suppress(&cx, &corners, &order, overlap)?;
    let found = Count::new(&cx, &keep)?;
    let total = found.total(&cx)?.min(most);
    let row = cx.empty(DType::I64, &[total])?;
    if total > 0 {
        found.apply(&cx, MaskAction::Select { from: &order, row: &row }, total)?;
    }
    Ok(row)
}

/// The operators' inputs: boxes, scores, and on the host a maximum of results, a threshold for
/// overlaps, and perhaps one for scores.
fn run(call: &Call, pads: Option<bool>) -> Result<()> {
    let (boxes, scores) = (call.input(0)?, call.input(1)?);
    let most = call.host_number(2)?.to_i64();
    let overlap = call.host_number(3)?.to_f64();
    let least = if call.inputs() > 4 { Some(call.host_number(4)?.to_f64()) } else { None };
    require!(most >= 0, "max_output_size must be non-negative, got {most}");
    require!((0.0..=1.0).contains(&overlap), "iou_threshold must be in [0, 1]: {overlap}");
    require!(boxes.dim() == 2 && boxes.sizes[1] == 4, "boxes must have 4 columns: {:?}", boxes.sizes);
    require!(
        scores.dim() == 1 && scores.sizes[0] == boxes.sizes[0],
        "scores has incompatible shape: {:?} for boxes {:?}",
        scores.sizes,
        boxes.sizes
    );
    require!(boxes.sizes[0] < i64::from(i32::MAX), "there are more boxes than can be numbered");
    let cx = call.cx();
    let row = selected(call, &boxes, &scores, most, overlap, least)?;
    let found = row.numel();
    let out = call.output(0, &[if pads == Some(true) { most } else { found }])?;
    if out.numel() > found {
        copy::fill_with(&cx, &out, Scalar::Int(0))?;
    }
    if found > 0 {
        copy::device_copy(&cx, &row, &out.narrow(0, 0, found))?;
    }
    if pads.is_some() {
        copy::fill_with(&cx, &call.output(1, &[])?, Scalar::Int(found))?;
    }
    Ok(())
}

/// `NonMaxSuppressionV4`, whose result may be padded, and which says how many there are.
fn padded(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let pads = attributes.bool("pad_to_max_output_size")?;
    Ok(move |call: &Call| run(call, Some(pads)))
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    let all = &["max_output_size", "iou_threshold", "score_threshold"];
    let of_float = |operator: Operator| operator.of("T", &[DType::F32]).of("T_threshold", &[DType::F32]);
    vec![
        of_float(Operator::plain("NonMaxSuppressionV2", |call: &Call| run(call, None))).on_host(&all[..2]),
        of_float(Operator::plain("NonMaxSuppressionV3", |call: &Call| run(call, None))).on_host(all),
        of_float(Operator::new("NonMaxSuppressionV4", padded)).on_host(all),
    ]
}
