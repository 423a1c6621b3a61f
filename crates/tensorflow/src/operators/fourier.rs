//! Fourier transforms of the last one, two or three dimensions.

use super::dtypes::{COMPLEX, WIDE_FLOATS};
use super::{Call, Operator};
use crate::error::Result;
use crate::require;
use dml_compute::fft::operator::{complex_to_real, real_to_complex, transform_axes};
use dml_compute::linear_algebra::matrices::{device_copy, fill_with};
use dml_compute::{Context, Dims, Scalar, View};
use dml_kernel::DType;

/// The last `rank` dimensions.
fn axes(t: &View, rank: usize) -> Vec<usize> {
    (t.dim() - rank..t.dim()).collect()
}

/// One over the number of elements that are transformed together.
fn mean_of(sizes: &[i64], axes: &[usize]) -> f64 {
    1.0 / axes.iter().map(|&d| sizes[d] as f64).product::<f64>()
}

fn check_rank(call: &Call, t: &View, rank: usize) -> Result<()> {
    require!(t.dim() >= rank, "Input must have rank of at least {rank} but got: {:?} ({})", t.sizes, call.operator());
    Ok(())
}

/// `FFT`, `IFFT` and those of more dimensions.
fn complex(name: &'static str, rank: usize, inverse: bool) -> Operator {
    Operator::plain(name, move |call: &Call| {
        let t = call.input(0)?;
        check_rank(call, &t, rank)?;
        let out = call.output(0, &t.sizes)?;
        if out.numel() == 0 {
            return Ok(());
        }
        let axes = axes(&t, rank);
        let scale = if inverse { mean_of(&t.sizes, &axes) } else { 1.0 };
        Ok(transform_axes(&call.cx(), &t, &out, &axes, inverse, scale)?)
    })
}

/// The lengths of a transform of real numbers, in an input in host memory.
fn lengths(call: &Call, rank: usize) -> Result<Dims> {
    let lengths = call.host_ints(1)?;
    require!(lengths.len() == rank, "fft_length must have shape [{rank}]");
    require!(lengths.iter().all(|&n| n >= 0), "fft_length must be >= 0, but got: {lengths:?}");
    Ok(lengths)
}

/// The tensor with its last dimensions cut to these sizes, or with zeros up to them.
fn resized(cx: &Context, t: &View, last: &[i64]) -> Result<View> {
    let first = t.dim() - last.len();
    let (mut part, mut sizes) = (t.clone(), t.sizes.clone());
    for (d, &n) in (first..).zip(last) {
        part = part.narrow(d, 0, n.min(t.sizes[d]));
        sizes[d] = n;
    }
    if part.sizes == sizes {
        return Ok(part);
    }
    let whole = cx.empty(t.dtype, &sizes)?;
    fill_with(cx, &whole, Scalar::Int(0))?;
    if part.numel() > 0 {
        device_copy(cx, &part, &whole.as_strided(&part.sizes, &whole.strides.clone(), 0))?;
    }
    Ok(whole)
}

/// The sizes of `t` with other last ones.
fn with_last(t: &View, last: &[i64]) -> Dims {
    t.sizes[..t.dim() - last.len()].iter().chain(last).copied().collect()
}

/// `RFFT` and those of more dimensions: half a spectrum of real numbers.
fn of_real(name: &'static str, rank: usize) -> Operator {
    Operator::plain(name, move |call: &Call| {
        let t = call.input(0)?;
        check_rank(call, &t, rank)?;
        let lengths = lengths(call, rank)?;
        let mut half = lengths.clone();
        half[rank - 1] = if lengths[rank - 1] == 0 { 0 } else { lengths[rank - 1] / 2 + 1 };
        let out = call.output(0, &with_last(&t, &half))?;
        if out.numel() == 0 {
            return Ok(());
        }
        let cx = call.cx();
        let t = resized(&cx, &t, &lengths)?;
        Ok(real_to_complex(&cx, &t, &out, &axes(&t, rank), true, 1.0)?)
    })
    .of("Treal", WIDE_FLOATS)
    .tied("Tcomplex", "Treal", DType::complex)
    .on_host(&["fft_length"])
}

/// `IRFFT` and those of more dimensions: real numbers of half a spectrum.
fn to_real(name: &'static str, rank: usize) -> Operator {
    Operator::plain(name, move |call: &Call| {
        let t = call.input(0)?;
        check_rank(call, &t, rank)?;
        let lengths = lengths(call, rank)?;
        let out = call.output(0, &with_last(&t, &lengths))?;
        if out.numel() == 0 {
            return Ok(());
        }
        let mut half = lengths.clone();
        half[rank - 1] = lengths[rank - 1] / 2 + 1;
        let cx = call.cx();
        let t = resized(&cx, &t, &half)?;
        let all = axes(&t, rank);
        let scale = mean_of(&out.sizes, &all);
        Ok(complex_to_real(&cx, &t, &out, (&all[..rank - 1], all[rank - 1]), scale)?)
    })
    .of("Treal", WIDE_FLOATS)
    .tied("Tcomplex", "Treal", DType::complex)
    .on_host(&["fft_length"])
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    let named = [
        ("FFT", 1, false),
        ("FFT2D", 2, false),
        ("FFT3D", 3, false),
        ("IFFT", 1, true),
        ("IFFT2D", 2, true),
        ("IFFT3D", 3, true),
    ];
    // The old names, of complex64 alone.
    let old = [
        ("BatchFFT", 1, false),
        ("BatchFFT2D", 2, false),
        ("BatchFFT3D", 3, false),
        ("BatchIFFT", 1, true),
        ("BatchIFFT2D", 2, true),
        ("BatchIFFT3D", 3, true),
    ];
    let real = [("RFFT", 1), ("RFFT2D", 2), ("RFFT3D", 3)].map(|(name, rank)| of_real(name, rank));
    let inverse = [("IRFFT", 1), ("IRFFT2D", 2), ("IRFFT3D", 3)].map(|(name, rank)| to_real(name, rank));
    named
        .map(|(name, rank, inverse)| complex(name, rank, inverse).of("Tcomplex", COMPLEX))
        .into_iter()
        .chain(old.map(|(name, rank, inverse)| complex(name, rank, inverse)))
        .chain(real)
        .chain(inverse)
        .collect()
}
