//! Weight normalisation: `w = v * g / |v|` (T. Salimans and D. Kingma, "Weight normalization",
//! NeurIPS 2016). The norm is taken over every dimension but one.

use crate::reduction::axes::Axes;
use crate::view::View;

/// The arguments `v` and `g`, checked.
pub struct Problem<'t> {
    pub v: &'t View,
    /// Of the shape of `v` with all dimensions but one of size 1.
    pub g: View,
    /// All dimensions but that one.
    pub axes: Axes,
}
