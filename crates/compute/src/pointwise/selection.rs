//! Choosing between values element by element.

use crate::functions;
use dml_kernel::math::comparison::{maximum, minimum};

functions! {
    /// `x` where the condition is not 0, else `y`.
    WHERE = "where"(condition, x, y) => condition.ne(0).select(x, y);
    /// `min(max(x, low), high)`. NaN in any of the three yields NaN. Where the bounds cross, the
    /// upper one wins.
    CLAMP = "clamp"(x, low, high) => minimum(maximum(x, low), high);
}
