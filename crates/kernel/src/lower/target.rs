//! The features of an adapter that a kernel may need, and the choice of rewritings.

use super::{doubles, words, workgroup};
use crate::ir::{Inst, Kernel};
use crate::types::{ScalarType, Word};
use std::borrow::Cow;

/// Guarantees about float arithmetic that are optional in Vulkan and that an adapter supports.
/// Emitted modules require them.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct FloatModes {
    /// Rounding is to nearest even, in f32 and in f64.
    pub round_to_even: bool,
    /// Subnormal numbers are kept, in f32 and in f64.
    pub keep_subnormals: bool,
    /// Signed zeros, infinities and NaNs are kept by f32 operations: `x * 0` is not simplified
    /// to 0.
    pub keep_special_f32: bool,
    /// The same for f64.
    pub keep_special_f64: bool,
    /// Conversions between f32 and f16 round to nearest even and keep subnormal numbers, infinities
    /// and NaNs.
    pub halves: bool,
}

/// The features of an adapter that change a kernel's code. The default has every feature.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its guarantees about float arithmetic.
    pub floats: FloatModes,
    /// 64-bit integers.
    pub int64: bool,
    /// 64-bit floats. Kernels with them need 64-bit integers, too.
    pub float64: bool,
    /// Loads and stores of 8 bits.
    pub storage8: bool,
    /// Loads and stores of 16 bits.
    pub storage16: bool,
    /// The largest number of invocations in a workgroup.
    pub invocations: u32,
    /// Registers are few: loops load parameters again that are in memory.
    pub reloads_params: bool,
    /// Registers are few: parameters in memory that one branch uses alone are loaded there.
    pub late_params: bool,
    /// Sums of 64-bit integers take no constants: parameters that are loaded again have offsets of
    /// 32 bits.
    pub narrow_offsets: bool,
    /// The most values of a kernel that computes doubles in software.
    pub most_values: usize,
}

impl Default for Target {
    fn default() -> Self {
        Self {
            floats: FloatModes::default(),
            int64: true,
            float64: true,
            storage8: true,
            storage16: true,
            invocations: u32::MAX,
            reloads_params: false,
            late_params: false,
            narrow_offsets: false,
            most_values: MOST_VALUES,
        }
    }
}

impl Kernel {
    /// The kernel, rewritten for the target; borrowed if nothing changes.
    ///
    /// Some uses of features cannot be rewritten. They stay, and the emitted module
    /// [needs](crate::Needs) the features: f64 in kernels that would become too large, 64-bit
    /// atomics, subgroup operations on 64-bit numbers, subgroups in workgroups that are too large,
    /// and all features in a kernel with matrix registers.
    pub fn lowered(&self, target: &Target) -> Cow<'_, Kernel> {
        let kernel = match workgroup::fold(self, target.invocations) {
            Some(folded) => Cow::Owned(folded),
            None => Cow::Borrowed(self),
        };
        if !target.float64 && doubles::uses_doubles(&kernel) && doubles::can_lower(&kernel) {
            let without = in_words(Cow::Owned(doubles::lower(&kernel)), target);
            if without.values.len() <= target.most_values {
                return without;
            }
        }
        in_words(kernel, target)
    }
}

/// The most values of a kernel with software arithmetic for doubles where no driver's limit is
/// less: drivers take seconds to compile larger kernels. A sum or a product takes a hundred values,
/// or three hundred with 64-bit integers as pairs of words.
const MOST_VALUES: usize = 100_000;

fn in_words<'k>(kernel: Cow<'k, Kernel>, target: &Target) -> Cow<'k, Kernel> {
    if kernel.matrices.is_empty() && lacks_words(&kernel, target) && can_do_without(&kernel, target) {
        Cow::Owned(words::lower(&kernel, target.int64))
    } else {
        kernel
    }
}

/// Whether the kernel has accesses or integers that the target does not support.
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
