//! Weights in the order of CUDA's product of floats with narrow integers (`_mixed_dtypes_linear`),
//! which is that of
//! `torch.quantization._quantized_conversions.quantized_weight_reorder_for_mixed_dtypes_linear_cutlass`.
//!
//! A column's numbers of 8 bits, or pairs of numbers of 4 bits, are bytes `[k]` or `[k / 2]`. Bytes
//! are permuted in blocks of 16; words of four bytes then alternate between 2 (or 4) columns, 64
//! bytes (or 32) of a column at a time. Within a word of 8 bits the bytes in the middle are
//! exchanged; of 4 bits, the lower halves of its bytes come before the upper ones. Numbers are
//! stored with 128 (or 8) added.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::interface::Index;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// Weights as they lie in memory.
pub struct Interleaved<'t> {
    /// uint8, `[k, n]`, or `[k, n / 2]` of numbers of 4 bits.
    pub bytes: &'t View,
    /// The columns' factors, contiguous.
    pub scale: &'t View,
    /// `n, k`, multiples of 64.
    pub size: [i64; 2],
}

/// Scaled weights, `[n, k]`, in the dtype of the factors.
pub fn write_out(cx: &Context, weights: Interleaved) -> Result<View> {
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
        /// Elements of the result.
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
                let word = self.word(column, byte >> 2, p.k >> 3, 4, 8);
                let (within, upper) = (byte & 3, k & 1);
                let stored = p.bytes.load((word << 2) + (upper << 1) + (within >> 1)).bitcast(ScalarType::U32);
                let shift = (within & 1).cast(ScalarType::U32) << 2;
                ((stored >> shift) & 15).bitcast(ScalarType::I32) - 8
            } else {
                let byte = permuted(k, |x| ((x & 6) << 1) | (x & 1) | ((x & 8) >> 2));
                // Pairs go to every other pair: 0, 1, 4, 5, .. first, then 2, 3, 6, 7, ..
                let word = self.word(column, byte >> 2, p.k >> 2, 2, 16);
                let within = byte & 3;
                let exchanged = ((within & 1) << 1) | (within >> 1);
                p.bytes.load((word << 2) + exchanged) - 128
            };
            p.out.store(i, number.cast(ScalarType::F32) * p.scale.load(column));
        });
    }
}

/// The place of byte `k` of a column, of which every block of 16 is permuted alike.
fn permuted<'b>(k: Value<'b>, place: impl Fn(Value<'b>) -> Value<'b>) -> Value<'b> {
    let within = k & 15;
    (k - within) + place(within)
}

impl Spec {
    /// The place of word `word` of a column, of which each has `words`: `columns` of them take
    /// turns, `run` words at a time.
    fn word<'b>(&self, column: Value<'b>, word: Value<'b>, words: Value<'b>, columns: u32, run: u32) -> Value<'b> {
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
