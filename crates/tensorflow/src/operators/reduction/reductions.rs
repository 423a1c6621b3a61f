//! Reductions along axes: sums, products, extrema and the like.

use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::axes;
use crate::operators::common::dtypes::{FIELDS, FIELDS_AND_I64, FIELDS_AND_INDICES, REALS};
use crate::operators::common::regions::{copy, fill};
use dml_compute::complex::parts::{as_real, parts};
use dml_compute::complex::pointwise::{self, Given};
use dml_compute::pointwise::complex::MUL;
use dml_compute::reduction::Axes;
use dml_compute::reduction::extremum::{self, ElementOnly, Extreme};
use dml_compute::reduction::logical::{Quantifier, quantify};
use dml_compute::reduction::norm::norms;
use dml_compute::reduction::sum::{Kind, fold_sum};
use dml_compute::{Dims, Scalar, View, host};
use dml_kernel::DType;

/// Writes the reduction of an input along axes.
type Reduce = fn(&Call, &View, &View, Axes) -> Result<()>;

/// Whether a dimension of any size but 1 is reduced.
fn reduces_anything(axes: Axes, sizes: &[i64]) -> bool {
    sizes.iter().enumerate().any(|(d, &n)| n != 1 && axes.reduces(d))
}

/// A reduction of input 0 along the axes that input 1 lists.
fn reduction(name: &'static str, reduce: Reduce, dtypes: Option<&'static [DType]>) -> Operator {
    let operator = Operator::new(name, move |attributes: &Attributes| {
        let keep = attributes.bool("keep_dims")?;
        Ok(move |call: &Call| {
            let sizes = call.sizes(0)?;
            let axes = axes::reduced(&call.host_ints(1)?, sizes.len(), keep)?;
            let result = axes.sizes(&sizes);
            // The reduction of one element is the element, except its norm.
            if name != "EuclideanNorm" && !reduces_anything(axes, &sizes) {
                return call.pass_on(0, 0, &result);
            }
            let input = call.input(0)?;
            reduce(call, &input, &call.output(0, &result)?, axes)
        })
    });
    match dtypes {
        Some(dtypes) => operator.of("T", dtypes),
        None => operator,
    }
    .on_host(&["reduction_indices"])
}

/// The real numbers of which a tensor consists: itself, or its real and imaginary parts.
fn by_parts(t: &View) -> Vec<View> {
    if t.dtype.is_complex() { parts(t).to_vec() } else { vec![t.clone()] }
}

fn sum(call: &Call, input: &View, out: &View, axes: Axes) -> Result<()> {
    if call.on_host() {
        return sum_on_host(call, out, axes);
    }
    accumulate(call, Kind::Sum, input, out, axes)
}

fn mean(call: &Call, input: &View, out: &View, axes: Axes) -> Result<()> {
    // TensorFlow's mean of nothing is NaN, but not of complex numbers.
    if input.dtype.is_complex() && input.numel() == 0 {
        return fill(call, out, Scalar::Int(0));
    }
    accumulate(call, Kind::Mean, input, out, axes)
}

/// Sums or means along axes; of complex numbers those of their parts.
pub fn accumulate(call: &Call, kind: Kind, input: &View, out: &View, axes: Axes) -> Result<()> {
    for (input, out) in by_parts(input).iter().zip(&by_parts(out)) {
        fold_sum(&call.cx(), kind, input, out, axes, input.dtype)?;
    }
    Ok(())
}

/// The sum of int32 in host memory, which wraps around.
fn sum_on_host(call: &Call, out: &View, axes: Axes) -> Result<()> {
    let (sizes, numbers) = (call.sizes(0)?, call.host_ints(0)?);
    let strides = View::contiguous_strides(&Axes { keep: true, ..axes }.sizes(&sizes));
    let mut sums = vec![0i32; out.numel() as usize];
    let mut places = vec![0usize];
    for (d, &n) in sizes.iter().enumerate() {
        let stride = if axes.reduces(d) { 0 } else { strides[d] };
        places = places.iter().flat_map(|&p| (0..n).map(move |i| p + (i * stride) as usize)).collect();
    }
    for (place, number) in places.into_iter().zip(numbers) {
        sums[place] = sums[place].wrapping_add(number as i32);
    }
    let bytes: Vec<u8> = sums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
    host::bytes_mut(&mut out.clone())?.copy_from_slice(&bytes);
    Ok(())
}

fn product(call: &Call, input: &View, out: &View, axes: Axes) -> Result<()> {
    if input.dtype.is_complex() {
        return complex_product(call, input, out, axes);
    }
    Ok(fold_sum(&call.cx(), Kind::Prod, input, out, axes, input.dtype)?)
}

/// The product of complex numbers: the second half is multiplied into the first until one element
/// remains.
fn complex_product(call: &Call, input: &View, out: &View, axes: Axes) -> Result<()> {
    let cx = call.cx();
    let (kept, mut n) = (out.numel(), axes.extent(&input.sizes));
    if n == 0 {
        return fill(call, out, Scalar::Int(1));
    }
    let (reduced, others): (Vec<usize>, Vec<usize>) = (0..input.dim()).partition(|&d| axes.reduces(d));
    let order: Vec<usize> = others.into_iter().chain(reduced).collect();
    let rows = input.permute(&order);
    let scratch = cx.empty(input.dtype, &rows.sizes)?;
    copy(call, &rows, &scratch)?;
    let factors = scratch.as_strided(&[kept, n], &[n, 1], 0);
    while n > 1 {
        let half = n / 2;
        let (first, second) = (factors.narrow(1, 0, half), factors.narrow(1, n - half, half));
        let given = [&first, &second].map(|t| Given::Complex(parts(t)));
        pointwise::run(&cx, &MUL, &first, (input.dtype.real(), input.dtype), &given)?;
        n -= half;
    }
    let results = out.as_strided(&[kept, 1], &[1, 1], 0);
    copy(call, &factors.narrow(1, 0, 1), &results)
}

fn extreme(call: &Call, extreme: Extreme, input: &View, out: &View, axes: Axes) -> Result<()> {
    Ok(extremum::run(&call.cx(), &ElementOnly { extreme, dtype: input.dtype }, input, &[out], axes)?)
}

fn max(call: &Call, input: &View, out: &View, axes: Axes) -> Result<()> {
    extreme(call, Extreme::Max, input, out, axes)
}

fn min(call: &Call, input: &View, out: &View, axes: Axes) -> Result<()> {
    extreme(call, Extreme::Min, input, out, axes)
}

fn all(call: &Call, input: &View, out: &View, axes: Axes) -> Result<()> {
    Ok(quantify(&call.cx(), Quantifier::All, input, axes, out)?)
}

fn any(call: &Call, input: &View, out: &View, axes: Axes) -> Result<()> {
    Ok(quantify(&call.cx(), Quantifier::Any, input, axes, out)?)
}

/// The Euclidean norm; of complex numbers that of their parts, as a complex number.
fn euclidean_norm(call: &Call, input: &View, out: &View, axes: Axes) -> Result<()> {
    let cx = call.cx();
    if !input.dtype.is_complex() {
        return Ok(norms(&cx, 2.0, input, out, axes)?);
    }
    let [re, im] = parts(out);
    let mut sizes: Dims = re.sizes.clone();
    let mut strides: Dims = re.strides.clone();
    if axes.keep {
        sizes.push(1);
        strides.push(1);
    }
    let of_parts = Axes { mask: axes.mask & ((1 << input.dim()) - 1) | 1 << input.dim(), ..axes };
    norms(&cx, 2.0, &as_real(input), &re.as_strided(&sizes, &strides, 0), of_parts)?;
    fill(call, &im, Scalar::Int(0))
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        reduction("Sum", sum, Some(FIELDS_AND_I64)).int32_on_host(&["input", "reduction_indices", "output"]),
        reduction("Mean", mean, Some(FIELDS)),
        reduction("Prod", product, Some(FIELDS_AND_INDICES)),
        reduction("Max", max, Some(REALS)),
        reduction("Min", min, Some(REALS)),
        reduction("All", all, None),
        reduction("Any", any, None),
        reduction("EuclideanNorm", euclidean_norm, Some(FIELDS)),
    ]
}
