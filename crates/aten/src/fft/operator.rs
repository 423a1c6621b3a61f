//! The transforms that PyTorch calls on a device. Strides of results are those of the CPU's.

use crate::complex::copy::checked_copy;
use crate::operator::argument::Out;
use crate::operator::call::{Call, Ret};
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::fft::operator::{self, Axes, sorted, strides, transform_axes};
use dml_compute::view::layout::preserved_strides;
use dml_compute::view::{Dims, View};
use dml_kernel::DType;

operators! {
    complex_to_complex(self, dim, normalization, forward, out).complex(Complex::Own) {
        "aten::_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor",
        "aten::_fft_c2c.out(Tensor self, SymInt[] dim, int normalization, bool forward, *, Tensor(a!) out) -> Tensor(a!)",
    }
    real_to_complex(self, dim, normalization, onesided, out).complex(Complex::Own) {
        "aten::_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
        "aten::_fft_r2c.out(Tensor self, int[] dim, int normalization, bool onesided, *, Tensor(a!) out) -> Tensor(a!)",
    }
    complex_to_real(self, dim, normalization, last_dim_size, out).complex(Complex::Own) {
        "aten::_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor",
        "aten::_fft_c2r.out(Tensor self, int[] dim, int normalization, SymInt last_dim_size, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

fn complex_to_complex(call: &mut Call, t: &View, dim: &[i64], norm: i64, forward: bool, out: Out) -> Result<()> {
    check!(t.dtype.is_complex(), Runtime, "Only supports complex dtypes, but found: {}", t.dtype);
    if t.dtype.real() == DType::F16 {
        return in_float32(call, t, out, |call, t| complex_to_complex(call, t, dim, norm, forward, Out::New));
    }
    check_part(t.dtype)?;
    let axes = axes(call, dim, t)?;
    if axes.is_empty() {
        let result = destination(call, out, t.dtype, &t.sizes, preserved_strides(&t.clone()), t)?;
        checked_copy(call, t, &result)?;
        return return_result(call, out, result);
    }
    let axes = sorted(&axes, &t.strides, axes.len());
    let result = destination(call, out, t.dtype, &t.sizes, strides(&t.sizes, &t.strides, &axes), t)?;
    let scale = factor(norm, &result.sizes, &axes)?;
    transform_axes(call, t, &result, &axes, !forward, scale)?;
    return_result(call, out, result)
}

fn real_to_complex(call: &mut Call, t: &View, dim: &[i64], norm: i64, onesided: bool, out: Out) -> Result<()> {
    let float = t.dtype.is_float();
    check!(float, Runtime, "Only supports floating-point dtypes, but found: {}", t.dtype);
    if t.dtype.real() == DType::F16 {
        return in_float32(call, t, out, |call, t| real_to_complex(call, t, dim, norm, onesided, Out::New));
    }
    check_part(t.dtype)?;
    let axes = axes(call, dim, t)?;
    let last = last_of(&axes)?;
    let length = call.size_of(t, last)?;
    check!(length > 0, Runtime, "Invalid number of data points ({length}) specified");
    let mut sizes = t.sizes.clone();
    if onesided {
        sizes[last] = length / 2 + 1;
    }
    let axes = sorted(&axes, &t.strides, axes.len() - 1);
    let result = destination(call, out, t.dtype.complex(), &sizes, strides(&sizes, &t.strides, &axes), t)?;
    let scale = factor(norm, &t.sizes, &axes)?;
    operator::real_to_complex(call, t, &result, &axes, onesided, scale)?;
    return_result(call, out, result)
}

fn complex_to_real(call: &mut Call, t: &View, dim: &[i64], norm: i64, length: i64, out: Out) -> Result<()> {
    check!(t.dtype.is_complex(), Runtime, "Only supports complex dtypes, but found: {}", t.dtype);
    if t.dtype.real() == DType::F16 {
        return in_float32(call, t, out, |call, t| complex_to_real(call, t, dim, norm, length, Out::New));
    }
    check_part(t.dtype)?;
    let axes = axes(call, dim, t)?;
    let last = last_of(&axes)?;
    let given = call.size_of(t, last)?;
    check!(length > 0, Runtime, "Invalid number of data points ({length}) specified");
    check!(
        given == length / 2 + 1,
        Runtime,
        "{}: {given} numbers are not the spectrum of {length} real ones, which has {}",
        call.name,
        length / 2 + 1
    );
    let others = sorted(&axes[..axes.len() - 1], &t.strides, axes.len() - 1);
    // As the spectrum lies after the transforms along the others.
    let inner = if others.is_empty() { t.strides.clone() } else { strides(&t.sizes, &t.strides, &others) };
    let mut sizes = t.sizes.clone();
    sizes[last] = length;
    let result = destination(call, out, t.dtype.real(), &sizes, strides(&sizes, &inner, &[last]), t)?;
    let scale = factor(norm, &sizes, &axes)?;
    operator::complex_to_real(call, t, &result, (&others, last), scale)?;
    return_result(call, out, result)
}

/// Computes a transform of halves in float32, and rounds the result once.
fn in_float32(
    call: &mut Call,
    t: &View,
    out: Out,
    transform: impl FnOnce(&mut Call, &View) -> Result<()>,
) -> Result<()> {
    let wide = if t.dtype.is_complex() { DType::C64 } else { DType::F32 };
    let wide = call.empty_strided(wide, &t.sizes, &preserved_strides(t))?;
    checked_copy(call, t, &wide)?;
    transform(call, &wide)?;
    let Some(Ret::Tensor(wide)) = call.returns.pop() else { return Ok(()) };
    let dtype = if wide.dtype.is_complex() { DType::C32 } else { DType::F16 };
    let result = call.result_strided(out.given(), dtype, &wide.sizes, || preserved_strides(&wide))?;
    checked_copy(call, &wide, &result)?;
    call.ret(result);
    Ok(())
}

fn check_part(dtype: DType) -> Result<()> {
    let part = dtype.real();
    check!(matches!(part, DType::F32 | DType::F64), Dtype, "MKL FFT doesn't support tensors of type: {part}");
    Ok(())
}

/// The transformed dimensions, checked to be distinct.
fn axes(call: &Call, dim: &[i64], t: &View) -> Result<Axes> {
    let axes: Axes = dim.iter().map(|&d| call.wrap_dim(d, t.dim())).collect::<Result<_>>()?;
    let twice = (1..axes.len()).any(|i| axes[..i].contains(&axes[i]));
    check!(!twice, Runtime, "FFT dims must be unique");
    check!(t.dim() > 0 || axes.is_empty(), Runtime, "{}: a tensor of no dimensions has no lines", call.name);
    Ok(axes)
}

fn last_of(axes: &[usize]) -> Result<usize> {
    let last = axes.last().copied();
    check!(last.is_some(), Runtime, "ArrayRef: attempted to access back() of empty list");
    Ok(last.unwrap_or(0))
}

/// The factor of a normalisation mode: 0 is none, 1 one over the root of the number of elements
/// that are transformed together, 2 one over their number.
fn factor(norm: i64, sizes: &[i64], axes: &[usize]) -> Result<f64> {
    let count: f64 = axes.iter().map(|&d| sizes[d] as f64).product();
    match norm {
        0 => Ok(1.0),
        1 => Ok(1.0 / count.sqrt()),
        2 => Ok(1.0 / count),
        _ => {
            check!(false, Runtime, "Unsupported normalization type {norm}");
            Ok(1.0)
        }
    }
}

/// The tensor in which the result is computed: `out=` if possible, else a new one.
fn destination(call: &Call, out: Out, dtype: DType, sizes: &[i64], strides: Dims, input: &View) -> Result<View> {
    if let Some(given) =
        out.given().filter(|given| given.dtype == dtype && !dml_compute::view::overlap::ranges_overlap(given, input))
    {
        return call.result(Some(given), dtype, sizes);
    }
    Ok(call.empty_strided(dtype, sizes, &strides)?)
}

/// Returns the result, in `out=` if there is one.
fn return_result(call: &mut Call, out: Out, result: View) -> Result<()> {
    let Some(given) = out.given().filter(|given| given.handle != result.handle) else {
        call.ret(result);
        return Ok(());
    };
    let target = call.result(Some(given), result.dtype, &result.sizes)?;
    if result.dtype.is_complex() {
        checked_copy(call, &result, &target)?
    } else {
        crate::movement::copies::checked_copy(call, &result, &target)?
    }
    call.ret(target);
    Ok(())
}
