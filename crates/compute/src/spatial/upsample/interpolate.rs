//! The plan of each resampling, and the name of the CPU's kernel.

use crate::spatial::upsample::axis::{AxisPlan, Filter};
use crate::spatial::upsample::kernel::Plan;
use dml_kernel::DType;

/// The resampling of images from size `input` to `output`, given the user's scale factors of depth,
/// height and width.
pub fn plan(
    filter: Filter,
    align_corners: bool,
    input: &[i64],
    output: &[i64],
    scales: [Option<f64>; 3],
    dtype: DType,
) -> Plan {
    let scales = &scales[3 - input.len()..];
    let axes = input
        .iter()
        .zip(output)
        .zip(scales)
        .map(|((&from, &to), &given)| AxisPlan::new(filter, align_corners, from, to, given, dtype == DType::F64));
    Plan { filter, align_corners, axes: axes.collect() }
}

/// The name of the CPU's kernel in its error message for unsupported dtypes.
pub fn name(filter: Filter, rank: usize) -> &'static str {
    match (filter, rank) {
        (Filter::Nearest | Filter::NearestExact, 2) => "upsample_nearest2d_channels_last",
        (Filter::Nearest | Filter::NearestExact, _) => "compute_indices_weights_nearest",
        (Filter::Linear, 2) => "upsample_bilinear2d_channels_last",
        (Filter::Linear, _) => "compute_indices_weights_linear",
        (Filter::Cubic, _) => "compute_indices_weights_cubic",
        _ => "compute_index_ranges_weights",
    }
}
