//! Elementwise functions of copies.

use crate::functions;

functions! {
    /// `x`
    COPY = "copy"(x) => x;
    /// `-x`
    COPY_NEG = "copy_neg"(x) => -x;
    /// A constant.
    FILL = "fill"(value) => value;
}
