//! Operators that only copy elements, run on the bits of complex ones.

use crate::complex::by_parts::by_parts;
use crate::operator::Operator;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::on_bits::{check_outs, only_dtype, run_on_bits};
use dml_kernel::DType;

/// Runs the operator on integers of the elements' size. Elements of 16 bytes are copied by parts.
pub fn run_as_bits(call: &mut Call, operator: &Operator) -> Result<()> {
    let complex = only_dtype(call, operator, DType::is_complex)?;
    check_outs(call, operator, complex)?;
    match complex {
        DType::C32 => run_on_bits(call, operator, complex, DType::I32),
        DType::C64 => run_on_bits(call, operator, complex, DType::I64),
        _ => by_parts(call, operator),
    }
}
