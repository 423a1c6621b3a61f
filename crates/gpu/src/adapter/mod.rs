//! What is known of an adapter: plain data.

mod capabilities;
mod info;
mod matrix;

pub use capabilities::{Capabilities, FloatControls, FloatModes};
pub use info::{AdapterInfo, AdapterKind, vendor_name};
pub use matrix::{MatrixElement, MatrixShape};
