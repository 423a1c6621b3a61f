//! The order in which an algorithm adds products up.

use crate::matmul::choice::Algorithm;
use crate::matmul::matrix_unit_select::MatrixChoice;
use crate::matmul::select::Choice;

/// The order of additions, which decides on the bits of a product's results for given operands.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Order {
    on_units: bool,
    /// Length of the ranges of k that are summed separately.
    part: i64,
    /// Whether zeros are added to the last range: these turn a negative zero into a positive one.
    padded: bool,
}

impl Order {
    /// The order of tiles with a step of `step` along k. Within a range of k, all of them add one
    /// product after the other, or one matrix unit's product, whose shape is the adapter's.
    fn of(on_units: bool, k: i64, parts: u32, step: u32) -> Order {
        let part = (k as u64).div_ceil(parts.into()).next_multiple_of(step.into()) as i64;
        Order { on_units, part: part.min(k), padded: k % i64::from(step) != 0 }
    }

    /// The order of an algorithm, if it has a single one.
    pub fn of_algorithm(algorithm: Algorithm, k: i64) -> Option<Order> {
        match algorithm {
            Algorithm::Plain(Choice { tile, split_k }) => Some(Order::of(false, k, split_k, tile.k)),
            Algorithm::Matrix(MatrixChoice { tile, split_k }) => Some(Order::of(true, k, split_k, tile.k)),
            // The order of terms depends on the tile, and so does the gathering of their sums.
            Algorithm::SplitFloat(_) | Algorithm::RoundedFloat(_) => None,
            // The two launches have an order each.
            Algorithm::TwoLaunches(_) | Algorithm::MatrixTwoLaunches(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_k_are_an_order() {
        let order = |parts, step| Order::of(false, 1000, parts, step);
        assert_eq!(order(1, 8), order(1, 4));
        assert_ne!(order(1, 8), order(1, 16), "one adds zeros at the end");
        assert_ne!(order(1, 8), order(2, 8));
        assert_ne!(order(1, 8), Order::of(true, 1000, 1, 8));
        // 128 with the longer steps, 126 with the shorter ones.
        assert_ne!(Order::of(false, 1008, 8, 16), Order::of(false, 1008, 8, 2));
        assert_eq!(Order::of(false, 1024, 8, 16), Order::of(false, 1024, 8, 32));
    }
}
