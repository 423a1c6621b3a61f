//! The range of numbers for which the transforms are accurate.
//!
//! A transform adds and subtracts numbers that the convolution itself never adds: an infinity
//! becomes a NaN in other results, huge numbers overflow though no result would, and a number 2^24
//! times as large as its neighbours cancels all of their digits. So each transform of the program's
//! tensors checks its numbers, and sets a flag if one is not finite or too large. The direct
//! product is then computed instead.

use crate::matmul::guard::FLAG_LOST;
use dml_kernel::ir::Atomic;
use dml_kernel::{Builder, Pointer, ScalarType, Value};

/// Magnitudes stay below 2^`LIMIT`. That is float32's number of bits, so that numbers around 1 keep
/// their significant digits relative to the largest. Nothing overflows then: a transform makes
/// numbers at most four times as large, the products of two are below `2^4 * 2^48`, sums of
/// [`MAX_TERMS`] products below 2^76, and the transforms of these below 2^80.
const LIMIT: u32 = 24;

/// Maximum number of products in a sum.
pub const MAX_TERMS: i64 = 1 << 24;

/// Sets the flag at `word` if one of the float32 numbers is not finite or too large.
pub fn check<'b>(b: &'b Builder, numbers: impl IntoIterator<Item = Value<'b>>, word: Pointer<'b>) {
    // The bits of magnitudes are ordered as integers, with infinity above all numbers and NaN above
    // infinity; and no driver flushes an integer to 0.
    let magnitudes = numbers.into_iter().map(|x| x.bitcast(ScalarType::U32) & 0x7fff_ffffu32);
    let Some(largest) = magnitudes.reduce(|x, y| x.max(y)) else { return };
    b.if_(largest.ge(b.u32((127 + LIMIT) << 23)), || {
        // A load before the atomic operation: if many numbers are out of range, not every
        // invocation has to wait for the word.
        b.if_(word.load(0).eq(0), || {
            word.atomic(Atomic::Or, 0, FLAG_LOST);
        });
    });
}
