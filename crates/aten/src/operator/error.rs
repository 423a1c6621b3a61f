//! What can go wrong in an operator, by the Python exception it becomes.

use dml_compute::fault::refused;

/// An operator's error. Messages name the operator's argument, shapes and dtypes, as PyTorch's do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `RuntimeError`: wrong shapes, dtypes or devices.
    #[error("{0}")]
    Runtime(String),
    /// A dtype that the operator refuses: `RuntimeError` up to torch 2.14, `NotImplementedError`
    /// from 2.15, as on CPU.
    #[error("{0}")]
    Dtype(String),
    /// `IndexError`: a dimension or index out of range.
    #[error("{0}")]
    Index(String),
    /// `TypeError`.
    #[error("{0}")]
    Type(String),
    /// `ValueError`.
    #[error("{0}")]
    Value(String),
    /// `NotImplementedError`.
    #[error("{0}")]
    NotImplemented(String),
    /// No kernel for these arguments; the plugin runs the operator on the CPU and counts it.
    #[error("no dml kernel: {0}")]
    Fallback(String),
    /// The results depend on values, which are not there while a call is only
    /// [inferred](crate::inference::infer).
    #[error("{0}")]
    NeedsData(String),
    /// The engine's own error: out of memory, device lost, missing feature.
    #[error(transparent)]
    Engine(#[from] dml_engine::Error),
    /// A plugin callback failed; the message is already set there. The status is the callback's.
    #[error("the plugin's callback failed with status {0}")]
    Host(i32),
}

impl From<dml_compute::Error> for Error {
    fn from(e: dml_compute::Error) -> Self {
        use dml_compute::Error as Compute;
        match e {
            Compute::Invalid(message) => Error::Runtime(message),
            Compute::TooLarge(message) => Error::NotImplemented(message),
            Compute::NoKernel(message) => Error::Fallback(message),
            Compute::NeedsData(message) => Error::NeedsData(message),
            Compute::Engine(e) => Error::Engine(e),
            Compute::Allocation(status) => Error::Host(status),
        }
    }
}

/// PyTorch's message of a value that a kernel [refused](dml_engine::Error::InvalidValue).
pub fn message_of_refused(value: &str) -> &str {
    match value {
        refused::DIVISOR => "ZeroDivisionError",
        refused::DEVIATION => "normal expects all elements of std >= 0.0",
        refused::INPUT => "all elements of input should be between 0 and 1",
        refused::TARGET => "all elements of target should be between 0 and 1",
        other => other,
    }
}

/// Shorthand of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// `return Err(Error::Runtime(format!(..)))` unless the condition holds.
#[macro_export]
macro_rules! check {
    ($cond:expr, $kind:ident, $($fmt:tt)+) => {
        // A value first: of a comparison of floats, which NaN fails, the negation is not the
        // opposite comparison.
        if !std::convert::identity::<bool>($cond) {
            return Err($crate::operator::error::Error::$kind(format!($($fmt)+)));
        }
    };
}
