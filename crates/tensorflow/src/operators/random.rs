//! Random numbers with TensorFlow's own bits: those of its CPU for the same seed, but for the last
//! digits of normal samples. `Multinomial` has others, as on CUDA.

use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{FLOATS, INDICES};
use crate::require;
use dml_compute::dtype::accumulator;
use dml_compute::movement::copy;
use dml_compute::normalization::softmax::{Mode, rows};
use dml_compute::random::counted_gamma::gamma;
use dml_compute::random::counters::{Draw, State, fill, skip};
use dml_compute::random::multinomial::search;
use dml_compute::reduction::scan::sums;
use dml_compute::{Context, Dims, View};
use dml_engine::philox4x32_10;
use dml_kernel::DType;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::{Mutex, PoisonError};

/// Blocks of words that an operator with a state takes for each element of a result.
const BLOCKS_PER_ELEMENT: u64 = 256;

fn low(x: u64) -> u32 {
    x as u32
}

fn high(x: u64) -> u32 {
    (x >> 32) as u32
}

/// A key and a counter on the host.
#[derive(Copy, Clone)]
struct Known {
    key: [u32; 2],
    counter: [u32; 4],
}

impl Known {
    /// Of the two seeds of an operator that keeps a state.
    fn of_seeds(first: u64, second: u64) -> Self {
        Self { key: [low(first), high(first)], counter: [0, 0, low(second), high(second)] }
    }

    /// Of the seed of an operator that keeps none: it is encrypted.
    fn of_stateless_seed(seed: [i64; 2]) -> Self {
        const KEY: [u32; 2] = [0x3ec8_f720, 0x0246_1e29];
        let [first, second] = seed.map(|half| half as u64);
        let mixed = philox4x32_10([low(first), high(first), low(second), high(second)], KEY);
        Self { key: [mixed[0], mixed[1]], counter: [0, 0, mixed[2], mixed[3]] }
    }

    fn state(&self) -> State<'static> {
        State::Known { key: self.key, counter: self.counter }
    }

    /// The counter as a number.
    fn number(&self) -> u128 {
        self.counter.iter().rev().fold(0, |number, &word| (number << 32) | u128::from(word))
    }

    fn advance(&mut self, blocks: u64) {
        let number = self.number().wrapping_add(u128::from(blocks));
        self.counter = [0, 32, 64, 96].map(|shift| (number >> shift) as u32);
    }
}

/// The state of a node, which its calls move on.
pub struct Generator(Mutex<Known>);

impl Generator {
    /// Of the node's seeds; a random one if both are 0.
    pub fn of(attributes: &Attributes) -> Result<Self> {
        let seeds = [attributes.int("seed")?, attributes.int("seed2")?];
        let seeds = if seeds == [0, 0] {
            [(); 2].map(|()| RandomState::new().build_hasher().finish())
        } else {
            seeds.map(|seed| seed as u64)
        };
        Ok(Self(Mutex::new(Known::of_seeds(seeds[0], seeds[1]))))
    }

    /// The state now, which moves on by a result's share.
    fn reserve(&self, elements: i64) -> Known {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = *state;
        state.advance((elements as u64).wrapping_mul(BLOCKS_PER_ELEMENT));
        now
    }

    /// Fills a tensor with numbers of `[0, 1)`.
    pub fn uniform(&self, cx: &Context, out: &View) -> Result<()> {
        Ok(fill(cx, Draw::Uniform, self.reserve(out.numel()).state(), (0, 1), out)?)
    }
}

/// The sizes in an input in host memory.
fn sizes(call: &Call, input: usize) -> Result<Dims> {
    let sizes = call.host_ints(input)?;
    require!(sizes.iter().all(|&size| size >= 0), "{}: a size is negative: {sizes:?}", call.operator());
    Ok(sizes)
}

/// What is drawn, with the lower end and the length of a range.
type Samples = (Draw, (i64, u64));

/// The range of integers between the ends at two inputs in host memory.
fn range(call: &Call, from: usize) -> Result<Samples> {
    let [least, end] = [call.host_number(from)?.to_i64(), call.host_number(from + 1)?.to_i64()];
    require!(least < end, "Need minval < maxval, got {least} >= {end}");
    Ok((Draw::Range, (least, end.wrapping_sub(least) as u64)))
}

/// How an operator finds what it draws: the ends of a range follow at an input.
#[derive(Copy, Clone)]
enum Kind {
    Plain(Draw),
    RangeFrom(usize),
}

impl Kind {
    fn samples(self, call: &Call) -> Result<Samples> {
        match self {
            Kind::Plain(draw) => Ok((draw, (0, 1))),
            Kind::RangeFrom(input) => range(call, input),
        }
    }
}

/// An operator with a state of its own: `shape` is input 0.
fn with_own_state(name: &'static str, kind: Kind) -> Operator {
    Operator::new(name, move |attributes: &Attributes| {
        let generator = Generator::of(attributes)?;
        Ok(move |call: &Call| {
            let (draw, range) = kind.samples(call)?;
            let out = call.output(0, &sizes(call, 0)?)?;
            Ok(fill(&call.cx(), draw, generator.reserve(out.numel()).state(), range, &out)?)
        })
    })
}

/// The seed in an input in host memory.
fn seed(call: &Call, input: usize) -> Result<[i64; 2]> {
    let seed = call.host_ints(input)?;
    require!(seed.len() == 2, "seed must have shape [2], not [{}]", seed.len());
    Ok([seed[0], seed[1]])
}

/// An operator of a seed: `shape` and `seed` are inputs 0 and 1.
fn of_seed(name: &'static str, kind: Kind) -> Operator {
    Operator::plain(name, move |call: &Call| {
        let state = Known::of_stateless_seed(seed(call, 1)?).state();
        let (draw, range) = kind.samples(call)?;
        let out = call.output(0, &sizes(call, 0)?)?;
        Ok(fill(&call.cx(), draw, state, range, &out)?)
    })
}

/// Fails unless an algorithm is Philox (1), or the choice is left to the device (3).
fn check_algorithm(call: &Call, input: usize) -> Result<()> {
    let algorithm = call.host_number(input)?.to_i64();
    require!(matches!(algorithm, 1 | 3), "Unsupported algorithm id: {algorithm}");
    Ok(())
}

/// The key and the counter in device memory at two inputs.
fn stored(call: &Call, first: usize) -> Result<[View; 2]> {
    let [key, counter] = [call.input(first)?, call.input(first + 1)?];
    require!(key.sizes[..] == [1], "key must have shape [1], not {:?}", key.sizes);
    require!(
        counter.dim() == 1 && counter.sizes[0] >= 2,
        "counter must be a vector with length at least 2, not of shape {:?}",
        counter.sizes
    );
    Ok([key, counter])
}

/// An operator of a key and a counter: `shape`, `key`, `counter`, `alg` are inputs 0 to 3.
fn of_counter(name: &'static str, kind: Kind) -> Operator {
    Operator::plain(name, move |call: &Call| {
        check_algorithm(call, 3)?;
        let [key, counter] = stored(call, 1)?;
        let (draw, range) = kind.samples(call)?;
        let out = call.output(0, &sizes(call, 0)?)?;
        let state = State::Stored { key: &key, counter: &counter };
        Ok(fill(&call.cx(), draw, state, range, &out)?)
    })
}

/// Samples of gamma distributions, whose shapes are the last input: as many of each as the result's
/// first dimensions say.
fn gammas(call: &Call, alpha: usize, state: State) -> Result<()> {
    let (sizes, alpha) = (sizes(call, 0)?, call.input(alpha)?);
    require!(
        sizes.ends_with(&alpha.sizes),
        "Shape passed in must end with broadcasted shape: {:?}, {:?}",
        sizes.as_slice(),
        alpha.sizes.as_slice()
    );
    let out = call.output(0, &sizes)?;
    Ok(gamma(&call.cx(), state, &alpha, &out)?)
}

/// `StatelessRandomGammaV2`: `shape`, `seed` and `alpha`.
fn gammas_of_seed(call: &Call) -> Result<()> {
    gammas(call, 2, Known::of_stateless_seed(seed(call, 1)?).state())
}

/// `StatelessRandomGammaV3`: `shape`, `key`, `counter`, `alg` and `alpha`.
fn gammas_of_counter(call: &Call) -> Result<()> {
    check_algorithm(call, 3)?;
    let [key, counter] = stored(call, 1)?;
    gammas(call, 4, State::Stored { key: &key, counter: &counter })
}

/// The parts of a state in a variable, which is counter and key: three elements of 64 bits.
fn parts(state: &View) -> Result<[View; 2]> {
    require!(
        state.dim() == 1 && state.sizes[0] >= 3 && state.dtype.bytes() == 8,
        "the size of the state must be at least 3, not {:?}",
        state.sizes
    );
    Ok([state.narrow(0, 2, 1), state.narrow(0, 0, 2)])
}

/// An operator of a state in a variable: `resource`, `algorithm`, `shape` are inputs 0 to 2.
fn of_variable(name: &'static str, kind: Kind) -> Operator {
    Operator::plain(name, move |call: &Call| {
        check_algorithm(call, 1)?;
        let (draw, range) = kind.samples(call)?;
        let out = call.output(0, &sizes(call, 2)?)?;
        let variables = call.lock(&[0], true, false)?;
        let [key, counter] = parts(&variables.tensor(0, false)?)?;
        fill(&call.cx(), draw, State::Stored { key: &key, counter: &counter }, range, &out)?;
        Ok(skip(&call.cx(), &counter, (out.numel() as u64).wrapping_mul(BLOCKS_PER_ELEMENT))?)
    })
}

/// `RngSkip` and `RngReadAndSkip`, which returns the state before.
fn skip_variable(name: &'static str, is_read: bool) -> Operator {
    Operator::plain(name, move |call: &Call| {
        check_algorithm(call, 1)?;
        let elements = call.host_number(2)?.to_i64() as u64;
        let variables = call.lock(&[0], true, false)?;
        let state = variables.tensor(0, false)?;
        let [_, counter] = parts(&state)?;
        if is_read {
            let out = call.output(0, &[3])?;
            copy::device_copy(&call.cx(), &state.narrow(0, 0, 3), &out)?;
        }
        Ok(skip(&call.cx(), &counter, elements.wrapping_mul(BLOCKS_PER_ELEMENT))?)
    })
}

/// Key and counter of a seed, in host memory; and the algorithm.
fn key_and_counter(call: &Call) -> Result<()> {
    use dml_compute::Scalar::Int;
    let Known { key, counter } = Known::of_stateless_seed(seed(call, 0)?);
    let long = |low: u32, high: u32| Int((u64::from(low) | (u64::from(high) << 32)) as i64);
    call.host_output(0, &[1], &[long(key[0], key[1])])?;
    call.host_output(1, &[2], &[long(counter[0], counter[1]), long(counter[2], counter[3])])?;
    if call.outputs() > 2 {
        call.host_output(2, &[], &[Int(1)])?;
    }
    Ok(())
}

/// Samples of classes, of their logarithms of probabilities.
fn multinomial(call: &Call, count: i64, state: impl FnOnce(i64) -> Known) -> Result<()> {
    let logits = call.input(0)?;
    require!(logits.dim() == 2, "logits should be a matrix, got shape {:?}", logits.sizes);
    require!(count >= 0, "num_samples should be nonnegative, got {count}");
    let (batch, classes) = (logits.sizes[0], logits.sizes[1]);
    require!(classes > 0, "num_classes should be positive, got {classes}");
    let out = call.output(0, &[batch, count])?;
    if out.numel() == 0 {
        return Ok(());
    }
    let cx = call.cx();
    let wide = accumulator(logits.dtype);
    let (shares, running) = (cx.empty(wide, &logits.sizes)?, cx.empty(wide, &logits.sizes)?);
    rows(&cx, Mode::Softmax, &[logits], 1, &shares)?;
    sums(&cx, &shares, &running, 1)?;
    let noise = cx.empty(wide, &out.sizes)?;
    fill(&cx, Draw::Uniform, state(out.numel()).state(), (0, 1), &noise)?;
    if out.dtype == DType::I64 {
        return Ok(search(&cx, &running, &noise, &out)?);
    }
    let found = cx.empty(DType::I64, &out.sizes)?;
    search(&cx, &running, &noise, &found)?;
    Ok(copy::device_copy(&cx, &found, &out)?)
}

/// `Multinomial`.
fn multinomial_with_state(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let generator = Generator::of(attributes)?;
    Ok(move |call: &Call| {
        let count = call.host_number(1)?.to_i64();
        multinomial(call, count, |elements| generator.reserve(elements))
    })
}

/// `StatelessMultinomial`.
fn stateless_multinomial(call: &Call) -> Result<()> {
    let seed = seed(call, 2)?;
    multinomial(call, call.host_number(1)?.to_i64(), |_| Known::of_stateless_seed(seed))
}

/// Integers whose bits are drawn.
const BITS: &[DType] = &[DType::I32, DType::I64, DType::U32, DType::U64];

/// Samples of gamma distributions.
const GAMMAS: &[DType] = &[DType::F32, DType::F16, DType::F64];

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    const UNIFORM: Kind = Kind::Plain(Draw::Uniform);
    const NORMAL: Kind = Kind::Plain(Draw::Normal);
    const TRUNCATED: Kind = Kind::Plain(Draw::TruncatedNormal);
    const WORDS: Kind = Kind::Plain(Draw::Bits);
    let float = |operator: Operator| operator.of("dtype", FLOATS);
    let bits = |operator: Operator| operator.of("dtype", BITS);
    let integer = |operator: Operator| operator.of("dtype", INDICES);
    let variable = |operator: Operator| operator.on_host(&["resource", "algorithm", "shape"]);
    let seeded = |operator: Operator| operator.on_host(&["shape", "seed"]);
    let counted = |operator: Operator| operator.on_host(&["shape", "alg"]);
    let own = |operator: Operator| operator.on_host(&["shape"]);
    vec![
        float(own(with_own_state("RandomUniform", UNIFORM))),
        float(own(with_own_state("RandomStandardNormal", NORMAL))),
        float(own(with_own_state("TruncatedNormal", TRUNCATED))),
        with_own_state("RandomUniformInt", Kind::RangeFrom(1))
            .of("Tout", INDICES)
            .on_host(&["shape", "minval", "maxval"]),
        float(seeded(of_seed("StatelessRandomUniform", UNIFORM))),
        float(seeded(of_seed("StatelessRandomNormal", NORMAL))),
        float(seeded(of_seed("StatelessTruncatedNormal", TRUNCATED))),
        bits(seeded(of_seed("StatelessRandomUniformFullInt", WORDS))),
        integer(of_seed("StatelessRandomUniformInt", Kind::RangeFrom(2)))
            .on_host(&["shape", "seed", "minval", "maxval"]),
        float(counted(of_counter("StatelessRandomUniformV2", UNIFORM))),
        float(counted(of_counter("StatelessRandomNormalV2", NORMAL))),
        float(counted(of_counter("StatelessTruncatedNormalV2", TRUNCATED))),
        bits(counted(of_counter("StatelessRandomUniformFullIntV2", WORDS))),
        integer(of_counter("StatelessRandomUniformIntV2", Kind::RangeFrom(4)))
            .on_host(&["shape", "alg", "minval", "maxval"]),
        seeded(Operator::plain("StatelessRandomGammaV2", gammas_of_seed)).of("dtype", GAMMAS),
        counted(Operator::plain("StatelessRandomGammaV3", gammas_of_counter)).of("dtype", GAMMAS),
        Operator::plain("StatelessRandomGetKeyCounter", key_and_counter).on_host(&["seed", "key", "counter"]),
        Operator::plain("StatelessRandomGetKeyCounterAlg", key_and_counter).on_host(&["seed", "key", "counter", "alg"]),
        Operator::plain("StatelessRandomGetAlg", |call: &Call| {
            call.host_output(0, &[], &[dml_compute::Scalar::Int(1)])
        })
        .on_host(&["alg"]),
        float(variable(of_variable("StatefulUniform", UNIFORM))),
        float(variable(of_variable("StatefulStandardNormalV2", NORMAL))),
        float(variable(of_variable("StatefulTruncatedNormal", TRUNCATED))),
        bits(variable(of_variable("StatefulUniformFullInt", WORDS))),
        integer(of_variable("StatefulUniformInt", Kind::RangeFrom(3))).on_host(&[
            "resource",
            "algorithm",
            "shape",
            "minval",
            "maxval",
        ]),
        skip_variable("RngSkip", false).on_host(&["resource", "algorithm", "delta"]),
        skip_variable("RngReadAndSkip", true).on_host(&["resource", "alg", "delta"]),
        Operator::new("Multinomial", multinomial_with_state)
            .of("T", FLOATS)
            .of("output_dtype", INDICES)
            .on_host(&["num_samples"]),
        Operator::plain("StatelessMultinomial", stateless_multinomial)
            .of("T", FLOATS)
            .of("output_dtype", INDICES)
            .on_host(&["num_samples", "seed"]),
    ]
}
