//! The features and extensions of an adapter, and the subset that every device is opened with.

use std::ffi::{CStr, CString, c_void};
use std::marker::PhantomData;

use ash::{amd, arm, ext, khr, nv, vk};
use dml_environment::{DRY_RUN, NO_MARKER, PIPELINE_DISASSEMBLY, PIPELINE_STATISTICS};

use super::profile::Feature;

/// `VK_KHR_shader_bfloat16`, which the bindings do not have yet.
const BFLOAT16: &CStr = c"VK_KHR_shader_bfloat16";
/// `VK_COMPONENT_TYPE_BFLOAT16_KHR`.
pub(crate) const BFLOAT16_COMPONENT: vk::ComponentTypeKHR = vk::ComponentTypeKHR::from_raw(1_000_141_000);

/// `VkPhysicalDeviceShaderBfloat16FeaturesKHR`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Bfloat16Features<'a> {
    s_type: vk::StructureType,
    p_next: *mut c_void,
    pub(crate) shader_b_float16_type: vk::Bool32,
    pub(crate) shader_b_float16_dot_product: vk::Bool32,
    pub(crate) shader_b_float16_cooperative_matrix: vk::Bool32,
    _marker: PhantomData<&'a ()>,
}

impl Default for Bfloat16Features<'_> {
    fn default() -> Self {
        Self {
            s_type: vk::StructureType::from_raw(1_000_141_000),
            p_next: std::ptr::null_mut(),
            shader_b_float16_type: vk::FALSE,
            shader_b_float16_dot_product: vk::FALSE,
            shader_b_float16_cooperative_matrix: vk::FALSE,
            _marker: PhantomData,
        }
    }
}

// SAFETY: the structure has the fields, the order and the `sType` of
// `VkPhysicalDeviceShaderBfloat16FeaturesKHR` in the registry (vk.xml), which lists it as extending
// both structures.
unsafe impl vk::ExtendsPhysicalDeviceFeatures2 for Bfloat16Features<'_> {}
// SAFETY: as above.
unsafe impl vk::ExtendsDeviceCreateInfo for Bfloat16Features<'_> {}

/// The features of an adapter, restricted to those that this project uses. All of them are
/// enabled when a device is opened.
pub(crate) struct Features {
    api: u32,
    extensions: Vec<&'static CStr>,
    pub(crate) core: vk::PhysicalDeviceFeatures,
    pub(crate) v11: vk::PhysicalDeviceVulkan11Features<'static>,
    pub(crate) v12: vk::PhysicalDeviceVulkan12Features<'static>,
    pub(crate) atomic_float: vk::PhysicalDeviceShaderAtomicFloatFeaturesEXT<'static>,
    pub(crate) bf16: Bfloat16Features<'static>,
    pub(crate) shared_layout: vk::PhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR<'static>,
    pub(crate) integer_dot: vk::PhysicalDeviceShaderIntegerDotProductFeatures<'static>,
    matrix: vk::PhysicalDeviceCooperativeMatrixFeaturesKHR<'static>,
    subgroup_size: vk::PhysicalDeviceSubgroupSizeControlFeatures<'static>,
    maintenance4: vk::PhysicalDeviceMaintenance4Features<'static>,
    executables: vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR<'static>,
}

impl Features {
    /// Reads the features of an adapter of Vulkan 1.2 or later.
    pub(crate) fn query(instance: &ash::Instance, device: vk::PhysicalDevice, api: u32) -> Result<Self, vk::Result> {
        // SAFETY: `device` comes from `instance`.
        let offered = unsafe { instance.enumerate_device_extension_properties(device) }?;
        let offered: Vec<CString> =
            offered.iter().filter_map(|p| p.extension_name_as_c_str().ok()).map(CStr::to_owned).collect();
        let mut wanted = vec![
            amd::buffer_marker::NAME,
            ext::memory_budget::NAME,
            ext::shader_atomic_float::NAME,
            khr::cooperative_matrix::NAME,
            khr::workgroup_memory_explicit_layout::NAME,
            BFLOAT16,
            // Two names of one extension; the first available one is used.
            khr::calibrated_timestamps::NAME,
            ext::calibrated_timestamps::NAME,
            // Must be enabled where it is offered.
            khr::portability_subset::NAME,
            khr::pipeline_executable_properties::NAME,
            // These extensions report the number of compute units.
            nv::shader_sm_builtins::NAME,
            amd::shader_core_properties::NAME,
            arm::shader_core_builtins::NAME,
        ];
        if api < vk::API_VERSION_1_3 {
            wanted.extend([
                ext::subgroup_size_control::NAME,
                khr::maintenance4::NAME,
                khr::shader_integer_dot_product::NAME,
            ]);
        }
        wanted.retain(|name| offered.iter().any(|o| o.as_c_str() == *name));
        if wanted.contains(&khr::calibrated_timestamps::NAME) {
            wanted.retain(|name| *name != ext::calibrated_timestamps::NAME);
        }
        if NO_MARKER.get() == Some(true) || DRY_RUN.get() == Some(true) {
            wanted.retain(|name| *name != amd::buffer_marker::NAME);
        }
        if PIPELINE_STATISTICS.get().is_none() && PIPELINE_DISASSEMBLY.get().is_none() {
            wanted.retain(|name| *name != khr::pipeline_executable_properties::NAME);
        }

        let mut found = Self {
            api,
            extensions: wanted,
            core: vk::PhysicalDeviceFeatures::default(),
            v11: Default::default(),
            v12: Default::default(),
            atomic_float: Default::default(),
            bf16: Default::default(),
            shared_layout: Default::default(),
            integer_dot: Default::default(),
            matrix: Default::default(),
            subgroup_size: Default::default(),
            maintenance4: Default::default(),
            executables: Default::default(),
        };
        let mut chain = found.copy_unchained();
        let head = vk::PhysicalDeviceFeatures2::default();
        let mut head = chain.chain_query(head);
        // SAFETY: `device` comes from `instance`. Each chained structure is one that `api`, which
        // is not above the device's version or the instance's, or an extension that the device
        // offers defines; each is in the chain once, and lives through the call.
        unsafe { instance.get_physical_device_features2(device, &mut head) };
        let core = head.features;
        found.keep_used(&core, &chain);
        Ok(found)
    }

    /// The extensions to enable.
    pub(crate) fn extensions(&self) -> &[&'static CStr] {
        &self.extensions
    }

    pub(crate) fn has(&self, extension: &CStr) -> bool {
        self.extensions.contains(&extension)
    }

    pub(crate) fn knows_subgroup_size_control(&self) -> bool {
        self.api >= vk::API_VERSION_1_3 || self.has(ext::subgroup_size_control::NAME)
    }

    pub(crate) fn knows_maintenance4(&self) -> bool {
        self.api >= vk::API_VERSION_1_3 || self.has(khr::maintenance4::NAME)
    }

    fn knows_integer_dot(&self) -> bool {
        self.api >= vk::API_VERSION_1_3 || self.has(khr::shader_integer_dot_product::NAME)
    }

    pub(crate) fn subgroup_size_control(&self) -> bool {
        self.subgroup_size.subgroup_size_control != vk::FALSE
    }

    pub(crate) fn full_subgroups(&self) -> bool {
        self.subgroup_size.compute_full_subgroups != vk::FALSE
    }

    /// Whether the driver reports what its compiler made, and the program asks for it.
    pub(crate) fn reports_executables(&self) -> bool {
        self.executables.pipeline_executable_info != vk::FALSE
    }

    /// Cooperative matrices need the Vulkan memory model.
    pub(crate) fn cooperative_matrix(&self) -> bool {
        self.matrix.cooperative_matrix != vk::FALSE && self.v12.vulkan_memory_model != vk::FALSE
    }

    /// Takes a feature away, together with its extension.
    pub(super) fn hide(&mut self, feature: Feature) {
        match feature {
            Feature::Float64 => self.core.shader_float64 = vk::FALSE,
            Feature::Float16 => self.v12.shader_float16 = vk::FALSE,
            Feature::Int64 => self.core.shader_int64 = vk::FALSE,
            Feature::Int16 => self.core.shader_int16 = vk::FALSE,
            Feature::Int8 => self.v12.shader_int8 = vk::FALSE,
            Feature::Storage16 => {
                self.v11.storage_buffer16_bit_access = vk::FALSE;
                self.v11.storage_push_constant16 = vk::FALSE;
            }
            Feature::Storage8 => {
                self.v12.storage_buffer8_bit_access = vk::FALSE;
                self.v12.storage_push_constant8 = vk::FALSE;
            }
            Feature::AtomicInt64 => self.v12.shader_buffer_int64_atomics = vk::FALSE,
            Feature::AtomicInt64Shared => self.v12.shader_shared_int64_atomics = vk::FALSE,
            Feature::AtomicFloat => {
                self.atomic_float = Default::default();
                self.drop_extension(ext::shader_atomic_float::NAME);
            }
            Feature::SubgroupSizeControl => {
                self.subgroup_size = Default::default();
                self.drop_extension(ext::subgroup_size_control::NAME);
            }
            Feature::CooperativeMatrix => {
                self.matrix = Default::default();
                self.bf16 = Default::default();
                self.drop_extension(khr::cooperative_matrix::NAME);
                self.drop_extension(BFLOAT16);
            }
            Feature::IntegerDot => {
                self.integer_dot = Default::default();
                self.drop_extension(khr::shader_integer_dot_product::NAME);
            }
            Feature::MemoryModel => {
                self.v12.vulkan_memory_model = vk::FALSE;
                self.v12.vulkan_memory_model_device_scope = vk::FALSE;
            }
            Feature::SharedMemoryLayout => {
                self.shared_layout = Default::default();
                self.drop_extension(khr::workgroup_memory_explicit_layout::NAME);
            }
            Feature::ScalarBlockLayout => self.v12.scalar_block_layout = vk::FALSE,
            Feature::CalibratedTimestamps => {
                self.drop_extension(khr::calibrated_timestamps::NAME);
                self.drop_extension(ext::calibrated_timestamps::NAME);
            }
            Feature::MemoryBudget => self.drop_extension(ext::memory_budget::NAME),
            Feature::BufferMarker => self.drop_extension(amd::buffer_marker::NAME),
            // Not one of the feature structures.
            Feature::SubgroupArithmetic
            | Feature::SubgroupShuffle
            | Feature::FloatControls
            | Feature::DenormPreserve
            | Feature::DenormPreserveFloat32
            | Feature::Timestamps => {}
        }
    }

    fn drop_extension(&mut self, extension: &CStr) {
        self.extensions.retain(|name| *name != extension);
    }

    /// The missing features without which the adapter is not usable.
    pub(crate) fn missing(&self) -> Option<&'static str> {
        if self.v12.buffer_device_address == vk::FALSE {
            Some("no bufferDeviceAddress")
        } else if self.v12.timeline_semaphore == vk::FALSE {
            Some("no timelineSemaphore")
        } else {
            None
        }
    }

    /// Copies of the structures without the pointers between them.
    pub(crate) fn copy_unchained(&self) -> FeatureChain {
        FeatureChain {
            has_atomic_float: self.has(ext::shader_atomic_float::NAME),
            has_bf16: self.has(BFLOAT16),
            has_shared_layout: self.has(khr::workgroup_memory_explicit_layout::NAME),
            has_matrix: self.has(khr::cooperative_matrix::NAME),
            has_integer_dot: self.knows_integer_dot(),
            has_subgroup_size: self.knows_subgroup_size_control(),
            has_maintenance4: self.knows_maintenance4(),
            has_executables: self.has(khr::pipeline_executable_properties::NAME),
            v11: self.v11,
            v12: self.v12,
            atomic_float: self.atomic_float,
            bf16: self.bf16,
            shared_layout: self.shared_layout,
            integer_dot: self.integer_dot,
            matrix: self.matrix,
            subgroup_size: self.subgroup_size,
            maintenance4: self.maintenance4,
            executables: self.executables,
        }
    }

    /// Takes over the features that this project uses. Robustness stays off, and so do all graphics
    /// features.
    fn keep_used(&mut self, core: &vk::PhysicalDeviceFeatures, all: &FeatureChain) {
        self.core.shader_int16 = core.shader_int16;
        self.core.shader_int64 = core.shader_int64;
        self.core.shader_float64 = core.shader_float64;

        self.v11.storage_buffer16_bit_access = all.v11.storage_buffer16_bit_access;
        self.v11.storage_push_constant16 = all.v11.storage_push_constant16;

        let v12 = &all.v12;
        self.v12.storage_buffer8_bit_access = v12.storage_buffer8_bit_access;
        self.v12.storage_push_constant8 = v12.storage_push_constant8;
        self.v12.shader_buffer_int64_atomics = v12.shader_buffer_int64_atomics;
        self.v12.shader_shared_int64_atomics = v12.shader_shared_int64_atomics;
        self.v12.shader_float16 = v12.shader_float16;
        self.v12.shader_int8 = v12.shader_int8;
        self.v12.scalar_block_layout = v12.scalar_block_layout;
        self.v12.shader_subgroup_extended_types = v12.shader_subgroup_extended_types;
        self.v12.subgroup_broadcast_dynamic_id = v12.subgroup_broadcast_dynamic_id;
        self.v12.timeline_semaphore = v12.timeline_semaphore;
        self.v12.buffer_device_address = v12.buffer_device_address;
        self.v12.vulkan_memory_model = v12.vulkan_memory_model;
        self.v12.vulkan_memory_model_device_scope = v12.vulkan_memory_model_device_scope;

        let floats = &all.atomic_float;
        self.atomic_float.shader_buffer_float32_atomics = floats.shader_buffer_float32_atomics;
        self.atomic_float.shader_buffer_float32_atomic_add = floats.shader_buffer_float32_atomic_add;
        self.atomic_float.shader_shared_float32_atomics = floats.shader_shared_float32_atomics;
        self.atomic_float.shader_shared_float32_atomic_add = floats.shader_shared_float32_atomic_add;

        self.bf16.shader_b_float16_type = all.bf16.shader_b_float16_type;
        self.bf16.shader_b_float16_dot_product = all.bf16.shader_b_float16_dot_product;
        self.bf16.shader_b_float16_cooperative_matrix = all.bf16.shader_b_float16_cooperative_matrix;

        let layout = &all.shared_layout;
        let shared = &mut self.shared_layout;
        shared.workgroup_memory_explicit_layout = layout.workgroup_memory_explicit_layout;
        shared.workgroup_memory_explicit_layout_scalar_block_layout =
            layout.workgroup_memory_explicit_layout_scalar_block_layout;
        shared.workgroup_memory_explicit_layout8_bit_access = layout.workgroup_memory_explicit_layout8_bit_access;
        shared.workgroup_memory_explicit_layout16_bit_access = layout.workgroup_memory_explicit_layout16_bit_access;

        self.integer_dot.shader_integer_dot_product = all.integer_dot.shader_integer_dot_product;
        self.matrix.cooperative_matrix = all.matrix.cooperative_matrix;
        self.subgroup_size.subgroup_size_control = all.subgroup_size.subgroup_size_control;
        self.subgroup_size.compute_full_subgroups = all.subgroup_size.compute_full_subgroups;
        self.maintenance4.maintenance4 = all.maintenance4.maintenance4;
        self.executables.pipeline_executable_info = all.executables.pipeline_executable_info;
    }
}

/// The feature structures while they are chained into a Vulkan call.
pub(crate) struct FeatureChain {
    has_atomic_float: bool,
    has_bf16: bool,
    has_shared_layout: bool,
    has_matrix: bool,
    has_integer_dot: bool,
    has_subgroup_size: bool,
    has_maintenance4: bool,
    has_executables: bool,
    v11: vk::PhysicalDeviceVulkan11Features<'static>,
    v12: vk::PhysicalDeviceVulkan12Features<'static>,
    atomic_float: vk::PhysicalDeviceShaderAtomicFloatFeaturesEXT<'static>,
    bf16: Bfloat16Features<'static>,
    shared_layout: vk::PhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR<'static>,
    integer_dot: vk::PhysicalDeviceShaderIntegerDotProductFeatures<'static>,
    matrix: vk::PhysicalDeviceCooperativeMatrixFeaturesKHR<'static>,
    subgroup_size: vk::PhysicalDeviceSubgroupSizeControlFeatures<'static>,
    maintenance4: vk::PhysicalDeviceMaintenance4Features<'static>,
    executables: vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR<'static>,
}

/// Chains the structures that the device supports behind `$head`, which is one of the two head
/// structures.
macro_rules! chain {
    ($self:ident, $head:ident) => {{
        let mut head = $head.push_next(&mut $self.v11).push_next(&mut $self.v12);
        if $self.has_atomic_float {
            head = head.push_next(&mut $self.atomic_float);
        }
        if $self.has_bf16 {
            head = head.push_next(&mut $self.bf16);
        }
        if $self.has_shared_layout {
            head = head.push_next(&mut $self.shared_layout);
        }
        if $self.has_integer_dot {
            head = head.push_next(&mut $self.integer_dot);
        }
        if $self.has_matrix {
            head = head.push_next(&mut $self.matrix);
        }
        if $self.has_subgroup_size {
            head = head.push_next(&mut $self.subgroup_size);
        }
        if $self.has_maintenance4 {
            head = head.push_next(&mut $self.maintenance4);
        }
        if $self.has_executables {
            head = head.push_next(&mut $self.executables);
        }
        head
    }};
}

impl FeatureChain {
    fn chain_query<'a>(&'a mut self, head: vk::PhysicalDeviceFeatures2<'a>) -> vk::PhysicalDeviceFeatures2<'a> {
        chain!(self, head)
    }

    pub(crate) fn chain_device<'a>(&'a mut self, head: vk::DeviceCreateInfo<'a>) -> vk::DeviceCreateInfo<'a> {
        chain!(self, head)
    }
}
