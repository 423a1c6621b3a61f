//! The products of COO matrices, whose entries are coalesced, and dense matrices: those of
//! [compressed rows](super::compressed_mm).

use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::sparse::compressed_mm::{Rows, copied, reshaped};
use crate::sparse::coo_to_csr::coo_to_csr;
use crate::sparse::coordinates::{numbers, row};
use crate::sparse::dense;
use crate::{check, operators};
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;

operators! {
    // `beta * self + alpha * sparse @ dense`
    addmm(self, {Given}, dense, beta, alpha).complex(Complex::Own).float8(float8::own) {
        "torch_dml::coo_addmm(Tensor self, Tensor indices, Tensor values, int[] size, Tensor dense, Scalar beta, Scalar alpha) -> Tensor",
    }
    // Products of matrices of a batch.
    bmm({Given}, dense).complex(Complex::Own).float8(float8::own) {
        "torch_dml::coo_bmm(Tensor indices, Tensor values, int[] size, Tensor dense) -> Tensor",
    }
}

crate::group! {
    /// A COO tensor.
    struct Given<'a> {
        /// `[sparse dimensions, entries]`, in order.
        indices: &'a View,
        /// `[entries, dense dimensions..]`
        values: &'a View,
        size: &'a [i64],
    }
}

fn addmm(
    call: &mut Call,
    addend: AnyTensor,
    sparse: Given,
    dense: AnyTensor,
    beta: Number,
    alpha: Number,
) -> Result<()> {
    let Given { indices, values, size } = sparse;
    let [sparse_dims, dense_dims] = [indices.sizes[0], values.dim() as i64 - 1];
    check!(sparse_dims == 2, Runtime, "addmm: matrices expected, got {sparse_dims}D tensor");
    check!(dense_dims == 0, Runtime, "addmm: scalar values expected, got {dense_dims}D values");
    check!(dense.dim() == 2, Runtime, "addmm: matrices expected, got {}D tensor", dense.dim());
    for (t, what, d, wanted) in [
        (dense, "Argument #3 (dense)", 0, size[1]),
        (addend, "Argument #1 (t)", 0, size[0]),
        (addend, "Argument #1 (t)", 1, dense.sizes[1]),
    ] {
        let found = call.size_of(&t, d)?;
        check!(found == wanted, Runtime, "addmm: {what}: Expected dim {d} size {wanted}, got {found}");
    }
    let [addend, dense] = [addend, dense].map(|t| {
        check!(t.dtype == values.dtype, Runtime, "expected scalar type {} but found {}", values.dtype, t.dtype);
        dense::here(call, t, "aten::addmm")
    });
    let (addend, dense) = (addend?, dense?);
    let offsets = call.result_of(|call| coo_to_csr(call, &row(indices, 0), size[0], false, Out::New))?;
    let rows = Rows { offsets: &offsets, indices: &row(indices, 1), values: Some(values) };
    let product = rows.multiply(call, dense, Some(addend), [beta, alpha])?;
    call.ret(product);
    Ok(())
}

/// The batch becomes one matrix: its matrices are stacked vertically.
fn bmm(call: &mut Call, sparse: Given, dense: AnyTensor) -> Result<()> {
    let Given { indices, values, size } = sparse;
    let [sparse_dims, dense_dims] = [indices.sizes[0], values.dim() as i64 - 1];
    check!(dense_dims == 0, Runtime, "bmm_sparse: Tensor 'self' must have 0 dense dims, but has {dense_dims}");
    check!(sparse_dims == 3, Runtime, "bmm_sparse: Tensor 'self' must have 3 sparse dims, but has {sparse_dims}");
    check!(dense.dim() == 3, Runtime, "bmm_sparse: Tensor 'mat2' must have 3 dims, but has {}", dense.dim());
    let [count, height, width] = [dense.sizes[0], dense.sizes[1], dense.sizes[2]];
    check!(size[0] == count, Runtime, "bmm_sparse: 'self.size(0)' and 'mat2.size(0)' must match");
    check!(size[2] == height, Runtime, "bmm_sparse: 'self.size(2)' and 'mat2.size(1)' must match");
    check!(dense.dtype == values.dtype, Runtime, "expected scalar type {} but found {}", values.dtype, dense.dtype);
    let dense = reshaped(&copied(call, dense::here(call, dense, "aten::bmm")?)?, &[count * height, width]);
    // The row or the column of each entry among those of all matrices.
    let below = |d: i64, size: i64| {
        let both = indices.as_strided(&[2, indices.sizes[1]], &[d * indices.strides[0], indices.strides[1]], 0);
        numbers(call, &both, &[count, size])
    };
    let (rows, columns) = (below(1, size[1])?, below(2, size[2])?);
    let offsets = call.result_of(|call| coo_to_csr(call, &rows, count * size[1], false, Out::New))?;
    let rows = Rows { offsets: &offsets, indices: &columns, values: Some(values) };
    let product = rows.multiply(call, &dense, None, [0, 1].map(Number::Int))?;
    let product = call.host.view(&product, &reshaped(&product, &[count, size[1], width]))?;
    call.ret(product);
    Ok(())
}
