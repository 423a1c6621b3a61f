//! Products and distances of vectors and matrices beside matrix multiplication.

pub mod cross;
pub mod distance;
