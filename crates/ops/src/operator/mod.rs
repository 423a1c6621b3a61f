//! What an operator is: its overload, the call it gets, and the errors it may return.

pub mod call;
pub mod error;
pub mod fault;
pub mod host;
pub mod structured;

use call::Call;
use error::Result;

/// One overload: PyTorch's name for it and the function that runs it.
pub struct Operator {
    /// As in `aten::add.Tensor`.
    pub name: &'static str,
    /// Checks the arguments, enqueues kernels, and sets the results.
    pub run: fn(&mut Call) -> Result<()>,
}

/// One overload, for a family's list.
pub const fn op(name: &'static str, run: fn(&mut Call) -> Result<()>) -> Operator {
    Operator { name, run }
}
