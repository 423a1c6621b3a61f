//! Looking for numbers among others: searchsorted, bucketize, isin.

use crate::check;
use crate::movement::copy::{as_contiguous, cast, device_copy, fill_with};
use crate::operator::call::{Arg, Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::fault;
use crate::operator::host;
use crate::operator::structured;
use crate::operator::{Operator, op};
use crate::primitives::launch::{GROUP, linear_id};
use crate::sorting::{key, sort};
use crate::tensor::layout;
use crate::tensor::promote::{Promoted, result_type};
use crate::tensor::{Place, Tensor};
use dml_kernel::{Builder, DType, Kernel, Scalar};

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::searchsorted.Tensor", |c| searchsorted(c, None)),
    op("aten::searchsorted.Tensor_out", |c| searchsorted(c, Some(6))),
    op("aten::searchsorted.Scalar", |c| searchsorted(c, None)),
    op("aten::searchsorted.Scalar_out", |c| searchsorted(c, Some(6))),
    op("aten::bucketize.Tensor", |c| bucketize(c, None)),
    op("aten::bucketize.Tensor_out", |c| bucketize(c, Some(4))),
    op("aten::bucketize.Scalar", |c| bucketize(c, None)),
    op("aten::isin.Tensor_Tensor_out", isin),
    op("aten::isin.Tensor_Scalar_out", isin),
    op("aten::isin.Scalar_Tensor_out", isin),
];

/// Arguments `places` as tensors of one dtype, by the rules of type promotion: numbers and 0-dim CPU tensors too.
fn together(call: &Call, places: [usize; 2]) -> Result<[Tensor; 2]> {
    let mut promoted = Vec::new();
    for i in places {
        promoted.push(match &call.args[i] {
            Arg::Scalar(x) => Promoted::Scalar(*x),
            _ => Promoted::Tensor(call.any_tensor(i)?),
        });
    }
    let dtype = result_type(&promoted, call.host.default_dtype());
    let one = |i: usize| -> Result<Tensor> {
        let number = match &call.args[i] {
            Arg::Scalar(x) => *x,
            _ => {
                let t = call.any_tensor(i)?;
                if t.place != Place::Cpu || t.dim() > 0 {
                    call.check_place(t)?;
                    return cast(call, t, dtype);
                }
                host::read_number(t)?
            }
        };
        crate::indexing::arguments::number_tensor(call, dtype, number)
    };
    Ok([one(places[0])?, one(places[1])?])
}

/// `searchsorted(sorted_sequence, self, *, out_int32, right, side, sorter[, out])`
fn searchsorted(call: &mut Call, out: Option<usize>) -> Result<()> {
    let (int32, mut right) = (call.flag(2)?, call.flag(3)?);
    if let Some(side) = call.opt_str(4)? {
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
    let sorter = call.opt_tensor(5)?;
    let [boundaries, values] = together(call, [0, 1])?;
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
        boundaries.dim() > 0,
        Runtime,
        "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension"
    );
    check!(
        values.dim() > 0 || boundaries.dim() == 1,
        Runtime,
        "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got \
         boundaries tensor dim({}) and input value's dim(0) numel(1)",
        boundaries.dim()
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

/// `bucketize(self, boundaries, *, out_int32, right[, out])`
fn bucketize(call: &mut Call, out: Option<usize>) -> Result<()> {
    let (int32, right) = (call.flag(2)?, call.flag(3)?);
    let [values, boundaries] = together(call, [0, 1])?;
    check!(boundaries.dim() == 1, Runtime, "boundaries tensor must be 1 dimension, but got dim({})", boundaries.dim());
    search(call, &boundaries, &values, None, right, int32, out)
}

/// For each value how many boundaries of its row are below it (or, to the right, not above).
fn search(
    call: &mut Call,
    boundaries: &Tensor,
    values: &Tensor,
    sorter: Option<&Tensor>,
    right: bool,
    int32: bool,
    out: Option<usize>,
) -> Result<()> {
    let dtype = boundaries.dtype;
    let known = !matches!(dtype, DType::Bool | DType::U16 | DType::U32 | DType::U64);
    check!(known, NotImplemented, "\"searchsorted_out_cpu\" not implemented for '{dtype}'");
    let wanted = if int32 { DType::I32 } else { DType::I64 };
    if let Some(i) = out {
        let given = call.tensor(i)?.dtype;
        check!(
            given == wanted,
            Runtime,
            "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending \
             on whether out_int32 flag is True, but we got output tensor's dtype {given} and out_int32 flag is {}",
            if int32 { "True" } else { "False" }
        );
    }
    let out = call.out(out, wanted, &values.sizes)?;
    let n = boundaries.sizes.last().copied().unwrap_or(1);
    check!(n < i64::from(i32::MAX), NotImplemented, "{}: {n} boundaries in a row are too many for dml", call.name);
    if n == 0 {
        fill_with(call, &out, Number::Int(0))?;
    } else if out.numel() > 0 {
        let (boundaries, values) = (as_contiguous(call, boundaries)?, as_contiguous(call, values)?);
        let dense = if out.is_contiguous() { out.clone() } else { call.empty(wanted, &out.sizes)? };
        let count = dense.numel();
        // Values of a row of boundaries: all of them when there is only one.
        let row = if boundaries.dim() == 1 { count } else { values.sizes.last().copied().unwrap_or(1) };
        let index = layout::index_type(count.max(boundaries.numel()));
        let flags = u32::from(right) | u32::from(sorter.is_some()) << 1;
        let key = [dtype as u32, wanted as u32, index.bytes(), flags, 0, 0];
        let kernel =
            call.kernel("searchsorted", key, || build_search(dtype, wanted, index, right, sorter.is_some()))?;
        let mut launcher = call.launch(kernel).read(&boundaries).read(&values).write(&dense);
        let sorter = sorter.map(|s| as_contiguous(call, s)).transpose()?;
        if let Some(sorter) = &sorter {
            launcher = launcher.read(sorter).fault().u32(fault::operator(call.name));
        }
        launcher.index(index, count).index(index, row).u32(n as u32).threads(count as u64)?;
        if dense.data != out.data {
            device_copy(call, &dense, &out)?;
        }
    }
    call.ret(out);
    Ok(())
}

fn build_search(dtype: DType, wanted: DType, index: Scalar, right: bool, sorted: bool) -> Kernel {
    let b = Builder::new("searchsorted", [GROUP, 1, 1]);
    let (boundaries, values) = (b.pointer("boundaries", dtype), b.pointer("values", dtype));
    let out = b.pointer("out", wanted);
    let sorter = if sorted {
        let (sorter, fault) = (b.pointer("sorter", DType::I64), b.pointer("fault", DType::U32));
        Some((sorter, fault, b.param("operator", Scalar::U32)))
    } else {
        None
    };
    let (count, row, n) = (b.param("count", index), b.param("row", index), b.param("n", Scalar::U32));
    let i = linear_id(&b, index);
    b.if_(i.lt(count), || {
        let first = i / row * n.cast(index);
        let value = values.load(i);
        let place = key::partition_point(n, |at| {
            let at = b.var(at.cast(index));
            if let Some((sorter, fault, operator)) = sorter {
                let given = sorter.load(first + at.get());
                let size = n.cast(Scalar::I64);
                b.if_else(
                    given.ge(0) & given.lt(size),
                    || at.set(given.cast(index)),
                    || fault::report(&b, fault, operator, given, size, 0),
                );
            }
            let boundary = boundaries.load(first + at.get());
            // A NaN among the boundaries, or sought, is passed over.
            !if right { boundary.gt(value) } else { boundary.ge(value) }
        });
        out.store(i, place);
    });
    b.finish()
}

/// `isin(elements, test_elements, *, assume_unique, invert, out)`, one of the two a number at most
fn isin(call: &mut Call) -> Result<()> {
    for i in [0, 1] {
        if let Arg::Tensor(t) = &call.args[i] {
            check!(t.dtype != DType::Bool, Runtime, "Unsupported input type encountered for isin(): {}", t.dtype);
        }
    }
    let invert = call.flag(3)?;
    let [elements, tests] = together(call, [0, 1])?;
    let out = structured::out(call, Some(4), DType::Bool, &elements.sizes)?;
    let n = tests.numel();
    if n == 0 {
        fill_with(call, &out, Number::Bool(invert))?;
    } else if out.numel() > 0 {
        let row = as_contiguous(call, &tests)?.as_strided(&[n], &[1], 0);
        let (tests, _) = sort::by_rows(call, &row, 0)?;
        let elements = as_contiguous(call, &elements)?;
        let dense = if out.is_contiguous() { out.clone() } else { call.empty(DType::Bool, &out.sizes)? };
        let (dtype, count) = (elements.dtype, dense.numel());
        let index = layout::index_type(count.max(n));
        let key = [dtype as u32, index.bytes(), u32::from(invert), 0, 0, 0];
        let kernel = call.kernel("isin", key, || build_isin(dtype, index, invert))?;
        let launcher = call.launch(kernel).read(&elements).read(&tests).write(&dense);
        launcher.index(index, count).u32(n as u32).threads(count as u64)?;
        if dense.data != out.data {
            device_copy(call, &dense, &out)?;
        }
    }
    call.ret(out);
    Ok(())
}

fn build_isin(dtype: DType, index: Scalar, invert: bool) -> Kernel {
    let b = Builder::new("isin", [GROUP, 1, 1]);
    let raw = dtype.bits();
    let (elements, tests) = (b.pointer("elements", raw), b.pointer("tests", raw));
    let out = b.pointer("out", DType::Bool);
    let (count, n) = (b.param("count", index), b.param("n", Scalar::U32));
    let i = linear_id(&b, index);
    b.if_(i.lt(count), || {
        let wanted = key::load(elements, dtype, i);
        let place = key::partition_point(n, |at| key::load(tests, dtype, at.cast(index)).lt(wanted));
        let mut found = place.lt(n) & key::load(tests, dtype, place.min(n - 1).cast(index)).eq(wanted);
        if dtype.is_float() {
            found = found & wanted.ne(key::largest(dtype));
        }
        out.store(i, if invert { !found } else { found });
    });
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in [(DType::U8, Scalar::U32), (DType::F16, Scalar::U64), (DType::F64, Scalar::U32)] {
            for flag in [false, true] {
                accepted(&build_search(dtype, DType::I64, index, flag, !flag));
                accepted(&build_search(dtype, DType::I32, index, flag, flag));
                accepted(&build_isin(dtype, index, flag));
            }
        }
    }
}
