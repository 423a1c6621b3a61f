//! Elementwise functions of indexing.

use crate::functions;
use crate::pointwise::arithmetic::{product, sum};

functions! {
    /// `x`, or `value` where the mask is not 0.
    MASKED_FILL = "masked_fill"(x, mask, value) => mask.ne(0).select(value, x);
    /// `x + y`; for bools the logical or.
    INDEX_PUT = "index_put"(x, y) => sum(x, y);
    /// `x * alpha`; for bools the logical and.
    INDEX_ADD = "index_add"(x, alpha) => product(x, alpha);
}
