//! The Vulkan loader and the process' one instance, with the messages of the validation layer.

// Where libraries share one space of symbols, and the flag is known.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod drivers;
mod loader;
mod validation;

pub use validation::{validation_errors, validation_messages};

pub(crate) use loader::Instance;
