//! Steps with a gradient for each element.

use super::table::Optimizer;
use crate::error::Result;
use crate::kernel::Call;
use crate::kernel::variables::Variables;
use crate::require;
use dml_compute::View;
use dml_compute::pointwise::function::Variant;
use dml_compute::pointwise::kernel::{self, Input};

/// The arguments of a step, without the variables; checked for a parameter of this shape.
fn arguments(call: &Call, optimizer: &Optimizer, sizes: &[i64]) -> Result<Vec<View>> {
    let first = optimizer.variables.len();
    let argument = |(i, name): (usize, &&str)| {
        let argument = call.input(first + i)?;
        if Optimizer::is_gradient(name) {
            require!(
                argument.sizes[..] == *sizes,
                "var and {name} do not have the same shape: {sizes:?} {:?}",
                argument.sizes
            );
        } else {
            require!(argument.sizes.is_empty(), "{name} is not a scalar: {:?}", argument.sizes);
        }
        Ok(argument)
    };
    optimizer.arguments.iter().enumerate().map(argument).collect()
}

/// The variables of a call, locked, and their tensors, which have one shape. `sparse`: see
/// [`lock`](Call::lock).
pub fn locked<'c>(
    call: &'c Call,
    optimizer: &Optimizer,
    use_locking: bool,
    sparse: bool,
) -> Result<(Variables<'c>, Vec<View>)> {
    let inputs: Vec<i32> = (0..optimizer.variables.len() as i32).collect();
    let locked = call.lock(&inputs, use_locking, sparse)?;
    let variables: Vec<View> =
        (0..optimizer.variables.len()).map(|i| locked.tensor(i, sparse)).collect::<Result<_>>()?;
    for (variable, name) in variables.iter().zip(optimizer.variables).skip(1) {
        require!(
            variable.sizes == variables[0].sizes,
            "var and {name} do not have the same shape: {:?} {:?}",
            variables[0].sizes,
            variable.sizes
        );
    }
    Ok((locked, variables))
}

/// One step.
pub fn step(call: &Call, optimizer: &Optimizer, step: Variant, use_locking: bool) -> Result<()> {
    let (_locks, variables) = locked(call, optimizer, use_locking, false)?;
    let arguments = arguments(call, optimizer, &variables[0].sizes)?;
    let operands: Vec<Input> = variables.iter().cloned().chain(arguments).map(Input::Tensor).collect();
    let results: Vec<&View> = variables.iter().collect();
    Ok(kernel::run(&call.cx(), step, &results, &operands, variables[0].dtype)?)
}
