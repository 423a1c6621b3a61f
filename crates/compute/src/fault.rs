//! How kernels report an index, or another value, out of range. A kernel skips the element of a bad
//! index: it never clamps and never accesses memory out of range.

use crate::context::Context;
use dml_engine::{ArgumentBlock, FaultKind, Parameter};
use dml_kernel::{Builder, DType, Operand, Pointer, ScalarType, Value};
use std::cell::RefCell;

/// Kernel parameter through which a kernel reports errors.
pub struct Fault;

/// What a kernel reports, and the message.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// An index out of range, for the operator of this name.
    Index(&'static str),
    /// Another value, with this message.
    Value(&'static str),
}

/// The messages of values that kernels refuse.
pub mod refused {
    /// An integer is divided by 0.
    pub const DIVISOR: &str = "an integer is divided by 0";
    /// A standard deviation is below 0.
    pub const DEVIATION: &str = "a standard deviation is below 0";
    /// An input of binary cross-entropy is no probability.
    pub const INPUT: &str = "an input is not between 0 and 1";
    /// A target of binary cross-entropy is no probability.
    pub const TARGET: &str = "a target is not between 0 and 1";
}

/// The argument for [`Fault`]: where to report, and which error.
#[derive(Copy, Clone)]
pub struct FaultArgument {
    address: u64,
    number: u32,
}

/// The device's fault block in a kernel, and the error to report there.
#[derive(Copy, Clone)]
pub struct Reporter<'b> {
    b: &'b Builder,
    block: Pointer<'b>,
    number: Value<'b>,
}

impl Parameter for Fault {
    type Type = ();
    type Argument<'a> = FaultArgument;
    type Declared<'b> = Reporter<'b>;

    fn declare<'b>(b: &'b Builder, name: &str, (): &()) -> Reporter<'b> {
        Reporter { b, block: b.pointer(name, DType::U32), number: b.param(&format!("{name}_error"), ScalarType::U32) }
    }

    fn pass(argument: &FaultArgument, (): &(), block: &mut ArgumentBlock) {
        block.address(argument.address);
        block.scalar(argument.number.to_ne_bytes());
    }
}

impl<'b> Reporter<'b> {
    /// Reports an index that is not below `size` in dimension `dim` (a u32); see [`report`].
    pub fn report(&self, index: Value<'b>, size: Value<'b>, dim: impl Operand<'b>) {
        report(self.b, self.block, self.number, index, size, dim);
    }

    /// Reports the error of a [`Context::fault_of_value`].
    pub fn report_value(&self) {
        let zero = self.b.u32(0);
        report(self.b, self.block, self.number, zero, zero, 0);
    }
}

impl Context<'_> {
    /// The argument for a kernel that reports this refusal.
    pub fn fault_of(&self, refusal: Refusal) -> FaultArgument {
        match refusal {
            Refusal::Index(name) => self.fault_of_index_in(name),
            Refusal::Value(message) => self.fault_of_value(message),
        }
    }

    /// The argument for a kernel that reports bad indices as errors of [`Context::name`].
    pub fn fault_of_index(&self) -> FaultArgument {
        FaultArgument { address: self.device.fault_address(), number: known(self.name, self.index_fault) }
    }

    /// The argument for a kernel that reports bad indices as errors of the operator `name`.
    pub fn fault_of_index_in(&self, name: &'static str) -> FaultArgument {
        FaultArgument { address: self.device.fault_address(), number: known(name, FaultKind::Index) }
    }

    /// The argument for a kernel that reports a bad value with this message.
    pub fn fault_of_value(&self, message: &'static str) -> FaultArgument {
        FaultArgument { address: self.device.fault_address(), number: known(message, FaultKind::Value) }
    }
}

/// Writes an error into the device's fault block, unless the block has one. The engine raises the
/// error with the id `operator` (u32, see [`dml_engine::fault_id`]) at the next synchronisation or
/// launch.
///
/// `fault` is a u32 pointer, passed as [`Fault`]; `index` and `size` are integers, `dim` is a u32.
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
            // Through i64, which keeps the sign of negative indices.
            let value = value.cast(ScalarType::I64).bitcast(ScalarType::U64);
            fault.store(word, value.cast(ScalarType::U32));
            fault.store(word + 1, (value >> 32).cast(ScalarType::U32));
        }
        fault.store(6, dim);
    });
}

/// The engine's id for a fault, cached by thread.
fn known(name: &'static str, kind: FaultKind) -> u32 {
    thread_local! {
        static FAULT_IDS: RefCell<Vec<(&'static str, u32)>> = const { RefCell::new(Vec::new()) };
    }
    FAULT_IDS.with(|known| {
        let mut known = known.borrow_mut();
        if let Some(&(_, id)) = known.iter().find(|(n, _)| std::ptr::eq(*n, name)) {
            return id;
        }
        let id = dml_engine::fault_id(name, kind);
        known.push((name, id));
        id
    })
}
