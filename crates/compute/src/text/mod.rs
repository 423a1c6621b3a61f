//! Texts that call the functions of the [catalogue](crate::catalogue): [expressions](expressions),
//! and whole [kernels](kernels).

pub mod expressions;
pub mod kernels;
