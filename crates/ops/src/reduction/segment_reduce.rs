//! Reductions of segments: of neighbours along a dimension, as many as `lengths` say, or from one of `offsets` to the next.

use crate::movement::copy::{as_contiguous, cast, device_copy, fill_with, read_numbers};
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::conversion::check_fits;
use crate::operator::error::{Error, Result};
use crate::primitives::kernel::{InDType, Input, KernelSpec, Output};
use crate::primitives::loops::check_turns;
use crate::primitives::prefix_sum;
use crate::tensor::Tensor;
use crate::tensor::layout::index_type;
use crate::tensor::promote::accumulator;
use crate::{check, operators};
use dml_engine::interface::Index;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};

operators! {
    forward(data, reduce, lengths, indices, offsets, axis, unsafe, initial) {
        "aten::segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
    }
    backward(grad, output, data, reduce, lengths, offsets, axis, initial) {
        "aten::_segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str reduce, *, Tensor? lengths=None, Tensor? offsets=None, int axis=0, Scalar? initial=None) -> Tensor",
    }
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Max,
    Mean,
    Min,
    Sum,
    Prod,
}

impl Kind {
    fn of(name: &str) -> Result<Kind> {
        Ok(match name {
            "max" | "amax" => Kind::Max,
            "mean" => Kind::Mean,
            "min" | "amin" => Kind::Min,
            "sum" => Kind::Sum,
            "prod" => Kind::Prod,
            other => {
                let known = "reduce argument must be either sum, prod, mean, amax or amin, got";
                return Err(Error::Runtime(format!("{known} {other}")));
            }
        })
    }

    /// What a segment begins with.
    fn initial(self) -> Number {
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
struct Segments {
    /// int64, contiguous: of `relative` ones the sums of all lengths before, those of other rows too.
    bounds: Tensor,
    relative: bool,
    /// Rows, segments of a row, and elements of a segment's element.
    outer: i64,
    count: i64,
    inner: i64,
    /// Elements of a row.
    size: i64,
}

impl Segments {
    fn new(call: &Call, data: &Tensor, lengths: Option<&Tensor>, offsets: Option<&Tensor>, axis: i64) -> Result<Self> {
        let axis = call.wrap_dim(axis, data.dim())?;
        let (given, what) = match (offsets, lengths) {
            (Some(offsets), _) => (offsets, "offsets"),
            (None, Some(lengths)) => (lengths, "lengths"),
            (None, None) => {
                return Err(Error::Runtime("segment_reduce(): Either lengths or offsets must be defined.".into()));
            }
        };
        check!(
            data.dim() >= given.dim() && given.dim() > 0,
            Runtime,
            "segment_reduce(): {what} {} of more dimensions than data {}",
            given.describe(),
            data.describe()
        );
        check!(
            axis + 1 == given.dim(),
            Runtime,
            "segment_reduce(): Expected axis to be the last dimension of {what} but got {axis}."
        );
        let index = matches!(given.dtype, DType::I32 | DType::I64);
        let dtype = given.dtype;
        check!(index, NotImplemented, "\"_segment_reduce_{what}_cpu_kernel1\" not implemented for '{dtype}'");
        let fits = given.sizes[..axis] == data.sizes[..axis];
        check!(fits, Runtime, "segment_reduce(): {what} {} does not fit data {}", given.describe(), data.describe());
        check_turns(call, data.sizes[axis])?;
        let outer = data.sizes[..axis].iter().product();
        let inner = data.sizes[axis + 1..].iter().product();
        let relative = offsets.is_none();
        let count = if relative { given.sizes[axis] } else { (given.sizes[axis] - 1).max(0) };
        let bounds = if relative {
            let n = given.numel();
            let sums = call.empty(DType::I64, &[n + 1])?;
            device_copy(
                call,
                given,
                &sums.narrow(0, 0, n).as_strided(&given.sizes, &Tensor::contiguous_strides(&given.sizes), 0),
            )?;
            prefix_sum::exclusive(call, &sums, n)?;
            sums
        } else {
            as_contiguous(call, &cast(call, given, DType::I64)?)?
        };
        Ok(Segments { bounds, relative, outer, count, inner, size: data.sizes[axis] })
    }

    fn index(&self, data: &Tensor) -> ScalarType {
        index_type(data.numel().max(self.outer * self.count * self.inner))
    }
}

fn of_floats(data: &Tensor) -> Result<()> {
    check!(data.dtype.is_float(), NotImplemented, "\"_segment_reduce_cpu\" not implemented for '{}'", data.dtype);
    Ok(())
}

/// Lengths are read back and checked, unless it is `unsafe`. Nothing outside of the data is ever read.
fn forward(
    call: &mut Call,
    data: &Tensor,
    reduce: Option<&str>,
    lengths: Option<&Tensor>,
    indices: Option<&Tensor>,
    offsets: Option<&Tensor>,
    axis: i64,
    trusted: bool,
    initial: Option<Number>,
) -> Result<()> {
    check!(indices.is_none(), Runtime, "segment_reduce(): indices based reduction is not supported yet.");
    let kind = Kind::of(reduce.unwrap_or_default())?;
    let segments = Segments::new(call, data, lengths, offsets, axis)?;
    if let (Some(lengths), true) = (lengths, segments.relative && !trusted) {
        let numbers: Vec<Number> = read_numbers(call, lengths)?;
        let numbers: Vec<i64> = numbers.into_iter().map(|n| n.to_i64()).collect();
        check!(numbers.iter().all(|&n| n >= 0), Runtime, "lengths contains negative value!");
        let mut rows = numbers.chunks(segments.count.max(1) as usize);
        check!(
            rows.all(|row| row.iter().sum::<i64>() == segments.size),
            Runtime,
            "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe."
        );
    }
    of_floats(data)?;
    if let Some(initial) = initial {
        check_fits(initial, data.dtype)?;
    }
    let mut sizes = data.sizes.clone();
    sizes[call.wrap_dim(axis, data.dim())?] = segments.count;
    let out = call.empty(data.dtype, &sizes)?;
    if out.numel() > 0 {
        let data = &as_contiguous(call, data)?;
        let spec = Reduce {
            kind,
            dtype: data.dtype,
            relative: segments.relative,
            given: initial.is_some(),
            index: segments.index(data),
        };
        let Segments { bounds, count, inner, size, .. } = &segments;
        let initial = initial.unwrap_or(kind.initial());
        let arguments =
            ReduceArguments { data, bounds, out: &out, initial, place: [*count, *inner, *size, out.numel()] };
        call.run_threads(&spec, &arguments, out.numel() as u64)?;
    }
    call.ret(out);
    Ok(())
}

/// As on the CPU, a gradient that is not negative is shared by the extrema of a segment.
fn backward(
    call: &mut Call,
    grad: &Tensor,
    output: &Tensor,
    data: &Tensor,
    reduce: Option<&str>,
    lengths: Option<&Tensor>,
    offsets: Option<&Tensor>,
    axis: i64,
    initial: Option<Number>,
) -> Result<()> {
    let kind = Kind::of(reduce.unwrap_or_default())?;
    let segments = Segments::new(call, data, lengths, offsets, axis)?;
    of_floats(data)?;
    let mut sizes = data.sizes.clone();
    sizes[call.wrap_dim(axis, data.dim())?] = segments.count;
    let alike = [grad, output].iter().all(|t| t.sizes == sizes && t.dtype == data.dtype);
    check!(
        alike,
        Runtime,
        "{}: gradient {} and output {} should be like the result",
        call.name,
        grad.describe(),
        output.describe()
    );
    let to = call.empty(data.dtype, &data.sizes)?;
    fill_with(call, &to, Number::Int(0))?;
    if output.numel() > 0 && data.numel() > 0 {
        let [data, output, grad] = [data, output, grad].map(|t| as_contiguous(call, t));
        let (data, output, grad) = (&data?, &output?, &grad?);
        let spec = Gradient { kind, dtype: data.dtype, relative: segments.relative, index: segments.index(data) };
        let Segments { bounds, count, inner, size, .. } = &segments;
        let initial = initial.unwrap_or(Number::Double(1.0));
        let place = [*count, *inner, *size, output.numel()];
        let arguments = GradientArguments { data, bounds, output, grad, to: &to, initial, place };
        call.run_threads(&spec, &arguments, output.numel() as u64)?;
    }
    call.ret(to);
    Ok(())
}

/// Of an element of the result: the place of its segment's first element of data, how far apart these are, and how many there
/// are. `place` is segments of a row, elements inside, and elements of a row.
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
struct Reduce {
    kind: Kind,
    dtype: DType,
    relative: bool,
    /// The caller says what segments begin with.
    given: bool,
    index: ScalarType,
}

parameters! {
    Reduce as s => ReduceArguments, ReduceParameters {
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
