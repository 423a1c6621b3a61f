//! Lists of tensors: foreach operators, fused optimizers, loss scaling.

pub mod arithmetic;
pub mod checks;
pub mod copy;
pub mod foreach;
pub mod loss_scale;
pub mod norm;
pub mod optimizer;
pub mod power;
pub mod unary;

use crate::operator::Operator;

/// The overloads of these families.
pub const OPERATORS: &[&[Operator]] = &[
    arithmetic::OPERATORS,
    copy::OPERATORS,
    loss_scale::OPERATORS,
    norm::OPERATORS,
    optimizer::OPERATORS,
    power::OPERATORS,
    unary::OPERATORS,
];
