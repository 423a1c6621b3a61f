//! Losses over margins between the scores of classes: one class an example (multi_margin_loss), or
//! several of them (multilabel_margin_loss).
//!
//! Inputs are seen as rows of classes. Forward, invocations share a row and sum its losses; the
//! rows' losses are then summed by a reduction.

pub mod multi;
pub mod multilabel;
mod problem;
