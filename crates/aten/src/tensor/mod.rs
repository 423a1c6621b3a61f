//! PyTorch's rules for the operands of an operator: type promotion, and overlapping memory.

pub mod casting;
pub mod overlap;
pub mod promote;
