//! Elementwise functions of copies.

use crate::functions;

functions! {
    /// The element itself.
    COPY = "copy"(x) => x;
    /// `-x`
    COPY_NEG = "copy_neg"(x) => -x;
    /// A number for all elements.
    FILL = "fill"(value) => value;
}
