//! The kernels of resampling, forward and backward, over any of the spatial axes.

use super::axis::{Axis, AxisPlan, Filter, Taps};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::primitives::launch::{GROUP, linear_id};
use crate::spatial::geometry::{Place, Strides, axis_params, index_type, pass_axes, pass_strides};
use crate::tensor::Tensor;
use crate::tensor::memory_format::{self, is_channels_last};
use dml_kernel::{Builder, DType, Kernel, Pointer, Scalar, Value};
use smallvec::SmallVec;

/// Up to this many elements are combined into one at once. Above, axes are resampled one after the other.
const AT_ONCE: f64 = 64.0;

/// A resampling of images.
pub struct Plan {
    /// The interpolation.
    pub filter: Filter,
    /// Whether the centres of corner elements fall on each other.
    pub align_corners: bool,
    /// The spatial axes.
    pub axes: SmallVec<[AxisPlan; 3]>,
}

/// Everything that changes the code.
#[derive(Copy, Clone)]
struct Shape {
    backward: bool,
    filter: Filter,
    align_corners: bool,
    from: DType,
    to: DType,
    index: Scalar,
    channels_last: bool,
    rank: usize,
    /// A bit for each axis that is resampled; the others stay as they are.
    mask: u32,
}

/// Writes to `to` the resampled `from`; backward, from the gradient of the output to that of the input. Both are
/// `[batch, channels, spatial ...]`.
pub fn run(call: &Call, plan: &Plan, backward: bool, from: &Tensor, to: &Tensor) -> Result<()> {
    if to.numel() == 0 {
        return Ok(());
    }
    let rank = plan.axes.len();
    let resampled = |d: &usize| !plan.axes[*d].identity();
    let axes: SmallVec<[usize; 3]> = (0..rank).filter(resampled).collect();
    let together: f64 = axes.iter().map(|&d| plan.axes[d].window(plan.filter, backward)).product();
    if axes.len() < 2 || together <= AT_ONCE {
        return pass(call, plan, backward, from, to, &axes);
    }
    let mut from = from.clone();
    for (i, &d) in axes.iter().enumerate().rev() {
        let target = if i == 0 {
            to.clone()
        } else {
            let mut sizes = from.sizes.clone();
            sizes[d + 2] = to.sizes[d + 2];
            let dtype = if to.dtype == DType::F64 { DType::F64 } else { DType::F32 };
            call.empty_strided(dtype, &sizes, &memory_format::strides(&sizes, is_channels_last(to)))?
        };
        pass(call, plan, backward, &from, &target, &[d])?;
        from = target;
    }
    Ok(())
}

/// Resamples some of the axes.
fn pass(call: &Call, plan: &Plan, backward: bool, from: &Tensor, to: &Tensor, axes: &[usize]) -> Result<()> {
    let shape = Shape {
        backward,
        filter: plan.filter,
        align_corners: plan.align_corners,
        from: from.dtype,
        to: to.dtype,
        index: index_type(&[from, to]),
        channels_last: is_channels_last(to),
        rank: plan.axes.len(),
        mask: axes.iter().map(|d| 1 << d).sum(),
    };
    let totals: Vec<Tensor> = if backward && plan.filter.antialias() {
        axes.iter().map(|&d| totals(call, plan, d, to.dtype.compute())).collect::<Result<_>>()?
    } else {
        Vec::new()
    };
    let flags = [backward, plan.align_corners, shape.channels_last, shape.index == Scalar::U64];
    let flags = flags.iter().enumerate().map(|(i, &f)| u32::from(f) << i).sum::<u32>();
    let key = [from.dtype as u32, to.dtype as u32, plan.filter as u32, flags, shape.rank as u32, shape.mask];
    let kernel = call.kernel("upsample", key, || build(shape))?;
    let mut launcher = call.launch(kernel).write(to).read(from);
    for t in &totals {
        launcher = launcher.read(t);
    }
    launcher = launcher.index(shape.index, to.numel()).index(shape.index, to.sizes[1]);
    launcher = pass_axes(launcher, &to.sizes[2..]);
    for &d in axes {
        launcher = plan.axes[d].pass(launcher, plan.filter, compute(&shape));
    }
    for t in [from, to] {
        launcher = pass_strides(launcher, shape.index, t);
    }
    launcher.threads(to.numel() as u64)
}

/// The sums of an antialiasing filter's weights along an axis.
fn totals(call: &Call, plan: &Plan, d: usize, compute: Scalar) -> Result<Tensor> {
    let axis = &plan.axes[d];
    let dtype = if compute == Scalar::F64 { DType::F64 } else { DType::F32 };
    let out = call.empty(dtype, &[axis.output])?;
    let key = [dtype as u32, plan.filter as u32, u32::from(plan.align_corners), 0, 0, 0];
    let kernel = call.kernel("upsample_totals", key, || build_totals(plan.filter, plan.align_corners, dtype))?;
    axis.pass(call.launch(kernel).write(&out), plan.filter, dtype.compute()).threads(axis.output as u64).map(|()| out)
}

fn build_totals(filter: Filter, align_corners: bool, dtype: DType) -> Kernel {
    let b = Builder::new("upsample_totals", [GROUP, 1, 1]);
    let out = b.pointer("out", dtype);
    let axis = Axis::declare(&b, filter, align_corners, dtype.compute());
    let o = linear_id(&b, Scalar::U32);
    b.if_(o.lt(axis.outputs().cast(Scalar::U32)), || out.store(o, axis.total(o.cast(Scalar::I32))));
    b.finish()
}

/// Numbers are computed in f64 where tensors are, else in f32.
fn compute(shape: &Shape) -> Scalar {
    if shape.from == DType::F64 { Scalar::F64 } else { Scalar::F32 }
}

fn build(shape: Shape) -> Kernel {
    let b = Builder::new(if shape.backward { "upsample_backward" } else { "upsample" }, [GROUP, 1, 1]);
    write(&b, shape);
    b.finish()
}

fn write(b: &Builder, shape: Shape) {
    let Shape { rank, index, filter, .. } = shape;
    // What is only moved is moved as bits.
    let moved = shape.mask == 0 || (filter.nearest() && !shape.backward);
    let dtype = |dtype: DType| if moved && shape.from == shape.to { dtype.bits() } else { dtype };
    let (to, from) = (b.pointer("to", dtype(shape.to)), b.pointer("from", dtype(shape.from)));
    let resampled = |d: usize| shape.mask >> d & 1 == 1;
    let tables = shape.backward && filter.antialias();
    let totals: Vec<Option<Pointer>> =
        (0..rank).map(|d| (tables && resampled(d)).then(|| b.pointer("totals", float(compute(&shape))))).collect();
    let (n, channels) = (b.param("n", index), b.param("channels", index));
    let size = axis_params(b, "size", rank);
    let axes: Vec<Option<Axis>> = totals
        .into_iter()
        .enumerate()
        .map(|(d, totals)| {
            let axis = resampled(d).then(|| Axis::declare(b, filter, shape.align_corners, compute(&shape)))?;
            Some(totals.map_or(axis, |t| axis.with_totals(t)))
        })
        .collect();
    let [from_strides, to_strides] = [(); 2].map(|()| Strides::declare(b, index, rank));
    let i = linear_id(b, index);
    b.if_(i.lt(n), || {
        let at = Place::new(i, channels, &size, shape.channels_last);
        let image = from_strides.image(&at);
        let walk = Walk { b, from, strides: &from_strides, axes: &axes, at: &at.at };
        let value = if shape.backward {
            let readers: Vec<_> = axes.iter().zip(&at.at).map(|(axis, &i)| axis.map(|a| a.readers(i))).collect();
            walk.gather(&readers, image, 0)
        } else {
            let taps: Vec<_> = axes.iter().zip(&at.at).map(|(axis, &o)| axis.map(|a| a.taps(o))).collect();
            walk.interpolate(&taps, image, 0)
        };
        let rounded = shape.to == DType::U8 && value.scalar().is_float();
        let value = if rounded { value.round().max(0.0).min(255.0) } else { value };
        to.store(to_strides.element(&at), value);
    });
}

fn float(compute: Scalar) -> DType {
    if compute == Scalar::F64 { DType::F64 } else { DType::F32 }
}

/// One element of the result on its way through the axes.
struct Walk<'w, 'b> {
    b: &'b Builder,
    from: Pointer<'b>,
    strides: &'w Strides<'b>,
    axes: &'w [Option<Axis<'b>>],
    at: &'w [Value<'b>],
}

impl<'b> Walk<'_, 'b> {
    fn load(&self, offset: Value<'b>) -> Value<'b> {
        let value = self.from.load(offset);
        // Weights are floats; what needs none keeps its type.
        let weighted = self.from.dtype() == DType::U8 && self.axes.iter().flatten().any(|a| !a.nearest());
        if weighted { value.cast(Scalar::F32) } else { value }
    }

    /// The interpolated value, given the taps of every axis: over axes from `d` on.
    fn interpolate(&self, taps: &[Option<Taps<'b>>], offset: Value<'b>, d: usize) -> Value<'b> {
        let Some(here) = taps.get(d) else { return self.load(offset) };
        let step = |i: Value<'b>| offset + self.strides.step(d, i);
        match (here, &self.axes[d]) {
            (Some(Taps::Fixed(all)), _) => {
                let parts = all.iter().map(|&(i, weight)| {
                    let inner = self.interpolate(taps, step(i), d + 1);
                    weight.map_or(inner, |w| w * inner)
                });
                // At least one neighbour is read.
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

    /// The sum of the gradients of the outputs that read this element, over axes from `d` on.
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
                let (index, channels_last) = if backward { (Scalar::U64, false) } else { (Scalar::U32, true) };
                let align_corners = backward;
                let shape =
                    Shape { backward, filter, align_corners, from: dtype, to: dtype, index, channels_last, rank, mask };
                accepted(&build(shape));
            }
            if filter.antialias() {
                accepted(&build_totals(filter, false, DType::F64));
            }
        }
    }
}
