//! Random numbers.

pub mod distributions;
pub mod dropout;
pub mod multinomial;
pub mod permutation;
pub mod philox;
