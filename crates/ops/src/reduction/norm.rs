//! Vector norms.

use super::sum::accumulator_dtype;
use super::{Axes, Fold, Reduction, Scope, Values, reduce};
use crate::check;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::structured;
use crate::operator::{Operator, op};
use crate::tensor::Tensor;
use dml_kernel::{Builder, DType, Scalar, Value, convert, math};
use smallvec::{SmallVec, smallvec};

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::linalg_vector_norm", |c| vector_norm(c, None)),
    op("aten::linalg_vector_norm.out", |c| vector_norm(c, Some(5))),
    op("aten::norm.ScalarOpt_dim", |c| norm(c, None, None)),
    op("aten::norm.out", |c| norm(c, None, Some(4))),
    op("aten::norm.ScalarOpt_dim_dtype", |c| norm(c, Some(4), None)),
    op("aten::norm.dtype_out", |c| norm(c, Some(4), Some(5))),
];

/// The order of a norm.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Order {
    /// Elements that are not 0.
    Count,
    /// Sum of magnitudes.
    One,
    /// Root of the sum of squares.
    Two,
    /// Largest magnitude.
    Largest,
    /// Smallest magnitude.
    Smallest,
    /// `(sum |x|^p)^(1/p)`
    General,
}

impl Order {
    /// The order `p`.
    pub fn of(p: f64) -> Order {
        match p {
            0.0 => Order::Count,
            1.0 => Order::One,
            2.0 => Order::Two,
            f64::INFINITY => Order::Largest,
            f64::NEG_INFINITY => Order::Smallest,
            _ => Order::General,
        }
    }

    /// What joins with anything without changing it.
    pub fn identity(self, b: &Builder, scalar: Scalar) -> Value<'_> {
        b.float(scalar, if self == Order::Smallest { f64::INFINITY } else { 0.0 })
    }

    /// What an element contributes; `p` is used for [`Order::General`] alone.
    pub fn term<'b>(self, x: Value<'b>, p: Value<'b>) -> Value<'b> {
        match self {
            Order::Count => x.cast(Scalar::Bool).cast(x.scalar()),
            Order::Two => x * x,
            Order::General => math::pow(x.abs(), p),
            _ => x.abs(),
        }
    }

    /// Two contributions in one.
    pub fn join<'b>(self, x: Value<'b>, y: Value<'b>) -> Value<'b> {
        match self {
            Order::Largest => (x.gt(y) | x.is_nan()).select(x, y),
            Order::Smallest => (x.lt(y) | x.is_nan()).select(x, y),
            _ => x + y,
        }
    }

    /// The norm, given all contributions.
    pub fn finish<'b>(self, x: Value<'b>, p: Value<'b>) -> Value<'b> {
        match self {
            Order::Two => math::sqrt(x),
            Order::General => math::pow(x, 1.0 / p),
            _ => x,
        }
    }
}

struct Norm {
    order: Order,
    input: DType,
    dtype: DType,
}

impl Norm {
    fn scalar(&self) -> Scalar {
        accumulator_dtype(self.dtype).compute()
    }

    /// The number p, where it is passed.
    fn power<'b>(&self, s: &Scope<'b>, like: Value<'b>) -> Value<'b> {
        s.numbers.first().copied().unwrap_or(like)
    }
}

impl Fold for Norm {
    fn name(&self) -> &'static str {
        "vector_norm"
    }

    fn variant(&self) -> u32 {
        self.order as u32 | (self.dtype as u32) << 8
    }

    fn accumulators(&self, _: Scalar) -> SmallVec<[Scalar; 3]> {
        smallvec![self.scalar()]
    }

    fn identity<'b>(&self, s: &Scope<'b>) -> Values<'b> {
        smallvec![self.order.identity(s.b, self.scalar())]
    }

    fn map<'b>(&self, s: &Scope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        let x = elements[0];
        let x = if self.dtype == self.input { x } else { convert(x, self.dtype) };
        let x = x.cast(self.scalar());
        smallvec![self.order.term(x, self.power(s, x))]
    }

    fn combine<'b>(&self, _: &Scope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![self.order.join(x[0], y[0])]
    }

    fn finish<'b>(&self, s: &Scope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![self.order.finish(x[0], self.power(s, x[0]))]
    }
}

/// `linalg_vector_norm(self, ord, dim?, keepdim, dtype?[, out])`
fn vector_norm(call: &mut Call, out: Option<usize>) -> Result<()> {
    let axes = Axes::of(call, call.opt_ints(2)?, call.tensor(0)?.dim(), call.flag(3)?)?;
    let (p, dtype) = (call.double(1)?, call.opt_dtype(4)?);
    run(call, "linalg.vector_norm", p, axes, dtype, out)
}

/// `norm(self, p?, dim, keepdim[, dtype][, out])`
fn norm(call: &mut Call, dtype: Option<usize>, out: Option<usize>) -> Result<()> {
    let axes = Axes::of(call, Some(call.ints(2)?), call.tensor(0)?.dim(), call.flag(3)?)?;
    let p = call.opt_scalar(1)?.map_or(2.0, Number::to_f64);
    let dtype = match dtype {
        Some(i) => call.opt_dtype(i)?,
        None => None,
    };
    run(call, "norm", p, axes, dtype, out)
}

fn run(call: &mut Call, name: &str, p: f64, axes: Axes, dtype: Option<DType>, out: Option<usize>) -> Result<()> {
    let input = call.tensor(0)?;
    let dtype = dtype.unwrap_or(input.dtype);
    check!(
        input.dtype.is_float() && dtype.is_float(),
        Dtype,
        "{name}: Expected a floating point or complex tensor as input. Got {}",
        if input.dtype.is_float() { dtype } else { input.dtype }
    );
    if p < 0.0 || p == f64::INFINITY {
        for (d, &n) in input.sizes.iter().enumerate() {
            check!(
                n != 0 || !axes.reduces(d),
                Runtime,
                "{name} cannot compute the {p} norm on an empty tensor because the operation does not have an identity"
            );
        }
    }
    let out = structured::out(call, out, dtype, &axes.sizes(&input.sizes))?;
    norms(call, p, input, &out, axes)?;
    call.ret(out);
    Ok(())
}

/// Norms of order `p` over some dimensions of a float tensor.
pub fn norms(call: &Call, p: f64, input: &Tensor, out: &Tensor, axes: Axes) -> Result<()> {
    let order = Order::of(p);
    let fold = Norm { order, input: input.dtype, dtype: out.dtype };
    let power = [(accumulator_dtype(out.dtype), Number::Double(p))];
    let numbers = if order == Order::General { &power[..] } else { &[] };
    reduce(call, &fold, &Reduction { inputs: &[input], outs: &[out], axes, tables: &[], numbers })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduction::kernel::validate;

    #[test]
    fn kernels_are_valid() {
        for p in [0.0, 1.0, 2.0, 3.5, f64::INFINITY, f64::NEG_INFINITY] {
            let fold = Norm { order: Order::of(p), input: DType::F32, dtype: DType::F32 };
            validate(&fold, &[DType::F32], &[DType::F32], &[DType::F32]);
        }
    }
}
