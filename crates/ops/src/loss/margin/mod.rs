//! Losses over margins between the scores of classes: one class an example (multi_margin_loss), or several of them
//! (multilabel_margin_loss).
//!
//! Inputs are seen as rows of classes. Forward, invocations share a row and sum its losses; the rows' losses are then
//! summed by a reduction.

pub mod multi;
pub mod multilabel;

use super::Reduce;
use crate::check;
use crate::movement::copy::device_copy;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::fault;
use crate::primitives::launch::Launcher;
use crate::reduction::sum::{mean, total};
use crate::tensor::layout::index_type;
use crate::tensor::promote::accumulator;
use crate::tensor::{Dims, Tensor};
use dml_kernel::{DType, Scalar};

/// Rows of classes and their targets, contiguous.
struct Problem {
    input: Tensor,
    target: Tensor,
    weight: Option<Tensor>,
    reduction: Reduce,
    rows: i64,
    classes: i64,
    /// Shape of the unreduced losses.
    sizes: Dims,
}

impl Problem {
    fn index(&self) -> Scalar {
        index_type(self.input.numel())
    }

    /// What the loss (or gradient) of an element is divided by.
    fn divisor(&self) -> f64 {
        let rows = if self.reduction == Reduce::Mean { self.rows.max(1) } else { 1 };
        (rows * self.classes) as f64
    }

    /// Reduces the rows' losses, which are in the accumulator's dtype.
    fn finish(&self, call: &Call, losses: &Tensor, out: &Tensor) -> Result<()> {
        match self.reduction {
            Reduce::None => device_copy(call, &losses.as_strided(&out.sizes, &[1][..out.dim()], 0), out),
            Reduce::Mean => mean(call, losses, out),
            Reduce::Sum => total(call, losses, out),
        }
    }

    fn result_sizes(&self) -> Dims {
        if self.reduction == Reduce::None { self.sizes.clone() } else { Dims::new() }
    }

    /// Checks that a gradient of the loss is one number, or one a row.
    fn check_gradient(&self, grad: &Tensor) -> Result<()> {
        let wanted = if self.reduction == Reduce::None { self.rows } else { 1 };
        check!(
            grad.numel() == wanted,
            Runtime,
            "Expected a gradient of the loss with {wanted} elements, but got {:?}",
            grad.sizes.as_slice()
        );
        Ok(())
    }
}

/// `[classes]` or `[batch, classes]`, where only the batch may be empty.
fn rows_of(input: &Tensor) -> Result<[i64; 2]> {
    let shape = match *input.sizes {
        [] => Some([1, 1]),
        [classes] => Some([1, classes]),
        [batch, classes] => Some([batch, classes]),
        _ => None,
    };
    match shape {
        Some([rows, classes]) if classes > 0 => Ok([rows, classes]),
        _ => {
            check!(
                false,
                Runtime,
                "Expected non-empty vector or matrix with optional 0-dim batch size, but got: {:?}",
                input.sizes.as_slice()
            );
            Ok([0, 0])
        }
    }
}

fn check_dtypes(name: &str, input: &Tensor, target: &Tensor) -> Result<()> {
    check!(input.dtype.is_float(), NotImplemented, "\"{name}\" not implemented for '{}'", input.dtype);
    check!(target.dtype == DType::I64, Runtime, "expected scalar type Long but found {}", target.dtype);
    Ok(())
}

/// Passes the fault block, the operator's number and float parameters.
fn pass<'c, 'a>(launcher: Launcher<'c, 'a>, call: &Call, p: &Problem, numbers: &[f64]) -> Launcher<'c, 'a> {
    let mut launcher = launcher.fault().u32(fault::operator(call.name));
    for &x in numbers {
        launcher = launcher.number(accumulator(p.input.dtype), Number::Double(x));
    }
    launcher
}

fn key(p: &Problem, flags: u32) -> [u32; 6] {
    let wide = u32::from(p.index() == Scalar::U64);
    let reduced = u32::from(p.reduction != Reduce::None);
    [p.input.dtype as u32, flags | wide << 8 | reduced << 9, u32::from(p.weight.is_some()), 0, 0, 0]
}
