//! Special functions, built like the elementary ones and on them, once for both float types: polynomials differ in
//! length only. They are a few ulp from the exact value (docs/reference/numerics.md), near a function's zeros a few ulp of what
//! surrounds them.

use super::{Binary, Unary};

mod airy;
mod bessel;
mod error;
mod gamma;
mod incomplete_gamma;
mod polynomial;
mod sample_gradient;
mod sum;
#[rustfmt::skip]
mod tables;
mod zeta;

pub use airy::airy_ai;
pub use bessel::{i0, i0e, i1, i1e, j0, j1, k0, k0e, k1, k1e, y0, y1};
pub use error::{erfcx, erfinv, ndtri};
pub use gamma::{digamma, lgamma};
pub use incomplete_gamma::{igamma, igammac};
pub use sample_gradient::{beta_sample_gradient, gamma_sample_gradient};
pub use sum::{flipped_by, fused, magnitude, product, sum};
pub(super) use sum::{two_product, two_sum};
pub use zeta::zeta;

/// The functions of one argument, by name.
pub const UNARY: &[(&str, Unary)] = &[
    ("lgamma", lgamma),
    ("digamma", digamma),
    ("erfinv", erfinv),
    ("erfcx", erfcx),
    ("ndtri", ndtri),
    ("i0", i0),
    ("i0e", i0e),
    ("i1", i1),
    ("i1e", i1e),
    ("j0", j0),
    ("j1", j1),
    ("y0", y0),
    ("y1", y1),
    ("k0", k0),
    ("k0e", k0e),
    ("k1", k1),
    ("k1e", k1e),
    ("airy_ai", airy_ai),
];

/// The functions of two arguments, by name.
pub const BINARY: &[(&str, Binary)] = &[("zeta", zeta), ("igamma", igamma), ("igammac", igammac)];
