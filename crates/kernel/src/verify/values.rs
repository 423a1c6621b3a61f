//! The types of a value and its operands.

use super::verifier::{BOOL, Check, Verifier, WORDS, check, is_number, list, moves};
use crate::ir::*;
use crate::text::names::mnemonic;
use crate::types::{ScalarType, Type};

impl Verifier<'_> {
    pub(super) fn value(&self, id: ValueId) -> Check {
        let ValueInfo { ty, ref inst } = self.k.values[id as usize];
        let wrong = || format!("{} gives no {ty}", mnemonic(inst));
        let wrong_of = |operands: &[Type]| format!("{} of {} gives no {ty}", mnemonic(inst), list(operands));
        match *inst {
            Inst::ConstBool(_) => check(ty == BOOL, wrong),
            Inst::ConstInt(_) => check(ty.lanes == 1 && ty.scalar.is_integer(), wrong),
            Inst::ConstFloat(_) => check(ty.lanes == 1 && ty.scalar.is_float(), wrong),
            Inst::Builtin(Builtin::Group(d) | Builtin::Local(d) | Builtin::Groups(d)) if d > 2 => Err(wrong()),
            Inst::Builtin(_) => check(ty == Type::scalar(ScalarType::U32), wrong),
            Inst::Param(p) => match self.k.params.get(p as usize).map(|p| p.kind) {
                Some(ParamKind::Scalar(s)) => check(ty == Type::scalar(s) && is_number(ty), wrong),
                Some(ParamKind::Words) => check(ty == WORDS, wrong),
                _ => Err(wrong()),
            },
            Inst::Placeholder(_) => Err(wrong()),
            Inst::Address(pointer) => {
                self.pointer(pointer)?;
                check(ty == WORDS, wrong)
            }
            Inst::Unary(op, a) => {
                let a = self.used(a)?;
                let takes = match op {
                    Unary::Neg => is_number(ty),
                    Unary::Not => !ty.scalar.is_float(),
                    Unary::Trunc | Unary::Round if ty.scalar == ScalarType::F64 => ty.lanes == 1,
                    Unary::Abs | Unary::Floor | Unary::Ceil | Unary::Trunc | Unary::Round => ty.scalar.is_float(),
                    Unary::CountOneBits => ty.scalar.is_integer() && ty.scalar.bytes() == 4,
                    Unary::HighestBit => ty.scalar == ScalarType::U32,
                    Unary::FastExp2 => ty.scalar == ScalarType::F32,
                };
                check(takes && a == ty, || wrong_of(&[a]))
            }
            Inst::Binary(op, a, b) => {
                let (a, b) = (self.used(a)?, self.used(b)?);
                let takes = match op {
                    Binary::Add | Binary::Sub | Binary::Mul => is_number(ty),
                    Binary::And | Binary::Or | Binary::Xor => !ty.scalar.is_float(),
                    Binary::MulHigh => ty == Type::scalar(ScalarType::U32),
                    Binary::Div | Binary::Rem | Binary::Shl | Binary::Shr | Binary::Min | Binary::Max => {
                        ty.scalar.is_integer()
                    }
                };
                check(takes && a == ty && b == ty, || wrong_of(&[a, b]))
            }
            Inst::Compare(op, a, b) => {
                let (a, b) = (self.used(a)?, self.used(b)?);
                let takes = is_number(a) || matches!(op, Compare::Eq | Compare::Ne);
                check(takes && ty == BOOL && a.lanes == 1 && a == b, || wrong_of(&[a, b]))
            }
            Inst::Select(c, a, b) => {
                let (c, a, b) = (self.used(c)?, self.used(a)?, self.used(b)?);
                check(c == BOOL && a == ty && b == ty, || wrong_of(&[c, a, b]))
            }
            Inst::Cast(a) => {
                let a = self.used(a)?;
                let fits = is_number(a) && is_number(ty) && a.scalar != ty.scalar && (a.lanes, ty.lanes) == (1, 1);
                check(fits, || wrong_of(&[a]))
            }
            Inst::Bitcast(a) => {
                let a = self.used(a)?;
                let fits =
                    is_number(a) && is_number(ty) && a.scalar.bytes() == ty.scalar.bytes() && a.lanes == ty.lanes;
                check(fits && a != ty, || wrong_of(&[a]))
            }
            Inst::Fma(a, b, c) => {
                let (a, b, c) = (self.used(a)?, self.used(b)?, self.used(c)?);
                check(ty.scalar.is_float() && [a, b, c] == [ty; 3], || wrong_of(&[a, b, c]))
            }
            Inst::GetVar { var, index } => {
                let var = self.variable(var, index)?;
                check(var == ty, || wrong_of(&[var]))
            }
            Inst::Load { pointer, index } => {
                let word = self.pointer(pointer)?;
                self.index(index)?;
                check(moves(word, ty), || format!("memory of {} gives no {ty}", word.name()))
            }
            Inst::LoadShared { shared, index } => {
                let element = self.shared(shared, index)?;
                check(element == ty, || wrong_of(&[element]))
            }
            Inst::Extract(a, lane) => {
                let a = self.used(a)?;
                let fits = a.lanes > 1 && lane < a.lanes && ty == Type::scalar(a.scalar);
                check(fits, || wrong_of(&[a]))
            }
            Inst::Vector(ref lanes) => {
                let types = lanes.iter().map(|&l| self.used(l)).collect::<Result<Vec<_>, _>>()?;
                let fits = matches!(ty.lanes, 2 | 4) && types.len() == usize::from(ty.lanes);
                check(fits && types.iter().all(|&t| t == Type::scalar(ty.scalar)), || wrong_of(&types))
            }
            Inst::Atomic { op: _, pointer, index, value } => {
                let value = self.used(value)?;
                self.atomic(pointer, index, ty)?;
                check(value == ty, || wrong_of(&[value]))
            }
            Inst::AtomicShared { op: _, shared, index, value } => {
                let (element, value) = (self.shared(shared, index)?, self.used(value)?);
                let fits = element == ty && ty.lanes == 1 && ty.scalar.is_integer() && ty.scalar.bytes() == 4;
                check(fits && value == ty, || wrong_of(&[element, value]))
            }
            Inst::CompareExchange { pointer, index, expected, value } => {
                let (expected, value) = (self.used(expected)?, self.used(value)?);
                self.atomic(pointer, index, ty)?;
                check([expected, value] == [ty; 2], || wrong_of(&[expected, value]))
            }
            Inst::Subgroup(op, a) => {
                let a = self.used(a)?;
                let takes = is_number(ty) || op == Subgroup::First;
                check(takes && ty.lanes == 1 && a == ty, || wrong_of(&[a]))
            }
            Inst::ShuffleXor(a, _) => {
                let a = self.used(a)?;
                check(ty.lanes == 1 && a == ty, || wrong_of(&[a]))
            }
            Inst::Component { matrix, component } => {
                let of = self.matrix(matrix)?;
                check(of.dtype.is_float() && component < of.len() && ty == Type::scalar(ScalarType::F32), wrong)
            }
            Inst::Larger(a, b) => {
                let (a, b) = (self.used(a)?, self.used(b)?);
                check(ty == Type::scalar(ScalarType::F32) && [a, b] == [ty; 2], || wrong_of(&[a, b]))
            }
            Inst::Halves(low, high) => {
                let parts = [self.used(low)?, self.used(high)?];
                let floats = parts == [Type::scalar(ScalarType::F32); 2];
                check(ty == Type::scalar(ScalarType::U32) && floats, || wrong_of(&parts))
            }
            Inst::Half(word, half) => {
                let word = self.used(word)?;
                let takes = word == Type::scalar(ScalarType::U32) && half < 2;
                check(ty == Type::scalar(ScalarType::F32) && takes, || wrong_of(&[word]))
            }
        }
    }
}
