//! Recurrent networks.

pub mod cells;
