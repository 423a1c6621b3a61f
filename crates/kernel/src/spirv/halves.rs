//! Conversions between f32 and f16: the adapter's instructions if it guarantees their rounding,
//! else integer operations.
//!
//! No float mode guarantees the sign of a NaN, which `signbit` reports, and NVIDIA's conversions
//! drop it. So signs are copied by integer operations.

use super::code::{Code, Id};
use crate::types::ScalarType;
use rspirv::dr::Operand;
use rspirv::spirv::Op;

impl Code {
    /// See [`Inst::Halves`](crate::ir::Inst::Halves), by the adapter's conversions.
    pub(super) fn halves(&mut self, [low, high]: [Id; 2]) -> Id {
        let (half, pair) = self.half_types();
        let parts = [low, high].map(|x| self.op(Op::FConvert, half, &[x]));
        let pair = self.op(Op::CompositeConstruct, pair, &parts);
        let halves = self.bits_of(pair);
        let [low, high] = [low, high].map(|x| self.bits_of(x));
        let low = self.integer_with(Op::ShiftRightLogical, low, 16);
        let high = self.integer_with(Op::BitwiseAnd, high, 0xffff_0000);
        let upper = self.integer(Op::BitwiseOr, low, high);
        self.signed(halves, upper, 0x8000_8000)
    }

    /// The same by integer operations.
    pub(super) fn halves_by_integers(&mut self, parts: [Id; 2]) -> Id {
        let [low, high] = parts.map(|x| self.encoded(x));
        let high = self.integer_with(Op::ShiftLeftLogical, high, 16);
        self.integer(Op::BitwiseOr, low, high)
    }

    /// See [`Inst::Half`](crate::ir::Inst::Half), by the adapter's conversions.
    pub(super) fn half(&mut self, word: Id, part: u8) -> Id {
        let (half, pair) = self.half_types();
        let pair = self.op(Op::Bitcast, pair, &[word]);
        let operands = vec![Operand::IdRef(pair), Operand::LiteralBit32(u32::from(part))];
        let half = self.op_into(Op::CompositeExtract, half, operands);
        let float = self.scalar(ScalarType::F32);
        let whole = self.op(Op::FConvert, float, &[half]);
        let bits = self.bits_of(whole);
        let upper = if part == 0 { self.integer_with(Op::ShiftLeftLogical, word, 16) } else { word };
        let bits = self.signed(bits, upper, 0x8000_0000);
        self.float_of(bits)
    }

    /// The same by integer operations.
    pub(super) fn half_by_integers(&mut self, word: Id, part: u8) -> Id {
        let word = self.integer_with(Op::ShiftRightLogical, word, 16 * u32::from(part));
        self.decoded(word)
    }

    /// A word with its sign bits replaced by those of another word.
    fn signed(&mut self, word: Id, of: Id, signs: u32) -> Id {
        let size = self.integer_with(Op::BitwiseAnd, word, !signs);
        let sign = self.integer_with(Op::BitwiseAnd, of, signs);
        self.integer(Op::BitwiseOr, size, sign)
    }

    /// The types of an f16, and of a vector of two.
    fn half_types(&mut self) -> (Id, Id) {
        self.needs.f16 = true;
        let half = self.b.type_float(16, None);
        (half, self.b.type_vector(half, 2))
    }

    fn integer(&mut self, op: Op, a: Id, b: Id) -> Id {
        let word = self.scalar(ScalarType::U32);
        self.op(op, word, &[a, b])
    }

    fn integer_with(&mut self, op: Op, a: Id, b: u32) -> Id {
        let b = self.u32(b);
        self.integer(op, a, b)
    }

    /// Selects one of two words by an unsigned comparison of a third with a constant.
    fn where_(&mut self, compare: Op, a: Id, b: u32, then: Id, otherwise: Id) -> Id {
        let (bool, word, b) = (self.scalar(ScalarType::Bool), self.scalar(ScalarType::U32), self.u32(b));
        let condition = self.op(compare, bool, &[a, b]);
        self.op(Op::Select, word, &[condition, then, otherwise])
    }

    fn bits_of(&mut self, x: Id) -> Id {
        let word = self.scalar(ScalarType::U32);
        self.op(Op::Bitcast, word, &[x])
    }

    fn float_of(&mut self, bits: Id) -> Id {
        let float = self.scalar(ScalarType::F32);
        self.op(Op::Bitcast, float, &[bits])
    }

    /// Encodes an f32 as the bits of an f16.
    fn encoded(&mut self, x: Id) -> Id {
        let bits = self.bits_of(x);
        let high = self.integer_with(Op::ShiftRightLogical, bits, 16);
        let sign = self.integer_with(Op::BitwiseAnd, high, 0x8000);
        let magnitude = self.integer_with(Op::BitwiseAnd, bits, 0x7fff_ffff);
        let thirteen = self.integer_with(Op::ShiftRightLogical, magnitude, 13);
        let odd = self.integer_with(Op::BitwiseAnd, thirteen, 1);
        let shifted = self.integer_with(Op::IAdd, magnitude, 0xfffu32.wrapping_sub(0x3800_0000));
        let rounded = self.integer(Op::IAdd, shifted, odd);
        let normal = self.integer_with(Op::ShiftRightLogical, rounded, 13);
        // Adding 0.5 aligns the mantissa so that the addition rounds at f16's last subnormal bit.
        let float = self.scalar(ScalarType::F32);
        let (size, half) = (self.float_of(magnitude), self.constant(ScalarType::F32, 0.5f32.to_bits().into()));
        let aligned = self.op(Op::FAdd, float, &[size, half]);
        let aligned = self.bits_of(aligned);
        let subnormal = self.integer_with(Op::ISub, aligned, 0.5f32.to_bits());
        let [nan, infinity] = [0x7e00, 0x7c00].map(|bits| self.u32(bits));
        let special = self.where_(Op::UGreaterThan, magnitude, 0x7f80_0000, nan, infinity);
        let small = self.where_(Op::ULessThan, magnitude, 0x3880_0000, subnormal, normal);
        let half = self.where_(Op::UGreaterThanEqual, magnitude, 0x4780_0000, special, small);
        self.integer(Op::BitwiseOr, half, sign)
    }

    /// Decodes the f16 in the low half of a word.
    fn decoded(&mut self, word: Id) -> Id {
        let sign = self.integer_with(Op::BitwiseAnd, word, 0x8000);
        let sign = self.integer_with(Op::ShiftLeftLogical, sign, 16);
        let magnitude = self.integer_with(Op::BitwiseAnd, word, 0x7fff);
        let mantissa = self.integer_with(Op::ShiftLeftLogical, magnitude, 13);
        let normal = self.integer_with(Op::IAdd, mantissa, 112 << 23);
        let special = self.integer_with(Op::BitwiseOr, mantissa, 0x7f80_0000);
        // A subnormal f16 is its mantissa times 2^-24: the product is exact, and no f32 subnormal
        // is involved.
        let float = self.scalar(ScalarType::F32);
        let whole = self.op(Op::ConvertUToF, float, &[magnitude]);
        let unit = self.constant(ScalarType::F32, 2f32.powi(-24).to_bits().into());
        let subnormal = self.op(Op::FMul, float, &[whole, unit]);
        let subnormal = self.bits_of(subnormal);
        let small = self.where_(Op::ULessThan, magnitude, 0x400, subnormal, normal);
        let size = self.where_(Op::UGreaterThanEqual, magnitude, 0x7c00, special, small);
        let bits = self.integer(Op::BitwiseOr, size, sign);
        self.float_of(bits)
    }
}
