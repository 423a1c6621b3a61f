//! Runs kernels on the host: the reference semantics of the language, for tests and for tools.
//!
//! `machine` is the state of one workgroup: `registers` has the values of its invocations and
//! `memory` the tensors. `control` runs statements, `execute` one instruction, `pointers` evaluates
//! pointers, `arithmetic` and `word` have the operations on numbers, and `matrix` the statements on
//! matrix registers.

mod arithmetic;
mod control;
mod execute;
mod function;
mod machine;
mod matrix;
mod memory;
mod pointers;
mod registers;
mod subnormals;
mod word;

pub use function::Function;
pub use subnormals::Subnormals;

use crate::ir::Kernel;
use machine::Machine;

/// The argument of a kernel's parameter.
#[derive(Debug)]
pub enum Argument<'a> {
    /// Memory of a pointer parameter. Two pointer parameters never alias.
    Memory(&'a mut [u8]),
    /// Bits of a number parameter.
    Number(u64),
}

/// Runs `groups` workgroups one after another, with subgroups of `subgroup_size` invocations, and
/// keeps subnormal numbers.
///
/// # Panics
///
/// When an argument does not match its parameter, or the kernel accesses memory beyond its
/// arguments.
pub fn run(kernel: &Kernel, groups: [u32; 3], subgroup_size: u32, arguments: &mut [Argument<'_>]) {
    run_with(kernel, groups, subgroup_size, Subnormals::Keep, arguments);
}

/// [`run`] with a choice about subnormal numbers.
///
/// # Panics
///
/// As [`run`].
pub fn run_with(
    kernel: &Kernel,
    groups: [u32; 3],
    subgroup_size: u32,
    subnormals: Subnormals,
    arguments: &mut [Argument<'_>],
) {
    assert_eq!(arguments.len(), kernel.params.len(), "arguments of kernel {}", kernel.name);
    let mut machine = Machine::new(kernel, groups, subgroup_size, subnormals, arguments);
    for z in 0..groups[2] {
        for y in 0..groups[1] {
            for x in 0..groups[0] {
                machine.workgroup([x, y, z]);
            }
        }
    }
}
