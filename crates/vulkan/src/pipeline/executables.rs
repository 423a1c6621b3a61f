//! What the driver's compiler reports of a pipeline (`VK_KHR_pipeline_executable_properties`).

use std::ffi::CStr;

use ash::khr::pipeline_executable_properties as extension;
use ash::vk;
use dml_environment::PIPELINE_DISASSEMBLY;
use dml_gpu::Executable;

use super::compute::Pipeline;
use crate::error::Error;

impl Pipeline {
    /// See [`dml_gpu::Gpu::executables`].
    pub(crate) fn executables(&self) -> Result<Vec<Executable>, Error> {
        let device = self.device();
        let Some(queries) = &device.executables else { return Ok(Vec::new()) };
        let info = vk::PipelineInfoKHR::default().pipeline(self.raw());
        // SAFETY: the pipeline belongs to this device, which was opened with the extension and its
        // feature.
        let found = unsafe { queries.get_pipeline_executable_properties(&info) }
            .map_err(|e| device.error("vkGetPipelineExecutablePropertiesKHR", e))?;
        let executable = |(index, properties): (usize, &vk::PipelineExecutablePropertiesKHR)| {
            let info = vk::PipelineExecutableInfoKHR::default().pipeline(self.raw()).executable_index(index as u32);
            // SAFETY: as above; the index is below the number of executables, and the pipeline was
            // created with CAPTURE_STATISTICS.
            let statistics = unsafe { queries.get_pipeline_executable_statistics(&info) }
                .map_err(|e| device.error("vkGetPipelineExecutableStatisticsKHR", e))?;
            let disassembly = if PIPELINE_DISASSEMBLY.get().is_some() {
                // SAFETY: as above, and the pipeline was created with
                // CAPTURE_INTERNAL_REPRESENTATIONS.
                unsafe { disassembly(queries, &info) }
                    .map_err(|e| device.error("vkGetPipelineExecutableInternalRepresentationsKHR", e))?
            } else {
                String::new()
            };
            Ok(Executable {
                name: text(properties.name_as_c_str().ok()),
                subgroup_size: properties.subgroup_size,
                statistics: statistics.iter().map(|s| (text(s.name_as_c_str().ok()), number(s))).collect(),
                disassembly,
            })
        };
        found.iter().enumerate().map(executable).collect()
    }
}

/// The last representation that is text; empty if there is none.
///
/// # Safety
/// The executable is of a pipeline of this device that was created with
/// CAPTURE_INTERNAL_REPRESENTATIONS.
unsafe fn disassembly(
    queries: &extension::Device,
    info: &vk::PipelineExecutableInfoKHR<'_>,
) -> Result<String, vk::Result> {
    // SAFETY: the caller's promise. The first call tells the sizes alone, since its pointers are
    // null.
    let mut found = unsafe { queries.get_pipeline_executable_internal_representations(info) }?;
    let mut texts: Vec<Vec<u8>> = found.iter().map(|representation| vec![0; representation.data_size]).collect();
    for (representation, text) in found.iter_mut().zip(&mut texts) {
        representation.p_data = text.as_mut_ptr().cast();
    }
    let mut count = found.len() as u32;
    let call = queries.fp().get_pipeline_executable_internal_representations_khr;
    // SAFETY: the caller's promise; there are `count` structures, and each points to `data_size`
    // bytes.
    unsafe { call(queries.device(), info, &raw mut count, found.as_mut_ptr()) }.result()?;
    let last = found.iter().zip(&texts).take(count as usize).rfind(|(representation, _)| representation.is_text != 0);
    Ok(last.map(|(_, text)| String::from_utf8_lossy(until_zero(text)).into_owned()).unwrap_or_default())
}

/// The bytes before the first zero.
fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn text(name: Option<&CStr>) -> String {
    name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn number(statistic: &vk::PipelineExecutableStatisticKHR) -> f64 {
    let value = &statistic.value;
    // SAFETY: the driver wrote the field of the union that the format names.
    unsafe {
        match statistic.format {
            vk::PipelineExecutableStatisticFormatKHR::BOOL32 => f64::from(value.b32),
            vk::PipelineExecutableStatisticFormatKHR::INT64 => value.i64 as f64,
            vk::PipelineExecutableStatisticFormatKHR::UINT64 => value.u64 as f64,
            _ => value.f64,
        }
    }
}
