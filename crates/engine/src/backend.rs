//! The graphics API that the engine runs on, and its types. Nothing else in the engine, or above it, names one: all of it is called
//! through the traits of [`dml_gpu`], and as the types are these, every call is a call of a known function.

use dml_gpu::{Api, Error, ValidationMessage};

/// The graphics API.
type Backend = dml_vulkan::Vulkan;

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
