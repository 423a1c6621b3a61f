//! Sums of products of scaled terms: where they are gathered, and how they become results again.
//!
//! Matrix units lose bits of long sums, so these are added up in float32 elsewhere after every
//! [run] of k.

use crate::matmul::operand::WIDE;
use dml_engine::interface::{ReadRange, U32, WriteRange};
use dml_engine::{AddressRange, ArgumentBlock, Parameter};
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value, Var};

/// The power of two that the largest element of a row (column) is scaled to: float16 ends at 2^16,
/// and rounding may reach the next power.
pub const TOP: i32 = 14;

/// The power of two by which low terms are larger than they count: they are normal numbers then.
pub const LIFT: i32 = 11;

/// The longest step of a tile along k: all divide it.
const STEP: u32 = 64;

/// Elements of k whose sums stay in matrix units, in whole steps of every tile.
///
/// Units cut bits off where plain sums round, so their error grows with the length and not with its
/// root. On an H100, in units of 2^-24 of the result's norm, it is 0.0205 for each element of a
/// run, and that of cuBLAS's float32 is `0.3 sqrt(k)`: runs are as long as keeps the first below
/// the second.
pub fn run(k: i64) -> u32 {
    let runs = ((k as f64).sqrt() / 14.0).ceil().max(1.0);
    ((k as f64 / runs).ceil() as u32).next_multiple_of(STEP)
}

/// The largest magnitudes of an operand's rows (columns).
#[derive(Copy, Clone, Debug)]
pub struct Largest {
    /// Bits of a float32 each.
    pub bits: AddressRange,
    /// Words from one matrix of the batch to the next; a multiple of [`WIDE`], as the address is of
    /// as many.
    pub batch: u32,
}

/// Of what a product of terms is made up.
#[derive(Copy, Clone, Debug)]
pub struct Sums {
    /// Of both operands.
    pub largest: [Largest; 2],
    /// Elements of a [run].
    pub run: u32,
    /// Room for a float32 for every element of every tile, where k is longer than a run.
    pub gathered: Option<AddressRange>,
}

/// [`Sums`] as a kernel's parameter.
pub struct Scales;

/// [`Sums`] in a kernel.
#[derive(Copy, Clone)]
pub struct ScalesParams<'b> {
    largest: [(Pointer<'b>, Value<'b>); 2],
    /// See [`Sums::run`].
    pub run: Value<'b>,
    /// See [`Sums::gathered`].
    pub gathered: Option<Pointer<'b>>,
}

impl Parameter for Scales {
    /// Whether sums are gathered.
    type Type = bool;
    type Argument<'a> = Sums;
    type Declared<'b> = ScalesParams<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, gathered: &bool) -> ScalesParams<'b> {
        let largest = ["a", "b"].map(|name| {
            let bits = ReadRange::declare(b, &format!("{name}_largest"), &DType::U32);
            (bits, U32::declare(b, &format!("{name}_apart"), &()))
        });
        ScalesParams {
            largest,
            run: U32::declare(b, "run", &()),
            gathered: Option::<WriteRange>::declare(b, "gathered", &gathered.then_some(DType::F32)),
        }
    }

    fn pass(sums: &Sums, gathered: &bool, block: &mut ArgumentBlock) {
        for Largest { bits, batch } in sums.largest {
            ReadRange::pass(&bits, &DType::U32, block);
            U32::pass(&batch, &(), block);
        }
        U32::pass(&sums.run, &(), block);
        Option::<WriteRange>::pass(&sums.gathered, &gathered.then_some(DType::F32), block);
    }
}

impl<'b> ScalesParams<'b> {
    /// Moves to one matrix of the batch, and to the tile that begins at `origin`, a row and a
    /// column.
    pub fn begin(&mut self, batch: Value<'b>, origin: [Value<'b>; 2]) {
        for ((bits, apart), origin) in self.largest.iter_mut().zip(origin) {
            *bits = bits.offset(batch * *apart + origin);
        }
    }

    /// The sums of neighbouring columns from `(m, n)` of the tile, a multiple of [`WIDE`], without
    /// the scales of their row and columns. Rounds where a result is subnormal only.
    pub fn undo(self, b: &'b Builder, m: Value<'b>, n: Value<'b>, sums: &[Value<'b>]) -> Vec<Value<'b>> {
        let [(rows, _), (columns, _)] = self.largest;
        let row = exponent(rows.load(m)) - 2 * TOP;
        let columns = columns.load_chunk(n >> WIDE.ilog2(), WIDE);
        let power = |exponent: Value<'b>| ((exponent + 127) << 23).bitcast(ScalarType::F32);
        sums.iter()
            .zip(columns)
            .map(|(&sum, column)| {
                // Sums are between 2^-50 and 2^62, or 0. Where the first product is subnormal, the
                // second is nothing.
                let times = (row + exponent(column)).max(b.i32(-252)).min(b.i32(252));
                let half = times >> 1;
                sum * power(half) * power(times - half)
            })
            .collect()
    }
}

/// What becomes of the sums of a run of k.
pub struct Gather<'b> {
    b: &'b Builder,
    /// The tile's place in memory, if there is more than one run; whether there was one before, and
    /// one will follow.
    gathered: Option<(Pointer<'b>, [Value<'b>; 2])>,
}

impl<'b> Gather<'b> {
    /// Of this workgroup's tile of so many elements; `runs`: whether there was one before, and one
    /// will follow.
    pub fn new(b: &'b Builder, scales: ScalesParams<'b>, runs: [Value<'b>; 2], elements: u32) -> Gather<'b> {
        let gathered = scales.gathered.map(|gathered| {
            let group = b.group_id(0) + b.group_count(0) * (b.group_id(1) + b.group_count(1) * b.group_id(2));
            (gathered.offset(group.cast(ScalarType::U64) * u64::from(elements)), runs)
        });
        Gather { b, gathered }
    }

    /// Adds the sums of the runs before to those of the tile's 16 bytes `unit`, and keeps them, or
    /// finishes the last ones.
    pub fn add(&self, unit: Value<'b>, sums: &[Value<'b>], finish: impl FnOnce(&[Value<'b>])) {
        let Some((place, [before, after])) = self.gathered else { return finish(sums) };
        let totals: Vec<Var<'b>> = sums.iter().map(|&sum| self.b.var(sum)).collect();
        self.b.if_(before, || {
            for (total, kept) in totals.iter().zip(place.load_chunk(unit, WIDE)) {
                total.set(total.get() + kept);
            }
        });
        let totals: Vec<_> = totals.iter().map(|total| total.get()).collect();
        self.b.if_else(after, || place.store_chunk(unit, &totals), || finish(&totals));
    }
}

/// The power of two that a magnitude, the bits of a finite float32, has reached, as an i32; of 0
/// that of less than the least.
pub fn exponent(magnitude: Value<'_>) -> Value<'_> {
    let normal = (magnitude >> 23).bitcast(ScalarType::I32) - 127;
    let subnormal = magnitude.highest_bit().bitcast(ScalarType::I32) - 149;
    magnitude.lt(0x80_0000).select(subnormal, normal)
}
