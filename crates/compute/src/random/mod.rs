//! Random numbers.

pub mod distributions;
pub mod dropout;
pub mod fill;
pub mod functions;
pub mod in_place;
pub mod methods;
pub mod multinomial;
pub mod permutation;
pub mod philox;

use std::sync::{Arc, Mutex};

/// A generator made beside the device's default one.
pub type Generator = Arc<Mutex<dml_engine::Generator>>;
