//! Random numbers: Philox4x32-10, with the same stream for a seed on every adapter.
//!
//! Source: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011. A kernel
//! encrypts counters, with the seed as key. The generator allocates a range of counters to each
//! launch.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::primitives::kernel::{KernelSpec, Output};
use crate::random::Generator;
use crate::view::View;
use dml_engine::interface::U32;
use dml_engine::{AddressRange, ArgumentBlock, Parameter, RandomSource, parameters};
use dml_kernel::math::ordinary;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// A block of random words: four of 32 bits, or two of 64.
pub type Words<'b> = [Value<'b>; 4];

/// Ten rounds of Philox4x32.
pub fn philox<'b>(b: &'b Builder, counter: Words<'b>, key: [Value<'b>; 2]) -> Words<'b> {
    const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
    const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
    let [mut c0, mut c1, mut c2, mut c3] = counter;
    let [mut k0, mut k1] = key;
    let multipliers = MULTIPLIERS.map(|m| b.u32(m));
    for round in 0..10 {
        if round > 0 {
            k0 = k0 + WEYL[0];
            k1 = k1 + WEYL[1];
        }
        let (high0, low0) = (c0.mul_high(multipliers[0]), c0 * multipliers[0]);
        let (high1, low1) = (c2.mul_high(multipliers[1]), c2 * multipliers[1]);
        (c0, c1, c2, c3) = (high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0);
    }
    [c0, c1, c2, c3]
}

/// Number of samples of a dtype in a block of words.
pub fn per_block(dtype: DType) -> u32 {
    if dtype.bytes() == 8 { 2 } else { 4 }
}

/// The dtype in which samples for tensors of a dtype are drawn; usually the dtype itself.
pub fn sample_dtype(dtype: DType) -> DType {
    if dtype.is_float() { accumulator(dtype) } else { DType::F32 }
}

/// Allocates `blocks` counters from a generator, or from the device's default generator.
pub fn draw(cx: &Context, generator: Option<&Generator>, blocks: u64) -> Result<RandomSource> {
    if cx.infers() {
        return Ok(RandomSource::Known { seed: 0, counter: 0 });
    }
    Ok(cx.device.draw(generator, blocks)?)
}

/// Whether seed and counter are in device memory, as in a graph capture: each replay has others.
pub fn is_stored(source: RandomSource) -> bool {
    matches!(source, RandomSource::Stored { .. })
}

/// Kernel parameter: seed and first counter, low words first.
pub struct Source;

impl Parameter for Source {
    /// Whether seed and counter [are in device memory](is_stored).
    type Type = bool;
    type Argument<'a> = RandomSource;
    type Declared<'b> = Words<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, stored: &bool) -> Words<'b> {
        if !stored {
            return ["seed_low", "seed_high", "counter_low", "counter_high"].map(|name| b.param(name, ScalarType::U32));
        }
        let state = b.input("state", DType::U32);
        let [low, high] = ["plus_low", "plus_high"].map(|name| b.param(name, ScalarType::U32));
        let [seed_low, seed_high, first_low, first_high] = [0, 1, 2, 3].map(|at| state.load(b.u32(at)));
        let sum = first_low + low;
        let carry = sum.lt(low).cast(ScalarType::U32);
        [seed_low, seed_high, sum, first_high + high + carry]
    }

    fn pass(source: &RandomSource, stored: &bool, block: &mut ArgumentBlock) {
        if is_stored(*source) != *stored {
            block.mismatch("a random source is not where the kernel expects it");
        }
        let counter = match *source {
            RandomSource::Known { seed, counter } => {
                words(seed, block);
                counter
            }
            RandomSource::Stored { address, counter } => {
                block.reads(AddressRange::new(address, 16));
                block.address(address);
                counter
            }
        };
        words(counter, block);
    }
}

fn words(x: u64, block: &mut ArgumentBlock) {
    for word in [x as u32, (x >> 32) as u32] {
        U32::pass(&word, &(), block);
    }
}

/// The kernel of [`write_source`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct WriteSource {
    stored: bool,
}

parameters! {
    WriteSource as s => SourceArguments, SourceParameters {
        to: [Output; 2] = DType::I64,
        source: Source = s.stored,
    }
}

/// Writes seed and first counter to two int64 scalars, for kernels that have to draw the same
/// numbers again.
pub fn write_source(cx: &Context, source: RandomSource, to: &[View; 2]) -> Result<()> {
    let [seed, counter] = to;
    let spec = WriteSource { stored: is_stored(source) };
    cx.run(&spec, &SourceArguments { to: [seed, counter], source }, [1, 1, 1])
}

impl KernelSpec for WriteSource {
    fn name(&self) -> &'static str {
        "random_source"
    }

    fn workgroup(&self) -> [u32; 3] {
        [1, 1, 1]
    }

    fn write<'b>(&self, _: &'b Builder, p: SourceParameters<'b>) {
        for (pointer, word) in p.to.iter().zip(p.source.chunks(2)) {
            let [low, high] = [word[0], word[1]].map(|w| w.cast(ScalarType::U64));
            pointer.store(0, (low | (high << 32)).bitcast(ScalarType::I64));
        }
    }
}

/// Uniform samples in [0, 1) with as many bits as `dtype` represents exactly, in its compute type.
pub fn unit<'b>(words: Words<'b>, dtype: DType) -> Vec<Value<'b>> {
    let digits = match dtype {
        DType::F16 => 11,
        DType::BF16 => 8,
        _ => 24,
    };
    if dtype == DType::F64 {
        return [(words[0], words[1]), (words[2], words[3])]
            .into_iter()
            .map(|(a, b)| {
                let high = (a >> 5).cast(ScalarType::F64) * f64::from(1u32 << 26);
                (high + (b >> 6).cast(ScalarType::F64)) * 2f64.powi(-53)
            })
            .collect();
    }
    words.iter().map(|w| (*w >> (32 - digits)).cast(ScalarType::F32) * 2f64.powi(-digits)).collect()
}

/// Samples strictly between 0 and 1, at the midpoints of equal steps: both `log(u)` and
/// `log(1 - u)` are finite and not 0.
pub fn uniform_open<'b>(words: Words<'b>, dtype: DType) -> Vec<Value<'b>> {
    if dtype == DType::F64 {
        return [(words[0], words[1]), (words[2], words[3])]
            .into_iter()
            .map(|(a, b)| {
                let high = (a >> 6).cast(ScalarType::F64) * f64::from(1u32 << 26);
                (high + (b >> 6).cast(ScalarType::F64) + 0.5) * 2f64.powi(-52)
            })
            .collect();
    }
    words.iter().map(|w| ((*w >> 9).cast(ScalarType::F32) + 0.5) * 2f64.powi(-23)).collect()
}

/// Standard normal samples from the words, by G. Box and M. Muller, "A note on the generation of
/// random normal deviates", 1958.
pub fn normals<'b>(words: Words<'b>, dtype: DType) -> Vec<Value<'b>> {
    unit(words, sample_dtype(dtype))
        .chunks(2)
        .flat_map(|pair| {
            // The logarithm's argument is in [2^-53, 1]; the angle is a fraction of a turn.
            let radius = ordinary::sqrt(-2.0 * ordinary::log(1.0 - pair[0]));
            let [sin, cos] = ordinary::turn_sin_cos(pair[1]);
            [radius * cos, radius * sin]
        })
        .collect()
}
