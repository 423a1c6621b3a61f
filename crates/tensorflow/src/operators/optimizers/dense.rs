//! Steps with a gradient for each element.

use super::table::{OPTIMIZERS, Optimizer};
use crate::error::Result;
use crate::kernel::variables::Variables;
use crate::operators::dtypes::FLOATS;
use crate::operators::{Attributes, Call, Operator};
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
fn step(call: &Call, optimizer: &Optimizer, step: Variant, use_locking: bool) -> Result<()> {
    let (_locks, variables) = locked(call, optimizer, use_locking, false)?;
    let arguments = arguments(call, optimizer, &variables[0].sizes)?;
    let operands: Vec<Input> = variables.iter().cloned().chain(arguments).map(Input::Tensor).collect();
    let results: Vec<&View> = variables.iter().collect();
    Ok(kernel::run(&call.cx(), step, &results, &operands, variables[0].dtype)?)
}

/// The step of a node: with the flag of its attribute.
pub fn variant(attributes: &Attributes, optimizer: &Optimizer) -> Result<Variant> {
    let flag = match optimizer.flag {
        Some(attribute) => attributes.bool(attribute)?,
        None => false,
    };
    Ok(optimizer.step.with([flag]))
}

/// The operator on resources, or that on references, whose result is the first reference.
fn operator(optimizer: &'static Optimizer, of_references: bool) -> Operator {
    let name = optimizer.names[usize::from(of_references)];
    let operator = Operator::new(name, move |attributes: &Attributes| {
        let (variant, use_locking) = (variant(attributes, optimizer)?, attributes.bool("use_locking")?);
        Ok(move |call: &Call| {
            step(call, optimizer, variant, use_locking)?;
            if of_references { call.pass_reference_on(0, 0) } else { Ok(()) }
        })
    });
    let operator = operator.of("T", FLOATS);
    if of_references { operator } else { operator.on_host(optimizer.variables) }
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    let both = OPTIMIZERS.iter().flat_map(|optimizer| [(optimizer, false), (optimizer, true)]);
    both.filter(|(optimizer, of_references)| !optimizer.names[usize::from(*of_references)].is_empty())
        .map(|(optimizer, of_references)| operator(optimizer, of_references))
        .collect()
}
