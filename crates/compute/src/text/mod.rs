//! Texts that call the functions of the [catalogue](crate::catalogue): [expressions], and whole
//! [kernels].

pub mod expressions;
pub mod kernels;
