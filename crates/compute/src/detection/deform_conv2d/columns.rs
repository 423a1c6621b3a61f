//! The matrix of pixels that deformed filters read: `[channels * taps, batch, positions]`.

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

/// Channels of an invocation, all of which read at the same point.
const CHANNELS_PER_INVOCATION: u32 = 8;

/// Writes the columns of `input`. All tensors are contiguous.
pub fn run(cx: &Context, g: &Geometry, input: &View, offset: &View, mask: Option<&View>, columns: &View) -> Result<()> {
    if columns.numel() == 0 {
        return Ok(());
    }
    let (index, masked) = (index_type(&[input, offset, columns]), mask.is_some());
    let parts = (g.group_channels() + i64::from(CHANNELS_PER_INVOCATION) - 1) / i64::from(CHANNELS_PER_INVOCATION);
    let spec = Spec { dtype: input.dtype, index, masked };
    let arguments =
        Arguments { columns, input, offset, mask, points: g.points(), threads: g.points() * parts, geometry: g };
    cx.run_threads(&spec, &arguments, (g.points() * parts) as u64)
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
        columns: Output = s.dtype,
        input: Input = s.dtype,
        offset: Input = s.dtype,
        mask: Option<Input> = s.masked.then_some(s.dtype),
        points: Index = s.index,
        threads: Index = s.index,
        geometry: GeometryNumbers,
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "deform_columns"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let (index, g) = (self.index, &p.geometry);
        let i = linear_id(b, index);
        b.if_(i.lt(p.threads), || {
            let (part, number) = (i / p.points, i % p.points);
            let point = g.point(number);
            let location = g.locate(&point, p.offset);
            let scale = p.mask.map(|mask| mask.load(number));
            let [height, width] = g.image.map(|n| n.cast(index));
            let own = g.group_channels(index);
            let first = part * CHANNELS_PER_INVOCATION;
            b.for_(first, (first + CHANNELS_PER_INVOCATION).min(own), 1, |within| {
                let channel = point.group * own + within;
                let plane = (point.image * g.channels.cast(index) + channel) * height * width;
                let value = interpolate(&location, &corners(p.input, plane, width, &location));
                let offset = g.column(channel, point.tap, point.image, point.position);
                p.columns.store(offset, scale.map_or(value, |scale| scale * value));
            });
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
