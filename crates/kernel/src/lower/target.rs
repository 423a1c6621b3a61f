//! What an adapter has of that which the language takes for granted.

use super::{words, workgroup};
use crate::ir::{Inst, Kernel};
use crate::types::{ScalarType, Word};
use std::borrow::Cow;

/// Promises about floats that an adapter can give and Vulkan leaves open otherwise. The kernel then asks for them.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct FloatModes {
    /// Rounding is to nearest even, in f32 and in f64.
    pub round_to_even: bool,
    /// Subnormal numbers are kept, in f32 and in f64.
    pub keep_subnormals: bool,
    /// Signed zeros, infinities and NaNs are kept by f32 operations: `x * 0` is not simplified to 0.
    pub keep_special_f32: bool,
    /// The same for f64.
    pub keep_special_f64: bool,
}

/// An adapter, as far as it changes a kernel's code. The default has everything.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// What it promises about floats.
    pub floats: FloatModes,
    /// 64-bit integers. An adapter without them has no f64 either.
    pub int64: bool,
    /// Loads and stores of 8 bits.
    pub storage8: bool,
    /// Loads and stores of 16 bits.
    pub storage16: bool,
    /// Invocations in a workgroup.
    pub invocations: u32,
}

impl Default for Target {
    fn default() -> Self {
        Self { floats: FloatModes::default(), int64: true, storage8: true, storage16: true, invocations: u32::MAX }
    }
}

impl Kernel {
    /// The kernel as the target can run it, and borrowed where that is as it is: a target that has everything gets the
    /// same SPIR-V as ever.
    ///
    /// What cannot be rewritten stays, and the emitted module [needs](crate::Needs) it: f64, atomics of 64 bits, operations of
    /// a subgroup on 64-bit integers, subgroups in workgroups that are too large, and all of a kernel with matrix registers.
    pub fn lowered(&self, target: &Target) -> Cow<'_, Kernel> {
        let mut kernel = Cow::Borrowed(self);
        if let Some(folded) = workgroup::fold(&kernel, target.invocations) {
            kernel = Cow::Owned(folded);
        }
        if kernel.matrices.is_empty() && lacks_words(&kernel, target) && can_do_without(&kernel, target) {
            kernel = Cow::Owned(words::lower(&kernel, target.int64));
        }
        kernel
    }
}

/// Whether the kernel has accesses or integers that the target has not.
fn lacks_words(kernel: &Kernel, target: &Target) -> bool {
    let narrow = |word, there: bool| !there && kernel.pointers.iter().any(|p| p.word == word);
    !target.int64 || narrow(Word::W8, target.storage8) || narrow(Word::W16, target.storage16)
}

fn can_do_without(kernel: &Kernel, target: &Target) -> bool {
    target.int64
        || kernel.values.iter().all(|value| {
            let wide = value.ty.scalar.bytes() == 8;
            value.ty.scalar != ScalarType::F64
                && !(wide
                    && matches!(
                        value.inst,
                        Inst::Atomic { .. } | Inst::CompareExchange { .. } | Inst::Subgroup(..) | Inst::ShuffleXor(..)
                    ))
        })
}
