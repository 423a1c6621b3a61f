//! Command lists, and recording into them.

use std::sync::Arc;

use dml_gpu::traits::*;
use windows::Win32::Graphics::Direct3D12::*;
use windows::core::Interface;

use crate::device::DeviceShared;
use crate::direct3d::D3d12;
use crate::error::{Error, invalid};
use crate::pipeline::{CONSTANTS, Pipeline, TABLE};
use crate::segment::Segment;

/// The kind of commands in a list: one list must not use buffers for both kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Kernels,
    Copies,
}

/// The use of a buffer by the copies of a list: only one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Source,
    Destination,
}

/// A command list, its memory, and the objects that must live until it has run.
pub(crate) struct CommandList {
    raw: ID3D12GraphicsCommandList,
    allocator: ID3D12CommandAllocator,
    pipelines: Vec<Pipeline>,
}

impl CommandList {
    /// A new list, which is being recorded.
    pub(crate) fn new(device: &DeviceShared) -> Result<Self, Error> {
        const TYPE: D3D12_COMMAND_LIST_TYPE = D3D12_COMMAND_LIST_TYPE_COMPUTE;
        // SAFETY: the device is valid.
        let allocator: ID3D12CommandAllocator = unsafe { device.raw.CreateCommandAllocator(TYPE) }
            .map_err(|e| device.error("ID3D12Device::CreateCommandAllocator", &e))?;
        // SAFETY: as above; the allocator is of this device and of the list's type.
        let raw = unsafe { device.raw.CreateCommandList(0, TYPE, &allocator, None) }
            .map_err(|e| device.error("ID3D12Device::CreateCommandList", &e))?;
        Ok(Self { raw, allocator, pipelines: Vec::new() })
    }

    /// Begins the list again. It has run, or was never submitted, and is closed.
    pub(crate) fn reset(&mut self, device: &DeviceShared) -> Result<(), Error> {
        self.pipelines.clear();
        // SAFETY: by the caller's promise no work uses the allocator's memory, and the list is
        // closed.
        unsafe { self.allocator.Reset().and_then(|()| self.raw.Reset(&self.allocator, None)) }
            .map_err(|e| device.error("ID3D12GraphicsCommandList::Reset", &e))
    }

    pub(crate) fn close(&self, device: &DeviceShared) -> Result<(), Error> {
        // SAFETY: the list is being recorded.
        unsafe { self.raw.Close() }.map_err(|e| device.error("ID3D12GraphicsCommandList::Close", &e))
    }

    /// The list as the queue takes it.
    pub(crate) fn executable(&self) -> Result<ID3D12CommandList, Error> {
        self.raw.cast().map_err(|e| crate::error::from_hresult("ID3D12GraphicsCommandList::QueryInterface", &e))
    }
}

/// Records commands into lists: of a [`Recorder`](crate::Recorder)'s next submission, or of a
/// [`Recording`].
pub struct Encoder {
    device: Arc<DeviceShared>,
    /// In order. All but the last are closed.
    lists: Vec<CommandList>,
    /// Lists to reuse.
    free: Vec<CommandList>,
    /// The kind of the last list.
    kind: Option<Kind>,
    /// The pipeline that is bound in the last list.
    bound: Option<Pipeline>,
    /// The buffers that the copies of the last list use, by address.
    roles: Vec<(u64, Role)>,
    /// A barrier was requested, and no command has followed.
    barrier: bool,
    commands: usize,
}

impl Encoder {
    pub(crate) fn new(device: &Arc<DeviceShared>) -> Self {
        Self {
            device: Arc::clone(device),
            lists: Vec::new(),
            free: Vec::new(),
            kind: None,
            bound: None,
            roles: Vec::new(),
            barrier: false,
            commands: 0,
        }
    }

    /// Reuses a list that has run, or was never submitted, and is closed.
    pub(crate) fn give(&mut self, list: CommandList) {
        self.free.push(list);
    }

    /// The number of commands, without barriers and timestamps.
    pub(crate) fn recorded(&self) -> usize {
        self.commands
    }

    /// Ends the recording and gives the lists to execute, each by a call of its own. The encoder is
    /// then empty, also after an error.
    pub(crate) fn take(&mut self) -> Result<Vec<CommandList>, Error> {
        let lists = std::mem::take(&mut self.lists);
        (self.kind, self.bound, self.barrier, self.commands) = (None, None, false, 0);
        if let Some(last) = lists.last() {
            last.close(&self.device)?;
        }
        Ok(lists)
    }

    /// The list that is being recorded, of any kind; a new one if there is none.
    pub(crate) fn any_list(&mut self) -> Result<&ID3D12GraphicsCommandList, Error> {
        self.begin(self.kind.unwrap_or(Kind::Kernels))?;
        self.list()
    }

    /// The list that is being recorded.
    fn list(&self) -> Result<&ID3D12GraphicsCommandList, Error> {
        self.lists.last().map(|list| &list.raw).ok_or(Error::DeviceLost)
    }

    /// Ensures that the last list is for commands of this kind.
    fn begin(&mut self, kind: Kind) -> Result<(), Error> {
        if self.kind == Some(kind) {
            return Ok(());
        }
        let next = match self.free.pop() {
            Some(mut list) => {
                list.reset(&self.device)?;
                list
            }
            None => CommandList::new(&self.device)?,
        };
        if let Some(last) = self.lists.last() {
            last.close(&self.device)?;
        }
        if kind == Kind::Kernels {
            self.device.table.set_heap(&next.raw);
        }
        self.lists.push(next);
        // The commands of earlier lists are done when this one begins.
        (self.kind, self.bound, self.barrier) = (Some(kind), None, false);
        self.roles.clear();
        Ok(())
    }

    /// Ensures that the last list is for copies, and that it may use these segments in one more
    /// copy.
    fn begin_copy(&mut self, src: u64, dst: u64) -> Result<(), Error> {
        let clashes =
            |&(of, role): &(u64, Role)| of == src && role == Role::Destination || of == dst && role == Role::Source;
        if self.kind == Some(Kind::Copies) && (self.barrier || self.roles.iter().any(clashes)) {
            self.kind = None;
        }
        self.begin(Kind::Copies)?;
        for used in [(src, Role::Source), (dst, Role::Destination)] {
            if !self.roles.contains(&used) {
                self.roles.push(used);
            }
        }
        Ok(())
    }

    fn check_dispatch(&self, pipeline: &Pipeline, push: &[u8], groups: [u32; 3]) -> Result<(), Error> {
        const CALL: &str = "Encoder::dispatch";
        self.device.check()?;
        let (name, takes) = (pipeline.name(), pipeline.push_bytes());
        let most = self.device.adapter.info.capabilities.max_groups;
        if push.len() != takes as usize {
            return Err(invalid(CALL, format!("kernel {name} takes {takes} bytes of parameters, not {}", push.len())));
        }
        if (0..3).any(|d| groups[d] > most[d]) {
            let what = format!("kernel {name}: {groups:?} workgroups, and at most {most:?} are possible");
            return Err(invalid(CALL, what));
        }
        if !pipeline.is_of(&self.device) {
            return Err(invalid(CALL, format!("kernel {name} is another device's")));
        }
        Ok(())
    }

    fn check_range(&self, which: &str, segment: &Segment, offset: u64, bytes: u64) -> Result<(), Error> {
        const CALL: &str = "Encoder::copy";
        if !segment.is_of(&self.device) {
            return Err(invalid(CALL, format!("the {which} is another device's")));
        }
        let all = segment.bytes();
        if offset.checked_add(bytes).is_none_or(|end| end > all) {
            return Err(invalid(CALL, format!("{bytes} bytes at offset {offset} of a {which} of {all} bytes")));
        }
        Ok(())
    }
}

impl dml_gpu::Commands for Encoder {
    type Api = D3d12;

    fn dispatch(&mut self, pipeline: &Pipeline, push: &[u8], groups: [u32; 3]) -> Result<(), Error> {
        self.check_dispatch(pipeline, push, groups)?;
        if groups.contains(&0) {
            return Ok(());
        }
        self.begin(Kind::Kernels)?;
        let list = self.list()?;
        if self.barrier {
            // SAFETY: the list is being recorded. A barrier without a resource applies to all
            // resources.
            unsafe { list.ResourceBarrier(&[unordered_access()]) };
        }
        let same_root = self.bound.as_ref().is_some_and(|bound| bound.root() == pipeline.root());
        let same = self.bound.as_ref().is_some_and(|bound| bound.raw() == pipeline.raw());
        let words = pipeline.push_bytes() / 4;
        // SAFETY: the list is being recorded. Pipeline and root signature belong to this device,
        // and `pipelines` keeps them until the commands have run; the number of constants is the
        // root signature's. The caller who passes addresses ensures that the kernel's accesses are
        // valid.
        unsafe {
            if !same_root {
                list.SetComputeRootSignature(pipeline.root());
                self.device.table.bind(list, TABLE);
            }
            if !same {
                list.SetPipelineState(pipeline.raw());
            }
            if words > 0 {
                list.SetComputeRoot32BitConstants(CONSTANTS, words, push.as_ptr().cast(), 0);
            }
            list.SetComputeRoot32BitConstants(CONSTANTS, groups.len() as u32, groups.as_ptr().cast(), words);
            list.Dispatch(groups[0], groups[1], groups[2]);
        }
        self.barrier = false;
        self.commands += 1;
        if !same {
            self.bound = Some(pipeline.clone());
            if let Some(list) = self.lists.last_mut() {
                list.pipelines.push(pipeline.clone());
            }
        }
        Ok(())
    }

    fn dispatch_from(
        &mut self,
        pipeline: &Pipeline,
        push: &[u8],
        base: [u32; 3],
        groups: [u32; 3],
    ) -> Result<(), Error> {
        if base == [0; 3] {
            return self.dispatch(pipeline, push, groups);
        }
        // Direct3D has no base: kernels would have to add it.
        let adapter = self.device.adapter.info.name.clone();
        Err(Error::Unsupported { adapter, what: format!("a part of kernel {}", pipeline.name()) })
    }

    fn barrier(&mut self) {
        self.barrier = true;
    }

    fn copy(
        &mut self,
        src: &Segment,
        src_offset: u64,
        dst: &Segment,
        dst_offset: u64,
        bytes: u64,
    ) -> Result<(), Error> {
        self.device.check()?;
        self.check_range("source", src, src_offset, bytes)?;
        self.check_range("destination", dst, dst_offset, bytes)?;
        let same = src.address() == dst.address();
        if same && src_offset.abs_diff(dst_offset) < bytes {
            let what = format!("{bytes} bytes from {src_offset} overlap those from {dst_offset}");
            return Err(invalid("Encoder::copy", what));
        }
        if same {
            // A buffer is either the source or the destination of a list's copies.
            return Err(Error::Unsupported {
                adapter: self.device.adapter.info.name.clone(),
                what: "a copy inside one segment".to_owned(),
            });
        }
        if bytes == 0 {
            return Ok(());
        }
        self.begin_copy(src.address(), dst.address())?;
        let list = self.list()?;
        // SAFETY: the list is being recorded; both buffers belong to this device, and the ranges
        // are inside them. The caller keeps the segments alive until the copy is done.
        unsafe { list.CopyBufferRegion(&dst.buffer, dst_offset, &src.buffer, src_offset, bytes) };
        self.commands += 1;
        Ok(())
    }
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder").field("recorded", &self.commands).finish_non_exhaustive()
    }
}

/// Results of earlier kernels are visible to later ones.
fn unordered_access() -> D3D12_RESOURCE_BARRIER {
    D3D12_RESOURCE_BARRIER {
        Type: D3D12_RESOURCE_BARRIER_TYPE_UAV,
        Flags: D3D12_RESOURCE_BARRIER_FLAG_NONE,
        Anonymous: D3D12_RESOURCE_BARRIER_0 { UAV: Default::default() },
    }
}

/// See [`dml_gpu::Api::Recording`].
#[derive(Clone)]
pub struct Recording {
    inner: Arc<RecordingInner>,
}

struct RecordingInner {
    device: Arc<DeviceShared>,
    lists: Vec<CommandList>,
    commands: usize,
    /// The objects that the commands use.
    _segments: Arc<[Segment]>,
}

impl Recording {
    /// See [`dml_gpu::Gpu::record`].
    pub(crate) fn new<E: From<Error>>(
        device: &Arc<DeviceShared>,
        segments: Arc<[Segment]>,
        body: impl FnOnce(&mut Encoder, &[Segment]) -> Result<(), E>,
    ) -> Result<Self, E> {
        device.check()?;
        let mut encoder = Encoder::new(device);
        body(&mut encoder, &segments)?;
        let commands = encoder.recorded();
        let lists = encoder.take()?;
        let inner = RecordingInner { device: Arc::clone(device), lists, commands, _segments: segments };
        Ok(Self { inner: Arc::new(inner) })
    }

    pub(crate) fn lists(&self) -> &[CommandList] {
        &self.inner.lists
    }

    /// The number of commands, without barriers.
    pub(crate) fn commands(&self) -> usize {
        self.inner.commands
    }

    /// Whether it was recorded for this device.
    pub(crate) fn is_of(&self, device: &Arc<DeviceShared>) -> bool {
        Arc::ptr_eq(&self.inner.device, device)
    }
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recording").field("commands", &self.inner.commands).finish_non_exhaustive()
    }
}
