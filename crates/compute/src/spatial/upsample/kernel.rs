//! The kernels of resampling, forward and backward, along one or more spatial axes.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::loops::check_loop_iterations;
use crate::spatial::geometry::{Coordinates, ImageStrides, PerAxis, Strides, index_type};
use crate::spatial::upsample::axis::{Axis, AxisPlan, AxisSpec, Filter, ResampledAxis, Taps};
use crate::view::View;
use crate::view::memory_format::{self, is_channels_last};
use dml_engine::interface::{Each, Index, ReadRange, WriteRange};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};
use smallvec::{SmallVec, smallvec};

/// Maximum number of elements that are combined into one in one pass. With more, axes are resampled
/// one after the other.
const MAX_TAPS_PER_PASS: f64 = 64.0;

/// A resampling of images.
pub struct Plan {
    /// The interpolation.
    pub filter: Filter,
    /// Whether the centres of corner elements are aligned.
    pub align_corners: bool,
    /// The spatial axes.
    pub axes: SmallVec<[AxisPlan; 3]>,
}

/// Resamples `from` to `to`; backward, from the gradient of the output to the gradient of the
/// input. Both are `[batch, channels, spatial ...]`.
pub fn run(cx: &Context, plan: &Plan, backward: bool, from: &View, to: &View) -> Result<()> {
    if to.numel() == 0 {
        return Ok(());
    }
    let rank = plan.axes.len();
    let resampled = |d: &usize| !plan.axes[*d].identity();
    let axes: SmallVec<[usize; 3]> = (0..rank).filter(resampled).collect();
    let together: f64 = axes.iter().map(|&d| plan.axes[d].window(plan.filter, backward)).product();
    // An axis in both directions: a backward pass needs the sums of weights too.
    let directions = if plan.filter.antialias() { &[false, true][..] } else { &[backward] };
    let longest = axes.iter().flat_map(|&d| directions.iter().map(move |&way| plan.axes[d].window(plan.filter, way)));
    let longest = longest.fold(together.min(MAX_TAPS_PER_PASS), f64::max);
    check_loop_iterations(cx, 2 * longest.ceil() as i64)?;
    if axes.len() < 2 || together <= MAX_TAPS_PER_PASS {
        return pass(cx, plan, backward, from, to, &axes);
    }
    let mut from = from.clone();
    for (i, &d) in axes.iter().enumerate().rev() {
        let target = if i == 0 {
            to.clone()
        } else {
            let mut sizes = from.sizes.clone();
            sizes[d + 2] = to.sizes[d + 2];
            cx.empty_strided(number_dtype(to.dtype), &sizes, &memory_format::strides(&sizes, is_channels_last(to)))?
        };
        pass(cx, plan, backward, &from, &target, &[d])?;
        from = target;
    }
    Ok(())
}

/// Resamples a subset of the axes.
fn pass(cx: &Context, plan: &Plan, backward: bool, from: &View, to: &View, axes: &[usize]) -> Result<()> {
    let spec = Spec {
        backward,
        filter: plan.filter,
        align_corners: plan.align_corners,
        from: from.dtype,
        to: to.dtype,
        index: index_type(&[from, to]),
        channels_last: is_channels_last(to),
        rank: plan.axes.len(),
        resampled: axes.iter().map(|d| 1 << d).sum(),
    };
    let totals: SmallVec<[View; 3]> = if spec.has_totals() {
        axes.iter().map(|&d| totals(cx, plan, d, number_dtype(from.dtype))).collect::<Result<_>>()?
    } else {
        SmallVec::new()
    };
    let arguments = Arguments {
        to: to.range(),
        from: from.range(),
        totals: totals.iter().collect(),
        numel: to.numel(),
        channels: to.sizes[1],
        size: &to.sizes[2..],
        axes: axes.iter().map(|&d| plan.axes[d]).collect(),
        from_strides: from,
        to_strides: to,
    };
    cx.run_threads(&spec, &arguments, to.numel() as u64)
}

/// The sums of an antialiasing filter's weights along an axis.
fn totals(cx: &Context, plan: &Plan, d: usize, dtype: DType) -> Result<View> {
    let axis = plan.axes[d];
    let out = cx.empty(dtype, &[axis.output])?;
    let spec = TotalsSpec { filter: plan.filter, align_corners: plan.align_corners, dtype };
    cx.run_threads(&spec, &TotalsArguments { out: &out, axis }, axis.output as u64)?;
    Ok(out)
}

/// Specialisation of the kernel that sums weights: everything that changes its code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct TotalsSpec {
    filter: Filter,
    align_corners: bool,
    dtype: DType,
}

parameters! {
    TotalsSpec as s => TotalsArguments, TotalsParameters {
        out: Output = s.dtype,
        axis: ResampledAxis =
            AxisSpec { filter: s.filter, align_corners: s.align_corners, compute: s.dtype.compute() },
    }
}

impl KernelSpec for TotalsSpec {
    fn name(&self) -> &'static str {
        "upsample_totals"
    }

    fn write<'b>(&self, b: &'b Builder, p: TotalsParameters<'b>) {
        let o = linear_id(b, ScalarType::U32);
        b.if_(o.lt(p.axis.outputs().cast(ScalarType::U32)), || p.out.store(o, p.axis.total(o.cast(ScalarType::I32))));
    }
}

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    backward: bool,
    filter: Filter,
    align_corners: bool,
    from: DType,
    to: DType,
    index: ScalarType,
    channels_last: bool,
    rank: usize,
    /// Bitmask: axis i is resampled.
    resampled: u32,
}

parameters! {
    Spec as s => Arguments, Parameters {
        to: WriteRange = s.stored(s.to),
        from: ReadRange = s.stored(s.from),
        /// Sums of the weights, for each axis that is resampled.
        totals: Each<Input> =
            smallvec![number_dtype(s.from); if s.has_totals() { s.resampled.count_ones() as usize } else { 0 }],
        numel: Index = s.index,
        channels: Index = s.index,
        size: PerAxis = s.rank,
        /// The axes that are resampled.
        axes: Each<ResampledAxis> = smallvec![s.axis(); s.resampled.count_ones() as usize],
        from_strides: ImageStrides = (s.index, s.rank),
        to_strides: ImageStrides = (s.index, s.rank),
    }
}

impl Spec {
    /// Whether the kernel reads the sums of an antialiasing filter's weights.
    fn has_totals(&self) -> bool {
        self.backward && self.filter.antialias()
    }

    /// The dtype as which memory is accessed: elements that are only copied are accessed as bits.
    fn stored(&self, dtype: DType) -> DType {
        let moved = self.resampled == 0 || (self.filter.nearest() && !self.backward);
        if moved && self.from == self.to { dtype.bits() } else { dtype }
    }

    fn axis(&self) -> AxisSpec {
        let compute = number_dtype(self.from).compute();
        AxisSpec { filter: self.filter, align_corners: self.align_corners, compute }
    }
}

/// The dtype in which positions and weights for elements of a dtype are computed: f64 for doubles,
/// else f32.
fn number_dtype(dtype: DType) -> DType {
    if dtype.is_float() { accumulator(dtype) } else { DType::F32 }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        if self.backward { "upsample_backward" } else { "upsample" }
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let Parameters { to, from, from_strides, to_strides, .. } = p;
        let mut declared = p.axes.into_iter();
        let mut totals = p.totals.into_iter();
        let axes: Vec<Option<Axis>> = (0..self.rank)
            .map(|d| {
                let axis = if self.resampled >> d & 1 == 1 { declared.next()? } else { return None };
                Some(totals.next().map_or(axis, |t| axis.with_totals(t)))
            })
            .collect();
        let i = linear_id(b, self.index);
        b.if_(i.lt(p.numel), || {
            let at = Coordinates::new(i, p.channels, &p.size, self.channels_last);
            let image = from_strides.image(&at);
            let evaluation = AxisEvaluation { b, from, strides: &from_strides, axes: &axes, at: &at.at };
            let value = if self.backward {
                let readers: Vec<_> = axes.iter().zip(&at.at).map(|(axis, &i)| axis.map(|a| a.readers(i))).collect();
                evaluation.gather(&readers, image, 0)
            } else {
                let taps: Vec<_> = axes.iter().zip(&at.at).map(|(axis, &o)| axis.map(|a| a.taps(o))).collect();
                evaluation.interpolate(&taps, image, 0)
            };
            let rounded = self.to == DType::U8 && value.scalar().is_float();
            let value = if rounded { value.round().max(0.0).min(255.0) } else { value };
            to.store(to_strides.element(&at), value);
        });
    }
}

/// The computation of one element of the result, axis by axis.
struct AxisEvaluation<'w, 'b> {
    b: &'b Builder,
    from: Pointer<'b>,
    strides: &'w Strides<'b>,
    axes: &'w [Option<Axis<'b>>],
    at: &'w [Value<'b>],
}

impl<'b> AxisEvaluation<'_, 'b> {
    fn load(&self, offset: Value<'b>) -> Value<'b> {
        let value = self.from.load(offset);
        // Weights are floats; an element that is not weighted keeps its type.
        let weighted = self.from.dtype() == DType::U8 && self.axes.iter().flatten().any(|a| !a.nearest());
        if weighted { value.cast(ScalarType::F32) } else { value }
    }

    /// The interpolated value over axes from `d` on, given the taps of every axis.
    fn interpolate(&self, taps: &[Option<Taps<'b>>], offset: Value<'b>, d: usize) -> Value<'b> {
        let Some(here) = taps.get(d) else { return self.load(offset) };
        let step = |i: Value<'b>| offset + self.strides.step(d, i);
        match (here, &self.axes[d]) {
            (Some(Taps::Fixed(all)), _) => {
                let parts = all.iter().map(|&(i, weight)| {
                    let inner = self.interpolate(taps, step(i), d + 1);
                    weight.map_or(inner, |w| w * inner)
                });
                // At least one element is read.
                parts.reduce(|a, b| a + b).unwrap_or(offset)
            }
            (Some(Taps::Window([first, end], center, total)), Some(axis)) => {
                let sum = self.b.var(center.like(0.0));
                self.b.for_(*first, *end, 1, |i| {
                    let inner = self.interpolate(taps, step(i), d + 1);
                    sum.set(sum.get() + axis.raw_weight(i, *center) * inner);
                });
                sum.get() / *total
            }
            _ => self.interpolate(taps, step(self.at[d]), d + 1),
        }
    }

    /// The sum, over axes from `d` on, of the gradients of the outputs that read this element.
    fn gather(&self, readers: &[Option<[Value<'b>; 2]>], offset: Value<'b>, d: usize) -> Value<'b> {
        let Some(here) = readers.get(d) else { return self.load(offset) };
        let (Some([first, end]), Some(axis)) = (here, &self.axes[d]) else {
            return self.gather(readers, offset + self.strides.step(d, self.at[d]), d + 1);
        };
        let sum = self.b.var(self.b.constant_of(self.from.dtype().compute(), 0.0));
        self.b.for_(*first, *end, 1, |o| {
            let inner = self.gather(readers, offset + self.strides.step(d, o), d + 1);
            let part = axis.weight(o, self.at[d]).map_or(inner, |w| w * inner);
            sum.set(sum.get() + part);
        });
        sum.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        use Filter::*;
        for filter in [Nearest, NearestExact, Linear, Cubic, LinearAntialias, CubicAntialias] {
            for (dtype, rank, mask, backward) in [
                (DType::F32, 2, 3, false),
                (DType::F16, 3, 5, true),
                (DType::F64, 1, 1, true),
                (DType::U8, 2, 3, false),
            ] {
                let (index, channels_last) = if backward { (ScalarType::U64, false) } else { (ScalarType::U32, true) };
                let align_corners = backward;
                let (from, to, resampled) = (dtype, dtype, mask);
                let spec = Spec { backward, filter, align_corners, from, to, index, channels_last, rank, resampled };
                accepted(&spec.build());
            }
            if filter.antialias() {
                accepted(&TotalsSpec { filter, align_corners: false, dtype: DType::F64 }.build());
            }
        }
    }
}
