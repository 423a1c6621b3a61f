//! The dimensions of a reduction, and the shape of its result.

use crate::view::{Dims, View};

/// Reduced dimensions of a tensor, and whether the result keeps them with size 1.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Axes {
    /// Bitmask: bit `d` stands for dimension `d`.
    pub mask: u64,
    /// Reduced dimensions are kept, with size 1.
    pub keep: bool,
}

impl Axes {
    /// Every dimension.
    pub fn all(keep: bool) -> Axes {
        Axes { mask: u64::MAX, keep }
    }

    /// No dimension: the result has the input's shape.
    pub fn none() -> Axes {
        Axes { mask: 0, keep: true }
    }

    /// Exactly the dimensions listed, each once; negative ones count from the end of `rank`, which
    /// is at most 64.
    pub fn of_dims(dims: &[i64], rank: usize, keep: bool) -> Axes {
        let wrapped = |d: i64| if d < 0 { d + rank as i64 } else { d };
        Axes { mask: dims.iter().fold(0, |mask, &d| mask | 1 << wrapped(d)), keep }
    }

    /// Whether dimension `d` is reduced.
    pub fn reduces(&self, d: usize) -> bool {
        self.mask >> d & 1 == 1
    }

    /// Shape of the result.
    pub fn sizes(&self, input: &[i64]) -> Dims {
        let mut sizes = Dims::new();
        for (d, &n) in input.iter().enumerate() {
            if !self.reduces(d) {
                sizes.push(n);
            } else if self.keep {
                sizes.push(1);
            }
        }
        sizes
    }

    /// Number of elements that are reduced to one result.
    pub fn extent(&self, input: &[i64]) -> i64 {
        input.iter().enumerate().filter(|&(d, _)| self.reduces(d)).map(|(_, &n)| n).product()
    }

    /// The input's sizes or strides of the reduced (or of the other) dimensions.
    pub fn part(&self, input: &[i64], reduced: bool) -> Dims {
        let mut part = Dims::new();
        for (d, &x) in input.iter().enumerate() {
            if self.reduces(d) == reduced {
                part.push(x);
            }
        }
        part
    }

    /// The strides of a result without the reduced dimensions.
    pub fn kept_strides(&self, out: &View) -> Dims {
        if self.keep { self.part(&out.strides, false) } else { Dims::from_slice(&out.strides) }
    }
}
