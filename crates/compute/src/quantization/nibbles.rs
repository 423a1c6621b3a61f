//! Weights of 4 bits, with a scale and an offset for every group of adjacent weights along k:
//! dequantised, or multiplied by a few rows.
//!
//! A weight is `(level - 8) * scale + offset`, rounded to the dtype of scale and offset. The levels
//! of a row are consecutive, two a byte, the first one in the upper half.

use crate::context::Context;
use crate::error::Result;
use crate::matmul::gemv::MAX_ROWS;
use crate::movement::copy::contiguous;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::quantization::packed_weights::multiply_rows;
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::{folded, linear_id};
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value, convert};

/// Levels in a word.
const LEVELS_PER_WORD: u32 = 8;

/// Invocations that share a row of weights.
const ALONG_K: u32 = 32;

/// Rows of weights of a workgroup.
const ROWS: u32 = 4;

/// Weights in memory.
pub struct Nibbles<'t> {
    /// The levels: int32, contiguous.
    pub words: &'t View,
    /// Scale and offset, `[k / group, n, 2]`, contiguous.
    pub parameters: &'t View,
    /// Adjacent weights along k with one scale and offset: a multiple of 8.
    pub group: i64,
    /// `n, k`
    pub size: [i64; 2],
}

/// `out = x @ w^T` of `x` (`[m, k]`) and the weights, which are rounded to the dtype of `x`; `x`
/// and `out` (`[m, n]`) are contiguous.
pub fn multiply(cx: &Context, x: &View, weights: Nibbles, out: &View) -> Result<()> {
    if x.sizes[0] <= MAX_ROWS && weights.size[1] > 0 {
        small_product(cx, x, weights, out)
    } else {
        multiply_rows(cx, x, &write_out(cx, weights)?, None, out)
    }
}

/// The weights, `[n, k]`.
fn write_out(cx: &Context, weights: Nibbles) -> Result<View> {
    let Nibbles { words, parameters, group, size: [n, k] } = weights;
    let out = cx.empty(parameters.dtype, &[n, k])?;
    let spec = Dequantize { dtype: parameters.dtype, index: index_type(out.numel()) };
    let (count, each) = (words.numel(), i64::from(LEVELS_PER_WORD));
    let arguments = WriteOutArguments { words, parameters, out: &out, row: k / each, group: group / each, n, count };
    cx.run_threads(&spec, &arguments, count as u64)?;
    Ok(out)
}

/// Writes `x @ w^T`, for at most four rows of `x` (`[m, k]`, contiguous), to `out` (`[m, n]`,
/// contiguous).
fn small_product(cx: &Context, x: &View, weights: Nibbles, out: &View) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    // Loads are vectors of four elements.
    let x = &if x.data.is_multiple_of(4 * x.element_size()) { x.clone() } else { contiguous(cx, x)? };
    let Nibbles { words, parameters, group, size: [n, k] } = weights;
    let spec = SmallProduct { dtype: x.dtype, rows: x.sizes[0] as u32, index: index_type(n * k) };
    let each = i64::from(LEVELS_PER_WORD);
    let (row, group) = (k / each, group / each);
    let arguments = MultiplyFewArguments { words, parameters, x, out, row: row as u32, group: group as u32, n };
    cx.run(&spec, &arguments, folded((n as u64).div_ceil(u64::from(ROWS))))
}

/// The eight weights of a word; `at` is the index of their scale.
fn weights<'b>(word: Value<'b>, parameters: Pointer<'b>, at: Value<'b>, dtype: DType) -> Vec<Value<'b>> {
    let (scale, offset) = (parameters.load(at), parameters.load(at + 1));
    let word = word.bitcast(ScalarType::U32);
    (0..LEVELS_PER_WORD)
        .map(|i| {
            // Bytes are in order, the upper half of each first.
            let shift = 8 * (i / 2) + if i % 2 == 0 { 4 } else { 0 };
            let level = ((word >> shift) & 15).cast(ScalarType::F32) - 8.0;
            convert(level * scale + offset, dtype)
        })
        .collect()
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Dequantize {
    dtype: DType,
    index: ScalarType,
}

parameters! {
    Dequantize as s => WriteOutArguments, WriteOutParameters {
        words: Input = DType::I32,
        parameters: Input = s.dtype,
        out: Output = s.dtype,
        /// Words of a row.
        row: Index = s.index,
        /// Words of a group.
        group: Index = s.index,
        n: Index = s.index,
        /// Number of words.
        count: Index = s.index,
    }
}

impl KernelSpec for Dequantize {
    fn name(&self) -> &'static str {
        "unpack_int4"
    }

    fn write<'b>(&self, b: &'b Builder, p: WriteOutParameters<'b>) {
        let i = linear_id(b, self.index);
        b.if_(i.lt(p.count), || {
            let (row, group) = (i / p.row, i % p.row / p.group);
            let values = weights(p.words.load(i), p.parameters, (group * p.n + row) * 2, self.dtype);
            for (at, four) in values.chunks(4).enumerate() {
                p.out.store_chunk(i * 2 + at as u32, four);
            }
        });
    }
}

/// Neighbouring invocations iterate along a row of weights, one word each at a time; their sums are
/// reduced in shared memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SmallProduct {
    dtype: DType,
    /// Rows of the first operand.
    rows: u32,
    index: ScalarType,
}

parameters! {
    SmallProduct as s => MultiplyFewArguments, MultiplyFewParameters {
        words: Input = DType::I32,
        parameters: Input = s.dtype,
        x: Input = s.dtype,
        out: Output = s.dtype,
        /// Words of a row of weights.
        row: U32,
        /// Words of a group.
        group: U32,
        n: Index = s.index,
    }
}

impl KernelSpec for SmallProduct {
    fn name(&self) -> &'static str {
        "gemv int4"
    }

    fn workgroup(&self) -> [u32; 3] {
        [ALONG_K * ROWS, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: MultiplyFewParameters<'b>) {
        let wide = |x: Value<'b>| x.cast(self.index);
        let (own, part) = (b.local_id(0) / ALONG_K, b.local_id(0) % ALONG_K);
        let column = wide(b.group_id(0) + b.group_id(1) * b.group_count(0)) * ROWS + wide(own);
        let exists = column.lt(p.n);
        let zero = b.float(ScalarType::F32, 0.0);
        let sums: Vec<_> = (0..self.rows).map(|_| b.var(zero)).collect();
        b.if_(exists, || {
            b.for_(part, p.row, ALONG_K, |word| {
                let at = (wide(word / p.group) * p.n + column) * 2;
                let levels = p.words.load(column * wide(p.row) + wide(word));
                let values = weights(levels, p.parameters, at, self.dtype);
                for (row, sum) in sums.iter().enumerate() {
                    let first = (p.row * row as u32 + word) * 2;
                    let x = [0, 1].map(|half| p.x.load_chunk(first + half, 4)).concat();
                    let terms = x.iter().zip(&values).map(|(&x, &value)| x * value);
                    sum.set(terms.fold(sum.get(), |total, term| total + term));
                }
            });
        });
        let shared = b.shared(ScalarType::F32, 1, ALONG_K * ROWS * self.rows);
        let slot = |row: u32| b.local_id(0) + row * ALONG_K * ROWS;
        for (row, sum) in (0..self.rows).zip(&sums) {
            shared.store(slot(row), sum.get());
        }
        let mut half = ALONG_K / 2;
        while half > 0 {
            b.barrier();
            b.if_(part.lt(half), || {
                for (row, sum) in (0..self.rows).zip(&sums) {
                    let total = sum.get() + shared.load(slot(row) + half);
                    sum.set(total);
                    shared.store(slot(row), total);
                }
            });
            half /= 2;
        }
        b.if_(part.eq(0) & exists, || {
            for (row, sum) in (0..self.rows).zip(&sums) {
                p.out.store(p.n * row + column, sum.get());
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index, rows) in
            [(DType::F16, ScalarType::U32, 1), (DType::BF16, ScalarType::U64, 4), (DType::F32, ScalarType::U32, 3)]
        {
            accepted(&Dequantize { dtype, index }.build());
            accepted(&SmallProduct { dtype, rows, index }.build());
        }
    }
}
