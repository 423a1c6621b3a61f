//! The Vulkan loader and the process' one instance, with the messages of the validation layer.

mod debug;
mod loader;

pub use debug::validation_errors;

pub(crate) use loader::Instance;
