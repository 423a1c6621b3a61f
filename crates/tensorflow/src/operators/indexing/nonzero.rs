//! `Where`: the coordinates of elements that are not zero. Their number is read back, as it is a
//! size.

use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::ALL;
use crate::require;
use dml_compute::complex::parts::parts;
use dml_compute::complex::pointwise::{self, Given};
use dml_compute::indexing::mask::Count;
use dml_compute::indexing::nonzero::write_coordinates;
use dml_compute::pointwise::complex::NE;
use dml_kernel::DType;

fn nonzero(call: &Call) -> Result<()> {
    let (cx, mut mask) = (call.cx(), call.input(0)?);
    let rank = mask.dim() as i64;
    require!(rank > 0, "WhereOp : Unhandled input dimensions: 0");
    if mask.numel() == 0 {
        call.output(0, &[0, rank])?;
        return Ok(());
    }
    if mask.dtype.is_complex() {
        let flags = cx.empty(DType::Bool, &mask.sizes)?;
        let given = [Given::Complex(parts(&mask)), Given::Number(0.0, 0.0)];
        pointwise::run(&cx, &NE, &flags, (mask.dtype.real(), DType::Bool), &given)?;
        mask = flags;
    }
    let count = Count::new(&cx, &mask)?;
    let total = count.total(&cx)?;
    let out = call.output(0, &[total, rank])?;
    Ok(write_coordinates(&cx, &count, &out)?)
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![Operator::plain("Where", nonzero).of("T", ALL)]
}
