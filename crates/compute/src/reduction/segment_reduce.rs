//! Reductions of segments: of neighbours along a dimension, as many as `lengths` say, or from one
//! of `offsets` to the next.

use crate::dtype::accumulator;
use crate::primitives::kernel::{InDType, Input, KernelSpec, Output};
use crate::scalar::Scalar as Number;
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::interface::Index;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};

#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Max,
    Mean,
    Min,
    Sum,
    Prod,
}

impl Kind {
    /// What a segment begins with.
    pub fn initial(self) -> Number {
        Number::Double(match self {
            Kind::Max => f64::NEG_INFINITY,
            Kind::Min => f64::INFINITY,
            Kind::Mean | Kind::Sum => 0.0,
            Kind::Prod => 1.0,
        })
    }

    /// A NaN stays.
    fn join<'b>(self, before: Value<'b>, x: Value<'b>) -> Value<'b> {
        match self {
            Kind::Max => (x.is_nan() | before.lt(x)).select(x, before),
            Kind::Min => (x.is_nan() | x.lt(before)).select(x, before),
            Kind::Mean | Kind::Sum => before + x,
            Kind::Prod => before * x,
        }
    }
}

/// Where segments begin and end.
pub struct Segments {
    /// int64, contiguous: of `relative` ones the sums of all lengths before, those of other rows
    /// too.
    pub bounds: View,
    pub relative: bool,
    /// Rows, segments of a row, and elements of a segment's element.
    pub outer: i64,
    pub count: i64,
    pub inner: i64,
    /// Elements of a row.
    pub size: i64,
}

impl Segments {
    pub fn index(&self, data: &View) -> ScalarType {
        index_type(data.numel().max(self.outer * self.count * self.inner))
    }
}

/// Of an element of the result: the place of its segment's first element of data, how far apart
/// these are, and how many there are. `place` is segments of a row, elements inside, and elements
/// of a row.
fn segment<'b>(
    at: Value<'b>,
    bounds: Pointer<'b>,
    relative: bool,
    place: [Value<'b>; 4],
) -> (Value<'b>, Value<'b>, Value<'b>) {
    let [count, inner, size, _] = place;
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
pub struct Reduce {
    pub kind: Kind,
    pub dtype: DType,
    pub relative: bool,
    /// The caller says what segments begin with.
    pub given: bool,
    pub index: ScalarType,
}

parameters! {
    pub Reduce as s => ReduceArguments, ReduceParameters {
        data: Input = s.dtype,
        bounds: Input = DType::I64,
        out: Output = s.dtype,
        initial: InDType = accumulator(s.dtype),
        /// Segments of a row, elements inside, elements of a row, elements of the result.
        place: [Index; 4] = s.index,
    }
}

impl KernelSpec for Reduce {
    fn name(&self) -> &'static str {
        "segment_reduce"
    }

    fn write<'b>(&self, b: &'b Builder, p: ReduceParameters<'b>) {
        let at = linear_id(b, self.index);
        b.if_(at.lt(p.place[3]), || {
            let (first, step, length) = segment(at, p.bounds, self.relative, p.place);
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
pub struct Gradient {
    pub kind: Kind,
    pub dtype: DType,
    pub relative: bool,
    pub index: ScalarType,
}

parameters! {
    pub Gradient as s => GradientArguments, GradientParameters {
        data: Input = s.dtype,
        bounds: Input = DType::I64,
        output: Input = s.dtype,
        grad: Input = s.dtype,
        to: Output = s.dtype,
        initial: InDType = accumulator(s.dtype),
        /// Segments of a row, elements inside, elements of a row, elements of the result.
        place: [Index; 4] = s.index,
    }
}

impl KernelSpec for Gradient {
    fn name(&self) -> &'static str {
        "segment_reduce_backward"
    }

    fn write<'b>(&self, b: &'b Builder, p: GradientParameters<'b>) {
        let at = linear_id(b, self.index);
        b.if_(at.lt(p.place[3]), || {
            let (first, step, length) = segment(at, p.bounds, self.relative, p.place);
            let (grad, output) = (p.grad.load(at), p.output.load(at));
            let zero = b.int(self.index, 0);
            let each = |body: &dyn Fn(Value<'b>, Value<'b>)| {
                b.for_(zero, length, 1, |i| {
                    let place = first + i * step;
                    body(place, p.data.load(place));
                });
            };
            match self.kind {
                Kind::Sum => each(&|place, _| p.to.store(place, grad)),
                Kind::Mean => {
                    let share = grad / length.cast(grad.scalar());
                    each(&|place, _| p.to.store(place, share));
                }
                Kind::Max | Kind::Min => {
                    let is_extreme = |x: Value<'b>| x.is_nan() | x.eq(output);
                    let count = b.var(b.u32(0));
                    each(&|_, x| count.set(count.get() + is_extreme(x).cast(ScalarType::U32)));
                    let count = count.get();
                    let shared = (count.gt(1) & grad.gt(0.0)).select(grad / count.cast(grad.scalar()), grad);
                    each(&|place, x| b.if_(is_extreme(x), || p.to.store(place, shared)));
                }
                Kind::Prod => {
                    let all = grad * output;
                    each(&|place, x| {
                        // Of what cannot be divided out, the product of the others.
                        let alone = x.is_nan() | x.eq(0.0);
                        b.if_else(
                            alone,
                            || {
                                let others = b.var(p.initial);
                                each(&|other, y| {
                                    others.set(other.eq(place).select(others.get(), others.get() * y));
                                });
                                p.to.store(place, grad * others.get());
                            },
                            || p.to.store(place, all / x),
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
