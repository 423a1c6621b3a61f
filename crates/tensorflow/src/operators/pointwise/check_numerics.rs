//! The search for infinities and NaN. Whether there are any is read back, as the result is an error
//! then.

use crate::c_api::Attributes;
use crate::error::{Error, Result};
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::FLOATS;
use crate::operators::common::elementwise::compute;
use crate::operators::common::functions;
use crate::operators::common::regions::reshaped;
use dml_compute::View;
use dml_compute::indexing::mask::Count;
use dml_compute::pointwise::function::Function;
use dml_kernel::DType;

/// Whether a function holds for any number.
fn any(call: &Call, t: &View, function: &'static Function) -> Result<bool> {
    let cx = call.cx();
    let flags = cx.empty(DType::Bool, &[t.numel()])?;
    compute(&cx, function, &flags, &[reshaped(t, &flags.sizes)], &[])?;
    Ok(Count::new(&cx, &flags)?.total(&cx)? > 0)
}

/// `CheckNumerics` and `CheckNumericsV2`, which tells apart the signs of infinities.
fn check(call: &Call, message: &str, has_signs: bool) -> Result<()> {
    let t = call.input(0)?;
    if t.numel() > 0 && any(call, &t, &functions::IS_NOT_FINITE)? {
        let mut found = Vec::new();
        let infinities = [
            (&functions::IS_NEGATIVE_INFINITY, if has_signs { "-Inf" } else { "Inf" }),
            (&functions::IS_POSITIVE_INFINITY, if has_signs { "+Inf" } else { "Inf" }),
        ];
        for (function, name) in infinities.into_iter().chain([(&functions::IS_NAN, "NaN")]) {
            if any(call, &t, function)? && !found.contains(&name) {
                found.push(name);
            }
        }
        let names = match found[..] {
            [first, second, third] => format!("{first}, {second}, and {third}"),
            _ => found.join(" and "),
        };
        return Err(Error::InvalidArgument(format!("{message} : Tensor had {names} values")));
    }
    call.pass_on(0, 0, &t.sizes)
}

fn operator(name: &'static str, has_signs: bool) -> Operator {
    Operator::new(name, move |attributes: &Attributes| {
        let message = attributes.string("message")?;
        Ok(move |call: &Call| check(call, &message, has_signs))
    })
    .of("T", FLOATS)
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![operator("CheckNumerics", false), operator("CheckNumericsV2", true)]
}
