//! Reductions by segment of slices that indices select, and their gradients: sums, means, and sums
//! divided by the square root of a segment's size.

use super::segments::count_of_sorted;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{FLOATS, INDICES};
use crate::operators::common::index_access::Places;
use crate::operators::common::regions::{fill, reshaped};
use crate::require;
use dml_compute::movement::copy::{fill_with, read_numbers};
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
    let (indices, rows) = (call.input(1)?, call.host_number(3)?.to_i64());
    require!(rows >= 0, "output_dim0 must be nonnegative, got {rows}");
    check_rows(&indices, &call.input(2)?)?;
    gradient_by(call, &indices, rows, divisor)
}

/// The gradient without the slices that were not read, and the numbers of those that were, each
/// once. They are read back: their number is a size.
fn compact_gradient(call: &Call, divisor: Divisor) -> Result<()> {
    let (cx, indices) = (call.cx(), call.input(1)?);
    check_rows(&indices, &call.input(2)?)?;
    let numbers: Vec<Scalar> = if indices.numel() == 0 { Vec::new() } else { read_numbers(&cx, &indices)? };
    let numbers: Vec<i64> = numbers.into_iter().map(Scalar::to_i64).collect();
    let rows = call.host_number(3)?.to_i64();
    for &number in &numbers {
        require!((0..rows).contains(&number), "Segment id or index {number} out of range [0, {rows})");
    }
    let mut unique = numbers.clone();
    unique.sort_unstable();
    unique.dedup();
    let given = call.output(1, &[unique.len() as i64])?;
    let places = cx.empty(DType::I32, &indices.sizes)?;
    if !unique.is_empty() {
        let size = given.element_size() as usize;
        let bytes: Vec<u8> = unique.iter().flat_map(|number| number.to_le_bytes()[..size].to_vec()).collect();
        cx.upload(given.data, &bytes)?;
        let place = |number: &i64| unique.partition_point(|other| other < number) as i32;
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| place(number).to_le_bytes()).collect();
        cx.upload(places.data, &bytes)?;
    }
    gradient_by(call, &places, unique.len() as i64, divisor)
}

/// Writes the gradient, of so many rows, of which `indices` were read.
fn gradient_by(call: &Call, indices: &View, rows: i64, divisor: Divisor) -> Result<()> {
    let (gradient, ids) = (call.input(0)?, call.input(2)?);
    require!(gradient.dim() >= 1, "Shape must be at least rank 1");
    let cx = call.cx();
    let mut sizes = gradient.sizes.clone();
    sizes[0] = rows;
    let out = call.output(0, &sizes)?;
    fill(call, &out, Scalar::Int(0))?;
    if indices.numel() == 0 || out.numel() == 0 {
        return Ok(());
    }
    let of_segments = cx.empty(gradient.dtype, &gradient.sizes)?;
    crate::operators::common::regions::copy(call, &gradient, &of_segments)?;
    if divisor != Divisor::One {
        divide(call, &of_segments, &sizes_of_segments(call, &ids, gradient.sizes[0])?, divisor)?;
    }
    let chosen = Places::of_first(&ids);
    let slices = cx.empty(gradient.dtype, &chosen.slices(&gradient.sizes))?;
    chosen.read(call, &of_segments, &slices)?;
    Places::of_first(indices).combine(call, &out, &slices, Combine::Add, true)
}

fn of_rows(operator: Operator) -> Operator {
    operator.of("T", FLOATS).of("Tidx", INDICES).of("Tsegmentids", INDICES)
}

/// The operators of a divisor.
fn family(names: [&'static str; 4], divisor: Divisor) -> [Operator; 4] {
    [
        of_rows(Operator::plain(names[0], move |call: &Call| reduce(call, None, divisor))),
        of_rows(Operator::plain(names[1], move |call: &Call| {
            let count = call.host_number(3)?.to_i64();
            reduce(call, Some(count), divisor)
        }))
        .on_host(&["num_segments"]),
        of_rows(Operator::plain(names[2], move |call: &Call| gradient(call, divisor))).on_host(&["output_dim0"]),
        of_rows(Operator::plain(names[3], move |call: &Call| compact_gradient(call, divisor)))
            .on_host(&["dense_output_dim0"]),
    ]
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    [
        family(
            ["SparseSegmentSum", "SparseSegmentSumWithNumSegments", "SparseSegmentSumGrad", "SparseSegmentSumGradV2"],
            Divisor::One,
        ),
        family(
            [
                "SparseSegmentMean",
                "SparseSegmentMeanWithNumSegments",
                "SparseSegmentMeanGrad",
                "SparseSegmentMeanGradV2",
            ],
            Divisor::Size,
        ),
        family(
            [
                "SparseSegmentSqrtN",
                "SparseSegmentSqrtNWithNumSegments",
                "SparseSegmentSqrtNGrad",
                "SparseSegmentSqrtNGradV2",
            ],
            Divisor::RootOfSize,
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}
