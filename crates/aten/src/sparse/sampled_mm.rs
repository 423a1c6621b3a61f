//! Elements of the product of two dense matrices at the positions of a sparse one.

use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::sparse::compressed_mm::{Given, columns_of_parts};
use crate::sparse::csr_to_coo::csr_to_coo;
use crate::sparse::dense::{self, times};
use crate::{check, operators};
use dml_compute::complex::parts::from_parts;
use dml_compute::complex::reduction::working_copy;
use dml_compute::movement::copy::{as_contiguous, fill_with};
use dml_compute::primitives::loops::max_loop_iterations;
use dml_compute::scalar::Scalar as Number;
use dml_compute::sparse::sampled_mm::{accesses, sampled_product};
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    // The values of `beta * self + alpha * mat1 @ mat2` at the positions of `self`.
    sampled_addmm({Given}, mat1, mat2, beta, alpha).declines().complex(Complex::Own) {
        "torch_dml::sampled_addmm(Tensor offsets, Tensor indices, Tensor values, int[] size, Tensor mat1, Tensor mat2, Scalar beta, Scalar alpha) -> Tensor",
    }
}

/// Batches are declined.
fn sampled_addmm(
    call: &mut Call,
    sparse: Given,
    mat1: AnyTensor,
    mat2: AnyTensor,
    beta: Number,
    alpha: Number,
) -> Result<()> {
    let Given { offsets, indices, values, size } = sparse;
    let [a, b, own] = [mat1.dtype, mat2.dtype, values.dtype];
    check!(a == b, Runtime, "sampled_addmm: Expected mat1 and mat2 to have the same dtype, but got {a} and {b}");
    check!(a == own, Runtime, "sampled_addmm: Expected mat1 and self to have the same dtype, but got {a} and {own}");
    for (t, name) in [(mat1, "mat1"), (mat2, "mat2")] {
        check!(t.dim() >= 2, Runtime, "sampled_addmm: Expected {name} to be a matrix, got {}-D tensor", t.dim());
    }
    let ([m, k], [height, n]) = ([mat1.size(-2), mat1.size(-1)], [mat2.size(-2), mat2.size(-1)]);
    check!(k == height, Runtime, "sampled_addmm: mat1 and mat2 shapes cannot be multiplied ({m}x{k} and {height}x{n})");
    let [rows, columns] = [size[size.len() - 2], size[size.len() - 1]];
    check!(rows == m, Runtime, "sampled_addmm: self.shape[-2] must match mat1.shape[-2]");
    check!(columns == n, Runtime, "sampled_addmm: self.shape[-1] must match mat2.shape[-1]");
    check!(
        own.is_float() || own.is_complex(),
        Runtime,
        "sparse_sampled_addmm: Expected self to be a floating-point or complex tensor, but got {own}"
    );
    if size.len() != 2 || mat1.dim() != 2 || mat2.dim() != 2 {
        call.decline(1);
        return Ok(());
    }
    let [mat1, mat2] = [mat1, mat2].map(|t| dense::here(call, t, "aten::sparse_sampled_addmm"));
    let (mat1, mat2) = (mat1?, mat2?);
    dense::check_factors(own, [beta, alpha])?;
    let product = sampled(call, &rows_of_entries(call, offsets, indices)?, indices, mat1, &mat2.transpose(0, 1))?;
    let result = dense::combined(call, product, alpha, Some(values), beta)?;
    call.ret(result);
    Ok(())
}

/// The row of each entry of compressed rows.
pub fn rows_of_entries(call: &Call, offsets: &View, indices: &View) -> Result<View> {
    let narrow = indices.dtype == DType::I32;
    let both = call.result_of(|call| csr_to_coo(call, offsets, indices, narrow, false, Out::New))?;
    Ok(both.narrow(0, 0, 1).as_strided(&[indices.numel()], &[1], 0))
}

/// The products of row `rows[e]` of `a` and row `columns[e]` of `b`, for each `e`: `[entries]`.
///
/// `rows` and `columns` (`[entries]`) are of one integer dtype, `a` (`[.., k]`) and `b` (`[.., k]`)
/// of another one. Sums are in the compute dtype, in order; an index out of range is reported.
///
/// A row of complex numbers is a row of reals (re, im), (re, im), .. Its dot product with a row of
/// (re, -im) is the real part of the complex dot product, with (im, re) the imaginary part.
pub fn sampled(call: &Call, rows: &View, columns: &View, a: &View, b: &View) -> Result<View> {
    if !a.dtype.is_complex() {
        return sampled_reals(call, rows, columns, a, b);
    }
    let left = columns_of_parts(call, a)?;
    let conjugate = working_copy(call, &View { conjugate: true, ..b.clone() })?;
    let turned = times(call, &conjugate, Number::Complex(0.0, 1.0))?;
    let re = sampled_reals(call, rows, columns, &left, &columns_of_parts(call, &conjugate)?)?;
    let im = sampled_reals(call, rows, columns, &left, &columns_of_parts(call, &turned)?)?;
    let out = call.empty(a.dtype, &rows.sizes)?;
    from_parts(call, &re, &im, &out)?;
    Ok(out)
}

fn sampled_reals(call: &Call, rows: &View, columns: &View, a: &View, b: &View) -> Result<View> {
    let index = matches!(rows.dtype, DType::I32 | DType::I64) && columns.dtype == rows.dtype;
    let shaped = rows.dim() == 1 && columns.sizes == rows.sizes && a.dim() == 2 && b.dim() == 2;
    let entries = rows.numel();
    check!(
        index && shaped && a.sizes[1] == b.sizes[1] && a.dtype == b.dtype && a.dtype != DType::Bool,
        Runtime,
        "{}: rows {}, columns {}, a {} and b {} do not fit each other",
        call.name,
        rows.describe(),
        columns.describe(),
        a.describe(),
        b.describe()
    );
    let out = call.empty(a.dtype, &[entries])?;
    if a.numel() == 0 || b.numel() == 0 {
        fill_with(call, &out, Number::Int(0))?;
    } else if entries > 0 {
        let [rows, columns, a, b] = [rows, columns, a, b].map(|t| as_contiguous(call, t));
        let (rows, columns, a, b) = (&rows?, &columns?, &a?, &b?);
        let chunks = accesses(a, b);
        let fits = max_loop_iterations(call).is_none_or(|allowed| chunks <= allowed);
        check!(fits, NotImplemented, "{}: rows of {} elements on a software adapter", call.name, a.sizes[1]);
        sampled_product(call, rows, columns, a, b, &out)?;
    }
    Ok(out)
}
