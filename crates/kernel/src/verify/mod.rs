//! Checks a kernel's types before it is emitted, so that no driver receives an invalid module: some
//! end the process.
//!
//! Every instruction has operands of the types that SPIR-V's instruction takes, and uses values
//! only where their definition has run. The checks accept a kernel only if `spirv-val` accepts its
//! module, and take microseconds.
//!
//! [`verifier`] checks the declarations; [`scope`] knows the definitions that have run; `values`,
//! `statements` and `matrix` check one instruction or statement each.

mod matrix;
mod scope;
mod statements;
#[cfg(test)]
mod tests;
mod values;
mod verifier;

pub use verifier::InvalidKernel;
