//! Steps with a gradient for some rows of the parameter. The indices are the input after the
//! gradient. A row whose index comes several times is updated several times, in the order of the
//! indices, as on TensorFlow's CPU.

use super::dense::{locked, variant};
use super::table::{OPTIMIZERS, Optimizer};
use crate::error::Result;
use crate::operators::dtypes::FLOATS;
use crate::operators::{Attributes, Call, Operator};
use crate::require;
use dml_compute::View;
use dml_compute::lists::row_steps::RowSteps;
use dml_compute::pointwise::function::Variant;
use dml_kernel::DType;

/// Rows of a tensor as a matrix.
fn matrix(t: &View) -> View {
    let width = t.sizes[1..].iter().product::<i64>();
    t.as_strided(&[t.sizes[0], width], &[width.max(1), 1], 0)
}

/// One step.
fn step(call: &Call, optimizer: &Optimizer, function: Variant, use_locking: bool) -> Result<()> {
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

/// The operator on resources, or that on references, whose result is the first reference.
fn operator(optimizer: &'static Optimizer, of_references: bool) -> Operator {
    let name = optimizer.sparse_names[usize::from(of_references)];
    let operator = Operator::new(name, move |attributes: &Attributes| {
        let (variant, use_locking) = (variant(attributes, optimizer)?, attributes.bool("use_locking")?);
        Ok(move |call: &Call| {
            step(call, optimizer, variant, use_locking)?;
            if of_references { call.pass_reference_on(0, 0) } else { Ok(()) }
        })
    });
    let operator = operator.of("T", FLOATS).of("Tindices", &[DType::I32, DType::I64]);
    if of_references { operator } else { operator.on_host(optimizer.variables) }
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    let both = OPTIMIZERS.iter().flat_map(|optimizer| [(optimizer, false), (optimizer, true)]);
    both.filter(|(optimizer, of_references)| !optimizer.sparse_names[usize::from(*of_references)].is_empty())
        .map(|(optimizer, of_references)| operator(optimizer, of_references))
        .collect()
}
