//! Concatenation of tensors along a dimension.

use crate::movement::copies::checked_copy;
use crate::operator::argument::{Out, Tensors};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::tensor::casting::can_cast;
use crate::tensor::overlap;
use crate::tensor::promote::{Promoted, check_promotable, result_type};
use crate::{check, operators};
use dml_compute::movement::concatenation::strides_of_result;
use dml_compute::primitives::multi_copy::{self, Region};
use dml_compute::view::View;
use smallvec::SmallVec;

operators! {
    cat(tensors, dim, out).complex(Complex::OfReals(complex::movement::cat)).float8(float8::run_as_bits) {
        hot "aten::cat(Tensor[] tensors, int dim=0) -> Tensor",
        "aten::cat.out(Tensor[] tensors, int dim=0, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

fn cat(call: &mut Call, all: Tensors, dim: i64, out: Out) -> Result<()> {
    check!(!all.is_empty(), Value, "torch.cat(): expected a non-empty list of Tensors");
    for (i, t) in all.iter().enumerate() {
        check!(t.dim() > 0, Runtime, "zero-dimensional tensor (at position {i}) cannot be concatenated");
    }
    let promoted: SmallVec<[Promoted; 8]> = all.iter().map(|t| Promoted::Tensor(t)).collect();
    check_promotable(&promoted)?;
    let dtype = result_type(&promoted, call.host.default_dtype());
    if let Some(out) = out.given() {
        let given = out.dtype;
        check!(
            can_cast(dtype, given),
            Type,
            "torch.cat(): input types can't be cast to the desired output type {given}"
        );
        overlap::check_none(out, &all)?;
    }
    // 1-dim empty tensors are skipped, whatever the other tensors' dimensions: PyTorch had no other
    // empty tensors once.
    let parts: SmallVec<[&View; 8]> = all.iter().copied().filter(|t| t.sizes.as_slice() != [0]).collect();
    let Some(&first) = parts.first() else {
        call.wrap_dim(dim, 1)?;
        let out = call.result(out.given(), dtype, &[0])?;
        call.ret(out);
        return Ok(());
    };
    let dim = call.wrap_dim(dim, first.dim())?;
    let mut sizes = first.sizes.clone();
    sizes[dim] = 0;
    for (i, t) in all.iter().enumerate() {
        if t.sizes.as_slice() == [0] {
            continue;
        }
        check!(
            t.dim() == first.dim(),
            Runtime,
            "Tensors must have same number of dimensions: got {} and {}",
            first.dim(),
            t.dim()
        );
        for d in 0..t.dim() {
            check!(
                d == dim || t.sizes[d] == first.sizes[d],
                Runtime,
                "Sizes of tensors must match except in dimension {dim}. Expected size {} but got size {} for tensor \
                 number {i} in the list.",
                first.sizes[d],
                t.sizes[d]
            );
        }
        sizes[dim] += t.sizes[dim];
    }
    let out = match out.given() {
        Some(out) => call.result(Some(out), dtype, &sizes)?,
        None => call.empty_strided(dtype, &sizes, &strides_of_result(&all, &sizes))?,
    };
    let mut start = 0;
    let mut alike = Vec::with_capacity(parts.len());
    for &t in &parts {
        let part = out.narrow(dim, start, t.sizes[dim]);
        start += t.sizes[dim];
        if t.numel() == 0 {
            continue;
        }
        if t.dtype == out.dtype {
            alike.push(Region::whole(part, t.clone()));
        } else {
            checked_copy(call, t, &part)?;
        }
    }
    multi_copy::copy(call, out.dtype, &alike)?;
    call.ret(out);
    Ok(())
}
