//! The API's name, for people and for types.

/// What people call it.
pub(crate) const NAME: &str = "Vulkan";

/// Vulkan 1.2 and later, as the type that its parts have in common.
#[derive(Debug, Clone, Copy)]
pub struct Vulkan;
