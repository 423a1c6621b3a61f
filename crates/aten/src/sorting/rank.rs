//! The operators topk, kthvalue and median: elements selected by rank along a dimension. NaN is the
//! largest; of equal elements the first ones are selected.

use crate::operator::argument::Outs;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::tensor::overlap;
use crate::{check, operators};
use dml_compute::movement::copy::{as_contiguous, fill_with, separate};
use dml_compute::primitives::row_operands::{Operands, Take};
use dml_compute::scalar::Scalar as Number;
use dml_compute::sorting::rank::{first, one};
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    topk(self, k, dim, largest, sorted, outs) {
        "aten::topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)",
        "aten::topk.values(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)",
    }
    kthvalue(self, k, dim, keepdim, outs) {
        "aten::kthvalue.values(Tensor self, SymInt k, int dim=-1, bool keepdim=False, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)",
    }
    median_of_tensor(self; false) {
        "aten::median(Tensor self) -> Tensor",
    }
    median_of_tensor(self; true) {
        "aten::nanmedian(Tensor self) -> Tensor",
    }
    median(self, dim, keepdim, outs; false) {
        "aten::median.dim_values(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)",
    }
    median(self, dim, keepdim, outs; true) {
        "aten::nanmedian.dim_values(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)",
    }
}

fn topk(call: &mut Call, input: &View, k: i64, dim: i64, largest: bool, sorted: bool, outs: Outs) -> Result<()> {
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
        let input = without_overlap(call, input, &values)?;
        first(call, &Operands::new(&input, dim, &values, &indices), k, largest, sorted)?;
    }
    call.ret(values);
    call.ret(indices);
    Ok(())
}

/// The input, or a copy if it overlaps the values.
fn without_overlap(call: &Call, input: &View, values: &View) -> Result<View> {
    overlap::check_internal(values)?;
    Ok(separate(call, values, input)?)
}

/// A result with the sizes of a reduction of `dim`, and a view of it that includes the dimension.
pub fn reduced(
    call: &Call,
    out: Option<&View>,
    dtype: DType,
    input: &View,
    dim: usize,
    keep: bool,
) -> Result<[View; 2]> {
    let axes = crate::reduction::axes::axes_listed(call, &[dim as i64], input.dim(), keep)?;
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

/// Selects one element of each row along a dimension; `take` gets the dimension and the length of a
/// row.
fn over_dim(
    call: &mut Call,
    name: &str,
    input: &View,
    dim: i64,
    keep: bool,
    outs: Outs,
    take: impl FnOnce(usize, i64) -> Result<Take>,
) -> Result<()> {
    let dim = call.wrap_dim(dim, input.dim())?;
    let n = input.sizes.get(dim).copied().unwrap_or(1);
    check!(n != 0, Index, "{name}(): Expected reduction dim {dim} to have non-zero size.");
    let take = take(dim, n)?;
    // A 0-dim tensor is its own element of any rank: the CPU only copies it.
    check!(input.dtype != DType::Bool || input.dim() == 0, NotImplemented, "\"{name}_out\" not implemented for 'Bool'");
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    let [values, value_rows] = reduced(call, given(0), input.dtype, input, dim, keep)?;
    let [indices, index_rows] = reduced(call, given(1), DType::I64, input, dim, keep)?;
    if values.numel() > 0 {
        let input = without_overlap(call, input, &values)?;
        one(call, &Operands::new(&input, dim, &value_rows, &index_rows), take)?;
    }
    call.ret(values);
    call.ret(indices);
    Ok(())
}

fn kthvalue(call: &mut Call, input: &View, k: i64, dim: i64, keep: bool, outs: Outs) -> Result<()> {
    over_dim(call, "kthvalue", input, dim, keep, outs, |dim, n| {
        check!((1..=n).contains(&k), Runtime, "kthvalue(): selected number k out of range for dimension {dim}");
        Ok(Take::Rank(k as u32 - 1))
    })
}

/// The lower of two middle elements.
fn median(call: &mut Call, input: &View, dim: i64, keep: bool, outs: Outs, ignore_nan: bool) -> Result<()> {
    over_dim(call, "median", input, dim, keep, outs, |_, _| Ok(Take::Median { ignore_nan }))
}

fn median_of_tensor(call: &mut Call, input: &View, ignore_nan: bool) -> Result<()> {
    let empty = input.numel() == 0;
    check!(input.dtype != DType::Bool || empty, NotImplemented, "\"median_cpu\" not implemented for 'Bool'");
    let out = call.empty(input.dtype, &[])?;
    if input.numel() == 0 {
        // NaN, or the integer to which the CPU converts it.
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
