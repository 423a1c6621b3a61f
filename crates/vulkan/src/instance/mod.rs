//! The Vulkan loader and the process' one instance, with the messages of the validation layer.

mod loader;
mod validation;

pub use validation::{validation_errors, validation_messages};

pub(crate) use loader::Instance;
