//! Division: exact, rounded, with a result where it has none; remainders, powers.

use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{FIELDS, FLOATS, FLOATS_AND_I64, NUMBERS, REALS};
use crate::operators::common::elementwise::{elementwise, elementwise_with, function};
use crate::operators::common::functions;
use dml_compute::pointwise::function::{Function, Variant};
use dml_compute::pointwise::{complex, division, power};
use dml_kernel::DType;

/// One function of integers, which refuses a divisor of 0, another one of other numbers.
fn divided(
    name: &'static str,
    dtypes: &'static [DType],
    integers: &'static Function,
    others: &'static Function,
) -> Operator {
    Operator::new(name, move |attributes: &Attributes| {
        let function = if attributes.dtype("T")?.is_integer() { integers } else { others };
        Ok(move |call: &Call| elementwise(call, function))
    })
    .of("T", dtypes)
}

/// `Pow`. A negative power of an integer is 0 except of 1 and -1, as on CUDA.
fn pow(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let is_complex = attributes.dtype("T")?.is_complex();
    let variant: Variant = if is_complex { (&complex::POW).into() } else { (&power::POW).into() };
    Ok(move |call: &Call| elementwise_with(call, variant, &[]))
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        function("RealDiv", &division::DIV, FIELDS),
        divided("Div", NUMBERS, &division::DIV_TRUNC, &division::DIV),
        divided("TruncateDiv", REALS, &division::DIV_TRUNC, &functions::TRUNCATE_DIV),
        divided("FloorDiv", REALS, &division::DIV_FLOOR, &functions::FLOOR_DIV),
        function("FloorMod", &division::REMAINDER, REALS),
        function("TruncateMod", &division::FMOD, FLOATS_AND_I64),
        function("Mod", &division::FMOD, FLOATS_AND_I64),
        function("DivNoNan", &functions::DIV_NO_NAN, FIELDS),
        function("MulNoNan", &functions::MUL_NO_NAN, FIELDS),
        function("Xdivy", &functions::XDIVY, FIELDS),
        Operator::new("Pow", pow).of("T", crate::operators::common::dtypes::SIGNED_FIELDS),
        function("Atan2", &dml_compute::pointwise::binary::ATAN2, FLOATS),
    ]
}
