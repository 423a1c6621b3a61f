//! Elements selected by index tensors and masks.

pub mod arguments;
pub mod embedding;
pub mod embedding_bag;
pub mod embedding_bag_backward;
pub mod fill_value;
pub(crate) mod functions;
pub mod gather;
pub mod index;
pub mod index_select;
pub mod mask;
pub mod masked;
pub mod nonzero;
pub mod scatter;
