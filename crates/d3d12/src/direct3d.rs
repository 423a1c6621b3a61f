//! The API's name, for people and for types.

/// What people call it.
pub(crate) const NAME: &str = "Direct3D 12";

/// Direct3D 12, as the type that its parts have in common.
#[derive(Debug, Clone, Copy)]
pub struct D3d12;
