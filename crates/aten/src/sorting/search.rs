//! Searching for numbers in others: searchsorted, bucketize, isin.

use crate::movement::copies::checked_copy;
use crate::operator::argument::{Out, TensorOrScalar};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::tensor::promote::result_type;
use crate::{check, operators};
use dml_compute::host;
use dml_compute::indexing::arguments::number_tensor;
use dml_compute::movement::copy::{as_contiguous, cast, fill_with};
use dml_compute::scalar::Scalar as Number;
use dml_compute::sorting::{search, sort};
use dml_compute::view::{Location, View};
use dml_kernel::DType;

operators! {
    searchsorted(sorted_sequence, self, out_int32, right, side, sorter, out).runtime_index() {
        "aten::searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
        "aten::searchsorted.Tensor_out(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None, Tensor(a!) out) -> Tensor(a!)",
        "aten::searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
        "aten::searchsorted.Scalar_out(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None, Tensor(a!) out) -> Tensor(a!)",
    }
    bucketize(self, boundaries, out_int32, right, out) {
        "aten::bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
        "aten::bucketize.Tensor_out(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False, Tensor(a!) out) -> Tensor(a!)",
        "aten::bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
    }
    isin(elements, test_elements, invert, out) {
        "aten::isin.Tensor_Tensor_out(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False, Tensor(a!) out) -> Tensor(a!)",
    }
    isin(elements, test_element, invert, out) {
        "aten::isin.Tensor_Scalar_out(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool invert=False, Tensor(a!) out) -> Tensor(a!)",
    }
    isin(element, test_elements, invert, out) {
        "aten::isin.Scalar_Tensor_out(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// Two operands as tensors of one dtype, by the rules of type promotion: numbers and 0-dim CPU
/// tensors too.
fn promoted_pair(call: &Call, operands: [TensorOrScalar; 2]) -> Result<[View; 2]> {
    let dtype = result_type(&operands.map(Into::into), call.host.default_dtype());
    let one = |operand: TensorOrScalar| -> Result<View> {
        let number = match operand {
            TensorOrScalar::Scalar(x) => x,
            TensorOrScalar::Tensor(t) => {
                if t.location != Location::Host || t.dim() > 0 {
                    call.check_place(&t)?;
                    return Ok(cast(call, &t, dtype)?);
                }
                host::read_number(&t)?
            }
        };
        Ok(number_tensor(call, dtype, number)?)
    };
    let [a, b] = operands;
    Ok([one(a)?, one(b)?])
}

fn searchsorted(
    call: &mut Call,
    boundaries: TensorOrScalar,
    values: TensorOrScalar,
    int32: bool,
    mut right: bool,
    side: Option<&str>,
    sorter: Option<&View>,
    out: Out,
) -> Result<()> {
    if let Some(side) = side {
        check!(
            matches!(side, "left" | "right"),
            Runtime,
            "torch.searchsorted(): side can only be 'left' or 'right' but got {side}"
        );
        check!(
            side == "right" || !right,
            Runtime,
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        );
        right = side == "right";
    }
    let [boundaries, values] = promoted_pair(call, [boundaries, values])?;
    if let Some(sorter) = sorter {
        check!(
            sorter.sizes == boundaries.sizes,
            Runtime,
            "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor {:?} and got \
             sorter tensor {:?}",
            boundaries.sizes.as_slice(),
            sorter.sizes.as_slice()
        );
        check!(
            sorter.dtype == DType::I64,
            Runtime,
            "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {}",
            sorter.dtype
        );
    }
    check!(
        values.dim() > 0 || boundaries.dim() == 1,
        Runtime,
        "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got \
         boundaries tensor dim({}) and input value's dim(0) numel(1)",
        boundaries.dim()
    );
    check!(
        boundaries.dim() > 0,
        Runtime,
        "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension"
    );
    let last = boundaries.dim() - 1;
    check!(
        last == 0 || values.dim() == boundaries.dim() && values.sizes[..last] == boundaries.sizes[..last],
        Runtime,
        "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries \
         tensor and input value tensor must match, but we got boundaries tensor {:?} and input value tensor {:?}",
        boundaries.sizes.as_slice(),
        values.sizes.as_slice()
    );
    search(call, &boundaries, &values, sorter, right, int32, out)
}

fn bucketize(
    call: &mut Call,
    values: TensorOrScalar,
    boundaries: TensorOrScalar,
    int32: bool,
    right: bool,
    out: Out,
) -> Result<()> {
    let [values, boundaries] = promoted_pair(call, [values, boundaries])?;
    check!(boundaries.dim() == 1, Runtime, "boundaries tensor must be 1 dimension, but got dim({})", boundaries.dim());
    search(call, &boundaries, &values, None, right, int32, out)
}

/// For each value, the number of boundaries of its row that are below it (or, for `right`, not
/// above).
pub fn search(
    call: &mut Call,
    boundaries: &View,
    values: &View,
    sorter: Option<&View>,
    right: bool,
    int32: bool,
    out: Out,
) -> Result<()> {
    let dtype = boundaries.dtype;
    let known = !matches!(dtype, DType::Bool | DType::U16 | DType::U32 | DType::U64);
    let computes = boundaries.numel() > 0 && values.numel() > 0;
    check!(known || !computes, NotImplemented, "\"searchsorted_out_cpu\" not implemented for '{dtype}'");
    let wanted = if int32 { DType::I32 } else { DType::I64 };
    if let Some(out) = out.given() {
        let given = out.dtype;
        check!(
            given == wanted,
            Runtime,
            "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending \
             on whether out_int32 flag is True, but we got output tensor's dtype {given} and out_int32 flag is {}",
            if int32 { "True" } else { "False" }
        );
    }
    let out = call.result(out.given(), wanted, &values.sizes)?;
    let n = boundaries.sizes.last().copied().unwrap_or(1);
    check!(n < i64::from(i32::MAX), NotImplemented, "{}: {n} boundaries in a row are too many for dml", call.name);
    if n == 0 {
        fill_with(call, &out, Number::Int(0))?;
    } else if out.numel() > 0 {
        let (boundaries, values) = (as_contiguous(call, boundaries)?, as_contiguous(call, values)?);
        let dense = if out.is_contiguous() { out.clone() } else { call.empty(wanted, &out.sizes)? };
        let sorter = sorter.map(|s| as_contiguous(call, s)).transpose()?;
        search::search(call, &boundaries, &values, sorter.as_ref(), right, &dense)?;
        if dense.data != out.data {
            checked_copy(call, &dense, &out)?;
        }
    }
    call.ret(out);
    Ok(())
}

fn isin(call: &mut Call, elements: TensorOrScalar, tests: TensorOrScalar, invert: bool, out: Out) -> Result<()> {
    for operand in [elements, tests] {
        let flag = match operand {
            TensorOrScalar::Tensor(t) => t.dtype == DType::Bool,
            TensorOrScalar::Scalar(x) => matches!(x, Number::Bool(_)),
        };
        check!(!flag, Runtime, "Unsupported input type encountered for isin(): Bool");
    }
    let [elements, tests] = promoted_pair(call, [elements, tests])?;
    let out = structured::result(call, out.given(), DType::Bool, &elements.sizes)?;
    let n = tests.numel();
    if n == 0 {
        fill_with(call, &out, Number::Bool(invert))?;
    } else if out.numel() > 0 {
        let row = as_contiguous(call, &tests)?.as_strided(&[n], &[1], 0);
        let (tests, _) = sort::by_rows(call, &row, 0, false)?;
        let elements = as_contiguous(call, &elements)?;
        let dense = if out.is_contiguous() { out.clone() } else { call.empty(DType::Bool, &out.sizes)? };
        search::is_in(call, &elements, &tests, invert, &dense)?;
        if dense.data != out.data {
            checked_copy(call, &dense, &out)?;
        }
    }
    call.ret(out);
    Ok(())
}
