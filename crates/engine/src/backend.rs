//! The graphics API that the engine runs on, and its types. Nothing else in the engine, or above it, names one: all of it is called
//! through the traits of [`dml_gpu`], and as the types are these, every call is a call of a known function.

use dml_gpu::{Api, Error, ValidationMessage};

/// The graphics API.
#[cfg(not(all(windows, feature = "direct3d12")))]
type Backend = dml_vulkan::Vulkan;
#[cfg(all(windows, feature = "direct3d12"))]
type Backend = dml_d3d12::D3d12;

/// A GPU as one driver lists it.
pub type Adapter = <Backend as Api>::Adapter;
pub(crate) type Gpu = <Backend as Api>::Gpu;
pub(crate) type Pipeline = <Backend as Api>::Pipeline;
pub(crate) type Recorder = <Backend as Api>::Recorder;
pub(crate) type Recording = <Backend as Api>::Recording;
pub(crate) type Segment = <Backend as Api>::Segment;
pub(crate) type Timeline = <Backend as Api>::Timeline;
pub(crate) type TimestampId = <Backend as Api>::TimestampId;

/// The usable adapters: discrete, integrated, virtual, software; inside a kind by memory, biggest first.
///
/// # Errors
/// As [`Api::adapters`].
pub fn adapters() -> Result<&'static [Adapter], Error> {
    Backend::adapters()
}

/// The adapters that are left out of [`adapters`]: name, and why.
pub fn unsupported_adapters() -> Vec<(String, String)> {
    Backend::unsupported_adapters()
}

/// What the validation layer reported in this process so far, by kind; always empty unless `TORCH_DML_VALIDATION=1` was set before
/// the first use.
pub fn validation_messages() -> Vec<ValidationMessage> {
    Backend::validation_messages()
}

/// A kernel's SPIR-V as the graphics API takes kernels.
///
/// # Errors
/// [`Error::Unsupported`] where it takes none: Direct3D takes DXIL, which nothing here makes of the kernels' HLSL yet.
pub(crate) fn code(spirv: &[u32]) -> Result<&<Backend as Api>::Code, Error> {
    #[cfg(not(all(windows, feature = "direct3d12")))]
    return Ok(spirv);
    #[cfg(all(windows, feature = "direct3d12"))]
    return Err(Error::Unsupported {
        adapter: Backend::NAME.to_owned(),
        what: format!("{} words of SPIR-V", spirv.len()),
    });
}
