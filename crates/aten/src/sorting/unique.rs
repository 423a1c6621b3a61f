//! The operators of unique elements or slices, with their counts, and the index of the result for
//! each element.

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::movement::copy::as_contiguous;
use dml_compute::primitives::loops::check_loop_iterations;
use dml_compute::sorting::sort;
use dml_compute::sorting::unique::{Ordered, select};
use dml_compute::view::View;

operators! {
    of_elements(self, return_inverse, return_counts = None) {
        "aten::_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)",
        "aten::_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
    }
    of_slices(self, dim; true) {
        "aten::unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
    }
    of_slices(self, dim; false) {
        "aten::unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
    }
    consecutive(self, return_inverse, return_counts, dim) {
        "aten::unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> (Tensor, Tensor, Tensor)",
    }
}

fn of_elements(call: &mut Call, input: &View, inverse: bool, counts: Option<bool>) -> Result<()> {
    elements(call, input, true, inverse, counts)
}

fn consecutive(call: &mut Call, input: &View, inverse: bool, counts: bool, dim: Option<i64>) -> Result<()> {
    match dim {
        // As on the CPU, which respects the flags for dimension 0 of a 1-dim tensor; not so for -1.
        Some(0) if input.dim() == 1 => elements(call, input, false, inverse, Some(counts)),
        Some(dim) => of_slices(call, input, dim, false),
        None => elements(call, input, false, inverse, Some(counts)),
    }
}

/// Without `counts` the operator has two results.
fn elements(call: &mut Call, input: &View, sorted: bool, inverse: bool, counts: Option<bool>) -> Result<()> {
    let row = as_contiguous(call, input)?.as_strided(&[input.numel()], &[1], 0);
    // The elements in order, and the original position of each.
    let (elements, order) = match sorted {
        true => sort::by_rows(call, &row, 0, false).map(|(elements, order)| (elements, Some(order)))?,
        false => (row, None),
    };
    let ranked = Ordered { elements: elements.clone(), width: 1, n: input.numel(), order: None };
    let starts = ranked.starts(call)?;
    let values = select(call, &elements, 0, &starts)?;
    let whole = Ordered { order, ..ranked };
    let sizes = if inverse { input.sizes.as_slice() } else { &[0] };
    let inverse = whole.inverse(call, &starts, inverse, sizes)?;
    call.ret(values);
    call.ret(inverse);
    if let Some(counts) = counts {
        let counts = whole.counts(call, &starts, counts)?;
        call.ret(counts);
    }
    Ok(())
}

/// Unique slices along a dimension. As on the CPU, all three results are computed whatever the
/// flags.
fn of_slices(call: &mut Call, input: &View, dim: i64, sorted: bool) -> Result<()> {
    check!(input.dim() > 0, Index, "Dimension specified as {dim} but tensor has no dimensions");
    let dim = call.wrap_dim(dim, input.dim())?;
    let empty = input.sizes.iter().filter(|&&n| n == 0).count();
    let n = input.sizes[dim];
    check!(empty <= 1, Runtime, "Number of zero sized dimensions is more than one, so unique cannot be applied ");
    check!(
        empty == 0 || n == 0,
        Runtime,
        "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied"
    );
    // A slice is compared with several slices of the other run, one after the other.
    let comparisons = if sorted { i64::from(n.max(1).ilog2()) + 2 } else { 2 };
    check_loop_iterations(call, input.numel() / n.max(1) * comparisons)?;
    let mut slices = Ordered { elements: input.clone(), width: 0, n, order: None };
    if n > 0 {
        let order: Vec<usize> = [dim].into_iter().chain((0..input.dim()).filter(|&d| d != dim)).collect();
        slices.elements = as_contiguous(call, &input.permute(&order))?;
        slices.width = input.numel() / n;
        if sorted {
            slices.sort(call)?;
        }
    }
    let starts = slices.starts(call)?;
    let chosen = match &slices.order {
        Some(order) => select(call, order, 0, &starts)?,
        None => starts.clone(),
    };
    let values = select(call, input, dim, &chosen)?;
    let inverse = slices.inverse(call, &starts, true, &[n])?;
    let counts = slices.counts(call, &starts, true)?;
    call.ret(values);
    call.ret(inverse);
    call.ret(counts);
    Ok(())
}
