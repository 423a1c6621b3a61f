//! Operands: regions of registers as a value for each channel, and back.

use half::{bf16, f16};

use super::thread::Thread;
use super::{Outcome, Row, Trap};
use crate::isa::file;
use crate::isa::instruction::{Instruction, Operation, Place, Source, Target, Type};

/// Subnormals are kept: bits of the first control word.
const KEEP_DOUBLE: u32 = 1 << 6;
const KEEP_SINGLE: u32 = 1 << 7;
const KEEP_HALF: u32 = 1 << 10;

/// How floats are rounded and whether subnormals are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mode(pub u32);

impl Mode {
    /// All subnormals are kept, and the nearest is taken.
    pub const KEEP: Self = Self(KEEP_DOUBLE | KEEP_SINGLE | KEEP_HALF);

    /// The mode that an instruction has: a choice by flags moves bits, which Mesa relies on.
    #[inline(always)]
    #[must_use]
    pub fn of(self, it: &Instruction) -> Self {
        if it.operation == Operation::Sel && it.condition == 0 { Self::KEEP } else { self }
    }

    /// Rounding: 0 to the nearest, 3 to zero.
    #[must_use]
    pub fn rounding(self) -> u32 {
        self.0 >> 4 & 3
    }

    /// Flushes a subnormal f32.
    #[inline(always)]
    #[must_use]
    pub fn single(self, value: f32) -> f32 {
        let bits = value.to_bits();
        if self.0 & KEEP_SINGLE == 0 && bits & 0x7f80_0000 == 0 { f32::from_bits(bits & 0x8000_0000) } else { value }
    }

    /// Flushes a subnormal f16.
    #[inline(always)]
    #[must_use]
    pub fn half(self, bits: u16) -> u16 {
        if self.0 & KEEP_HALF == 0 && bits & 0x7c00 == 0 { bits & 0x8000 } else { bits }
    }

    /// Flushes a subnormal f64.
    #[must_use]
    pub fn double(self, value: f64) -> f64 {
        if self.0 & KEEP_DOUBLE == 0 && value.is_subnormal() { 0f64.copysign(value) } else { value }
    }
}

/// Bits as the integer that a type has.
#[inline(always)]
#[must_use]
pub fn extend(kind: Type, bits: u64) -> i64 {
    match kind {
        Type::UB => i64::from(bits as u8),
        Type::B => i64::from(bits as i8),
        Type::UW | Type::HF | Type::BF => i64::from(bits as u16),
        Type::W => i64::from(bits as i16),
        Type::UD | Type::F | Type::UV | Type::VF => i64::from(bits as u32),
        Type::D | Type::V => i64::from(bits as i32),
        Type::UQ | Type::Q | Type::DF => bits as i64,
    }
}

/// A float of eight bits: sign, three of exponent, four of mantissa.
fn restricted(bits: u8) -> f32 {
    let magnitude = bits & 0x7f;
    if magnitude == 0 {
        return if bits & 0x80 != 0 { -0.0 } else { 0.0 };
    }
    let exponent = u32::from(magnitude >> 4) + 127 - 3;
    f32::from_bits(u32::from(bits >> 7) << 31 | exponent << 23 | u32::from(magnitude & 15) << 19)
}

impl Thread {
    /// The float mode.
    #[inline(always)]
    #[must_use]
    pub fn mode(&self) -> Mode {
        Mode(self.word(file::CONTROL))
    }

    /// `bytes` bytes at a byte of the file.
    #[inline(always)]
    pub(super) fn bits(&self, byte: usize, bytes: usize) -> u64 {
        let mut value = [0; 8];
        if let Some(from) = self.file.get(byte..byte + bytes) {
            value[..bytes].copy_from_slice(from);
        }
        u64::from_le_bytes(value)
    }

    /// The bits of a source for each channel.
    ///
    /// # Errors
    ///
    /// An address register that leads outside the general registers.
    #[inline(always)]
    pub fn raw(&self, source: &Source, channels: usize) -> Outcome<Row<u64>> {
        let mut row = [0; 32];
        let bytes = source.kind.bytes();
        match source.place {
            Place::Null => {}
            Place::Immediate(value) => match source.kind {
                Type::V => (0..channels).for_each(|k| {
                    row[k] = ((value >> (4 * (k % 8))) as i64) as u64 & 15;
                    row[k] = (((row[k] << 60) as i64) >> 60) as u64;
                }),
                Type::UV => (0..channels).for_each(|k| row[k] = value >> (4 * (k % 8)) & 15),
                Type::VF => {
                    (0..channels).for_each(|k| row[k] = restricted((value >> (8 * (k % 4))) as u8).to_bits().into());
                }
                _ => row[..channels].fill(value),
            },
            Place::File(byte) => {
                let byte = usize::from(byte);
                match (source.stride(), bytes) {
                    (Some(0), _) => row[..channels].fill(self.bits(byte, bytes)),
                    (Some(1), 4) if byte + 4 * channels <= file::BYTES => {
                        let from = self.file[byte..byte + 4 * channels].chunks_exact(4);
                        for (to, b) in row.iter_mut().zip(from) {
                            *to = u32::from_le_bytes([b[0], b[1], b[2], b[3]]).into();
                        }
                    }
                    (Some(stride), 4) => {
                        (0..channels).for_each(|k| row[k] = self.word(byte + 4 * stride * k).into());
                    }
                    (Some(stride), _) => {
                        (0..channels).for_each(|k| row[k] = self.bits(byte + bytes * stride * k, bytes));
                    }
                    _ => {
                        let width = usize::from(source.width);
                        for (k, value) in row[..channels].iter_mut().enumerate() {
                            let element =
                                k / width * usize::from(source.vertical) + k % width * usize::from(source.horizontal);
                            *value = self.bits(byte + bytes * element, bytes);
                        }
                    }
                }
            }
            Place::Accumulator(first) => {
                for (k, value) in row[..channels].iter_mut().enumerate() {
                    let stride = source.stride().unwrap_or(1);
                    *value = self.accumulators[(usize::from(first) + k * stride) % 64];
                }
            }
            Place::Indirect { element, offset, each } => {
                let width = usize::from(source.width);
                for (k, value) in row[..channels].iter_mut().enumerate() {
                    let (number, rest) = if each {
                        (usize::from(element) + k / width, k % width * usize::from(source.horizontal))
                    } else {
                        let rows = k / width * usize::from(source.vertical);
                        (usize::from(element), rows + k % width * usize::from(source.horizontal))
                    };
                    let start = self.bits(file::ADDRESS + 2 * (number % 16), 2) as i64 + i64::from(offset);
                    let at = start + (bytes * rest) as i64;
                    if at < 0 || at as usize + bytes > file::GENERAL {
                        return Err(Trap::missing(format!("registers at byte {at}")));
                    }
                    *value = self.bits(at as usize, bytes);
                }
            }
        }
        Ok(row)
    }

    /// A source as integers, with its modifiers.
    ///
    /// # Errors
    ///
    /// As [`Self::raw`].
    #[inline(always)]
    pub fn integers(&self, source: &Source, channels: usize, logical: bool) -> Outcome<Row<i64>> {
        let raw = self.raw(source, channels)?;
        let mut row: Row<i64> = [0; 32];
        if matches!(source.place, Place::Accumulator(_)) {
            (0..channels).for_each(|k| row[k] = raw[k] as i64);
        } else {
            match source.kind {
                Type::UD => (0..channels).for_each(|k| row[k] = i64::from(raw[k] as u32)),
                Type::D => (0..channels).for_each(|k| row[k] = i64::from(raw[k] as i32)),
                kind => (0..channels).for_each(|k| row[k] = extend(kind, raw[k])),
            }
        }
        if source.absolute {
            row.iter_mut().for_each(|value| *value = value.wrapping_abs());
        }
        if source.negate {
            if logical {
                row.iter_mut().for_each(|value| *value = !*value);
            } else {
                row.iter_mut().for_each(|value| *value = value.wrapping_neg());
            }
        }
        Ok(row)
    }

    /// A source as f32, with its modifiers: of f32, f16, vectors and integers.
    ///
    /// # Errors
    ///
    /// As [`Self::raw`].
    #[inline(always)]
    pub fn floats(&self, source: &Source, channels: usize, mode: Mode) -> Outcome<Row<f32>> {
        let raw = self.raw(source, channels)?;
        let mut row = [0f32; 32];
        match source.kind {
            Type::F | Type::VF => (0..channels).for_each(|k| row[k] = mode.single(f32::from_bits(raw[k] as u32))),
            Type::HF => {
                (0..channels).for_each(|k| row[k] = f16::from_bits(mode.half(raw[k] as u16)).to_f32());
            }
            Type::BF => (0..channels).for_each(|k| row[k] = f32::from_bits((raw[k] as u32) << 16)),
            Type::DF => return Err(Trap::missing("a source of f64 among f32")),
            Type::UQ => (0..channels).for_each(|k| row[k] = raw[k] as f32),
            kind => (0..channels).for_each(|k| row[k] = extend(kind, raw[k]) as f32),
        }
        if source.absolute {
            row.iter_mut().for_each(|value| *value = value.abs());
        }
        if source.negate && source.kind.is_float() {
            row.iter_mut().for_each(|value| *value = -*value);
        } else if source.negate {
            // Before it was a float, where zero has no sign.
            row.iter_mut().for_each(|value| *value = 0.0 - *value);
        }
        Ok(row)
    }

    /// A source as f64, with its modifiers.
    ///
    /// # Errors
    ///
    /// As [`Self::raw`].
    pub fn doubles(&self, source: &Source, channels: usize, mode: Mode) -> Outcome<Row<f64>> {
        if source.kind != Type::DF {
            let plain = Source { negate: false, absolute: false, ..*source };
            let mut row: Row<f64> = if source.kind.is_float() {
                self.floats(&plain, channels, mode)?.map(f64::from)
            } else if source.kind == Type::UQ {
                self.raw(&plain, channels)?.map(|bits| bits as f64)
            } else {
                self.integers(&plain, channels, false)?.map(|value| value as f64)
            };
            row.iter_mut().for_each(|value| {
                *value = if source.absolute { value.abs() } else { *value };
                *value = match (source.negate, source.kind.is_float()) {
                    (false, _) => *value,
                    (true, true) => -*value,
                    (true, false) => 0.0 - *value,
                };
            });
            return Ok(row);
        }
        let raw = self.raw(source, channels)?;
        Ok(raw.map(|bits| {
            let value = mode.double(f64::from_bits(bits));
            let value = if source.absolute { value.abs() } else { value };
            if source.negate { -value } else { value }
        }))
    }

    /// Writes bits of the channels of the mask.
    ///
    /// # Errors
    ///
    /// An address register that leads outside the general registers.
    #[inline(always)]
    pub fn put(&mut self, to: &Target, channels: usize, mask: u32, row: &Row<u64>) -> Outcome {
        let bytes = to.kind.bytes();
        let stride = usize::from(to.stride);
        let start = match to.place {
            Place::Null | Place::Immediate(_) => return Ok(()),
            Place::File(byte) => usize::from(byte),
            Place::Accumulator(first) => {
                for k in (0..channels).filter(|k| mask >> k & 1 != 0) {
                    let element = usize::from(first) + k * stride;
                    self.accumulators[element % 64] = row[k];
                }
                return Ok(());
            }
            Place::Indirect { element, offset, .. } => {
                let at = self.bits(file::ADDRESS + 2 * usize::from(element % 16), 2) as i64 + i64::from(offset);
                let last = at + ((channels - 1) * stride * bytes + bytes) as i64;
                if at < 0 || last as usize > file::GENERAL {
                    return Err(Trap::missing(format!("registers at byte {at}")));
                }
                at as usize
            }
        };
        if mask == u32::MAX >> (32 - channels) && stride == 1 && bytes == 4 && start + 4 * channels <= file::BYTES {
            let to = self.file[start..start + 4 * channels].chunks_exact_mut(4);
            for (to, value) in to.zip(row) {
                to.copy_from_slice(&(*value as u32).to_le_bytes());
            }
            return Ok(());
        }
        for k in (0..channels).filter(|k| mask >> k & 1 != 0) {
            let at = start + bytes * stride * k;
            if let Some(to) = self.file.get_mut(at..at + bytes) {
                to.copy_from_slice(&row[k].to_le_bytes()[..bytes]);
            }
        }
        Ok(())
    }

    /// Writes integers as the destination's type has them, and flags of its condition.
    ///
    /// # Errors
    ///
    /// As [`Self::put`]; a condition that is missing.
    #[inline(always)]
    pub fn put_integers(&mut self, it: &Instruction, mask: u32, mut row: Row<i64>) -> Outcome {
        let (kind, channels) = (it.to.kind, usize::from(it.channels));
        if it.accumulate {
            (0..channels).for_each(|k| self.accumulators[k] = row[k] as u64);
        }
        if it.saturate {
            let (low, high) = limits(kind);
            row.iter_mut().for_each(|value| *value = (*value).clamp(low, high));
        }
        let raw: Row<u64> = match kind {
            Type::F => row.map(|value| u64::from((value as f32).to_bits())),
            Type::HF => row.map(|value| u64::from(f16::from_f64(value as f64).to_bits())),
            Type::BF => row.map(|value| u64::from(bf16::from_f64(value as f64).to_bits())),
            Type::DF => row.map(|value| (value as f64).to_bits()),
            _ => row.map(|value| value as u64),
        };
        if it.condition != 0 {
            self.condition(it, mask, &raw)?;
        }
        self.put(&it.to, channels, mask, &raw)
    }

    /// Writes f32 as the destination's type has them, and flags of its condition.
    ///
    /// # Errors
    ///
    /// As [`Self::put_integers`].
    #[inline(always)]
    pub fn put_floats(&mut self, it: &Instruction, mask: u32, mut row: Row<f32>, mode: Mode) -> Outcome {
        let channels = usize::from(it.channels);
        if it.saturate && it.to.kind.is_float() {
            row.iter_mut().for_each(|value| *value = if *value > 0.0 { value.min(1.0) } else { 0.0 });
        }
        let mut raw = [0u64; 32];
        match it.to.kind {
            Type::F => (0..channels).for_each(|k| raw[k] = mode.single(row[k]).to_bits().into()),
            Type::HF => (0..channels).for_each(|k| raw[k] = mode.half(to_half(row[k], mode)).into()),
            Type::BF => (0..channels).for_each(|k| raw[k] = bf16::from_f32(row[k]).to_bits().into()),
            Type::DF => (0..channels).for_each(|k| raw[k] = f64::from(row[k]).to_bits()),
            kind => {
                let (low, high) = limits(kind);
                (0..channels).for_each(|k| raw[k] = (row[k] as i64).clamp(low, high) as u64);
                // Beyond the range of i64 there is more of unsigned numbers.
                if kind == Type::UQ {
                    (0..channels).for_each(|k| raw[k] = row[k] as u64);
                }
            }
        }
        if it.accumulate {
            (0..channels).for_each(|k| self.accumulators[k] = row[k].to_bits().into());
        }
        if it.condition != 0 {
            self.condition(it, mask, &raw)?;
        }
        self.put(&it.to, channels, mask, &raw)
    }

    /// Writes f64 as the destination's type has them, and flags of its condition.
    ///
    /// # Errors
    ///
    /// As [`Self::put_integers`].
    pub fn put_doubles(&mut self, it: &Instruction, mask: u32, mut row: Row<f64>, mode: Mode) -> Outcome {
        let channels = usize::from(it.channels);
        if it.saturate && it.to.kind.is_float() {
            row.iter_mut().for_each(|value| *value = if *value > 0.0 { value.min(1.0) } else { 0.0 });
        }
        let raw = match it.to.kind {
            Type::F => row.map(|value| mode.single(value as f32).to_bits().into()),
            Type::HF => row.map(|value| mode.half(f16::from_f64(value).to_bits()).into()),
            Type::BF => row.map(|value| bf16::from_f64(value).to_bits().into()),
            Type::DF => row.map(|value| mode.double(value).to_bits()),
            Type::UQ => row.map(|value| value as u64),
            kind => {
                let (low, high) = limits(kind);
                row.map(|value| (value as i64).clamp(low, high) as u64)
            }
        };
        if it.condition != 0 {
            self.condition(it, mask, &raw)?;
        }
        self.put(&it.to, channels, mask, &raw)
    }

    /// Sets flags where a result, in the destination's type, compares with zero as the condition
    /// says.
    fn condition(&mut self, it: &Instruction, mask: u32, raw: &Row<u64>) -> Outcome {
        let mut values = 0;
        for (k, &bits) in raw[..usize::from(it.channels)].iter().enumerate() {
            let holds = match it.to.kind {
                Type::F => compare(it.condition, &f32::from_bits(bits as u32), &0.0),
                Type::HF => compare(it.condition, &f16::from_bits(bits as u16), &f16::ZERO),
                Type::BF => compare(it.condition, &bf16::from_bits(bits as u16), &bf16::ZERO),
                Type::DF => compare(it.condition, &f64::from_bits(bits), &0.0),
                Type::UQ => compare(it.condition, &bits, &0),
                kind => compare(it.condition, &extend(kind, bits), &0),
            };
            values |= u32::from(holds.ok_or_else(|| Trap::missing(format!("condition {}", it.condition)))?) << k;
        }
        self.set_flags(it, mask, values);
        Ok(())
    }
}

/// f32 as f16, to the nearest or to zero.
#[inline(always)]
#[must_use]
pub fn to_half(value: f32, mode: Mode) -> u16 {
    let near = f16::from_f32(value);
    if mode.rounding() == 3 && near.to_f32().abs() > value.abs() && value.is_finite() {
        return near.to_bits() - 1;
    }
    near.to_bits()
}

/// Whether a condition holds; none if it is missing here.
#[inline(always)]
#[must_use]
pub fn compare<T: PartialOrd>(condition: u8, a: &T, b: &T) -> Option<bool> {
    Some(match condition {
        1 => a == b,
        2 => a != b,
        3 => a > b,
        4 => a >= b,
        5 => a < b,
        6 => a <= b,
        _ => return None,
    })
}

/// The least and the greatest integer of a type.
#[must_use]
pub fn limits(kind: Type) -> (i64, i64) {
    match kind {
        Type::UB => (0, u8::MAX.into()),
        Type::B => (i8::MIN.into(), i8::MAX.into()),
        Type::UW => (0, u16::MAX.into()),
        Type::W => (i16::MIN.into(), i16::MAX.into()),
        Type::UD => (0, u32::MAX.into()),
        Type::D => (i32::MIN.into(), i32::MAX.into()),
        Type::UQ => (0, i64::MAX),
        _ => (i64::MIN, i64::MAX),
    }
}
