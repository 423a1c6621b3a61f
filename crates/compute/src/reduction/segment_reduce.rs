//! Reductions of segments along a dimension, given by `lengths` or by consecutive `offsets`.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::primitives::kernel::{InDType, Input, KernelSpec, Output};
use crate::scalar::Scalar as Number;
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::interface::Index;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};

/// The reduction of a segment.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The maximum.
    Max,
    /// The mean.
    Mean,
    /// The minimum.
    Min,
    /// The sum.
    Sum,
    /// The product.
    Prod,
}

impl Kind {
    /// The initial value of a segment.
    fn initial(self) -> Number {
        Number::Double(match self {
            Kind::Max => f64::NEG_INFINITY,
            Kind::Min => f64::INFINITY,
            Kind::Mean | Kind::Sum => 0.0,
            Kind::Prod => 1.0,
        })
    }

    /// NaN is propagated.
    fn join<'b>(self, before: Value<'b>, x: Value<'b>) -> Value<'b> {
        match self {
            Kind::Max => (x.is_nan() | before.lt(x)).select(x, before),
            Kind::Min => (x.is_nan() | x.lt(before)).select(x, before),
            Kind::Mean | Kind::Sum => before + x,
            Kind::Prod => before * x,
        }
    }
}

/// The bounds of segments.
pub struct Segments {
    /// int64, contiguous. If `relative`, the sum of the lengths of all segments before, in this and
    /// in other rows; otherwise the position in its row at which each segment begins and the last
    /// one ends.
    pub bounds: View,
    /// Bounds are relative to the first bound of their row.
    pub relative: bool,
    /// Number of rows of data.
    pub outer: i64,
    /// Number of segments of a row.
    pub count: i64,
    /// Number of elements at each position of a row: the product of the inner dimensions.
    pub inner: i64,
    /// Number of positions of a row.
    pub size: i64,
}

/// Reduces segments of `data` (`[outer, size, inner]`) to `out` (`[outer, count, inner]`), both
/// contiguous and of one floating dtype. The initial value of every segment is `initial`, or the
/// operation's identity.
pub fn reduce(
    cx: &Context,
    kind: Kind,
    segments: &Segments,
    data: &View,
    initial: Option<Number>,
    out: &View,
) -> Result<()> {
    let spec = Reduce {
        kind,
        dtype: data.dtype,
        relative: segments.relative,
        given: initial.is_some(),
        index: segments.index(data),
    };
    let Segments { bounds, count, inner, size, .. } = segments;
    let initial = initial.unwrap_or(kind.initial());
    let arguments = ReduceArguments { data, bounds, out, initial, sizes: [*count, *inner, *size, out.numel()] };
    cx.run_threads(&spec, &arguments, out.numel() as u64)
}

/// Writes the gradient of [`reduce`] to `to`: of the shape of `data`, contiguous, filled with
/// zeros. `output` is the result and `grad` its gradient. A nonnegative gradient is shared by the
/// extrema of a segment.
pub fn gradient(
    cx: &Context,
    kind: Kind,
    segments: &Segments,
    data: &View,
    output: &View,
    grad: &View,
    initial: Option<Number>,
    to: &View,
) -> Result<()> {
    let spec = Gradient { kind, dtype: data.dtype, relative: segments.relative, index: segments.index(data) };
    let Segments { bounds, count, inner, size, .. } = segments;
    let initial = initial.unwrap_or(Number::Double(1.0));
    let sizes = [*count, *inner, *size, output.numel()];
    let arguments = GradientArguments { data, bounds, output, grad, to, initial, sizes };
    cx.run_threads(&spec, &arguments, output.numel() as u64)
}

impl Segments {
    fn index(&self, data: &View) -> ScalarType {
        index_type(data.numel().max(self.outer * self.count * self.inner))
    }
}

/// For an element of the result: the offset of its segment's first element of data, their stride,
/// and their number. `sizes` has the segments of a row, the inner elements, and the elements of a
/// row.
fn segment<'b>(
    at: Value<'b>,
    bounds: Pointer<'b>,
    relative: bool,
    sizes: [Value<'b>; 4],
) -> (Value<'b>, Value<'b>, Value<'b>) {
    let [count, inner, size, _] = sizes;
    let (within, rest) = (at % inner, at / inner);
    let (which, row) = (rest % count, rest / count);
    let first = if relative { row * count } else { row * (count + 1) };
    let base = relative.then(|| bounds.load(first));
    let bound = |i: Value<'b>| {
        let x = bounds.load(i);
        let x = base.map_or(x, |base| x - base);
        let limit = size.cast(ScalarType::I64);
        x.lt(0).select(x.like(0.0), x.gt(limit).select(limit, x)).cast(at.scalar())
    };
    let (begin, end) = (bound(first + which), bound(first + which + 1));
    let length = end.gt(begin).select(end - begin, 0);
    ((row * size + begin) * inner + within, inner, length)
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Reduce {
    kind: Kind,
    dtype: DType,
    relative: bool,
    /// The caller gives the initial value.
    given: bool,
    index: ScalarType,
}

parameters! {
    Reduce as s => ReduceArguments, ReduceParameters {
        data: Input = s.dtype,
        bounds: Input = DType::I64,
        out: Output = s.dtype,
        initial: InDType = accumulator(s.dtype),
        /// Segments of a row, inner elements, elements of a row, elements of the result.
        sizes: [Index; 4] = s.index,
    }
}

impl KernelSpec for Reduce {
    fn name(&self) -> &'static str {
        "segment_reduce"
    }

    fn write<'b>(&self, b: &'b Builder, p: ReduceParameters<'b>) {
        let at = linear_id(b, self.index);
        b.if_(at.lt(p.sizes[3]), || {
            let (first, step, length) = segment(at, p.bounds, self.relative, p.sizes);
            let joined = b.var(p.initial);
            b.for_(b.int(self.index, 0), length, 1, |i| {
                joined.set(self.kind.join(joined.get(), p.data.load(first + i * step)));
            });
            let joined = joined.get();
            p.out.store(
                at,
                if self.kind == Kind::Mean {
                    let nothing = if self.given { joined } else { joined.like(f64::NAN) };
                    length.eq(0).select(nothing, joined / length.cast(joined.scalar()))
                } else {
                    joined
                },
            );
        });
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Gradient {
    kind: Kind,
    dtype: DType,
    relative: bool,
    index: ScalarType,
}

parameters! {
    Gradient as s => GradientArguments, GradientParameters {
        data: Input = s.dtype,
        bounds: Input = DType::I64,
        output: Input = s.dtype,
        grad: Input = s.dtype,
        to: Output = s.dtype,
        initial: InDType = accumulator(s.dtype),
        /// Segments of a row, inner elements, elements of a row, elements of the result.
        sizes: [Index; 4] = s.index,
    }
}

impl KernelSpec for Gradient {
    fn name(&self) -> &'static str {
        "segment_reduce_backward"
    }

    fn write<'b>(&self, b: &'b Builder, p: GradientParameters<'b>) {
        let at = linear_id(b, self.index);
        b.if_(at.lt(p.sizes[3]), || {
            let (first, step, length) = segment(at, p.bounds, self.relative, p.sizes);
            let (grad, output) = (p.grad.load(at), p.output.load(at));
            let zero = b.int(self.index, 0);
            let each = |body: &dyn Fn(Value<'b>, Value<'b>)| {
                b.for_(zero, length, 1, |i| {
                    let sizes = first + i * step;
                    body(sizes, p.data.load(sizes));
                });
            };
            match self.kind {
                Kind::Sum => each(&|sizes, _| p.to.store(sizes, grad)),
                Kind::Mean => {
                    let share = grad / length.cast(grad.scalar());
                    each(&|sizes, _| p.to.store(sizes, share));
                }
                Kind::Max | Kind::Min => {
                    let is_extreme = |x: Value<'b>| x.is_nan() | x.eq(output);
                    let count = b.var(b.u32(0));
                    each(&|_, x| count.set(count.get() + is_extreme(x).cast(ScalarType::U32)));
                    let count = count.get();
                    let shared = (count.gt(1) & grad.gt(0.0)).select(grad / count.cast(grad.scalar()), grad);
                    each(&|sizes, x| b.if_(is_extreme(x), || p.to.store(sizes, shared)));
                }
                Kind::Prod => {
                    let all = grad * output;
                    each(&|sizes, x| {
                        // If it cannot be divided out: the product of the other elements.
                        let alone = x.is_nan() | x.eq(0.0);
                        b.if_else(
                            alone,
                            || {
                                let others = b.var(p.initial);
                                each(&|other, y| {
                                    others.set(other.eq(sizes).select(others.get(), others.get() * y));
                                });
                                p.to.store(sizes, grad * others.get());
                            },
                            || p.to.store(sizes, all / x),
                        );
                    });
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (kind, dtype, relative, index) in [
            (Kind::Max, DType::F32, true, ScalarType::U32),
            (Kind::Mean, DType::F16, false, ScalarType::U64),
            (Kind::Min, DType::F64, false, ScalarType::U32),
            (Kind::Sum, DType::BF16, true, ScalarType::U32),
            (Kind::Prod, DType::F32, true, ScalarType::U64),
        ] {
            accepted(&Reduce { kind, dtype, relative, given: relative, index }.build());
            accepted(&Gradient { kind, dtype, relative, index }.build());
        }
    }
}
