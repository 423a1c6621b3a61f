//! The registration of kernels, and the functions that TensorFlow calls for them.

use super::call::Call;
use super::operator::{Kernel, Operator};
use crate::c_api::attributes::Attributes;
use crate::c_api::functions::{Create, RawConstruction, RawContext, api};
use crate::c_api::status::{Status, checked, guarded};
use crate::dtype;
use crate::error::{Error, Result};
use dml_kernel::DType;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_void};
use std::sync::OnceLock;

/// The kernel of one node.
struct Node {
    operator: &'static str,
    on_host: bool,
    compute: Kernel,
}

/// The operators by name, once they are registered.
static TABLE: OnceLock<HashMap<&'static str, Operator>> = OnceLock::new();

/// Makes a kernel; null after an error, which TensorFlow knows then.
unsafe extern "C" fn create<const ON_HOST: bool>(construction: *mut RawConstruction) -> *mut c_void {
    let made = guarded(|| {
        // SAFETY: TensorFlow's construction, during its call.
        let attributes = unsafe { Attributes::new(construction) };
        let name = attributes.operator()?;
        let found = TABLE.get().and_then(|table| table.get(name.as_str()));
        let operator = found.ok_or_else(|| Error::Unimplemented(format!("no kernel for {name}")))?;
        Ok(Node { operator: operator.name, on_host: ON_HOST, compute: (operator.make)(&attributes)? })
    });
    match made {
        Ok(node) => Box::into_raw(Box::new(node)).cast(),
        Err(error) => {
            let status = Status::of(&error);
            // SAFETY: both live.
            unsafe { (api().TF_OpKernelConstruction_Failure)(construction, status.raw()) };
            std::ptr::null_mut()
        }
    }
}

/// Runs a kernel.
unsafe extern "C" fn compute(kernel: *mut c_void, context: *mut RawContext) {
    let done = guarded(|| {
        // SAFETY: `create` made it, and TensorFlow deletes it after its last call; none is made
        // after `create` failed. Several threads may run it: it is `Sync`.
        let node = unsafe { &*kernel.cast::<Node>() };
        // SAFETY: TensorFlow's context, during its call.
        let call = unsafe { Call::new(context, node.operator, node.on_host) }?;
        (node.compute)(&call)
    });
    if let Err(error) = done {
        let status = Status::of(&error);
        // SAFETY: both live.
        unsafe { (api().TF_OpKernelContext_Failure)(context, status.raw()) };
    }
}

/// Deletes a kernel.
unsafe extern "C" fn delete(kernel: *mut c_void) {
    if !kernel.is_null() {
        // SAFETY: `create` made it, and TensorFlow calls this once.
        drop(unsafe { Box::from_raw(kernel.cast::<Node>()) });
    }
}

fn text(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}

/// Registers one kernel: of an operator, for one choice of dtypes, with these arguments on the
/// host.
fn register(device: &CStr, operator: &Operator, dtypes: &[(&str, DType)], create: Create, host: &[&str]) -> Result<()> {
    let name = text(operator.name);
    // SAFETY: TensorFlow copies the names; the functions are those above. The builder is
    // TensorFlow's after the last call.
    unsafe {
        let builder = (api().TF_NewKernelBuilder)(name.as_ptr(), device.as_ptr(), Some(create), compute, Some(delete));
        for (attribute, dtype) in dtypes {
            let attribute = text(attribute);
            let number = dtype::number_of(*dtype);
            checked(|status| (api().TF_KernelBuilder_TypeConstraint)(builder, attribute.as_ptr(), number, status))?;
        }
        for argument in host {
            (api().TF_KernelBuilder_HostMemory)(builder, text(argument).as_ptr());
        }
        if operator.replaces_core {
            (api().TF_KernelBuilder_Priority)(builder, 1);
        }
        checked(|status| (api().TF_RegisterKernelBuilder)(name.as_ptr(), builder, status))
    }
}

/// Every choice of one dtype for each attribute.
fn choices<'o>(types: &[(&'o str, &[DType])]) -> Vec<Vec<(&'o str, DType)>> {
    types.iter().fold(vec![Vec::new()], |choices, (attribute, dtypes)| {
        let with = |choice: &Vec<_>, dtype| choice.iter().copied().chain([(*attribute, dtype)]).collect();
        choices.iter().flat_map(|choice| dtypes.iter().map(|&dtype| with(choice, dtype)).collect::<Vec<_>>()).collect()
    })
}

/// Every choice of dtypes for an operator's attributes, with those that follow from others.
fn signatures<'o>(operator: &'o Operator, types: &[(&'o str, &[DType])]) -> Vec<Vec<(&'o str, DType)>> {
    let mut choices = choices(types);
    for dtypes in &mut choices {
        for &(attribute, to, how) in &operator.tied {
            let found = dtypes.iter().find(|(name, _)| *name == to).map(|&(_, dtype)| (attribute, how(dtype)));
            dtypes.extend(found);
        }
    }
    choices
}

/// Registers the kernels of operators for devices of a type. A second call does nothing.
pub fn register_all(device: &CStr, operators: Vec<Operator>) {
    if TABLE.set(operators.into_iter().map(|operator| (operator.name, operator)).collect()).is_err() {
        return;
    }
    let try_to = |operator: &Operator, dtypes: &[(&str, DType)], create: Create, host: &[&str]| {
        if let Err(error) = register(device, operator, dtypes, create, host) {
            tracing::warn!("{} {dtypes:?} is not registered: {error}", operator.name);
        }
    };
    for operator in TABLE.get().into_iter().flat_map(HashMap::values) {
        for dtypes in signatures(operator, &operator.types) {
            try_to(operator, &dtypes, create::<false>, operator.host);
        }
        if let Some(host) = operator.int32_on_host {
            let mut types = operator.types.clone();
            if let Some((_, dtypes)) = types.first_mut() {
                *dtypes = &[DType::I32];
            }
            for dtypes in signatures(operator, &types) {
                try_to(operator, &dtypes, create::<true>, host);
            }
        }
    }
}
