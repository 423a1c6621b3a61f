//! float32 operands as terms of 16 bits, for matrix units: the kernels that write them.
//!
//! A number is scaled by the power of two that brings the largest of its row (column) close to
//! float16's end, and becomes the sum of two float16: itself rounded, and what that left,
//! [lifted](LIFT) (Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores while
//! surpassing the FP32 theoretical peak performance", 2022). Or it is rounded to one bfloat16. All
//! of it in integers and normal numbers, so that the bits are the same on every adapter.
//!
//! Terms lie as the operand does, contiguous along k or along its rows (columns), padded to whole
//! tiles.

use crate::matmul::guard::{LOST, SMALL};
use crate::matmul::operand::{Access, Axis, WIDE};
use crate::matmul::reader::{Lane, Operand, Reader};
use crate::matmul::scales::{LIFT, TOP, exponent};
use crate::primitives::kernel::KernelSpec;
use dml_engine::interface::{ReadRange, U32, U64, WriteRange};
use dml_engine::parameters;
use dml_kernel::dense::GROUP;
use dml_kernel::{Atomic, Builder, DType, Pointer, ScalarType, Value, convert};

/// Rows (columns) of a workgroup, and its step along k.
pub const EDGE: u32 = 64;

/// Elements of k that a workgroup looks for the largest in.
pub const PART: u32 = 8 * EDGE;

/// Groups of neighbours of an invocation.
const GROUPS: u32 = EDGE * EDGE / WIDE / GROUP;

/// [`WIDE`] neighbours along the operand's axis.
struct Group<'b> {
    lanes: Vec<Lane<'b>>,
    /// Row (column) and k of the first, in the workgroup's square.
    outer: Value<'b>,
    k: Value<'b>,
}

impl<'b> Group<'b> {
    /// An invocation's, of the square whose first row (column) is `origin`; beyond `size` the last
    /// one is read again.
    fn all(b: &'b Builder, reader: &Reader<'b>, origin: Value<'b>, size: Value<'b>) -> Vec<Group<'b>> {
        let along_k = reader.access.axis == Axis::Inner;
        let step = reader.access.width();
        let group = |i: u32| {
            let group = b.local_id(0) + i * GROUP;
            let (across, along) = (group / (EDGE / WIDE), (group & (EDGE / WIDE - 1)) * WIDE);
            let (outer, k) = if along_k { (across, along) } else { (along, across) };
            let lane = |next: u32| {
                let (outer, k) = if along_k { (outer, k + next) } else { (outer + next, k) };
                let last = size - if along_k { 1 } else { step };
                reader.lane(b, b.u32(0), (origin + outer).min(last), k)
            };
            Group { lanes: (0..WIDE).step_by(step as usize).map(lane).collect(), outer, k }
        };
        (0..GROUPS).map(group).collect()
    }

    /// Its elements of the square at `k0`; zeros from `end` on.
    fn fetch(&self, b: &'b Builder, reader: &Reader<'b>, k0: Value<'b>, end: Value<'b>) -> Vec<Value<'b>> {
        let tile = reader.tile(k0);
        self.lanes.iter().flat_map(|lane| reader.fetch(b, tile, k0, lane, Some(end))).collect()
    }
}

/// Everything that changes the code of the search for the largest magnitudes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct LargestSpec {
    /// How the operand is read.
    pub access: Access,
    /// Type of offsets.
    pub index: ScalarType,
}

parameters! {
    /// The search for the largest magnitudes.
    pub LargestSpec as s => LargestArguments, LargestParameters {
        /// The operand.
        operand: ReadRange = s.access.dtype,
        /// Where its elements lie.
        elements: Operand = (s.access, s.index),
        /// Its rows (columns).
        outer: U32,
        /// Its length.
        k: U32,
        /// The largest finite magnitude of each row (column), as bits; zeros before.
        largest: WriteRange = DType::U32,
        /// Of those, from one matrix of the batch to the next.
        apart: U32,
    }
}

/// Dimension 0 of the workgroups counts [`PART`]s of k, 1 [`EDGE`]s of rows (columns), 2 the batch.
impl KernelSpec for LargestSpec {
    fn name(&self) -> &'static str {
        "gemm largest"
    }

    fn write<'b>(&self, b: &'b Builder, p: LargestParameters<'b>) {
        let mut reader = p.elements.reader(p.operand);
        let (batch, origin, lane) = (b.group_id(2), b.group_id(1) * EDGE, b.local_id(0));
        reader.begin(batch, b.u32(0));
        let groups = Group::all(b, &reader, origin, p.outer);
        // Neighbours along k share a place.
        let places = if self.access.axis == Axis::Inner { 1 } else { WIDE as usize };
        let found: Vec<Vec<_>> = groups.iter().map(|_| (0..places).map(|_| b.var(b.u32(0))).collect()).collect();
        let begin = b.group_id(0) * PART;
        b.for_(begin, (begin + PART).min(p.k), EDGE, |k0| {
            for (group, found) in groups.iter().zip(&found) {
                for (i, x) in group.fetch(b, &reader, k0, p.k).into_iter().enumerate() {
                    let magnitude = x.bitcast(ScalarType::U32) & 0x7fff_ffffu32;
                    let finite = magnitude.lt(0x7f80_0000u32).select(magnitude, 0);
                    let found = found[i % places];
                    found.set(found.get().max(finite));
                }
            }
        });
        let shared = b.shared(ScalarType::U32, 1, EDGE);
        b.if_(lane.lt(EDGE), || shared.store(lane, 0));
        b.barrier();
        for (group, found) in groups.iter().zip(&found) {
            for (i, found) in found.iter().enumerate() {
                shared.atomic(Atomic::Max, group.outer + i as u32, found.get());
            }
        }
        b.barrier();
        b.if_(lane.lt(EDGE), || {
            p.largest.atomic(Atomic::Max, batch * p.apart + origin + lane, shared.load(lane));
        });
    }
}

/// What a number becomes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// Two float16.
    Halves,
    /// One bfloat16.
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

    /// Terms of a number.
    pub fn terms(self) -> i64 {
        match self {
            Form::Halves => 2,
            Form::Rounded => 1,
        }
    }
}

/// Everything that changes the code of the split.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// What numbers become.
    pub form: Form,
    /// How the operand is read.
    pub access: Access,
    /// Type of offsets.
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
        /// Where its elements lie.
        elements: Operand = (s.access, s.index),
        /// Its rows (columns).
        outer: U32,
        /// Its length.
        k: U32,
        /// The largest magnitudes: see [`LargestArguments`].
        largest: Option<ReadRange> = s.in_halves(DType::U32),
        /// Of those, from one matrix of the batch to the next.
        apart: Option<U32> = s.in_halves(()),
        /// What is found in blocks of rows (columns), see [`guard`](super::guard); zeros before.
        found: Option<WriteRange> = s.in_halves(DType::U32),
        /// Of those, from one matrix of the batch to the next.
        blocks: Option<U32> = s.in_halves(()),
        /// The logarithm of a block's rows (columns).
        shift: Option<U32> = s.in_halves(()),
        /// The terms.
        terms: WriteRange = s.form.dtype(),
        /// Of those, from one matrix of the batch to the next.
        matrix: U64,
        /// From one line of neighbours to the next.
        line: U64,
        /// From the first term to the high ones.
        high: U64,
        /// From the first term to the low ones.
        low: U64,
    }
}

/// Dimension 0 of the workgroups counts [`EDGE`]s of k, 1 [`EDGE`]s of rows (columns), 2 the batch.
impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "gemm split"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let mut reader = p.elements.reader(p.operand);
        let (batch, origin, k0) = (b.group_id(2), b.group_id(1) * EDGE, b.group_id(0) * EDGE);
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
            let scale = |i: u32| b.i32(TOP) - exponent(largest.load(group.outer + i));
            let common = (self.access.axis == Axis::Inner).then(|| scale(0));
            for (i, x) in (0u32..).zip(values) {
                let Halves { high: h, low: l, found: f } = Halves::of(b, x, common.unwrap_or_else(|| scale(i)));
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

/// Adds what the workgroup's invocations found to a word.
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

/// A float32 as two float16, as f32.
struct Halves<'b> {
    high: Value<'b>,
    low: Value<'b>,
    /// [`SMALL`] or [`LOST`].
    found: Value<'b>,
}

impl<'b> Halves<'b> {
    /// Of `x`, scaled by 2 to the power of `scale` (i32).
    fn of(b: &'b Builder, x: Value<'b>, scale: Value<'b>) -> Halves<'b> {
        let bits = x.bitcast(ScalarType::U32);
        let magnitude = bits & 0x7fff_ffffu32;
        // Float32's bits, were its exponent's field a signed number: a subnormal number's then goes
        // on below 1.
        let top = magnitude.highest_bit();
        let subnormal = (magnitude << ((b.u32(23) - top) & 31)).bitcast(ScalarType::I32)
            + ((top.bitcast(ScalarType::I32) - 23) << 23);
        let signed = magnitude.lt(0x80_0000).select(subnormal, magnitude.bitcast(ScalarType::I32));
        let scaled = signed + (scale << 23);
        let below = |power: i32| scaled.lt(b.i32((127 + power) << 23));
        // In one term alone, an element has float16's 11 bits down to 2^-14, and lifted down to
        // 2^-25.
        let least = -14;
        let lost = magnitude.ne(0) & (magnitude.ge(0x7f80_0000u32) | below(least - LIFT));
        let held = magnitude.ne(0) & !lost;
        let small = below(least);
        let number = scaled.bitcast(ScalarType::U32) | (bits & 0x8000_0000u32);
        let number = held.select(number, 0).bitcast(ScalarType::F32);
        let high = small.select(b.float(ScalarType::F32, 0.0), convert(number, DType::F16));
        let low = (number - high) * 2f64.powi(LIFT);
        let found = lost.select(b.u32(LOST), (held & small).select(b.u32(SMALL), 0));
        Halves { high, low, found }
    }
}
