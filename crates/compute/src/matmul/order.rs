//! In which order a way adds products up.

use crate::matmul::choice::Way;
use crate::matmul::matrix_select::MatrixChoice;
use crate::matmul::select::Choice;

/// What decides on the bits of a product's results, given its operands.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Order {
    on_units: bool,
    /// The length of the parts of k that are added up by themselves.
    part: i64,
    /// Zeros are added to the last one: they make a negative zero a positive one.
    padded: bool,
}

impl Order {
    /// That of tiles that step by `step` along k. Within a part all of them add one product after
    /// the other, or one matrix unit's product, whose shape is the adapter's.
    fn of(on_units: bool, k: i64, parts: u32, step: u32) -> Order {
        let part = (k as u64).div_ceil(parts.into()).next_multiple_of(step.into()) as i64;
        Order { on_units, part: part.min(k), padded: k % i64::from(step) != 0 }
    }

    /// That of a way, where it has one.
    pub fn of_way(way: Way, k: i64) -> Option<Order> {
        match way {
            Way::Plain(Choice { tile, split_k }) => Some(Order::of(false, k, split_k, tile.k)),
            Way::Matrix(MatrixChoice { tile, split_k }) => Some(Order::of(true, k, split_k, tile.k)),
            // Terms lie as their tile says, and their sums are gathered from it.
            Way::Split(_) | Way::Rounded(_) => None,
            // Of two orders.
            Way::Waves(_) | Way::MatrixWaves(_) => None,
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
        // 128 of the longer steps, 126 of the shorter.
        assert_ne!(Order::of(false, 1008, 8, 16), Order::of(false, 1008, 8, 2));
        assert_eq!(Order::of(false, 1024, 8, 16), Order::of(false, 1024, 8, 32));
    }
}
