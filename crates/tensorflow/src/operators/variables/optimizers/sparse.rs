//! Steps with a gradient for some rows of the parameter. The indices are the input after the
//! gradient. A row whose index comes several times is updated several times, in the order of the
//! indices, as on TensorFlow's CPU.

use super::dense::locked;
use super::table::Optimizer;
use crate::error::Result;
use crate::kernel::Call;
use crate::require;
use dml_compute::View;
use dml_compute::lists::row_steps::RowSteps;
use dml_compute::pointwise::function::Variant;

/// Rows of a tensor as a matrix.
fn matrix(t: &View) -> View {
    let width = t.sizes[1..].iter().product::<i64>();
    t.as_strided(&[t.sizes[0], width], &[width.max(1), 1], 0)
}

/// One step.
pub fn step(call: &Call, optimizer: &Optimizer, function: Variant, use_locking: bool) -> Result<()> {
    let (_locks, variables) = locked(call, optimizer, use_locking, true)?;
    let sizes = &variables[0].sizes;
    require!(!sizes.is_empty(), "var must be at least 1 dimensional: {sizes:?}");
    let by_index = optimizer.arguments.iter().position(|name| Optimizer::is_gradient(name)).unwrap_or_default();
    let first = variables.len();
    let (grad, indices) = (call.input(first + by_index)?, call.input(first + by_index + 1)?);
    require!(indices.dim() == 1, "indices must be one-dimensional: {:?}", indices.sizes);
    require!(
        grad.dim() == sizes.len() && grad.sizes[1..] == sizes[1..],
        "var and grad must match in all dimensions but the first: {sizes:?} {:?}",
        grad.sizes
    );
    require!(
        grad.sizes[0] == indices.sizes[0],
        "grad must be the same size as indices in the first dimension: {:?} {:?}",
        grad.sizes,
        indices.sizes
    );
    let argument = |(i, name): (usize, &&str)| {
        if i == by_index {
            return Ok(matrix(&grad));
        }
        let argument = call.input(first + i + usize::from(i > by_index))?;
        require!(argument.sizes.is_empty(), "{name} is not a scalar: {:?}", argument.sizes);
        Ok(argument)
    };
    let arguments: Vec<View> = optimizer.arguments.iter().enumerate().map(argument).collect::<Result<_>>()?;
    let tensors: Vec<View> = variables.iter().map(matrix).collect();
    let steps = RowSteps { function, tensors: &tensors, arguments: &arguments, by_index, indices: &indices };
    Ok(steps.run(&call.cx())?)
}
