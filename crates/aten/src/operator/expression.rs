//! The expressions that operators are given as text.

use crate::check;
use crate::operator::call::Call;
use crate::operator::error::{Error, Result};
use dml_compute::pointwise::expr::Expr;
use dml_compute::text::expressions::expression;
use dml_compute::view::View;
use dml_kernel::DType;

/// Checks that dtypes are of floats, whose elements are computed as those of `dtype`.
pub fn check_computed(call: &Call, dtype: DType, others: impl IntoIterator<Item = DType>) -> Result<()> {
    let (name, computed) = (call.name, dtype.compute());
    for of in others {
        check!(
            of.is_float() && of.compute() == computed,
            Type,
            "{name}: {of} and {dtype} are not both computed as {computed}"
        );
    }
    Ok(())
}

/// The expression of a result, whose elements are computed as those of a dtype of floats are, and
/// of tensors.
pub fn of_floats(call: &Call, text: Option<&str>, dtype: DType, tensors: &[&View]) -> Result<Expr> {
    let name = call.name;
    check_computed(call, dtype, tensors.iter().map(|t| t.dtype).chain([dtype]))?;
    let expr = expression(text.unwrap_or_default()).map_err(|error| Error::Value(format!("{name}: {error}")))?;
    check!(
        expr.operands() == 1 + tensors.len() && expr.is_of_floats(),
        Value,
        "{name}: {} tensors are given to this expression, or it is not one of floats:\n{expr}",
        tensors.len()
    );
    Ok(expr)
}
