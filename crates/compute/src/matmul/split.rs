//! Kernels that convert float32 operands to terms of 16 bits, for matrix units.
//!
//! A number is scaled by the power of two that brings the largest of its row (column) close to
//! float16's limit, and becomes the sum of two float16: the rounded number, and the remainder,
//! scaled up by 2^[`LOW_TERM_EXPONENT`] (Ootomo and Yokota, "Recovering single precision accuracy
//! from Tensor Cores while surpassing the FP32 theoretical peak performance", 2022). Or it is
//! rounded to one bfloat16. All operations are on integers and normal numbers, so that the bits are
//! the same on every adapter.
//!
//! Terms are in the memory order of the operand, contiguous along k or along its rows (columns),
//! padded to whole tiles.

use crate::matmul::guard::{FLAG_LOST, FLAG_SMALL};
use crate::matmul::operand::{Access, Axis, VECTOR};
use crate::matmul::reader::{Lane, Operand, Reader};
use crate::matmul::scales::{LOW_TERM_EXPONENT, MAX_EXPONENT, exponent};
use crate::primitives::kernel::KernelSpec;
use dml_engine::interface::{ReadRange, U32, U64, WriteRange};
use dml_engine::parameters;
use dml_kernel::dense::GROUP;
use dml_kernel::{Atomic, Builder, DType, Pointer, ScalarType, Value, convert};

/// Rows (columns) of a workgroup's square of elements, and its step along k.
pub const TILE_SIZE: u32 = 64;

/// Elements of k that a workgroup searches for the largest.
pub const K_PER_WORKGROUP: u32 = 8 * TILE_SIZE;

/// Vectors of elements of an invocation.
const GROUPS: u32 = TILE_SIZE * TILE_SIZE / VECTOR / GROUP;

/// A vector of [`VECTOR`] elements along the operand's axis.
struct Group<'b> {
    lanes: Vec<Lane<'b>>,
    /// Row (column) and k of the first element, relative to the workgroup's square.
    outer: Value<'b>,
    k: Value<'b>,
}

impl<'b> Group<'b> {
    /// An invocation's vectors of the square whose first row (column) is `origin`. Past `size` the
    /// last row is read again.
    fn all(b: &'b Builder, reader: &Reader<'b>, origin: Value<'b>, size: Value<'b>) -> Vec<Group<'b>> {
        let along_k = reader.access.axis == Axis::Inner;
        let step = reader.access.width();
        let group = |i: u32| {
            let group = b.local_id(0) + i * GROUP;
            let (across, along) = (group / (TILE_SIZE / VECTOR), (group & (TILE_SIZE / VECTOR - 1)) * VECTOR);
            let (outer, k) = if along_k { (across, along) } else { (along, across) };
            let lane = |next: u32| {
                let (outer, k) = if along_k { (outer, k + next) } else { (outer + next, k) };
                let last = size - if along_k { 1 } else { step };
                reader.lane(b, b.u32(0), (origin + outer).min(last), k)
            };
            Group { lanes: (0..VECTOR).step_by(step as usize).map(lane).collect(), outer, k }
        };
        (0..GROUPS).map(group).collect()
    }

    /// Loads the vector's elements of the square at `k0`; zeros from `end` on.
    fn fetch(&self, b: &'b Builder, reader: &Reader<'b>, k0: Value<'b>, end: Value<'b>) -> Vec<Value<'b>> {
        let tile = reader.tile(k0);
        self.lanes.iter().flat_map(|lane| reader.fetch(b, tile, k0, lane, Some(end))).collect()
    }
}

/// Specialisation of the search for the largest magnitudes: everything that changes its code.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct LargestSpec {
    /// How the operand's elements are loaded.
    pub access: Access,
    /// Integer type of offsets.
    pub index: ScalarType,
}

parameters! {
    /// The search for the largest magnitudes.
    pub LargestSpec as s => LargestArguments, LargestParameters {
        /// The operand.
        operand: ReadRange = s.access.dtype,
        /// Offsets of its elements.
        elements: Operand = (s.access, s.index),
        /// Number of its rows (columns).
        outer: U32,
        /// Its length along k.
        k: U32,
        /// The largest finite magnitude of each row (column), as bits of float32; has to be zeros
        /// before.
        largest: WriteRange = DType::U32,
        /// Distance in words between two matrices of the batch in `largest`.
        apart: U32,
    }
}

/// Workgroups: dimension 0 is [`K_PER_WORKGROUP`]s of k, 1 is [`TILE_SIZE`]s of rows (columns), 2
/// is the batch.
impl KernelSpec for LargestSpec {
    fn name(&self) -> &'static str {
        "gemm largest"
    }

    fn write<'b>(&self, b: &'b Builder, p: LargestParameters<'b>) {
        let mut reader = p.elements.reader(p.operand);
        let (batch, origin, lane) = (b.group_id(2), b.group_id(1) * TILE_SIZE, b.local_id(0));
        reader.begin(batch, b.u32(0));
        let groups = Group::all(b, &reader, origin, p.outer);
        // Elements of a vector along k belong to one row.
        let places = if self.access.axis == Axis::Inner { 1 } else { VECTOR as usize };
        let found: Vec<Vec<_>> = groups.iter().map(|_| (0..places).map(|_| b.var(b.u32(0))).collect()).collect();
        let begin = b.group_id(0) * K_PER_WORKGROUP;
        b.for_(begin, (begin + K_PER_WORKGROUP).min(p.k), TILE_SIZE, |k0| {
            for (group, found) in groups.iter().zip(&found) {
                for (i, x) in group.fetch(b, &reader, k0, p.k).into_iter().enumerate() {
                    let magnitude = x.bitcast(ScalarType::U32) & 0x7fff_ffffu32;
                    let finite = magnitude.lt(0x7f80_0000u32).select(magnitude, 0);
                    let found = found[i % places];
                    found.set(found.get().max(finite));
                }
            }
        });
        let shared = b.shared(ScalarType::U32, 1, TILE_SIZE);
        b.if_(lane.lt(TILE_SIZE), || shared.store(lane, 0));
        b.barrier();
        for (group, found) in groups.iter().zip(&found) {
            for (i, found) in found.iter().enumerate() {
                shared.atomic(Atomic::Max, group.outer + i as u32, found.get());
            }
        }
        b.barrier();
        b.if_(lane.lt(TILE_SIZE), || {
            p.largest.atomic(Atomic::Max, batch * p.apart + origin + lane, shared.load(lane));
        });
    }
}

/// The format to which numbers are converted.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// Two float16 terms.
    Halves,
    /// One bfloat16 term.
    Rounded,
}

impl Form {
    /// The terms' dtype.
    pub fn dtype(self) -> DType {
        match self {
            Form::Halves => DType::F16,
            Form::Rounded => DType::BF16,
        }
    }

    /// Number of terms for each number.
    pub fn terms(self) -> i64 {
        match self {
            Form::Halves => 2,
            Form::Rounded => 1,
        }
    }
}

/// Specialisation of the split: everything that changes its code.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// The format of the terms.
    pub form: Form,
    /// How the operand's elements are loaded.
    pub access: Access,
    /// Integer type of offsets.
    pub index: ScalarType,
}

impl Spec {
    fn in_halves<T>(self, x: T) -> Option<T> {
        (self.form == Form::Halves).then_some(x)
    }
}

parameters! {
    /// The split.
    pub Spec as s => Arguments, Parameters {
        /// The operand.
        operand: ReadRange = s.access.dtype,
        /// Offsets of its elements.
        elements: Operand = (s.access, s.index),
        /// Number of its rows (columns).
        outer: U32,
        /// Its length along k.
        k: U32,
        /// The largest magnitudes: see [`LargestArguments`].
        largest: Option<ReadRange> = s.in_halves(DType::U32),
        /// Distance in words between two matrices of the batch in `largest`.
        apart: Option<U32> = s.in_halves(()),
        /// Flags of blocks of rows (columns), see [`guard`](super::guard); have to be zeros before.
        found: Option<WriteRange> = s.in_halves(DType::U32),
        /// Distance in words between two matrices of the batch in `found`.
        blocks: Option<U32> = s.in_halves(()),
        /// The binary logarithm of the rows (columns) of a block.
        shift: Option<U32> = s.in_halves(()),
        /// The terms.
        terms: WriteRange = s.form.dtype(),
        /// Distance between two matrices of the batch in `terms`.
        matrix: U64,
        /// Stride of the terms' rows, or columns, across the contiguous index.
        line: U64,
        /// Offset of the high terms.
        high: U64,
        /// Offset of the low terms.
        low: U64,
    }
}

/// Workgroups: dimension 0 is [`TILE_SIZE`]s of k, 1 is [`TILE_SIZE`]s of rows (columns), 2 is the
/// batch.
impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "gemm split"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let mut reader = p.elements.reader(p.operand);
        let (batch, origin, k0) = (b.group_id(2), b.group_id(1) * TILE_SIZE, b.group_id(0) * TILE_SIZE);
        reader.begin(batch, b.u32(0));
        let terms = p.terms.offset(batch.cast(ScalarType::U64) * p.matrix);
        let store = |group: &Group<'b>, at: Value<'b>, values: &[Value<'b>]| {
            let (line, along) = if self.access.axis == Axis::Inner {
                (origin + group.outer, k0 + group.k)
            } else {
                (k0 + group.k, origin + group.outer)
            };
            let first = at + line.cast(ScalarType::U64) * p.line + along.cast(ScalarType::U64);
            terms.offset(first).store_chunk(b.u32(0), values);
        };
        let groups = Group::all(b, &reader, origin, p.outer);
        let largest = p.largest.zip(p.apart).map(|(bits, apart)| bits.offset(batch * apart + origin));
        let mut found = b.u32(0);
        for group in &groups {
            let values = group.fetch(b, &reader, k0, p.k);
            let Some(largest) = largest else {
                store(group, p.high, &values);
                continue;
            };
            let (mut high, mut low) = (Vec::new(), Vec::new());
            let scale = |i: u32| b.i32(MAX_EXPONENT) - exponent(largest.load(group.outer + i));
            let common = (self.access.axis == Axis::Inner).then(|| scale(0));
            for (i, x) in (0u32..).zip(values) {
                let Float16Terms { high: h, low: l, found: f } =
                    Float16Terms::of(b, x, common.unwrap_or_else(|| scale(i)));
                high.push(h);
                low.push(l);
                found = found | f;
            }
            store(group, p.high, &high);
            store(group, p.low, &low);
        }
        if let (Some(words), Some(blocks), Some(shift)) = (p.found, p.blocks, p.shift) {
            report(b, found, words, batch * blocks + (origin >> shift));
        }
    }
}

/// Sets the flags of the workgroup's invocations in a word.
fn report<'b>(b: &'b Builder, found: Value<'b>, words: Pointer<'b>, word: Value<'b>) {
    let (lane, shared) = (b.local_id(0), b.shared(ScalarType::U32, 1, 1));
    b.if_(lane.eq(0), || shared.store(0, 0));
    b.barrier();
    b.if_(found.ne(0), || {
        shared.atomic(Atomic::Or, 0, found);
    });
    b.barrier();
    b.if_(lane.eq(0), || {
        let all = shared.load(0);
        b.if_(all.ne(0), || {
            words.atomic(Atomic::Or, word, all);
        });
    });
}

/// A float32 as two float16 terms, which are f32 values.
struct Float16Terms<'b> {
    high: Value<'b>,
    low: Value<'b>,
    /// Flag: [`FLAG_SMALL`], [`FLAG_LOST`] or 0.
    found: Value<'b>,
}

impl<'b> Float16Terms<'b> {
    /// Converts `x` times 2 to the power of `scale` (i32).
    fn of(b: &'b Builder, x: Value<'b>, scale: Value<'b>) -> Float16Terms<'b> {
        let bits = x.bitcast(ScalarType::U32);
        let magnitude = bits & 0x7fff_ffffu32;
        // The bits of a float32 whose exponent field is a signed number, so that subnormal numbers
        // continue below exponent 1.
        let top = magnitude.highest_bit();
        let subnormal = (magnitude << ((b.u32(23) - top) & 31)).bitcast(ScalarType::I32)
            + ((top.bitcast(ScalarType::I32) - 23) << 23);
        let signed = magnitude.lt(0x80_0000).select(subnormal, magnitude.bitcast(ScalarType::I32));
        let scaled = signed + (scale << 23);
        let below = |power: i32| scaled.lt(b.i32((127 + power) << 23));
        // A single term has float16's 11 bits down to 2^-14, and as a scaled-up low term down to
        // 2^-25.
        let least = -14;
        let lost = magnitude.ne(0) & (magnitude.ge(0x7f80_0000u32) | below(least - LOW_TERM_EXPONENT));
        let held = magnitude.ne(0) & !lost;
        let small = below(least);
        let number = scaled.bitcast(ScalarType::U32) | (bits & 0x8000_0000u32);
        let number = held.select(number, 0).bitcast(ScalarType::F32);
        let high = small.select(b.float(ScalarType::F32, 0.0), convert(number, DType::F16));
        let low = (number - high) * 2f64.powi(LOW_TERM_EXPONENT);
        let found = lost.select(b.u32(FLAG_LOST), (held & small).select(b.u32(FLAG_SMALL), 0));
        Float16Terms { high, low, found }
    }
}
