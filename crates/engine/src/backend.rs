//! The graphics API that the engine runs on, and its types. This file is the only one in the
//! engine, and above it, that names an API. All calls go through the traits of [`dml_gpu`], and as
//! the types are fixed here, every call is static.

use dml_gpu::{Api, Error, ValidationMessage};
use std::ffi::OsString;

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

/// The usable adapters: discrete, integrated, virtual, software; within a kind by memory, largest
/// first.
///
/// # Errors
/// As [`Api::adapters`].
pub fn adapters() -> Result<&'static [Adapter], Error> {
    Backend::adapters()
}

/// The adapters that [`adapters`] leaves out: name and reason.
pub fn unsupported_adapters() -> Vec<(String, String)> {
    Backend::unsupported_adapters()
}

/// The messages of the validation layer in this process so far, by kind; always empty unless
/// `TORCH_DML_VALIDATION=1` was set before the first use.
pub fn validation_messages() -> Vec<ValidationMessage> {
    Backend::validation_messages()
}

/// As [`Api::set_child_command`].
pub fn set_child_command(command: Vec<OsString>) {
    Backend::set_child_command(command);
}

/// As [`Api::answer_child_query`].
///
/// # Errors
/// As [`Api::answer_child_query`].
pub fn answer_child_query(question: &str) -> Result<(), Error> {
    Backend::answer_child_query(question)
}

/// A kernel's SPIR-V in the form that the graphics API takes.
///
/// # Errors
/// [`Error::Unsupported`] if the API takes no SPIR-V: Direct3D takes DXIL, and nothing here
/// compiles the kernels' HLSL to DXIL yet.
pub(crate) fn code(spirv: &[u32]) -> Result<&<Backend as Api>::Code, Error> {
    #[cfg(not(all(windows, feature = "direct3d12")))]
    return Ok(spirv);
    #[cfg(all(windows, feature = "direct3d12"))]
    return Err(Error::Unsupported {
        adapter: Backend::NAME.to_owned(),
        what: format!("{} words of SPIR-V", spirv.len()),
    });
}
