//! Vulkan as the layer above uses it: adapters that open, and opened devices.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use dml_gpu::traits::*;
use dml_gpu::{
    AdapterInfo, Api, CacheFile, Executable, FileKind, MemoryClass, OpenOptions, PipelineOptions, ValidationMessage,
    folder,
};

use crate::adapter::{Adapter, adapters, answer_child_query, set_child_command, unsupported_adapters};
use crate::command::{Encoder, Recording};
use crate::device::DeviceShared;
use crate::error::Error;
use crate::instance::validation_messages;
use crate::memory::Segment;
use crate::pipeline::{Compiler, Pipeline};
use crate::query::TimestampId;
use crate::submit::{Recorder, Timeline};
use crate::vulkan::{NAME, Vulkan};

impl Api for Vulkan {
    const NAME: &'static str = NAME;

    /// SPIR-V with the entry point `main`, no descriptor sets, and its parameters as push
    /// constants.
    type Code = [u32];
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

    fn set_child_command(command: Vec<OsString>) {
        set_child_command(command);
    }

    fn answer_child_query(question: &str) -> Result<(), Error> {
        answer_child_query(question)
    }

    fn validation_messages() -> Vec<ValidationMessage> {
        validation_messages()
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
    type Api = Vulkan;

    fn info(&self) -> &AdapterInfo {
        &self.shared.info
    }

    /// The driver's side of a closed device is reused.
    fn open_with(&self, options: &OpenOptions) -> Result<Gpu, Error> {
        let device = DeviceShared::open(&self.shared, options.wait_limit())?;
        let folder = folder(options.cache_dir.clone()).map(Arc::from);
        let compiler = Arc::new(Compiler::new(&device, folder.as_deref()));
        Ok(Gpu { device, compiler, folder })
    }
}

impl dml_gpu::Gpu for Gpu {
    type Api = Vulkan;

    fn info(&self) -> &AdapterInfo {
        &self.device.adapter.info
    }

    fn memory_free(&self) -> u64 {
        self.device.adapter.memory_free()
    }

    fn largest_segment(&self) -> u64 {
        self.device.adapter.largest_segment()
    }

    fn allocate(&self, bytes: u64, class: MemoryClass) -> Result<Segment, Error> {
        Segment::new(&self.device, bytes, class)
    }

    fn compile_with(
        &self,
        name: &str,
        spirv: &[u32],
        push_bytes: u32,
        options: &PipelineOptions,
    ) -> Result<Pipeline, Error> {
        self.compiler.compile(name, spirv, push_bytes, options)
    }

    fn executables(&self, pipeline: &Pipeline) -> Result<Vec<Executable>, Error> {
        pipeline.executables()
    }

    fn save_pipeline_cache(&self) -> Result<(), Error> {
        self.compiler.save()
    }

    fn records_file(&self, version: u32) -> Option<CacheFile> {
        let kind = FileKind { name: "notes", magic: *b"TDMLNO\x00\x01", version, most_bytes: 1 << 20 };
        self.folder.as_deref().map(|folder| CacheFile::new(self.device.adapter.files.clone(), folder, kind))
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
