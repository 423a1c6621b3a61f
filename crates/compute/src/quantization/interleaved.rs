//! Weights in the order of CUTLASS's mixed-input matrix product.
//!
//! A column's numbers of 8 bits, or pairs of numbers of 4 bits, are bytes `[k]` or `[k / 2]`. Bytes
//! are permuted in blocks of 16; words of four bytes then alternate between 2 (or 4) columns, 64
//! (or 32) bytes of a column at a time. Within a word of 8-bit numbers the middle bytes are
//! exchanged; of 4-bit numbers, the lower halves of its bytes come before the upper ones. Numbers
//! are stored with 128 (or 8) added.

use crate::context::Context;
use crate::error::Result;
use crate::pointwise::function::Function;
use crate::pointwise::kernel::{self, Input as Operand};
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::quantization::packed_weights::multiply_rows;
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::interface::Index;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// Weights in this memory order.
pub struct Interleaved<'t> {
    /// uint8, `[k, n]`, or `[k, n / 2]` for numbers of 4 bits.
    pub bytes: &'t View,
    /// The columns' scales, contiguous.
    pub scale: &'t View,
    /// `n, k`, multiples of 64.
    pub size: [i64; 2],
}

/// `out = activation(x @ w^T + bias)` of `x` (`[m, k]`, contiguous) and the weights, which are
/// scaled and rounded to the dtype of `x`; `bias` are `n` numbers. The activation is of sums that
/// are not rounded yet.
pub fn multiply(
    cx: &Context,
    x: &View,
    weights: Interleaved,
    bias: Option<&View>,
    activation: Option<&'static Function>,
    out: &View,
) -> Result<()> {
    let weights = write_out(cx, weights)?;
    let Some(function) = activation else { return multiply_rows(cx, x, &weights, bias, out) };
    let sums = cx.empty(DType::F32, &out.sizes)?;
    multiply_rows(cx, x, &weights, bias, &sums)?;
    kernel::run(cx, function, &[out], &[Operand::Tensor(sums)], DType::F32)
}

/// Returns scaled weights, `[n, k]`, in the dtype of the scales.
fn write_out(cx: &Context, weights: Interleaved) -> Result<View> {
    let Interleaved { bytes, scale, size: [n, k] } = weights;
    let out = cx.empty(scale.dtype, &[n, k])?;
    let count = out.numel();
    let spec = Spec { dtype: scale.dtype, nibbles: bytes.sizes[1] != n, index: index_type(count) };
    cx.run_threads(&spec, &Arguments { bytes, scale, out: &out, k, count }, count as u64)?;
    Ok(out)
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    dtype: DType,
    /// Numbers have 4 bits.
    nibbles: bool,
    index: ScalarType,
}

parameters! {
    Spec as s => Arguments, Parameters {
        bytes: Input = DType::U8,
        scale: Input = s.dtype,
        out: Output = s.dtype,
        k: Index = s.index,
        /// Number of elements of the result.
        count: Index = s.index,
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "deinterleave_weight"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let i = linear_id(b, self.index);
        b.if_(i.lt(p.count), || {
            let (column, k) = (i / p.k, i % p.k);
            let number = if self.nibbles {
                let byte = permuted(k >> 1, |x| ((x & 3) << 2) | (x >> 2));
                let word = self.word_offset(column, byte >> 2, p.k >> 3, 4, 8);
                let (within, upper) = (byte & 3, k & 1);
                let stored = p.bytes.load((word << 2) + (upper << 1) + (within >> 1)).bitcast(ScalarType::U32);
                let shift = (within & 1).cast(ScalarType::U32) << 2;
                ((stored >> shift) & 15).bitcast(ScalarType::I32) - 8
            } else {
                let byte = permuted(k, |x| ((x & 6) << 1) | (x & 1) | ((x & 8) >> 2));
                // Pairs go to every other pair: 0, 1, 4, 5, .. first, then 2, 3, 6, 7, ..
                let word = self.word_offset(column, byte >> 2, p.k >> 2, 2, 16);
                let within = byte & 3;
                let exchanged = ((within & 1) << 1) | (within >> 1);
                p.bytes.load((word << 2) + exchanged) - 128
            };
            p.out.store(i, number.cast(ScalarType::F32) * p.scale.load(column));
        });
    }
}

/// The offset of byte `k` of a column; every block of 16 bytes is permuted in the same way.
fn permuted<'b>(k: Value<'b>, place: impl Fn(Value<'b>) -> Value<'b>) -> Value<'b> {
    let within = k & 15;
    (k - within) + place(within)
}

impl Spec {
    /// The place of word `word` of a column, of which each has `words`: `columns` of them take
    /// turns, `run` words at a time.
    fn word_offset<'b>(
        &self,
        column: Value<'b>,
        word: Value<'b>,
        words: Value<'b>,
        columns: u32,
        run: u32,
    ) -> Value<'b> {
        let first = column / columns * (words * columns);
        first + word / run * (columns * run) + column % columns * run + word % run
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for dtype in [DType::F16, DType::BF16] {
            for (nibbles, index) in [(false, ScalarType::U32), (true, ScalarType::U64)] {
                accepted(&Spec { dtype, nibbles, index }.build());
            }
        }
    }
}
