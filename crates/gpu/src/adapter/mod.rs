//! The description of an adapter, as plain data.

mod capabilities;
mod info;
mod matrix;
mod registers;

pub use capabilities::{Capabilities, FloatControls, FloatModes};
pub use info::{AdapterInfo, AdapterKind, vendor_name};
pub use matrix::{MatrixElement, MatrixShape};
pub use registers::RegisterFile;
