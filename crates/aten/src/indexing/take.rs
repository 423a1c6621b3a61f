//! take and put_: reading and writing with indices that count elements in row-major order.

use crate::movement::copies::{checked_copy, without_overlap};
use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::tensor::overlap;
use crate::{check, operators};
use dml_compute::indexing::gather;
use dml_compute::indexing::index_select::Slices;
use dml_compute::movement::copy::as_contiguous;
use dml_compute::primitives::combine::Combine;
use dml_compute::primitives::indexed_access::Action;
use dml_compute::view::View;
use dml_compute::view::layout::result_strides;
use dml_kernel::DType;

operators! {
    take(self, index, out).complex(Complex::Run(complex::run_as_bits)) {
        "aten::take(Tensor self, Tensor index) -> Tensor",
        "aten::take.out(Tensor self, Tensor index, *, Tensor(a!) out) -> Tensor(a!)",
    }
    put(self, index, source, accumulate).complex(Complex::Run(complex::by_parts)) {
        "aten::put_(Tensor(a!) self, Tensor index, Tensor source, bool accumulate=False) -> Tensor(a!)",
    }
}

fn take(call: &mut Call, t: &View, index: &View, out: Out) -> Result<()> {
    check!(index.dtype == DType::I64, Runtime, "take(): Expected a long tensor for index, but got {}", index.dtype);
    if let Some(out) = out.given() {
        let given = out.dtype;
        check!(
            given == t.dtype,
            Runtime,
            "take(): self and out expected to have the same dtype, but got self.dtype = {} and out.dtype = {given}",
            t.dtype
        );
    }
    check!(t.numel() > 0 || index.numel() == 0, Index, "take(): tried to take from an empty tensor");
    if let Some(out) = out.given() {
        // The check is of `out=` as given, before it is resized.
        overlap::check_internal(out)?;
    }
    // A tensor that is resized for the result gets the strides of the index.
    let out = call.result_strided(out.given(), t.dtype, &index.sizes, || match out {
        Out::New => View::contiguous_strides(&index.sizes),
        _ => result_strides(&index.sizes, &[index]),
    })?;
    overlap::check_internal(&out)?;
    overlap::check_none(&out, &[t, index])?;
    let base = as_contiguous(call, t)?;
    gather::take(call, &base, index, &out)?;
    call.ret(out);
    Ok(())
}

/// The counterpart of take.
fn put(call: &mut Call, out: &View, index: &View, source: &View, accumulate: bool) -> Result<()> {
    check!(index.dtype == DType::I64, Runtime, "put_(): Expected a long tensor for index, but got {}", index.dtype);
    check!(
        out.dtype == source.dtype,
        Runtime,
        "put_(): self and source expected to have the same dtype, but got self.dtype = {} and source.dtype = {}",
        out.dtype,
        source.dtype
    );
    check!(
        source.numel() == index.numel(),
        Index,
        "put_(): Expected source and index to have the same number of elements, but got source.numel() = {}, \
         index.numel() = {}",
        source.numel(),
        index.numel()
    );
    check!(out.numel() > 0 || source.numel() == 0, Index, "put_(): Tried to put elements into an empty tensor");
    overlap::check_internal(out)?;
    let n = index.numel();
    if n > 0 {
        let index = as_contiguous(call, &without_overlap(call, out, index)?)?.as_strided(&[n], &[1], 0);
        let source = as_contiguous(call, &without_overlap(call, out, source)?)?.as_strided(&[n], &[1], 0);
        // As a 1-dim tensor, copied back if it is not one.
        let dense = as_contiguous(call, out)?;
        let row = dense.as_strided(&[dense.numel()], &[1], 0);
        let slices = Slices { dim: 0, index: &index, negative: true };
        if accumulate || call.host.policy().deterministic() {
            let combine = if accumulate { Combine::Add } else { Combine::Last };
            slices.combine(call, &row, &source, combine, true)?;
        } else {
            slices.run(call, &row, &[n], &Action::Write(&source))?;
        }
        if dense.data != out.data {
            checked_copy(call, &dense, out)?;
        }
    }
    call.ret(out.clone());
    Ok(())
}
