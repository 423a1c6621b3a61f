//! How a window moves along a spatial dimension, and the tile of positions along it that an
//! invocation computes.
//!
//! `windows` are the positions of the window, and a tap is an element of the window.

use crate::convolution::geometry::Geometry;
use crate::matmul::select::Limits;
use dml_kernel::{Builder, ScalarType, Value};
use smallvec::SmallVec;

/// A window along one spatial dimension.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Axis {
    /// Number of taps.
    pub taps: u32,
    /// Stride of the window over the inner side.
    pub stride: u32,
    /// Dilation: distance between the window's taps.
    pub dilation: u32,
}

/// One axis for each spatial dimension.
pub type Axes = SmallVec<[Axis; 3]>;

/// The direction of a sum over taps: which side is read, and which is written.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Pass {
    /// Reads the inner side, writes the outer side.
    Forward,
    /// Reads the outer side, writes the inner side.
    Data,
}

/// Distances between neighbouring windows and neighbouring taps, in other coordinates.
///
/// Backward, tap `t` of inner coordinate `x` belongs to outer coordinate
/// `(x + padding - t * dilation) / stride`, if that is an integer. For which taps it is one depends
/// on the phase, the remainder of `x + padding` by the stride: the windows of one phase are those
/// of a window with stride 1.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Steps {
    /// Number of phases.
    pub phases: u32,
    /// Maximum number of taps of a phase.
    pub taps: u32,
    /// Distance in the result between neighbouring windows of a phase.
    pub result: i32,
    /// Distance in the source between neighbouring windows of a phase.
    pub source: i32,
    /// Distance in the window between neighbouring taps of a phase.
    pub tap: i32,
    /// Distance in the source between neighbouring taps of a phase.
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

    /// Number of windows of a phase, for a result of `size` elements.
    pub fn windows(&self, pass: Pass, size: i64, padding: i64) -> i64 {
        let stride = i64::from(self.stride);
        match pass {
            Pass::Forward => size,
            Pass::Data => (size - 1 + padding % stride) / stride + 1,
        }
    }

    /// The coordinates of window number `window` (i32) of phase `phase` (u32).
    pub fn line<'b>(&self, pass: Pass, window: Value<'b>, phase: Value<'b>, padding: Value<'b>) -> Line<'b> {
        let b = window.builder();
        let Axis { taps, stride, dilation } = *self;
        match pass {
            Pass::Forward => line(b, window, window * stride - padding, taps),
            Pass::Data if stride == 1 => line(b, window, window + padding, taps),
            Pass::Data => {
                let common = divisor(stride, dilation);
                let apart = stride / common;
                // The first tap's dilation equals the phase modulo the stride, so it is the phase
                // times the modular inverse; 0 if all taps are of one phase.
                let inverse = (0..apart).find(|x| x * (dilation / common) % apart == 1).unwrap_or(0);
                let class = phase / common;
                let first = class * inverse % apart;
                let count = (taps + (apart - 1) - first) / apart;
                let count = (class * common).eq(phase).select(count, 0);
                let padding = padding.cast(ScalarType::U32);
                let back = (first * dilation - phase) / stride;
                Line {
                    result: window * stride + (phase - padding % stride).cast(ScalarType::I32),
                    source: window + (padding / stride - back).cast(ScalarType::I32),
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

/// The coordinates of a window along a dimension. All are i32.
#[derive(Copy, Clone)]
pub struct Line<'b> {
    /// Coordinate in the result. Backward it may be out of range.
    pub result: Value<'b>,
    /// Coordinate in the source of the first tap. It may be out of range.
    pub source: Value<'b>,
    /// The first tap of the window's phase.
    pub first: Value<'b>,
    /// Number of taps.
    pub count: Value<'b>,
}

/// A run of neighbouring windows along one dimension, which one invocation computes, and the taps
/// that it unrolls.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tile {
    /// The dimension of the run: the last but one, so that neighbouring invocations read along the
    /// last.
    pub along: usize,
    /// Number of windows.
    pub windows: u32,
    /// Taps that are unrolled: all, or a divisor of their number.
    pub taps: u32,
    /// Distance in the source between neighbouring windows.
    source: i32,
    /// Distance in the source between neighbouring taps.
    source_of_tap: i32,
}

/// Maximum number of taps that are unrolled.
const MAX_UNROLLED_TAPS: u32 = 32;

/// Maximum number of windows of a tile: each takes a register, or one for each channel.
pub const MAX_TILE_POSITIONS: u32 = 14;

/// Maximum number of windows of a tile along the last dimension, where neighbouring invocations
/// read addresses that are a tile apart.
pub const MAX_TILE_POSITIONS_IN_ROW: u32 = 4;

/// Cost of a load with its offset and mask, in instructions; a product costs one.
const LOAD: i64 = 6;

impl Tile {
    /// The dimension along which tiles are, of `rank` spatial dimensions.
    pub fn along(rank: usize) -> usize {
        rank.saturating_sub(2)
    }

    /// A tile of `windows` windows.
    pub fn new(along: usize, steps: &Steps, windows: u32) -> Tile {
        let taps = match steps.taps {
            few if few <= MAX_UNROLLED_TAPS => few,
            _ if steps.phases > 1 => 1,
            many => (1..=MAX_UNROLLED_TAPS).rev().find(|n| many % n == 0).unwrap_or(1),
        };
        Tile { along, windows, taps, source: steps.source, source_of_tap: steps.source_of_tap }
    }

    /// The tile of least cost among those that leave enough invocations to keep the adapter busy.
    /// There are `size` windows along the dimension, and `others` such lines. `tiles` are the
    /// candidates, of which one has a single window.
    pub fn choose(
        limits: &Limits,
        tiles: impl Iterator<Item = Tile>,
        [size, others]: [i64; 2],
        cost: impl Fn(&Tile) -> i64,
    ) -> Option<Tile> {
        let busy = (512.0 * limits.compute_units) as i64;
        let enough = |tile: &Tile| tile.windows <= 2 || others.saturating_mul(tile.count(size)) >= busy;
        tiles.filter(enough).min_by_key(cost)
    }

    /// Number of tiles that cover `size` windows.
    pub fn count(&self, size: i64) -> i64 {
        (size + i64::from(self.windows) - 1) / i64::from(self.windows)
    }

    /// Cost model: instructions of the tile for each tap of the other dimensions, with `again`
    /// further loads for each window.
    pub fn cost(&self, again: i64) -> i64 {
        let windows = i64::from(self.windows);
        LOAD * (i64::from(self.distinct()) + again * windows) + windows * i64::from(self.taps)
    }

    /// The number of [`positions`](Self::positions). A window and a tap read the same position as a
    /// window `apart[0]` further on and a tap `apart[1]` further back, if the tile has both. All
    /// pairs that read one position form a chain of such links, so positions are pairs minus links.
    fn distinct(&self) -> u32 {
        let common = divisor(self.source.unsigned_abs(), self.source_of_tap.unsigned_abs());
        let apart = [self.source_of_tap, self.source].map(|step| step.unsigned_abs() / common);
        let linked = self.windows.saturating_sub(apart[0]) * self.taps.saturating_sub(apart[1]);
        self.windows * self.taps - linked
    }

    /// Source coordinate of tap `tap` of window `window`, relative to the first tap of the first
    /// window.
    pub fn position(&self, window: u32, tap: u32) -> i32 {
        window as i32 * self.source + tap as i32 * self.source_of_tap
    }

    /// All positions of the tile, each once, in ascending order.
    pub fn positions(&self) -> Vec<i32> {
        let mut all: Vec<i32> =
            (0..self.windows).flat_map(|window| (0..self.taps).map(move |tap| self.position(window, tap))).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// The offset of a coordinate (i32) in a dimension of `size` elements with stride `stride`, clamped
/// to the dimension, and whether the coordinate is in range.
pub fn inside<'b>(coordinate: Value<'b>, size: Value<'b>, stride: Value<'b>) -> (Value<'b>, Value<'b>) {
    let unsigned = ScalarType::U32;
    let nearest = coordinate.max(0).min(size - 1);
    (nearest * stride, coordinate.bitcast(unsigned).lt(size.bitcast(unsigned)))
}

/// The stride of each dimension, if the last has stride `fastest`, and the number of elements of an
/// image times `fastest`.
pub fn strides<'b>(size: &[Value<'b>], fastest: Value<'b>) -> (Vec<Value<'b>>, Value<'b>) {
    let mut all = vec![fastest; size.len()];
    let mut step = fastest;
    for (d, &n) in size.iter().enumerate().rev() {
        all[d] = step;
        step = step * n;
    }
    (all, step)
}

/// The stride of each dimension in the filter's row-major taps.
pub fn tap_strides(axes: &Axes) -> SmallVec<[u32; 3]> {
    (0..axes.len()).map(|d| axes[d + 1..].iter().map(|axis| axis.taps).product()).collect()
}

/// The axes of a convolution.
pub fn axes(g: &Geometry) -> Axes {
    (0..g.kernel.len())
        .map(|d| Axis { taps: g.kernel[d] as u32, stride: g.stride[d] as u32, dilation: g.dilation[d] as u32 })
        .collect()
}

/// The window in a kernel's name: `7x7`, `3x3/2`, `5x5:2`, with strides and dilations that are
/// not 1.
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

    /// Backward, windows and taps read the source where the definition says so.
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
            for (pass, windows) in [(Pass::Forward, 1), (Pass::Forward, 9), (Pass::Data, 2), (Pass::Data, 14)] {
                let tile = Tile::new(0, &Axis { taps, stride, dilation }.steps(pass), windows);
                assert_eq!(tile.distinct() as usize, tile.positions().len());
            }
        }
    }
}
