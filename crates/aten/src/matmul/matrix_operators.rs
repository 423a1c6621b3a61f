//! The operators of products of matrices and of batches of matrices, with or without an addend.

use crate::matmul::product::{Added, check_scalar_types, check_sums, prepare, product, product_of};
use crate::operator::argument::Out;
use crate::operator::call::{Call, Ret};
use crate::operator::error::Result;
use crate::operator::structured;
use crate::tensor::casting::can_cast;
use crate::tensor::promote::{Promoted, result_type};
use crate::{check, operators};
use dml_compute::matmul::product::{Product, compute_dtype, sum_of_batch};
use dml_compute::movement::copy::cast;
use dml_compute::pointwise::activation::{GELU, RELU};
use dml_compute::pointwise::function::Function;
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::scalar::Scalar;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    int_mm(self, mat2, out) {
        "aten::_int_mm(Tensor self, Tensor mat2) -> Tensor",
        "aten::_int_mm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)",
    }
    mm(self, mat2, out).complex(Complex::Run(complex::product::mm)) {
        hot "aten::mm(Tensor self, Tensor mat2) -> Tensor",
        "aten::mm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)",
    }
    mm_as(self, mat2, out_dtype, out).complex(Complex::Run(complex::product::mm)) {
        "aten::mm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor",
        "aten::mm.dtype_out(Tensor self, Tensor mat2, ScalarType out_dtype, *, Tensor(a!) out) -> Tensor(a!)",
    }
    bmm(self, mat2, out).complex(Complex::Run(complex::product::bmm)) {
        hot "aten::bmm(Tensor self, Tensor mat2) -> Tensor",
        "aten::bmm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)",
    }
    bmm_as(self, mat2, out_dtype, out).complex(Complex::Run(complex::product::bmm)) {
        "aten::bmm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor",
        "aten::bmm.dtype_out(Tensor self, Tensor mat2, ScalarType out_dtype, *, Tensor(a!) out) -> Tensor(a!)",
    }
    addmm(self, mat1, mat2, beta, alpha, out).complex(Complex::Run(complex::product::addmm)) {
        hot "aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        "aten::addmm_(Tensor(a!) self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)",
        "aten::addmm.out(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
    }
    addmm_as(self, mat1, mat2, out_dtype, beta, alpha, out).complex(Complex::Run(complex::product::addmm)) {
        "aten::addmm.dtype(Tensor self, Tensor mat1, Tensor mat2, ScalarType out_dtype, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        "aten::addmm.dtype_out(Tensor self, Tensor mat1, Tensor mat2, ScalarType out_dtype, *, Scalar beta=1, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
    }
    addmm_activation(self, mat1, mat2, beta, alpha, use_gelu, out) {
        "aten::_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, bool use_gelu=False) -> Tensor",
        "aten::_addmm_activation.out(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, bool use_gelu=False, Tensor(a!) out) -> Tensor(a!)",
    }
    baddbmm(self, batch1, batch2, beta, alpha, out).complex(Complex::Run(complex::product::baddbmm)) {
        hot "aten::baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        "aten::baddbmm_(Tensor(a!) self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)",
        "aten::baddbmm.out(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
    }
    baddbmm_as(self, batch1, batch2, out_dtype, beta, alpha, out).complex(Complex::Run(complex::product::baddbmm)) {
        "aten::baddbmm.dtype(Tensor self, Tensor batch1, Tensor batch2, ScalarType out_dtype, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        "aten::baddbmm.dtype_out(Tensor self, Tensor batch1, Tensor batch2, ScalarType out_dtype, *, Scalar beta=1, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
    }
    addbmm(self, batch1, batch2, beta, alpha, out).complex(Complex::Run(complex::product::addbmm)) {
        "aten::addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        "aten::addbmm_(Tensor(a!) self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)",
        "aten::addbmm.out(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// The product of int8 matrices, accumulated in int32.
fn int_mm(call: &mut Call, a: &View, b: &View, out: Out) -> Result<()> {
    let name = "int_mm_out_cpu";
    for (t, what) in [(a, "self"), (b, "mat2")] {
        check!(t.dim() == 2, Runtime, "{name}: Expected {what} to be of dimension 2 but got {}", t.dim());
    }
    let ([m, k], [rows, n]) = ([a.sizes[0], a.sizes[1]], [b.sizes[0], b.sizes[1]]);
    check!(k == rows, Runtime, "{name}: self.size(1) needs to match mat2.size(0) but got {k} and {rows}");
    for (t, what) in [(a, "self"), (b, "mat2")] {
        let int8 = t.dtype == DType::I8;
        check!(
            int8,
            Runtime,
            "{name}: Expected {what} dtype to be of type int8 but got {}",
            structured::type_name(t.dtype)
        );
    }
    let target = match out.given() {
        None => call.empty(DType::I32, &[m, n])?,
        Some(t) => {
            let dtype = structured::type_name(t.dtype);
            check!(t.dtype == DType::I32, Runtime, "{name}: Expected result dtype to be of type kInt but got {dtype}");
            for (d, size) in [m, n].into_iter().enumerate() {
                let have = call.size_of(t, d)?;
                check!(have == size, Runtime, "{name}: Expected result.size({d}) to be {size} but got {have}");
            }
            check!(t.dim() == 2, Runtime, "{name}: Expected result to be of dimension 2 but got {}", t.dim());
            check!(t.is_contiguous(), Runtime, "{name}: Expected result to be contiguous.");
            t.clone()
        }
    };
    Product::new(a, b).run(call, &target)?;
    call.ret(target);
    Ok(())
}

fn mm(call: &mut Call, a: &View, b: &View, out: Out) -> Result<()> {
    check!(a.dim() == 2, Runtime, "self must be a matrix");
    check!(b.dim() == 2, Runtime, "mat2 must be a matrix");
    check_inner(a, b)?;
    let [x, y] = [a, b].map(|t| compute_dtype(call, t));
    check!(
        x == y,
        Runtime,
        "expected m1 and m2 to have the same dtype, but got: {} != {}",
        structured::type_name(x),
        structured::type_name(y)
    );
    product(call, out, [a, b], x, &[a.sizes[0], b.sizes[1]], None)
}

fn bmm(call: &mut Call, a: &View, b: &View, out: Out) -> Result<()> {
    let sizes = batched_sizes(a, b)?;
    let dtype = check_batches(call, a, b, &sizes)?;
    product(call, out, [a, b], dtype, &sizes, None)
}

fn addmm(call: &mut Call, bias: &View, a: &View, b: &View, beta: Scalar, alpha: Scalar, out: Out) -> Result<()> {
    addmm_of(call, bias, a, b, beta, alpha, out, None)
}

fn addmm_of(
    call: &mut Call,
    bias: &View,
    a: &View,
    b: &View,
    beta: Scalar,
    alpha: Scalar,
    out: Out,
    activation: Option<&'static Function>,
) -> Result<()> {
    let [first, second] = [a, b].map(|t| compute_dtype(call, t));
    for (dtype, name) in [(bias.dtype, "self"), (first, "mat1")] {
        check!(dtype == second, Runtime, "{name} and mat2 must have the same dtype, but got {dtype} and {second}");
    }
    check!(a.dim() == 2, Runtime, "mat1 must be a matrix, got {}-D tensor", a.dim());
    check!(b.dim() == 2, Runtime, "mat2 must be a matrix, got {}-D tensor", b.dim());
    check_inner(a, b)?;
    let added = Some(Added { tensor: bias, beta, alpha });
    product_of(
        call,
        out,
        [a, b],
        first,
        &[a.sizes[0], b.sizes[1]],
        added,
        activation.map(|function| (function.into(), &[][..])),
    )
}

fn mm_as(call: &mut Call, a: &View, b: &View, dtype: DType, out: Out) -> Result<()> {
    check_wider(dtype, a, b, None)?;
    check!(a.dim() == 2, Runtime, "self must be a matrix");
    check!(b.dim() == 2, Runtime, "mat2 must be a matrix");
    check_inner(a, b)?;
    product(call, out, [a, b], dtype, &[a.sizes[0], b.sizes[1]], None)
}

fn bmm_as(call: &mut Call, a: &View, b: &View, dtype: DType, out: Out) -> Result<()> {
    check_wider(dtype, a, b, None)?;
    let sizes = batched_sizes(a, b)?;
    product(call, out, [a, b], dtype, &sizes, None)
}

fn addmm_as(
    call: &mut Call,
    bias: &View,
    a: &View,
    b: &View,
    dtype: DType,
    beta: Scalar,
    alpha: Scalar,
    out: Out,
) -> Result<()> {
    check_wider(dtype, a, b, Some(bias))?;
    check!(a.dim() == 2, Runtime, "mat1 must be a matrix, got {}-D tensor", a.dim());
    check!(b.dim() == 2, Runtime, "mat2 must be a matrix, got {}-D tensor", b.dim());
    check_inner(a, b)?;
    product(call, out, [a, b], dtype, &[a.sizes[0], b.sizes[1]], Some(Added { tensor: bias, beta, alpha }))
}

fn baddbmm_as(
    call: &mut Call,
    bias: &View,
    a: &View,
    b: &View,
    dtype: DType,
    beta: Scalar,
    alpha: Scalar,
    out: Out,
) -> Result<()> {
    check_wider(dtype, a, b, Some(bias))?;
    let sizes = batched_sizes(a, b)?;
    product(call, out, [a, b], dtype, &sizes, Some(Added { tensor: bias, beta, alpha }))
}

/// Checks the dtype that is requested for a product of `a` and `b`: their dtype, or float32 for
/// half precision. The addend may have either dtype.
fn check_wider(dtype: DType, a: &View, b: &View, bias: Option<&View>) -> Result<()> {
    check_scalar_types(a.dtype, b.dtype)?;
    check!(
        dtype == a.dtype || dtype == DType::F32 && matches!(a.dtype, DType::F16 | DType::BF16),
        Runtime,
        "out_dtype must be the same as input dtype or fp32 for fp16/bf16 inputs, but got {dtype} for {}",
        a.dtype
    );
    if let Some(bias) = bias {
        check!(
            bias.dtype == dtype || bias.dtype == a.dtype,
            Runtime,
            "self dtype must match either out_dtype or the dtype of the matrices, but got {}",
            bias.dtype
        );
    }
    Ok(())
}

/// gelu or relu of the result of `addmm`.
fn addmm_activation(
    call: &mut Call,
    bias: &View,
    a: &View,
    b: &View,
    beta: Scalar,
    alpha: Scalar,
    gelu: bool,
    out: Out,
) -> Result<()> {
    let activation = if gelu { &GELU } else { &RELU };
    if a.dtype.is_float() {
        return addmm_of(call, bias, a, b, beta, alpha, out, Some(activation));
    }
    addmm(call, bias, a, b, beta, alpha, out)?;
    let Some(Ret::Tensor(out)) = call.returns.last() else { return Ok(()) };
    let inputs = [Input::Tensor(out.clone())];
    Ok(kernel::run(call, activation, &[out], &inputs, out.dtype)?)
}

fn baddbmm(call: &mut Call, bias: &View, a: &View, b: &View, beta: Scalar, alpha: Scalar, out: Out) -> Result<()> {
    // The CPU raises errors for the result's sizes first.
    for (t, d) in [(a, 0), (a, 1), (b, 2)] {
        call.size_of(t, d)?;
    }
    let sizes = batched_sizes(a, b)?;
    let [first, second] = [a, b].map(|t| compute_dtype(call, t));
    check!(
        bias.dtype == first,
        Runtime,
        "Input dtypes must be the same, got: input {}, batch1: {}, batch2: {}",
        structured::type_name(bias.dtype),
        structured::type_name(first),
        structured::type_name(second)
    );
    let dtype = check_batches(call, a, b, &sizes)?;
    product(call, out, [a, b], dtype, &sizes, Some(Added { tensor: bias, beta, alpha }))
}

/// Checks the dtypes of batches, unless a matrix is empty. The result has the dtype of the second.
fn check_batches(call: &Call, a: &View, b: &View, sizes: &[i64]) -> Result<DType> {
    let [first, second] = [a, b].map(|t| compute_dtype(call, t));
    if a.sizes[2] > 0 && !sizes.contains(&0) {
        check_scalar_types(first, second)?;
    }
    Ok(second)
}

/// A single product whose inner index is batch and k together. If there are no batches, the addend
/// may have another dtype than they have. `out=` first becomes a copy of the addend, in the
/// addend's dtype.
fn addbmm(call: &mut Call, bias: &View, a: &View, b: &View, beta: Scalar, alpha: Scalar, out: Out) -> Result<()> {
    // The CPU raises errors for the result's sizes first.
    for (t, d) in [(a, 1), (b, 2)] {
        call.size_of(t, d)?;
    }
    check!(a.dim() == 3, Runtime, "batch1 must be a 3D tensor");
    check!(b.dim() == 3, Runtime, "batch2 must be a 3D tensor");
    check!(
        a.sizes[0] == b.sizes[0],
        Runtime,
        "batch1 and batch2 must have same number of batches, got {} and {}",
        a.sizes[0],
        b.sizes[0]
    );
    check!(
        a.sizes[2] == b.sizes[1],
        Runtime,
        "Incompatible matrix sizes for bmm ({}x{} and {}x{})",
        a.sizes[1],
        a.sizes[2],
        b.sizes[1],
        b.sizes[2]
    );
    let k = a.sizes[0] * a.sizes[2];
    let converted = match out {
        Out::Into(t) if t.dtype != bias.dtype => Some(cast(call, bias, t.dtype)?),
        _ => None,
    };
    let bias = converted.as_ref().unwrap_or(bias);
    let scaled = result_type(&[Promoted::Tensor(bias), Promoted::Scalar(beta)], call.host.default_dtype());
    check!(
        k > 0 || beta.to_f64() == 0.0 || can_cast(scaled, bias.dtype),
        Runtime,
        "result type {scaled} can't be cast to the desired output type {}",
        bias.dtype
    );
    for (x, y, name) in [(bias, b, "self"), (a, b, "mat1")] {
        check!(
            x.dtype == y.dtype || a.sizes[0] == 0,
            Runtime,
            "{name} and mat2 must have the same dtype, but got {} and {}",
            x.dtype,
            y.dtype
        );
    }
    let (a, b) = (&View { dtype: bias.dtype, ..a.clone() }, &View { dtype: bias.dtype, ..b.clone() });
    let sizes = [a.sizes[1], b.sizes[2]];
    let (target, addend) = prepare(call, out, bias.dtype, &sizes, Some(Added { tensor: bias, beta, alpha }))?;
    check_sums(call, &target, k, alpha, &addend)?;
    sum_of_batch(call, a, b, alpha, addend, &target)?;
    call.ret(target);
    Ok(())
}

/// Checks that rows of `a` are as long as columns of `b`.
pub fn check_inner(a: &View, b: &View) -> Result<()> {
    check!(
        a.sizes[1] == b.sizes[0],
        Runtime,
        "mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})",
        a.sizes[0],
        a.sizes[1],
        b.sizes[0],
        b.sizes[1]
    );
    Ok(())
}

/// The sizes of the product of two batches, whose sizes are checked.
pub fn batched_sizes(a: &View, b: &View) -> Result<[i64; 3]> {
    check!(a.dim() == 3, Runtime, "batch1 must be a 3D tensor");
    check!(b.dim() == 3, Runtime, "batch2 must be a 3D tensor");
    check!(
        a.sizes[0] == b.sizes[0] && a.sizes[2] == b.sizes[1],
        Runtime,
        "Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: [{}, {}].",
        a.sizes[0],
        a.sizes[2],
        b.sizes[0],
        b.sizes[1]
    );
    Ok([a.sizes[0], a.sizes[1], b.sizes[2]])
}
