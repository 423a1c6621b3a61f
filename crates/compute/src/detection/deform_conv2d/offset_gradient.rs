//! The gradients of the offsets and the mask: one invocation for each point, which sums over the
//! channels of its group.

use crate::context::Context;
use crate::detection::deform_conv2d::geometry::{Geometry, GeometryNumbers, corners, interpolate};
use crate::error::Result;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::spatial::geometry::index_type;
use crate::view::View;
use dml_engine::interface::Index;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

/// The operands, all contiguous.
pub struct Operands<'t> {
    /// The gradient of the columns.
    pub columns: &'t View,
    /// The images.
    pub input: &'t View,
    /// The offsets.
    pub offset: &'t View,
    /// The mask.
    pub mask: Option<&'t View>,
    /// The gradient of the offsets; written.
    pub grad_offset: &'t View,
    /// The gradient of the mask; written.
    pub grad_mask: Option<&'t View>,
}

/// Writes both gradients.
pub fn run(cx: &Context, g: &Geometry, o: &Operands) -> Result<()> {
    if g.points() == 0 {
        return Ok(());
    }
    let index = index_type(&[o.input, o.offset, o.columns]);
    let spec = Spec { dtype: o.input.dtype, index, masked: o.mask.is_some() };
    let arguments = Arguments {
        grad_offset: o.grad_offset,
        grad_mask: o.grad_mask,
        columns: o.columns,
        input: o.input,
        offset: o.offset,
        mask: o.mask,
        points: g.points(),
        geometry: g,
    };
    cx.run_threads(&spec, &arguments, g.points() as u64)
}

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    dtype: DType,
    index: ScalarType,
    masked: bool,
}

parameters! {
    Spec as s => Arguments, Parameters {
        grad_offset: Output = s.dtype,
        grad_mask: Option<Output> = s.masked.then_some(s.dtype),
        columns: Input = s.dtype,
        input: Input = s.dtype,
        offset: Input = s.dtype,
        mask: Option<Input> = s.masked.then_some(s.dtype),
        points: Index = s.index,
        geometry: GeometryNumbers,
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "deform_offsets"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let (index, g) = (self.index, &p.geometry);
        let i = linear_id(b, index);
        b.if_(i.lt(p.points), || {
            let point = g.point(i);
            let location = g.locate(&point, p.offset);
            let [height, width] = g.image.map(|n| n.cast(index));
            let own = g.group_channels(index);
            let zero = b.constant_of(self.dtype.compute(), 0.0);
            let [down, across, value] = [0; 3].map(|_| b.var(zero));
            b.for_(b.int(index, 0), own, 1, |within| {
                let channel = point.group * own + within;
                let plane = (point.image * g.channels.cast(index) + channel) * height * width;
                let grad = p.columns.load(g.column(channel, point.tap, point.image, point.position));
                let pixels = corners(p.input, plane, width, &location);
                let [y, x] = [0, 1].map(|d| location[d].weights());
                let slope_down = x[1] * (pixels[1][1] - pixels[0][1]) + x[0] * (pixels[1][0] - pixels[0][0]);
                let slope_across = y[1] * (pixels[1][1] - pixels[1][0]) + y[0] * (pixels[0][1] - pixels[0][0]);
                down.set(down.get() + slope_down * grad);
                across.set(across.get() + slope_across * grad);
                if self.masked {
                    value.set(value.get() + interpolate(&location, &pixels) * grad);
                }
            });
            let scale = p.mask.map(|mask| mask.load(i));
            for (slope, component) in [down, across].into_iter().zip(point.offset) {
                p.grad_offset.store(component, scale.map_or(slope.get(), |scale| scale * slope.get()));
            }
            if let Some(grad_mask) = p.grad_mask {
                grad_mask.store(i, value.get());
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index, masked) in [
            (DType::F16, ScalarType::U32, true),
            (DType::F32, ScalarType::U64, false),
            (DType::F64, ScalarType::U32, true),
        ] {
            crate::primitives::validate::accepted(&Spec { dtype, index, masked }.build());
        }
    }
}
