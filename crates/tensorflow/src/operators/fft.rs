//! Fourier transforms of the last dimensions, or of given ones.

use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{COMPLEX, WIDE_FLOATS};
use crate::require;
use dml_compute::fft::operator::{complex_to_real, real_to_complex, transform_axes};
use dml_compute::linear_algebra::matrices::{device_copy, fill_with};
use dml_compute::{Context, Dims, Scalar, View};
use dml_kernel::DType;

/// The transformed dimensions.
#[derive(Copy, Clone)]
enum Along {
    /// So many last ones.
    Last(usize),
    /// Those in an input in host memory, after their lengths.
    Given,
}

/// One over the number of elements that are transformed together.
fn mean_of(sizes: &[i64], axes: &[usize]) -> f64 {
    1.0 / axes.iter().map(|&d| sizes[d] as f64).product::<f64>()
}

/// The transformed dimensions; and their lengths, if the operator has them.
fn axes(call: &Call, t: &View, along: Along) -> Result<(Vec<usize>, Option<Dims>)> {
    let (axes, rank) = match along {
        Along::Last(rank) => {
            let name = call.operator();
            require!(t.dim() >= rank, "Input must have rank of at least {rank} but got: {:?} ({name})", t.sizes);
            ((t.dim() - rank..t.dim()).collect(), rank)
        }
        Along::Given => {
            let dims = t.dim() as i64;
            let given = call.host_ints(2)?;
            let wrapped: Vec<i64> = given.iter().map(|&d| if d < 0 { d + dims } else { d }).collect();
            let twice = (1..wrapped.len()).any(|i| wrapped[..i].contains(&wrapped[i]));
            require!(
                wrapped.iter().all(|d| (0..dims).contains(d)) && !twice && !wrapped.is_empty(),
                "axes must be distinct dimensions of a tensor of rank {dims}, but got: {given:?}"
            );
            (wrapped.iter().map(|&d| d as usize).collect::<Vec<_>>(), wrapped.len())
        }
    };
    if call.inputs() == 1 {
        return Ok((axes, None));
    }
    let lengths = call.host_ints(1)?;
    require!(lengths.len() == rank, "fft_length must have shape [{rank}]");
    require!(lengths.iter().all(|&n| n >= 0), "fft_length must be >= 0, but got: {lengths:?}");
    Ok((axes, Some(lengths)))
}

/// The sizes of `t` with other ones along some dimensions.
fn with(t: &View, axes: &[usize], lengths: &[i64]) -> Dims {
    let mut sizes = t.sizes.clone();
    axes.iter().zip(lengths).for_each(|(&d, &n)| sizes[d] = n);
    sizes
}

/// The tensor cut to these sizes, or with zeros up to them.
fn resized(cx: &Context, t: &View, sizes: &[i64]) -> Result<View> {
    let part = (0..t.dim()).fold(t.clone(), |part, d| part.narrow(d, 0, sizes[d].min(t.sizes[d])));
    if part.sizes[..] == *sizes {
        return Ok(part);
    }
    let whole = cx.empty(t.dtype, sizes)?;
    fill_with(cx, &whole, Scalar::Int(0))?;
    if part.numel() > 0 {
        device_copy(cx, &part, &whole.as_strided(&part.sizes, &whole.strides.clone(), 0))?;
    }
    Ok(whole)
}

/// Fails unless a tensor is long enough for a transform of real numbers along its last dimensions;
/// along given ones it is continued by zeros.
fn check_lengths(t: &View, along: Along, axes: &[usize], lengths: &[i64]) -> Result<()> {
    let given = matches!(along, Along::Given);
    for (&d, &length) in axes.iter().zip(lengths) {
        let size = t.sizes[d];
        require!(given || size >= length, "Input dimension {d} must have length of at least {length} but got: {size}");
    }
    Ok(())
}

/// `FFT`, `IFFT` and those of more dimensions.
fn complex(name: &'static str, along: Along, inverse: bool) -> Operator {
    Operator::plain(name, move |call: &Call| {
        let t = call.input(0)?;
        let (axes, lengths) = axes(call, &t, along)?;
        let sizes = lengths.map_or_else(|| t.sizes.clone(), |lengths| with(&t, &axes, &lengths));
        let out = call.output(0, &sizes)?;
        if out.numel() == 0 {
            return Ok(());
        }
        let cx = call.cx();
        let t = resized(&cx, &t, &sizes)?;
        let scale = if inverse { mean_of(&sizes, &axes) } else { 1.0 };
        Ok(transform_axes(&cx, &t, &out, &axes, inverse, scale)?)
    })
}

/// Lengths with that of the last dimension replaced.
fn with_half(lengths: &[i64], half: impl Fn(i64) -> i64) -> Dims {
    let mut halved = Dims::from_slice(lengths);
    if let Some(last) = halved.last_mut() {
        *last = half(*last);
    }
    halved
}

/// `RFFT` and those of more dimensions: half a spectrum of real numbers.
fn of_real(name: &'static str, along: Along) -> Operator {
    Operator::plain(name, move |call: &Call| {
        let t = call.input(0)?;
        let (axes, lengths) = axes(call, &t, along)?;
        let lengths = lengths.unwrap_or_default();
        check_lengths(&t, along, &axes, &lengths)?;
        let half = with_half(&lengths, |n| if n == 0 { 0 } else { n / 2 + 1 });
        let out = call.output(0, &with(&t, &axes, &half))?;
        if out.numel() == 0 {
            return Ok(());
        }
        let cx = call.cx();
        let t = resized(&cx, &t, &with(&t, &axes, &lengths))?;
        Ok(real_to_complex(&cx, &t, &out, &axes, true, 1.0)?)
    })
    .of("Treal", WIDE_FLOATS)
    .tied("Tcomplex", "Treal", DType::complex)
}

/// `IRFFT` and those of more dimensions: real numbers of half a spectrum.
fn to_real(name: &'static str, along: Along) -> Operator {
    Operator::plain(name, move |call: &Call| {
        let t = call.input(0)?;
        let (axes, lengths) = axes(call, &t, along)?;
        let lengths = lengths.unwrap_or_default();
        let half = with_half(&lengths, |n| n / 2 + 1);
        check_lengths(&t, along, &axes, &half)?;
        let out = call.output(0, &with(&t, &axes, &lengths))?;
        let Some((&last, others)) = axes.split_last() else { return Ok(()) };
        if out.numel() == 0 {
            return Ok(());
        }
        let cx = call.cx();
        let t = resized(&cx, &t, &with(&t, &axes, &half))?;
        Ok(complex_to_real(&cx, &t, &out, (others, last), mean_of(&out.sizes, &axes))?)
    })
    .of("Treal", WIDE_FLOATS)
    .tied("Tcomplex", "Treal", DType::complex)
}

/// The arguments in host memory where the dimensions are given.
const HOST: &[&str] = &["fft_length", "axes"];

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    // The old names are of complex64 alone.
    let names = [
        ["FFT", "IFFT", "BatchFFT", "BatchIFFT", "RFFT", "IRFFT"],
        ["FFT2D", "IFFT2D", "BatchFFT2D", "BatchIFFT2D", "RFFT2D", "IRFFT2D"],
        ["FFT3D", "IFFT3D", "BatchFFT3D", "BatchIFFT3D", "RFFT3D", "IRFFT3D"],
    ];
    let mut operators = Vec::new();
    for (i, [forward, inverse, old_forward, old_inverse, real, to_reals]) in names.into_iter().enumerate() {
        let along = Along::Last(i + 1);
        operators.push(complex(forward, along, false).of("Tcomplex", COMPLEX));
        operators.push(complex(inverse, along, true).of("Tcomplex", COMPLEX));
        operators.push(complex(old_forward, along, false));
        operators.push(complex(old_inverse, along, true));
        operators.push(of_real(real, along).on_host(&["fft_length"]));
        operators.push(to_real(to_reals, along).on_host(&["fft_length"]));
    }
    operators.push(complex("FFTND", Along::Given, false).of("Tcomplex", COMPLEX).on_host(HOST));
    operators.push(complex("IFFTND", Along::Given, true).of("Tcomplex", COMPLEX).on_host(HOST));
    operators.push(of_real("RFFTND", Along::Given).on_host(HOST));
    operators.push(to_real("IRFFTND", Along::Given).on_host(HOST));
    operators
}
