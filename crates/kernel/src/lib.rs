//! A small kernel language. A kernel is written with [`Builder`], is data ([`ir::Kernel`]) that prints itself readably,
//! and becomes SPIR-V by [`ir::Kernel::emit`]. Nothing here knows a GPU or a driver.
//!
//! What is promised: float addition, subtraction and multiplication are correctly rounded and never contracted; every
//! other float function is built from them ([`math`]), so results have the same bits on every driver, for normal
//! numbers. A kernel reads and writes its arguments by index and does no other address arithmetic.

pub mod builder;
mod collect;
pub mod dense;
mod display;
pub mod dtype;
mod element;
pub mod interpret;
pub mod ir;
pub mod math;
pub mod spirv;
mod storage;
pub mod types;

pub use builder::{Builder, LocalArray, Operand, Pointer, Shared, Value, Var};
pub use dtype::DType;
pub use element::Element;
pub use ir::{Atomic, Kernel, Subgroup};
pub use spirv::{FloatModes, Module, Needs};
pub use storage::convert;
pub use types::{ScalarType, Type};
