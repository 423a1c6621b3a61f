//! Argument checks for batches of matrices, and the return of their results.
//!
//! A decomposition works on a tensor of three dimensions, `[batch, rows, columns]`, with any
//! strides; a part of the matrices is a view.

use crate::check;
use crate::operator::call::Call;
use crate::operator::error::Result;
use dml_compute::linear_algebra::matrices::{batch_of, device_copy, has_kernels};
use dml_compute::view::{Dims, View};

/// Returns a result: `made` itself, or `out=`, to which it is copied, with a cast if that loses
/// nothing.
pub fn return_result(call: &mut Call, given: Option<&View>, made: View) -> Result<()> {
    let Some(given) = given else {
        call.ret(made);
        return Ok(());
    };
    let out = call.result_strided(Some(given), made.dtype, &made.sizes, || made.strides.clone())?;
    if out.numel() > 0 {
        device_copy(call, &made, &out)?;
    }
    call.ret(out);
    Ok(())
}

/// Checks that a tensor is a batch of matrices.
pub fn check_matrices(t: &View, operator: &str, name: &str) -> Result<()> {
    check!(t.dim() >= 2, Runtime, "{operator}: The input tensor {name} must have at least 2 dimensions.");
    Ok(())
}

/// Checks that a tensor is a batch of square matrices.
pub fn check_square(t: &View, operator: &str, name: &str) -> Result<()> {
    check_matrices(t, operator, name)?;
    check!(
        t.size(-1) == t.size(-2),
        Runtime,
        "{operator}: {name} must be batches of square matrices, but they are {} by {} matrices",
        t.size(-2),
        t.size(-1)
    );
    Ok(())
}

/// Checks that elements are floats.
pub fn check_floats(t: &View, operator: &str) -> Result<()> {
    let dtype = t.dtype;
    let fits = dtype.is_float() || dtype.is_complex();
    check!(fits, Dtype, "{operator}: Expected a floating point or complex tensor as input. Got {dtype}");
    Ok(())
}

/// Checks that elements are floats, for an operator that refuses halves before its kernel does.
pub fn check_wide_floats(t: &View, operator: &str) -> Result<()> {
    check_floats(t, operator)?;
    let dtype = t.dtype;
    check!(has_kernels(dtype), Dtype, "{operator}: Low precision dtypes not supported. Got {dtype}");
    Ok(())
}

/// Checks that there are kernels for the dtype, unless the tensor is empty: an empty tensor may
/// have any dtype.
pub fn check_kernels_of_elements(t: &View, kernel: &str) -> Result<()> {
    if t.numel() == 0 { Ok(()) } else { check_kernels(t, kernel) }
}

/// Checks that there are kernels for the dtype; `kernel` is the name of the CPU's kernel.
pub fn check_kernels(t: &View, kernel: &str) -> Result<()> {
    check!(has_kernels(t.dtype), NotImplemented, "\"{kernel}\" not implemented for '{}'", t.dtype);
    Ok(())
}

/// Checks the operands of `AX = B`, or of `XA = B` if A is not on the left.
pub fn check_system(a: &View, b: &View, left: bool, operator: &str) -> Result<()> {
    check_square(a, operator, "A")?;
    check_matrices(b, operator, "B")?;
    check!(
        a.size(-2) == b.size(if left { -2 } else { -1 }),
        Runtime,
        "{operator}: Incompatible shapes of A and B for the equation {} ({}x{} and {}x{})",
        if left { "AX = B" } else { "XA = B" },
        a.size(-2),
        a.size(-1),
        b.size(-2),
        b.size(-1)
    );
    Ok(())
}

/// Checks the operands of `AX = b`, for operators that are older than linalg's.
pub fn check_linear_solve(b: &View, a: &View, operator: &str) -> Result<()> {
    check!(
        a.dtype == b.dtype,
        Runtime,
        "Expected b and A to have the same dtype, but found b of type {} and A of type {} instead.",
        b.dtype,
        a.dtype
    );
    check!(
        a.size(-1) == a.size(-2),
        Runtime,
        "A must be batches of square matrices, but they are {} by {} matrices",
        a.size(-2),
        a.size(-1)
    );
    check!(
        b.dim() >= 2,
        Index,
        "Dimension out of range (expected to be in range of [-{0}, {1}], but got -2)",
        b.dim().max(1),
        b.dim().max(1) - 1
    );
    check!(
        a.size(-2) == b.size(-2),
        Runtime,
        "Incompatible matrix sizes for {operator}: each A matrix is {} by {} but each b matrix is {} by {}",
        a.size(-1),
        a.size(-1),
        b.size(-2),
        b.size(-1)
    );
    Ok(())
}

/// The broadcast batch sizes of two operands.
pub fn broadcast_batch(call: &Call, a: &View, b: &View) -> Result<Dims> {
    call.broadcast(batch_of(a), batch_of(b))
}
