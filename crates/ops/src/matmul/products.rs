//! The operators: products of matrices and vectors, with what is added to them.

use super::epilogue::{Bias, Finish, Output};
use super::operand::{Access, Axis, Digits, Pattern, Place, Source, Step};
use super::problem::Problem;
use crate::check;
use crate::movement::copy;
use crate::operator::call::{Call, Ret, Scalar};
use crate::operator::error::{Error, Result};
use crate::operator::structured;
use crate::operator::{Operator, op};
use crate::pointwise::activation::{gelu_body, relu_body};
use crate::pointwise::elementwise::{self, Out};
use crate::pointwise::kernel::{self, Input};
use crate::tensor::{Dims, Tensor};
use dml_kernel::DType;
use smallvec::smallvec;

/// This family's overloads.
pub const OPERATORS: &[&[Operator]] = &[
    &[op("aten::mm", |c| mm(c, Out::New)), op("aten::mm.out", |c| mm(c, Out::Arg(2)))],
    &[
        op("aten::mm.dtype", |c| mm_as(c, Out::New)),
        op("aten::mm.dtype_out", |c| mm_as(c, Out::Arg(3))),
        op("aten::bmm.dtype", |c| bmm_as(c, Out::New)),
        op("aten::bmm.dtype_out", |c| bmm_as(c, Out::Arg(3))),
        op("aten::addmm.dtype", |c| addmm_as(c, Out::New)),
        op("aten::addmm.dtype_out", |c| addmm_as(c, Out::Arg(6))),
        op("aten::baddbmm.dtype", |c| baddbmm_as(c, Out::New)),
        op("aten::baddbmm.dtype_out", |c| baddbmm_as(c, Out::Arg(6))),
    ],
    &[op("aten::bmm", |c| bmm(c, Out::New)), op("aten::bmm.out", |c| bmm(c, Out::Arg(2)))],
    &crate::overloads!(addmm, "aten::addmm", "aten::addmm_", "aten::addmm.out" @ 5),
    &[
        op("aten::_addmm_activation", |c| addmm_activation(c, Out::New)),
        op("aten::_addmm_activation.out", |c| addmm_activation(c, Out::Arg(6))),
    ],
    &crate::overloads!(baddbmm, "aten::baddbmm", "aten::baddbmm_", "aten::baddbmm.out" @ 5),
    &crate::overloads!(addbmm, "aten::addbmm", "aten::addbmm_", "aten::addbmm.out" @ 5),
    &crate::overloads!(addmv, "aten::addmv", "aten::addmv_", "aten::addmv.out" @ 5),
    &[op("aten::mv", |c| mv(c, Out::New)), op("aten::mv.out", |c| mv(c, Out::Arg(2)))],
    &[op("aten::dot", dot), op("aten::vdot", dot)],
    super::linear::OPERATORS,
];

/// `mm(self, mat2)`
fn mm(call: &mut Call, out: Out) -> Result<()> {
    let (a, b) = (call.tensor(0)?, call.tensor(1)?);
    check!(a.dim() == 2, Runtime, "self must be a matrix");
    check!(b.dim() == 2, Runtime, "mat2 must be a matrix");
    check_inner(a, b)?;
    check!(
        a.dtype == b.dtype,
        Runtime,
        "expected m1 and m2 to have the same dtype, but got: {} != {}",
        structured::type_name(a.dtype),
        structured::type_name(b.dtype)
    );
    finish(call, out, a, b, &[a.sizes[0], b.sizes[1]], None)
}

/// `bmm(self, mat2)`
fn bmm(call: &mut Call, out: Out) -> Result<()> {
    let (a, b) = (call.tensor(0)?, call.tensor(1)?);
    let sizes = batched_sizes(a, b)?;
    check_scalar_types(a, b)?;
    finish(call, out, a, b, &sizes, None)
}

/// `addmm(self, mat1, mat2, beta, alpha)`
fn addmm(call: &mut Call, out: Out) -> Result<()> {
    let [bias, a, b] = three(call)?;
    for (x, y, name) in [(bias, b, "self"), (a, b, "mat1")] {
        check!(
            x.dtype == y.dtype,
            Runtime,
            "{name} and mat2 must have the same dtype, but got {} and {}",
            x.dtype,
            y.dtype
        );
    }
    check!(a.dim() == 2, Runtime, "mat1 must be a matrix, got {}-D tensor", a.dim());
    check!(b.dim() == 2, Runtime, "mat2 must be a matrix, got {}-D tensor", b.dim());
    check_inner(a, b)?;
    finish(call, out, a, b, &[a.sizes[0], b.sizes[1]], Some(bias))
}

/// `mm(self, mat2, out_dtype)`
fn mm_as(call: &mut Call, out: Out) -> Result<()> {
    let (a, b) = (call.tensor(0)?, call.tensor(1)?);
    let dtype = wider(call, 2, a, b, None)?;
    check!(a.dim() == 2, Runtime, "self must be a matrix");
    check!(b.dim() == 2, Runtime, "mat2 must be a matrix");
    check_inner(a, b)?;
    finish_as(call, out, a, b, &[a.sizes[0], b.sizes[1]], None, Some(dtype))
}

/// `bmm(self, mat2, out_dtype)`
fn bmm_as(call: &mut Call, out: Out) -> Result<()> {
    let (a, b) = (call.tensor(0)?, call.tensor(1)?);
    let dtype = wider(call, 2, a, b, None)?;
    let sizes = batched_sizes(a, b)?;
    finish_as(call, out, a, b, &sizes, None, Some(dtype))
}

/// `addmm(self, mat1, mat2, out_dtype, beta, alpha)`
fn addmm_as(call: &mut Call, out: Out) -> Result<()> {
    let [bias, a, b] = three(call)?;
    let dtype = wider(call, 3, a, b, Some(bias))?;
    check!(a.dim() == 2, Runtime, "mat1 must be a matrix, got {}-D tensor", a.dim());
    check!(b.dim() == 2, Runtime, "mat2 must be a matrix, got {}-D tensor", b.dim());
    check_inner(a, b)?;
    finish_as(call, out, a, b, &[a.sizes[0], b.sizes[1]], Some(bias), Some(dtype))
}

/// `baddbmm(self, batch1, batch2, out_dtype, beta, alpha)`
fn baddbmm_as(call: &mut Call, out: Out) -> Result<()> {
    let [bias, a, b] = three(call)?;
    let dtype = wider(call, 3, a, b, Some(bias))?;
    let sizes = batched_sizes(a, b)?;
    finish_as(call, out, a, b, &sizes, Some(bias), Some(dtype))
}

/// The dtype at argument `i` for a product of `a` and `b`: theirs, or float32 for half precision. What is added to it
/// has either.
fn wider(call: &Call, i: usize, a: &Tensor, b: &Tensor, bias: Option<&Tensor>) -> Result<DType> {
    let dtype = call.opt_dtype(i)?.unwrap_or(a.dtype);
    check_scalar_types(a, b)?;
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
    Ok(dtype)
}

/// `_addmm_activation(self, mat1, mat2, beta, alpha, use_gelu)`: gelu or relu of `addmm`.
fn addmm_activation(call: &mut Call, out: Out) -> Result<()> {
    let gelu = call.flag(5)?;
    addmm(call, out)?;
    let Some(Ret::Tensor(out)) = call.returns.last() else { return Ok(()) };
    let inputs = [Input::Tensor(out.clone())];
    let family = if gelu { "gelu" } else { "relu" };
    kernel::run(call, family, 0, &[out], &inputs, out.dtype, |_, v| {
        vec![if gelu { gelu_body(v[0]) } else { relu_body(v[0]) }]
    })
}

/// `baddbmm(self, batch1, batch2, beta, alpha)`
fn baddbmm(call: &mut Call, out: Out) -> Result<()> {
    let [bias, a, b] = three(call)?;
    let sizes = batched_sizes(a, b)?;
    check!(
        bias.dtype == a.dtype,
        Runtime,
        "Input dtypes must be the same, got: input {}, batch1: {}, batch2: {}",
        structured::type_name(bias.dtype),
        structured::type_name(a.dtype),
        structured::type_name(b.dtype)
    );
    check_scalar_types(a, b)?;
    finish(call, out, a, b, &sizes, Some(bias))
}

/// `addbmm(self, batch1, batch2, beta, alpha)`: one product whose inner index is batch and k together.
fn addbmm(call: &mut Call, out: Out) -> Result<()> {
    let [bias, a, b] = three(call)?;
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
    for (x, y, name) in [(bias, b, "self"), (a, b, "mat1")] {
        check!(
            x.dtype == y.dtype,
            Runtime,
            "{name} and mat2 must have the same dtype, but got {} and {}",
            x.dtype,
            y.dtype
        );
    }
    let k = a.sizes[0] * a.sizes[2];
    let sizes = [a.sizes[1], b.sizes[2]];
    let (target, addend) = prepare(call, out, a.dtype, &sizes, Some(bias), 3)?;
    let operand = |t: &Tensor, outer: usize, inner: usize| {
        let digits = |plain| Digits { plain, plain_first: true };
        let pattern = Pattern::Digits { outer: digits(1), inner: digits(2), windows: 0, divided: false };
        let step = |d: usize| Step { size: t.sizes[d], stride: t.strides[d] };
        let place = Place::Digits {
            outer: smallvec![step(outer)],
            inner: smallvec![step(0), step(inner)],
            windows: smallvec![],
        };
        let axis = if t.strides[outer] == 1 { Axis::Outer } else { Axis::Inner };
        Source { memory: t.into(), batch: 0, access: Access { dtype: t.dtype, axis, wide: false, pattern }, place }
    };
    let alpha = alpha(call, true, 3)?;
    into(call, &target, [a, b], alpha, addend, k, |finish| Problem {
        size: [1, sizes[0], sizes[1], k],
        a: operand(a, 1, 2),
        b: operand(b, 2, 1),
        finish,
    })?;
    call.ret(target);
    Ok(())
}

/// `addmv(self, mat, vec, beta, alpha)`
fn addmv(call: &mut Call, out: Out) -> Result<()> {
    let [bias, mat, vec] = three(call)?;
    check_vector(&bias.sizes, mat, vec)?;
    check_scalar_types(mat, vec)?;
    let column = vec.as_strided(&[vec.sizes[0], 1], &[vec.strides[0], 1], 0);
    finish(call, out, mat, &column, &[mat.sizes[0]], Some(bias))
}

/// `mv(self, vec)`
fn mv(call: &mut Call, out: Out) -> Result<()> {
    let (mat, vec) = (call.tensor(0)?, call.tensor(1)?);
    check_vector(&mat.sizes[..mat.dim().min(1)], mat, vec)?;
    check_scalar_types(mat, vec)?;
    let column = vec.as_strided(&[vec.sizes[0], 1], &[vec.strides[0], 1], 0);
    finish(call, out, mat, &column, &[mat.sizes[0]], None)
}

/// `dot(self, tensor)`; of real numbers `vdot` is the same.
fn dot(call: &mut Call) -> Result<()> {
    let (a, b) = (call.tensor(0)?, call.tensor(1)?);
    check!(a.dim() == 1 && b.dim() == 1, Runtime, "1D tensors expected, but got {}D and {}D tensors", a.dim(), b.dim());
    check!(
        a.dtype == b.dtype,
        Runtime,
        "dot : expected both vectors to have same dtype, but found {} and {}",
        a.dtype,
        b.dtype
    );
    let (n, m) = (a.sizes[0], b.sizes[0]);
    check!(
        n == m,
        Runtime,
        "inconsistent tensor size, expected tensor [{n}] and src [{m}] to have the same number of elements, but got \
         {n} and {m} elements respectively"
    );
    let row = a.as_strided(&[1, n], &[1, a.strides[0]], 0);
    let column = b.as_strided(&[n, 1], &[b.strides[0], 1], 0);
    finish(call, Out::New, &row, &column, &[], None)
}

/// The first three arguments, tensors.
fn three<'a>(call: &Call<'a>) -> Result<[&'a Tensor; 3]> {
    Ok([call.tensor(0)?, call.tensor(1)?, call.tensor(2)?])
}

fn check_inner(a: &Tensor, b: &Tensor) -> Result<()> {
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

fn check_vector(bias: &[i64], mat: &Tensor, vec: &Tensor) -> Result<()> {
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

fn check_scalar_types(a: &Tensor, b: &Tensor) -> Result<()> {
    check!(a.dtype == b.dtype, Runtime, "expected scalar type {} but found {}", a.dtype, b.dtype);
    Ok(())
}

fn batched_sizes(a: &Tensor, b: &Tensor) -> Result<[i64; 3]> {
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

/// Products of these dtypes exist on CPU.
pub fn check_dtype(call: &Call, dtype: DType) -> Result<()> {
    if matches!(dtype, DType::Bool | DType::U16 | DType::U32 | DType::U64) {
        let name = call.name.trim_start_matches("aten::");
        return Err(Error::NotImplemented(format!("\"{name}\" not implemented for '{dtype}'")));
    }
    Ok(())
}

/// What is added to a product, expanded to its shape, and its factor.
type Addend = Option<(Tensor, Scalar)>;

/// Whether a factor is 0 in this dtype: what it would multiply is then not read, and its NaNs not seen.
fn is_zero(dtype: DType, factor: Scalar) -> bool {
    if dtype.is_float() { factor.to_f64() == 0.0 } else { factor.to_i64() == 0 }
}

/// The factor of a product, behind that of its addend at argument `beta`.
fn alpha(call: &Call, added: bool, beta: usize) -> Result<Scalar> {
    if added { call.scalar(beta + 1) } else { Ok(Scalar::Int(1)) }
}

/// The result tensor of `sizes`, and the addend (argument 0, times argument `beta`) if there is one.
fn prepare(
    call: &Call,
    out: Out,
    dtype: DType,
    sizes: &[i64],
    bias: Option<&Tensor>,
    beta: usize,
) -> Result<(Tensor, Addend)> {
    check_dtype(call, dtype)?;
    if out == Out::InPlace {
        let t = call.tensor(0)?;
        check!(
            t.sizes.as_slice() == sizes,
            Runtime,
            "Bad in-place call: input tensor size {:?} and output tensor size {sizes:?} should match",
            t.sizes.as_slice()
        );
    }
    let addend = match bias {
        None => None,
        Some(bias) => {
            let beta = call.scalar(beta)?;
            let bias = expand(bias, sizes)?;
            (!is_zero(dtype, beta)).then_some((bias, beta))
        }
    };
    let target = match out {
        Out::New => call.empty(dtype, sizes)?,
        Out::InPlace => call.tensor(0)?.clone(),
        Out::Arg(i) => {
            let out = call.tensor(i)?;
            check!(
                out.dtype == dtype,
                Runtime,
                "Expected out tensor to have dtype {}, but got {} instead",
                structured::type_name(dtype),
                structured::type_name(out.dtype)
            );
            call.out(Some(i), dtype, sizes)?
        }
    };
    elementwise::check_no_self_overlap(&target)?;
    Ok((target, addend))
}

fn expand(t: &Tensor, sizes: &[i64]) -> Result<Tensor> {
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

/// Sizes or strides of the last three dimensions, with `fill` for those that are missing.
fn last<const N: usize>(dims: &Dims, fill: i64) -> [i64; N] {
    std::array::from_fn(|i| (dims.len() + i).checked_sub(N).map_or(fill, |d| dims[d]))
}

/// Computes `out = alpha * a @ b + beta * bias` and returns it. `a` and `b` are matrices or batches of them; `sizes` is
/// the result's shape, which may leave out dimensions of size 1 at its end.
fn finish(call: &mut Call, out: Out, a: &Tensor, b: &Tensor, sizes: &[i64], bias: Option<&Tensor>) -> Result<()> {
    finish_as(call, out, a, b, sizes, bias, None)
}

/// [`finish`] with a dtype for the result, which is an argument before the factors.
fn finish_as(
    call: &mut Call,
    out: Out,
    a: &Tensor,
    b: &Tensor,
    sizes: &[i64],
    bias: Option<&Tensor>,
    dtype: Option<DType>,
) -> Result<()> {
    let beta = 3 + usize::from(dtype.is_some());
    let (target, addend) = prepare(call, out, dtype.unwrap_or(a.dtype), sizes, bias, beta)?;
    let ([batch, m, k], [.., n]) = (last::<3>(&a.sizes, 1), last::<3>(&b.sizes, 1));
    let (sa, sb) = (last::<3>(&a.strides, 0), last::<3>(&b.strides, 0));
    let alpha = alpha(call, bias.is_some(), beta)?;
    into(call, &target, [a, b], alpha, addend, k, |finish| Problem {
        size: [batch, m, n, k],
        a: Source::strided(a, [m, k], [sa[1], sa[2]], if batch == 1 { 0 } else { sa[0] }),
        b: Source::strided(b, [n, k], [sb[2], sb[1]], if batch == 1 { 0 } else { sb[0] }),
        finish,
    })?;
    call.ret(target);
    Ok(())
}

/// The product of two matrices as a new contiguous tensor of `sizes`, in which the rows may be several dimensions.
pub fn multiply(call: &Call, a: &Tensor, b: &Tensor, sizes: &[i64]) -> Result<Tensor> {
    check_scalar_types(a, b)?;
    check_dtype(call, a.dtype)?;
    let ([m, k], n) = ([a.sizes[0], a.sizes[1]], b.sizes[1]);
    let out = call.empty(a.dtype, sizes)?;
    let matrix = out.as_strided(&[m, n], &[n, 1], 0);
    into(call, &matrix, [a, b], Scalar::Int(1), None, k, |finish| Problem {
        size: [1, m, n, k],
        a: Source::strided(a, [m, k], [a.strides[0], a.strides[1]], 0),
        b: Source::strided(b, [n, k], [b.strides[1], b.strides[0]], 0),
        finish,
    })?;
    Ok(out)
}

/// Runs a product into `target`.
fn into(
    call: &Call,
    target: &Tensor,
    operands: [&Tensor; 2],
    alpha: Scalar,
    addend: Addend,
    k: i64,
    problem: impl FnOnce(Finish) -> Problem,
) -> Result<()> {
    if target.numel() == 0 {
        return Ok(());
    }
    if k == 0 {
        let Some((bias, beta)) = addend else { return copy::fill_with(call, target, Scalar::Int(0)) };
        let inputs = [Input::Tensor(bias), Input::Number(beta, target.dtype)];
        return kernel::run(call, "scale", 0, &[target], &inputs, target.dtype, |_, v| vec![v[0] * v[1]]);
    }
    // A result that overlaps an operand is computed beside it.
    let overlaps = |t: &&Tensor| {
        let (a, b) = (t.range(), target.range());
        a.start < b.end && b.start < a.end
    };
    let beside = operands.iter().any(overlaps)
        || addend.as_ref().is_some_and(|(t, _)| overlaps(&t) && (t.data, &t.strides) != (target.data, &target.strides));
    let aside = if beside { Some(call.empty(target.dtype, &target.sizes)?) } else { None };
    let place = aside.as_ref().unwrap_or(target);
    // A result of fewer dimensions than two is a column, or one element.
    let strides = |t: &Tensor| match t.strides[..] {
        [] => [0, 1, 1],
        [m] => [0, m, 1],
        [m, n] => [0, m, n],
        _ => last::<3>(&t.strides, 0),
    };
    let bias = addend.map(|(tensor, beta)| Bias { strides: strides(&tensor), memory: (&tensor).into(), beta });
    let out = Output { strides: strides(place), memory: place.into(), split: None };
    let mut problem = problem(Finish { out, alpha, bias });
    if problem.size[0] == 1 {
        problem.finish.out.strides[0] = 0;
        if let Some(bias) = &mut problem.finish.bias {
            bias.strides[0] = 0;
        }
    }
    problem.run(call)?;
    aside.map_or(Ok(()), |result| copy::device_copy(call, &result, target))
}
