//! What is computed of complex tensors, by their real and imaginary parts.

pub mod copy;
pub mod functions;
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
