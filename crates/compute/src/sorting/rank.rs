//! Elements selected by rank along a dimension: topk, kthvalue, median. NaN is the largest; of
//! equal elements the first ones are selected.

use crate::context::Context;
use crate::error::Result;
use crate::pointwise::kernel::{self, Input, Operand};
use crate::primitives::radix_pass::KeySource;
use crate::primitives::radix_sort;
use crate::primitives::row_operands::{Operands, Take};
use crate::reduction::axes::Axes;
use crate::reduction::sum;
use crate::scalar::Scalar as Number;
use crate::sorting::functions::{MEDIAN_RANK, SORT_IS_NUMBER};
use crate::sorting::select::{Collect, Selection};
use crate::sorting::sort::emit;
use crate::sorting::{key, row_select, tile};
use crate::view::View;
use dml_engine::Verdict;
use dml_kernel::DType;

/// Writes the `k` first elements of each row; `values` and `indices` have size `k` in its
/// dimension.
pub fn first(cx: &Context, o: &Operands, k: i64, descending: bool, sorted: bool) -> Result<()> {
    let by_selection = |cx: &Context| row_select::run(cx, o, k, descending);
    if row_select::takes(o.n, k) && cx.run_if_accepted(Verdict::Unoptimised, by_selection)? {
        return Ok(());
    }
    let run = |cx: &Context, in_tile| {
        if in_tile {
            return tile::run(cx, o, None, o.n, descending, Take::First(k as u32));
        }
        topk_of_long_rows(cx, o, k, descending, sorted)
    };
    cx.run_accepted(o.n <= tile::max_row(cx), |in_tile| in_tile.then_some(false), run)
}

fn topk_of_long_rows(cx: &Context, o: &Operands, k: i64, descending: bool, sorted: bool) -> Result<()> {
    // Elements that are not adjacent are gathered once.
    let keys = o.across().then(|| key::of_rows(cx, o, descending)).transpose()?;
    let from = keys.as_ref().map_or(KeySource::Elements(o, descending), |keys| KeySource::Keys(keys, None));
    let selection = selection(o, from, Selection::same_rank(cx, o.rows, k - 1)?);
    let bits = selection.bits;
    let (keys, positions) = selection.run(cx, Collect::Lowest(k))?;
    let by_tile = |cx: &Context| tile::run(cx, o, Some(&positions), k, descending, Take::First(k as u32));
    if sorted && k <= tile::max_row(cx) && cx.run_if_accepted(Verdict::Unoptimised, by_tile)? {
        return Ok(());
    }
    let positions =
        if sorted { radix_sort::sort_rows(cx, &keys, Some(&positions), o.rows, bits)?.1 } else { positions };
    emit(cx, o, &positions, k)
}

/// A selection in the rows of the input, whose keys are `from`.
fn selection<'t>(o: &Operands, from: KeySource<'t>, ranks: View) -> Selection<'t> {
    let dtype = o.tensors[0].dtype;
    Selection { from, dtype: key::dtype_of(dtype), bits: key::bits(dtype), rows: o.rows, n: o.n, ranks }
}

/// Writes one element of each row: `values` and `indices` have size 1 in its dimension.
pub fn one(cx: &Context, o: &Operands, take: Take) -> Result<()> {
    let run = |cx: &Context, in_tile| {
        if in_tile { tile::run(cx, o, None, o.n, false, take) } else { one_of_long_rows(cx, o, take) }
    };
    cx.run_accepted(o.n <= tile::max_row(cx), |in_tile| in_tile.then_some(false), run)
}

fn one_of_long_rows(cx: &Context, o: &Operands, take: Take) -> Result<()> {
    let dtype = o.tensors[0].dtype;
    let keys = key::of_rows(cx, o, false)?;
    let ranks = match take {
        Take::Median { ignore_nan } if dtype.is_float() => median_ranks(cx, &keys, o, ignore_nan)?,
        Take::Median { .. } => Selection::same_rank(cx, o.rows, (o.n - 1) / 2)?,
        Take::Rank(rank) | Take::First(rank) => Selection::same_rank(cx, o.rows, i64::from(rank))?,
    };
    let (_, positions) = selection(o, KeySource::Keys(&keys, None), ranks).run(cx, Collect::One)?;
    emit(cx, o, &positions, 1)
}

/// The rank of the median of each row of keys: of its numbers, or of the first NaN.
fn median_ranks(cx: &Context, keys: &View, o: &Operands, ignore_nan: bool) -> Result<View> {
    let keys = keys.as_strided(&[o.rows, o.n], &[o.n, 1], 0);
    let (numbers, count) = (cx.empty(DType::Bool, &keys.sizes)?, cx.empty(DType::I64, &[o.rows])?);
    let nan = Number::Int(key::largest(o.tensors[0].dtype) as i64);
    let inputs = [Input::Tensor(keys.clone()), Input::Number(nan, keys.dtype)];
    kernel::run(cx, &SORT_IS_NUMBER, &[&numbers], &inputs, keys.dtype)?;
    sum::count_into(cx, &numbers, &count, Axes::of_dims(&[1], 2, false))?;
    let ranks = cx.empty(DType::U32, &[o.rows])?;
    let inputs = [Operand::Tensor(&count), Operand::Number(Number::Int(o.n))];
    kernel::run_operands(cx, MEDIAN_RANK.with([ignore_nan]), &[&ranks], &inputs, DType::I64)?;
    Ok(ranks)
}
