//! Losses over margins between the scores of classes: one target class for each example
//! (multi_margin_loss), or several (multilabel_margin_loss).
//!
//! Inputs are viewed as rows of classes. Forward, several invocations share a row and sum its
//! losses; a reduction then sums the rows' losses.

pub mod multi;
pub mod multilabel;
mod problem;
