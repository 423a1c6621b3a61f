//! Reductions of slices by segment: slices with equal numbers.

use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{FIELDS_AND_INDICES, FLOATS, INDICES, NUMBERS_AND_I32, REALS_AND_I32};
use crate::operators::common::index_access::Places;
use crate::operators::common::regions::fill;
use crate::require;
use dml_compute::bounds::Bounds;
use dml_compute::movement::copy::read_numbers;
use dml_compute::primitives::combine::Combine;
use dml_compute::{Scalar, View};
use dml_kernel::DType;

/// The result for a segment without slices, as TensorFlow documents it.
fn empty_segment(combine: Combine, dtype: DType) -> Scalar {
    let bounds = Bounds::of(dtype);
    let number = |is_max: bool| {
        if dtype.is_float() {
            let (low, high) = bounds.of_floats();
            Scalar::Double(if is_max { low } else { high })
        } else {
            let (low, high) = bounds.of_integers();
            Scalar::Int((if is_max { low } else { high }) as i64)
        }
    };
    match combine {
        Combine::Mul => Scalar::Int(1),
        Combine::Max => number(true),
        Combine::Min => number(false),
        _ => Scalar::Int(0),
    }
}

/// A reduction into a given number of segments. Slices of a negative segment are dropped, and so
/// are those of a segment that there is not, which the CPU reports.
fn unsorted(name: &'static str, combine: Combine, dtypes: &'static [DType]) -> Operator {
    Operator::plain(name, move |call: &Call| {
        let (data, ids, count) = (call.input(0)?, call.input(1)?, call.host_number(2)?.to_i64());
        let rank = ids.dim();
        require!(count >= 0, "Input num_segments == {count} must not be negative.");
        require!(
            rank <= data.dim() && data.sizes[..rank] == ids.sizes[..],
            "data.shape = {:?} does not start with segment_ids.shape = {:?}",
            data.sizes.as_slice(),
            ids.sizes.as_slice()
        );
        let sizes: Vec<i64> = std::iter::once(count).chain(data.sizes[rank..].iter().copied()).collect();
        let out = call.output(0, &sizes)?;
        fill(call, &out, empty_segment(combine, out.dtype))?;
        Places::of_first(&ids).combine(call, &out, &data, combine, true)
    })
    .of("T", dtypes)
    .of("Tindices", INDICES)
    .on_host(&["num_segments"])
}

/// One more than the last of a row of sorted segment numbers, which is read back: it is a size.
pub fn count_of_sorted(call: &Call, ids: &View) -> Result<i64> {
    require!(ids.dim() == 1, "segment_ids should be a vector, got shape {:?}", ids.sizes.as_slice());
    let n = ids.sizes[0];
    if n == 0 {
        return Ok(0);
    }
    let last: Vec<Scalar> = read_numbers(&call.cx(), &ids.narrow(0, n - 1, 1))?;
    let count = last.first().map_or(0, |last| last.to_i64().saturating_add(1));
    require!(count > 0, "segment ids must be >= 0");
    Ok(count)
}

/// A reduction into as many segments as there are; their numbers are sorted.
fn sorted(name: &'static str, combine: Combine, dtypes: &'static [DType]) -> Operator {
    Operator::plain(name, move |call: &Call| {
        let (data, ids) = (call.input(0)?, call.input(1)?);
        let fits = data.dim() >= 1 && ids.dim() == 1 && data.sizes[0] == ids.sizes[0];
        require!(fits, "segment_ids should be the same size as dimension 0 of input.");
        let mut sizes = data.sizes.clone();
        sizes[0] = count_of_sorted(call, &ids)?;
        let out = call.output(0, &sizes)?;
        let empty = if combine == Combine::Mul { 1 } else { 0 };
        fill(call, &out, Scalar::Int(empty))?;
        Places::of_first(&ids).combine(call, &out, &data, combine, false)
    })
    .of("T", dtypes)
    .of("Tindices", INDICES)
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        unsorted("UnsortedSegmentSum", Combine::Add, NUMBERS_AND_I32),
        unsorted("UnsortedSegmentProd", Combine::Mul, REALS_AND_I32),
        unsorted("UnsortedSegmentMax", Combine::Max, REALS_AND_I32),
        unsorted("UnsortedSegmentMin", Combine::Min, REALS_AND_I32),
        sorted("SegmentSum", Combine::Add, FIELDS_AND_INDICES),
        sorted("SegmentMean", Combine::Mean, FLOATS),
        sorted("SegmentProd", Combine::Mul, FLOATS),
        sorted("SegmentMax", Combine::Max, FLOATS),
        sorted("SegmentMin", Combine::Min, FLOATS),
    ]
}
