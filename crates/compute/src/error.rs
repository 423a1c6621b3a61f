//! The error of a computation.

/// The error of a computation. Callers check shapes and dtypes first, with messages of their own.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The arguments do not match each other.
    #[error("{0}")]
    Invalid(String),
    /// There are more elements than kernels can index.
    #[error("{0}")]
    TooLarge(String),
    /// No kernel computes this on this adapter, or kernels do not support these values. Nothing was
    /// written, so another implementation may be tried.
    #[error("no kernel: {0}")]
    NoKernel(String),
    /// The results' shapes depend on values, which are not available while a computation is only
    /// [describe_tensors](crate::context::Phase::Infer).
    #[error("{0}")]
    NeedsData(String),
    /// An error of the engine: out of memory, device lost, missing feature.
    #[error(transparent)]
    Engine(#[from] dml_engine::Error),
    /// The caller could not allocate memory. The status is the caller's.
    #[error("the caller's allocation failed with status {0}")]
    Allocation(i32),
}

/// [`std::result::Result`] with this crate's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;
