//! The settings that computations follow.

use dml_compute::{MatmulPrecision, Policy};
use dml_kernel::DType;

/// TensorFlow's settings, as far as they reach a plugin: none does.
pub struct Settings;

impl Policy for Settings {
    fn deterministic(&self) -> bool {
        false
    }

    fn matmul_precision(&self) -> MatmulPrecision {
        MatmulPrecision::Highest
    }

    fn product_dtype(&self) -> Option<DType> {
        None
    }
}
