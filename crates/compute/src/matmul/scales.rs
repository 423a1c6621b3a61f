//! Sums of products of scaled terms: where they are accumulated, and how they are scaled back.
//!
//! Matrix units lose bits in long sums, so sums are added up in float32 outside of the units after
//! every [run] of k.

use crate::matmul::operand::VECTOR;
use dml_engine::interface::{ReadRange, U32, WriteRange};
use dml_engine::{AddressRange, ArgumentBlock, Parameter};
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value, Var};

/// The exponent to which the largest element of a row (column) is scaled: float16 ends at 2^16, and
/// rounding may reach the next power of two.
pub const MAX_EXPONENT: i32 = 14;

/// The exponent by which low terms are scaled up, so that they are normal numbers.
pub const LOW_TERM_EXPONENT: i32 = 11;

/// The largest step of a tile along k, which all steps divide.
const STEP: u32 = 64;

/// Elements of k that matrix units sum up before sums are accumulated: a multiple of every tile's
/// step.
///
/// Units truncate where other sums round, so their error grows with the length and not with its
/// root. On an H100, in multiples of 2^-24 of the result's norm, it is 0.0205 for each element of a
/// run, and that of cuBLAS's float32 is `0.3 sqrt(k)`: runs are as long as the first stays below
/// the second.
pub fn run(k: i64) -> u32 {
    let runs = ((k as f64).sqrt() / 14.0).ceil().max(1.0);
    ((k as f64 / runs).ceil() as u32).next_multiple_of(STEP)
}

/// The largest magnitude of each of an operand's rows (columns).
#[derive(Copy, Clone, Debug)]
pub struct MaxMagnitudes {
    /// The magnitudes, as bits of float32.
    pub bits: AddressRange,
    /// Distance in words between two matrices of the batch; a multiple of [`VECTOR`], and the
    /// address is aligned to as many words.
    pub batch: u32,
}

/// Buffers and sizes for the sums of a product of terms.
#[derive(Copy, Clone, Debug)]
pub struct Sums {
    /// The largest magnitudes of both operands.
    pub largest: [MaxMagnitudes; 2],
    /// Elements of a [run].
    pub run: u32,
    /// Memory for a float32 for every element of every tile, if k is longer than a run.
    pub accumulator_buffer: Option<AddressRange>,
}

/// Kernel parameter: [`Sums`].
pub struct Scales;

/// [`Sums`] in a kernel.
#[derive(Copy, Clone)]
pub struct ScalesParams<'b> {
    largest: [(Pointer<'b>, Value<'b>); 2],
    /// See [`Sums::run`].
    pub run: Value<'b>,
    /// See [`Sums::accumulator_buffer`].
    pub accumulator_buffer: Option<Pointer<'b>>,
}

impl Parameter for Scales {
    /// Whether sums are accumulated in memory after each run.
    type Type = bool;
    type Argument<'a> = Sums;
    type Declared<'b> = ScalesParams<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, uses_accumulator_buffer: &bool) -> ScalesParams<'b> {
        let largest = ["a", "b"].map(|name| {
            let bits = ReadRange::declare(b, &format!("{name}_largest"), &DType::U32);
            (bits, U32::declare(b, &format!("{name}_apart"), &()))
        });
        ScalesParams {
            largest,
            run: U32::declare(b, "run", &()),
            accumulator_buffer: Option::<WriteRange>::declare(
                b,
                "gathered",
                &uses_accumulator_buffer.then_some(DType::F32),
            ),
        }
    }

    fn pass(sums: &Sums, uses_accumulator_buffer: &bool, block: &mut ArgumentBlock) {
        for MaxMagnitudes { bits, batch } in sums.largest {
            ReadRange::pass(&bits, &DType::U32, block);
            U32::pass(&batch, &(), block);
        }
        U32::pass(&sums.run, &(), block);
        Option::<WriteRange>::pass(&sums.accumulator_buffer, &uses_accumulator_buffer.then_some(DType::F32), block);
    }
}

impl<'b> ScalesParams<'b> {
    /// Advances to one matrix of the batch, and to the tile that begins at `origin`, a row and a
    /// column.
    pub fn begin(&mut self, batch: Value<'b>, origin: [Value<'b>; 2]) {
        for ((bits, apart), origin) in self.largest.iter_mut().zip(origin) {
            *bits = bits.offset(batch * *apart + origin);
        }
    }

    /// Scales sums back: those of adjacent columns from `(m, n)` of the tile on, where `n` is a
    /// multiple of [`VECTOR`]. Rounds only if a result is subnormal.
    pub fn undo(self, b: &'b Builder, m: Value<'b>, n: Value<'b>, sums: &[Value<'b>]) -> Vec<Value<'b>> {
        let [(rows, _), (columns, _)] = self.largest;
        let row = exponent(rows.load(m)) - 2 * MAX_EXPONENT;
        let columns = columns.load_chunk(n >> VECTOR.ilog2(), VECTOR);
        let power = |exponent: Value<'b>| ((exponent + 127) << 23).bitcast(ScalarType::F32);
        sums.iter()
            .zip(columns)
            .map(|(&sum, column)| {
                // Sums are between 2^-50 and 2^62, or 0. If the first product is subnormal, the
                // second is 0.
                let times = (row + exponent(column)).max(b.i32(-252)).min(b.i32(252));
                let half = times >> 1;
                sum * power(half) * power(times - half)
            })
            .collect()
    }
}

/// Accumulates the sums of the runs of k.
pub struct RunAccumulator<'b> {
    b: &'b Builder,
    /// The tile's buffer, if there is more than one run; and whether there is a run before this
    /// one, and one after it.
    buffer: Option<(Pointer<'b>, [Value<'b>; 2])>,
}

impl<'b> RunAccumulator<'b> {
    /// For this workgroup's tile of `elements` elements. `runs`: whether there is a run before this
    /// one, and one after it.
    pub fn new(b: &'b Builder, scales: ScalesParams<'b>, runs: [Value<'b>; 2], elements: u32) -> RunAccumulator<'b> {
        let buffer = scales.accumulator_buffer.map(|buffer| {
            let group = b.group_id(0) + b.group_count(0) * (b.group_id(1) + b.group_count(1) * b.group_id(2));
            (buffer.offset(group.cast(ScalarType::U64) * u64::from(elements)), runs)
        });
        RunAccumulator { b, buffer }
    }

    /// Adds the sums of earlier runs to those of the 16-byte vector `unit` of the tile. Stores the
    /// result, or after the last run passes it to `finish`.
    pub fn add(&self, unit: Value<'b>, sums: &[Value<'b>], finish: impl FnOnce(&[Value<'b>])) {
        let Some((place, [before, after])) = self.buffer else { return finish(sums) };
        let totals: Vec<Var<'b>> = sums.iter().map(|&sum| self.b.var(sum)).collect();
        self.b.if_(before, || {
            for (total, kept) in totals.iter().zip(place.load_chunk(unit, VECTOR)) {
                total.set(total.get() + kept);
            }
        });
        let totals: Vec<_> = totals.iter().map(|total| total.get()).collect();
        self.b.if_else(after, || place.store_chunk(unit, &totals), || finish(&totals));
    }
}

/// The exponent of a magnitude, given as the bits of a finite float32, as an i32; of 0 one below
/// the least.
pub fn exponent(magnitude: Value<'_>) -> Value<'_> {
    let normal = (magnitude >> 23).bitcast(ScalarType::I32) - 127;
    let subnormal = magnitude.highest_bit().bitcast(ScalarType::I32) - 149;
    magnitude.lt(0x80_0000).select(subnormal, normal)
}
