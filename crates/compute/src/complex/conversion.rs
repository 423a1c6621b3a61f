//! Calls between complex numbers and reals: a result of the other kind that `dtype=` or `out=` asks
//! for.

/// Reductions and running ones: they convert what they take to the dtype of their result first.
pub fn converts_first(name: &str) -> bool {
    matches!(name, "sum" | "mean" | "prod" | "nansum" | "cumsum" | "cumprod")
}
