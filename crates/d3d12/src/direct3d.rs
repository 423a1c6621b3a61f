//! The API's name, for people and for types.

/// The name that people use.
pub(crate) const NAME: &str = "Direct3D 12";

/// Direct3D 12, as the type that its parts share.
#[derive(Debug, Clone, Copy)]
pub struct D3d12;
