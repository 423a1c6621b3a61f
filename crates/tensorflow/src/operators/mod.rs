//! TensorFlow's operators. Each file is a family, and ends its table with `operators()`.
//!
//! A kernel gets its attributes when TensorFlow makes it, and a [`Call`] each time it runs: inputs
//! and results as views, host inputs as numbers. It enqueues computations of `dml_compute` and
//! returns.
//!
//! Where TensorFlow's core has a kernel for every device (`Const`, `Identity`, `Reshape`, control
//! flow, arithmetic of int32 on the host), none is registered here.

mod arithmetic;
mod dtypes;
mod optimizers;
mod products;
mod recurrent;
mod registry;
mod snapshot;
mod variables;

pub use registry::{Kernel, Operator};

use crate::c_api::registration::register_all;
use crate::c_api::{Attributes, Call};
use crate::platform::device_type;

/// All operators.
pub fn operators() -> Vec<Operator> {
    [
        arithmetic::operators(),
        optimizers::operators(),
        products::operators(),
        recurrent::operators(),
        snapshot::operators(),
        variables::operators(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// TensorFlow's call after [`SE_InitPlugin`](crate::platform::SE_InitPlugin).
#[unsafe(no_mangle)]
#[allow(unsafe_code)]
pub extern "C" fn TF_InitKernel() {
    if crate::c_api::functions::loaded().is_ok() {
        register_all(device_type());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_operator_is_there_once() {
        let mut seen = HashSet::new();
        let twice: Vec<_> = operators().iter().map(|o| o.name).filter(|name| !seen.insert(*name)).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }
}
