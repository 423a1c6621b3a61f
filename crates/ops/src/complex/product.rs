//! Products of complex matrices, as products of real ones of twice the size.
//!
//! A row of complex numbers in memory is a row of reals, `[re, im, re, im, ..]`. Where each number `x + iy` of the right matrix
//! stands as the block `[[x, y], [-y, x]]`, the product of the two real matrices is the complex product as it lies in memory.

use super::copy::device_copy;
use super::parts::{as_real, parts};
use super::pointwise::{Rule, common_dtype, operator, parts_of, quietly, scale};
use super::reduction::working_copy;
use super::route::Route;
use crate::check;
use crate::matmul::product::product as real_product;
use crate::operator::Operator;
use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::{Call, Scalar};
use crate::operator::error::Result;
use crate::operator::structured;
use crate::pointwise::kernel::{self, Input};
use crate::pointwise::operator::Argument;
use crate::tensor::{Dims, Tensor};
use dml_kernel::math::complex;

pub fn route(name: &str) -> Option<Route> {
    Some(Route::Run(match name {
        "mm" | "bmm" => |call, overload| {
            let operands = [overload.argument(call, "self")?, overload.argument(call, "mat2")?];
            matrices(call, overload, operands, false)
        },
        "addmm" => |call, overload| {
            let operands = [overload.argument(call, "mat1")?, overload.argument(call, "mat2")?];
            matrices(call, overload, operands, true)
        },
        "baddbmm" => |call, overload| {
            let operands = [overload.argument(call, "batch1")?, overload.argument(call, "batch2")?];
            matrices(call, overload, operands, true)
        },
        "mv" => |call, overload| {
            let operands = [overload.argument(call, "self")?, overload.argument(call, "vec")?];
            vectors(call, overload, operands, false)
        },
        "addmv" => |call, overload| {
            let operands = [overload.argument(call, "mat")?, overload.argument(call, "vec")?];
            vectors(call, overload, operands, true)
        },
        "dot" => |call, overload| {
            let operands = [overload.argument(call, "self")?, overload.argument(call, "tensor")?];
            inner(call, operands, false)
        },
        "vdot" => |call, overload| {
            let operands = [overload.argument(call, "self")?, overload.argument(call, "other")?];
            inner(call, operands, true)
        },
        "addbmm" => addbmm,
        "linalg_cross" => cross,
        _ => return None,
    }))
}

/// Products of two matrices, or of batches of them, plus `self` where `added`.
fn matrices(call: &mut Call, overload: &Operator, [a, b]: [&Tensor; 2], added: bool) -> Result<()> {
    let rank = if matches!(overload.base_name(), "mm" | "addmm") { 2 } else { 3 };
    check_matrices(overload, [a, b], rank)?;
    let product = multiply(call, a, b)?;
    finish(call, overload, product, added)
}

fn check_matrices(overload: &Operator, [a, b]: [&Tensor; 2], rank: usize) -> Result<()> {
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

fn check_dtypes([a, b]: [&Tensor; 2]) -> Result<()> {
    check!(
        a.dtype == b.dtype,
        Runtime,
        "expected m1 and m2 to have the same dtype, but got: {} != {}",
        structured::type_name(a.dtype),
        structured::type_name(b.dtype)
    );
    Ok(())
}

/// A matrix times a vector, plus `self` where `added`.
fn vectors(call: &mut Call, overload: &Operator, [a, b]: [&Tensor; 2], added: bool) -> Result<()> {
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
    finish(call, overload, product, added)
}

/// The sum of two vectors' products, of the first one's conjugates where asked for.
fn inner(call: &mut Call, [a, b]: [&Tensor; 2], conjugated: bool) -> Result<()> {
    check!(
        a.dim() == 1 && b.dim() == 1 && a.sizes == b.sizes && a.dtype == b.dtype,
        Runtime,
        "inconsistent vectors, expected two of one size and dtype, but got {} and {}",
        a.describe(),
        b.describe()
    );
    let n = a.sizes[0];
    // Of the first vector in either case: a tensor is not written.
    let a = if conjugated {
        let turned = Tensor { conjugate: !a.conjugate, ..a.clone() };
        let copy = call.empty(a.dtype, &a.sizes)?;
        device_copy(call, &turned, &copy)?;
        copy
    } else {
        a.clone()
    };
    let row = a.as_strided(&[1, n], &[n, a.strides[0]], 0);
    let column = b.as_strided(&[n, 1], &[b.strides[0], 1], 0);
    let product = multiply(call, &row, &column)?;
    let result = call.empty(product.dtype, &[])?;
    device_copy(call, &product.as_strided(&[], &[], 0), &result)?;
    call.ret(result);
    Ok(())
}

/// One product whose inner index is batch and k together.
fn addbmm(call: &mut Call, overload: &Operator) -> Result<()> {
    let (a, b): (&Tensor, &Tensor) = (overload.argument(call, "batch1")?, overload.argument(call, "batch2")?);
    // The CPU asks for the result's sizes first.
    call.size_of(a, 1)?;
    call.size_of(b, 2)?;
    check_matrices(overload, [a, b], 3)?;
    let (batch, m, k, n) = (a.sizes[0], a.sizes[1], a.sizes[2], b.sizes[2]);
    let rows = working_copy(call, &a.permute(&[1, 0, 2]))?.as_strided(&[m, batch * k], &[batch * k, 1], 0);
    let columns = working_copy(call, b)?.as_strided(&[batch * k, n], &[n, 1], 0);
    let product = multiply(call, &rows, &columns)?;
    finish(call, overload, product, true)
}

/// `self x other`, of vectors of three numbers along a dimension.
fn cross(call: &mut Call, overload: &Operator) -> Result<()> {
    let (a, b): (&Tensor, &Tensor) = (overload.argument(call, "self")?, overload.argument(call, "other")?);
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
    // Written apart from what is read.
    let aside = call.empty(dtype, &sizes)?;
    for i in 0..3 {
        let at = |t: &Tensor, d: i64| t.narrow(along, d % 3, 1);
        let factors = [at(&a, i + 1), at(&b, i + 2), at(&a, i + 2), at(&b, i + 1)];
        let [p, q, r, s] = &factors;
        let arguments = [p, q, r, s].map(|t| Argument::Tensor(AnyTensor(t)));
        let place = at(&aside, i);
        quietly(call, |call| {
            operator(call, Out::InPlace(&place), Rule::Complex, "complex_cross", &arguments, &|_, z| {
                complex::sub(complex::mul(z[0], z[1]), complex::mul(z[2], z[3])).parts()
            })
        })?;
    }
    device_copy(call, &aside, &result)?;
    call.ret(result);
    Ok(())
}

/// Puts a product where the overload wants it: `beta * self + alpha * product` where `added`.
fn finish(call: &mut Call, overload: &Operator, product: Tensor, added: bool) -> Result<()> {
    let out = overload.out(call)?;
    if !added {
        if let Out::New = out {
            // A view is no tensor of the caller's.
            let result = if product.handle == 0 { working_copy(call, &product)? } else { product };
            call.ret(result);
            return Ok(());
        }
        let result = structured::result(call, out.given(), product.dtype, &product.sizes)?;
        device_copy(call, &product, &result)?;
        call.ret(result);
        return Ok(());
    }
    let bias: &Tensor = overload.argument(call, "self")?;
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
    quietly(call, |call| {
        if parts_of(beta) == (0.0, 0.0) {
            return scale(call, &product, alpha, &result);
        }
        let arguments = [
            Argument::Tensor(AnyTensor(bias)),
            Argument::Tensor(AnyTensor(&product)),
            Argument::Number(beta),
            Argument::Number(alpha),
        ];
        operator(call, Out::InPlace(&result), Rule::Exact, "complex_scale_add", &arguments, &|_, z| {
            complex::add(complex::mul(z[2], z[0]), complex::mul(z[3], z[1])).parts()
        })
    })?;
    call.ret(result);
    Ok(())
}

/// The product of two matrices or of batches of them, `[.., m, k]` and `[.., k, n]`, as a new contiguous tensor.
pub fn multiply(call: &mut Call, a: &Tensor, b: &Tensor) -> Result<Tensor> {
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
    quietly(call, |call| real_product(call, Out::Into(&target), [&left, &right], a.dtype.real(), &doubled, None))?;
    Ok(result)
}

/// The rows, whose numbers lie one after another, as rows of `width` reals.
pub fn interleaved(t: &Tensor, width: i64) -> Tensor {
    let pairs = as_real(t);
    let rank = t.dim();
    let (mut sizes, mut strides) = (Dims::from_slice(&pairs.sizes[..rank]), Dims::from_slice(&pairs.strides[..rank]));
    (sizes[rank - 1], strides[rank - 1]) = (width, 1);
    pairs.as_strided(&sizes, &strides, 0)
}

/// The matrix `[.., k, n]`, whose conjugate bit counts, as `[.., 2k, 2n]` of blocks.
pub fn blocks(call: &Call, b: &Tensor, [k, n]: [i64; 2]) -> Result<Tensor> {
    let rank = b.dim();
    let mut sizes = b.sizes.clone();
    (sizes[rank - 2], sizes[rank - 1]) = (2 * k, 2 * n);
    let all = call.empty(b.dtype.real(), &sizes)?;
    let mut strides = all.strides.clone();
    (strides[rank - 2], strides[rank - 1]) = (4 * n, 2);
    let corner = |row: i64, column: i64| all.as_strided(&b.sizes, &strides, row * 2 * n + column);
    let outs = [corner(0, 0), corner(0, 1), corner(1, 0), corner(1, 1)];
    let inputs = parts(b).map(Input::Tensor);
    let family = if b.conjugate { "complex_blocks_conj" } else { "complex_blocks" };
    kernel::run(call, family, &[&outs[0], &outs[1], &outs[2], &outs[3]], &inputs, b.dtype.real(), |_, v| {
        let (above, below) = if b.conjugate { (-v[1], v[1]) } else { (v[1], -v[1]) };
        vec![v[0], above, below, v[0]]
    })?;
    Ok(all)
}
