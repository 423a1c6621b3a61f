//! How kernels report an index out of range.

use dml_kernel::{Builder, Pointer, Scalar, Value};

/// Writes an error into the device's fault block, unless one is there. The engine raises `IndexError` with the name of
/// `operator` ([`dml_engine::operator_id`]) at the next synchronisation or launch.
///
/// `fault` is a u32 pointer, passed by [`crate::launch::Launcher::fault`]; `index` and `size` are integers.
pub fn report<'b>(b: &'b Builder, fault: Pointer<'b>, operator: u32, index: Value<'b>, size: Value<'b>, dim: u32) {
    let won = fault.compare_exchange(0, 0, 1).eq(0);
    b.if_(won, || {
        fault.store(1, operator);
        for (word, value) in [(2, index), (4, size)] {
            // Through i64, so that negative indices keep their sign.
            let value = value.cast(Scalar::I64).bitcast(Scalar::U64);
            fault.store(word, value.cast(Scalar::U32));
            fault.store(word + 1, (value >> 32).cast(Scalar::U32));
        }
        fault.store(6, dim);
    });
}
