//! Reductions by segment of slices that indices select, and their gradients: sums, means, and sums
//! divided by the square root of a segment's size.

use super::dtypes::{FLOATS, INDICES};
use super::index_access::Places;
use super::regions::{fill, reshaped};
use super::segments::count_of_sorted;
use super::{Call, Operator};
use crate::error::Result;
use crate::require;
use dml_compute::movement::copy::fill_with;
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::primitives::combine::Combine;
use dml_compute::{Dims, Scalar, View};
use dml_kernel::{DType, math};

/// What a segment's sum is divided by.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Divisor {
    /// Nothing.
    One,
    /// The number of its slices.
    Size,
    /// The square root of that.
    RootOfSize,
}

dml_compute::functions! {
    /// `x / n`, or 0 if there is nothing to divide.
    MEAN_OF_SEGMENT = "segment_mean"(x, n) => n.eq(0).select(x.like(0.0), x / n);
    /// `x / sqrt(n)`, or 0 if there is nothing to divide.
    ROOT_MEAN_OF_SEGMENT = "segment_sqrt_n"(x, n) => n.eq(0).select(x.like(0.0), x / math::sqrt(n));
}

/// Divides slices, in place, by what belongs to sizes of segments: one for each slice.
fn divide(call: &Call, slices: &View, sizes: &View, divisor: Divisor) -> Result<()> {
    let function = match divisor {
        Divisor::One => return Ok(()),
        Divisor::Size => &MEAN_OF_SEGMENT,
        Divisor::RootOfSize => &ROOT_MEAN_OF_SEGMENT,
    };
    let mut shape = Dims::from_elem(1, slices.dim());
    shape[0] = sizes.numel();
    let operands = [Input::Tensor(slices.clone()), Input::Tensor(reshaped(sizes, &shape))];
    Ok(kernel::run(&call.cx(), function, &[slices], &operands, slices.dtype)?)
}

/// The number of slices of each of `count` segments, as floats.
fn sizes_of_segments(call: &Call, ids: &View, count: i64) -> Result<View> {
    let cx = call.cx();
    let (sizes, one) = (cx.empty(DType::F32, &[count])?, cx.empty(DType::F32, &[])?);
    fill_with(&cx, &sizes, Scalar::Int(0))?;
    fill_with(&cx, &one, Scalar::Int(1))?;
    Places::of_first(ids).combine(call, &sizes, &one.expand(&ids.sizes), Combine::Add, true)?;
    Ok(sizes)
}

/// Checks that two inputs are rows of one length.
fn check_rows(indices: &View, ids: &View) -> Result<()> {
    require!(
        indices.dim() == 1 && ids.dim() == 1 && indices.sizes == ids.sizes,
        "segment_ids and indices should have same size, and be vectors: {:?}, {:?}",
        indices.sizes.as_slice(),
        ids.sizes.as_slice()
    );
    Ok(())
}

/// A reduction into `count` segments.
fn reduce(call: &Call, count: Option<i64>, divisor: Divisor) -> Result<()> {
    let (data, indices, ids) = (call.input(0)?, call.input(1)?, call.input(2)?);
    require!(data.dim() >= 1, "Shape must be at least rank 1");
    check_rows(&indices, &ids)?;
    let count = match count {
        Some(count) => count,
        None => count_of_sorted(call, &ids)?,
    };
    require!(count >= 0, "segment ids must be >= 0");
    let mut sizes = data.sizes.clone();
    sizes[0] = count;
    let out = call.output(0, &sizes)?;
    fill(call, &out, Scalar::Int(0))?;
    if indices.numel() == 0 || out.numel() == 0 {
        return Ok(());
    }
    let chosen = Places::of_first(&indices);
    let slices = call.cx().empty(data.dtype, &chosen.slices(&data.sizes))?;
    chosen.read(call, &data, &slices)?;
    Places::of_first(&ids).combine(call, &out, &slices, Combine::Add, true)?;
    if divisor != Divisor::One {
        divide(call, &out, &sizes_of_segments(call, &ids, count)?, divisor)?;
    }
    Ok(())
}

/// The gradient: each slice that was read gets its segment's gradient, divided as the sum was.
fn gradient(call: &Call, divisor: Divisor) -> Result<()> {
    let (gradient, indices, ids, rows) =
        (call.input(0)?, call.input(1)?, call.input(2)?, call.host_number(3)?.to_i64());
    require!(gradient.dim() >= 1, "Shape must be at least rank 1");
    check_rows(&indices, &ids)?;
    require!(rows >= 0, "output_dim0 must be nonnegative, got {rows}");
    let cx = call.cx();
    let mut sizes = gradient.sizes.clone();
    sizes[0] = rows;
    let out = call.output(0, &sizes)?;
    fill(call, &out, Scalar::Int(0))?;
    if indices.numel() == 0 || out.numel() == 0 {
        return Ok(());
    }
    let of_segments = cx.empty(gradient.dtype, &gradient.sizes)?;
    super::regions::copy(call, &gradient, &of_segments)?;
    if divisor != Divisor::One {
        divide(call, &of_segments, &sizes_of_segments(call, &ids, gradient.sizes[0])?, divisor)?;
    }
    let chosen = Places::of_first(&ids);
    let slices = cx.empty(gradient.dtype, &chosen.slices(&gradient.sizes))?;
    chosen.read(call, &of_segments, &slices)?;
    Places::of_first(&indices).combine(call, &out, &slices, Combine::Add, true)
}

fn of_rows(operator: Operator) -> Operator {
    operator.of("T", FLOATS).of("Tidx", INDICES).of("Tsegmentids", INDICES)
}

/// The three operators of a divisor.
fn family(names: [&'static str; 3], divisor: Divisor) -> [Operator; 3] {
    [
        of_rows(Operator::plain(names[0], move |call: &Call| reduce(call, None, divisor))),
        of_rows(Operator::plain(names[1], move |call: &Call| {
            let count = call.host_number(3)?.to_i64();
            reduce(call, Some(count), divisor)
        }))
        .on_host(&["num_segments"]),
        of_rows(Operator::plain(names[2], move |call: &Call| gradient(call, divisor))).on_host(&["output_dim0"]),
    ]
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    [
        family(["SparseSegmentSum", "SparseSegmentSumWithNumSegments", "SparseSegmentSumGrad"], Divisor::One),
        family(["SparseSegmentMean", "SparseSegmentMeanWithNumSegments", "SparseSegmentMeanGrad"], Divisor::Size),
        family(
            ["SparseSegmentSqrtN", "SparseSegmentSqrtNWithNumSegments", "SparseSegmentSqrtNGrad"],
            Divisor::RootOfSize,
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}
