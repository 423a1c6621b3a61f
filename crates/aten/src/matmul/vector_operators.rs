//! The operators of matrices with vectors, and of two vectors.

use crate::matmul::product::{Added, check_dtype, check_scalar_types, product};
use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::conversion::check_all_fit;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::tensor::casting::can_cast;
use crate::{check, operators};
use dml_compute::matmul::product::compute_dtype;
use dml_compute::scalar::Scalar;
use dml_compute::view::View;

operators! {
    addmv(self, mat, vec, beta, alpha, out).complex(Complex::Run(complex::product::addmv)) {
        "aten::addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        "aten::addmv_(Tensor(a!) self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)",
        "aten::addmv.out(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
    }
    mv(self, vec, out).complex(Complex::Run(complex::product::mv)) {
        "aten::mv(Tensor self, Tensor vec) -> Tensor",
        "aten::mv.out(Tensor self, Tensor vec, *, Tensor(a!) out) -> Tensor(a!)",
    }
    dot(self, tensor).complex(Complex::Run(complex::product::dot)) {
        "aten::dot(Tensor self, Tensor tensor) -> Tensor",
    }
    dot(self, other).complex(Complex::Run(complex::product::vdot)) {
        "aten::vdot(Tensor self, Tensor other) -> Tensor",
    }
}

fn addmv(call: &mut Call, bias: &View, mat: &View, vec: &View, beta: Scalar, alpha: Scalar, out: Out) -> Result<()> {
    check_vector(&bias.sizes, mat, vec)?;
    let (given, dtype) = (bias.dtype, compute_dtype(call, vec));
    if let Out::InPlace(t) = out {
        structured::check_in_place(t, dtype, &[mat.sizes[0]])?;
    }
    check_dtypes(call, mat, vec)?;
    check_all_fit(&[beta, alpha], dtype)?;
    check!(
        mat.numel() > 0 || can_cast(given, dtype),
        Runtime,
        "result type {given} can't be cast to the desired output type {dtype}"
    );
    let column = vec.as_strided(&[vec.sizes[0], 1], &[vec.strides[0], 1], 0);
    product(call, out, [mat, &column], dtype, &[mat.sizes[0]], Some(Added { tensor: bias, beta, alpha }))
}

fn mv(call: &mut Call, mat: &View, vec: &View, out: Out) -> Result<()> {
    check_vector(&[call.size_of(mat, 0)?], mat, vec)?;
    check_dtypes(call, mat, vec)?;
    let column = vec.as_strided(&[vec.sizes[0], 1], &[vec.strides[0], 1], 0);
    product(call, out, [mat, &column], compute_dtype(call, vec), &[mat.sizes[0]], None)
}

/// For real numbers `vdot` is the same.
fn dot(call: &mut Call, a: &View, b: &View) -> Result<()> {
    check!(a.dim() == 1 && b.dim() == 1, Runtime, "1D tensors expected, but got {}D and {}D tensors", a.dim(), b.dim());
    let [dtype, other] = [a, b].map(|t| compute_dtype(call, t));
    check!(dtype == other, Runtime, "dot : expected both vectors to have same dtype, but found {dtype} and {other}");
    check_dtype(call, dtype)?;
    let (n, m) = (a.sizes[0], b.sizes[0]);
    check!(
        n == m,
        Runtime,
        "inconsistent tensor size, expected tensor [{n}] and src [{m}] to have the same number of elements, but got \
         {n} and {m} elements respectively"
    );
    let row = a.as_strided(&[1, n], &[1, a.strides[0]], 0);
    let column = b.as_strided(&[n, 1], &[b.strides[0], 1], 0);
    product(call, Out::New, [&row, &column], dtype, &[], None)
}

/// Checks the dtypes of a product, unless it is empty.
fn check_dtypes(call: &Call, mat: &View, vec: &View) -> Result<()> {
    if mat.numel() == 0 {
        return Ok(());
    }
    check_dtype(call, mat.dtype)?;
    check_scalar_types(compute_dtype(call, mat), compute_dtype(call, vec))
}

fn check_vector(bias: &[i64], mat: &View, vec: &View) -> Result<()> {
    check!(
        mat.dim() == 2 && vec.dim() == 1 && bias.len() <= 1,
        Runtime,
        "vector + matrix @ vector expected, got {}, {}, {}",
        bias.len(),
        mat.dim(),
        vec.dim()
    );
    let n: i64 = bias.iter().product();
    check!(
        mat.sizes[1] == vec.sizes[0] && (n == mat.sizes[0] || n == 1),
        Runtime,
        "size mismatch, got input ({n}), mat ({}x{}), vec ({})",
        mat.sizes[0],
        mat.sizes[1],
        vec.sizes[0]
    );
    Ok(())
}
