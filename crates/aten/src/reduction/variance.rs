//! Variance and standard deviation, optionally with the mean.
//!
//! Means and sums of squared deviations of two groups are combined as by Chan, Golub and LeVeque,
//! "Updating formulae and a pairwise algorithm for computing sample variances" (1979): no
//! cancellation, whatever the mean. Where the result may have any magnitude the squares are summed
//! at three scales, and the sum that neither overflowed nor vanished is used, after J. L. Blue, "A
//! portable Fortran program to find the Euclidean norm of a vector" (1978).

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::reduction::variance;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;

operators! {
    variance(self, dim, correction, keepdim, out; false, false).complex(Complex::Run(complex::reduction::var)) {
        "aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
        "aten::var.correction_out(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False, Tensor(a!) out) -> Tensor(a!)",
    }
    variance(self, dim, correction, keepdim, out; true, false).complex(Complex::Run(complex::reduction::std)) {
        "aten::std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
        "aten::std.correction_out(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False, Tensor(a!) out) -> Tensor(a!)",
    }
    variance(self, dim, correction, keepdim, out; false, true).complex(Complex::Run(complex::reduction::var_mean)) {
        "aten::var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)",
    }
    variance(self, dim, correction, keepdim, out; true, true).complex(Complex::Run(complex::reduction::std_mean)) {
        "aten::std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)",
    }
}

/// The variance, or its root, optionally with the mean.
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
    let average = if mean { Some(call.empty(input.dtype, &sizes)?) } else { None };
    variance::variance(call, input, axes, correction, root, &spread, average.as_ref())?;
    call.ret(spread);
    if let Some(average) = average {
        call.ret(average);
    }
    Ok(())
}
