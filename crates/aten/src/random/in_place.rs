//! Operators that fill a tensor with samples of a distribution whose parameters are scalars.

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured::type_name;
use crate::random::fill::{self, fill};
use crate::{check, operators};
use dml_compute::random::Generator;
use dml_compute::random::fill::Sample;
use dml_compute::random::in_place::exact_integer_bound;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;
use dml_kernel::DType;
use smallvec::SmallVec;

operators! {
    uniform(self, from, to, generator).complex(Complex::Run(complex::creation::uniform)) {
        "aten::uniform_(Tensor(a!) self, float from=0., float to=1., *, Generator? generator=None) -> Tensor(a!)",
    }
    normal(self, mean, std, generator).complex(Complex::OfReals(complex::creation::normal)) {
        "aten::normal_(Tensor(a!) self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor(a!)",
    }
    exponential(self, lambd, generator) {
        "aten::exponential_(Tensor(a!) self, float lambd=1., *, Generator? generator=None) -> Tensor(a!)",
    }
    log_normal(self, mean, std, generator) {
        "aten::log_normal_(Tensor(a!) self, float mean=1., float std=2., *, Generator? generator=None) -> Tensor(a!)",
    }
    cauchy(self, median, sigma, generator) {
        "aten::cauchy_(Tensor(a!) self, float median=0., float sigma=1., *, Generator? generator=None) -> Tensor(a!)",
    }
    geometric(self, p, generator) {
        "aten::geometric_(Tensor(a!) self, float p, *, Generator? generator=None) -> Tensor(a!)",
    }
    bernoulli(self, p, generator) {
        "aten::bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)",
    }
    random(self, generator) {
        "aten::random_(Tensor(a!) self, *, Generator? generator=None) -> Tensor(a!)",
    }
    random_from(self, from = 0, to, generator) {
        "aten::random_.to(Tensor(a!) self, int to, *, Generator? generator=None) -> Tensor(a!)",
        "aten::random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> Tensor(a!)",
    }
}

/// Checks that a tensor is floating point.
pub fn check_float(call: &Call, t: &View) -> Result<()> {
    check!(
        t.dtype.is_float(),
        NotImplemented,
        "\"{}\" not implemented for '{}'",
        call.name.trim_start_matches("aten::"),
        t.dtype
    );
    Ok(())
}

/// Checks that a tensor's dtype can hold samples of a continuous distribution.
fn check_continuous(out: &View, name: &str) -> Result<()> {
    check!(
        out.dtype.is_float(),
        Runtime,
        "{name} distribution is a continuous probability distribution. dtype must be a floating point but you \
         specified {}",
        type_name(out.dtype)
    );
    Ok(())
}

/// Samples in [from, to).
fn uniform(call: &mut Call, out: &View, from: f64, to: f64, generator: Option<Generator>) -> Result<()> {
    check_float(call, out)?;
    check!(from <= to, Runtime, "uniform_ expects to return a [from, to) range, but found from={from} > to={to}");
    fill::uniform(call, generator.as_ref(), out, from, to)?;
    call.ret(out.clone());
    Ok(())
}

/// Checks a standard deviation.
pub fn check_std(std: f64) -> Result<()> {
    check!(std >= 0.0, Runtime, "normal expects std >= 0.0, but found std {std}");
    Ok(())
}

fn normal(call: &mut Call, out: &View, mean: f64, std: f64, generator: Option<Generator>) -> Result<()> {
    if out.numel() > 0 {
        check_float(call, out)?;
    }
    check_std(std)?;
    sample(call, out, generator, Sample::Normal, &[mean, std])
}

fn log_normal(call: &mut Call, out: &View, mean: f64, std: f64, generator: Option<Generator>) -> Result<()> {
    if out.numel() > 0 {
        check_float(call, out)?;
    }
    check!(std > 0.0, Runtime, "log_normal_ expects std > 0.0, but found std={std}");
    sample(call, out, generator, Sample::LogNormal, &[mean, std])
}

fn cauchy(call: &mut Call, out: &View, median: f64, sigma: f64, generator: Option<Generator>) -> Result<()> {
    check!(sigma > 0.0, Runtime, "cauchy_ expects sigma > 0.0, but found sigma={sigma}");
    check_continuous(out, "Cauchy")?;
    sample(call, out, generator, Sample::Cauchy, &[median, sigma])
}

/// The number of trials until the first success.
fn geometric(call: &mut Call, out: &View, p: f64, generator: Option<Generator>) -> Result<()> {
    check!(p > 0.0 && p < 1.0, Runtime, "geometric_ expects p to be in (0, 1), but got p={p}");
    let takes = out.dtype != DType::Bool || out.numel() == 0;
    check!(takes, NotImplemented, "\"geometric_\" not implemented for 'Bool'");
    sample(call, out, generator, Sample::Geometric, &[(-p).ln_1p()])
}

fn exponential(call: &mut Call, out: &View, lambda: f64, generator: Option<Generator>) -> Result<()> {
    check!(lambda > 0.0, Runtime, "exponential_ expects lambda > 0.0, but found lambda={lambda}");
    if out.numel() > 0 {
        check_continuous(out, "Exponential")?;
    }
    sample(call, out, generator, Sample::Exponential, &[lambda])
}

/// Fills `out`, and returns it.
fn sample(call: &mut Call, out: &View, generator: Option<Generator>, sample: Sample, numbers: &[f64]) -> Result<()> {
    let numbers: SmallVec<[Number; 2]> = numbers.iter().map(|&x| Number::Double(x)).collect();
    fill(call, generator.as_ref(), sample, out, &numbers)?;
    call.ret(out.clone());
    Ok(())
}

fn bernoulli(call: &mut Call, out: &View, p: f64, generator: Option<Generator>) -> Result<()> {
    fill::bernoulli(call, generator.as_ref(), out, p)?;
    call.ret(out.clone());
    Ok(())
}

/// Checks that both ends of a range are in the range of an integer dtype.
fn check_bounds(dtype: DType, first: i64, last: i64) -> Result<()> {
    let bits = 8 * dtype.bytes() as u32;
    let (low, high) = match dtype {
        DType::Bool => (0, 1),
        d if d.is_float() || bits == 64 => return Ok(()),
        d if d.is_signed_integer() => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        _ => (0, (1 << bits) - 1),
    };
    for (name, x) in [("from", first), ("to - 1", last)] {
        check!((low..=high).contains(&x), Runtime, "{name} is out of bounds for {dtype}");
    }
    Ok(())
}

fn random(call: &mut Call, out: &View, generator: Option<Generator>) -> Result<()> {
    integers(call, out, 0, exact_integer_bound(out.dtype), generator)
}

/// Integers in [from, to).
fn random_from(call: &mut Call, out: &View, from: i64, to: Option<i64>, generator: Option<Generator>) -> Result<()> {
    let to = to.unwrap_or_else(|| exact_integer_bound(out.dtype));
    check!(from < to, Runtime, "random_ expects 'from' to be less than 'to', but got from={from} >= to={to}");
    integers(call, out, from, to, generator)
}

fn integers(call: &mut Call, out: &View, from: i64, to: i64, generator: Option<Generator>) -> Result<()> {
    check_bounds(out.dtype, from, to - 1)?;
    let range = to.wrapping_sub(from) as u64;
    let narrow = range < 1 << 32 && from.abs() < 1 << 31 && to.abs() < 1 << 31;
    let sample = if narrow { Sample::Integers } else { Sample::WideIntegers };
    fill(call, generator.as_ref(), sample, out, &[Number::Int(from), Number::Int(range as i64)])?;
    call.ret(out.clone());
    Ok(())
}
