//! Samples of counters that the caller gives, in the order that TensorFlow documents: group `i` of
//! the results is made of what Philox4x32-10 encrypts counter `first + i` to. A group is four
//! samples, or two of 64 bits.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::{KernelSpec, Output};
use crate::random::philox::{Words, philox};
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::interface::{I64, Index, U32, U64};
use dml_engine::{ArgumentBlock, Parameter, parameters};
use dml_kernel::dense::linear_id;
use dml_kernel::math::{self, special};
use dml_kernel::{Builder, DType, ScalarType, Value};

/// Key and first counter, low words first.
#[derive(Copy, Clone, Debug)]
pub enum State<'t> {
    /// Known to the host.
    Known {
        /// The key.
        key: [u32; 2],
        /// The counter.
        counter: [u32; 4],
    },
    /// In device memory.
    Stored {
        /// One element of 64 bits.
        key: &'t View,
        /// Two elements of 64 bits.
        counter: &'t View,
    },
}

/// Kernel parameter: a [`State`].
pub(super) struct StateParameter;

/// The key and the counter in a kernel.
type KeyAndCounter<'b> = ([Value<'b>; 2], Words<'b>);

impl Parameter for StateParameter {
    /// Whether it is in device memory.
    type Type = bool;
    type Argument<'a> = State<'a>;
    type Declared<'b> = KeyAndCounter<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, stored: &bool) -> KeyAndCounter<'b> {
        if *stored {
            let (key, counter) = (b.input("key", DType::U32), b.input("counter", DType::U32));
            return ([0, 1].map(|i| key.load(b.u32(i))), [0, 1, 2, 3].map(|i| counter.load(b.u32(i))));
        }
        let word = |name| b.param(name, ScalarType::U32);
        (["key_low", "key_high"].map(word), ["counter_0", "counter_1", "counter_2", "counter_3"].map(word))
    }

    fn pass(state: &State, stored: &bool, block: &mut ArgumentBlock) {
        if matches!(state, State::Stored { .. }) != *stored {
            block.mismatch("a random state is not where the kernel expects it");
        }
        match state {
            State::Stored { key, counter } => {
                for t in [key, counter] {
                    block.reads(t.range());
                    block.address(t.data);
                }
            }
            State::Known { key, counter } => key.iter().chain(counter).for_each(|word| U32::pass(word, &(), block)),
        }
    }
}

/// What the samples are.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Draw {
    /// All bits of an integer.
    Bits,
    /// `from` plus the bits modulo `range`, of integers.
    Range,
    /// In `[0, 1)`, with as many bits as the float's significand.
    Uniform,
    /// Of mean 0 and deviation 1.
    Normal,
    /// The same between -2 and 2. A group has 256 words for each of its samples.
    TruncatedNormal,
}

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    draw: Draw,
    out: DType,
    index: ScalarType,
    stored: bool,
}

parameters! {
    Spec as s => Arguments, Parameters {
        out: Output = s.out,
        state: StateParameter = s.stored,
        from: I64,
        range: U64,
        numel: Index = s.index,
    }
}

/// Number of samples of a group.
fn per_group(dtype: DType) -> u32 {
    if dtype.bytes() == 8 { 2 } else { 4 }
}

/// Fills a contiguous tensor. `from` and `range` are those of [`Draw::Range`].
pub fn fill(cx: &Context, draw: Draw, state: State, (from, range): (i64, u64), out: &View) -> Result<()> {
    let numel = out.numel();
    if numel == 0 {
        return Ok(());
    }
    let spec = Spec { draw, out: out.dtype, index: index_type(numel), stored: matches!(state, State::Stored { .. }) };
    let groups = (numel as u64).div_ceil(u64::from(per_group(out.dtype)));
    cx.run_threads(&spec, &Arguments { out, state, from, range, numel }, groups)
}

/// A counter further on.
pub(super) fn skipped<'b>(counter: Words<'b>, blocks: Value<'b>) -> Words<'b> {
    let b = blocks.builder();
    let carry_of = |sum: Value<'b>, added: Value<'b>| sum.lt(added).cast(ScalarType::U32);
    let low = blocks.cast(ScalarType::U32);
    let high = if blocks.scalar() == ScalarType::U64 { (blocks >> 32).cast(ScalarType::U32) } else { b.u32(0) };
    let first = counter[0] + low;
    let carry = carry_of(first, low);
    let second = counter[1] + high;
    let overflows = carry_of(second, high);
    let second = second + carry;
    let overflows = overflows | carry_of(second, carry);
    let third = counter[2] + overflows;
    let fourth = counter[3] + carry_of(third, overflows);
    [first, second, third, fourth]
}

/// Two words as one of 64 bits, the low one first.
fn wide<'b>(low: Value<'b>, high: Value<'b>) -> Value<'b> {
    low.cast(ScalarType::U64) | (high.cast(ScalarType::U64) << 32)
}

/// A number of `[0, 1)` from the low bits of words: two for f64.
pub(super) fn unit<'b>(words: &[Value<'b>], dtype: DType) -> Value<'b> {
    let low = |digits: u32| (words[0] & ((1 << digits) - 1)).cast(ScalarType::F32) * 2f64.powi(-(digits as i32));
    match dtype {
        DType::F64 => {
            let high = (words[0] & 0xf_ffff).cast(ScalarType::F64) * 2f64.powi(32);
            (high + words[1].cast(ScalarType::F64)) * 2f64.powi(-52)
        }
        DType::F16 => low(10),
        DType::BF16 => low(7),
        _ => low(23),
    }
}

/// Two normal samples from two numbers of `[0, 1)`, by G. Box and M. Muller, "A note on the
/// generation of random normal deviates", 1958.
pub(super) fn box_muller<'b>(radius: Value<'b>, angle: Value<'b>, wide: bool) -> [Value<'b>; 2] {
    let radius = math::sqrt(-2.0 * math::log(radius.max(1e-7)));
    // TensorFlow rounds the angle once, after a product in double precision.
    let turn = if wide { std::f64::consts::TAU } else { f64::from(std::f32::consts::TAU) };
    let angle = special::fused(angle, angle.like(turn), angle * (std::f64::consts::TAU - turn));
    [math::sin(angle) * radius, math::cos(angle) * radius]
}

/// Two normal samples from two words, or from four of f64.
fn normals<'b>(words: &[Value<'b>], wide: bool) -> [Value<'b>; 2] {
    let dtype = if wide { DType::F64 } else { DType::F32 };
    let (first, second) = words.split_at(words.len() / 2);
    box_muller(unit(first, dtype), unit(second, dtype), wide)
}

impl Spec {
    /// The samples of a group, from its words.
    fn samples<'b>(&self, words: Words<'b>, from: Value<'b>, range: Value<'b>) -> Vec<Value<'b>> {
        let long = self.out.bytes() == 8;
        let pairs = words.chunks(2);
        match self.draw {
            Draw::Uniform if long => pairs.map(|pair| unit(pair, self.out)).collect(),
            Draw::Uniform => words.chunks(1).map(|word| unit(word, self.out)).collect(),
            Draw::Normal if long => normals(&words, true).to_vec(),
            Draw::Normal => pairs.flat_map(|pair| normals(pair, false)).collect(),
            Draw::Bits | Draw::Range => {
                let bits: Vec<Value> =
                    if long { pairs.map(|pair| wide(pair[0], pair[1])).collect() } else { words.to_vec() };
                let (unsigned, compute) = (bits[0].scalar(), self.out.compute());
                let (from, range) = (from.bitcast(ScalarType::U64).cast(unsigned), range.cast(unsigned));
                let in_range = |x: Value<'b>| if self.draw == Draw::Range { from + x % range } else { x };
                bits.into_iter().map(|x| in_range(x).bitcast(compute)).collect()
            }
            Draw::TruncatedNormal => Vec::new(),
        }
    }

    /// Normal samples, of which those below -2 or above 2 are replaced by the next ones.
    fn write_truncated<'b>(&self, b: &'b Builder, p: &Parameters<'b>, group: Value<'b>, first: Value<'b>) {
        let count = per_group(self.out);
        let long = self.out.bytes() == 8;
        let start = skipped(p.state.1, group * (count * 256 / 4));
        let (drawn, found) = (b.var(b.u32(0)), b.var(b.u32(0)));
        b.while_(
            || found.get().lt(count),
            || {
                let words = philox(b, skipped(start, drawn.get()), p.state.0);
                drawn.set(drawn.get() + 1);
                for pair in words.chunks(if long { 4 } else { 2 }) {
                    for sample in normals(pair, long) {
                        b.if_(sample.abs().lt(2.0) & found.get().lt(count), || {
                            let at = first + found.get().cast(self.index);
                            b.if_(at.lt(p.numel), || p.out.store(at, sample));
                            found.set(found.get() + 1);
                        });
                    }
                }
            },
        );
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        match self.draw {
            Draw::Bits => "counter_bits",
            Draw::Range => "counter_range",
            Draw::Uniform => "counter_uniform",
            Draw::Normal => "counter_normal",
            Draw::TruncatedNormal => "counter_truncated_normal",
        }
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let group = linear_id(b, self.index);
        let first = group * per_group(self.out);
        b.if_(first.lt(p.numel), || {
            if self.draw == Draw::TruncatedNormal {
                return self.write_truncated(b, &p, group, first);
            }
            let words = philox(b, skipped(p.state.1, group), p.state.0);
            for (i, sample) in self.samples(words, p.from, p.range).into_iter().enumerate() {
                let at = first + i as u32;
                b.if_(at.lt(p.numel), || p.out.store(at, sample));
            }
        });
    }
}

/// The kernel of [`skip`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Skip;

parameters! {
    Skip as _s => SkipArguments, SkipParameters {
        counter: Output = DType::U32,
        blocks: U64,
    }
}

/// Moves a counter in device memory (two elements of 64 bits) on by a number of blocks.
pub fn skip(cx: &Context, counter: &View, blocks: u64) -> Result<()> {
    let words = View { dtype: DType::U32, ..counter.as_strided(&[4], &[1], 0) };
    cx.run(&Skip, &SkipArguments { counter: &words, blocks }, [1, 1, 1])
}

impl KernelSpec for Skip {
    fn name(&self) -> &'static str {
        "counter_skip"
    }

    fn workgroup(&self) -> [u32; 3] {
        [1, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: SkipParameters<'b>) {
        let counter = [0, 1, 2, 3].map(|i| p.counter.load(b.u32(i)));
        for (i, word) in skipped(counter, p.blocks).into_iter().enumerate() {
            p.counter.store(b.u32(i as u32), word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (stored, index) in [(false, ScalarType::U32), (true, ScalarType::U64)] {
            for draw in [Draw::Uniform, Draw::Normal, Draw::TruncatedNormal] {
                for out in [DType::F16, DType::BF16, DType::F32, DType::F64] {
                    accepted(&Spec { draw, out, index, stored }.build());
                }
            }
            for draw in [Draw::Bits, Draw::Range] {
                for out in [DType::I32, DType::U32, DType::I64, DType::U64] {
                    accepted(&Spec { draw, out, index, stored }.build());
                }
            }
        }
        accepted(&Skip.build());
    }
}
