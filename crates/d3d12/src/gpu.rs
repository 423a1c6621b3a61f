//! Direct3D 12 as the layer above uses it: adapters that open, and opened devices.

use std::path::Path;
use std::sync::Arc;

use dml_gpu::traits::*;
use dml_gpu::{
    AdapterInfo, Api, CacheFile, FileKind, MemoryClass, OpenOptions, PipelineOptions, ValidationMessage, folder,
};

use crate::adapter::{Adapter, adapters, unsupported_adapters};
use crate::capabilities::MAX_SEGMENT;
use crate::command::{Encoder, Recording};
use crate::device::DeviceShared;
use crate::direct3d::{D3d12, NAME};
use crate::error::Error;
use crate::pipeline::{Compiler, Pipeline};
use crate::queries::TimestampId;
use crate::recorder::Recorder;
use crate::segment::Segment;
use crate::timeline::Timeline;

impl Api for D3d12 {
    const NAME: &'static str = NAME;

    /// DXIL with the entry point `main`, its parameters and the number of workgroups as root
    /// constants `b0`, and all segments as the table `u0` of `space1`.
    type Code = [u8];
    type Adapter = Adapter;
    type Gpu = Gpu;
    type Segment = Segment;
    type Pipeline = Pipeline;
    type Encoder = Encoder;
    type Recording = Recording;
    type Recorder = Recorder;
    type Timeline = Timeline;
    type TimestampId = TimestampId;

    fn adapters() -> Result<&'static [Adapter], Error> {
        adapters()
    }

    fn unsupported_adapters() -> Vec<(String, String)> {
        unsupported_adapters()
    }

    fn validation_messages() -> Vec<ValidationMessage> {
        Vec::new()
    }
}

/// See [`dml_gpu::Gpu`].
#[derive(Clone)]
pub struct Gpu {
    device: Arc<DeviceShared>,
    compiler: Arc<Compiler>,
    /// The folder of the disk cache.
    folder: Option<Arc<Path>>,
}

impl dml_gpu::Adapter for Adapter {
    type Api = D3d12;

    fn info(&self) -> &AdapterInfo {
        &self.shared.info
    }

    fn open_with(&self, options: &OpenOptions) -> Result<Gpu, Error> {
        let device = DeviceShared::open(&self.shared, options.wait_limit())?;
        let folder = folder(options.cache_dir.clone()).map(Arc::from);
        Ok(Gpu { device, compiler: Arc::default(), folder })
    }
}

impl dml_gpu::Gpu for Gpu {
    type Api = D3d12;

    fn info(&self) -> &AdapterInfo {
        &self.device.adapter.info
    }

    fn memory_free(&self) -> u64 {
        self.device.adapter.memory_free()
    }

    fn largest_segment(&self) -> u64 {
        MAX_SEGMENT.min(self.device.adapter.info.memory_total)
    }

    fn allocate(&self, bytes: u64, class: MemoryClass) -> Result<Segment, Error> {
        if bytes > self.largest_segment() {
            return Err(Error::OutOfMemory { requested: bytes });
        }
        Segment::new(&self.device, bytes, class)
    }

    fn compile_with(
        &self,
        name: &str,
        code: &[u8],
        push_bytes: u32,
        options: &PipelineOptions,
    ) -> Result<Pipeline, Error> {
        self.compiler.compile(&self.device, name, code, push_bytes, options)
    }

    /// Only the driver and the system cache anything yet.
    fn save_pipeline_cache(&self) -> Result<(), Error> {
        self.device.check()
    }

    fn records_file(&self, version: u32) -> Option<CacheFile> {
        let kind = FileKind { name: "d3d12-notes", magic: *b"TDMLDN\x00\x01", version, most_bytes: 1 << 20 };
        self.folder.as_deref().map(|folder| CacheFile::new(self.device.adapter.file_identity(), folder, kind))
    }

    fn recorder(&self) -> Result<Recorder, Error> {
        Recorder::new(&self.device)
    }

    fn record<E: From<Error>>(
        &self,
        segments: impl Into<Arc<[Segment]>>,
        body: impl FnOnce(&mut Encoder, &[Segment]) -> Result<(), E>,
    ) -> Result<Recording, E> {
        Recording::new(&self.device, segments.into(), body)
    }

    fn is_lost(&self) -> bool {
        self.device.is_lost()
    }

    fn simulate_loss(&self) {
        self.device.mark_lost();
    }
}

impl std::fmt::Debug for Gpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gpu").field("name", &self.info().name).field("lost", &self.is_lost()).finish_non_exhaustive()
    }
}
