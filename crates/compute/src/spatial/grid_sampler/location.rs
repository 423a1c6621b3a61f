//! Which elements of an axis a point of the grid reads, with which weights.

use crate::spatial::geometry::{Coordinates, Strides};
use crate::spatial::upsample::axis::cubic_weights;
use crate::view::View;
use dml_kernel::{Builder, Pointer, ScalarType, Value, math};
use smallvec::SmallVec;

/// How a value between elements is made.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Interpolation {
    /// Two neighbours on each axis.
    Linear,
    /// The nearest element; halves to even.
    Nearest,
    /// Four neighbours on each axis, cubic convolution with a = -0.75 (Keys, 1981).
    Cubic,
}

/// What lies outside the image.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Padding {
    /// Zeros.
    Zeros,
    /// The element at the border.
    Border,
    /// The image mirrored at its borders.
    Reflection,
}

/// A way of sampling.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mode {
    /// How values are made.
    pub interpolation: Interpolation,
    /// What is outside.
    pub padding: Padding,
    /// Whether -1 and 1 are the centres of the corner elements, not their outer edges.
    pub align_corners: bool,
    /// Whether images have depth. There a coordinate that is no number is held at the end of its
    /// axis, not at the start, and what is outside counts nothing, even if its weight is no number;
    /// as on CPU.
    pub deep: bool,
    /// Whether gradients are made: with depth a coordinate that is no number is outside there; as
    /// on CPU.
    pub backward: bool,
}

impl Mode {
    /// Elements that a point reads on one axis.
    pub fn taps(self) -> i64 {
        match self.interpolation {
            Interpolation::Nearest => 1,
            Interpolation::Linear => 2,
            Interpolation::Cubic => 4,
        }
    }
}

/// An element of an axis that a point reads.
pub struct Tap<'b> {
    /// The element (i32); outside the axis unless `inside`.
    pub index: Value<'b>,
    /// Whether there is such an element.
    pub inside: Value<'b>,
    /// Its weight.
    pub weight: Value<'b>,
    /// How the weight grows with the coordinate, in elements.
    pub slope: Value<'b>,
}

/// A point on one axis.
pub struct Location<'b> {
    /// What it reads.
    pub taps: Vec<Tap<'b>>,
    /// How the coordinate in elements grows with that of the grid.
    pub factor: Value<'b>,
}

impl Mode {
    /// Where the grid's coordinate `x` is on an axis of `size` (i32) elements.
    pub fn locate<'b>(self, b: &'b Builder, x: Value<'b>, size: Value<'b>) -> Location<'b> {
        let length = size.cast(x.scalar());
        let (at, scale) = if self.align_corners {
            let scale = (length - 1.0) * 0.5;
            ((x + 1.0) * scale, scale)
        } else {
            let scale = length * 0.5;
            ((x + 1.0) * scale - 0.5, scale)
        };
        let one = x.like(1.0);
        let tap = |at: Value<'b>, weight: Value<'b>, slope: Value<'b>| {
            // Far outside is outside; a coordinate that is no number is too.
            let index = at.max(-2.0).min(length + 1.0).cast(ScalarType::I32);
            Tap { index, inside: index.ge(0) & index.lt(size), weight, slope }
        };
        if self.interpolation == Interpolation::Cubic {
            let below = at.floor();
            let t = at - below;
            let taps = cubic_weights(t).into_iter().zip(cubic_slopes(t)).zip(-1..);
            let taps = taps.map(|((w, s), j)| tap(self.pad(below + f64::from(j), length).0, w, s)).collect();
            return Location { taps, factor: scale };
        }
        let (at, sign) = self.pad(at, length);
        let factor = scale * sign;
        if self.interpolation == Interpolation::Nearest {
            return Location { taps: vec![tap(at.round(), one, b.constant_of(x.scalar(), 0.0))], factor };
        }
        let below = at.floor();
        let t = at - below;
        Location { taps: vec![tap(below, one - t, -one), tap(below + 1.0, t, one)], factor }
    }

    /// The coordinate that the padding shows at `at`, and how it grows with it: 1, -1, or 0 where
    /// it is held.
    fn pad<'b>(self, at: Value<'b>, length: Value<'b>) -> (Value<'b>, Value<'b>) {
        let (zero, one) = (at.like(0.0), at.like(1.0));
        let (at, sign) = match self.padding {
            Padding::Zeros => return (at, one),
            Padding::Border => (at, one),
            Padding::Reflection => {
                let (low, span) = if self.align_corners { (0.0, length - 1.0) } else { (-0.5, length) };
                let distance = at - low;
                let away = distance.abs();
                let extra = math::fmod(away, span);
                let flips = (away / span).floor();
                let even = (flips - (flips * 0.5).floor() * 2.0).eq(0.0);
                let place = even.select(extra + low, span - extra + low);
                let sign = even.eq(distance.ge(0.0)).select(one, -one);
                // A single element is everywhere.
                let empty = span.eq(0.0);
                (empty.select(zero, place), empty.select(zero, sign))
            }
        };
        let last = length - 1.0;
        let held = match (self.deep, self.backward) {
            (true, true) => at.is_nan().select(at, at.max(0.0).min(last)),
            (true, false) => at.lt(last).select(at.max(0.0), last),
            (false, _) => at.max(0.0).min(last),
        };
        (held, (at.gt(0.0) & at.lt(last)).select(sign, zero))
    }
}

/// Derivatives of [`cubic_weights`].
fn cubic_slopes(t: Value<'_>) -> [Value<'_>; 4] {
    let a = -0.75;
    let rest = 1.0 - t;
    [far_slope(t + 1.0, a), near_slope(t, a), -near_slope(rest, a), -far_slope(rest + 1.0, a)]
}

fn near_slope(x: Value<'_>, a: f64) -> Value<'_> {
    (3.0 * (a + 2.0) * x - 2.0 * (a + 3.0)) * x
}

fn far_slope(x: Value<'_>, a: f64) -> Value<'_> {
    (3.0 * a * x - 10.0 * a) * x + 8.0 * a
}

/// A grid `[batch, points ..., axes]` as an image with the axes as channels.
pub fn axes_as_channels(grid: &View) -> View {
    let last = grid.dim() - 1;
    let order: SmallVec<[usize; 5]> = [0, last].into_iter().chain(1..last).collect();
    grid.permute(&order)
}

/// The grid in a kernel.
pub struct Grid<'b> {
    /// Its elements.
    pub pointer: Pointer<'b>,
    /// Of the grid as [`axes_as_channels`] has it.
    pub strides: Strides<'b>,
}

impl<'b> Grid<'b> {
    /// Where a point (batch and coordinates of `point`) is in an image of `size`: its location on
    /// every axis.
    pub fn locate(&self, b: &'b Builder, mode: Mode, point: &Coordinates<'b>, size: &[Value<'b>]) -> Vec<Location<'b>> {
        let index = point.batch.scalar();
        let along = |(d, &n): (usize, &Value<'b>)| {
            // The last axis comes first.
            let axis = b.int(index, (size.len() - 1 - d) as u64);
            let place = Coordinates { batch: point.batch, channel: axis, at: point.at.clone() };
            mode.locate(b, self.pointer.load(self.strides.element(&place)), n)
        };
        size.iter().enumerate().map(along).collect()
    }
}
