//! How kernels report an index, or another value, out of range. The element of a bad index is left alone: a kernel never
//! clamps and never reads outside.

use dml_engine::FaultKind;
use dml_kernel::{Builder, Operand, Pointer, Scalar, Value};
use std::cell::RefCell;

/// Writes an error into the device's fault block, unless one is there. The engine raises the error that
/// `operator` (a u32: [`operator`] or [`value`]) stands for at the next synchronisation or launch.
///
/// `fault` is a u32 pointer, passed by [`crate::primitives::launch::Launcher::fault`]; `index` and `size` are integers, `dim` is
/// a u32.
pub fn report<'b>(
    b: &'b Builder,
    fault: Pointer<'b>,
    operator: impl Operand<'b>,
    index: Value<'b>,
    size: Value<'b>,
    dim: impl Operand<'b>,
) {
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

/// Operators for whose bad indices the CPU raises RuntimeError, by the first part of their names.
const RUNTIME: &[&str] = &["aten::gather", "aten::scatter", "aten::searchsorted"];

/// The engine's number for an operator whose index is bad.
pub fn operator(name: &'static str) -> u32 {
    let runtime = RUNTIME.iter().any(|start| name.starts_with(start));
    known(name, if runtime { FaultKind::RuntimeIndex } else { FaultKind::Index })
}

/// The engine's number for the message of a `RuntimeError`.
pub fn value(message: &'static str) -> u32 {
    known(message, FaultKind::Value)
}

/// A number of the engine's, remembered by this thread.
fn known(name: &'static str, kind: FaultKind) -> u32 {
    thread_local! {
        static KNOWN: RefCell<Vec<(&'static str, u32)>> = const { RefCell::new(Vec::new()) };
    }
    KNOWN.with(|known| {
        let mut known = known.borrow_mut();
        if let Some(&(_, id)) = known.iter().find(|(n, _)| std::ptr::eq(*n, name)) {
            return id;
        }
        let id = dml_engine::fault_id(name, kind);
        known.push((name, id));
        id
    })
}
