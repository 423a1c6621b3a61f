//! Random numbers.

pub mod counted_gamma;
pub mod counters;
pub mod distributions;
pub mod dropout;
pub mod fill;
pub mod functions;
pub mod in_place;
mod methods;
pub mod multinomial;
pub mod permutation;
pub mod philox;

use std::sync::{Arc, Mutex};

/// A generator other than the device's default one.
pub type Generator = Arc<Mutex<dml_engine::Generator>>;
