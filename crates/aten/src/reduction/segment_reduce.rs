//! Reductions of segments along a dimension, given by `lengths` or by consecutive `offsets`.

use crate::movement::copies::checked_copy;
use crate::operator::call::Call;
use crate::operator::conversion::check_fits;
use crate::operator::error::{Error, Result};
use crate::{check, group, operators};
use dml_compute::movement::copy::{as_contiguous, cast, fill_with, read_numbers};
use dml_compute::primitives::loops::check_loop_iterations;
use dml_compute::primitives::prefix_sum;
use dml_compute::reduction::segment_reduce::{self, Kind, Segments};
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    forward(data, {Reduction}, indices, unsafe) {
        "aten::segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
    }
    backward(grad, output, data, {Reduction}) {
        "aten::_segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str reduce, *, Tensor? lengths=None, Tensor? offsets=None, int axis=0, Scalar? initial=None) -> Tensor",
    }
}

group! {
    /// The segments, and what is computed of them.
    struct Reduction<'a> {
        reduce: Option<&'a str>,
        lengths: Option<&'a View>,
        offsets: Option<&'a View>,
        axis: i64,
        initial: Option<Number>,
    }
}

fn kind_of(name: &str) -> Result<Kind> {
    Ok(match name {
        "max" | "amax" => Kind::Max,
        "mean" => Kind::Mean,
        "min" | "amin" => Kind::Min,
        "sum" => Kind::Sum,
        "prod" => Kind::Prod,
        other => {
            let known = "reduce argument must be either sum, prod, mean, amax or amin, got";
            return Err(Error::Runtime(format!("{known} {other}")));
        }
    })
}

fn checked_segments(
    call: &Call,
    data: &View,
    lengths: Option<&View>,
    offsets: Option<&View>,
    axis: i64,
) -> Result<Segments> {
    let axis = call.wrap_dim(axis, data.dim())?;
    let (given, what) = match (offsets, lengths) {
        (Some(offsets), _) => (offsets, "offsets"),
        (None, Some(lengths)) => (lengths, "lengths"),
        (None, None) => {
            return Err(Error::Runtime("segment_reduce(): Either lengths or offsets must be defined.".into()));
        }
    };
    check!(
        data.dim() >= given.dim() && given.dim() > 0,
        Runtime,
        "segment_reduce(): {what} {} of more dimensions than data {}",
        given.describe(),
        data.describe()
    );
    check!(
        axis + 1 == given.dim(),
        Runtime,
        "segment_reduce(): Expected axis to be the last dimension of {what} but got {axis}."
    );
    let index = matches!(given.dtype, DType::I32 | DType::I64);
    let dtype = given.dtype;
    check!(index, NotImplemented, "\"_segment_reduce_{what}_cpu_kernel1\" not implemented for '{dtype}'");
    let fits = given.sizes[..axis] == data.sizes[..axis];
    check!(fits, Runtime, "segment_reduce(): {what} {} does not fit data {}", given.describe(), data.describe());
    check_loop_iterations(call, data.sizes[axis])?;
    let outer = data.sizes[..axis].iter().product();
    let inner = data.sizes[axis + 1..].iter().product();
    let relative = offsets.is_none();
    let count = if relative { given.sizes[axis] } else { (given.sizes[axis] - 1).max(0) };
    let bounds = if relative {
        let n = given.numel();
        let sums = call.empty(DType::I64, &[n + 1])?;
        checked_copy(
            call,
            given,
            &sums.narrow(0, 0, n).as_strided(&given.sizes, &View::contiguous_strides(&given.sizes), 0),
        )?;
        prefix_sum::exclusive(call, &sums, n)?;
        sums
    } else {
        as_contiguous(call, &cast(call, given, DType::I64)?)?
    };
    Ok(Segments { bounds, relative, outer, count, inner, size: data.sizes[axis] })
}

fn of_floats(data: &View) -> Result<()> {
    check!(data.dtype.is_float(), NotImplemented, "\"_segment_reduce_cpu\" not implemented for '{}'", data.dtype);
    Ok(())
}

/// Lengths are read back and checked, unless `unsafe`. Memory outside of the data is never read.
fn forward(call: &mut Call, data: &View, reduction: Reduction, indices: Option<&View>, trusted: bool) -> Result<()> {
    let Reduction { reduce, lengths, offsets, axis, initial } = reduction;
    check!(indices.is_none(), Runtime, "segment_reduce(): indices based reduction is not supported yet.");
    let kind = kind_of(reduce.unwrap_or_default())?;
    let segments = checked_segments(call, data, lengths, offsets, axis)?;
    if let (Some(lengths), true) = (lengths, segments.relative && !trusted) {
        let numbers: Vec<Number> = read_numbers(call, lengths)?;
        let numbers: Vec<i64> = numbers.into_iter().map(|n| n.to_i64()).collect();
        check!(numbers.iter().all(|&n| n >= 0), Runtime, "lengths contains negative value!");
        let mut rows = numbers.chunks(segments.count.max(1) as usize);
        check!(
            rows.all(|row| row.iter().sum::<i64>() == segments.size),
            Runtime,
            "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe."
        );
    }
    of_floats(data)?;
    if let Some(initial) = initial {
        check_fits(initial, data.dtype)?;
    }
    let mut sizes = data.sizes.clone();
    sizes[call.wrap_dim(axis, data.dim())?] = segments.count;
    let out = call.empty(data.dtype, &sizes)?;
    if out.numel() > 0 {
        let data = &as_contiguous(call, data)?;
        segment_reduce::reduce(call, kind, &segments, data, initial, &out)?;
    }
    call.ret(out);
    Ok(())
}

/// As on the CPU, a nonnegative gradient is shared by the extrema of a segment.
fn backward(call: &mut Call, grad: &View, output: &View, data: &View, reduction: Reduction) -> Result<()> {
    let Reduction { reduce, lengths, offsets, axis, initial } = reduction;
    let kind = kind_of(reduce.unwrap_or_default())?;
    let segments = checked_segments(call, data, lengths, offsets, axis)?;
    of_floats(data)?;
    let mut sizes = data.sizes.clone();
    sizes[call.wrap_dim(axis, data.dim())?] = segments.count;
    let alike = [grad, output].iter().all(|t| t.sizes == sizes && t.dtype == data.dtype);
    check!(
        alike,
        Runtime,
        "{}: gradient {} and output {} should be like the result",
        call.name,
        grad.describe(),
        output.describe()
    );
    let to = call.empty(data.dtype, &data.sizes)?;
    fill_with(call, &to, Number::Int(0))?;
    if output.numel() > 0 && data.numel() > 0 {
        let [data, output, grad] = [data, output, grad].map(|t| as_contiguous(call, t));
        let (data, output, grad) = (&data?, &output?, &grad?);
        segment_reduce::gradient(call, kind, &segments, data, output, grad, initial, &to)?;
    }
    call.ret(to);
    Ok(())
}
