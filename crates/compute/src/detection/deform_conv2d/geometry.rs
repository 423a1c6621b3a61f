//! Sizes of a deformable convolution, and the positions that its filters read.

use dml_engine::interface::I32;
use dml_engine::{ArgumentBlock, Parameter};
use dml_kernel::{Builder, Pointer, ScalarType, Value};

/// The sizes of a deformable convolution. Pairs are height and width.
#[derive(Copy, Clone, Debug)]
pub struct Geometry {
    /// Number of images.
    pub batch: i64,
    /// Channels of the input.
    pub channels: i64,
    /// Size of an image.
    pub image: [i64; 2],
    /// Size of a filter.
    pub kernel: [i64; 2],
    /// Stride of the filter.
    pub stride: [i64; 2],
    /// Padding of the image.
    pub padding: [i64; 2],
    /// Dilation: distance between the filter's taps.
    pub dilation: [i64; 2],
    /// Size of the result.
    pub result: [i64; 2],
    /// Groups of channels that have separate offsets.
    pub offset_groups: i64,
}

impl Geometry {
    /// Number of taps of a filter.
    pub fn taps(&self) -> i64 {
        self.kernel[0] * self.kernel[1]
    }

    /// Number of pixels of a result.
    pub fn positions(&self) -> i64 {
        self.result[0] * self.result[1]
    }

    /// Number of points at which images are read.
    pub fn points(&self) -> i64 {
        self.batch * self.offset_groups * self.taps() * self.positions()
    }

    /// Channels of an offset group.
    pub fn group_channels(&self) -> i64 {
        self.channels / self.offset_groups
    }
}

/// Kernel parameter: a [`Geometry`].
pub struct GeometryNumbers;

/// A [`Geometry`] in a kernel (i32).
pub struct GeometryParams<'b> {
    /// Number of images.
    pub batch: Value<'b>,
    /// Channels of the input.
    pub channels: Value<'b>,
    /// Size of an image.
    pub image: [Value<'b>; 2],
    kernel: [Value<'b>; 2],
    stride: [Value<'b>; 2],
    padding: [Value<'b>; 2],
    dilation: [Value<'b>; 2],
    result: [Value<'b>; 2],
    offset_groups: Value<'b>,
}

impl Parameter for GeometryNumbers {
    type Type = ();
    type Argument<'a> = &'a Geometry;
    type Declared<'b> = GeometryParams<'b>;

    fn declare<'b>(b: &'b Builder, name: &str, (): &()) -> GeometryParams<'b> {
        let number = |what: &str| b.param(&format!("{name}_{what}"), ScalarType::I32);
        let pair = |what: &str| [number(&format!("{what}_h")), number(&format!("{what}_w"))];
        GeometryParams {
            batch: number("batch"),
            channels: number("channels"),
            offset_groups: number("offset_groups"),
            image: pair("image"),
            kernel: pair("kernel"),
            stride: pair("stride"),
            padding: pair("padding"),
            dilation: pair("dilation"),
            result: pair("result"),
        }
    }

    fn pass(g: &&Geometry, (): &(), block: &mut ArgumentBlock) {
        let pairs = [g.image, g.kernel, g.stride, g.padding, g.dilation, g.result];
        for n in [g.batch, g.channels, g.offset_groups].into_iter().chain(pairs.into_iter().flatten()) {
            I32::pass(&(n as i32), &(), block);
        }
    }
}

/// A point at which one tap of a filter reads the image, for the channels of an offset group.
pub struct Point<'b> {
    /// The image, of the index type.
    pub image: Value<'b>,
    /// The offset group, of the index type.
    pub group: Value<'b>,
    /// The tap, of the index type.
    pub tap: Value<'b>,
    /// The result's pixel, of the index type.
    pub position: Value<'b>,
    /// Indices of the point's offsets, vertical and horizontal.
    pub offset: [Value<'b>; 2],
}

impl<'b> GeometryParams<'b> {
    /// Number of taps of a filter, as the index type.
    pub fn taps(&self, index: ScalarType) -> Value<'b> {
        self.kernel[0].cast(index) * self.kernel[1].cast(index)
    }

    /// Number of pixels of a result, as the index type.
    pub fn positions(&self, index: ScalarType) -> Value<'b> {
        self.result[0].cast(index) * self.result[1].cast(index)
    }

    /// Index in the columns, `[channels * taps, images, positions]`, of the value that a tap of a
    /// channel reads for a position.
    pub fn column(&self, channel: Value<'b>, tap: Value<'b>, image: Value<'b>, position: Value<'b>) -> Value<'b> {
        let index = channel.scalar();
        let row = channel * self.taps(index) + tap;
        (row * self.batch.cast(index) + image) * self.positions(index) + position
    }

    /// Channels of an offset group, as the index type.
    pub fn group_channels(&self, index: ScalarType) -> Value<'b> {
        (self.channels / self.offset_groups).cast(index)
    }

    /// The point with index `i`, whose digits are image, offset group, tap, and pixel of the
    /// result.
    pub fn point(&self, i: Value<'b>) -> Point<'b> {
        let index = i.scalar();
        let (positions, taps) = (self.positions(index), self.taps(index));
        let (rest, position) = (i / positions, i % positions);
        let offset = rest * positions * 2 + position;
        let (rest, tap) = (rest / taps, rest % taps);
        let groups = self.offset_groups.cast(index);
        Point { image: rest / groups, group: rest % groups, tap, position, offset: [offset, offset + positions] }
    }

    /// The coordinates that a point reads, vertical and horizontal.
    pub fn locate(&self, point: &Point<'b>, offsets: Pointer<'b>) -> [Location<'b>; 2] {
        let index = point.tap.scalar();
        let split = |i: Value<'b>, n: Value<'b>| {
            [(i / n.cast(index)).cast(ScalarType::I32), (i % n.cast(index)).cast(ScalarType::I32)]
        };
        let (tap, at) = (split(point.tap, self.kernel[1]), split(point.position, self.result[1]));
        [0, 1].map(|d| {
            let position = at[d] * self.stride[d] - self.padding[d] + tap[d] * self.dilation[d];
            let offset = offsets.load(point.offset[d]);
            let end = self.image[d].cast(offset.scalar());
            // Clamped to just outside of the range in which anything is read, so that the number
            // fits an i32, also for NaN.
            let at = (position.cast(offset.scalar()) + offset).max(-2.0).min(end + 1.0);
            let low = at.floor();
            let first = low.cast(ScalarType::I32);
            let there = |i: Value<'b>| i.ge(0) & i.lt(self.image[d]);
            let taps = [first, first + 1].map(|i| (i, there(i)));
            Location { fraction: at - low, taps, inside: at.gt(-1.0) & at.lt(end) }
        })
    }
}

/// What a point reads along one axis: two pixels, interpolated linearly.
#[derive(Copy, Clone)]
pub struct Location<'b> {
    /// Weight of the second pixel; the first has one minus that.
    pub fraction: Value<'b>,
    /// Coordinates of the two pixels (i32), and whether they are in the image.
    pub taps: [(Value<'b>, Value<'b>); 2],
    /// Whether the point is less than a pixel outside of the image, or inside.
    pub inside: Value<'b>,
}

impl<'b> Location<'b> {
    /// Weights of the two pixels.
    pub fn weights(&self) -> [Value<'b>; 2] {
        [1.0 - self.fraction, self.fraction]
    }
}

/// The four pixels of the plane at `plane` (of the index type), row-major; 0 outside of the image.
pub fn corners<'b>(
    input: Pointer<'b>,
    plane: Value<'b>,
    width: Value<'b>,
    [y, x]: &[Location<'b>; 2],
) -> [[Value<'b>; 2]; 2] {
    let (b, index) = (input.builder(), plane.scalar());
    y.taps.map(|(row, row_there)| {
        x.taps.map(|(column, column_there)| {
            let value = b.var(b.constant_of(input.dtype().compute(), 0.0));
            b.if_(row_there & column_there, || {
                value.set(input.load(plane + row.cast(index) * width + column.cast(index)));
            });
            value.get()
        })
    })
}

/// The weighted sum of the four pixels.
pub fn interpolate<'b>([y, x]: &[Location<'b>; 2], corners: &[[Value<'b>; 2]; 2]) -> Value<'b> {
    let (down, across) = (y.weights(), x.weights());
    let term = |i: usize, j: usize| (down[i] * across[j]) * corners[i][j];
    let sum = term(0, 0) + term(0, 1) + term(1, 0) + term(1, 1);
    (y.inside & x.inside).select(sum, sum.like(0.0))
}
