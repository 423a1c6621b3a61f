//! How often each number occurs.

use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{BINCOUNT_WEIGHTS, INDICES, WIDE_FLOATS};
use crate::operators::common::functions;
use crate::operators::common::index_access::{Places, Update};
use crate::operators::common::regions::{fill, reshaped};
use crate::require;
use dml_compute::creation::sequences::{self, Sequence};
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::{Dims, Scalar};
use dml_kernel::DType;

/// Adds up the weights of equal numbers, or 1 for each of them if there are no weights; in rows if
/// the numbers are in rows. Numbers beyond the bins are ignored, and so are negative ones, which
/// the CPU reports.
fn count(call: &Call, binary: bool) -> Result<()> {
    let (numbers, bins, weights) = (call.input(0)?, call.host_number(1)?.to_i64(), call.input(2)?);
    require!(bins >= 0, "size ({bins}) must be non-negative");
    require!(numbers.dim() <= 2, "Shape must be at most rank 2 but is rank {}", numbers.dim());
    require!(
        weights.sizes == numbers.sizes || weights.numel() == 0,
        "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which case it acts as all weights equal \
         to 1. Received {:?}",
        weights.sizes.as_slice()
    );
    let is_rows = numbers.dim() == 2;
    let mut sizes = Dims::from_slice(if is_rows { &numbers.sizes[..1] } else { &[] });
    sizes.push(bins);
    let out = call.output(0, &sizes)?;
    fill(call, &out, Scalar::Int(0))?;
    if numbers.numel() == 0 || out.numel() == 0 {
        return Ok(());
    }
    let weights = if binary || weights.numel() == 0 {
        let one = call.cx().empty(out.dtype, &[])?;
        fill(call, &one, Scalar::Int(1))?;
        one.expand(&numbers.sizes)
    } else {
        weights
    };
    let places = if is_rows {
        // The number of its row is the first index of each element.
        let rows = call.cx().empty(DType::I32, &numbers.sizes[..1])?;
        sequences::write(&call.cx(), Sequence::Arange, &[Scalar::Int(0), Scalar::Int(1)], &rows)?;
        let rows = rows.as_strided(&numbers.sizes, &[1, 0], 0);
        Places { sizes: numbers.sizes.clone(), indices: vec![rows, numbers] }
    } else {
        Places::of_first(&numbers)
    };
    places.update(call, &out, &weights, if binary { Update::Assign } else { Update::Add })
}

/// `HistogramFixedWidth`: how many numbers are in each of the bins, which are of one width. Those
/// outside of the range are in the first and the last bin.
fn histogram(call: &Call) -> Result<()> {
    let (numbers, range, bins) = (call.input(0)?, call.host_numbers(1)?, call.host_number(2)?.to_i64());
    require!(range.len() == 2, "value_range should be a vector of 2 elements, got {}", range.len());
    let [low, high] = [range[0].to_f64(), range[1].to_f64()];
    require!(low < high, "value_range should satisfy value_range[0] < value_range[1], but got '[{low}, {high}]'");
    require!(bins > 0, "nbins should be a positive number, but got '{bins}'");
    let out = call.output(0, &[bins])?;
    fill(call, &out, Scalar::Int(0))?;
    if numbers.numel() == 0 {
        return Ok(());
    }
    let cx = call.cx();
    let width = (high - low) / bins as f64;
    let places = cx.empty(DType::I32, &[numbers.numel()])?;
    let given = [low, width, (bins - 1) as f64].map(|number| Input::Number(Scalar::Double(number), numbers.dtype));
    let operands: Vec<Input> = std::iter::once(Input::Tensor(reshaped(&numbers, &places.sizes))).chain(given).collect();
    kernel::run(&cx, &functions::BIN, &[&places], &operands, numbers.dtype)?;
    let one = cx.empty(out.dtype, &[])?;
    fill(call, &one, Scalar::Int(1))?;
    Places::of_first(&places).update(call, &out, &one.expand(&places.sizes), Update::Add)
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        Operator::plain("Bincount", |call: &Call| count(call, false)).of("T", BINCOUNT_WEIGHTS).on_host(&["size"]),
        Operator::new("DenseBincount", |attributes: &Attributes| {
            let binary = attributes.bool("binary_output")?;
            Ok(move |call: &Call| count(call, binary))
        })
        .of("T", BINCOUNT_WEIGHTS)
        .of("Tidx", INDICES)
        .on_host(&["size"]),
        Operator::plain("HistogramFixedWidth", histogram)
            .of("T", WIDE_FLOATS)
            .of("dtype", INDICES)
            .on_host(&["value_range", "nbins"]),
    ]
}
