//! Variance and standard deviation, with the mean if asked for.
//!
//! Means and sums of squared deviations of two groups are joined by Chan, Golub and LeVeque,
//! "Updating formulae and a pairwise algorithm for computing sample variances" (1979): no
//! cancellation, whatever the mean. Where the result may be of any size the squares are summed at
//! three scales, of which the one is taken that neither overflowed nor vanished, after J. L. Blue,
//! "A portable Fortran program to find the Euclidean norm of a vector" (1978).

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::dtype::accumulator;
use dml_compute::reduction::fold::Reduction;
use dml_compute::reduction::reduce::reduce;
use dml_compute::reduction::variance::{Moments, Results};
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;

operators! {
    variance(self, dim, correction, keepdim, out; false, false) {
        "aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
        "aten::var.correction_out(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False, Tensor(a!) out) -> Tensor(a!)",
    }
    variance(self, dim, correction, keepdim, out; true, false) {
        "aten::std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
        "aten::std.correction_out(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False, Tensor(a!) out) -> Tensor(a!)",
    }
    variance(self, dim, correction, keepdim, out; false, true) {
        "aten::var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)",
    }
    variance(self, dim, correction, keepdim, out; true, true) {
        "aten::std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)",
    }
}

/// The variance, or its root, and the mean too if asked for.
pub fn variance(
    call: &mut Call,
    input: &View,
    dims: Option<&[i64]>,
    correction: Option<Number>,
    keep: bool,
    out: Out,
    root: bool,
    mean: bool,
) -> Result<()> {
    let name = match (root, mean) {
        (false, false) => "var",
        (true, false) => "std",
        (false, true) => "var_mean",
        (true, true) => "std_mean",
    };
    let who = if mean { name } else { "std and var" };
    check!(input.dtype.is_float(), Dtype, "{who} only support floating point and complex dtypes");
    let axes = crate::reduction::axes::axes_of(call, dims, input.dim(), keep)?;
    let correction = correction.unwrap_or(Number::Int(1));
    let count = axes.extent(&input.sizes);
    let sizes = axes.sizes(&input.sizes);
    if count as f64 <= correction.to_f64() && sizes.iter().product::<i64>() > 0 {
        call.host.warn(&format!(
            "{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input \
             numel divided by output numel)."
        ));
    }
    let spread = call.result(out.given(), input.dtype, &sizes)?;
    let dtype = accumulator(input.dtype);
    let fold = Moments { scalar: dtype.compute(), results: Results::Spread { root, mean } };
    let numbers = &[(dtype, correction)][..];
    let inputs = &[input][..];
    if mean {
        let average = call.empty(input.dtype, &sizes)?;
        let outs = &[&spread, &average][..];
        reduce(call, &fold, &Reduction { inputs, outs, axes, tables: &[], numbers })?;
        call.ret(spread);
        call.ret(average);
    } else {
        reduce(call, &fold, &Reduction { inputs, outs: &[&spread], axes, tables: &[], numbers })?;
        call.ret(spread);
    }
    Ok(())
}
