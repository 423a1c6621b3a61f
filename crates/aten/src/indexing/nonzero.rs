//! The indices of non-zero elements. Their number is read back, since it is a size.

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::tensor::overlap;
use crate::{check, operators};
use dml_compute::indexing::mask::Count;
use dml_compute::indexing::nonzero::{coordinates, strides, write_coordinates};
use dml_compute::movement::copy::fill_with;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    nonzero(self, out).complex(Complex::Run(complex::of_truth)) {
        "aten::nonzero(Tensor self) -> Tensor",
        "aten::nonzero.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    nonzero_static(self, size, fill_value, out).complex(Complex::Run(complex::of_truth)) {
        "aten::nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
        "aten::nonzero_static.out(Tensor self, *, SymInt size, int fill_value=-1, Tensor(a!) out) -> Tensor(a!)",
    }
}

fn nonzero(call: &mut Call, t: &View, out: Out) -> Result<()> {
    let out = out.given();
    if let Some(out) = out {
        let given = out.dtype;
        check!(
            given == DType::I64,
            Runtime,
            "nonzero: Expected out tensor to have scalar type Long but got scalar type {given}"
        );
        overlap::check_none(out, &[t])?;
    }
    let result = if out.is_none() || t.numel() == 0 {
        let found = coordinates(call, t)?;
        if out.is_some() { call.result_strided(out, DType::I64, &found.sizes, || strides(0))? } else { found }
    } else {
        let count = Count::new(call, t)?;
        let total = count.total(call)?;
        let result = call.result_strided(out, DType::I64, &[total, t.dim() as i64], || strides(total))?;
        write_coordinates(call, &count, &result)?;
        result
    };
    call.ret(result);
    Ok(())
}

/// The first `size` indices, padded with `fill`. Does not wait for the device.
fn nonzero_static(call: &mut Call, t: &View, size: i64, fill: Number, out: Out) -> Result<()> {
    check!(size >= 0, Runtime, "nonzero_static: 'size' must be an non-negative integer");
    structured::check_given(out.given(), DType::I64)?;
    let out = call.result(out.given(), DType::I64, &[size, t.dim() as i64])?;
    fill_with(call, &out, fill)?;
    if t.numel() > 0 {
        let count = Count::new(call, t)?;
        write_coordinates(call, &count, &out)?;
    }
    call.ret(out);
    Ok(())
}
