//! An array in shared memory from which an invocation reads many consecutive numbers at a time.
//!
//! float32 numbers are accessed four at a time: where every invocation reads a whole row, the
//! number of accesses determines a step's time.

use crate::linear_algebra::element::{Element, SharedElements};
use dml_kernel::{Builder, DType, Shared, Value};

/// The array.
#[derive(Copy, Clone)]
pub enum SharedVectors<'b> {
    /// Vectors of four numbers.
    VectorsOfFour(Shared<'b>),
    /// Single numbers.
    Scalars(SharedElements<'b>),
}

impl<'b> SharedVectors<'b> {
    /// An array of `len` numbers, a multiple of four, uninitialised.
    pub fn new(b: &'b Builder, dtype: DType, len: u32) -> SharedVectors<'b> {
        match dtype {
            DType::F32 => SharedVectors::VectorsOfFour(b.shared(dtype.compute(), 4, len / 4)),
            _ => SharedVectors::Scalars(SharedElements::shared(b, dtype, len)),
        }
    }

    /// Stores the number at index `at`.
    pub fn store(self, at: Value<'b>, element: Element<'b>) {
        match self {
            SharedVectors::VectorsOfFour(fours) => fours.store_lane(at / 4, at % 4, element.real()),
            SharedVectors::Scalars(elements) => elements.store(at, element),
        }
    }

    /// Stores numbers, a multiple of four, from index `first` on, which is a multiple of four.
    pub fn store_all(self, first: Value<'b>, row: &[Element<'b>]) {
        match self {
            SharedVectors::VectorsOfFour(fours) => {
                for (four, i) in row.chunks(4).zip(0..) {
                    let lanes: Vec<Value> = four.iter().map(|element| element.real()).collect();
                    fours.store(first / 4 + i, first.builder().vector(&lanes));
                }
            }
            SharedVectors::Scalars(elements) => {
                row.iter().zip(0..).for_each(|(&element, i)| elements.store(first + i, element))
            }
        }
    }

    /// Loads `count` numbers, a multiple of four, from index `first` on, which is a multiple of
    /// four.
    pub fn load(self, first: Value<'b>, count: u32) -> Vec<Element<'b>> {
        match self {
            SharedVectors::VectorsOfFour(fours) => {
                let loaded = (0..count / 4).map(|i| fours.load(first / 4 + i));
                loaded.flat_map(|four| (0..4).map(move |i| Element::Real(four.lane(i)))).collect()
            }
            SharedVectors::Scalars(elements) => (0..count).map(|i| elements.load(first + i)).collect(),
        }
    }
}
