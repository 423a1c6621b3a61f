//! Products with what a compiled graph computes of each element of the result.

use crate::matmul::matrix_operators::{batched_sizes, check_inner};
use crate::matmul::product::{Added, check_scalar_types, check_sums, expand, prepare};
use crate::operator::argument::{Out, Tensors};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::expression;
use crate::{check, group, operators};
use dml_compute::matmul::product::Product;
use dml_compute::scalar::Scalar;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    // `then` is the text of an expression of `alpha * mat1 @ mat2 + beta * addend` and of the
    // tensors, which are broadcast to the result. Factors of float32 are rounded to `rounded`. Sums
    // are not rounded before the expression, and its result is to `dtype`.
    product_then({Sums}, tensors, then, dtype, rounded) {
        "torch_dml::product_then(Tensor mat1, Tensor mat2, Tensor? addend, Tensor[] tensors, str then, ScalarType dtype, *, ScalarType? rounded=None, Scalar beta=1, Scalar alpha=1) -> Tensor",
    }
}

group! {
    /// A product of matrices, or of batches of them, with what is added to it.
    struct Sums<'a> {
        mat1: &'a View,
        mat2: &'a View,
        addend: Option<&'a View>,
        beta: Scalar,
        alpha: Scalar,
    }
}

fn product_then(
    call: &mut Call,
    sums: Sums,
    tensors: Tensors,
    then: Option<&str>,
    dtype: DType,
    rounded: Option<DType>,
) -> Result<()> {
    let Sums { mat1: a, mat2: b, addend, beta, alpha } = sums;
    let dtypes = [a, b].map(|t| rounded.filter(|_| t.dtype == DType::F32).unwrap_or(t.dtype));
    check_scalar_types(dtypes[0], dtypes[1])?;
    let expr = expression::of_floats(call, then, dtypes[0], &tensors)?;
    let others = [a, b].into_iter().chain(addend).map(|t| t.dtype).chain([dtype]);
    expression::check_computed(call, dtypes[0], others)?;
    let sizes = if a.dim() == 3 {
        batched_sizes(a, b)?.to_vec()
    } else {
        check!(a.dim() == 2 && b.dim() == 2, Runtime, "product_then: expected matrices or batches of them");
        check_inner(a, b)?;
        vec![a.sizes[0], b.sizes[1]]
    };
    let tensors = tensors.iter().map(|t| expand(t, &sizes)).collect::<Result<Vec<View>>>()?;
    let added = addend.map(|tensor| Added { tensor, beta, alpha });
    let (target, addend) = prepare(call, Out::New, dtype, &sizes, added)?;
    check_sums(call, &target, a.sizes[a.dim() - 1], alpha, &addend)?;
    Product { factors: [a, b], dtypes, alpha, addend, then: Some((expr, &tensors)) }.run(call, &target)?;
    call.ret(target);
    Ok(())
}
