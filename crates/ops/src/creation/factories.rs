//! Tensors made from numbers: ranges, identity, triangles.

use crate::check;
use crate::movement::copy::fill_with;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::overloads;
use crate::pointwise::elementwise::Out;
use crate::primitives::launch::{GROUP, linear_id};
use crate::tensor::layout::{self, Layout};
use crate::tensor::{Dims, Tensor};
use dml_kernel::{Builder, DType, Kernel, Scalar, Value, math};

/// This family's overloads.
pub const OPERATORS: &[&[Operator]] = &[
    &[
        op("aten::arange.start_out", arange),
        op("aten::range.out", range),
        op("aten::linspace.out", linspace),
        op("aten::logspace.out", logspace),
        op("aten::eye.out", |c| eye(c, 0, 1)),
        op("aten::eye.m_out", |c| eye(c, 1, 2)),
    ],
    &overloads!(|c: &mut Call, out| triangle(c, out, true), "aten::triu", "aten::triu_", "aten::triu.out" @ 2),
    &overloads!(|c: &mut Call, out| triangle(c, out, false), "aten::tril", "aten::tril_", "aten::tril.out" @ 2),
];

/// Fills `out` with a function of each element's row-major index.
fn fill_by_index(
    call: &Call,
    family: &'static str,
    out: &Tensor,
    numbers: &[Number],
    number_dtype: DType,
    body: impl for<'b> Fn(&'b Builder, Value<'b>, &[Value<'b>]) -> Value<'b>,
) -> Result<()> {
    let numel = out.numel();
    if numel == 0 {
        return Ok(());
    }
    let index = layout::index_type(numel);
    let strides = out.strides.first().copied().unwrap_or(1);
    let key = [out.dtype as u32, index.bytes(), numbers.len() as u32, number_dtype as u32, 0, 0];
    let kernel = call.kernel(family, key, || {
        let b = Builder::new(family, [GROUP, 1, 1]);
        let pointer = b.pointer("out", out.dtype);
        let numbers: Vec<Value> = (0..numbers.len()).map(|_| b.param("number", number_dtype.compute())).collect();
        let (n, stride) = (b.param("numel", index), b.param("stride", Scalar::U64));
        let i = linear_id(&b, index);
        b.if_(i.lt(n), || pointer.store(i.cast(Scalar::U64) * stride, body(&b, i, &numbers)));
        b.finish()
    })?;
    let mut launcher = call.launch(kernel).write(out);
    for &n in numbers {
        launcher = launcher.number(number_dtype, n);
    }
    launcher.index(index, numel).i64(strides).threads(numel as u64)
}

/// The type in which a range is computed.
fn range_dtype(dtype: DType) -> DType {
    match dtype {
        DType::F64 => DType::F64,
        d if d.is_float() => DType::F32,
        _ => DType::I64,
    }
}

/// `arange.start_out(start, end, step, out)`
fn arange(call: &mut Call) -> Result<()> {
    let (start, end, step) = (call.scalar(0)?, call.scalar(1)?, call.scalar(2)?);
    let out = call.tensor(3)?.clone();
    let value = |x: Number| if out.dtype.is_float() { x.to_f64() } else { x.to_i64() as f64 };
    let (s, e, d) = (value(start), value(end), value(step));
    check!(d != 0.0, Runtime, "step must be nonzero");
    check!(s.is_finite() && e.is_finite(), Runtime, "unsupported range: {s} -> {e}");
    check!(
        (d > 0.0 && e >= s) || (d < 0.0 && e <= s),
        Runtime,
        "upper bound and lower bound inconsistent with step sign"
    );
    // Counted before anything is truncated, as CPU does from torch 2.15 (int64 ranges were truncated first before).
    let integers = [start, end, step].iter().all(|x| matches!(x, Number::Int(_) | Number::Bool(_)));
    let size = if integers {
        let (s, e, d) = (start.to_i64(), end.to_i64(), step.to_i64());
        (e - s + d - d.signum()) / d
    } else {
        ((end.to_f64() - start.to_f64()) / step.to_f64()).ceil() as i64
    };
    fill_range(call, out, start, step, size)
}

/// `range.out(start, end, step, out)`: as arange, with the end
fn range(call: &mut Call) -> Result<()> {
    let (start, end, step) = (call.scalar(0)?, call.scalar(1)?, call.scalar(2)?);
    let (s, e, d) = (start.to_f64(), end.to_f64(), step.to_f64());
    check!(d != 0.0, Runtime, "step must be nonzero");
    check!(s.is_finite() && e.is_finite(), Runtime, "unsupported range: {s} -> {e}");
    check!(
        (d > 0.0 && e >= s) || (d < 0.0 && e <= s),
        Runtime,
        "upper bound and lower bound inconsistent with step sign"
    );
    let out = call.tensor(3)?.clone();
    fill_range(call, out, start, step, ((e - s) / d + 1.0) as i64)
}

/// Fills a tensor, resized to `size`, with `start`, `start + step`, ..
fn fill_range(call: &mut Call, mut out: Tensor, start: Number, step: Number, size: i64) -> Result<()> {
    if out.numel() != size {
        call.host.resize(&mut out, &[size], &[1])?;
    }
    let target = as_row(call, &out)?;
    fill_by_index(call, "arange", &target, &[start, step], range_dtype(out.dtype), |_, i, v| {
        v[0] + v[1] * i.cast(v[0].scalar())
    })?;
    finish_row(call, &target, &out)?;
    call.ret(out);
    Ok(())
}

/// `linspace.out(start, end, steps, out)`: from both ends, so that both are met exactly.
fn linspace(call: &mut Call) -> Result<()> {
    let (start, end, steps) = (call.double(0)?, call.double(1)?, call.int(2)?);
    check!(steps >= 0, Runtime, "number of steps must be non-negative");
    let mut out = call.tensor(3)?.clone();
    if out.numel() != steps {
        call.host.resize(&mut out, &[steps], &[1])?;
    }
    let step = if steps > 1 { (end - start) / (steps - 1) as f64 } else { 0.0 };
    let numbers = [start, end, step, (steps / 2) as f64, (steps - 1) as f64].map(Number::Double);
    let target = as_row(call, &out)?;
    if !out.dtype.is_float() {
        // The point on the line, exact and then truncated: a fraction in floats may fall short of an integer.
        let (start, end) = (call.scalar(0)?.to_i64(), call.scalar(1)?.to_i64());
        let numbers = [start, end - start, (steps - 1).max(1)].map(Number::Int);
        fill_by_index(call, "linspace_integer", &target, &numbers, DType::I64, |_, i, v| {
            (v[0] * v[2] + v[1] * i.cast(Scalar::I64)) / v[2]
        })?;
        finish_row(call, &target, &out)?;
        call.ret(out);
        return Ok(());
    }
    let dtype = if out.dtype == DType::F64 { DType::F64 } else { DType::F32 };
    fill_by_index(call, "linspace", &target, &numbers, dtype, |_, i, v| {
        let x = i.cast(v[0].scalar());
        x.lt(v[3]).select(v[0] + v[2] * x, v[4].eq(0).select(v[0], v[1] - v[2] * (v[4] - x)))
    })?;
    finish_row(call, &target, &out)?;
    call.ret(out);
    Ok(())
}

/// `logspace.out(start, end, steps, base, out)`: powers of the base, their exponents from both ends as in linspace
fn logspace(call: &mut Call) -> Result<()> {
    let (mut start, mut end, steps) = (call.double(0)?, call.double(1)?, call.int(2)?);
    let base = call.double(3)?;
    check!(steps >= 0, Runtime, "number of steps must be non-negative");
    let mut out = call.tensor(4)?.clone();
    if out.numel() != steps {
        call.host.resize(&mut out, &[steps], &[1])?;
    }
    let mut step = if steps > 1 { (end - start) / (steps - 1) as f64 } else { 0.0 };
    // Powers of integers must come out exact before they are truncated, which takes doubles.
    let exact = out.dtype == DType::F64 || !out.dtype.is_float();
    if !out.dtype.is_float() {
        (start, end) = (start.trunc(), end.trunc());
        step = if steps > 1 { f64::from((end - start) as f32 / (steps - 1) as f32) } else { 0.0 };
    }
    let numbers = [start, end, step, (steps / 2) as f64, (steps - 1) as f64, base].map(Number::Double);
    let target = as_row(call, &out)?;
    let dtype = if exact { DType::F64 } else { DType::F32 };
    fill_by_index(call, "logspace", &target, &numbers, dtype, |_, i, v| {
        let x = i.cast(v[0].scalar());
        let exponent = x.lt(v[3]).select(v[0] + v[2] * x, v[4].eq(0).select(v[0], v[1] - v[2] * (v[4] - x)));
        math::pow(v[5], exponent)
    })?;
    finish_row(call, &target, &out)?;
    call.ret(out);
    Ok(())
}

/// A one-dimensional tensor that covers `out`: itself where it is a row, else a new one.
fn as_row(call: &Call, out: &Tensor) -> Result<Tensor> {
    if out.dim() == 1 {
        return Ok(out.clone());
    }
    if out.is_contiguous() {
        return Ok(out.as_strided(&[out.numel()], &[1], 0));
    }
    call.empty(out.dtype, &[out.numel()])
}

fn finish_row(call: &Call, row: &Tensor, out: &Tensor) -> Result<()> {
    if row.data == out.data {
        return Ok(());
    }
    let shaped = row.as_strided(&out.sizes, &Tensor::contiguous_strides(&out.sizes), 0);
    crate::movement::copy::device_copy(call, &shaped, out)
}

/// `eye.out(n, out)`, `eye.m_out(n, m, out)`
fn eye(call: &mut Call, columns: usize, out: usize) -> Result<()> {
    let (n, m) = (call.int(0)?, call.int(columns)?);
    check!(n >= 0, Runtime, "n must be greater or equal to 0, got {n}");
    check!(m >= 0, Runtime, "m must be greater or equal to 0, got {m}");
    let mut t = call.tensor(out)?.clone();
    if t.sizes.as_slice() != [n, m] {
        call.host.resize(&mut t, &[n, m], &[m.max(1), 1])?;
    }
    fill_with(call, &t, Number::Int(0))?;
    let diagonal = t.as_strided(&[n.min(m)], &[t.strides[0] + t.strides[1]], 0);
    fill_with(call, &diagonal, Number::Int(1))?;
    call.ret(t);
    Ok(())
}

/// `triu(self, diagonal)`, `tril(self, diagonal)`
fn triangle(call: &mut Call, out: Out, upper: bool) -> Result<()> {
    let t = call.tensor(0)?.clone();
    let diagonal = call.int(1)?;
    check!(
        t.dim() >= 2,
        Runtime,
        "{}: input tensor must have at least 2 dimensions",
        if upper { "triu" } else { "tril" }
    );
    let out = match out {
        Out::New => call.empty(t.dtype, &t.sizes)?,
        Out::InPlace => t.clone(),
        Out::Arg(i) => call.out(Some(i), t.dtype, &t.sizes)?,
    };
    if t.numel() > 0 {
        triangle_kernel(call, &t, &out, diagonal, upper)?;
    }
    call.ret(out);
    Ok(())
}

fn triangle_kernel(call: &Call, t: &Tensor, out: &Tensor, diagonal: i64, upper: bool) -> Result<()> {
    // The last two dimensions stay apart, fastest first; the rest is walked as a batch in row-major order.
    let rank = t.dim();
    let wide = t.numel() >= layout::SHORT || Layout::new(&[out, t]).index == Scalar::U64;
    let index = if wide { Scalar::I64 } else { Scalar::I32 };
    let key = [t.dtype as u32, rank as u32, index.bytes(), u32::from(upper), 0, 0];
    let word = t.dtype.bits();
    let kernel = call.kernel("triangle", key, || build_triangle(word, rank, index, upper))?;
    let sizes: Dims = t.sizes.iter().rev().copied().collect();
    let strides = [out, t].map(|t| t.strides.iter().rev().copied().collect::<Dims>()).into_iter().collect();
    let walk = Layout { sizes, strides, index };
    let launcher = call.launch(kernel).write(out).read(t).index(index, t.numel()).i64(diagonal);
    walk.pass(launcher).threads(t.numel() as u64)
}

fn build_triangle(dtype: DType, rank: usize, index: Scalar, upper: bool) -> Kernel {
    let b = Builder::new("triangle", [GROUP, 1, 1]);
    let (out, t) = (b.pointer("out", dtype), b.pointer("t", dtype));
    let (n, diagonal) = (b.param("numel", index), b.param("diagonal", Scalar::I64));
    let params = layout::declare(&b, rank, 2, index);
    let i = linear_id(&b, index);
    b.if_(i.lt(n), || {
        let offsets = params.offsets(&b, i);
        let column = i % params.size(0);
        let row = i / params.size(0) % params.size(1);
        let distance = column.cast(Scalar::I64) - row.cast(Scalar::I64);
        let keep = if upper { distance.ge(diagonal) } else { distance.le(diagonal) };
        let value = t.load(offsets[1]);
        out.store(offsets[0], keep.select(value, 0));
    });
    b.finish()
}
