//! Products of tensors: argument checks, their result, and the
//! [`Problem`](dml_compute::matmul::problem::Problem) that computes them.

use crate::check;
use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::conversion::check_all_fit;
use crate::operator::error::{Error, Result};
use crate::operator::structured;
use crate::tensor::casting::can_cast;
use crate::tensor::overlap::check_internal;
use dml_compute::matmul::product::{Addend, Product, compute_dtype, is_zero};
use dml_compute::pointwise::expr::Expr;
use dml_compute::scalar::Scalar;
use dml_compute::view::View;
use dml_kernel::DType;

/// What is added to a product: `alpha * a @ b + beta * tensor`.
#[derive(Copy, Clone, Debug)]
pub struct Added<'t> {
    /// It broadcasts to the result's shape.
    pub tensor: &'t View,
    /// Its factor. What 0 would multiply is not read.
    pub beta: Scalar,
    /// The product's factor.
    pub alpha: Scalar,
}

/// Products of these dtypes exist on CPU.
pub fn check_dtype(call: &Call, dtype: DType) -> Result<()> {
    if matches!(dtype, DType::Bool | DType::U16 | DType::U32 | DType::U64) {
        let name = call.name.trim_start_matches("aten::");
        return Err(Error::NotImplemented(format!("\"{name}\" not implemented for '{dtype}'")));
    }
    Ok(())
}

/// Checks that the operands have one dtype.
pub fn check_scalar_types(a: DType, b: DType) -> Result<()> {
    check!(a == b, Runtime, "expected scalar type {a} but found {b}");
    Ok(())
}

/// The result tensor with `sizes`, and the addend if there is one.
pub fn prepare(call: &Call, out: Out, dtype: DType, sizes: &[i64], added: Option<Added>) -> Result<(View, Addend)> {
    if let Out::InPlace(t) = out {
        structured::check_in_place(t, dtype, sizes)?;
    }
    let addend = match added {
        None => None,
        Some(Added { tensor, beta, alpha }) => {
            if dtype.is_integer() {
                check_all_fit(&[beta, alpha], dtype)?;
            }
            let tensor = expand(tensor, sizes)?;
            (!is_zero(dtype, beta)).then_some((tensor, beta))
        }
    };
    let target = match out {
        Out::New => call.empty(dtype, sizes)?,
        Out::InPlace(t) => t.clone(),
        Out::Into(t) => structured::result(call, Some(t), dtype, sizes)?,
    };
    check_internal(&target)?;
    Ok((target, addend))
}

/// Checks that a multiple of the addend has its dtype. If there is no product, the CPU computes
/// this as a multiple of any tensor by a number.
fn check_multiple(call: &Call, dtype: DType, beta: Scalar) -> Result<()> {
    let as_is = dtype.is_float() || dtype == DType::Bool || !matches!(beta, Scalar::Double(_)) || beta.to_f64() == 0.0;
    let scaled = if as_is { dtype } else { call.host.default_dtype() };
    check!(can_cast(scaled, dtype), Runtime, "result type {scaled} can't be cast to the desired output type {dtype}");
    Ok(())
}

/// The tensor broadcast to these sizes.
pub fn expand(t: &View, sizes: &[i64]) -> Result<View> {
    check!(
        t.dim() <= sizes.len(),
        Runtime,
        "expand(torch.{}Tensor{{{:?}}}, size={sizes:?}): the number of sizes provided ({}) must be greater or equal to \
         the number of dimensions in the tensor ({})",
        t.dtype,
        t.sizes.as_slice(),
        sizes.len(),
        t.dim()
    );
    let lead = sizes.len() - t.dim();
    for (d, (&have, &want)) in t.sizes.iter().zip(&sizes[lead..]).enumerate().rev() {
        check!(
            have == want || have == 1,
            Runtime,
            "The expanded size of the tensor ({want}) must match the existing size ({have}) at non-singleton dimension \
             {}.  Target sizes: {sizes:?}.  Tensor sizes: {:?}",
            d + lead,
            t.sizes.as_slice()
        );
    }
    Ok(t.expand(sizes))
}

/// Computes `out = alpha * a @ b + beta * added` in `dtype` and returns it. `a` and `b` are
/// matrices or batches of them; `sizes` is the result's shape, without trailing dimensions of size
/// 1 if the result is not a matrix.
pub fn product(
    call: &mut Call,
    out: Out,
    [a, b]: [&View; 2],
    dtype: DType,
    sizes: &[i64],
    added: Option<Added>,
) -> Result<()> {
    product_of(call, out, [a, b], dtype, sizes, added, None)
}

/// [`product`], followed by an expression of the result and of tensors of its shape, for float
/// dtypes.
pub fn product_of(
    call: &mut Call,
    out: Out,
    [a, b]: [&View; 2],
    dtype: DType,
    sizes: &[i64],
    added: Option<Added>,
    then: Option<(Expr, &[View])>,
) -> Result<()> {
    let (target, addend) = prepare(call, out, dtype, sizes, added)?;
    let k = a.sizes[a.dim() - 1];
    let alpha = added.map_or(Scalar::Int(1), |added| added.alpha);
    if let Some(Added { beta, .. }) = added
        && k == 0
        && sizes.len() > 1
        && target.numel() > 0
    {
        check_multiple(call, dtype, beta)?;
    }
    check_sums(call, &target, k, alpha, &addend)?;
    let dtypes = [a, b].map(|t| compute_dtype(call, t));
    Product { factors: [a, b], dtypes, alpha, addend, then }.run(call, &target)?;
    call.ret(target);
    Ok(())
}

/// The product of two matrices as a new contiguous tensor with `sizes`, in which the rows may be
/// several dimensions.
pub fn multiply(call: &Call, a: &View, b: &View, sizes: &[i64]) -> Result<View> {
    check_scalar_types(a.dtype, b.dtype)?;
    let ([m, k], n) = ([a.sizes[0], a.sizes[1]], b.sizes[1]);
    let out = call.empty(a.dtype, sizes)?;
    check_sums(call, &out, k, Scalar::Int(1), &None)?;
    Product::new(a, b).run(call, &out.as_strided(&[m, n], &[n, 1], 0))?;
    Ok(out)
}

/// Checks the dtype of a product of so many terms an element, if there is something to compute:
/// products without terms are of any dtype, as on the CPU.
pub fn check_sums(call: &Call, target: &View, k: i64, alpha: Scalar, addend: &Addend) -> Result<()> {
    if target.numel() > 0 && (addend.is_some() || k > 0 && !is_zero(target.dtype, alpha)) {
        check_dtype(call, target.dtype)?;
    }
    Ok(())
}
