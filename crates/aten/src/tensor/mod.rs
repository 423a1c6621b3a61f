//! PyTorch's rules for tensors that meet: type promotion, and memory that operands share.

pub mod casting;
pub mod overlap;
pub mod promote;
