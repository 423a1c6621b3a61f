//! Winograd's transforms for a filter of three taps, at the points 0, 1, -1 and infinity (Lavin and
//! Gray, "Fast algorithms for convolutional neural networks", CVPR 2016). Two dimensions are
//! transformed one after the other.
//!
//! Two results of a filter of three taps need four multiplications, `output(filter(g) * input(d))`
//! with an elementwise `*`, instead of six. As a trilinear form this is
//! `sum (gradient(y) * filter(g) * input(d))`, so the same multiplications also give the three sums
//! of the filter's gradient: `filter_gradient(gradient(y) * input(d))`. The functions are
//! transposes of each other: `gradient` of `output`, and `filter_gradient` of `filter`.

use std::array::from_fn;
use std::ops::{Add, Mul, Neg, Sub};

/// Transformed numbers of a tile along a dimension.
pub const POINTS: usize = 4;

/// Multiplications of a tile.
pub const TILE_MULTIPLICATIONS: i64 = (POINTS * POINTS) as i64;

/// Results of a tile along a dimension.
pub const RESULTS: i64 = 2;

/// Taps of the filter along a dimension.
pub const TAPS: usize = 3;

/// The type in which the transforms are computed.
pub trait Number:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<f64, Output = Self> + Neg<Output = Self>
{
}

impl<T: Copy + Add<Output = T> + Sub<Output = T> + Mul<f64, Output = T> + Neg<Output = T>> Number for T {}

/// Transforms the input.
pub fn input<T: Number>([a, b, c, d]: [T; POINTS]) -> [T; POINTS] {
    [a - c, b + c, c - b, b - d]
}

/// Transforms the filter.
pub fn filter<T: Number>([a, b, c]: [T; TAPS]) -> [T; POINTS] {
    let (outer, inner) = ((a + c) * 0.5, b * 0.5);
    [a, outer + inner, outer - inner, c]
}

/// Transforms products to results.
pub fn output<T: Number>([a, b, c, d]: [T; POINTS]) -> [T; 2] {
    [a + (b + c), (b - c) - d]
}

/// Transforms the results' gradient.
pub fn gradient<T: Number>([a, b]: [T; 2]) -> [T; POINTS] {
    [a, a + b, a - b, -b]
}

/// Transforms products to the filter's gradient.
pub fn filter_gradient<T: Number>([a, b, c, d]: [T; POINTS]) -> [T; TAPS] {
    let sum = (b + c) * 0.5;
    [a + sum, (b - c) * 0.5, sum + d]
}

/// Applies a transform along both dimensions.
pub fn along_both<T: Number, const I: usize, const O: usize>(x: [[T; I]; I], of: fn([T; I]) -> [T; O]) -> [[T; O]; O] {
    let rows: [[T; O]; I] = x.map(of);
    let columns: [[T; O]; O] = from_fn(|j| of(from_fn(|i| rows[i][j])));
    from_fn(|i| from_fn(|j| columns[j][i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Small integers, for which every sum and every half is exact.
    fn numbers<const N: usize>(seed: &mut u32) -> [[f64; N]; N] {
        from_fn(|_| {
            from_fn(|_| {
                *seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                f64::from((*seed >> 24) as i32 - 128)
            })
        })
    }

    fn product(x: [[f64; POINTS]; POINTS], y: [[f64; POINTS]; POINTS]) -> [[f64; POINTS]; POINTS] {
        from_fn(|i| from_fn(|j| x[i][j] * y[i][j]))
    }

    #[test]
    fn they_are_the_sums_of_the_definition() {
        let mut seed = 1;
        for _ in 0..100 {
            let (d, g, y) = (numbers::<4>(&mut seed), numbers::<3>(&mut seed), numbers::<2>(&mut seed));
            let (of_d, of_g, of_y) = (along_both(d, input), along_both(g, filter), along_both(y, gradient));
            let results = along_both(product(of_d, of_g), output);
            let gradients = along_both(product(of_d, of_y), filter_gradient);
            for (i, j) in (0..2).flat_map(|i| (0..2).map(move |j| (i, j))) {
                let taps = (0..3).flat_map(|r| (0..3).map(move |s| (r, s)));
                assert_eq!(results[i][j], taps.map(|(r, s)| g[r][s] * d[i + r][j + s]).sum::<f64>());
            }
            for (r, s) in (0..3).flat_map(|r| (0..3).map(move |s| (r, s))) {
                let positions = (0..2).flat_map(|i| (0..2).map(move |j| (i, j)));
                assert_eq!(gradients[r][s], positions.map(|(i, j)| y[i][j] * d[i + r][j + s]).sum::<f64>());
            }
        }
    }
}
