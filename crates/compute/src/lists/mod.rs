//! Lists of tensors: foreach operators, fused optimizers, loss scaling.

pub(crate) mod functions;
pub mod loss_scale;
pub mod multi_tensor;
pub mod norm;
pub mod optimizer;
pub mod row_steps;
