//! Arithmetic, comparisons and conversions.

use super::code::{Code, Ext, Id};
use crate::ir::{Binary, Compare, Unary};
use crate::types::{ScalarType, Type};
use rspirv::spirv::Op;

impl Code {
    pub(super) fn unary(&mut self, op: Unary, t: Id, scalar: ScalarType, a: Id) -> Id {
        match op {
            Unary::Neg if scalar.is_float() => self.op(Op::FNegate, t, &[a]),
            Unary::Neg => self.op(Op::SNegate, t, &[a]),
            Unary::Not if scalar == ScalarType::Bool => self.op(Op::LogicalNot, t, &[a]),
            Unary::Not => self.op(Op::Not, t, &[a]),
            Unary::Abs => self.ext(Ext::FAbs, t, &[a]),
            Unary::Floor => self.ext(Ext::Floor, t, &[a]),
            Unary::Ceil => self.ext(Ext::Ceil, t, &[a]),
            Unary::Trunc | Unary::Round if scalar == ScalarType::F64 => self.whole(op, t, a),
            Unary::Trunc => self.ext(Ext::Trunc, t, &[a]),
            Unary::Round => self.ext(Ext::RoundEven, t, &[a]),
            Unary::CountOneBits => self.op(Op::BitCount, t, &[a]),
            Unary::HighestBit => self.ext(Ext::FindUMsb, t, &[a]),
            Unary::FastExp2 => self.ext(Ext::Exp2, t, &[a]),
        }
    }

    /// Rounds an f64 to the nearest integer, or truncates it, by adding 2^52, and keeps the sign.
    /// The instructions of Mesa's software adapter are right only on processors with AVX-512;
    /// elsewhere they err for halves, the sign of zeros, and numbers beyond 32 bits.
    fn whole(&mut self, op: Unary, t: Id, a: Id) -> Id {
        let (words, flags) = (self.scalar(ScalarType::U64), self.scalar(ScalarType::Bool));
        let sign_bit = self.constant(ScalarType::U64, 1 << 63);
        let other_bits = self.constant(ScalarType::U64, !(1 << 63));
        let integers = self.wide_constant(2f64.powi(52).to_bits()); // All numbers from here on are integers.
        let bits = self.op(Op::Bitcast, words, &[a]);
        let sign = self.op(Op::BitwiseAnd, words, &[bits, sign_bit]);
        let size = self.op(Op::BitwiseAnd, words, &[bits, other_bits]);
        let size = self.op(Op::Bitcast, t, &[size]);
        let sum = self.exact(Op::FAdd, t, &[size, integers]);
        let mut result = self.exact(Op::FSub, t, &[sum, integers]);
        if op == Unary::Trunc {
            let one = self.wide_constant(1f64.to_bits());
            let below = self.exact(Op::FSub, t, &[result, one]);
            let above = self.op(Op::FOrdGreaterThan, flags, &[result, size]);
            result = self.op(Op::Select, t, &[above, below, result]);
        }
        let small = self.op(Op::FOrdLessThan, flags, &[size, integers]); // False for infinities and NaN.
        let result = self.op(Op::Select, t, &[small, result, size]);
        let result = self.op(Op::Bitcast, words, &[result]);
        let result = self.op(Op::BitwiseOr, words, &[result, sign]);
        self.op(Op::Bitcast, t, &[result])
    }

    pub(super) fn binary(&mut self, op: Binary, t: Id, ty: Type, a: Id, b: Id) -> Id {
        let s = ty.scalar;
        let (float, signed, logical) = (s.is_float(), s.is_signed(), s == ScalarType::Bool);
        match op {
            Binary::Add if float => self.exact(Op::FAdd, t, &[a, b]),
            Binary::Sub if float => self.exact(Op::FSub, t, &[a, b]),
            Binary::Mul if float => self.exact(Op::FMul, t, &[a, b]),
            Binary::Add => self.op(Op::IAdd, t, &[a, b]),
            Binary::Sub => self.op(Op::ISub, t, &[a, b]),
            Binary::Mul => self.op(Op::IMul, t, &[a, b]),
            Binary::Div => self.op(if signed { Op::SDiv } else { Op::UDiv }, t, &[a, b]),
            Binary::Rem => self.op(if signed { Op::SRem } else { Op::UMod }, t, &[a, b]),
            Binary::And => self.op(if logical { Op::LogicalAnd } else { Op::BitwiseAnd }, t, &[a, b]),
            Binary::Or => self.op(if logical { Op::LogicalOr } else { Op::BitwiseOr }, t, &[a, b]),
            Binary::Xor => self.op(if logical { Op::LogicalNotEqual } else { Op::BitwiseXor }, t, &[a, b]),
            Binary::Shl => self.op(Op::ShiftLeftLogical, t, &[a, b]),
            Binary::Shr => self.op(if signed { Op::ShiftRightArithmetic } else { Op::ShiftRightLogical }, t, &[a, b]),
            Binary::Min => self.ext(if signed { Ext::SMin } else { Ext::UMin }, t, &[a, b]),
            Binary::Max => self.ext(if signed { Ext::SMax } else { Ext::UMax }, t, &[a, b]),
            Binary::MulHigh => {
                let pair = self.b.type_struct([t, t]);
                let product = self.op(Op::UMulExtended, pair, &[a, b]);
                self.extract(s, product, 1)
            }
        }
    }

    pub(super) fn cast(&mut self, from: ScalarType, to: ScalarType, a: Id) -> Id {
        let t = self.scalar(to);
        if from.is_integer() && to.is_integer() {
            if from.bytes() == to.bytes() {
                return self.op(Op::Bitcast, t, &[a]);
            }
            let unsigned = self.scalar(to.unsigned());
            let mut wide = self.op(Op::UConvert, unsigned, &[a]);
            if from.is_signed() && to.bytes() > from.bytes() {
                // Sign extension by arithmetic: Mesa 22.3 miscompiles comparisons of the result of
                // an OpSConvert with constants (a negative i32 is not below 0 as an i64).
                let sign = self.constant(to.unsigned(), 1 << (8 * from.bytes() - 1));
                let flipped = self.op(Op::BitwiseXor, unsigned, &[wide, sign]);
                wide = self.op(Op::ISub, unsigned, &[flipped, sign]);
            }
            return if to.is_signed() { self.op(Op::Bitcast, t, &[wide]) } else { wide };
        }
        let op = match (from.is_float(), to.is_float()) {
            (true, true) => Op::FConvert,
            (true, false) if to.is_signed() => Op::ConvertFToS,
            (true, false) => Op::ConvertFToU,
            (false, _) if from.is_signed() => Op::ConvertSToF,
            (false, _) => Op::ConvertUToF,
        };
        self.op(op, t, &[a])
    }
}

/// The instruction of a comparison.
pub(super) fn compare(op: Compare, scalar: ScalarType) -> Op {
    let kind = if scalar.is_float() {
        0
    } else if scalar == ScalarType::Bool {
        3
    } else if scalar.is_signed() {
        1
    } else {
        2
    };
    match (op, kind) {
        (Compare::Eq, 0) => Op::FOrdEqual,
        (Compare::Ne, 0) => Op::FUnordNotEqual,
        (Compare::Lt, 0) => Op::FOrdLessThan,
        (Compare::Le, 0) => Op::FOrdLessThanEqual,
        (Compare::Gt, 0) => Op::FOrdGreaterThan,
        (Compare::Ge, 0) => Op::FOrdGreaterThanEqual,
        (Compare::Eq, 3) => Op::LogicalEqual,
        (Compare::Ne, 3) => Op::LogicalNotEqual,
        (Compare::Eq, _) => Op::IEqual,
        (Compare::Ne, _) => Op::INotEqual,
        (Compare::Lt, 1) => Op::SLessThan,
        (Compare::Le, 1) => Op::SLessThanEqual,
        (Compare::Gt, 1) => Op::SGreaterThan,
        (Compare::Ge, 1) => Op::SGreaterThanEqual,
        (Compare::Lt, _) => Op::ULessThan,
        (Compare::Le, _) => Op::ULessThanEqual,
        (Compare::Gt, _) => Op::UGreaterThan,
        (Compare::Ge, _) => Op::UGreaterThanEqual,
    }
}
