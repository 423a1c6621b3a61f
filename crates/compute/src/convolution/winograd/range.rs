//! Which numbers may go through the transforms.
//!
//! A transform adds and subtracts numbers that the convolution itself never adds: of an infinity it
//! makes a NaN beside it, where numbers are huge it overflows though no result would, and of a
//! number 2^24 times as large as its neighbours it leaves these no digits. So each transform of
//! what the program gave looks at its numbers, and sets a word if one is not finite or too large;
//! the direct product is then computed after all.

use crate::matmul::guard::LOST;
use dml_kernel::ir::Atomic;
use dml_kernel::{Builder, Pointer, ScalarType, Value};

/// The power of two that magnitudes stay below: as many bits as float32 has, so that numbers about
/// 1 beside them keep the digits that matter. Nothing overflows then: a transform makes at most
/// four times as large numbers, the products of two are below `2^4 * 2^48`, sums of [`MOST_TERMS`]
/// of them below 2^76, and what becomes of these below 2^80.
const LIMIT: u32 = 24;

/// Products that are added up at most.
pub const MOST_TERMS: i64 = 1 << 24;

/// Sets word 0 where one of the numbers, float32, is not finite or too large.
pub fn check<'b>(b: &'b Builder, numbers: impl IntoIterator<Item = Value<'b>>, word: Pointer<'b>) {
    // As integers magnitudes are in order, infinities above the numbers and NaN above these; and no
    // driver flushes one.
    let magnitudes = numbers.into_iter().map(|x| x.bitcast(ScalarType::U32) & 0x7fff_ffffu32);
    let Some(largest) = magnitudes.reduce(|x, y| x.max(y)) else { return };
    b.if_(largest.ge(b.u32((127 + LIMIT) << 23)), || {
        // Where all numbers are such, not every invocation need wait for the word.
        b.if_(word.load(0).eq(0), || {
            word.atomic(Atomic::Or, 0, LOST);
        });
    });
}
