//! The capabilities of an adapter, as plain numbers and flags.

use super::matrix::MatrixShape;
use super::registers::RegisterFile;

/// The features and limits of an adapter. All supported features are enabled on every opened
/// device.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Capabilities {
    /// 16-bit values (f16, i16, bf16 as bits) can be loaded from and stored to memory.
    pub f16_storage: bool,
    /// 8-bit values can be loaded from and stored to memory.
    pub i8_storage: bool,
    /// Arithmetic on 16-bit integers.
    pub i16: bool,
    /// Arithmetic on f16.
    pub f16_arithmetic: bool,
    /// Arithmetic on f64.
    pub f64: bool,
    /// Arithmetic on 64-bit integers.
    pub i64: bool,
    /// Arithmetic on 8-bit integers.
    pub i8_arithmetic: bool,
    /// 64-bit integer atomics on memory.
    pub atomics_i64: bool,
    /// 64-bit integer atomics on shared memory.
    pub atomics_i64_shared: bool,
    /// f32 atomic add on memory (`VK_EXT_shader_atomic_float`).
    pub atomics_f32_add: bool,
    /// f32 atomic add on shared memory.
    pub atomics_f32_add_shared: bool,
    /// Invocations of a subgroup when the pipeline asks for none in particular.
    pub subgroup_size: u32,
    /// The smallest subgroup size that [`PipelineOptions`](crate::PipelineOptions) may ask for.
    pub subgroup_size_min: u32,
    /// The largest subgroup size that [`PipelineOptions`](crate::PipelineOptions) may ask for.
    pub subgroup_size_max: u32,
    /// Invocations of a subgroup in kernels with matrix units: the size for which the units are
    /// made, which leaves an invocation the most registers.
    pub matrix_subgroup_size: u32,
    /// The registers, if they limit kernels; `None` where the tables of tiles were measured
    /// (NVIDIA's), where nothing is known, and on the CPU.
    pub registers: Option<RegisterFile>,
    /// A compute pipeline may ask for a subgroup size.
    pub subgroup_size_control: bool,
    /// Subgroup reductions and scans in compute kernels.
    pub subgroup_arithmetic: bool,
    /// Subgroup shuffles in compute kernels.
    pub subgroup_shuffle: bool,
    /// Subgroup ballots in compute kernels.
    pub subgroup_ballot: bool,
    /// Subgroup operations on 8-, 16- and 64-bit types.
    pub subgroup_extended_types: bool,
    /// Shared memory of a workgroup, bytes.
    pub max_shared_memory: u32,
    /// Invocations of a workgroup.
    pub max_workgroup_invocations: u32,
    /// Invocations of a workgroup along each axis.
    pub max_workgroup_size: [u32; 3],
    /// The number of multiprocessors, compute units or cores, if the driver reports it (Vulkan:
    /// `VK_NV_shader_sm_builtins`, `VK_AMD_shader_core_properties`, `VK_ARM_shader_core_builtins`).
    pub compute_units: Option<u32>,
    /// Workgroups of a dispatch along each axis.
    pub max_groups: [u32; 3],
    /// Push constants, bytes.
    pub max_push_constants: u32,
    /// The largest single [`Segment`](crate::Segment) that the driver guarantees, bytes (4 GiB on
    /// NVIDIA). Larger segments, up to [`max_buffer`](Self::max_buffer), are tried and usually
    /// succeed.
    pub max_allocation: u64,
    /// The largest single [`Segment`](crate::Segment) that is possible, bytes.
    pub max_buffer: u64,
    /// The number of segments that may exist at a time.
    pub max_allocations: u32,
    /// The largest storage buffer range through a descriptor, bytes. Buffer addresses do not have
    /// this limit.
    pub max_storage_range: u64,
    /// f16 matrix units are usable through `VK_KHR_cooperative_matrix`.
    pub matrix: bool,
    /// bf16 matrix units are usable (`VK_KHR_shader_bfloat16` in addition to
    /// `VK_KHR_cooperative_matrix`).
    pub bf16_matrix: bool,
    /// Every subgroup-scope matrix shape that the adapter offers; empty without cooperative
    /// matrices.
    pub matrix_shapes: Vec<MatrixShape>,
    /// Explicit layout of shared memory, so that one array can be read as several types.
    pub shared_memory_layout: bool,
    /// The Vulkan memory model can be used in kernels.
    pub memory_model: bool,
    /// Packed 8-bit integer dot products.
    pub integer_dot: bool,
    /// Nanoseconds of one timestamp tick; 0 when the queue has no timestamps.
    pub timestamp_period_ns: f32,
    /// [`Gpu::memory_free`](crate::Gpu::memory_free) asks the driver (Vulkan:
    /// `VK_EXT_memory_budget`).
    pub memory_budget: bool,
    /// Completion is reported by a word in memory (`VK_AMD_buffer_marker`).
    pub buffer_marker: bool,
    /// Device-local memory larger than 256 MiB is mapped into the host's address space.
    pub host_visible_device_memory: bool,
    /// Control over subnormals, rounding and NaN.
    pub float_controls: FloatControls,
    /// The driver is known to refuse valid kernels.
    pub refuses_kernels: bool,
    /// The most values of a kernel that the driver is known to compile; none if it has no known
    /// limit.
    pub most_values: Option<usize>,
}

/// Control over floating-point behaviour that a kernel may ask for
/// (`VK_KHR_shader_float_controls`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FloatControls {
    /// Execution modes for f16.
    pub f16: FloatModes,
    /// Execution modes for f32.
    pub f32: FloatModes,
    /// Execution modes for f64.
    pub f64: FloatModes,
    /// Subnormal modes may differ between f32 and the other widths.
    pub denorm_independent_f32: bool,
    /// Subnormal modes may differ between all widths.
    pub denorm_independent: bool,
    /// Rounding modes may differ between f32 and the other widths.
    pub rounding_independent_f32: bool,
    /// Rounding modes may differ between all widths.
    pub rounding_independent: bool,
}

impl Capabilities {
    /// Whether an invocation has about half the registers of most GPUs, or fewer.
    pub fn has_few_registers(&self) -> bool {
        self.registers.is_some_and(|file| file.are_few())
    }

    /// Whether kernels may ask that subnormal numbers are kept, in all float types that kernels
    /// compute in. An adapter may require the same mode for all types.
    pub fn keeps_subnormals(&self) -> bool {
        let modes = &self.float_controls;
        modes.f32.denorm_preserve && (modes.f64.denorm_preserve || !self.f64)
    }

    /// Whether kernels may ask for rounding to nearest even, in f32 and in f64. An adapter may
    /// require the same mode for all types.
    pub fn rounds_to_even(&self) -> bool {
        let modes = &self.float_controls;
        modes.f32.round_to_even && (modes.f64.round_to_even || !self.f64)
    }

    /// Whether kernels may ask for conversions to f16 that round to nearest even and keep subnormal
    /// numbers, infinities and NaNs, in addition to the modes of the other types.
    pub fn converts_halves(&self) -> bool {
        let modes = &self.float_controls;
        let FloatModes { denorm_preserve, denorm_flush: _, round_to_even, signed_zero_inf_nan } = modes.f16;
        self.f16_arithmetic
            && denorm_preserve
            && round_to_even
            && signed_zero_inf_nan
            && (self.keeps_subnormals() || modes.denorm_independent)
            && (self.rounds_to_even() || modes.rounding_independent)
    }
}

/// The execution modes that exist for one float width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FloatModes {
    /// `DenormPreserve`.
    pub denorm_preserve: bool,
    /// `DenormFlushToZero`.
    pub denorm_flush: bool,
    /// `RoundingModeRTE`.
    pub round_to_even: bool,
    /// `SignedZeroInfNanPreserve`.
    pub signed_zero_inf_nan: bool,
}
