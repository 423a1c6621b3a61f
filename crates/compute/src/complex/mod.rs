//! Operators of complex tensors.
//!
//! The operators of reals never see them: a call that has one goes to `run_complex`, which knows
//! how the operator is done with reals, or falls back. There are four ways, by `Route`.

pub mod by_parts;
pub mod comparison;
pub mod conversion;
pub mod copy;
pub mod dispatch;
pub mod functions;
pub mod lists;
pub mod log_cumsum_exp;
pub mod parts;
pub mod pointwise;
pub mod product;
pub mod reduction;

pub use crate::complex::copy::device_copy;
pub use crate::complex::copy::fill_with;
pub use crate::complex::parts::as_real;
pub use crate::complex::parts::parts;
pub use crate::complex::product::blocks;
pub use crate::complex::product::interleaved;
pub use crate::complex::reduction::working_copy as contiguous;
