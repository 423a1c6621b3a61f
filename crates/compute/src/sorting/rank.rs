//! Elements chosen by rank along a dimension: topk, kthvalue, median. NaN is the largest; of equal
//! elements the first ones are chosen.

use crate::context::Context;
use crate::error::Result;
use crate::pointwise::kernel::{self, Input, Operand};
use crate::primitives::radix_pass::Place;
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
use dml_kernel::DType;

/// The `k` first elements of each row; `values` and `indices` have `k` in its dimension.
pub fn first(cx: &Context, o: &Operands, k: i64, descending: bool, sorted: bool) -> Result<()> {
    if row_select::takes(o.n, k) {
        return row_select::run(cx, o, k, descending);
    }
    if o.n <= tile::max_row(cx) {
        return tile::run(cx, o, None, o.n, descending, Take::First(k as u32));
    }
    first_of_long(cx, o, k, descending, sorted)
}

fn first_of_long(cx: &Context, o: &Operands, k: i64, descending: bool, sorted: bool) -> Result<()> {
    // Elements that are far apart are fetched once.
    let keys = o.across().then(|| key::of_rows(cx, o, descending)).transpose()?;
    let from = keys.as_ref().map_or(Place::Elements(o, descending), |keys| Place::Keys(keys, None));
    let selection = selection(o, from, Selection::same_rank(cx, o.rows, k - 1)?);
    let bits = selection.bits;
    let (keys, positions) = selection.run(cx, Collect::Lowest(k))?;
    if sorted && k <= tile::max_row(cx) {
        return tile::run(cx, o, Some(&positions), k, descending, Take::First(k as u32));
    }
    let positions =
        if sorted { radix_sort::sort_rows(cx, &keys, Some(&positions), o.rows, bits)?.1 } else { positions };
    emit(cx, o, &positions, k)
}

/// A selection in the rows of the input, whose keys are in `from`.
fn selection<'t>(o: &Operands, from: Place<'t>, ranks: View) -> Selection<'t> {
    let dtype = o.tensors[0].dtype;
    Selection { from, dtype: key::dtype_of(dtype), bits: key::bits(dtype), rows: o.rows, n: o.n, ranks }
}

/// One element of each row: `values` and `indices` have its dimension with size 1.
pub fn one(cx: &Context, o: &Operands, take: Take) -> Result<()> {
    if o.n <= tile::max_row(cx) {
        return tile::run(cx, o, None, o.n, false, take);
    }
    let dtype = o.tensors[0].dtype;
    let keys = key::of_rows(cx, o, false)?;
    let ranks = match take {
        Take::Median { ignore_nan } if dtype.is_float() => median_ranks(cx, &keys, o, ignore_nan)?,
        Take::Median { .. } => Selection::same_rank(cx, o.rows, (o.n - 1) / 2)?,
        Take::Rank(rank) | Take::First(rank) => Selection::same_rank(cx, o.rows, i64::from(rank))?,
    };
    let (_, positions) = selection(o, Place::Keys(&keys, None), ranks).run(cx, Collect::One)?;
    emit(cx, o, &positions, 1)
}

/// The rank of the median of each row of keys: of its numbers, or of the first NaN.
fn median_ranks(cx: &Context, keys: &View, o: &Operands, ignore_nan: bool) -> Result<View> {
    let keys = keys.as_strided(&[o.rows, o.n], &[o.n, 1], 0);
    let (numbers, count) = (cx.empty(DType::Bool, &keys.sizes)?, cx.empty(DType::I64, &[o.rows])?);
    let nan = Number::Int(key::largest(o.tensors[0].dtype) as i64);
    let inputs = [Input::Tensor(keys.clone()), Input::Number(nan, keys.dtype)];
    kernel::run(cx, &SORT_IS_NUMBER, &[&numbers], &inputs, keys.dtype)?;
    sum::count_into(cx, &numbers, &count, Axes::listed(&[1], 2, false))?;
    let ranks = cx.empty(DType::U32, &[o.rows])?;
    let inputs = [Operand::Tensor(&count), Operand::Number(Number::Int(o.n))];
    kernel::run_operands(cx, MEDIAN_RANK.with([ignore_nan]), &[&ranks], &inputs, DType::I64)?;
    Ok(ranks)
}
