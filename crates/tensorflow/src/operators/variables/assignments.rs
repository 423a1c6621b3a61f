//! Variables: assignments, and updates by a value. Resources are on the host, references are not.

use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::NUMBERS;
use crate::require;
use dml_compute::pointwise::arithmetic;
use dml_compute::pointwise::function::Function;
use dml_compute::pointwise::kernel::{self, Input};

/// `variable = function(variable, value)` for the variable at input 0 and the value at input 1.
fn update(call: &Call, function: &'static Function, use_locking: bool) -> Result<()> {
    let variables = call.lock(&[0], use_locking, false)?;
    let variable = variables.tensor(0, false)?;
    let value = call.input(1)?;
    require!(
        variable.sizes == value.sizes,
        "{}: the variable's shape {:?} is not the value's, {:?}",
        call.operator(),
        variable.sizes,
        value.sizes
    );
    let dtype = variable.dtype;
    let operands = [Input::Tensor(variable.clone()), Input::Tensor(value)];
    Ok(kernel::run(&call.cx(), function, &[&variable], &operands, dtype)?)
}

/// `AssignAddVariableOp` and the like: a resource.
fn resource(name: &'static str, function: &'static Function) -> Operator {
    Operator::plain(name, move |call: &Call| update(call, function, true))
        .of("dtype", NUMBERS)
        .on_host(&["resource"])
        .replacing_core()
}

/// `AssignAdd` and the like: a reference, which is also the result.
fn reference(name: &'static str, function: &'static Function) -> Operator {
    Operator::new(name, move |attributes: &Attributes| {
        let use_locking = attributes.bool("use_locking")?;
        Ok(move |call: &Call| {
            update(call, function, use_locking)?;
            call.pass_reference_on(0, 0)
        })
    })
    .of("T", NUMBERS)
}

/// `Assign`.
fn assign(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let [use_locking, validate_shape] = [attributes.bool("use_locking")?, attributes.bool("validate_shape")?];
    Ok(move |call: &Call| call.assign_reference(1, use_locking, validate_shape))
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        resource("AssignAddVariableOp", &arithmetic::ADD),
        resource("AssignSubVariableOp", &arithmetic::SUB),
        reference("AssignAdd", &arithmetic::ADD),
        reference("AssignSub", &arithmetic::SUB),
        Operator::new("Assign", assign).of("T", NUMBERS),
    ]
}
