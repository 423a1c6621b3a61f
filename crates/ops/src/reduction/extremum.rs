//! Largest and smallest elements, and where they are. NaN counts as larger and smaller than every number; of equal
//! elements the first one wins.

use super::axes::Axes;
use super::fold::{Fold, Reduction, Scope, Values};
use super::reduce::reduce;
use crate::operator::argument::{Out, Outs};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::tensor::{Tensor, overlap};
use crate::{check, operators};
use dml_kernel::math::comparison::{equal, less};
use dml_kernel::{Builder, DType, ScalarType, Value};
use smallvec::{SmallVec, smallvec};

operators! {
    over_dims(self, dim, keepdim, out; Extreme::Max) {
        "aten::amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
        "aten::amax.out(Tensor self, int[1] dim=[], bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
    }
    over_dims(self, dim, keepdim, out; Extreme::Min) {
        "aten::amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
        "aten::amin.out(Tensor self, int[1] dim=[], bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
    }
    aminmax(self, dim = None, keepdim = false, outs) {
        "aten::aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
        "aten::aminmax.out(Tensor self, *, int? dim=None, bool keepdim=False, Tensor(a!) min, Tensor(b!) max) -> (Tensor(a!) min, Tensor(b!) max)",
        "aten::_aminmax(Tensor self) -> (Tensor, Tensor)",
        "aten::_aminmax.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)",
    }
    of_all(self, out; Extreme::Max) {
        "aten::max(Tensor self) -> Tensor",
        "aten::max.unary_out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    with_indices(self, dim, keepdim, outs; Extreme::Max) {
        "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        "aten::max.dim_max(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) max, Tensor(b!) max_values) -> (Tensor(a!) values, Tensor(b!) indices)",
    }
    arg(self, dim, keepdim, out; Extreme::Max) {
        "aten::argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
        "aten::argmax.out(Tensor self, int? dim=None, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
    }
    of_all(self, out; Extreme::Min) {
        "aten::min(Tensor self) -> Tensor",
        "aten::min.unary_out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    with_indices(self, dim, keepdim, outs; Extreme::Min) {
        "aten::min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        "aten::min.dim_min(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) min, Tensor(b!) min_indices) -> (Tensor(a!) values, Tensor(b!) indices)",
    }
    arg(self, dim, keepdim, out; Extreme::Min) {
        "aten::argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
        "aten::argmin.out(Tensor self, int? dim=None, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
enum Extreme {
    Max,
    Min,
}

impl Extreme {
    /// Whether `x` comes before `y`; false when equal.
    fn beats<'b>(self, x: Value<'b>, y: Value<'b>) -> Value<'b> {
        let better = match self {
            Extreme::Max => less(y, x),
            Extreme::Min => less(x, y),
        };
        if x.scalar().is_float() { better | (x.is_nan() & !y.is_nan()) } else { better }
    }

    /// Of equal ones, which zeros of both signs are, the first.
    fn pick<'b>(self, x: Value<'b>, y: Value<'b>) -> Value<'b> {
        self.beats(y, x).select(y, x)
    }

    /// The value that every other beats or equals.
    fn worst(self, b: &Builder, dtype: DType) -> Value<'_> {
        let scalar = compute(dtype);
        let max = self == Extreme::Max;
        // Without elements it is the result, and must fit.
        let bits = 8 * dtype.bytes() as u32;
        match scalar {
            s if s.is_float() => b.float(s, if max { f64::NEG_INFINITY } else { f64::INFINITY }),
            ScalarType::I32 if !dtype.is_signed_integer() => b.i32(if max { 0 } else { i32::MAX >> (31 - bits) }),
            ScalarType::I32 => b.i32(if max { i32::MIN >> (32 - bits) } else { i32::MAX >> (32 - bits) }),
            ScalarType::U32 if dtype == DType::Bool => b.u32(u32::from(!max)),
            ScalarType::I64 => b.int(scalar, if max { i64::MIN } else { i64::MAX } as u64),
            s => b.int(s, if max { 0 } else { u64::MAX }),
        }
    }
}

/// The type in which elements are compared; flags as numbers.
fn compute(dtype: DType) -> ScalarType {
    if dtype == DType::Bool { ScalarType::U32 } else { dtype.compute() }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Single {
    extreme: Extreme,
    dtype: DType,
}

impl Fold for Single {
    fn name(&self) -> &'static str {
        if self.extreme == Extreme::Max { "amax" } else { "amin" }
    }

    fn accumulators(&self, _: ScalarType) -> SmallVec<[ScalarType; 3]> {
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

    fn project<'b>(&self, _: &Scope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0]]
    }
}

/// Smallest and largest in one pass.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Both {
    dtype: DType,
}

impl Fold for Both {
    fn name(&self) -> &'static str {
        "aminmax"
    }

    fn accumulators(&self, _: ScalarType) -> SmallVec<[ScalarType; 3]> {
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

    fn project<'b>(&self, _: &Scope<'b>, x: &[Value<'b>]) -> Values<'b> {
        Values::from_slice(x)
    }
}

/// What a position's fold yields.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
enum Yields {
    Index,
    ValueAndIndex,
}

/// The element and its position.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Positioned {
    extreme: Extreme,
    dtype: DType,
    yields: Yields,
}

impl Fold for Positioned {
    fn name(&self) -> &'static str {
        if self.extreme == Extreme::Max { "argmax" } else { "argmin" }
    }

    fn accumulators(&self, index: ScalarType) -> SmallVec<[ScalarType; 3]> {
        smallvec![compute(self.dtype), index]
    }

    fn identity<'b>(&self, s: &Scope<'b>) -> Values<'b> {
        smallvec![self.extreme.worst(s.b, self.dtype), s.b.int(s.index, u64::MAX)]
    }

    fn map<'b>(&self, _: &Scope<'b>, elements: &[Value<'b>], at: Value<'b>) -> Values<'b> {
        smallvec![elements[0].cast(compute(self.dtype)), at]
    }

    fn combine<'b>(&self, _: &Scope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        let same = equal(x[0], y[0]) | (x[0].is_nan() & y[0].is_nan());
        let first = self.extreme.beats(x[0], y[0]) | (same & x[1].lt(y[1]));
        smallvec![first.select(x[0], y[0]), first.select(x[1], y[1])]
    }

    fn project<'b>(&self, _: &Scope<'b>, x: &[Value<'b>]) -> Values<'b> {
        let index = x[1].cast(ScalarType::I64);
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

fn check_same_dtype(out: Out, dtype: DType) -> Result<()> {
    if let Some(given) = out.given() {
        check!(
            given.dtype == dtype,
            Runtime,
            "Expected the dtype for input and out to match, but got {dtype} for input's dtype and {} for out's dtype.",
            given.dtype
        );
    }
    Ok(())
}

fn over_dims(call: &mut Call, input: &Tensor, dims: &[i64], keep: bool, out: Out, extreme: Extreme) -> Result<()> {
    let name = if extreme == Extreme::Max { "amax" } else { "amin" };
    check_same_dtype(out, input.dtype)?;
    let axes = Axes::of(call, Some(dims), input.dim(), keep)?;
    check!(
        input.numel() > 0 || !dims.is_empty(),
        Runtime,
        "{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the \
         'dim' argument."
    );
    check_not_empty(name, input, axes)?;
    let out = call.result(out.given(), input.dtype, &axes.sizes(&input.sizes))?;
    run(call, &Single { extreme, dtype: input.dtype }, input, &[&out], axes)?;
    call.ret(out);
    Ok(())
}

fn of_all(call: &mut Call, input: &Tensor, out: Out, extreme: Extreme) -> Result<()> {
    let name = if extreme == Extreme::Max { "max" } else { "min" };
    check!(
        input.numel() > 0 || out.given().is_some(),
        Runtime,
        "{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the \
         'dim' argument."
    );
    let out = call.result(out.given(), input.dtype, &[])?;
    run(call, &Single { extreme, dtype: input.dtype }, input, &[&out], Axes::all(false))?;
    call.ret(out);
    Ok(())
}

fn aminmax(call: &mut Call, input: &Tensor, dim: Option<i64>, keep: bool, outs: Outs) -> Result<()> {
    let axes = Axes::of(call, Some(dim.as_slice()), input.dim(), keep)?;
    check!(
        dim.is_some() || input.numel() > 0,
        Runtime,
        "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
    );
    check_not_empty("aminmax", input, axes)?;
    let sizes = axes.sizes(&input.sizes);
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    let min = structured::result(call, given(0), input.dtype, &sizes)?;
    let max = structured::result(call, given(1), input.dtype, &sizes)?;
    check!(!overlap::touches(&min, &max), Value, "aminmax(): the `min` and `max` out= tensors must not overlap.");
    [&min, &max].into_iter().try_for_each(|out| overlap::check_none(out, &[input]))?;
    both(call, input, [&min, &max], axes)?;
    call.ret(min);
    call.ret(max);
    Ok(())
}

fn with_indices(call: &mut Call, input: &Tensor, dim: i64, keep: bool, outs: Outs, extreme: Extreme) -> Result<()> {
    let name = if extreme == Extreme::Max { "max" } else { "min" };
    let axes = Axes::listed(call, &[dim], input.dim(), keep)?;
    check_not_empty(name, input, axes)?;
    let sizes = axes.sizes(&input.sizes);
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    let values = structured::result(call, given(0), input.dtype, &sizes)?;
    let indices = structured::result(call, given(1), DType::I64, &sizes)?;
    [&values, &indices].into_iter().try_for_each(|out| overlap::check_none(out, &[input]))?;
    let fold = Positioned { extreme, dtype: input.dtype, yields: Yields::ValueAndIndex };
    run(call, &fold, input, &[&values, &indices], axes)?;
    call.ret(values);
    call.ret(indices);
    Ok(())
}

fn arg(call: &mut Call, input: &Tensor, dim: Option<i64>, keep: bool, out: Out, extreme: Extreme) -> Result<()> {
    let name = if extreme == Extreme::Max { "argmax" } else { "argmin" };
    let axes = Axes::of(call, Some(dim.as_slice()), input.dim(), keep)?;
    check!(
        input.numel() > 0 || dim.is_some(),
        Index,
        "{name}(): Expected reduction dim to be specified for input.numel() == 0."
    );
    check_not_empty(name, input, axes)?;
    check!(input.dtype != DType::Bool, Dtype, "{name}(): does not support bool input");
    let out = structured::result(call, out.given(), DType::I64, &axes.sizes(&input.sizes))?;
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
