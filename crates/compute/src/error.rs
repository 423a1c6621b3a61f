//! What can go wrong in a computation.

/// The error of a computation. Whoever calls it has checked shapes and dtypes in its own words
/// before.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The arguments do not fit each other.
    #[error("{0}")]
    Invalid(String),
    /// More elements than the kernels can number.
    #[error("{0}")]
    TooLarge(String),
    /// No kernel computes this on this adapter, or these values are left to another implementation.
    /// Nothing was written.
    #[error("no kernel: {0}")]
    NoKernel(String),
    /// The results depend on values, which are not there while a computation is only
    /// [described](crate::context::Phase::Infer).
    #[error("{0}")]
    NeedsData(String),
    /// The engine's own error: out of memory, device lost, missing feature.
    #[error(transparent)]
    Engine(#[from] dml_engine::Error),
    /// The caller did not give the memory that it was asked for. The status is the caller's.
    #[error("the caller's allocation failed with status {0}")]
    Allocation(i32),
}

/// Shorthand of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
