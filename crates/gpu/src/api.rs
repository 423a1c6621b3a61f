//! A graphics API as a family of types.

use std::fmt::Debug;

use crate::command::{Commands, Recorder};
use crate::device::{Adapter, Gpu};
use crate::error::Error;
use crate::memory::Segment;
use crate::timeline::Timeline;
use crate::validation::ValidationMessage;

/// A graphics API, by the types that implement its parts. The engine names one, once, and calls all of it through these
/// traits: the compiler knows every function that is called, so a trait costs nothing.
pub trait Api: Copy + Debug + Send + Sync + 'static {
    /// What people call it.
    const NAME: &'static str;

    /// A kernel as a driver takes it: words of SPIR-V, bytes of DXIL.
    type Code: ?Sized;
    /// See [`Adapter`].
    type Adapter: Adapter<Api = Self>;
    /// See [`Gpu`].
    type Gpu: Gpu<Api = Self>;
    /// See [`Segment`].
    type Segment: Segment;
    /// A compiled kernel ([`Gpu::compile`]). A clone is another handle of the same kernel, which lives until the GPU is done
    /// with it, whoever drops it.
    type Pipeline: Clone + Debug + Send + Sync + 'static;
    /// What [`Gpu::record`] records with.
    type Encoder: Commands<Api = Self>;
    /// Commands that [`Recorder::execute`] runs as often as wanted; made by [`Gpu::record`]. A clone is another handle of the
    /// same commands, which live until the GPU is done with them, whoever drops them.
    type Recording: Clone + Debug + Send + Sync + 'static;
    /// See [`Recorder`].
    type Recorder: Recorder<Api = Self>;
    /// See [`Timeline`].
    type Timeline: Timeline;
    /// A timestamp that was recorded ([`Recorder::timestamp`]). Its place is used again when the last clone is dropped.
    type TimestampId: Clone + Debug + Send + Sync + 'static;

    /// The usable adapters, in the order of [`AdapterInfo::listing_order`](crate::AdapterInfo::listing_order). They are found once a process. A GPU that two
    /// drivers list is listed twice.
    ///
    /// # Errors
    /// [`Error::NoLoader`], [`Error::NoAdapter`], [`Error::NoValidation`], or what the driver said; [`Error::Invalid`] for a
    /// `TORCH_DML_PROFILE` that there is not.
    fn adapters() -> Result<&'static [Self::Adapter], Error>;

    /// The adapters that are left out of [`adapters`](Self::adapters): name, and why.
    fn unsupported_adapters() -> Vec<(String, String)>;

    /// What the API's validation layer reported in this process so far, by kind. Always empty unless `TORCH_DML_VALIDATION=1`
    /// was set before the first use.
    fn validation_messages() -> Vec<ValidationMessage>;
}
