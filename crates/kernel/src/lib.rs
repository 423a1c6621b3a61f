//! A small kernel language. A kernel is written with [`Builder`] or as [`text`]. It is data
//! ([`ir::Kernel`]), which prints as text without loss and is emitted as SPIR-V by
//! [`ir::Kernel::emit`]. The crate knows no GPU and no driver.
//!
//! Guarantees: float addition, subtraction and multiplication are correctly rounded and never
//! contracted; every other float function is built from them ([`math`]), so results have the same
//! bits on every driver, for normal numbers. A kernel accesses tensors by index and does no other
//! address arithmetic.
//!
//! ```
//! use dml_kernel::interpret::{Argument, run};
//! use dml_kernel::{Builder, DType, ScalarType};
//!
//! let b = Builder::new("double", [4, 1, 1]);
//! let (x, n) = (b.pointer("x", DType::F32), b.param("n", ScalarType::U32));
//! let i = b.global_id(0);
//! b.if_(i.lt(n), || x.store(i, x.load(i) * 2.0));
//! let kernel = b.finish();
//!
//! let mut memory: Vec<u8> = [1.0f32, 2.0, 3.0].iter().flat_map(|x| x.to_le_bytes()).collect();
//! run(&kernel, [1, 1, 1], 8, &mut [Argument::Memory(&mut memory), Argument::Number(3)]);
//! assert_eq!(memory[8..], 6.0f32.to_le_bytes());
//! assert!(!kernel.emit()?.words.is_empty()); // SPIR-V
//! # Ok::<(), dml_kernel::InvalidKernel>(())
//! ```

#![forbid(unsafe_code)]

pub mod builder;
mod collect;
pub mod component_map;
pub mod dense;
pub mod dtype;
mod element;
pub mod float8;
mod group_counts;
pub mod hlsl;
pub mod interpret;
pub mod ir;
mod lower;
pub mod math;
pub mod matrix;
pub mod matrix_type;
pub mod spirv;
mod storage;
pub mod text;
pub mod types;
mod verify;

pub use builder::{Builder, LocalArray, Operand, Pointer, Shared, Value, Var};
pub use component_map::ComponentMap;
pub use dtype::DType;
pub use element::Element;
pub use group_counts::GroupCounts;
pub use ir::{Atomic, Kernel, Subgroup};
pub use lower::{FloatModes, Target};
pub use matrix::Matrix;
pub use matrix_type::{MatrixLayout, MatrixType, MatrixUse};
pub use spirv::{Module, Needs};
pub use storage::{convert, decode, encode, encode_pair};
pub use text::{Functions, ParseError};
pub use types::{ScalarType, Type};
pub use verify::InvalidKernel;
