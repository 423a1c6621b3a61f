//! Products of tensors: their result, what is added to them, and the [`Problem`] that they are.

use crate::check;
use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::conversion::check_all_fit;
use crate::operator::error::{Error, Result};
use crate::operator::structured;
use crate::tensor::casting::can_cast;
use crate::tensor::overlap::check_internal;
use dml_compute::context::MatmulPrecision;
use dml_compute::matmul::epilogue::{Bias, Finish, Output};
use dml_compute::matmul::padded;
use dml_compute::matmul::problem::Problem;
use dml_compute::matmul::product::{Added, Addend, is_zero, last, multiplied_in};
use dml_compute::movement::copy;
use dml_compute::pointwise::activation::GELU;
use dml_compute::pointwise::arithmetic::SCALE;
use dml_compute::pointwise::function::Function;
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::scalar::Scalar;
use dml_compute::view::View;
use dml_compute::view::overlap::touches;
use dml_kernel::DType;

/// Products of these dtypes exist on CPU.
pub fn check_dtype(call: &Call, dtype: DType) -> Result<()> {
    if matches!(dtype, DType::Bool | DType::U16 | DType::U32 | DType::U64) {
        let name = call.name.trim_start_matches("aten::");
        return Err(Error::NotImplemented(format!("\"{name}\" not implemented for '{dtype}'")));
    }
    Ok(())
}

/// Checks that operands have one dtype.
pub fn check_scalar_types(a: DType, b: DType) -> Result<()> {
    check!(a == b, Runtime, "expected scalar type {a} but found {b}");
    Ok(())
}

/// The result tensor of `sizes`, and the addend if there is one.
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

/// Checks that a multiple of what is added to a product is of its dtype. Without a product the CPU
/// takes it as any multiple, of numbers.
fn check_multiple(call: &Call, dtype: DType, beta: Scalar) -> Result<()> {
    let as_is = dtype.is_float() || dtype == DType::Bool || !matches!(beta, Scalar::Double(_)) || beta.to_f64() == 0.0;
    let scaled = if as_is { dtype } else { call.host.default_dtype() };
    check!(can_cast(scaled, dtype), Runtime, "result type {scaled} can't be cast to the desired output type {dtype}");
    Ok(())
}

fn expand(t: &View, sizes: &[i64]) -> Result<View> {
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
/// matrices or batches of them, `sizes` is the result's shape, which may leave out dimensions of
/// size 1 at its end.
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

/// [`product`], and a function of each element of the result, of float dtypes.
pub fn product_of(
    call: &mut Call,
    out: Out,
    [a, b]: [&View; 2],
    dtype: DType,
    sizes: &[i64],
    added: Option<Added>,
    activation: Option<&'static Function>,
) -> Result<()> {
    let (target, addend) = prepare(call, out, dtype, sizes, added)?;
    let ([batch, m, k], [.., n]) = (last::<3>(&a.sizes, 1), last::<3>(&b.sizes, 1));
    let (sa, sb) = (last::<3>(&a.strides, 0), last::<3>(&b.strides, 0));
    let alpha = added.map_or(Scalar::Int(1), |added| added.alpha);
    if let Some(Added { beta, .. }) = added
        && k == 0
        && sizes.len() > 1
        && target.numel() > 0
    {
        check_multiple(call, dtype, beta)?;
    }
    let left = padded::source(call, a, [batch, m, k], sa, n, multiplied_in(call, a))?;
    let right = padded::source(call, b, [batch, n, k], [sb[0], sb[2], sb[1]], m, multiplied_in(call, b))?;
    // Matrix units' kernels have few invocations and no registers left for gelu's hundred
    // operations an element: 4096 x 4096 of float16 took 731 µs in one launch on an H100, and 524
    // in two.
    let fused = activation.filter(|&activation| *activation != GELU || dtype.bytes() > 2);
    let mut applied = false;
    into(call, &target, [a, b], alpha, addend, k, |finish| {
        applied = fused.is_some();
        Problem { size: [batch, m, n, k], a: left, b: right, finish: Finish { activation: fused, ..finish } }
    })?;
    if let Some(activation) = activation.filter(|_| !applied && target.numel() > 0) {
        let inputs = [Input::Tensor(target.clone())];
        kernel::run(call, activation, &[&target], &inputs, target.dtype)?;
    }
    call.ret(target);
    Ok(())
}

/// The product of two matrices as a new contiguous tensor of `sizes`, in which the rows may be
/// several dimensions.
pub fn multiply(call: &Call, a: &View, b: &View, sizes: &[i64]) -> Result<View> {
    check_scalar_types(a.dtype, b.dtype)?;
    let ([m, k], n) = ([a.sizes[0], a.sizes[1]], b.sizes[1]);
    let out = call.empty(a.dtype, sizes)?;
    let matrix = out.as_strided(&[m, n], &[n, 1], 0);
    let left = padded::source(call, a, [1, m, k], [0, a.strides[0], a.strides[1]], n, a.dtype)?;
    let right = padded::source(call, b, [1, n, k], [0, b.strides[1], b.strides[0]], m, b.dtype)?;
    into(call, &matrix, [a, b], Scalar::Int(1), None, k, |finish| Problem {
        size: [1, m, n, k],
        a: left,
        b: right,
        finish,
    })?;
    Ok(out)
}

/// Runs a product into `target`; one of float32 as precisely as PyTorch is told to.
pub fn into(
    call: &Call,
    target: &View,
    operands: [&View; 2],
    alpha: Scalar,
    addend: Addend,
    k: i64,
    problem: impl FnOnce(Finish) -> Problem,
) -> Result<()> {
    // Products without factors are of any dtype, as on the CPU.
    if target.numel() == 0 {
        return Ok(());
    }
    // As in BLAS, what is multiplied by 0 is not read, and its infinities are not seen.
    let k = if is_zero(target.dtype, alpha) { 0 } else { k };
    if k == 0 && addend.is_none() {
        return Ok(copy::fill_with(call, target, Scalar::Int(0))?);
    }
    check_dtype(call, target.dtype)?;
    // A result that overlaps an operand is computed beside it.
    let beside = operands.iter().any(|t| touches(t, target))
        || addend
            .as_ref()
            .is_some_and(|(t, _)| touches(t, target) && (t.data, &t.strides) != (target.data, &target.strides));
    let aside = if beside { Some(call.empty(target.dtype, &target.sizes)?) } else { None };
    let place = aside.as_ref().unwrap_or(target);
    if let (0, Some((bias, beta))) = (k, &addend) {
        let inputs = [Input::Tensor(bias.clone()), Input::Number(*beta, target.dtype)];
        kernel::run(call, &SCALE, &[place], &inputs, target.dtype)?;
        return aside.map_or(Ok(()), |result| crate::movement::copies::checked_copy(call, &result, target));
    }
    // A result of fewer dimensions than two is a column, or one element.
    let strides = |t: &View| match t.strides[..] {
        [] => [0, 1, 1],
        [m] => [0, m, 1],
        [m, n] => [0, m, n],
        _ => last::<3>(&t.strides, 0),
    };
    let bias = addend.map(|(tensor, beta)| Bias { strides: strides(&tensor), memory: (&tensor).into(), beta });
    let out = Output { strides: strides(place), memory: place.into(), split: None };
    let mut problem = problem(Finish { out, alpha, bias, activation: None });
    if problem.size[0] == 1 {
        problem.finish.out.strides[0] = 0;
        if let Some(bias) = &mut problem.finish.bias {
            bias.strides[0] = 0;
        }
    }
    let precision = if target.dtype == DType::F32 { call.host.matmul_precision() } else { MatmulPrecision::Highest };
    problem.run_with(call, precision)?;
    aside.map_or(Ok(()), |result| crate::movement::copies::checked_copy(call, &result, target))
}
