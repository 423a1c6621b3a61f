//! Operators that move elements: copies, concatenation, flips, rolls, shuffles.

pub mod concatenation;
pub mod copy;
pub mod functions;
pub mod pixel_shuffle;
pub mod rearrange;
