//! Largest and smallest elements, and where they are. NaN counts as larger and smaller than every number; of equal
//! elements the first one wins.

use super::{Axes, Fold, Reduction, Scope, Values, reduce};
use crate::check;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::structured;
use crate::operator::{Operator, op};
use crate::tensor::Tensor;
use dml_kernel::{Builder, DType, Scalar, Value};
use smallvec::{SmallVec, smallvec};

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::amax", |c| over_dims(c, Extreme::Max, None)),
    op("aten::amax.out", |c| over_dims(c, Extreme::Max, Some(3))),
    op("aten::amin", |c| over_dims(c, Extreme::Min, None)),
    op("aten::amin.out", |c| over_dims(c, Extreme::Min, Some(3))),
    op("aten::aminmax", |c| aminmax(c, [None, None])),
    op("aten::aminmax.out", |c| aminmax(c, [Some(3), Some(4)])),
    op("aten::_aminmax", |c| {
        let axes = Axes::all(false);
        aminmax_of(c, None, axes, [None, None])
    }),
    op("aten::_aminmax.dim", |c| {
        let dim = c.int(1)?;
        let axes = Axes::listed(c, &[dim], c.tensor(0)?.dim(), c.flag(2)?)?;
        aminmax_of(c, Some(dim), axes, [None, None])
    }),
    op("aten::max", |c| of_all(c, Extreme::Max, None)),
    op("aten::max.unary_out", |c| of_all(c, Extreme::Max, Some(1))),
    op("aten::min", |c| of_all(c, Extreme::Min, None)),
    op("aten::min.unary_out", |c| of_all(c, Extreme::Min, Some(1))),
    op("aten::max.dim", |c| with_indices(c, Extreme::Max, [None, None])),
    op("aten::max.dim_max", |c| with_indices(c, Extreme::Max, [Some(3), Some(4)])),
    op("aten::min.dim", |c| with_indices(c, Extreme::Min, [None, None])),
    op("aten::min.dim_min", |c| with_indices(c, Extreme::Min, [Some(3), Some(4)])),
    op("aten::argmax", |c| arg(c, Extreme::Max, None)),
    op("aten::argmax.out", |c| arg(c, Extreme::Max, Some(3))),
    op("aten::argmin", |c| arg(c, Extreme::Min, None)),
    op("aten::argmin.out", |c| arg(c, Extreme::Min, Some(3))),
];

#[derive(Copy, Clone, PartialEq, Eq)]
enum Extreme {
    Max,
    Min,
}

impl Extreme {
    /// Whether `x` comes before `y`; false when equal.
    fn beats<'b>(self, x: Value<'b>, y: Value<'b>) -> Value<'b> {
        let better = match self {
            Extreme::Max => x.gt(y),
            Extreme::Min => x.lt(y),
        };
        if x.scalar().is_float() { better | (x.is_nan() & !y.is_nan()) } else { better }
    }

    fn pick<'b>(self, x: Value<'b>, y: Value<'b>) -> Value<'b> {
        self.beats(x, y).select(x, y)
    }

    /// The value that every other beats or equals.
    fn worst(self, b: &Builder, dtype: DType) -> Value<'_> {
        let scalar = compute(dtype);
        let max = self == Extreme::Max;
        match scalar {
            s if s.is_float() => b.float(s, if max { f64::NEG_INFINITY } else { f64::INFINITY }),
            Scalar::I32 => b.i32(if max { i32::MIN } else { i32::MAX }),
            Scalar::I64 => b.int(scalar, if max { i64::MIN } else { i64::MAX } as u64),
            s => b.int(s, if max { 0 } else { u64::MAX }),
        }
    }
}

/// The type in which elements are compared; flags as numbers.
fn compute(dtype: DType) -> Scalar {
    if dtype == DType::Bool { Scalar::U32 } else { dtype.compute() }
}

struct Single {
    extreme: Extreme,
    dtype: DType,
}

impl Fold for Single {
    fn name(&self) -> &'static str {
        if self.extreme == Extreme::Max { "amax" } else { "amin" }
    }

    fn accumulators(&self, _: Scalar) -> SmallVec<[Scalar; 3]> {
        smallvec![compute(self.dtype)]
    }

    fn identity<'b>(&self, s: &Scope<'b>) -> Values<'b> {
        smallvec![self.extreme.worst(s.b, self.dtype)]
    }

    fn map<'b>(&self, _: &Scope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        smallvec![elements[0].cast(compute(self.dtype))]
    }

    fn combine<'b>(&self, _: &Scope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![self.extreme.pick(x[0], y[0])]
    }

    fn finish<'b>(&self, _: &Scope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0]]
    }
}

/// Smallest and largest in one pass.
struct Both {
    dtype: DType,
}

impl Fold for Both {
    fn name(&self) -> &'static str {
        "aminmax"
    }

    fn accumulators(&self, _: Scalar) -> SmallVec<[Scalar; 3]> {
        smallvec![compute(self.dtype); 2]
    }

    fn identity<'b>(&self, s: &Scope<'b>) -> Values<'b> {
        smallvec![Extreme::Min.worst(s.b, self.dtype), Extreme::Max.worst(s.b, self.dtype)]
    }

    fn map<'b>(&self, _: &Scope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        smallvec![elements[0].cast(compute(self.dtype)); 2]
    }

    fn combine<'b>(&self, _: &Scope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![Extreme::Min.pick(x[0], y[0]), Extreme::Max.pick(x[1], y[1])]
    }

    fn finish<'b>(&self, _: &Scope<'b>, x: &[Value<'b>]) -> Values<'b> {
        Values::from_slice(x)
    }
}

/// What a position's fold yields.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Yields {
    Index,
    ValueAndIndex,
}

/// The element and its position.
struct Positioned {
    extreme: Extreme,
    dtype: DType,
    yields: Yields,
}

impl Fold for Positioned {
    fn name(&self) -> &'static str {
        if self.extreme == Extreme::Max { "argmax" } else { "argmin" }
    }

    fn variant(&self) -> u32 {
        self.yields as u32
    }

    fn accumulators(&self, index: Scalar) -> SmallVec<[Scalar; 3]> {
        smallvec![compute(self.dtype), index]
    }

    fn identity<'b>(&self, s: &Scope<'b>) -> Values<'b> {
        smallvec![self.extreme.worst(s.b, self.dtype), s.b.int(s.index, u64::MAX)]
    }

    fn map<'b>(&self, _: &Scope<'b>, elements: &[Value<'b>], at: Value<'b>) -> Values<'b> {
        smallvec![elements[0].cast(compute(self.dtype)), at]
    }

    fn combine<'b>(&self, _: &Scope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        let equal = x[0].eq(y[0]) | (x[0].is_nan() & y[0].is_nan());
        let first = self.extreme.beats(x[0], y[0]) | (equal & x[1].lt(y[1]));
        smallvec![first.select(x[0], y[0]), first.select(x[1], y[1])]
    }

    fn finish<'b>(&self, _: &Scope<'b>, x: &[Value<'b>]) -> Values<'b> {
        let index = x[1].cast(Scalar::I64);
        match self.yields {
            Yields::Index => smallvec![index],
            Yields::ValueAndIndex => smallvec![x[0], index],
        }
    }

    fn ordered(&self) -> bool {
        true
    }
}

fn run(call: &Call, fold: &impl Fold, input: &Tensor, outs: &[&Tensor], axes: Axes) -> Result<()> {
    reduce(call, fold, &Reduction { inputs: &[input], outs, axes, tables: &[], numbers: &[] })
}

/// There must be something to choose from in every reduced dimension.
fn check_not_empty(name: &str, input: &Tensor, axes: Axes) -> Result<()> {
    if input.numel() != 0 {
        return Ok(());
    }
    for (d, &n) in input.sizes.iter().enumerate() {
        check!(n != 0 || !axes.reduces(d), Index, "{name}(): Expected reduction dim {d} to have non-zero size.");
    }
    Ok(())
}

fn check_same_dtype(call: &Call, out: Option<usize>, dtype: DType) -> Result<()> {
    if let Some(i) = out {
        let given = call.tensor(i)?.dtype;
        check!(
            given == dtype,
            Runtime,
            "Expected the dtype for input and out to match, but got {dtype} for input's dtype and {given} for \
             out's dtype."
        );
    }
    Ok(())
}

/// `amax(self, dim, keepdim[, out])`
fn over_dims(call: &mut Call, extreme: Extreme, out: Option<usize>) -> Result<()> {
    let input = call.tensor(0)?;
    let name = if extreme == Extreme::Max { "amax" } else { "amin" };
    let dims = call.ints(1)?;
    check_same_dtype(call, out, input.dtype)?;
    let axes = Axes::of(call, Some(dims), input.dim(), call.flag(2)?)?;
    check!(
        input.numel() > 0 || !dims.is_empty(),
        Runtime,
        "{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the \
         'dim' argument."
    );
    check_not_empty(name, input, axes)?;
    let out = call.out(out, input.dtype, &axes.sizes(&input.sizes))?;
    run(call, &Single { extreme, dtype: input.dtype }, input, &[&out], axes)?;
    call.ret(out);
    Ok(())
}

/// `max(self[, out])`
fn of_all(call: &mut Call, extreme: Extreme, out: Option<usize>) -> Result<()> {
    let input = call.tensor(0)?;
    let name = if extreme == Extreme::Max { "max" } else { "min" };
    check!(
        input.numel() > 0,
        Runtime,
        "{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the \
         'dim' argument."
    );
    let out = call.out(out, input.dtype, &[])?;
    run(call, &Single { extreme, dtype: input.dtype }, input, &[&out], Axes::all(false))?;
    call.ret(out);
    Ok(())
}

/// `aminmax(self, dim?, keepdim[, min, max])`
fn aminmax(call: &mut Call, outs: [Option<usize>; 2]) -> Result<()> {
    let keep = call.flag(2)?;
    let dim = call.opt_scalar(1)?.map(Number::to_i64);
    let axes = match dim {
        Some(d) => Axes::listed(call, &[d], call.tensor(0)?.dim(), keep)?,
        None => Axes::all(keep),
    };
    aminmax_of(call, dim, axes, outs)
}

fn aminmax_of(call: &mut Call, dim: Option<i64>, axes: Axes, outs: [Option<usize>; 2]) -> Result<()> {
    let input = call.tensor(0)?;
    check!(
        dim.is_some() || input.numel() > 0,
        Runtime,
        "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
    );
    check_not_empty("aminmax", input, axes)?;
    let sizes = axes.sizes(&input.sizes);
    let min = structured::out(call, outs[0], input.dtype, &sizes)?;
    let max = structured::out(call, outs[1], input.dtype, &sizes)?;
    both(call, input, [&min, &max], axes)?;
    call.ret(min);
    call.ret(max);
    Ok(())
}

/// `max.dim(self, dim, keepdim[, values, indices])`
fn with_indices(call: &mut Call, extreme: Extreme, outs: [Option<usize>; 2]) -> Result<()> {
    let input = call.tensor(0)?;
    let name = if extreme == Extreme::Max { "max" } else { "min" };
    let axes = Axes::listed(call, &[call.int(1)?], input.dim(), call.flag(2)?)?;
    check_not_empty(name, input, axes)?;
    let sizes = axes.sizes(&input.sizes);
    let values = structured::out(call, outs[0], input.dtype, &sizes)?;
    let indices = structured::out(call, outs[1], DType::I64, &sizes)?;
    let fold = Positioned { extreme, dtype: input.dtype, yields: Yields::ValueAndIndex };
    run(call, &fold, input, &[&values, &indices], axes)?;
    call.ret(values);
    call.ret(indices);
    Ok(())
}

/// `argmax(self, dim?, keepdim[, out])`
fn arg(call: &mut Call, extreme: Extreme, out: Option<usize>) -> Result<()> {
    let input = call.tensor(0)?;
    let name = if extreme == Extreme::Max { "argmax" } else { "argmin" };
    let dim = call.opt_scalar(1)?.map(Number::to_i64);
    let keep = call.flag(2)?;
    let axes = Axes::of(call, Some(dim.as_slice()), input.dim(), keep)?;
    check!(
        input.numel() > 0 || dim.is_some(),
        Index,
        "{name}(): Expected reduction dim to be specified for input.numel() == 0."
    );
    check_not_empty(name, input, axes)?;
    let out = structured::out(call, out, DType::I64, &axes.sizes(&input.sizes))?;
    run(call, &Positioned { extreme, dtype: input.dtype, yields: Yields::Index }, input, &[&out], axes)?;
    call.ret(out);
    Ok(())
}

/// Writes the smallest and the largest element.
pub fn both(call: &Call, input: &Tensor, outs: [&Tensor; 2], axes: Axes) -> Result<()> {
    run(call, &Both { dtype: input.dtype }, input, &outs, axes)
}

/// Writes the position of the largest element, the first of equals.
pub fn first_largest(call: &Call, input: &Tensor, out: &Tensor, axes: Axes) -> Result<()> {
    run(call, &Positioned { extreme: Extreme::Max, dtype: input.dtype, yields: Yields::Index }, input, &[out], axes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduction::kernel::validate;

    #[test]
    fn kernels_are_valid() {
        for extreme in [Extreme::Max, Extreme::Min] {
            for dtype in [DType::F32, DType::F64, DType::I64, DType::U8, DType::Bool] {
                validate(&Single { extreme, dtype }, &[dtype], &[dtype], &[]);
                validate(
                    &Positioned { extreme, dtype, yields: Yields::ValueAndIndex },
                    &[dtype],
                    &[dtype, DType::I64],
                    &[],
                );
            }
        }
        validate(&Both { dtype: DType::F16 }, &[DType::F16], &[DType::F16; 2], &[]);
    }
}
