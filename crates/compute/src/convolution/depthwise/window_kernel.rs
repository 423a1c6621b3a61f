//! The kernel of sums over the taps of a window: an invocation computes neighbouring windows of one
//! channel, or of a few adjacent channels.
//!
//! Elements out of range are loaded from the nearest element and replaced by 0, so that invocations
//! at borders do not diverge.

use crate::convolution::depthwise::axis::{Axes, Line, Pass, Tile, inside, shape, strides, tap_strides};
use crate::matmul::divisor::{Divisor, DivisorParams};
use crate::matmul::gemm::multiply_add;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::spatial::geometry::PerAxis;
use dml_engine::interface::{Each, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value, Var};

/// Maximum number of products for which the taps of the last dimension are unrolled too.
const UNROLLED: u32 = 256;
/// The same where registers are few.
const UNROLLED_FOR_FEW_REGISTERS: u32 = 160;
/// Maximum number of elements and weights that unrolled taps load where registers are few:
/// compilers issue the loads of all of them at once.
const LOADED_FOR_FEW_REGISTERS: u32 = 100;

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// The dtype of the source, the bias and the result.
    pub dtype: DType,
    /// The dtype of the weight.
    pub weight: DType,
    /// Which side is the source.
    pub pass: Pass,
    /// The window.
    pub axes: Axes,
    /// Windows of an invocation.
    pub tile: Tile,
    /// Adjacent channels of an invocation, if channels are the innermost dimension in memory, of
    /// the weight too.
    pub channels: Option<u32>,
    /// Whether a bias is added.
    pub bias: bool,
    /// For adapters with few registers.
    pub few_registers: bool,
}

parameters! {
    /// Sums over windows.
    pub Spec as s => Arguments, Parameters {
        /// The sums, dense, in the memory order of the source.
        out: Output = s.dtype,
        /// The tensor that windows read.
        source: Input = s.dtype,
        /// `[channel, tap]`, or `[tap, channel]` if channels are the innermost dimension.
        weight: Input = s.weight,
        /// The bias that is added.
        bias: Option<Input> = s.bias.then_some(s.dtype),
        /// Stride of the bias.
        bias_step: Option<U32> = s.bias.then_some(()),
        /// Number of invocations.
        threads: U32,
        /// Number of chunks of channels, one for each invocation.
        chunks: Divisor,
        /// Windows of a phase in each dimension, or tiles of windows.
        counts: Each<Divisor> = s.axes.iter().map(|_| ()).collect(),
        /// Spatial sizes of the source.
        source_size: PerAxis = s.axes.len(),
        /// Spatial sizes of the result.
        result_size: PerAxis = s.axes.len(),
        /// Padding of the inner side.
        padding: PerAxis = s.axes.len(),
        /// Taps of the window: parameters where registers are few, so that compilers do not unroll
        /// loops over them.
        taps: Option<PerAxis> = s.few_registers.then_some(s.axes.len()),
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        if self.pass == Pass::Forward { "depthwise" } else { "depthwise data" }
    }

    fn full_name(&self) -> String {
        format!("{} {}", self.name(), shape(&self.axes))
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let i = linear_id(b, ScalarType::U32);
        b.if_(i.lt(p.threads), || Worker::new(self, b, &p, i).run(&p));
    }
}

/// One invocation: neighbouring windows of one channel or a few.
struct Worker<'b, 's> {
    spec: &'s Spec,
    b: &'b Builder,
    /// Pointer to the image, or to the channel's plane if channels are not the innermost dimension.
    source: Pointer<'b>,
    out: Pointer<'b>,
    /// Pointer to the channel's filter, or to all filters if channels are the innermost dimension.
    weight: Pointer<'b>,
    /// Index of the chunk of channels.
    chunk: Value<'b>,
    chunks: DivisorParams<'b>,
    lines: Vec<Line<'b>>,
    source_size: Vec<Value<'b>>,
    source_strides: Vec<Value<'b>>,
    result_strides: Vec<Value<'b>>,
    taps: Option<Vec<Value<'b>>>,
}

/// The source offset of a tap, whether it is in range (`None` if all are), and the offset of the
/// tap in the filter.
#[derive(Copy, Clone)]
struct SourceTap<'b> {
    offset: Value<'b>,
    inside: Option<Value<'b>>,
    tap: Value<'b>,
}

fn and<'b>(x: Option<Value<'b>>, y: Value<'b>) -> Value<'b> {
    x.map_or(y, |x| x & y)
}

impl<'b, 's> Worker<'b, 's> {
    fn new(spec: &'s Spec, b: &'b Builder, p: &Parameters<'b>, i: Value<'b>) -> Worker<'b, 's> {
        let mut rest = i;
        let split = |rest: &mut Value<'b>, by: DivisorParams<'b>| {
            let (quotient, remainder) = by.divide(*rest);
            *rest = quotient;
            remainder
        };
        let last = spec.channels.map(|_| split(&mut rest, p.chunks));
        let mut lines: Vec<Line> = spec
            .axes
            .iter()
            .enumerate()
            .rev()
            .map(|(d, axis)| {
                let mut window = split(&mut rest, p.counts[d]);
                if d == spec.tile.along {
                    window = window * spec.tile.windows;
                }
                let phases = axis.steps(spec.pass).phases;
                let quotient = rest / phases;
                let phase = rest - quotient * phases;
                rest = quotient;
                axis.line(spec.pass, window.cast(ScalarType::I32), phase, p.padding[d])
            })
            .collect();
        lines.reverse();
        let (width, wide) = (spec.channels.unwrap_or(1), ScalarType::U64);
        let fastest = last.map_or(b.i32(1), |_| p.chunks.value().cast(ScalarType::I32));
        let (source_strides, source_image) = strides(&p.source_size, fastest);
        let (result_strides, result_image) = strides(&p.result_size, fastest);
        let (image, chunk) = match last {
            Some(chunk) => (rest, chunk),
            None => (rest, p.chunks.divide(rest).1),
        };
        let at = |pointer: Pointer<'b>, size: Value<'b>| {
            let first = image.cast(wide) * size.cast(wide);
            pointer.offset(if last.is_some() { (first + chunk.cast(wide)) * width } else { first })
        };
        let taps: u32 = spec.axes.iter().map(|axis| axis.taps).product();
        Worker {
            spec,
            b,
            source: at(p.source, source_image),
            out: at(p.out, result_image),
            weight: p.weight.offset(if last.is_some() { chunk * width } else { chunk * taps }),
            chunk,
            chunks: p.chunks,
            lines,
            source_size: p.source_size.clone(),
            source_strides,
            result_strides,
            taps: p.taps.clone(),
        }
    }

    fn run(&self, p: &Parameters<'b>) {
        let Spec { tile, pass, ref axes, .. } = *self.spec;
        let b = self.b;
        let width = self.spec.channels.unwrap_or(1);
        let steps = axes[tile.along].steps(pass);
        let line = self.lines[tile.along];
        let zero = b.constant_of(self.spec.dtype.compute(), 0.0);
        let sums: Vec<Vec<Var>> = (0..tile.windows).map(|_| (0..width).map(|_| b.var(zero)).collect()).collect();
        let start = SourceTap { offset: b.i32(0), inside: None, tap: b.i32(0) };
        if tile.taps == steps.taps {
            // The positions along the tile do not depend on the other dimensions' taps.
            let positions = self.positions(line.source);
            // Some phases have one tap less, or none.
            let guard = (steps.phases > 1).then_some(line.count);
            self.for_each_other_tap(axes.len(), start, &|seen| self.add(seen, line.first, &positions, guard, &sums));
        } else {
            self.for_each_other_tap(axes.len(), start, &|seen| {
                b.for_(0, line.count, tile.taps, |tap| {
                    let positions = self.positions(line.source + tap * steps.source_of_tap);
                    self.add(seen, line.first + tap * steps.tap, &positions, None, &sums);
                });
            });
        }
        self.store(p, &sums);
    }

    /// Offsets of the tile's positions from coordinate `first` on, and whether they are in range.
    fn positions(&self, first: Value<'b>) -> Vec<(Value<'b>, Value<'b>)> {
        let along = self.spec.tile.along;
        let (size, stride) = (self.source_size[along], self.source_strides[along]);
        self.spec.tile.positions().into_iter().map(|x| inside(first + x, size, stride)).collect()
    }

    /// Runs `body` for the taps of the first `rank` dimensions except the tile's.
    fn for_each_other_tap(&self, rank: usize, seen: SourceTap<'b>, body: &dyn Fn(SourceTap<'b>)) {
        let Some(d) = rank.checked_sub(1) else { return body(seen) };
        if d == self.spec.tile.along {
            return self.for_each_other_tap(d, seen, body);
        }
        let (line, axis) = (self.lines[d], self.spec.axes[d]);
        let steps = axis.steps(self.spec.pass);
        let stride = tap_strides(&self.spec.axes)[d];
        let turn = |tap: Value<'b>| {
            let coordinate = line.source + tap * steps.source_of_tap;
            let (offset, ok) = inside(coordinate, self.source_size[d], self.source_strides[d]);
            let tap = (line.first + tap * steps.tap) * stride;
            let seen =
                SourceTap { offset: seen.offset + offset, inside: Some(and(seen.inside, ok)), tap: seen.tap + tap };
            self.for_each_other_tap(d, seen, body);
        };
        let tile = self.spec.tile;
        let width = self.spec.channels.unwrap_or(1);
        let products = steps.taps * tile.windows * tile.taps * width;
        let loaded = steps.taps * (tile.positions().len() as u32 + tile.taps) * width;
        let fits = if self.spec.few_registers {
            products <= UNROLLED_FOR_FEW_REGISTERS && loaded <= LOADED_FOR_FEW_REGISTERS
        } else {
            products <= UNROLLED
        };
        if steps.phases == 1 && fits && rank == self.spec.axes.len() {
            (0..steps.taps as i32).for_each(|tap| turn(self.b.i32(tap)));
        } else {
            let taps = self.taps.as_ref().filter(|_| steps.phases == 1);
            self.b.for_(0, taps.map_or(line.count, |taps| taps[d]), 1, turn);
        }
    }

    /// Accumulates the tile's taps from `first` on; only the first `count` of them, if it is given.
    fn add(
        &self,
        seen: SourceTap<'b>,
        first: Value<'b>,
        positions: &[(Value<'b>, Value<'b>)],
        count: Option<Value<'b>>,
        sums: &[Vec<Var<'b>>],
    ) {
        let (b, tile) = (self.b, self.spec.tile);
        let steps = self.spec.axes[tile.along].steps(self.spec.pass);
        let stride = tap_strides(&self.spec.axes)[tile.along];
        let values: Vec<Vec<Value>> = positions
            .iter()
            .map(|&(offset, ok)| {
                let loaded = self.load(self.source, seen.offset + offset);
                let ok = and(seen.inside, ok);
                loaded.into_iter().map(|x| ok.select(x, 0)).collect()
            })
            .collect();
        let order = tile.positions();
        for tap in 0..tile.taps {
            let product = || {
                let at = seen.tap + (first + tap as i32 * steps.tap) * stride;
                let weights = self.weights(at);
                for (window, sums) in sums.iter().enumerate() {
                    let position = tile.position(window as u32, tap);
                    let values = &values[order.partition_point(|&x| x < position)];
                    for ((sum, &x), &w) in sums.iter().zip(values).zip(&weights) {
                        sum.set(multiply_add(x, w, sum.get()));
                    }
                }
            };
            match count {
                Some(count) => b.if_(count.gt(tap as i32), product),
                None => product(),
            }
        }
    }

    /// Loads the element at an offset (i32), or the chunk of channels.
    fn load(&self, pointer: Pointer<'b>, at: Value<'b>) -> Vec<Value<'b>> {
        pointer.load_chunk(at.cast(ScalarType::U32), self.spec.channels.unwrap_or(1))
    }

    /// Loads the weights of a tap (i32).
    fn weights(&self, tap: Value<'b>) -> Vec<Value<'b>> {
        let step = if self.spec.channels.is_some() { self.chunks.value().cast(ScalarType::I32) } else { self.b.i32(1) };
        self.load(self.weight, tap * step)
    }

    fn store(&self, p: &Parameters<'b>, sums: &[Vec<Var<'b>>]) {
        let Spec { tile, pass, ref axes, .. } = *self.spec;
        let b = self.b;
        let width = self.spec.channels.unwrap_or(1);
        let added: Option<Vec<Value>> = p
            .bias
            .zip(p.bias_step)
            .map(|(bias, step)| (0..width).map(|lane| bias.load((self.chunk * width + lane) * step)).collect());
        let is_inside = |coordinate: Value<'b>, d: usize| {
            coordinate.bitcast(ScalarType::U32).lt(p.result_size[d].bitcast(ScalarType::U32))
        };
        let (mut offset, mut ok) = (b.i32(0), None);
        for (d, line) in self.lines.iter().enumerate().filter(|(d, _)| *d != tile.along) {
            offset = offset + line.result * self.result_strides[d];
            // Only phases have windows outside of the result.
            if axes[d].steps(pass).phases > 1 {
                ok = Some(and(ok, is_inside(line.result, d)));
            }
        }
        let step = axes[tile.along].steps(pass).result;
        for (i, sums) in sums.iter().enumerate() {
            let coordinate = self.lines[tile.along].result + i as i32 * step;
            b.if_(and(ok, is_inside(coordinate, tile.along)), || {
                let at = offset + coordinate * self.result_strides[tile.along];
                let totals: Vec<Value> = match &added {
                    Some(added) => sums.iter().zip(added).map(|(sum, &bias)| sum.get() + bias).collect(),
                    None => sums.iter().map(|sum| sum.get()).collect(),
                };
                self.out.store_chunk(at.cast(ScalarType::U32), &totals);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convolution::depthwise::axis::Axis;
    use crate::dtype::accumulator;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        let axis = |taps, stride, dilation| Axis { taps, stride, dilation };
        let cases: [(&[Axis], DType, Option<u32>); 5] = [
            (&[axis(3, 2, 1), axis(3, 2, 1)], DType::F16, None),
            (&[axis(7, 1, 1), axis(7, 1, 1)], DType::F32, Some(4)),
            (&[axis(62, 1, 2)], DType::F64, None),
            (&[axis(2, 3, 6), axis(40, 2, 1), axis(5, 1, 2)], DType::BF16, Some(1)),
            (&[axis(1, 1, 1)], DType::F32, None),
        ];
        for (axes, dtype, channels) in cases {
            for pass in [Pass::Forward, Pass::Data] {
                let along = Tile::along(axes.len());
                let tile = Tile::new(along, &axes[along].steps(pass), 4);
                let weight = if channels.is_some() { accumulator(dtype) } else { dtype };
                let (axes, bias) = (Axes::from_slice(axes), pass == Pass::Forward);
                let spec = Spec { dtype, weight, pass, axes, tile, channels, bias, few_registers: false };
                accepted(&spec.build());
                accepted(&Spec { few_registers: true, ..spec }.build());
            }
        }
    }
}
