//! The operators bincount and histc: the number of elements in each bin.

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::conversion::check_all_fit;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::{check, operators};
use dml_compute::movement::copy::{as_contiguous, cast, fill_with};
use dml_compute::reduction::histogram::{add, count, count_between, extremes};
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    bincount(self, weights, minlength) {
        "aten::bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor",
    }
    histc(self, bins, min, max, out) {
        "aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
        "aten::histc.out(Tensor self, int bins=100, Scalar min=0, Scalar max=0, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// Waits for the largest element, which is the number of bins minus one.
fn bincount(call: &mut Call, input: &View, weights: Option<&View>, minimum: i64) -> Result<()> {
    check!(input.dtype.is_integer(), NotImplemented, "\"bincount_cpu\" not implemented for '{}'", input.dtype);
    check!(minimum >= 0, Runtime, "minlength should be >= 0");
    let negative = "bincount only supports 1-d non-negative integral inputs.";
    check!(input.dim() == 1, Runtime, "{negative}");
    if input.numel() == 0 {
        let out = call.empty(DType::I64, &[minimum])?;
        fill_with(call, &out, Number::Int(0))?;
        call.ret(out);
        return Ok(());
    }
    if let Some(weights) = weights {
        check!(weights.sizes == input.sizes, Runtime, "weights should be 1-d and have the same length as input");
    }
    let [least, most] = extremes(call, input)?.map(Number::to_i64);
    check!(least >= 0, Runtime, "{negative}");
    let bins = (most + 1).max(minimum);
    check!(bins < i64::from(i32::MAX), NotImplemented, "bincount: {bins} bins are more than dml can sort");
    let keys = as_contiguous(call, &cast(call, input, DType::U32)?)?;
    let out = match weights {
        None => {
            let out = call.empty(DType::I64, &[bins])?;
            count(call, &keys, &out)?;
            out
        }
        Some(weights) => {
            let dtype = if weights.dtype == DType::F32 { DType::F32 } else { DType::F64 };
            let (out, weights) = (call.empty(dtype, &[bins])?, cast(call, weights, dtype)?);
            fill_with(call, &out, Number::Int(0))?;
            add(call, &keys, &weights, &out)?;
            out
        }
    };
    call.ret(out);
    Ok(())
}

/// Bins of equal size from `low` to `high`, inclusive. If the limits are equal, they are replaced
/// by the smallest and the largest element, which are read back. Floats are computed as on the CPU;
/// integers, which the CPU does not support, as on CUDA: divided as 64-bit integers.
fn histc(call: &mut Call, input: &View, bins: i64, low: Number, high: Number, out: Out) -> Result<()> {
    check!(input.dtype != DType::Bool, NotImplemented, "\"histogram_cpu\" not implemented for 'Bool'");
    check!(bins > 0, Runtime, "torch.histogram(): bins must be > 0, but got {bins} for dimension 0");
    check!(bins < i64::from(i32::MAX), NotImplemented, "histc: {bins} bins are more than dml can sort");
    let limits = if low.to_f64() == high.to_f64() && input.numel() > 0 { extremes(call, input)? } else { [low, high] };
    let float = input.dtype.is_float();
    let limits = if float { float_range(limits, input.dtype)? } else { integer_range(limits, input.dtype, bins)? };
    let out = structured::result(call, out.given(), input.dtype, &[bins])?;
    if input.numel() == 0 {
        fill_with(call, &out, Number::Int(0))?;
    } else {
        count_between(call, input, limits, &out)?;
    }
    call.ret(out);
    Ok(())
}

/// The limits of bins of floats, checked to be in the dtype's range; if both are equal, one less
/// and one more.
fn float_range(limits: [Number; 2], dtype: DType) -> Result<[Number; 2]> {
    let [low, high] = limits.map(Number::to_f64);
    check!(low.is_finite() && high.is_finite(), Runtime, "torch.histc: range of [{low}, {high}] is not finite");
    check!(low <= high, Runtime, "torch.histc: max must be larger than min");
    let limits = if low == high { [low - 1.0, high + 1.0] } else { [low, high] }.map(Number::Double);
    check_all_fit(&limits, dtype)?;
    Ok(limits)
}

/// The limits of bins of integers, and an error if a product with the number of bins does not fit
/// 64 bits.
fn integer_range(limits: [Number; 2], dtype: DType, bins: i64) -> Result<[Number; 2]> {
    // As floats, so that negative limits do not wrap around for unsigned integers, and fractions
    // are kept.
    check!(limits[0].to_f64() <= limits[1].to_f64(), Runtime, "torch.histc: max must be larger than min");
    check_all_fit(&limits.map(|limit| Number::Double(limit.to_f64())), dtype)?;
    let [low, high] = limits.map(Number::to_i64);
    let [low, high] = if low == high { [low.saturating_sub(1), high.saturating_add(1)] } else { [low, high] };
    let widest = (i128::from(high) - i128::from(low)) * i128::from(bins);
    check!(
        widest <= i128::from(i64::MAX),
        Runtime,
        "torch.histc: {bins} bins from {low} to {high} are beyond 64-bit integers"
    );
    Ok([low, high].map(Number::Int))
}
