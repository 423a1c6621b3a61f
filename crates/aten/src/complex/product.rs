//! Products of complex matrices, as products of real ones of twice the size.
//!
//! A row of complex numbers in memory is a row of reals, `[re, im, re, im, ..]`. If each number
//! `x + iy` of the right matrix is written as the block `[[x, y], [-y, x]]`, the product of the two
//! real matrices has the memory layout of the complex product.

use crate::check;
use crate::complex::copy::checked_copy;
use crate::complex::pointwise::{common_dtype, operator, run_without_results, scale};
use crate::matmul::product::product as real_product;
use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::{Operator, structured};
use crate::pointwise::operator::Argument;
use dml_compute::complex::pointwise::parts_of_number;
use dml_compute::complex::product::{blocks, interleaved};
use dml_compute::complex::reduction::working_copy;
use dml_compute::pointwise::complex as functions;
use dml_compute::scalar::Scalar;
use dml_compute::view::View;

/// A product of two matrices.
pub fn mm(call: &mut Call, overload: &Operator) -> Result<()> {
    let operands = [overload.argument(call, "self")?, overload.argument(call, "mat2")?];
    matrices(call, overload, operands, 2, false)
}

/// Products of two batches of matrices.
pub fn bmm(call: &mut Call, overload: &Operator) -> Result<()> {
    let operands = [overload.argument(call, "self")?, overload.argument(call, "mat2")?];
    matrices(call, overload, operands, 3, false)
}

/// `beta * self + alpha * mat1 @ mat2`
pub fn addmm(call: &mut Call, overload: &Operator) -> Result<()> {
    let operands = [overload.argument(call, "mat1")?, overload.argument(call, "mat2")?];
    matrices(call, overload, operands, 2, true)
}

/// `beta * self + alpha * batch1 @ batch2`
pub fn baddbmm(call: &mut Call, overload: &Operator) -> Result<()> {
    let operands = [overload.argument(call, "batch1")?, overload.argument(call, "batch2")?];
    matrices(call, overload, operands, 3, true)
}

/// A matrix times a vector.
pub fn mv(call: &mut Call, overload: &Operator) -> Result<()> {
    let operands = [overload.argument(call, "self")?, overload.argument(call, "vec")?];
    vectors(call, overload, operands, false)
}

/// `beta * self + alpha * mat @ vec`
pub fn addmv(call: &mut Call, overload: &Operator) -> Result<()> {
    let operands = [overload.argument(call, "mat")?, overload.argument(call, "vec")?];
    vectors(call, overload, operands, true)
}

/// The inner product of two vectors.
pub fn dot(call: &mut Call, overload: &Operator) -> Result<()> {
    let operands = [overload.argument(call, "self")?, overload.argument(call, "tensor")?];
    inner(call, operands, false)
}

/// [`dot`] with the first vector's conjugate.
pub fn vdot(call: &mut Call, overload: &Operator) -> Result<()> {
    let operands = [overload.argument(call, "self")?, overload.argument(call, "other")?];
    inner(call, operands, true)
}

/// Products of two matrices, or of batches of them, plus `self` if `added`.
fn matrices(call: &mut Call, overload: &Operator, [a, b]: [&View; 2], rank: usize, added: bool) -> Result<()> {
    check_matrices(overload, [a, b], rank)?;
    let product = multiply(call, a, b)?;
    return_product(call, overload, product, added)
}

fn check_matrices(overload: &Operator, [a, b]: [&View; 2], rank: usize) -> Result<()> {
    let name = overload.base_name();
    let fits = a.dim() == rank
        && b.dim() == rank
        && a.sizes[rank - 1] == b.sizes[rank - 2]
        && (rank == 2 || a.sizes[0] == b.sizes[0]);
    check!(
        fits,
        Runtime,
        "{name}: matrices of these shapes cannot be multiplied: {:?} and {:?}",
        a.sizes.as_slice(),
        b.sizes.as_slice()
    );
    check_dtypes([a, b])
}

fn check_dtypes([a, b]: [&View; 2]) -> Result<()> {
    check!(
        a.dtype == b.dtype,
        Runtime,
        "expected m1 and m2 to have the same dtype, but got: {} != {}",
        structured::type_name(a.dtype),
        structured::type_name(b.dtype)
    );
    Ok(())
}

/// A matrix times a vector, plus `self` if `added`.
fn vectors(call: &mut Call, overload: &Operator, [a, b]: [&View; 2], added: bool) -> Result<()> {
    check!(
        a.dim() == 2 && b.dim() == 1 && a.sizes[1] == b.sizes[0],
        Runtime,
        "size mismatch, got mat {:?}, vec {:?}",
        a.sizes.as_slice(),
        b.sizes.as_slice()
    );
    check_dtypes([a, b])?;
    let column = b.as_strided(&[b.sizes[0], 1], &[b.strides[0], 1], 0);
    let product = multiply(call, a, &column)?;
    let product = product.as_strided(&[a.sizes[0]], &[1], 0);
    return_product(call, overload, product, added)
}

/// The inner product of two vectors, with the first one's conjugate if `conjugated`.
fn inner(call: &mut Call, [a, b]: [&View; 2], conjugated: bool) -> Result<()> {
    check!(
        a.dim() == 1 && b.dim() == 1 && a.sizes == b.sizes && a.dtype == b.dtype,
        Runtime,
        "inconsistent vectors, expected two of one size and dtype, but got {} and {}",
        a.describe(),
        b.describe()
    );
    let n = a.sizes[0];
    // The first vector's bit is flipped in either case: no tensor is written.
    let a = if conjugated {
        let turned = View { conjugate: !a.conjugate, ..a.clone() };
        let copy = call.empty(a.dtype, &a.sizes)?;
        checked_copy(call, &turned, &copy)?;
        copy
    } else {
        a.clone()
    };
    let row = a.as_strided(&[1, n], &[n, a.strides[0]], 0);
    let column = b.as_strided(&[n, 1], &[b.strides[0], 1], 0);
    let product = multiply(call, &row, &column)?;
    let result = call.empty(product.dtype, &[])?;
    checked_copy(call, &product.as_strided(&[], &[], 0), &result)?;
    call.ret(result);
    Ok(())
}

/// One product whose inner index combines batch and k.
pub fn addbmm(call: &mut Call, overload: &Operator) -> Result<()> {
    let (a, b): (&View, &View) = (overload.argument(call, "batch1")?, overload.argument(call, "batch2")?);
    // The CPU checks the result's sizes first.
    call.size_of(a, 1)?;
    call.size_of(b, 2)?;
    check_matrices(overload, [a, b], 3)?;
    let (batch, m, k, n) = (a.sizes[0], a.sizes[1], a.sizes[2], b.sizes[2]);
    let rows = working_copy(call, &a.permute(&[1, 0, 2]))?.as_strided(&[m, batch * k], &[batch * k, 1], 0);
    let columns = working_copy(call, b)?.as_strided(&[batch * k, n], &[n, 1], 0);
    let product = multiply(call, &rows, &columns)?;
    return_product(call, overload, product, true)
}

/// `self x other`, for vectors of three elements along a dimension.
pub fn cross(call: &mut Call, overload: &Operator) -> Result<()> {
    let (a, b): (&View, &View) = (overload.argument(call, "self")?, overload.argument(call, "other")?);
    let dim: i64 = overload.argument(call, "dim")?;
    let out = overload.out(call)?;
    check!(a.dim() == b.dim(), Runtime, "linalg.cross: inputs must have the same number of dimensions.");
    let along = call.wrap_dim(dim, a.dim())?;
    check!(
        a.dim() > 0 && a.sizes[along] == 3 && b.sizes[along] == 3,
        Runtime,
        "linalg.cross: inputs dimension {dim} must have length 3. Got {} and {}",
        call.size_of(a, along)?,
        call.size_of(b, along)?
    );
    let sizes = call.broadcast(&a.sizes, &b.sizes)?;
    let dtype = common_dtype(call, &[a, b].map(|t| Argument::Tensor(AnyTensor(t))));
    let result = structured::result(call, out.given(), dtype, &sizes)?;
    let (a, b) = (a.expand(&sizes), b.expand(&sizes));
    // Written to a separate tensor, since operands may overlap the result.
    let aside = call.empty(dtype, &sizes)?;
    for i in 0..3 {
        let at = |t: &View, d: i64| t.narrow(along, d % 3, 1);
        let factors = [at(&a, i + 1), at(&b, i + 2), at(&a, i + 2), at(&b, i + 1)];
        let [p, q, r, s] = &factors;
        let arguments = [p, q, r, s].map(|t| Argument::Tensor(AnyTensor(t)));
        let output = at(&aside, i);
        run_without_results(call, |call| operator(call, Out::InPlace(&output), &functions::CROSS, &arguments))?;
    }
    checked_copy(call, &aside, &result)?;
    call.ret(result);
    Ok(())
}

/// Stores a product as the overload requires: `beta * self + alpha * product` if `added`.
fn return_product(call: &mut Call, overload: &Operator, product: View, added: bool) -> Result<()> {
    let out = overload.out(call)?;
    if !added {
        if let Out::New = out {
            // A view without a handle cannot be returned to the caller.
            let result = if product.handle == 0 { working_copy(call, &product)? } else { product };
            call.ret(result);
            return Ok(());
        }
        let result = structured::result(call, out.given(), product.dtype, &product.sizes)?;
        checked_copy(call, &product, &result)?;
        call.ret(result);
        return Ok(());
    }
    let bias: &View = overload.argument(call, "self")?;
    let (beta, alpha): (Scalar, Scalar) = (overload.argument(call, "beta")?, overload.argument(call, "alpha")?);
    check!(
        bias.dtype == product.dtype,
        Runtime,
        "self and mat2 must have the same dtype, but got {} and {}",
        bias.dtype,
        product.dtype
    );
    let fits = call.broadcast(&bias.sizes, &product.sizes)? == product.sizes;
    check!(
        fits,
        Runtime,
        "The expanded size of the tensor {:?} must match {:?}",
        bias.sizes.as_slice(),
        product.sizes.as_slice()
    );
    let result = match out {
        Out::New => call.empty(product.dtype, &product.sizes)?,
        Out::InPlace(t) => {
            structured::check_in_place(t, product.dtype, &product.sizes)?;
            t.clone()
        }
        Out::Into(t) => structured::result(call, Some(t), product.dtype, &product.sizes)?,
    };
    run_without_results(call, |call| {
        if parts_of_number(beta) == (0.0, 0.0) {
            return scale(call, &product, alpha, &result);
        }
        let arguments = [
            Argument::Tensor(AnyTensor(bias)),
            Argument::Tensor(AnyTensor(&product)),
            Argument::Number(beta),
            Argument::Number(alpha),
        ];
        operator(call, Out::InPlace(&result), &functions::SCALE_ADD, &arguments)
    })?;
    call.ret(result);
    Ok(())
}

/// Returns the product of two matrices or of batches of them, `[.., m, k]` and `[.., k, n]`, as a
/// new contiguous tensor.
pub fn multiply(call: &mut Call, a: &View, b: &View) -> Result<View> {
    let rank = a.dim();
    let (k, n) = (b.sizes[rank - 2], b.sizes[rank - 1]);
    let mut sizes = a.sizes.clone();
    sizes[rank - 1] = n;
    let result = call.empty(a.dtype, &sizes)?;
    let rows = if a.strides[rank - 1] == 1 || k == 1 { a.clone() } else { working_copy(call, a)? };
    let left = interleaved(&rows, 2 * k);
    let right = blocks(call, b, [k, n])?;
    let target = interleaved(&result, 2 * n);
    let doubled = target.sizes.clone();
    run_without_results(call, |call| {
        real_product(call, Out::Into(&target), [&left, &right], a.dtype.real(), &doubled, None)
    })?;
    Ok(result)
}
