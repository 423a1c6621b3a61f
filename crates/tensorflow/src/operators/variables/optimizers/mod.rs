//! Optimizers: each is an elementwise function of its variables, its numbers and the gradient.
//!
//! TensorFlow has each twice: of resources, and of references (`ResourceApplyAdam`, `ApplyAdam`).
//! It has some four times: also with a gradient that has rows of the parameter alone
//! (`ResourceSparseApply...`, `SparseApply...`).

mod dense;
mod sparse;
mod steps;
mod table;

use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{FLOATS, INDICES};
use dml_compute::pointwise::function::Variant;
use table::{OPTIMIZERS, Optimizer};

/// One step of an optimizer in a call; whether variables are locked comes last.
type Step = fn(&Call, &Optimizer, Variant, bool) -> Result<()>;

/// The operator on resources, or that on references, whose result is the first reference.
fn operator(optimizer: &'static Optimizer, name: &'static str, of_references: bool, step: Step) -> Operator {
    let operator = Operator::new(name, move |attributes: &Attributes| {
        let (variant, use_locking) = (optimizer.variant(attributes)?, attributes.bool("use_locking")?);
        Ok(move |call: &Call| {
            step(call, optimizer, variant, use_locking)?;
            if of_references { call.pass_reference_on(0, 0) } else { Ok(()) }
        })
    });
    let operator = operator.of("T", FLOATS);
    if of_references { operator } else { operator.on_host(optimizer.variables) }
}

/// The operators of all optimizers that have such names: of resources and of references.
fn of_all(names: fn(&Optimizer) -> [&'static str; 2], step: Step) -> impl Iterator<Item = Operator> {
    let both = move |optimizer| names(optimizer).into_iter().zip([false, true]).map(move |named| (optimizer, named));
    let named = OPTIMIZERS.iter().flat_map(both).filter(|(_, (name, _))| !name.is_empty());
    named.map(move |(optimizer, (name, of_references))| operator(optimizer, name, of_references, step))
}

/// The operators of this folder.
pub fn operators() -> Vec<Operator> {
    let sparse = of_all(|optimizer| optimizer.sparse_names, sparse::step);
    let sparse = sparse.map(|operator| operator.of("Tindices", INDICES));
    of_all(|optimizer| optimizer.names, dense::step).chain(sparse).collect()
}
