//! Resampling of images `[batch, height, width, channels]`: nearest and bilinear, and gradients.

use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::FLOATS;
use crate::operators::common::window::Format;
use crate::require;
use dml_compute::View;
use dml_compute::spatial::upsample::axis::{AxisPlan, Filter};
use dml_compute::spatial::upsample::kernel::{self, Plan};

/// How positions of the result are mapped to positions of the images.
#[derive(Copy, Clone)]
struct Resizing {
    linear: bool,
    align_corners: bool,
    half_pixel_centers: bool,
}

impl Resizing {
    fn new(attributes: &Attributes, linear: bool) -> Result<Self> {
        let [align_corners, half_pixel_centers] =
            [attributes.bool("align_corners")?, attributes.bool("half_pixel_centers")?];
        require!(!(align_corners && half_pixel_centers), "If half_pixel_centers is True, align_corners must be False.");
        Ok(Self { linear, align_corners, half_pixel_centers })
    }

    /// The resampling from images to results of these heights and widths.
    fn plan(self, input: &[i64], output: &[i64]) -> Plan {
        let axis = |(&input, &output): (&i64, &i64)| {
            let aligned = self.align_corners && output > 1;
            let (from, to) = if aligned { (input - 1, output - 1) } else { (input, output) };
            AxisPlan { input, output, scale: f64::from(from as f32 / to as f32) }
        };
        // Without half pixels a position is the scale times an index, as where corners are aligned.
        let filter = match (self.linear, self.half_pixel_centers, self.align_corners) {
            (true, ..) => Filter::Linear,
            (false, false, false) => Filter::Nearest,
            (false, ..) => Filter::NearestExact,
        };
        Plan { filter, align_corners: !self.half_pixel_centers, axes: input.iter().zip(output).map(axis).collect() }
    }
}

/// The height and the width that input 1, on the host, has.
fn size(call: &Call) -> Result<[i64; 2]> {
    let size = call.host_ints(1)?;
    require!(size.len() == 2 && call.sizes(1)?.len() == 1, "shape_t must be 1-dimensional with two elements: {size:?}");
    require!(size.iter().all(|&n| n > 0), "output dimensions must be positive: {size:?}");
    Ok([size[0], size[1]])
}

fn images(t: &View, name: &str) -> Result<View> {
    require!(t.dim() == 4, "{name} must be 4-dimensional: {:?}", t.sizes);
    require!(t.sizes[1] > 0 && t.sizes[2] > 0, "{name} must be of non-zero size: {:?}", t.sizes);
    Ok(Format::ChannelsLast.image(t))
}

/// `ResizeBilinear`, whose result is float32, and `ResizeNearestNeighbor`.
fn forward(call: &Call, resizing: Resizing) -> Result<()> {
    let input = call.input(0)?;
    let size = size(call)?;
    let from = images(&input, "input")?;
    let out = call.output(0, &[input.sizes[0], size[0], size[1], input.sizes[3]])?;
    let plan = resizing.plan(&input.sizes[1..3], &size);
    Ok(kernel::run(&call.cx(), &plan, false, &from, &Format::ChannelsLast.image(&out))?)
}

/// The gradient of images of shape `sizes`.
fn gradient(call: &Call, resizing: Resizing, sizes: &[i64]) -> Result<()> {
    let grad = call.input(0)?;
    let from = images(&grad, "input")?;
    require!(
        sizes.len() == 4 && sizes[0] == grad.sizes[0] && sizes[3] == grad.sizes[3],
        "the images {sizes:?} do not belong to the gradient {:?}",
        grad.sizes
    );
    require!(sizes[1] > 0 && sizes[2] > 0, "images must be of non-zero size: {sizes:?}");
    let out = call.output(0, sizes)?;
    let plan = resizing.plan(&sizes[1..3], &grad.sizes[1..3]);
    Ok(kernel::run(&call.cx(), &plan, true, &from, &Format::ChannelsLast.image(&out))?)
}

/// An operator whose kernel gets the resizing.
fn operator(name: &'static str, linear: bool, compute: fn(&Call, Resizing) -> Result<()>) -> Operator {
    let make = move |attributes: &Attributes| {
        let resizing = Resizing::new(attributes, linear)?;
        Ok(move |call: &Call| compute(call, resizing))
    };
    Operator::new(name, make).of("T", FLOATS)
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    let of_nearest = |call: &Call, resizing| {
        let (sizes, size) = (call.sizes(0)?, size(call)?);
        require!(sizes.len() == 4, "input must be 4-dimensional: {sizes:?}");
        gradient(call, resizing, &[sizes[0], size[0], size[1], sizes[3]])
    };
    vec![
        operator("ResizeBilinear", true, forward).on_host(&["size"]),
        operator("ResizeBilinearGrad", true, |call, resizing| gradient(call, resizing, &call.sizes(1)?)),
        operator("ResizeNearestNeighbor", false, forward).on_host(&["size"]),
        operator("ResizeNearestNeighborGrad", false, of_nearest).on_host(&["size"]),
    ]
}
