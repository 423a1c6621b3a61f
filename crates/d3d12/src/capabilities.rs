//! The capabilities of an adapter, derived from the features of its device.

use dml_gpu::{Capabilities, FloatControls, FloatModes};
use windows::Win32::Graphics::Direct3D12::*;

/// The minimum shader model of kernels: 16-bit types, and waves.
pub(crate) const KERNEL_MODEL: D3D_SHADER_MODEL = D3D_SHADER_MODEL_6_2;
/// The most bytes of a segment: the range of the lower half of an address.
pub(crate) const MAX_SEGMENT: u64 = 1 << 32;
/// The number of segments in the table: a tenth of the descriptors that a heap may have in tier 3.
pub(crate) const MAX_SEGMENTS: u32 = 100_000;

/// The features of a device; features that an older system does not know are absent.
pub(crate) struct Features {
    options: D3D12_FEATURE_DATA_D3D12_OPTIONS,
    options1: D3D12_FEATURE_DATA_D3D12_OPTIONS1,
    options4: D3D12_FEATURE_DATA_D3D12_OPTIONS4,
    architecture: D3D12_FEATURE_DATA_ARCHITECTURE,
    pub(crate) model: D3D_SHADER_MODEL,
}

impl Features {
    pub(crate) fn of(device: &ID3D12Device) -> Self {
        // SAFETY: each number goes with its structure in Microsoft's header (`d3d12.h`), and zeros
        // are a value of each.
        unsafe {
            Self {
                options: ask(device, D3D12_FEATURE_D3D12_OPTIONS, Default::default()),
                options1: ask(device, D3D12_FEATURE_D3D12_OPTIONS1, Default::default()),
                options4: ask(device, D3D12_FEATURE_D3D12_OPTIONS4, Default::default()),
                architecture: ask(device, D3D12_FEATURE_ARCHITECTURE, Default::default()),
                model: shader_model(device),
            }
        }
    }

    /// Device and host share their memory.
    pub(crate) fn unified(&self) -> bool {
        self.architecture.UMA.as_bool()
    }

    /// The reason why kernels cannot use segments here, if they cannot.
    pub(crate) fn misses_for_segments(&self) -> Option<String> {
        let tier = self.options.ResourceBindingTier;
        (tier.0 < D3D12_RESOURCE_BINDING_TIER_3.0)
            .then(|| format!("resource binding tier {}, and 3 is needed for a table of all memory", tier.0))
    }

    /// The reason why kernels do not run here, if they do not.
    pub(crate) fn misses_for_kernels(&self) -> Option<String> {
        let D3D_SHADER_MODEL(model) = self.model;
        (model < KERNEL_MODEL.0).then(|| format!("shader model {}.{}, and 6.2 is needed", model >> 4, model & 15))
    }

    /// `period_ns` is the duration of a timestamp tick, 0 without timestamps.
    pub(crate) fn capabilities(&self, period_ns: f32) -> Capabilities {
        let halves = self.options4.Native16BitShaderOpsSupported.as_bool();
        let wide = self.options1.Int64ShaderOps.as_bool();
        let waves = self.options1.WaveOps.as_bool();
        let lanes = self.options1.WaveLaneCountMin.max(1);
        let f64 = self.options.DoublePrecisionFloatShaderOps.as_bool();
        let exact = FloatModes { round_to_even: true, signed_zero_inf_nan: true, ..FloatModes::default() };
        Capabilities {
            f16_storage: halves,
            i16: halves,
            f16_arithmetic: halves,
            f64,
            i64: wide,
            atomics_i64: wide && self.model.0 >= D3D_SHADER_MODEL_6_6.0,
            subgroup_size: lanes,
            subgroup_size_min: lanes,
            // According to Microsoft, the maximum that drivers report is not reliable; no other
            // size may be requested.
            subgroup_size_max: lanes,
            matrix_subgroup_size: lanes,
            subgroup_arithmetic: waves,
            subgroup_shuffle: waves,
            subgroup_ballot: waves,
            max_shared_memory: 32 << 10,
            max_workgroup_invocations: D3D12_CS_THREAD_GROUP_MAX_THREADS_PER_GROUP,
            max_workgroup_size: [D3D12_CS_THREAD_GROUP_MAX_X, D3D12_CS_THREAD_GROUP_MAX_Y, D3D12_CS_THREAD_GROUP_MAX_Z],
            max_groups: [D3D12_CS_DISPATCH_MAX_THREAD_GROUPS_PER_DIMENSION; 3],
            max_push_constants: 128,
            max_allocation: MAX_SEGMENT,
            max_buffer: MAX_SEGMENT,
            max_allocations: MAX_SEGMENTS,
            max_storage_range: MAX_SEGMENT,
            timestamp_period_ns: period_ns,
            memory_budget: true,
            host_visible_device_memory: self.unified(),
            // Direct3D keeps subnormal numbers of 64 and of 16 bits, and flushes those of 32 bits
            // unless a kernel asks otherwise.
            float_controls: FloatControls {
                f16: FloatModes { denorm_preserve: true, ..exact },
                f32: FloatModes { denorm_flush: true, ..exact },
                f64: FloatModes { denorm_preserve: true, ..exact },
                denorm_independent_f32: true,
                ..FloatControls::default()
            },
            ..Capabilities::default()
        }
    }
}

/// Queries one structure of features; `unknown` stays unchanged if the system does not know it.
///
/// # Safety
/// `T` is the structure of `feature`.
unsafe fn ask<T: Copy>(device: &ID3D12Device, feature: D3D12_FEATURE, unknown: T) -> T {
    let mut reply = unknown;
    // SAFETY: the caller's promise; the structure lives through the call.
    let known = unsafe { device.CheckFeatureSupport(feature, (&raw mut reply).cast(), size_of::<T>() as u32) };
    known.map_or(unknown, |()| reply)
}

/// The highest shader model. A system refuses queries about a model that it does not know.
fn shader_model(device: &ID3D12Device) -> D3D_SHADER_MODEL {
    let models = [D3D_SHADER_MODEL_6_7, D3D_SHADER_MODEL_6_6, D3D_SHADER_MODEL_6_5, KERNEL_MODEL, D3D_SHADER_MODEL_6_0];
    let asked = models.into_iter().map(|model| {
        let query = D3D12_FEATURE_DATA_SHADER_MODEL { HighestShaderModel: model };
        let unknown = D3D12_FEATURE_DATA_SHADER_MODEL { HighestShaderModel: D3D_SHADER_MODEL(0) };
        let mut reply = query;
        let bytes = size_of_val(&reply) as u32;
        // SAFETY: this is the structure of this feature, and lives through the call.
        let known = unsafe { device.CheckFeatureSupport(D3D12_FEATURE_SHADER_MODEL, (&raw mut reply).cast(), bytes) };
        known.map_or(unknown, |()| reply).HighestShaderModel
    });
    asked.into_iter().find(|model| model.0 != 0).unwrap_or(D3D_SHADER_MODEL_5_1)
}
