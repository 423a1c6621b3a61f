//! Elements found through index tensors and masks.

pub mod embedding;
pub mod embedding_bag;
pub mod gather;
pub mod index;
pub mod nonzero;
