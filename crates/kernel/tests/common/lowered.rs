//! Runs a kernel and its rewritten forms for adapters that lack features.

use super::common::{returns_from_text, validated_for};
use dml_kernel::interpret::{Argument, run};
use dml_kernel::ir::ParamKind;
use dml_kernel::{FloatModes, Kernel, Target, Value};

/// An operation on two numbers.
pub type Operation = for<'b> fn(Value<'b>, Value<'b>) -> Value<'b>;

/// An adapter without any optional feature.
pub const NOTHING: Target = Target {
    floats: FloatModes {
        round_to_even: false,
        keep_subnormals: false,
        halves: false,
        keep_special_f32: false,
        keep_special_f64: false,
    },
    int64: false,
    float64: false,
    storage8: false,
    storage16: false,
    invocations: 128,
    reloads_params: true,
    late_params: true,
    narrow_offsets: false,
    most_values: usize::MAX,
};

/// Targets that lack one feature each, and one that lacks all.
fn targets() -> Vec<Target> {
    vec![
        NOTHING,
        Target { storage8: false, ..Target::default() },
        Target { storage16: false, ..Target::default() },
        Target { int64: false, float64: false, ..Target::default() },
        Target { float64: false, ..Target::default() },
        Target { invocations: 100, ..Target::default() },
        Target { reloads_params: true, narrow_offsets: true, ..Target::default() },
        Target { late_params: true, ..Target::default() },
    ]
}

/// Runs the kernel and its rewritten form for each target on copies of `memory`. Asserts equal
/// results and valid modules, and returns the results.
pub fn same_everywhere(kernel: &Kernel, groups: [u32; 3], memory: &[Vec<u8>], numbers: &[u64]) -> Vec<Vec<u8>> {
    let result = |kernel: &Kernel| {
        let mut memory = memory.to_vec();
        let (mut buffers, mut rest) = (memory.iter_mut(), numbers.iter());
        let mut arguments: Vec<Argument> = kernel
            .params
            .iter()
            .map(|param| match param.kind {
                ParamKind::Pointer { .. } => Argument::Memory(buffers.next().expect("memory for every pointer")),
                _ => Argument::Number(*rest.next().expect("a number for every other")),
            })
            .collect();
        run(kernel, groups, 8, &mut arguments);
        memory
    };
    let original = result(kernel);
    for target in targets() {
        let lowered = kernel.lowered(&target);
        returns_from_text(&lowered);
        assert_eq!(result(&lowered), original, "{target:?}\n{kernel}\n{lowered}");
        let needs = validated_for(kernel, &target).needs;
        assert!(target.int64 || !needs.i64, "{kernel}");
        assert!(target.float64 || !needs.f64, "{kernel}");
        assert!(target.storage8 || !needs.i8_storage, "{kernel}");
        assert!(target.storage16 || !needs.f16_storage, "{kernel}");
        assert!(needs.workgroup_invocations <= target.invocations, "{kernel}");
    }
    original
}

pub fn bytes(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}
