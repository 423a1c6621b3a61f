//! The dtypes of elementwise functions: supported ones, and the dtype of the result.

use dml_kernel::DType;

/// The dtype of the result.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The promoted dtype of the inputs.
    Promote,
    /// The same, without a cast: `out=` of another dtype is an error where
    /// [`Promote`](Rule::Promote) casts.
    Exact,
    /// Promoted, integers and bool become the default float dtype.
    Float,
    /// Computed in the promoted dtype; the result is bool.
    Bool,
    /// Computed in the promoted dtype; the result has this dtype.
    As(DType),
    /// Computed in the promoted dtype, which is complex; the result has the dtype of its parts.
    Real,
}

/// The dtypes that a function supports, where the CPU does not support all.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Dtypes {
    /// All.
    Any,
    /// No bools.
    Number,
    /// No bools, with negation's error message.
    Signed,
    /// Floats.
    Float,
    /// Integers and bools.
    Integral,
}
