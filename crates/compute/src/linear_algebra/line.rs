//! Numbers after one another in shared memory, which an invocation takes many of at once.
//!
//! float32 moves four at a time: where every invocation reads a whole row, what a step takes is how
//! many accesses it has.

use crate::linear_algebra::element::{Element, SharedElements};
use dml_kernel::{Builder, DType, Shared, Value};

/// The numbers.
#[derive(Copy, Clone)]
pub enum Line<'b> {
    /// Vectors of four.
    Fours(Shared<'b>),
    /// One each.
    Single(SharedElements<'b>),
}

impl<'b> Line<'b> {
    /// Of `len` numbers, a multiple of four, uninitialised.
    pub fn new(b: &'b Builder, dtype: DType, len: u32) -> Line<'b> {
        match dtype {
            DType::F32 => Line::Fours(b.shared(dtype.compute(), 4, len / 4)),
            _ => Line::Single(SharedElements::shared(b, dtype, len)),
        }
    }

    /// Writes the number at a place.
    pub fn store(self, at: Value<'b>, element: Element<'b>) {
        match self {
            Line::Fours(fours) => fours.store_lane(at / 4, at % 4, element.real()),
            Line::Single(elements) => elements.store(at, element),
        }
    }

    /// Writes numbers, a multiple of four, from a place on that is one.
    pub fn store_all(self, first: Value<'b>, row: &[Element<'b>]) {
        match self {
            Line::Fours(fours) => {
                for (four, i) in row.chunks(4).zip(0..) {
                    let lanes: Vec<Value> = four.iter().map(|element| element.real()).collect();
                    fours.store(first / 4 + i, first.builder().vector(&lanes));
                }
            }
            Line::Single(elements) => row.iter().zip(0..).for_each(|(&element, i)| elements.store(first + i, element)),
        }
    }

    /// `count` numbers, a multiple of four, from a place on that is one.
    pub fn load(self, first: Value<'b>, count: u32) -> Vec<Element<'b>> {
        match self {
            Line::Fours(fours) => {
                let loaded = (0..count / 4).map(|i| fours.load(first / 4 + i));
                loaded.flat_map(|four| (0..4).map(move |i| Element::Real(four.lane(i)))).collect()
            }
            Line::Single(elements) => (0..count).map(|i| elements.load(first + i)).collect(),
        }
    }
}
