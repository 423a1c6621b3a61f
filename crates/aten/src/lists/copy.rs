//! Filling and copying lists of tensors.

use crate::movement::copies;
use crate::operator::argument::{OptTensors, Tensors};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::tensor::overlap;
use crate::{check, operators};
use dml_compute::lists::multi_tensor;
use dml_compute::lists::multi_tensor::batch::Row;
use dml_compute::movement::copy;
use dml_compute::movement::functions::{COPY, FILL};
use dml_compute::pointwise::kernel::{Input, Operand};
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::{Location, View};
use dml_kernel::DType;
use smallvec::SmallVec;

operators! {
    zero(self).complex(complex::each(crate::movement::copies::OPERATORS, "zero")) {
        hot "aten::_foreach_zero_(Tensor(a!)[] self) -> ()",
    }
    copy_lists(self, src, non_blocking).complex(Complex::AsGiven(complex::copies)) {
        hot "aten::_foreach_copy_(Tensor(a!)[] self, Tensor[] src, bool non_blocking=False) -> ()",
    }
}

fn zero(call: &mut Call, list: Tensors) -> Result<()> {
    let unexpanded: Vec<View> = list
        .iter()
        .filter(|t| dml_compute::view::overlap::is_expanded(t))
        .map(|t| dml_compute::view::overlap::unexpanded(t))
        .collect();
    let mut unexpanded = unexpanded.iter();
    let mut rows = Vec::with_capacity(list.len());
    for t in list {
        let t = if dml_compute::view::overlap::is_expanded(t) { unexpanded.next().unwrap_or(t) } else { t };
        rows.push(Row { outs: SmallVec::from_slice(&[t]), inputs: SmallVec::new(), common: t.dtype });
    }
    let shared = [Input::Number(Number::Int(0), DType::I32)];
    Ok(multi_tensor::run(call, (&FILL).into(), &rows, &shared)?)
}

/// The sources may be on the CPU.
fn copy_lists(call: &mut Call, to: Tensors, from: OptTensors, non_blocking: bool) -> Result<()> {
    check!(
        to.len() == from.len(),
        Runtime,
        "Tensor lists must have the same number of tensors, got {} and {}",
        to.len(),
        from.len()
    );
    let pairs = || to.iter().copied().zip(from.iter().copied().flatten());
    if pairs().any(|(_, from)| from.location == Location::Host) {
        for (to, from) in pairs() {
            if from.location == Location::Host {
                copies::upload(call, from, to, !non_blocking)?;
            } else {
                call.check_place(from)?;
                crate::movement::copies::checked_copy(call, from, to)?;
            }
        }
        return Ok(());
    }
    let mut copies = Vec::with_capacity(to.len());
    for (to, from) in pairs() {
        call.check_place(from)?;
        copies::check_broadcasts(call, from, to)?;
        overlap::check_internal(to)?;
        copies.push(copy::as_bits(from, to));
    }
    let rows: Vec<Row> = copies
        .iter()
        .map(|(from, to)| Row {
            outs: SmallVec::from_slice(&[to]),
            inputs: SmallVec::from_slice(&[Operand::Tensor(from)]),
            common: to.dtype,
        })
        .collect();
    Ok(multi_tensor::run(call, (&COPY).into(), &rows, &[])?)
}
