//! Helpers for the arguments of this folder's operators.

use crate::check;
use crate::movement::copies::checked_copy;
use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::tensor::overlap;
use dml_compute::indexing::arguments::is_index;
use dml_compute::movement::copy::contiguous;
use dml_compute::primitives::combine::Combine;
use dml_compute::view::View;

/// The tensor that an operator on `t` updates: a copy of it, itself, or `out=` with its contents.
pub fn destination(call: &Call, t: &View, out: Out) -> Result<View> {
    match out {
        Out::New => Ok(contiguous(call, t)?),
        Out::InPlace(_) => {
            overlap::check_internal(t)?;
            Ok(t.clone())
        }
        Out::Into(given) => {
            structured::check_given(Some(given), t.dtype)?;
            let out = call.result(Some(given), t.dtype, &t.sizes)?;
            overlap::check_internal(&out)?;
            if out.data != t.data || out.strides != t.strides {
                overlap::check_none(&out, &[t])?;
                checked_copy(call, t, &out)?;
            }
            Ok(out)
        }
    }
}

/// Checks that a tensor holds indices.
pub fn check_index(call: &Call, index: &View) -> Result<()> {
    check!(
        is_index(index.dtype) || index.numel() == 0,
        Runtime,
        "{}(): Expected dtype int32/int64 for index",
        short(call)
    );
    Ok(())
}

/// Checks that the index tensor of a gather or scatter fits the indexed tensor and the values.
pub fn check_shapes(call: &Call, t: &View, dim: usize, index: &View, src: Option<&View>) -> Result<()> {
    if index.numel() == 0 {
        return Ok(());
    }
    let name = if src.is_some() { "self" } else { "input" };
    check!(index.dim() == t.dim(), Runtime, "Index tensor must have the same number of dimensions as {name} tensor");
    let inside = (0..t.dim()).all(|d| d == dim || index.sizes[d] <= t.sizes[d]);
    let Some(src) = src else {
        check!(
            inside,
            Runtime,
            "Size does not match at dimension {} expected index {:?} to be no larger than self {:?} apart from \
             dimension {dim}",
            (0..t.dim()).find(|&d| d != dim && index.sizes[d] > t.sizes[d]).unwrap_or(0),
            index.sizes.as_slice(),
            t.sizes.as_slice()
        );
        return Ok(());
    };
    check!(index.dim() == src.dim(), Runtime, "Index tensor must have the same number of dimensions as src tensor");
    check!(
        inside && (0..src.dim()).all(|d| index.sizes[d] <= src.sizes[d]),
        Runtime,
        "{}(): Expected index {:?} to be no larger than self {:?} apart from dimension {dim} and to be no larger \
         than src {:?}",
        short(call),
        index.sizes.as_slice(),
        t.sizes.as_slice(),
        src.sizes.as_slice()
    );
    Ok(())
}

/// The operation that combines values, by PyTorch's name.
pub fn combine_of(name: Option<&str>) -> Result<Combine> {
    Ok(match name {
        Some("sum") => Combine::Add,
        Some("prod") => Combine::Mul,
        Some("mean") => Combine::Mean,
        Some("amax") => Combine::Max,
        Some("amin") => Combine::Min,
        other => {
            let other = other.unwrap_or("None");
            check!(false, Runtime, "reduce argument must be either sum, prod, mean, amax or amin, got {other}");
            Combine::Add
        }
    })
}

/// A few operators warn when they write to an expanded tensor, as on the CPU.
pub fn warn_if_expanded(call: &Call, t: &View, name: &str) {
    if dml_compute::view::overlap::is_expanded(t) {
        call.host.warn(&format!(
            "Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this \
             operation. This also applies to advanced indexing e.g. tensor[indices] = tensor"
        ));
    }
}

/// The operator's name without its namespace and overload.
pub fn short(call: &Call) -> &'static str {
    let name = call.name.strip_prefix("aten::").unwrap_or(call.name);
    name.split('.').next().unwrap_or(name)
}
