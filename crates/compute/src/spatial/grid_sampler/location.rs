//! The elements of an axis that a point of the grid reads, and their weights.

use crate::spatial::geometry::{Coordinates, Strides};
use crate::spatial::upsample::axis::cubic_weights;
use crate::view::View;
use dml_kernel::{Builder, Pointer, ScalarType, Value, math};
use smallvec::SmallVec;

/// The kind of interpolation.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Interpolation {
    /// Linear between two elements on each axis.
    Linear,
    /// The nearest element; ties to even.
    Nearest,
    /// Between four elements on each axis, cubic convolution with a = -0.75 (Keys, 1981).
    Cubic,
}

/// How coordinates outside of the image are treated.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Padding {
    /// Elements outside are 0.
    Zeros,
    /// Coordinates are clamped to the border.
    Border,
    /// The image is mirrored at its borders.
    Reflection,
}

/// The options of sampling.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mode {
    /// The kind of interpolation.
    pub interpolation: Interpolation,
    /// How coordinates outside of the image are treated.
    pub padding: Padding,
    /// Whether -1 and 1 are the centres of the corner elements, rather than their outer edges.
    pub align_corners: bool,
    /// Whether images have depth. In that case a NaN coordinate is clamped to the end of its axis,
    /// not to the start, and elements outside contribute nothing even if their weight is NaN; as on
    /// the CPU.
    pub has_depth: bool,
    /// Whether gradients are computed. In that case, with depth, a NaN coordinate is outside; as on
    /// the CPU.
    pub backward: bool,
}

impl Mode {
    /// Number of elements that a point reads on one axis.
    pub fn taps(self) -> i64 {
        match self.interpolation {
            Interpolation::Nearest => 1,
            Interpolation::Linear => 2,
            Interpolation::Cubic => 4,
        }
    }
}

/// One of the elements of an axis that a point reads.
pub struct Tap<'b> {
    /// Index of the element (i32); out of range unless `inside`.
    pub index: Value<'b>,
    /// Whether the element is in range.
    pub inside: Value<'b>,
    /// Weight of the element.
    pub weight: Value<'b>,
    /// Derivative of the weight with respect to the coordinate in elements.
    pub slope: Value<'b>,
}

/// The position of a point on one axis.
pub struct Location<'b> {
    /// The elements that it reads.
    pub taps: Vec<Tap<'b>>,
    /// Derivative of the coordinate in elements with respect to the grid's coordinate.
    pub factor: Value<'b>,
}

impl Mode {
    /// The location of the grid's coordinate `x` on an axis of `size` (i32) elements.
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
            // Clamped to just outside of the axis, also for NaN.
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

    /// Applies the padding to coordinate `at`: the new coordinate and its derivative, which is
    /// 1, -1, or 0 if it is clamped.
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
                let reflected = even.select(extra + low, span - extra + low);
                let sign = even.eq(distance.ge(0.0)).select(one, -one);
                // With a single element, every coordinate is that element.
                let empty = span.eq(0.0);
                (empty.select(zero, reflected), empty.select(zero, sign))
            }
        };
        let last = length - 1.0;
        let clamped = match (self.has_depth, self.backward) {
            (true, true) => at.is_nan().select(at, at.max(0.0).min(last)),
            (true, false) => at.lt(last).select(at.max(0.0), last),
            (false, _) => at.max(0.0).min(last),
        };
        (clamped, (at.gt(0.0) & at.lt(last)).select(sign, zero))
    }
}

/// Derivatives of [`cubic_weights`].
fn cubic_slopes(t: Value<'_>) -> [Value<'_>; 4] {
    let a = -0.75;
    let rest = 1.0 - t;
    [
        cubic_far_derivative(t + 1.0, a),
        cubic_near_derivative(t, a),
        -cubic_near_derivative(rest, a),
        -cubic_far_derivative(rest + 1.0, a),
    ]
}

fn cubic_near_derivative(x: Value<'_>, a: f64) -> Value<'_> {
    (3.0 * (a + 2.0) * x - 2.0 * (a + 3.0)) * x
}

fn cubic_far_derivative(x: Value<'_>, a: f64) -> Value<'_> {
    (3.0 * a * x - 10.0 * a) * x + 8.0 * a
}

/// A grid `[batch, points ..., axes]` as an image whose channels are the axes.
pub fn axes_as_channels(grid: &View) -> View {
    let last = grid.dim() - 1;
    let order: SmallVec<[usize; 5]> = [0, last].into_iter().chain(1..last).collect();
    grid.permute(&order)
}

/// The grid in a kernel.
pub struct Grid<'b> {
    /// Pointer to its elements.
    pub pointer: Pointer<'b>,
    /// The strides of the grid's [`axes_as_channels`].
    pub strides: Strides<'b>,
}

impl<'b> Grid<'b> {
    /// The location of a point (batch and coordinates of `point`) on every axis of an image of
    /// `size`.
    pub fn locate(&self, b: &'b Builder, mode: Mode, point: &Coordinates<'b>, size: &[Value<'b>]) -> Vec<Location<'b>> {
        let index = point.batch.scalar();
        let along = |(d, &n): (usize, &Value<'b>)| {
            // The grid's coordinates are in reverse order of axes.
            let axis = b.int(index, (size.len() - 1 - d) as u64);
            let at_axis = Coordinates { batch: point.batch, channel: axis, at: point.at.clone() };
            mode.locate(b, self.pointer.load(self.strides.element(&at_axis)), n)
        };
        size.iter().enumerate().map(along).collect()
    }
}
