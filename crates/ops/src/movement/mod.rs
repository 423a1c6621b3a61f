//! Elements moved as they are: copies, concatenation, flips, rolls.

pub mod concatenation;
pub mod copy;
pub mod rearrange;
