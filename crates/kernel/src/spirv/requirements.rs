//! The capabilities, extensions and float modes that a module declares.

use super::code::{Code, Id};
use super::type_key::TypeKey;
use crate::dtype::DType;
use crate::lower::FloatModes;
use crate::types::{ScalarType, Type};
use rspirv::spirv::{self, Capability};

impl Code {
    /// Declares the capabilities and extensions of everything that the module uses; `matrices` are
    /// the dtypes of its matrix registers.
    pub(super) fn capabilities(&mut self, matrices: &[DType]) {
        let n = self.needs;
        let uses = |dtype| matrices.contains(&dtype);
        let list = [
            (true, Capability::Shader),
            (true, Capability::PhysicalStorageBufferAddresses),
            (n.f64, Capability::Float64),
            (n.i64, Capability::Int64),
            (n.f16_storage, Capability::StorageBuffer16BitAccess),
            (n.i8_storage, Capability::StorageBuffer8BitAccess),
            (n.atomics_i64, Capability::Int64Atomics),
            (n.subgroup_arithmetic || n.subgroup_shuffle, Capability::GroupNonUniform),
            (n.subgroup_arithmetic, Capability::GroupNonUniformArithmetic),
            (n.subgroup_arithmetic, Capability::GroupNonUniformBallot),
            (n.subgroup_shuffle, Capability::GroupNonUniformShuffle),
            (n.matrix, Capability::VulkanMemoryModel),
            (n.matrix, Capability::CooperativeMatrixKHR),
            (n.f16 || n.matrix && uses(DType::F16), Capability::Float16),
            (n.bf16_matrix, Capability::BFloat16TypeKHR),
            (n.bf16_matrix, Capability::BFloat16CooperativeMatrixKHR),
            (n.matrix && (uses(DType::I8) || uses(DType::U8)), Capability::Int8),
        ];
        let extensions = [(n.matrix, "SPV_KHR_cooperative_matrix"), (n.bf16_matrix, "SPV_KHR_bfloat16")];
        for (_, extension) in extensions.into_iter().filter(|(wanted, _)| *wanted) {
            self.b.extension(extension);
        }
        for (_, capability) in list.into_iter().filter(|(wanted, _)| *wanted) {
            self.b.capability(capability);
        }
    }

    /// Requires the float modes that the adapter supports, for each width of float that the module
    /// uses.
    pub(super) fn float_modes(&mut self, main: Id, floats: FloatModes) {
        let FloatModes { round_to_even, keep_subnormals, keep_special_f32, keep_special_f64, halves: _ } = floats;
        let uses = |scalar| self.types.contains_key(&TypeKey::Plain(Type::scalar(scalar)));
        // By width: rounding, subnormal numbers, and special numbers.
        let widths = [
            (uses(ScalarType::F32), 32, [round_to_even, keep_subnormals, keep_special_f32]),
            (uses(ScalarType::F64), 64, [round_to_even, keep_subnormals, keep_special_f64]),
            (self.needs.f16, 16, [true; 3]),
        ];
        let modes = [
            (spirv::ExecutionMode::RoundingModeRTE, Capability::RoundingModeRTE),
            (spirv::ExecutionMode::DenormPreserve, Capability::DenormPreserve),
            (spirv::ExecutionMode::SignedZeroInfNanPreserve, Capability::SignedZeroInfNanPreserve),
        ];
        for (_, width, asked) in widths.iter().filter(|(used, ..)| *used) {
            for (mode, _) in modes.iter().zip(asked).filter_map(|(mode, asked)| asked.then_some(mode)) {
                self.b.execution_mode(main, *mode, [*width]);
            }
        }
        for (i, (_, capability)) in modes.into_iter().enumerate() {
            if widths.iter().any(|(used, _, asked)| *used && asked[i]) {
                self.b.capability(capability);
            }
        }
    }
}
