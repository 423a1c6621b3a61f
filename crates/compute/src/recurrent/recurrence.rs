//! The recurrence of one layer in one direction, and its gradient. What does not depend on other
//! steps is left to products over all of them: that of the input before it, and those of the
//! gradients by input and weights after.

use crate::recurrent::plan::Loop;
use crate::recurrent::steps::Steps;

/// The ranges of steps that launches take, of loops.
pub fn launches(steps: &Steps, found: &Loop) -> impl DoubleEndedIterator<Item = (usize, usize)> + use<> {
    let (all, most) = (steps.count(), found.steps);
    (0..all.div_ceil(most)).map(move |i| (i * most, most.min(all - i * most)))
}

#[cfg(test)]
mod tests {
    use crate::primitives::kernel::KernelSpec;
    use crate::primitives::validate::accepted;
    use crate::recurrent::backward::Backward;
    use crate::recurrent::forward::Forward;
    use crate::recurrent::gates::Cell;
    use crate::recurrent::row_product::Tile;
    use crate::recurrent::units::Recurrence;
    use dml_kernel::{DType, ScalarType};

    #[test]
    fn kernels_are_valid() {
        for (cell, dtype, index, hidden, held) in [
            (Cell::Lstm, DType::F32, ScalarType::U32, 32, 1),
            (Cell::Gru, DType::BF16, ScalarType::U64, 7, 0),
            (Cell::Tanh, DType::F64, ScalarType::U32, 5, 4),
            (Cell::Relu, DType::F16, ScalarType::U32, 300, 0),
        ] {
            let of = Recurrence { cell, dtype, index, hidden, tile: None };
            let n = hidden * cell.gates();
            let width = if n % 4 == 0 { 4 } else { 1 };
            let tile = |k, n| Some(Tile { threads: 96, rows: 2, k, n, width, held });
            for (forth, back) in [(None, None), (tile(hidden, n), tile(n, hidden).filter(|_| hidden % width == 0))] {
                for biased in [false, true] {
                    let of = Recurrence { tile: forth, ..of };
                    accepted(&Forward { of, biased, keeps: biased && cell.kept() > 0 }.build());
                }
                accepted(&Backward { of: Recurrence { tile: back, ..of } }.build());
            }
        }
    }
}
