//! How an operator runs with arguments that its function does not support: complex numbers, 8-bit
//! floats.

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::{Operator, schema};
use dml_compute::pointwise::function::Function;
use dml_kernel::DType;

/// Runs a call of an operator.
pub type Route = fn(&mut Call, &Operator) -> Result<()>;

/// Whether `self` of the first dtype may be converted to the second, for this `dtype=`.
pub type Allows = fn(DType, DType, Option<DType>) -> bool;

/// How an operator runs with complex tensors.
///
/// Unless stated otherwise, conjugates and negatives among the arguments are resolved first, and a
/// call with real arguments whose `out=` is complex runs the operator's own function.
#[derive(Copy, Clone)]
pub enum Complex {
    /// The call falls back to the CPU.
    None,
    /// The operator's function supports complex tensors.
    Own,
    /// Another function supports them.
    Run(Route),
    /// An elementwise function of all arguments.
    Pointwise(&'static Function),
    /// `self` is converted to the dtype of the result first; then [`Run`](Self::Run), or the
    /// operator's function of reals.
    Converted {
        /// The function that runs it.
        run: Route,
        /// The conversions that it allows.
        allows: Allows,
    },
    /// A function that supports reals, too.
    OfReals(Route),
    /// A function that supports reals, too, and unresolved conjugates and negatives.
    AsGiven(Route),
    /// An operator on lists: runs the operator with this name in this table on one tensor after the
    /// other.
    Each(&'static [Operator], &'static str),
}

impl Complex {
    /// The catalogue's entry for an elementwise function.
    pub const fn of(function: &'static Function) -> Complex {
        match function.complex {
            Some(function) => Complex::Pointwise(function),
            None => Complex::None,
        }
    }
}

/// An operator on lists that runs the operator with this name on one tensor after the other. A name
/// that the table lacks does not compile.
pub const fn each(table: &'static [Operator], name: &'static str) -> Complex {
    let mut i = 0;
    while i < table.len() {
        if schema::is_of(table[i].schema, name) {
            return Complex::Each(table, name);
        }
        i += 1;
    }
    panic!("the table has no operator of this name")
}
