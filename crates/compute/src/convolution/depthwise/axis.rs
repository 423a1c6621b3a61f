//! How a window moves along a spatial dimension, and the places along one that an invocation has.

use crate::convolution::geometry::Geometry;
use crate::matmul::select::Limits;
use dml_kernel::{Builder, ScalarType, Value};
use smallvec::SmallVec;

/// A window along one spatial dimension.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Axis {
    /// Elements of the window.
    pub taps: u32,
    /// Steps of the window over the inner side.
    pub stride: u32,
    /// Steps between the window's elements.
    pub dilation: u32,
}

/// One a spatial dimension.
pub type Axes = SmallVec<[Axis; 3]>;

/// Where sums are taken over taps: which side is the source, and which is summed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Pass {
    /// The outer side from the inner.
    Forward,
    /// The inner side from the outer.
    Data,
}

/// What the steps from place to place and from tap to tap are in other coordinates.
///
/// Backward, tap `t` of inner coordinate `x` belongs to outer coordinate
/// `(x + padding - t * dilation) / stride`, where that divides. Which taps do depends on the phase,
/// the remainder of `x + padding`: the places of one phase are those of a window without a stride.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Steps {
    /// Phases.
    pub phases: u32,
    /// Most taps of a phase.
    pub taps: u32,
    /// Coordinates of the result from one place of a phase to the next.
    pub result: i32,
    /// Coordinates of the source from one place of a phase to the next.
    pub source: i32,
    /// Taps of the window from one of a phase to the next.
    pub tap: i32,
    /// Coordinates of the source from one tap of a phase to the next.
    pub source_of_tap: i32,
}

fn divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { divisor(b, a % b) }
}

impl Axis {
    /// The steps of a pass.
    pub fn steps(&self, pass: Pass) -> Steps {
        let Axis { taps, stride, dilation } = *self;
        let (whole, between) = (stride as i32, dilation as i32);
        match pass {
            Pass::Forward => Steps { phases: 1, taps, result: 1, source: whole, tap: 1, source_of_tap: between },
            Pass::Data => {
                let common = divisor(stride, dilation);
                let apart = stride / common;
                Steps {
                    phases: stride,
                    taps: taps.div_ceil(apart),
                    result: whole,
                    source: 1,
                    tap: apart as i32,
                    source_of_tap: -((dilation / common) as i32),
                }
            }
        }
    }

    /// Places of a phase, for a result of so many elements.
    pub fn places(&self, pass: Pass, size: i64, padding: i64) -> i64 {
        let stride = i64::from(self.stride);
        match pass {
            Pass::Forward => size,
            Pass::Data => (size - 1 + padding % stride) / stride + 1,
        }
    }

    /// Where place `place` (i32) of phase `phase` (u32) is.
    pub fn line<'b>(&self, pass: Pass, place: Value<'b>, phase: Value<'b>, padding: Value<'b>) -> Line<'b> {
        let b = place.builder();
        let Axis { taps, stride, dilation } = *self;
        match pass {
            Pass::Forward => line(b, place, place * stride - padding, taps),
            Pass::Data if stride == 1 => line(b, place, place + padding, taps),
            Pass::Data => {
                let common = divisor(stride, dilation);
                let apart = stride / common;
                // The first tap's dilation is the phase's remainder: times the inverse, which is 0
                // where every tap is of the one phase.
                let inverse = (0..apart).find(|x| x * (dilation / common) % apart == 1).unwrap_or(0);
                let class = phase / common;
                let first = class * inverse % apart;
                let count = (taps + (apart - 1) - first) / apart;
                let count = (class * common).eq(phase).select(count, 0);
                let padding = padding.cast(ScalarType::U32);
                let back = (first * dilation - phase) / stride;
                Line {
                    result: place * stride + (phase - padding % stride).cast(ScalarType::I32),
                    source: place + (padding / stride - back).cast(ScalarType::I32),
                    first: first.cast(ScalarType::I32),
                    count: count.cast(ScalarType::I32),
                }
            }
        }
    }
}

fn line<'b>(b: &'b Builder, result: Value<'b>, source: Value<'b>, taps: u32) -> Line<'b> {
    Line { result, source, first: b.i32(0), count: b.i32(taps as i32) }
}

/// A place along a dimension. All are i32.
#[derive(Copy, Clone)]
pub struct Line<'b> {
    /// Coordinate in the result. Backward it may be outside.
    pub result: Value<'b>,
    /// Coordinate in the source that the first tap sees. It may be outside.
    pub source: Value<'b>,
    /// The first tap.
    pub first: Value<'b>,
    /// Taps.
    pub count: Value<'b>,
}

/// Neighbouring places along a dimension that one invocation has, and the taps that it unrolls.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tile {
    /// The dimension: the last but one, so that neighbouring invocations read along the last.
    pub along: usize,
    /// Places.
    pub places: u32,
    /// Taps that are taken at once: all, or a divisor of them.
    pub taps: u32,
    /// Coordinates of the source from place to place.
    source: i32,
    /// Coordinates of the source from tap to tap.
    source_of_tap: i32,
}

/// Taps that are unrolled at most.
const MOST_TAPS: u32 = 32;

/// Places of a tile at most: each takes a register, or one a channel.
pub const MOST_PLACES: u32 = 14;

/// Places of a tile at most where it lies along the row, and neighbouring invocations are apart by
/// a tile.
pub const MOST_PLACES_OF_ROW: u32 = 4;

/// Instructions that a load takes, with its offset and its mask, where a product takes one.
const LOAD: i64 = 6;

impl Tile {
    /// The dimension along which tiles lie, of so many spatial ones.
    pub fn along(rank: usize) -> usize {
        rank.saturating_sub(2)
    }

    /// A tile of so many places.
    pub fn new(along: usize, steps: &Steps, places: u32) -> Tile {
        let taps = match steps.taps {
            few if few <= MOST_TAPS => few,
            _ if steps.phases > 1 => 1,
            many => (1..=MOST_TAPS).rev().find(|n| many % n == 0).unwrap_or(1),
        };
        Tile { along, places, taps, source: steps.source, source_of_tap: steps.source_of_tap }
    }

    /// The tile of the least cost that leaves enough invocations to keep the adapter busy, with
    /// `others` beside each other and `size` places along the dimension. Candidates are counts of
    /// places, 1 among them.
    pub fn choose(
        limits: &Limits,
        tiles: impl Iterator<Item = Tile>,
        [size, others]: [i64; 2],
        cost: impl Fn(&Tile) -> i64,
    ) -> Option<Tile> {
        let busy = (512.0 * limits.units) as i64;
        let enough = |tile: &Tile| tile.places <= 2 || others.saturating_mul(tile.count(size)) >= busy;
        tiles.filter(enough).min_by_key(cost)
    }

    /// Tiles that `size` places take.
    pub fn count(&self, size: i64) -> i64 {
        (size + i64::from(self.places) - 1) / i64::from(self.places)
    }

    /// Instructions that the tile takes for each tap of the other dimensions, roughly, beside those
    /// of `again` loads a place.
    pub fn cost(&self, again: i64) -> i64 {
        let places = i64::from(self.places);
        LOAD * (i64::from(self.distinct()) + again * places) + places * i64::from(self.taps)
    }

    /// How many [`positions`](Self::positions) there are. A place and a tap see what the place
    /// `apart` further on sees with another tap, where the tile has both: what sees one position is
    /// a chain of such pairs.
    fn distinct(&self) -> u32 {
        let common = divisor(self.source.unsigned_abs(), self.source_of_tap.unsigned_abs());
        let apart = [self.source_of_tap, self.source].map(|step| step.unsigned_abs() / common);
        let linked = self.places.saturating_sub(apart[0]) * self.taps.saturating_sub(apart[1]);
        self.places * self.taps - linked
    }

    /// Coordinate in the source that tap `tap` of place `place` sees, from the first one's.
    pub fn position(&self, place: u32, tap: u32) -> i32 {
        place as i32 * self.source + tap as i32 * self.source_of_tap
    }

    /// All of these, each once, in ascending order.
    pub fn positions(&self) -> Vec<i32> {
        let mut all: Vec<i32> =
            (0..self.places).flat_map(|place| (0..self.taps).map(move |tap| self.position(place, tap))).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// A coordinate (i32) inside a dimension of `size` elements that lie `stride` apart: the offset, of
/// the nearest element where it is outside, and whether it is inside.
pub fn inside<'b>(coordinate: Value<'b>, size: Value<'b>, stride: Value<'b>) -> (Value<'b>, Value<'b>) {
    let unsigned = ScalarType::U32;
    let nearest = coordinate.max(0).min(size - 1);
    (nearest * stride, coordinate.bitcast(unsigned).lt(size.bitcast(unsigned)))
}

/// Elements from one coordinate of each dimension to the next, in units of the fastest, and those
/// of an image.
pub fn strides<'b>(size: &[Value<'b>], fastest: Value<'b>) -> (Vec<Value<'b>>, Value<'b>) {
    let mut all = vec![fastest; size.len()];
    let mut step = fastest;
    for (d, &n) in size.iter().enumerate().rev() {
        all[d] = step;
        step = step * n;
    }
    (all, step)
}

/// Weights from one tap of each dimension to the next.
pub fn tap_strides(axes: &Axes) -> SmallVec<[u32; 3]> {
    (0..axes.len()).map(|d| axes[d + 1..].iter().map(|axis| axis.taps).product()).collect()
}

/// How windows move along the spatial dimensions.
pub fn axes(g: &Geometry) -> Axes {
    (0..g.kernel.len())
        .map(|d| Axis { taps: g.kernel[d] as u32, stride: g.stride[d] as u32, dilation: g.dilation[d] as u32 })
        .collect()
}

/// The window as kernels are named by it: `7x7`, `3x3/2`, `5x5:2` with strides and dilations other
/// than 1.
pub fn shape(axes: &Axes) -> String {
    let listed = |sign: &str, number: fn(&Axis) -> u32| {
        let numbers: Vec<String> = axes.iter().map(|axis| number(axis).to_string()).collect();
        if axes.iter().all(|axis| number(axis) == 1) { String::new() } else { format!("{sign}{}", numbers.join("x")) }
    };
    let taps: Vec<String> = axes.iter().map(|axis| axis.taps.to_string()).collect();
    format!("{}{}{}", taps.join("x"), listed("/", |axis| axis.stride), listed(":", |axis| axis.dilation))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places and taps of a pass meet the source where the definition says so.
    #[test]
    fn phases_are_windows_without_a_stride() {
        for (taps, stride, dilation) in [(3, 2, 1), (5, 2, 2), (4, 3, 2), (1, 3, 1), (7, 4, 6), (2, 6, 4), (3, 1, 2)] {
            let axis = Axis { taps, stride, dilation };
            let steps = axis.steps(Pass::Data);
            let window = |x: i64, t: i64| {
                let inside = x - t * i64::from(dilation);
                (inside % i64::from(stride) == 0).then_some(inside / i64::from(stride))
            };
            for x in 0..40 {
                let found: Vec<_> = (0..i64::from(taps)).filter_map(|t| Some((t, window(x, t)?))).collect();
                assert!(found.len() <= steps.taps as usize);
                for pair in found.windows(2) {
                    assert_eq!(pair[1].0 - pair[0].0, i64::from(steps.tap));
                    assert_eq!(pair[1].1 - pair[0].1, i64::from(steps.source_of_tap));
                }
                let next: Vec<_> =
                    (0..i64::from(taps)).filter_map(|t| Some((t, window(x + i64::from(stride), t)?))).collect();
                assert!(found.iter().zip(&next).all(|(a, b)| a.0 == b.0 && a.1 + 1 == b.1));
            }
        }
    }

    #[test]
    fn tiles_read_every_position_once() {
        let steps = Axis { taps: 7, stride: 1, dilation: 1 }.steps(Pass::Forward);
        assert_eq!(Tile::new(0, &steps, 14).positions(), (0..20).collect::<Vec<_>>());
        let steps = Axis { taps: 3, stride: 2, dilation: 1 }.steps(Pass::Data);
        assert_eq!(Tile::new(0, &steps, 4).positions(), [-1, 0, 1, 2, 3]);
        let steps = Axis { taps: 62, stride: 1, dilation: 1 }.steps(Pass::Forward);
        assert_eq!(Tile::new(0, &steps, 2).taps, 31);
        for (taps, stride, dilation) in [(3, 1, 1), (7, 1, 2), (3, 2, 1), (5, 2, 4), (4, 3, 2), (2, 5, 7), (1, 1, 1)] {
            for (pass, places) in [(Pass::Forward, 1), (Pass::Forward, 9), (Pass::Data, 2), (Pass::Data, 14)] {
                let tile = Tile::new(0, &Axis { taps, stride, dilation }.steps(pass), places);
                assert_eq!(tile.distinct() as usize, tile.positions().len());
            }
        }
    }
}
