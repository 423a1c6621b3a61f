//! Elementwise functions of reductions.

use crate::functions;
use dml_kernel::{ScalarType, convert, math};

functions! {
    /// The bin of an element between `low` and `high`; `bins` if it is outside. For floats every
    /// step is rounded to the option's dtype, as on the CPU, so that elements near an edge are in
    /// the same bin.
    HISTC = "histc"(x, low, high, bins | o).divides() => {
        let bin = if o.dtype.is_float() {
            let scaled = convert(convert(x - low, o.dtype) * bins, o.dtype);
            convert(math::div(scaled, convert(high - low, o.dtype)), o.dtype).floor()
        } else {
            (x - low) * bins / (high - low)
        };
        (x.ge(low) & x.le(high)).select(bin.min(bins - 1.0), bins).cast(ScalarType::U32)
    };
}
