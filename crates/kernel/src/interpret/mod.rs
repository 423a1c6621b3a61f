//! Runs kernels on the host: the reference semantics of the language, for tests and for tools.
//! `machine` runs everything but the statements on matrix registers, which `matrix` runs.

mod machine;
mod matrix;

pub use machine::{Argument, Function, Subnormals, run, run_with};
