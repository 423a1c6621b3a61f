//! The largest and smallest elements, and their indices. NaN counts as larger and smaller than
//! every number; of equal elements the first one is chosen.

use crate::operator::argument::{Out, Outs};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::tensor::overlap;
use crate::{check, operators};
use dml_compute::reduction::axes::Axes;
use dml_compute::reduction::extremum::{ElementAndIndex, ElementOnly, Extreme, ExtremumOutput, both, run};
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    over_dims(self, dim, keepdim, out; Extreme::Max) {
        "aten::amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
        "aten::amax.out(Tensor self, int[1] dim=[], bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
    }
    over_dims(self, dim, keepdim, out; Extreme::Min) {
        "aten::amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
        "aten::amin.out(Tensor self, int[1] dim=[], bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
    }
    aminmax(self, dim = None, keepdim = false, outs) {
        "aten::aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
        "aten::aminmax.out(Tensor self, *, int? dim=None, bool keepdim=False, Tensor(a!) min, Tensor(b!) max) -> (Tensor(a!) min, Tensor(b!) max)",
        "aten::_aminmax(Tensor self) -> (Tensor, Tensor)",
        "aten::_aminmax.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)",
    }
    of_all(self, out; Extreme::Max) {
        "aten::max(Tensor self) -> Tensor",
        "aten::max.unary_out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    with_indices(self, dim, keepdim, outs; Extreme::Max) {
        "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        "aten::max.dim_max(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) max, Tensor(b!) max_values) -> (Tensor(a!) values, Tensor(b!) indices)",
    }
    arg(self, dim, keepdim, out; Extreme::Max) {
        hot "aten::argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
        "aten::argmax.out(Tensor self, int? dim=None, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
    }
    of_all(self, out; Extreme::Min) {
        "aten::min(Tensor self) -> Tensor",
        "aten::min.unary_out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    with_indices(self, dim, keepdim, outs; Extreme::Min) {
        "aten::min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        "aten::min.dim_min(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) min, Tensor(b!) min_indices) -> (Tensor(a!) values, Tensor(b!) indices)",
    }
    arg(self, dim, keepdim, out; Extreme::Min) {
        "aten::argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
        "aten::argmin.out(Tensor self, int? dim=None, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// Checks that no reduced dimension is empty.
fn check_not_empty(name: &str, input: &View, axes: Axes) -> Result<()> {
    if input.numel() != 0 {
        return Ok(());
    }
    for (d, &n) in input.sizes.iter().enumerate() {
        check!(n != 0 || !axes.reduces(d), Index, "{name}(): Expected reduction dim {d} to have non-zero size.");
    }
    Ok(())
}

fn check_same_dtype(out: Out, dtype: DType) -> Result<()> {
    if let Some(given) = out.given() {
        check!(
            given.dtype == dtype,
            Runtime,
            "Expected the dtype for input and out to match, but got {dtype} for input's dtype and {} for out's dtype.",
            given.dtype
        );
    }
    Ok(())
}

fn over_dims(call: &mut Call, input: &View, dims: &[i64], keep: bool, out: Out, extreme: Extreme) -> Result<()> {
    let name = if extreme == Extreme::Max { "amax" } else { "amin" };
    check_same_dtype(out, input.dtype)?;
    let axes = crate::reduction::axes::axes_of(call, Some(dims), input.dim(), keep)?;
    check!(
        input.numel() > 0 || !dims.is_empty(),
        Runtime,
        "{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the \
         'dim' argument."
    );
    check_not_empty(name, input, axes)?;
    let out = call.result(out.given(), input.dtype, &axes.sizes(&input.sizes))?;
    run(call, &ElementOnly { extreme, dtype: input.dtype }, input, &[&out], axes)?;
    call.ret(out);
    Ok(())
}

fn of_all(call: &mut Call, input: &View, out: Out, extreme: Extreme) -> Result<()> {
    let name = if extreme == Extreme::Max { "max" } else { "min" };
    check!(
        input.numel() > 0 || out.given().is_some(),
        Runtime,
        "{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the \
         'dim' argument."
    );
    let out = call.result(out.given(), input.dtype, &[])?;
    run(call, &ElementOnly { extreme, dtype: input.dtype }, input, &[&out], Axes::all(false))?;
    call.ret(out);
    Ok(())
}

fn aminmax(call: &mut Call, input: &View, dim: Option<i64>, keep: bool, outs: Outs) -> Result<()> {
    let axes = crate::reduction::axes::axes_of(call, Some(dim.as_slice()), input.dim(), keep)?;
    check!(
        dim.is_some() || input.numel() > 0,
        Runtime,
        "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
    );
    check_not_empty("aminmax", input, axes)?;
    let sizes = axes.sizes(&input.sizes);
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    let min = structured::result(call, given(0), input.dtype, &sizes)?;
    let max = structured::result(call, given(1), input.dtype, &sizes)?;
    check!(
        !dml_compute::view::overlap::ranges_overlap(&min, &max),
        Value,
        "aminmax(): the `min` and `max` out= tensors must not overlap."
    );
    [&min, &max].into_iter().try_for_each(|out| overlap::check_none(out, &[input]))?;
    both(call, input, [&min, &max], axes)?;
    call.ret(min);
    call.ret(max);
    Ok(())
}

fn with_indices(call: &mut Call, input: &View, dim: i64, keep: bool, outs: Outs, extreme: Extreme) -> Result<()> {
    let name = if extreme == Extreme::Max { "max" } else { "min" };
    let axes = crate::reduction::axes::axes_listed(call, &[dim], input.dim(), keep)?;
    check_not_empty(name, input, axes)?;
    let sizes = axes.sizes(&input.sizes);
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    let values = structured::result(call, given(0), input.dtype, &sizes)?;
    let indices = structured::result(call, given(1), DType::I64, &sizes)?;
    [&values, &indices].into_iter().try_for_each(|out| overlap::check_none(out, &[input]))?;
    let fold =
        ElementAndIndex { extreme, dtype: input.dtype, yields: ExtremumOutput::ValueAndIndex, nan_is_worst: false };
    run(call, &fold, input, &[&values, &indices], axes)?;
    call.ret(values);
    call.ret(indices);
    Ok(())
}

fn arg(call: &mut Call, input: &View, dim: Option<i64>, keep: bool, out: Out, extreme: Extreme) -> Result<()> {
    let name = if extreme == Extreme::Max { "argmax" } else { "argmin" };
    let axes = crate::reduction::axes::axes_of(call, Some(dim.as_slice()), input.dim(), keep)?;
    check!(
        input.numel() > 0 || dim.is_some(),
        Index,
        "{name}(): Expected reduction dim to be specified for input.numel() == 0."
    );
    check_not_empty(name, input, axes)?;
    check!(input.dtype != DType::Bool, Dtype, "{name}(): does not support bool input");
    let out = structured::result(call, out.given(), DType::I64, &axes.sizes(&input.sizes))?;
    run(
        call,
        &ElementAndIndex { extreme, dtype: input.dtype, yields: ExtremumOutput::Index, nan_is_worst: false },
        input,
        &[&out],
        axes,
    )?;
    call.ret(out);
    Ok(())
}
