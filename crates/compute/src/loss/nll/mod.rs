//! Negative log-likelihood of target classes, for rows of classes and for images.
//!
//! The input is viewed as `[batch, classes, positions]` (one position for rows) and the target as
//! `[batch, positions]`.

pub mod backward;
pub mod forward;
pub mod problem;
