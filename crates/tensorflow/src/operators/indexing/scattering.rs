//! Writing slices of a tensor or of a variable by index, or combining them with what is there. For
//! an index out of range see [`index_access`](crate::operators::common::index_access).

use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{ALL, INDICES, NUMBERS, REALS};
use crate::operators::common::index_access::{Places, Update};
use crate::operators::common::regions::{copy, fill};
use crate::require;
use dml_compute::{Scalar, View};
use dml_kernel::DType;

/// The updates, which have the sizes of the slices.
fn checked_updates(call: &Call, t: &[i64], places: &Places, updates: View) -> Result<View> {
    let wanted = places.slices(t);
    require!(
        updates.sizes == wanted,
        "Must have updates.shape = indices.shape[:batch_dim] + params_shape[slice_dim:], got updates.shape: {:?}, \
         wanted: {:?} ({})",
        updates.sizes.as_slice(),
        wanted.as_slice(),
        call.operator()
    );
    Ok(updates)
}

/// The places of indices whose last dimension are the first dimensions of a tensor.
fn nd_places(call: &Call, t: &[i64], indices: &View) -> Result<Places> {
    require!(indices.dim() >= 1, "indices must be at least a vector ({})", call.operator());
    let places = Places::of_last_dimension(indices);
    require!(
        places.depth() <= t.len(),
        "The inner {} dimensions of indices are more than the {} of the tensor ({})",
        places.depth(),
        t.len(),
        call.operator()
    );
    require!(
        t.iter().product::<i64>() > 0 || places.sizes.contains(&0),
        "Indices and updates specified for empty output tensor ({})",
        call.operator()
    );
    Ok(places)
}

/// `ScatterNd`.
fn scatter_nd(call: &Call) -> Result<()> {
    let (indices, updates, sizes) = (call.input(0)?, call.input(1)?, call.host_ints(2)?);
    require!(sizes.iter().all(|&n| n >= 0), "shape must be nonnegative, got {:?}", sizes.as_slice());
    let places = nd_places(call, &sizes, &indices)?;
    let updates = checked_updates(call, &sizes, &places, updates)?;
    let out = call.output(0, &sizes)?;
    fill(call, &out, Scalar::Int(0))?;
    places.update(call, &out, &updates, Update::Add)
}

/// Updates a copy of input 0, in its place if nobody else needs it.
fn tensor_scatter(name: &'static str, update: Update, dtypes: &'static [DType]) -> Operator {
    Operator::plain(name, move |call: &Call| {
        let (t, indices, updates) = (call.input(0)?, call.input(1)?, call.input(2)?);
        let places = nd_places(call, &t.sizes, &indices)?;
        let updates = checked_updates(call, &t.sizes, &places, updates)?;
        let out = call.output_over(&[0], 0, &t.sizes)?;
        if out.data != t.data {
            copy(call, &t, &out)?;
        }
        places.update(call, &out, &updates, update)
    })
    .of("T", dtypes)
    .of("Tindices", INDICES)
}

/// How an operator names slices of a variable.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Naming {
    /// By an index of the first dimension. The updates may be one number for all.
    First,
    /// By indices of several dimensions.
    Nd,
}

/// Updates the variable at input 0.
fn update_variable(call: &Call, naming: Naming, update: Update, use_locking: bool) -> Result<()> {
    let variables = call.lock(&[0], use_locking, true)?;
    let (t, indices, updates) = (variables.tensor(0, true)?, call.input(1)?, call.input(2)?);
    let places = match naming {
        Naming::First => {
            require!(t.dim() >= 1, "params must be at least 1-D, got shape {:?}", t.sizes.as_slice());
            Places::of_first(&indices)
        }
        Naming::Nd => nd_places(call, &t.sizes, &indices)?,
    };
    let is_number = naming == Naming::First && updates.dim() == 0;
    let updates = if is_number { updates.expand(&places.slices(&t.sizes)) } else { updates };
    let updates = checked_updates(call, &t.sizes, &places, updates)?;
    places.update(call, &t, &updates, update)
}

/// An operator on a variable that is a resource.
fn resource(name: &'static str, naming: Naming, update: Update, dtypes: &'static [DType]) -> Operator {
    let (attribute, argument): (_, &[&str]) = match naming {
        Naming::First => ("dtype", &["resource"]),
        Naming::Nd => ("T", &["ref"]),
    };
    Operator::plain(name, move |call: &Call| update_variable(call, naming, update, true))
        .of(attribute, dtypes)
        .of("Tindices", INDICES)
        .on_host(argument)
}

/// An operator on a variable that is a reference, which is also the result.
fn reference(name: &'static str, naming: Naming, update: Update, dtypes: &'static [DType]) -> Operator {
    Operator::new(name, move |attributes: &Attributes| {
        let use_locking = attributes.bool("use_locking")?;
        Ok(move |call: &Call| {
            update_variable(call, naming, update, use_locking)?;
            call.pass_reference_on(0, 0)
        })
    })
    .of("T", dtypes)
    .of("Tindices", INDICES)
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    use Naming::{First, Nd};
    vec![
        Operator::plain("ScatterNd", scatter_nd).of("T", NUMBERS).of("Tindices", INDICES).on_host(&["shape"]),
        tensor_scatter("TensorScatterUpdate", Update::Assign, ALL),
        tensor_scatter("TensorScatterAdd", Update::Add, NUMBERS),
        tensor_scatter("TensorScatterSub", Update::Sub, NUMBERS),
        tensor_scatter("TensorScatterMax", Update::Max, REALS),
        tensor_scatter("TensorScatterMin", Update::Min, REALS),
        tensor_scatter("ScatterNdNonAliasingAdd", Update::Add, NUMBERS),
        resource("ResourceScatterUpdate", First, Update::Assign, ALL),
        resource("ResourceScatterAdd", First, Update::Add, NUMBERS),
        resource("ResourceScatterSub", First, Update::Sub, NUMBERS),
        resource("ResourceScatterMul", First, Update::Mul, REALS),
        resource("ResourceScatterDiv", First, Update::Div, REALS),
        resource("ResourceScatterMax", First, Update::Max, REALS),
        resource("ResourceScatterMin", First, Update::Min, REALS),
        resource("ResourceScatterNdUpdate", Nd, Update::Assign, ALL),
        resource("ResourceScatterNdAdd", Nd, Update::Add, NUMBERS),
        resource("ResourceScatterNdSub", Nd, Update::Sub, NUMBERS),
        resource("ResourceScatterNdMax", Nd, Update::Max, REALS),
        resource("ResourceScatterNdMin", Nd, Update::Min, REALS),
        reference("ScatterUpdate", First, Update::Assign, ALL),
        reference("ScatterAdd", First, Update::Add, NUMBERS),
        reference("ScatterSub", First, Update::Sub, NUMBERS),
        reference("ScatterMul", First, Update::Mul, REALS),
        reference("ScatterDiv", First, Update::Div, REALS),
        reference("ScatterMax", First, Update::Max, REALS),
        reference("ScatterMin", First, Update::Min, REALS),
        reference("ScatterNdUpdate", Nd, Update::Assign, ALL),
        reference("ScatterNdAdd", Nd, Update::Add, NUMBERS),
        reference("ScatterNdSub", Nd, Update::Sub, NUMBERS),
        reference("ScatterNdMax", Nd, Update::Max, REALS),
        reference("ScatterNdMin", Nd, Update::Min, REALS),
    ]
}
