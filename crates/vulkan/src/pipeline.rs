//! Compute pipelines.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ash::vk;

use crate::error::Error;
use crate::gpu::GpuCore;

/// What a pipeline may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PipelineOptions {
    /// Invocations of a subgroup; a power of two within the adapter's
    /// [`subgroup_size_min`](crate::Capabilities::subgroup_size_min) and
    /// [`subgroup_size_max`](crate::Capabilities::subgroup_size_max). `None` takes
    /// [`subgroup_size`](crate::Capabilities::subgroup_size).
    pub subgroup_size: Option<u32>,
    /// Every subgroup is full. The workgroup's x size must then be a multiple of the subgroup size.
    /// Kernels with matrix units need it on adapters with several subgroup sizes; ignored where
    /// there is only one.
    pub full_subgroups: bool,
}

/// A compiled kernel. A clone is another handle of the same kernel.
#[derive(Clone)]
pub struct Pipeline {
    inner: Arc<Inner>,
}

struct Inner {
    gpu: Arc<GpuCore>,
    raw: vk::Pipeline,
    layout: vk::PipelineLayout,
    push_bytes: u32,
    name: String,
}

impl Pipeline {
    /// The name given to [`Gpu::compile`](crate::Gpu::compile).
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Bytes of push constants that a dispatch passes.
    pub fn push_bytes(&self) -> u32 {
        self.inner.push_bytes
    }

    pub(crate) fn raw(&self) -> vk::Pipeline {
        self.inner.raw
    }

    pub(crate) fn layout(&self) -> vk::PipelineLayout {
        self.inner.layout
    }

    pub(crate) fn of(&self, gpu: &Arc<GpuCore>) -> bool {
        Arc::ptr_eq(&self.inner.gpu, gpu)
    }

    pub(crate) fn new(
        gpu: &Arc<GpuCore>,
        name: &str,
        spirv: &[u32],
        push_bytes: u32,
        options: &PipelineOptions,
    ) -> Result<Self, Error> {
        gpu.check()?;
        let capabilities = &gpu.adapter.info.capabilities;
        let invalid = |what: String| Error::Invalid { call: "Gpu::compile", what };
        if push_bytes > capabilities.max_push_constants || !push_bytes.is_multiple_of(4) {
            return Err(invalid(format!(
                "kernel {name} has {push_bytes} bytes of push constants; a multiple of 4 up to {} is possible",
                capabilities.max_push_constants
            )));
        }
        const MAGIC: u32 = 0x0723_0203;
        if spirv.first() != Some(&MAGIC) {
            return Err(invalid(format!("kernel {name} is not SPIR-V")));
        }
        if let Some(size) = options.subgroup_size {
            let range = capabilities.subgroup_size_min..=capabilities.subgroup_size_max;
            let fixed = size == capabilities.subgroup_size;
            let choice = capabilities.subgroup_size_control && size.is_power_of_two() && range.contains(&size);
            if !fixed && !choice {
                return Err(Error::Unsupported {
                    adapter: gpu.adapter.info.name.clone(),
                    what: format!("subgroups of {size} (kernel {name})"),
                });
            }
        }

        let layout = gpu.layouts.get(gpu, push_bytes)?;
        let device = &gpu.device;
        let module_info = vk::ShaderModuleCreateInfo::default().code(spirv);
        // SAFETY: the device is valid; the words live through the call.
        let module = unsafe { device.create_shader_module(&module_info, None) }
            .map_err(|e| gpu.error("vkCreateShaderModule", e))?;
        let mut subgroup = vk::PipelineShaderStageRequiredSubgroupSizeCreateInfo::default()
            .required_subgroup_size(options.subgroup_size.unwrap_or(0));
        let mut stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(module)
            .name(c"main");
        if options.full_subgroups && gpu.full_subgroups {
            stage = stage.flags(vk::PipelineShaderStageCreateFlags::REQUIRE_FULL_SUBGROUPS);
        }
        if options.subgroup_size.is_some() && capabilities.subgroup_size_control {
            stage = stage.push_next(&mut subgroup);
        }
        let info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout);
        // SAFETY: module, layout and cache are of this device. The driver synchronises the cache.
        let created = unsafe { device.create_compute_pipelines(gpu.cache.raw(), std::slice::from_ref(&info), None) };
        // SAFETY: a pipeline does not need its module any more.
        unsafe { device.destroy_shader_module(module, None) };
        let pipelines = created.map_err(|(_, e)| gpu.error("vkCreateComputePipelines", e))?;
        let raw = pipelines.first().copied().unwrap_or_default();
        if raw == vk::Pipeline::null() {
            return Err(Error::Driver {
                call: "vkCreateComputePipelines",
                code: 0,
                name: format!("no pipeline for kernel {name}"),
            });
        }
        gpu.cache.note_compiled();
        Ok(Self { inner: Arc::new(Inner { gpu: Arc::clone(gpu), raw, layout, push_bytes, name: name.to_owned() }) })
    }
}

impl std::fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pipeline")
            .field("name", &self.inner.name)
            .field("push_bytes", &self.inner.push_bytes)
            .finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.gpu.is_hung() {
            return;
        }
        // SAFETY: recorders hold the pipelines of work that is not complete, so the GPU is done with this one.
        unsafe { self.gpu.device.destroy_pipeline(self.raw, None) };
    }
}

/// Pipeline layouts by push constant size. They live as long as the device.
#[derive(Default)]
pub(crate) struct Layouts {
    by_size: Mutex<HashMap<u32, vk::PipelineLayout>>,
}

impl Layouts {
    fn get(&self, gpu: &GpuCore, push_bytes: u32) -> Result<vk::PipelineLayout, Error> {
        let mut known = self.by_size.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&layout) = known.get(&push_bytes) {
            return Ok(layout);
        }
        let range = vk::PushConstantRange::default().stage_flags(vk::ShaderStageFlags::COMPUTE).size(push_bytes);
        let ranges = if push_bytes == 0 { &[] } else { std::slice::from_ref(&range) };
        let info = vk::PipelineLayoutCreateInfo::default().push_constant_ranges(ranges);
        // SAFETY: the device is valid; `info` lives through the call.
        let layout = unsafe { gpu.device.create_pipeline_layout(&info, None) }
            .map_err(|e| gpu.error("vkCreatePipelineLayout", e))?;
        known.insert(push_bytes, layout);
        Ok(layout)
    }

    /// # Safety
    /// No pipeline and no recorder of the device is left.
    pub(crate) unsafe fn destroy(&self, device: &ash::Device) {
        let mut known = self.by_size.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, layout) in known.drain() {
            // SAFETY: the caller guarantees that nothing uses it.
            unsafe { device.destroy_pipeline_layout(layout, None) };
        }
    }
}
