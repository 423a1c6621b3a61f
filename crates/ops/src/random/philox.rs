//! Random numbers: Philox4x32-10, one stream for a seed on every adapter.
//!
//! Source: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011. Invocation `i` of a launch
//! encrypts the counter `offset + i` with the seed as key and turns the four words into four elements (two for f64).

use crate::check;
use crate::operator::call::{Arg, Call, Scalar as Number};
use crate::operator::error::{Error, Result};
use crate::operator::{Operator, op};
use crate::pointwise::elementwise::{self, Out};
use crate::pointwise::kernel::{self, Input};
use crate::primitives::launch::{GROUP, Launcher, linear_id};
use crate::tensor::Tensor;
use crate::tensor::layout::{self, Layout};
use dml_engine::RandomSource;
use dml_kernel::{Builder, DType, Kernel, Scalar, Value, math};

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::uniform_", uniform),
    op("aten::normal_", normal),
    op("aten::exponential_", exponential),
    op("aten::log_normal_", log_normal),
    op("aten::cauchy_", cauchy),
    op("aten::geometric_", geometric),
    op("aten::normal.Tensor_float", |c| normal_of(c, None)),
    op("aten::normal.Tensor_float_out", |c| normal_of(c, Some(3))),
    op("aten::normal.float_Tensor", |c| normal_of(c, None)),
    op("aten::normal.float_Tensor_out", |c| normal_of(c, Some(3))),
    op("aten::normal.Tensor_Tensor", |c| normal_of(c, None)),
    op("aten::normal.Tensor_Tensor_out", |c| normal_of(c, Some(3))),
    op("aten::bernoulli_.float", bernoulli_float),
    op("aten::random_", |c| random(c, None)),
    op("aten::random_.to", |c| random(c, Some((None, 1)))),
    op("aten::random_.from", |c| random(c, Some((Some(1), 2)))),
];

/// Two 64-bit words.
pub type Words<'b> = [Value<'b>; 4];

/// What a kernel makes of one block of random words and its numbers.
type Sampler<'f> = &'f dyn for<'b> Fn(&'b Builder, Words<'b>, &[Value<'b>]) -> Vec<Value<'b>>;

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

/// A sample's dtype-dependent kind: how many elements four words give.
pub fn per_block(dtype: DType) -> u32 {
    if dtype.bytes() == 8 { 2 } else { 4 }
}

/// Fills `out` with `body(words of the block) -> elements`, `per` elements a block; `numbers` are f64, f32 or i64
/// parameters by `number_dtype`.
#[allow(clippy::too_many_arguments)]
pub fn fill(
    call: &Call,
    generator: usize,
    family: &'static str,
    out: &Tensor,
    per: u32,
    numbers: &[Number],
    number_dtype: DType,
    body: Sampler<'_>,
) -> Result<()> {
    elementwise::check_no_self_overlap(out)?;
    let numel = out.numel();
    if numel == 0 {
        return Ok(());
    }
    let blocks = (numel as u64).div_ceil(u64::from(per));
    let source = reserve(call, generator, blocks)?;
    let stored = is_stored(source);
    let layout = Layout::new(&[out]);
    let rank = layout.rank();
    let how = layout.index.bytes() | u32::from(stored) << 8;
    let key = [out.dtype as u32, rank as u32, how, number_dtype as u32, numbers.len() as u32, per];
    let kernel = call.kernel(family, key, || {
        build(family, out.dtype, rank, layout.index, stored, per, numbers.len(), number_dtype, body)
    })?;
    let mut launcher = pass(call.launch(kernel).write(out), source);
    for &n in numbers {
        launcher = launcher.number(number_dtype, n);
    }
    layout.pass(launcher.index(layout.index, numel)).threads(blocks)
}

#[allow(clippy::too_many_arguments)]
fn build(
    family: &str,
    dtype: DType,
    rank: usize,
    index: Scalar,
    stored: bool,
    per: u32,
    numbers: usize,
    number_dtype: DType,
    body: Sampler<'_>,
) -> Kernel {
    let b = Builder::new(family, [GROUP, 1, 1]);
    let out = b.pointer("out", dtype);
    let words = declare_source(&b, stored);
    let numbers: Vec<Value> = (0..numbers).map(|_| b.param("number", number_dtype.compute())).collect();
    let n = b.param("numel", index);
    let params = layout::declare(&b, rank, 1, index);
    let block = linear_id(&b, index);
    let first = block * per;
    b.if_(first.lt(n), || {
        let low_index = block.cast(Scalar::U32);
        let low = words[2] + low_index;
        let carry = low.lt(low_index).cast(Scalar::U32);
        let high_index = if index == Scalar::U64 { (block >> 32).cast(Scalar::U32) } else { b.u32(0) };
        let counter = [low, words[3] + carry + high_index, b.u32(0), b.u32(0)];
        let random = philox(&b, counter, [words[0], words[1]]);
        for (i, value) in body(&b, random, &numbers).into_iter().enumerate() {
            let at = first + i as u32;
            b.if_(at.lt(n), || out.store(params.offsets(&b, at)[0], value));
        }
    });
    b.finish()
}

/// Takes `blocks` counters from the generator at argument `i` (or the device's default one).
pub fn reserve(call: &Call, i: usize, blocks: u64) -> Result<RandomSource> {
    match call.args.get(i) {
        Some(Arg::Generator(g)) => Ok(call.device.draw(Some(g), blocks)?),
        None | Some(Arg::None) => Ok(call.device.draw(None, blocks)?),
        Some(other) => Err(Error::Type(format!("{}: expected a generator, not {other:?}", call.name))),
    }
}

/// In a graph that is being captured, seed and counter of a replay are in memory.
pub fn is_stored(source: RandomSource) -> bool {
    matches!(source, RandomSource::Stored { .. })
}

/// Seed and first counter of a kernel whose source [is stored](is_stored) or not, low words first.
pub fn declare_source(b: &Builder, stored: bool) -> Words<'_> {
    if !stored {
        return ["seed_low", "seed_high", "counter_low", "counter_high"].map(|name| b.param(name, Scalar::U32));
    }
    let state = b.pointer("state", DType::U32);
    let [low, high] = ["plus_low", "plus_high"].map(|name| b.param(name, Scalar::U32));
    let [seed_low, seed_high, first_low, first_high] = [0, 1, 2, 3].map(|at| state.load(b.u32(at)));
    let sum = first_low + low;
    let carry = sum.lt(low).cast(Scalar::U32);
    [seed_low, seed_high, sum, first_high + high + carry]
}

/// Passes what [`declare_source`] declared.
pub fn pass<'c, 'a>(launcher: Launcher<'c, 'a>, source: RandomSource) -> Launcher<'c, 'a> {
    let words = |launcher: Launcher<'c, 'a>, x: u64| launcher.u32(x as u32).u32((x >> 32) as u32);
    match source {
        RandomSource::Known { seed, counter } => words(words(launcher, seed), counter),
        RandomSource::Stored { address, counter } => words(launcher.read_bytes(address, 16), counter),
    }
}

/// Writes seed and first counter to two int64 scalars, for a kernel that is run again with the same numbers.
pub fn write_source(call: &Call, source: RandomSource, to: &[Tensor; 2]) -> Result<()> {
    let stored = is_stored(source);
    let kernel = call.kernel("random_source", [u32::from(stored), 0, 0, 0, 0, 0], || {
        let b = Builder::new("random_source", [1, 1, 1]);
        let to = ["seed", "counter"].map(|name| b.pointer(name, DType::I64));
        let words = declare_source(&b, stored);
        for (pointer, word) in to.iter().zip(words.chunks(2)) {
            let [low, high] = [word[0], word[1]].map(|w| w.cast(Scalar::U64));
            pointer.store(0, (low | (high << 32)).bitcast(Scalar::I64));
        }
        b.finish()
    })?;
    pass(call.launch(kernel).write(&to[0]).write(&to[1]), source).groups([1, 1, 1])
}

/// Uniform samples in [0, 1) with as many bits as `dtype` holds exactly, in its compute type.
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
                let high = (a >> 5).cast(Scalar::F64) * f64::from(1u32 << 26);
                (high + (b >> 6).cast(Scalar::F64)) * 2f64.powi(-53)
            })
            .collect();
    }
    words.iter().map(|w| (*w >> (32 - digits)).cast(Scalar::F32) * 2f64.powi(-digits)).collect()
}

/// Samples strictly between 0 and 1, at the middles of equal steps: both `log(u)` and `log(1 - u)` are finite and not 0.
pub fn unit_open<'b>(words: Words<'b>, dtype: DType) -> Vec<Value<'b>> {
    if dtype == DType::F64 {
        return [(words[0], words[1]), (words[2], words[3])]
            .into_iter()
            .map(|(a, b)| {
                let high = (a >> 6).cast(Scalar::F64) * f64::from(1u32 << 26);
                (high + (b >> 6).cast(Scalar::F64) + 0.5) * 2f64.powi(-52)
            })
            .collect();
    }
    words.iter().map(|w| ((*w >> 9).cast(Scalar::F32) + 0.5) * 2f64.powi(-23)).collect()
}

pub fn check_float(call: &Call, t: &Tensor) -> Result<()> {
    check!(
        t.dtype.is_float(),
        NotImplemented,
        "\"{}\" not implemented for '{}'",
        call.name.trim_start_matches("aten::"),
        t.dtype
    );
    Ok(())
}

/// `uniform_(self, from, to, generator)`: samples in [from, to)
fn uniform(call: &mut Call) -> Result<()> {
    let out = call.tensor(0)?.clone();
    check_float(call, &out)?;
    let (from, to) = (call.double(1)?, call.double(2)?);
    check!(from <= to, Runtime, "uniform_ expects to return a [from, to) range, but found from={from} > to={to}");
    fill_uniform(call, 3, &out, from, to)?;
    call.ret(out);
    Ok(())
}

/// Fills a float tensor with samples in [from, to).
pub fn fill_uniform(call: &Call, generator: usize, out: &Tensor, from: f64, to: f64) -> Result<()> {
    let dtype = out.dtype;
    let numbers = [Number::Double(from), Number::Double(to)];
    fill(call, generator, "uniform", out, per_block(dtype), &numbers, dtype, &|_, words, v| {
        unit(words, dtype)
            .into_iter()
            .map(|u| {
                // Rounding may reach `to`, which is not in the range.
                let x = dml_kernel::convert(u * (v[1] - v[0]) + v[0], dtype);
                (x.ge(v[1]) & v[1].gt(v[0])).select(v[0], x)
            })
            .collect()
    })
}

/// Standard normal samples of the words, by G. Box and M. Muller, "A note on the generation of random normal
/// deviates", 1958.
pub fn normals<'b>(words: Words<'b>, dtype: DType) -> Vec<Value<'b>> {
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    unit(words, wide)
        .chunks(2)
        .flat_map(|pair| {
            let radius = math::sqrt(-2.0 * math::log(1.0 - pair[0]));
            let angle = pair[1] * (2.0 * std::f64::consts::PI);
            [radius * math::cos(angle), radius * math::sin(angle)]
        })
        .collect()
}

/// Checks a standard deviation.
fn check_std(std: f64) -> Result<()> {
    check!(std >= 0.0, Runtime, "normal expects std >= 0.0, but found std {std}");
    Ok(())
}

/// `normal_(self, mean, std, generator)`
fn normal(call: &mut Call) -> Result<()> {
    let out = call.tensor(0)?.clone();
    check_float(call, &out)?;
    let (mean, std) = (call.double(1)?, call.double(2)?);
    check_std(std)?;
    let dtype = out.dtype;
    let numbers = [Number::Double(mean), Number::Double(std)];
    fill(call, 3, "normal", &out, per_block(dtype), &numbers, dtype, &|_, words, v| {
        normals(words, dtype).into_iter().map(|z| z * v[1] + v[0]).collect()
    })?;
    call.ret(out);
    Ok(())
}

/// `normal(mean, std, generator[, out])`, either of them a tensor
fn normal_of(call: &mut Call, out: Option<usize>) -> Result<()> {
    let input = |i: usize| match &call.args[i] {
        Arg::Scalar(s) => Ok(Input::Number(*s, DType::F32)),
        _ => elementwise::input(call, i),
    };
    let inputs = [input(0)?, input(1)?];
    if let Input::Number(std, _) = inputs[1] {
        check_std(std.to_f64())?;
    }
    let dtype = inputs.iter().find_map(|i| match i {
        Input::Tensor(t) => Some(t.dtype),
        Input::Number(..) => None,
    });
    let dtype = dtype.unwrap_or_else(|| call.host.default_dtype());
    let out = elementwise::result_tensor(call, out.map_or(Out::New, Out::Arg), dtype, &inputs)?;
    check_float(call, &out)?;
    let noise = call.empty(dtype, &out.sizes)?;
    fill(call, 2, "normals", &noise, per_block(dtype), &[], dtype, &|_, words, _| normals(words, dtype))?;
    let inputs = [Input::Tensor(noise), inputs[0].clone(), inputs[1].clone()];
    kernel::run(call, "normal_of", 0, &[&out], &inputs, dtype, |_, v| vec![v[0] * v[2] + v[1]])?;
    call.ret(out);
    Ok(())
}

/// `log_normal_(self, mean, std, generator)`: exponentials of normal samples
fn log_normal(call: &mut Call) -> Result<()> {
    let out = call.tensor(0)?.clone();
    check_float(call, &out)?;
    let (mean, std) = (call.double(1)?, call.double(2)?);
    check!(std > 0.0, Runtime, "log_normal_ expects std > 0.0, but found std={std}");
    let dtype = out.dtype;
    let numbers = [Number::Double(mean), Number::Double(std)];
    fill(call, 3, "log_normal", &out, per_block(dtype), &numbers, dtype, &|_, words, v| {
        normals(words, dtype).into_iter().map(|z| math::exp(z * v[1] + v[0])).collect()
    })?;
    call.ret(out);
    Ok(())
}

/// `cauchy_(self, median, sigma, generator)`: the tangent of a uniform angle
fn cauchy(call: &mut Call) -> Result<()> {
    let out = call.tensor(0)?.clone();
    check_float(call, &out)?;
    let (median, sigma) = (call.double(1)?, call.double(2)?);
    check!(sigma > 0.0, Runtime, "cauchy_ expects sigma > 0.0, but found sigma={sigma}");
    let dtype = out.dtype;
    let numbers = [Number::Double(median), Number::Double(sigma)];
    fill(call, 3, "cauchy", &out, per_block(dtype), &numbers, dtype, &|_, words, v| {
        let angles = unit_open(words, dtype).into_iter().map(|u| (u - 0.5) * std::f64::consts::PI);
        angles.map(|angle| math::tan(angle) * v[1] + v[0]).collect()
    })?;
    call.ret(out);
    Ok(())
}

/// `geometric_(self, p, generator)`: trials until the first success
fn geometric(call: &mut Call) -> Result<()> {
    let out = call.tensor(0)?.clone();
    let p = call.double(1)?;
    check!(p > 0.0 && p < 1.0, Runtime, "geometric_ expects p to be in (0, 1), but got p={p}");
    check!(out.dtype != DType::Bool, NotImplemented, "\"geometric_\" not implemented for 'Bool'");
    let wide = if out.dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let log = [Number::Double((-p).ln_1p())];
    fill(call, 2, "geometric", &out, per_block(wide), &log, wide, &|_, words, v| {
        unit_open(words, wide).into_iter().map(|u| (math::log(u) / v[0]).ceil()).collect()
    })?;
    call.ret(out);
    Ok(())
}

/// `exponential_(self, lambd, generator)`
fn exponential(call: &mut Call) -> Result<()> {
    let out = call.tensor(0)?.clone();
    check_float(call, &out)?;
    let lambda = call.double(1)?;
    check!(lambda > 0.0, Runtime, "exponential_ expects lambda > 0.0, but found lambda={lambda}");
    let dtype = out.dtype;
    fill(call, 2, "exponential", &out, per_block(dtype), &[Number::Double(lambda)], dtype, &|_, words, v| {
        unit_open(words, dtype).into_iter().map(|u| -math::log(u) / v[0]).collect()
    })?;
    call.ret(out);
    Ok(())
}

/// `bernoulli_.float(self, p, generator)`
fn bernoulli_float(call: &mut Call) -> Result<()> {
    let out = call.tensor(0)?.clone();
    bernoulli(call, 2, &out, call.double(1)?)?;
    call.ret(out);
    Ok(())
}

/// Ones with probability `p`.
pub fn bernoulli(call: &Call, generator: usize, out: &Tensor, p: f64) -> Result<()> {
    check!((0.0..=1.0).contains(&p), Runtime, "bernoulli_ expects p to be in [0, 1], but got p={p}");
    fill(call, generator, "bernoulli", out, 4, &[Number::Double(p)], DType::F32, &|_, words, v| {
        unit(words, DType::F32).into_iter().map(|u| u.lt(v[0])).collect()
    })
}

/// Checks that an integer dtype holds both ends of a range.
fn check_bounds(dtype: DType, first: i64, last: i64) -> Result<()> {
    let bits = 8 * dtype.bytes() as u32;
    let (low, high) = match dtype {
        DType::Bool => (0, 1),
        d if d.is_float() || bits == 64 => return Ok(()),
        d if d.is_signed_integer() => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        _ => (0, (1 << bits) - 1),
    };
    for (name, x) in [("from", first), ("to - 1", last)] {
        check!((low..=high).contains(&x), Runtime, "{name} is out of bounds for {dtype}");
    }
    Ok(())
}

/// `random_(self)`, `random_.to(self, to)`, `random_.from(self, from, to)`: integers in [from, to). Without bounds, all
/// that the dtype counts exactly.
fn random(call: &mut Call, bounds: Option<(Option<usize>, usize)>) -> Result<()> {
    let out = call.tensor(0)?.clone();
    let dtype = out.dtype;
    let exact = match dtype {
        DType::Bool => 2,
        DType::U8 => 1 << 8,
        DType::I8 => 1 << 7,
        DType::I16 => 1 << 15,
        DType::U16 => 1 << 16,
        DType::I32 | DType::U32 => 1 << 31,
        DType::I64 | DType::U64 => i64::MAX,
        DType::F16 => (1 << 11) + 1,
        DType::BF16 => (1 << 8) + 1,
        DType::F32 => (1 << 24) + 1,
        DType::F64 => (1 << 53) + 1,
    };
    let (from, to) = match bounds {
        None => (0, exact),
        Some((from, to)) => {
            let from = from.map_or(Ok(0), |i| call.int(i))?;
            let to = call.opt_scalar(to)?.map_or(exact, Number::to_i64);
            check!(from < to, Runtime, "random_ expects 'from' to be less than 'to', but got from={from} >= to={to}");
            (from, to)
        }
    };
    check_bounds(dtype, from, to - 1)?;
    let generator = bounds.map_or(1, |(_, to)| to + 1);
    let range = to.wrapping_sub(from) as u64;
    if range < 1 << 32 && from.abs() < 1 << 31 && to.abs() < 1 << 31 {
        let numbers = [Number::Int(from), Number::Int(range as i64)];
        fill(call, generator, "random", &out, 4, &numbers, DType::I32, &|_, words, v| {
            let (from, range) = (v[0], v[1].bitcast(Scalar::U32));
            // High half of the product: the word as a fraction of the range.
            words.iter().map(|w| w.mul_high(range).bitcast(Scalar::I32) + from).collect()
        })?;
    } else {
        let numbers = [Number::Int(from), Number::Int(range as i64)];
        fill(call, generator, "random_wide", &out, 2, &numbers, DType::I64, &|_, words, v| {
            let (from, range) = (v[0], v[1].bitcast(Scalar::U64));
            [(words[0], words[1]), (words[2], words[3])]
                .into_iter()
                .map(|(low, high)| {
                    let word = low.cast(Scalar::U64) | (high.cast(Scalar::U64) << 32);
                    (word % range).bitcast(Scalar::I64) + from
                })
                .collect()
        })?;
    }
    call.ret(out);
    Ok(())
}
