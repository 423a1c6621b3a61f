//! Compiles SPIR-V for one device.

use std::path::Path;
use std::sync::Arc;

use ash::vk;
use dml_environment::PIPELINE_DISASSEMBLY;
use dml_gpu::PipelineOptions;

use super::cache::PipelineCache;
use super::compute::Pipeline;
use super::layout::Layouts;
use crate::device::DeviceShared;
use crate::error::Error;
use crate::imitated_faults;

/// The state that a device's pipelines share. Any number of threads may use it at a time.
pub(crate) struct Compiler {
    device: Arc<DeviceShared>,
    cache: PipelineCache,
    layouts: Layouts,
}

impl Compiler {
    /// A compiler with the pipelines of a file in `folder`.
    pub(crate) fn new(device: &Arc<DeviceShared>, folder: Option<&Path>) -> Self {
        Self { cache: PipelineCache::load(device, folder), layouts: Layouts::default(), device: Arc::clone(device) }
    }

    /// Writes the pipelines to disk; see [`dml_gpu::Gpu::save_pipeline_cache`].
    pub(crate) fn save(&self) -> Result<(), Error> {
        self.device.check()?;
        self.cache.save()
    }

    /// See [`dml_gpu::Gpu::compile_with`].
    pub(crate) fn compile(
        &self,
        name: &str,
        spirv: &[u32],
        push_bytes: u32,
        options: &PipelineOptions,
    ) -> Result<Pipeline, Error> {
        let device = &self.device;
        device.check()?;
        let capabilities = &device.adapter.info.capabilities;
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
                return Err(device.adapter.unsupported(format!("subgroups of {size} (kernel {name})")));
            }
        }

        imitated_faults::compiling(name, options.optimised)?;
        let layout = self.layouts.get(device, push_bytes)?;
        let module_info = vk::ShaderModuleCreateInfo::default().code(spirv);
        // SAFETY: the device is valid; the words live through the call. The caller ensures that
        // they are a valid module ("Not guaranteed" in `lib.rs`).
        let module = unsafe { device.raw.create_shader_module(&module_info, None) }
            .map_err(|e| device.error("vkCreateShaderModule", e))?;
        let mut subgroup = vk::PipelineShaderStageRequiredSubgroupSizeCreateInfo::default()
            .required_subgroup_size(options.subgroup_size.unwrap_or(0));
        let mut stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(module)
            .name(c"main");
        if options.full_subgroups && device.full_subgroups {
            stage = stage.flags(vk::PipelineShaderStageCreateFlags::REQUIRE_FULL_SUBGROUPS);
        }
        if options.subgroup_size.is_some() && capabilities.subgroup_size_control {
            stage = stage.push_next(&mut subgroup);
        }
        // Any launch may be split into parts, whose workgroup indices do not begin at 0.
        let mut flags = vk::PipelineCreateFlags::DISPATCH_BASE;
        if device.executables.is_some() {
            flags |= vk::PipelineCreateFlags::CAPTURE_STATISTICS_KHR;
            if PIPELINE_DISASSEMBLY.get().is_some() {
                flags |= vk::PipelineCreateFlags::CAPTURE_INTERNAL_REPRESENTATIONS_KHR;
            }
        }
        if !options.optimised {
            flags |= vk::PipelineCreateFlags::DISABLE_OPTIMIZATION;
        }
        let info = vk::ComputePipelineCreateInfo::default().flags(flags).stage(stage).layout(layout.raw);
        // SAFETY: module, layout and cache belong to this device, or the cache is null; `info` and
        // everything it points to live through the call. The layout has the push constants, and the
        // adapter has the subgroup size. The driver synchronises the cache.
        let created =
            unsafe { device.raw.create_compute_pipelines(self.cache.raw(), std::slice::from_ref(&info), None) };
        // SAFETY: the module belongs to this device and has no other owner. A pipeline does not
        // need its module after creation.
        unsafe { device.raw.destroy_shader_module(module, None) };
        let pipelines = created.map_err(|(_, e)| device.error("vkCreateComputePipelines", e))?;
        let raw = pipelines.first().copied().unwrap_or_default();
        if raw == vk::Pipeline::null() {
            return Err(Error::Driver {
                call: "vkCreateComputePipelines",
                code: 0,
                name: format!("no pipeline for kernel {name}"),
            });
        }
        self.cache.note_compiled();
        Ok(Pipeline::new(device, raw, layout, push_bytes, name))
    }
}
