//! The emitter's target for an adapter, and the features that a kernel requires of it.

use crate::kernels::matrix_element::element_dtype;
use dml_gpu::AdapterInfo;
use dml_kernel::{FloatModes, MatrixType, Module, Target};

/// The target of the emitter for an adapter.
pub(crate) fn target(info: &AdapterInfo) -> Target {
    let has = &info.capabilities;
    Target {
        floats: float_modes(info),
        int64: has.i64,
        float64: has.f64 && has.i64,
        storage8: has.i8_storage,
        storage16: has.f16_storage,
        invocations: has.max_workgroup_invocations,
        reloads_params: has.has_few_registers() && has.registers.is_some_and(|file| !file.shared_values_apart),
        late_params: has.has_few_registers() && has.registers.is_some_and(|file| file.shared_values_apart),
        narrow_offsets: has.i64 && has.registers.is_some_and(|file| !file.sums_take_wide_constants),
        most_values: has.most_values.unwrap_or(Target::default().most_values),
    }
}

/// The float modes that an adapter guarantees on request.
fn float_modes(info: &AdapterInfo) -> FloatModes {
    let (has, modes) = (&info.capabilities, &info.capabilities.float_controls);
    FloatModes {
        round_to_even: has.rounds_to_even(),
        keep_subnormals: has.keeps_subnormals(),
        keep_special_f32: modes.f32.signed_zero_inf_nan,
        keep_special_f64: modes.f64.signed_zero_inf_nan,
        halves: has.converts_halves(),
    }
}

/// Whether the adapter's matrix units multiply matrices of these types: left, right, sum.
fn multiplies(info: &AdapterInfo, [left, right, sum]: &[MatrixType; 3]) -> bool {
    info.capabilities.matrix_shapes.iter().any(|shape| {
        let [a, b, c, result] = [shape.a, shape.b, shape.c, shape.result].map(element_dtype);
        (shape.m, shape.n, shape.k) == (left.rows, right.columns, left.columns)
            && [a, b, c, result] == [left, right, sum, sum].map(|ty| Some(ty.dtype))
    })
}

/// The first feature that a module requires and the adapter lacks.
pub(super) fn missing(module: &Module, info: &AdapterInfo) -> Option<String> {
    let (needs, has) = (&module.needs, &info.capabilities);
    let flags = [
        (needs.f64, has.f64 && has.i64, "64-bit floating point (float64)"),
        (needs.i64, has.i64, "64-bit integers (int64)"),
        (needs.i16, has.i16, "16-bit integers"),
        (needs.i8, has.i8_arithmetic, "8-bit integers"),
        (needs.f16_storage, has.f16_storage, "16-bit storage"),
        (needs.f16, has.f16_arithmetic, "16-bit floating point"),
        (needs.i8_storage, has.i8_storage, "8-bit storage"),
        (needs.atomics_i64, has.atomics_i64, "64-bit atomics"),
        (needs.subgroup_arithmetic, has.subgroup_arithmetic, "subgroup arithmetic"),
        (needs.subgroup_shuffle, has.subgroup_shuffle, "subgroup shuffles"),
        (needs.matrix, has.memory_model && !has.matrix_shapes.is_empty(), "matrix units"),
        (needs.bf16_matrix, has.bf16_matrix, "matrix units for bfloat16"),
    ];
    if let Some((.., name)) = flags.iter().find(|(need, has, _)| *need && !has) {
        return Some((*name).to_owned());
    }
    if let Some([left, right, sum]) = module.products.iter().find(|product| !multiplies(info, product)) {
        return Some(format!("matrix units that multiply {left:?} and {right:?} into {sum:?}"));
    }
    if needs.shared_bytes > has.max_shared_memory {
        return Some(format!("{} bytes of shared memory (there are {})", needs.shared_bytes, has.max_shared_memory));
    }
    if needs.workgroup_invocations > has.max_workgroup_invocations {
        return Some(format!(
            "workgroups of {} invocations (the most is {})",
            needs.workgroup_invocations, has.max_workgroup_invocations
        ));
    }
    None
}
