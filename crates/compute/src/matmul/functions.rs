//! Elementwise functions of the sums of products.

use crate::functions;
use dml_kernel::Value;

/// An alpha of 0 leaves nothing of the sum, as in BLAS: no NaN, and in a sum with a bias not even a
/// zero, whose sign would count.
fn scaled<'b>(sum: Value<'b>, alpha: Value<'b>, exact: bool, added: bool) -> Value<'b> {
    let product = sum * alpha;
    if !exact {
        return product;
    }
    let nothing = sum.like(if added { -0.0 } else { 0.0 });
    alpha.eq(0.0).select(nothing, product)
}

functions! {
    /// A sum times alpha. Flag 0: exactly nothing of an alpha of 0; flag 1: something is added.
    SCALED_SUM = "scaled_sum"(sum, alpha | o) => scaled(sum, alpha, o.flags[0], o.flags[1]);
    /// A sum and a multiple of a bias.
    PLUS_BIAS = "plus_bias"(sum, bias, beta) => {
        let added = bias.cast(sum.scalar()) * beta;
        sum + added
    };
}
