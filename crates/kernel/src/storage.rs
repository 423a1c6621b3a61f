//! Conversions between the representation of each dtype in memory and its compute type. Kernels
//! convert nowhere else.
//!
//! bf16 and [8-bit floats](crate::float8) are decoded and encoded with integer operations, rounding
//! to nearest even, so that no driver's conversion is involved. f16 is converted by [instructions
//! of the language](crate::ir::Inst::Halves), which become integer operations on adapters that
//! guarantee nothing about conversions.

use crate::builder::{Operand, Pointer, Value};
use crate::dtype::DType;
use crate::float8::Format;
use crate::types::{ScalarType, Type};

macro_rules! of_dtypes {
    ($($dtype:ident $name:literal),* $(,)?) => {
        /// The names of the functions that convert elements of a real dtype: decode, encode, round.
        pub(crate) fn conversions(dtype: DType) -> Option<[&'static str; 3]> {
            Some(match dtype {
                $(DType::$dtype => [concat!("decode_", $name), concat!("encode_", $name), concat!("round_", $name)],)*
                DType::C32 | DType::C64 | DType::C128 => return None,
            })
        }

        /// The real dtypes.
        pub(crate) const DTYPES: &[DType] = &[$(DType::$dtype),*];
    };
}

of_dtypes! {
    Bool "bool", U8 "u8", I8 "i8", I16 "i16", I32 "i32", I64 "i64", F16 "f16", BF16 "bf16", F32 "f32", F64 "f64", U16 "u16",
    U32 "u32", U64 "u64", F8E4M3FN "f8e4m3fn", F8E5M2 "f8e5m2", F8E4M3FNUZ "f8e4m3fnuz", F8E5M2FNUZ "f8e5m2fnuz",
}

/// The function that encodes a pair of bf16. A pair of f16 is encoded by an instruction.
pub(crate) const ENCODE_PAIR: &str = "encode_pair_bf16";

impl<'b> Pointer<'b> {
    /// Loads element `index`, as a value of the dtype's compute type. An index is a u32 below 2^31,
    /// or any 64-bit integer.
    pub fn load(self, index: impl Operand<'b>) -> Value<'b> {
        let index = index.value(self.builder(), ScalarType::U32);
        let raw = self.load_raw(index, Type::scalar(self.dtype().word().value()));
        decode(raw, self.dtype())
    }

    /// Writes element `index`; `value` is converted from its type.
    pub fn store(self, index: impl Operand<'b>, value: impl Operand<'b>) {
        let index = index.value(self.builder(), ScalarType::U32);
        let value = value.value(self.builder(), self.dtype().compute());
        self.store_raw(index, encode(value, self.dtype()));
    }

    /// Loads the `n` elements from `chunk * n` on, in one access if they have 4, 8 or 16 bytes
    /// together. The address of the first element must be a multiple of `n * size`; `n` is a power
    /// of two, and `n * size` is at most 32.
    pub fn load_chunk(self, chunk: Value<'b>, n: u32) -> Vec<Value<'b>> {
        let dtype = self.dtype();
        let bytes = dtype.bytes() as u32 * n;
        if n == 1 {
            return vec![self.load(chunk)];
        }
        if bytes < 4 {
            return (0..n).map(|i| self.load(chunk * n + i)).collect();
        }
        let words = load_u32s(whole_words(self, bytes), chunk, bytes / 4);
        match dtype.bytes() {
            8 => words.chunks(2).map(|w| decode(join(w[0], w[1], dtype.compute()), dtype)).collect(),
            4 => words.iter().map(|w| decode(w.bitcast(dtype.compute()), dtype)).collect(),
            _ if dtype == DType::F16 => words.iter().flat_map(|word| [word.half(0), word.half(1)]).collect(),
            size => {
                let per = 4 / size as u32;
                let (bits, mask) = (8 * size as u32, (1u32 << (8 * size)) - 1);
                (0..n).map(|i| decode((words[(i / per) as usize] >> (i % per * bits)) & mask, dtype)).collect()
            }
        }
    }

    /// Writes `values` to the elements from `chunk * values.len()` on, under the conditions of
    /// [`Pointer::load_chunk`].
    pub fn store_chunk(self, chunk: Value<'b>, values: &[Value<'b>]) {
        let dtype = self.dtype();
        let n = values.len() as u32;
        let bytes = dtype.bytes() as u32 * n;
        if n == 1 {
            return self.store(chunk, values[0]);
        }
        if bytes < 4 {
            for (i, &v) in values.iter().enumerate() {
                self.store(chunk * n + i as u32, v);
            }
            return;
        }
        let raw = || -> Vec<Value<'b>> { values.iter().map(|&v| encode(v, dtype)).collect() };
        let words: Vec<Value<'b>> = match dtype.bytes() {
            _ if matches!(dtype, DType::F16 | DType::BF16) => {
                let floats: Vec<_> = values.iter().map(|v| v.cast(ScalarType::F32)).collect();
                floats.chunks(2).map(|pair| encode_pair([pair[0], pair[1]], dtype)).collect()
            }
            8 => raw().iter().flat_map(|&r| split(r)).collect(),
            4 => raw().iter().map(|r| r.bitcast(ScalarType::U32)).collect(),
            size => {
                let raw = raw();
                let per = 4 / size as usize;
                let (bits, mask) = (8 * size as u32, (1u32 << (8 * size)) - 1);
                raw.chunks(per)
                    .map(|part| {
                        let mut word = part[0] & mask;
                        for (i, &r) in part.iter().enumerate().skip(1) {
                            word = word | ((r & mask) << (i as u32 * bits));
                        }
                        word
                    })
                    .collect()
            }
        };
        let words_at = whole_words(self, bytes);
        let vectors = words.len().div_ceil(4) as u32;
        for (i, part) in words.chunks(4).enumerate() {
            let index = if vectors == 1 { chunk } else { chunk * vectors + i as u32 };
            let v = if part.len() == 1 { part[0] } else { self.builder().vector(part) };
            words_at.store_raw(index, v);
        }
    }
}

/// A conversion, recorded as a call of the library function `name` if there is one.
fn recorded<'b>(value: Value<'b>, name: Option<&'static str>, write: impl FnOnce() -> Value<'b>) -> Value<'b> {
    match name {
        Some(name) => value.builder().function(name, &[value], write),
        None => write(),
    }
}

/// Converts a loaded word (u32 for narrow dtypes) to the dtype's compute type.
pub fn decode(raw: Value<'_>, dtype: DType) -> Value<'_> {
    recorded(raw, conversions(dtype).map(|[name, _, _]| name), || decoded(raw, dtype))
}

fn decoded(raw: Value<'_>, dtype: DType) -> Value<'_> {
    if let Some(format) = Format::of(dtype) {
        return format.decode(raw);
    }
    match dtype {
        DType::Bool => raw.ne(0),
        DType::U8 | DType::U16 => raw.bitcast(ScalarType::I32),
        DType::I8 => (raw.bitcast(ScalarType::I32) << 24) >> 24,
        DType::I16 => (raw.bitcast(ScalarType::I32) << 16) >> 16,
        DType::F16 => raw.half(0),
        DType::BF16 => (raw << 16).bitcast(ScalarType::F32),
        _ => raw,
    }
}

/// Converts a value to the word to store: to the dtype's compute type first, then to its width. The
/// bits above the dtype's width are undefined.
pub fn encode(value: Value<'_>, dtype: DType) -> Value<'_> {
    recorded(value, conversions(dtype).map(|[_, name, _]| name), || encoded(value, dtype))
}

fn encoded(value: Value<'_>, dtype: DType) -> Value<'_> {
    let whole = value.scalar().is_float() && dtype.is_integer();
    let value = if whole { truncated(value, dtype) } else { value.cast(dtype.compute()) };
    if let Some(format) = Format::of(dtype) {
        return format.encode(value);
    }
    match dtype {
        DType::Bool => value.cast(ScalarType::U32),
        DType::U8 | DType::I8 | DType::U16 | DType::I16 => value.bitcast(ScalarType::U32),
        DType::F16 => value.halves(value.like(0.0)),
        DType::BF16 => encode_bf16(value),
        _ => value,
    }
}

/// Converts a float to an integer of the dtype's compute type. A number out of range, and NaN,
/// becomes the type's least number, as in x86's instructions and so on the CPU. SPIR-V leaves the
/// result undefined, and drivers differ.
fn truncated(value: Value<'_>, dtype: DType) -> Value<'_> {
    if dtype == DType::U64 {
        // Numbers from 2^63 on are converted without the highest bit, which is then added.
        let half = 2f64.powi(63);
        let upper = value.ge(half);
        let rest = truncated(upper.select(value - half, value), DType::I64).bitcast(ScalarType::U64);
        return upper.select(rest ^ (1u64 << 63), rest);
    }
    // The CPU converts to uint32, and from float64 to uint8, by the low bits of an int64.
    let low_bits = dtype == DType::U32 || (dtype == DType::U8 && value.scalar() == ScalarType::F64);
    let to = if low_bits { ScalarType::I64 } else { dtype.compute() };
    let bound = 2f64.powi(8 * to.bytes() as i32 - 1);
    let least = if to == ScalarType::I64 { 1 << 63 } else { 1 << 31 };
    let inside = value.ge(-bound) & value.lt(bound);
    inside.select(value.cast(to), value.builder().int(to, least)).cast(dtype.compute())
}

/// The result of storing a value to a tensor of the dtype and loading it: the value in the dtype's
/// compute type, rounded or wrapped to the dtype's precision.
pub fn convert(value: Value<'_>, dtype: DType) -> Value<'_> {
    recorded(value, conversions(dtype).map(|[_, _, name]| name), || rounded(value, dtype))
}

fn rounded(value: Value<'_>, dtype: DType) -> Value<'_> {
    if dtype == DType::F16 {
        return rounded_f16(value.cast(ScalarType::F32));
    }
    let word = encode(value, dtype);
    match dtype {
        DType::U8 => decode(word & 0xff, dtype),
        DType::U16 => decode(word & 0xffff, dtype),
        _ => decode(word, dtype),
    }
}

/// Encodes two f32 as a word of f16 or bf16, the first one in the low half.
pub fn encode_pair<'b>([low, high]: [Value<'b>; 2], dtype: DType) -> Value<'b> {
    match dtype {
        DType::F16 => low.halves(high),
        DType::BF16 => low
            .builder()
            .function(ENCODE_PAIR, &[low, high], || (rounded_bf16(low) >> 16) | (rounded_bf16(high) & 0xffff_0000u32)),
        _ => unreachable!("elements of {dtype} are no halves of a word"),
    }
}

/// Rounds an f32 to f16 precision by integer operations: NVIDIA's compiler removes a pair of
/// conversions to f16 and back.
fn rounded_f16(x: Value<'_>) -> Value<'_> {
    let bits = x.bitcast(ScalarType::U32);
    let magnitude = bits & 0x7fff_ffffu32;
    let normal = (magnitude + 0xfff + ((magnitude >> 13) & 1)) & 0xffff_e000u32;
    let infinite = normal.ge(0x4780_0000u32).select(x.b.u32(0x7f80_0000), normal);
    // Adding 0.5 aligns the mantissa so that the addition rounds at f16's last subnormal bit.
    let subnormal = (magnitude.bitcast(ScalarType::F32) + 0.5) - 0.5;
    let number = magnitude.lt(0x3880_0000u32).select(subnormal.bitcast(ScalarType::U32), infinite);
    let size = magnitude.gt(0x7f80_0000u32).select(x.b.u32(0x7fc0_0000), number);
    (size | (bits & 0x8000_0000u32)).bitcast(ScalarType::F32)
}

fn encode_bf16(x: Value<'_>) -> Value<'_> {
    rounded_bf16(x) >> 16
}

/// A word whose upper half is the f32 as a bf16; the lower half is undefined.
fn rounded_bf16(x: Value<'_>) -> Value<'_> {
    let bits = x.bitcast(ScalarType::U32);
    let rounded = bits + 0x7fff + ((bits >> 16) & 1);
    x.is_nan().select(x.b.u32(0x7fc0_0000), rounded)
}

/// The same address as a pointer to 32-bit words. A pointer to a narrow dtype accesses one element
/// at a time.
fn whole_words(p: Pointer<'_>, bytes: u32) -> Pointer<'_> {
    if bytes == 4 && p.dtype().bytes() < 4 { p.retyped(DType::U32) } else { p }
}

fn load_u32s<'b>(p: Pointer<'b>, chunk: Value<'b>, words: u32) -> Vec<Value<'b>> {
    let vectors = words.div_ceil(4);
    let lanes = words.min(4) as u8;
    (0..vectors)
        .flat_map(|i| {
            let index = if vectors == 1 { chunk } else { chunk * vectors + i };
            let v = p.load_raw(index, Type { scalar: ScalarType::U32, lanes });
            if lanes == 1 { vec![v] } else { (0..lanes).map(|l| v.lane(l)).collect() }
        })
        .collect()
}

/// Two words, low first, as one 64-bit value.
fn join<'b>(low: Value<'b>, high: Value<'b>, to: ScalarType) -> Value<'b> {
    (low.cast(ScalarType::U64) | (high.cast(ScalarType::U64) << 32)).bitcast(to)
}

/// A 64-bit value as two words, low first.
fn split(x: Value<'_>) -> [Value<'_>; 2] {
    let x = x.bitcast(ScalarType::U64);
    [x.cast(ScalarType::U32), (x >> 32).cast(ScalarType::U32)]
}
