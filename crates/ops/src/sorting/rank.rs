//! Elements chosen by rank along a dimension: topk, kthvalue, median. NaN is the largest; of equal elements the first
//! ones are chosen.

use super::key;
use super::select::{Collect, Selection};
use super::sort::emit;
use super::{row_select, tile};
use crate::movement::copy::{as_contiguous, fill_with, separate};
use crate::operator::argument::Outs;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::structured;
use crate::pointwise::kernel::{self, Input, Operand, Variant};
use crate::primitives::radix_pass::Place;
use crate::primitives::radix_sort;
use crate::primitives::row_operands::{Operands, Take};
use crate::reduction::{Axes, sum};
use crate::tensor::{Tensor, overlap};
use crate::{check, operators};
use dml_kernel::DType;

operators! {
    topk(self, k, dim, largest, sorted, outs) {
        "aten::topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)",
        "aten::topk.values(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)",
    }
    kthvalue(self, k, dim, keepdim, outs) {
        "aten::kthvalue.values(Tensor self, SymInt k, int dim=-1, bool keepdim=False, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)",
    }
    median_of_all(self; false) {
        "aten::median(Tensor self) -> Tensor",
    }
    median_of_all(self; true) {
        "aten::nanmedian(Tensor self) -> Tensor",
    }
    median(self, dim, keepdim, outs; false) {
        "aten::median.dim_values(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)",
    }
    median(self, dim, keepdim, outs; true) {
        "aten::nanmedian.dim_values(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)",
    }
}

fn topk(call: &mut Call, input: &Tensor, k: i64, dim: i64, largest: bool, sorted: bool, outs: Outs) -> Result<()> {
    let dim = call.wrap_dim(dim, input.dim())?;
    let n = input.sizes.get(dim).copied().unwrap_or(1);
    check!((0..=n).contains(&k), Runtime, "selected index k out of range");
    check!(input.dtype != DType::Bool, Dtype, "topk does not support bool dtypes");
    let mut sizes = input.sizes.clone();
    if let Some(size) = sizes.get_mut(dim) {
        *size = k;
    }
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    let values = structured::result(call, given(0), input.dtype, &sizes)?;
    let indices = structured::result(call, given(1), DType::I64, &sizes)?;
    [&values, &indices].into_iter().try_for_each(|out| overlap::check_none(out, &[input]))?;
    if values.numel() > 0 {
        let input = apart(call, input, &values)?;
        first(call, &Operands::new(&input, dim, &values, &indices), k, largest, sorted)?;
    }
    call.ret(values);
    call.ret(indices);
    Ok(())
}

/// The `k` first elements of each row; `values` and `indices` have `k` in its dimension.
pub fn first(call: &Call, o: &Operands, k: i64, descending: bool, sorted: bool) -> Result<()> {
    if row_select::takes(o.n, k) {
        return row_select::run(call, o, k, descending);
    }
    if o.n <= tile::max_row(call) {
        return tile::run(call, o, None, o.n, descending, Take::First(k as u32));
    }
    first_of_long(call, o, k, descending, sorted)
}

fn first_of_long(call: &Call, o: &Operands, k: i64, descending: bool, sorted: bool) -> Result<()> {
    // Elements that are far apart are fetched once.
    let keys = o.across().then(|| key::of_rows(call, o, descending)).transpose()?;
    let from = keys.as_ref().map_or(Place::Elements(o, descending), |keys| Place::Keys(keys, None));
    let selection = selection(o, from, Selection::same_rank(call, o.rows, k - 1)?);
    let bits = selection.bits;
    let (keys, positions) = selection.run(call, Collect::Lowest(k))?;
    if sorted && k <= tile::max_row(call) {
        return tile::run(call, o, Some(&positions), k, descending, Take::First(k as u32));
    }
    let positions =
        if sorted { radix_sort::sort_rows(call, &keys, Some(&positions), o.rows, bits)?.1 } else { positions };
    emit(call, o, &positions, k)
}

/// A selection in the rows of the input, whose keys are in `from`.
fn selection<'t>(o: &Operands, from: Place<'t>, ranks: Tensor) -> Selection<'t> {
    let dtype = o.tensors[0].dtype;
    Selection { from, dtype: key::dtype_of(dtype), bits: key::bits(dtype), rows: o.rows, n: o.n, ranks }
}

/// The input, or a copy if the values overwrite it before it has been read.
fn apart(call: &Call, input: &Tensor, values: &Tensor) -> Result<Tensor> {
    overlap::check_internal(values)?;
    separate(call, values, input)
}

/// One element of each row: `values` and `indices` have its dimension with size 1.
fn one(call: &Call, o: &Operands, take: Take) -> Result<()> {
    if o.n <= tile::max_row(call) {
        return tile::run(call, o, None, o.n, false, take);
    }
    let dtype = o.tensors[0].dtype;
    let keys = key::of_rows(call, o, false)?;
    let ranks = match take {
        Take::Median { ignore_nan } if dtype.is_float() => median_ranks(call, &keys, o, ignore_nan)?,
        Take::Median { .. } => Selection::same_rank(call, o.rows, (o.n - 1) / 2)?,
        Take::Rank(rank) | Take::First(rank) => Selection::same_rank(call, o.rows, i64::from(rank))?,
    };
    let (_, positions) = selection(o, Place::Keys(&keys, None), ranks).run(call, Collect::One)?;
    emit(call, o, &positions, 1)
}

/// The rank of the median of each row of keys: of its numbers, or of the first NaN.
fn median_ranks(call: &Call, keys: &Tensor, o: &Operands, ignore_nan: bool) -> Result<Tensor> {
    let keys = keys.as_strided(&[o.rows, o.n], &[o.n, 1], 0);
    let (numbers, count) = (call.empty(DType::Bool, &keys.sizes)?, call.empty(DType::I64, &[o.rows])?);
    let nan = Number::Int(key::largest(o.tensors[0].dtype) as i64);
    let inputs = [Input::Tensor(keys.clone()), Input::Number(nan, keys.dtype)];
    kernel::run(call, "sort_is_number", &[&numbers], &inputs, keys.dtype, |_, v| vec![v[0].ne(v[1])])?;
    sum::count_into(call, &numbers, &count, Axes::listed(call, &[1], 2, false)?)?;
    let ranks = call.empty(DType::U32, &[o.rows])?;
    let (variant, inputs) =
        (Variant::options([ignore_nan]), [Operand::Tensor(&count), Operand::Number(Number::Int(o.n))]);
    kernel::run_variant(call, "median_rank", variant, &[&ranks], &inputs, DType::I64, &|_, v| {
        let middle = (v[0].max(1) - 1) / 2;
        vec![if ignore_nan { middle } else { v[0].lt(v[1]).select(v[0], middle) }]
    })?;
    Ok(ranks)
}

/// A result of the sizes that a reduction of `dim` gives, and the same with the dimension in it.
pub fn reduced(
    call: &Call,
    out: Option<&Tensor>,
    dtype: DType,
    input: &Tensor,
    dim: usize,
    keep: bool,
) -> Result<[Tensor; 2]> {
    let axes = Axes::listed(call, &[dim as i64], input.dim(), keep)?;
    let out = structured::result(call, out, dtype, &axes.sizes(&input.sizes))?;
    overlap::check_none(&out, &[input])?;
    let mut view = (out.sizes.clone(), out.strides.clone());
    if !keep && input.dim() > 0 {
        view.0.insert(dim, 1);
        view.1.insert(dim, 1);
    }
    let view = out.as_strided(&view.0, &view.1, 0);
    Ok([out, view])
}

/// An element of each row along a dimension; `take` gets the dimension and the length of a row.
fn over_dim(
    call: &mut Call,
    name: &str,
    input: &Tensor,
    dim: i64,
    keep: bool,
    outs: Outs,
    take: impl FnOnce(usize, i64) -> Result<Take>,
) -> Result<()> {
    let dim = call.wrap_dim(dim, input.dim())?;
    let n = input.sizes.get(dim).copied().unwrap_or(1);
    check!(n != 0, Index, "{name}(): Expected reduction dim {dim} to have non-zero size.");
    let take = take(dim, n)?;
    // A single element is its own of any rank: the CPU only copies it.
    check!(input.dtype != DType::Bool || input.dim() == 0, NotImplemented, "\"{name}_out\" not implemented for 'Bool'");
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    let [values, value_rows] = reduced(call, given(0), input.dtype, input, dim, keep)?;
    let [indices, index_rows] = reduced(call, given(1), DType::I64, input, dim, keep)?;
    if values.numel() > 0 {
        let input = apart(call, input, &values)?;
        one(call, &Operands::new(&input, dim, &value_rows, &index_rows), take)?;
    }
    call.ret(values);
    call.ret(indices);
    Ok(())
}

fn kthvalue(call: &mut Call, input: &Tensor, k: i64, dim: i64, keep: bool, outs: Outs) -> Result<()> {
    over_dim(call, "kthvalue", input, dim, keep, outs, |dim, n| {
        check!((1..=n).contains(&k), Runtime, "kthvalue(): selected number k out of range for dimension {dim}");
        Ok(Take::Rank(k as u32 - 1))
    })
}

/// The lower of two middle elements.
fn median(call: &mut Call, input: &Tensor, dim: i64, keep: bool, outs: Outs, ignore_nan: bool) -> Result<()> {
    over_dim(call, "median", input, dim, keep, outs, |_, _| Ok(Take::Median { ignore_nan }))
}

fn median_of_all(call: &mut Call, input: &Tensor, ignore_nan: bool) -> Result<()> {
    let empty = input.numel() == 0;
    check!(input.dtype != DType::Bool || empty, NotImplemented, "\"median_cpu\" not implemented for 'Bool'");
    let out = call.empty(input.dtype, &[])?;
    if input.numel() == 0 {
        // NaN, and what the CPU makes of it as an integer.
        let nothing = match input.dtype {
            DType::I32 => Number::Int(i64::from(i32::MIN)),
            DType::I64 => Number::Int(i64::MIN),
            d if d.is_integer() => Number::Int(0),
            DType::Bool => Number::Bool(true),
            _ => Number::Double(f64::NAN),
        };
        fill_with(call, &out, nothing)?;
    } else {
        let row = as_contiguous(call, input)?.as_strided(&[input.numel()], &[1], 0);
        let indices = call.empty(DType::I64, &[1])?;
        let value = out.as_strided(&[1], &[1], 0);
        one(call, &Operands::new(&row, 0, &value, &indices), Take::Median { ignore_nan })?;
    }
    call.ret(out);
    Ok(())
}
