//! Which dimensions a reduction folds, and the shape of its result.

use crate::check;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::tensor::{Dims, Tensor};

/// Reduced dimensions of a tensor, and whether the result keeps them with size 1.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Axes {
    mask: u64,
    keep: bool,
}

impl Axes {
    /// Every dimension.
    pub fn all(keep: bool) -> Axes {
        Axes { mask: u64::MAX, keep }
    }

    /// None: the result has the input's shape.
    pub fn none() -> Axes {
        Axes { mask: 0, keep: true }
    }

    /// PyTorch's `dim` argument for a tensor of this rank: none or an empty list mean every dimension.
    pub fn of(call: &Call, dims: Option<&[i64]>, rank: usize, keep: bool) -> Result<Axes> {
        match dims {
            None | Some([]) => Ok(Axes::all(keep)),
            Some(dims) => Axes::listed(call, dims, rank, keep),
        }
    }

    /// Exactly the dimensions listed; an empty list means none.
    pub fn listed(call: &Call, dims: &[i64], rank: usize, keep: bool) -> Result<Axes> {
        check!(rank <= 64, Runtime, "only tensors with up to 64 dims are supported");
        let mut mask = 0;
        for &d in dims {
            let d = call.wrap_dim(d, rank)?;
            check!(mask >> d & 1 == 0, Runtime, "dim {d} appears multiple times in the list of dims");
            mask |= 1 << d;
        }
        Ok(Axes { mask, keep })
    }

    /// Whether dimension `d` is folded.
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

    /// Elements folded into one result.
    pub fn extent(&self, input: &[i64]) -> i64 {
        input.iter().enumerate().filter(|&(d, _)| self.reduces(d)).map(|(_, &n)| n).product()
    }

    /// Of the input's sizes or strides those of the dimensions that are folded (or kept).
    pub(super) fn part(&self, input: &[i64], reduced: bool) -> Dims {
        let mut part = Dims::new();
        for (d, &x) in input.iter().enumerate() {
            if self.reduces(d) == reduced {
                part.push(x);
            }
        }
        part
    }

    /// The strides of a result without the folded dimensions.
    pub(super) fn kept_of_result(&self, out: &Tensor) -> Dims {
        if self.keep { self.part(&out.strides, false) } else { Dims::from_slice(&out.strides) }
    }
}
