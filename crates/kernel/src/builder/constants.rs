//! Constants.

use super::{Builder, Value};
use crate::ir::Inst;
use crate::types::{ScalarType, Type};

impl Builder {
    /// A bool constant.
    pub fn bool(&self, x: bool) -> Value<'_> {
        self.entry(Type::scalar(ScalarType::Bool), Inst::ConstBool(x))
    }

    /// An integer constant of any integer type, given by its low bits.
    pub fn int(&self, scalar: ScalarType, bits: u64) -> Value<'_> {
        assert!(scalar.is_integer());
        let bits = if scalar.bytes() == 4 { bits & 0xffff_ffff } else { bits };
        self.entry(Type::scalar(scalar), Inst::ConstInt(bits))
    }

    /// A floating-point constant.
    pub fn float(&self, scalar: ScalarType, x: f64) -> Value<'_> {
        assert!(scalar.is_float());
        let bits = if scalar == ScalarType::F32 { u64::from((x as f32).to_bits()) } else { x.to_bits() };
        self.float_bits(scalar, bits)
    }

    /// A floating-point constant by its bits.
    pub(crate) fn float_bits(&self, scalar: ScalarType, bits: u64) -> Value<'_> {
        self.entry(Type::scalar(scalar), Inst::ConstFloat(bits))
    }

    /// A constant of any type from a double: integers truncate, bool is `x != 0`.
    pub fn constant_of(&self, scalar: ScalarType, x: f64) -> Value<'_> {
        match scalar {
            ScalarType::Bool => self.bool(x != 0.0),
            s if s.is_float() => self.float(s, x),
            ScalarType::U64 | ScalarType::U32 => self.int(scalar, x as u64),
            _ => self.int(scalar, x as i64 as u64),
        }
    }

    /// A u32 constant.
    pub fn u32(&self, x: u32) -> Value<'_> {
        self.int(ScalarType::U32, u64::from(x))
    }

    /// An i32 constant.
    pub fn i32(&self, x: i32) -> Value<'_> {
        self.int(ScalarType::I32, x as u32 as u64)
    }
}
