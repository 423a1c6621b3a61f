//! The API's name, for people and for types.

/// The name that people use.
pub(crate) const NAME: &str = "Vulkan";

/// Vulkan 1.2 and later, as the type that its parts share.
#[derive(Debug, Clone, Copy)]
pub struct Vulkan;
