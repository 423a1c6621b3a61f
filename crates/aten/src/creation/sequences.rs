//! Evenly spaced numbers, and their powers: arange, linspace, logspace.

use crate::movement::copies::checked_copy;
use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::conversion::{check_all_fit, check_fits};
use crate::operator::error::Result;
use crate::tensor::overlap;
use crate::{check, operators};
use dml_compute::creation::sequences::{self, Sequence, as_row};
use dml_compute::movement::copy::fill_with;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    arange(start, end, step, out).complex(Complex::Run(complex::creation::of_reals)) {
        hot "aten::arange.start_out(Scalar start, Scalar end, Scalar step=1, *, Tensor(a!) out) -> Tensor(a!)",
    }
    range(start, end, step, out).complex(Complex::Run(complex::creation::of_reals)) {
        "aten::range.out(Scalar start, Scalar end, Scalar step=1, *, Tensor(a!) out) -> Tensor(a!)",
    }
    range_step_one(start, end, out).complex(Complex::Run(complex::creation::of_reals)) {
        "aten::range.out_(Scalar start, Scalar end, *, Tensor(a!) out) -> Tensor(a!)",
    }
    linspace(start, end, steps, out).complex(Complex::Run(complex::created_by_parts)) {
        "aten::linspace.out(Scalar start, Scalar end, int steps, *, Tensor(a!) out) -> Tensor(a!)",
    }
    logspace(start, end, steps, base, out).complex(Complex::Run(complex::creation::logspace)) {
        "aten::logspace.out(Scalar start, Scalar end, int steps, float base=10., *, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// Fills a tensor of any shape, in row-major order, and returns it.
fn fill(call: &mut Call, sequence: Sequence, out: View, numbers: &[Number]) -> Result<()> {
    let row = as_row(call, &out)?;
    if row.numel() > 0 {
        sequences::write(call, sequence, numbers, &row)?;
    }
    if row.data != out.data {
        let shaped = row.as_strided(&out.sizes, &View::contiguous_strides(&out.sizes), 0);
        checked_copy(call, &shaped, &out)?;
    }
    call.ret(out);
    Ok(())
}

/// Returns the result for `size` elements. A given result with as many elements keeps its shape.
fn target(call: &Call, out: Out, size: i64, name: &str) -> Result<View> {
    let mut out = out.tensor()?.clone();
    // For up to one element the CPU has no such error.
    let range = size > 1 || !name.ends_with("space");
    check!(out.dtype != DType::Bool || !range, NotImplemented, "\"{name}_cpu\" not implemented for 'Bool'");
    if out.numel() != size {
        call.host.resize(&mut out, &[size], &[1])?;
    }
    overlap::check_internal(&out)?;
    Ok(out)
}

/// Checks the bounds of a range.
fn check_range(start: f64, end: f64, step: f64) -> Result<()> {
    check!(step != 0.0, Runtime, "step must be nonzero");
    check!(start.is_finite() && end.is_finite(), Runtime, "unsupported range: {start} -> {end}");
    check!(
        (step > 0.0 && end >= start) || (step < 0.0 && end <= start),
        Runtime,
        "upper bound and lower bound inconsistent with step sign"
    );
    Ok(())
}

pub fn arange(call: &mut Call, start: Number, end: Number, step: Number, out: Out) -> Result<()> {
    check_range(start.to_f64(), end.to_f64(), step.to_f64())?;
    // Computed before anything is truncated, as on the CPU from torch 2.15 (before, int64 ranges
    // were truncated first).
    let integers = [start, end, step].iter().all(|x| matches!(x, Number::Int(_) | Number::Bool(_)));
    let size = if integers {
        let (s, e, d) = (start.to_i64(), end.to_i64(), step.to_i64());
        (e - s + d - d.signum()) / d
    } else {
        ((end.to_f64() - start.to_f64()) / step.to_f64()).ceil() as i64
    };
    let out = target(call, out, size, "arange")?;
    fill(call, Sequence::Arange, out, &[start, step])
}

/// As arange, including the end.
fn range(call: &mut Call, start: Number, end: Number, step: Number, out: Out) -> Result<()> {
    let (s, e, d) = (start.to_f64(), end.to_f64(), step.to_f64());
    check_range(s, e, d)?;
    let out = target(call, out, ((e - s) / d + 1.0) as i64, "range")?;
    fill(call, Sequence::Arange, out, &[start, step])
}

/// PyTorch composes this overload, and calls the CPU's kernel.
fn range_step_one(call: &mut Call, start: Number, end: Number, out: Out) -> Result<()> {
    range(call, start, end, Number::Int(1), out)
}

pub fn linspace(call: &mut Call, start: Number, end: Number, steps: i64, out: Out) -> Result<()> {
    check!(steps >= 0, Runtime, "number of steps must be non-negative");
    let out = target(call, out, steps, "linspace")?;
    if !out.dtype.is_float() {
        check_all_fit(&[start, end], out.dtype)?;
        // A negative number wraps around in the dtype first.
        let wrapped = |x: Number| if out.dtype == DType::U8 { x.to_i64() & 0xff } else { x.to_i64() };
        let (start, end) = (wrapped(start), wrapped(end));
        let numbers = [start, end - start, (steps - 1).max(1)].map(Number::Int);
        return fill(call, Sequence::IntegerLinspace, out, &numbers);
    }
    let (start, end) = (start.to_f64(), end.to_f64());
    let step = if steps > 1 { (end - start) / (steps - 1) as f64 } else { 0.0 };
    let numbers = [start, end, step, (steps / 2) as f64, (steps - 1) as f64].map(Number::Double);
    fill(call, Sequence::Linspace, out, &numbers)
}

/// Powers of the base; the exponents are computed from both ends as in linspace.
fn logspace(call: &mut Call, mut start: f64, mut end: f64, steps: i64, base: f64, out: Out) -> Result<()> {
    check!(steps >= 0, Runtime, "number of steps must be non-negative");
    let out = target(call, out, steps, "logspace")?;
    if steps == 1 {
        // In doubles, as on the CPU; an integer dtype truncates exponents only if there are
        // several.
        let power = Number::Double(base.powf(start));
        check_fits(power, out.dtype)?;
        fill_with(call, &out, power)?;
        call.ret(out);
        return Ok(());
    }
    let mut step = (end - start) / (steps - 1) as f64;
    if !out.dtype.is_float() {
        (start, end) = (start.trunc(), end.trunc());
        step = f64::from((end - start) as f32 / (steps - 1) as f32);
    }
    let numbers = [start, end, step, (steps / 2) as f64, (steps - 1) as f64, base].map(Number::Double);
    fill(call, Sequence::Logspace, out, &numbers)
}
