//! Types, constants and expressions.

use super::emitter::Emitter;
use crate::ir::*;
use crate::types::{ScalarType, Type};

/// A type's name.
pub(super) fn type_name(ty: Type) -> String {
    let scalar = match ty.scalar {
        ScalarType::Bool => "bool",
        ScalarType::I32 => "int",
        ScalarType::U32 => "uint",
        ScalarType::I64 => "int64_t",
        ScalarType::U64 => "uint64_t",
        ScalarType::F32 => "float",
        ScalarType::F64 => "double",
    };
    if ty.lanes == 1 { scalar.into() } else { format!("{scalar}{}", ty.lanes) }
}

/// A constant, with its type; `None` for other values. Floats are emitted as their bits.
pub(super) fn constant(value: &ValueInfo) -> Option<String> {
    let scalar = value.ty.scalar;
    Some(match value.inst {
        Inst::ConstBool(x) => x.to_string(),
        Inst::ConstInt(x) => match scalar {
            ScalarType::I32 => format!("asint({:#x}u)", x as u32),
            ScalarType::U32 => format!("{}u", x as u32),
            ScalarType::I64 => format!("((int64_t){x:#x}ull)"),
            _ => format!("((uint64_t){x:#x}ull)"),
        },
        Inst::ConstFloat(bits) if scalar == ScalarType::F32 => format!("asfloat({bits:#x}u)"),
        Inst::ConstFloat(bits) => {
            format!("asdouble({:#x}u, {:#x}u)", bits as u32, bits >> 32)
        }
        _ => return None,
    })
}

impl Emitter<'_> {
    /// The expression that computes a value.
    pub(super) fn value(&self, id: ValueId) -> String {
        let ValueInfo { ty, ref inst } = self.k.values[id as usize];
        match *inst {
            Inst::ConstBool(_)
            | Inst::ConstInt(_)
            | Inst::ConstFloat(_)
            | Inst::Builtin(_)
            | Inst::Param(_)
            | Inst::Placeholder(_) => self.v(id).to_owned(),
            Inst::Address(pointer) => format!("p{pointer}"),
            Inst::Unary(op, a) => self.unary(op, ty, self.v(a)),
            Inst::Binary(op, a, b) => binary(op, ty, self.v(a), self.v(b)),
            // In the compiler's SPIR-V, `!=` is false for NaN.
            Inst::Compare(Compare::Ne, a, b) if self.k.values[a as usize].ty.scalar.is_float() => {
                format!("!({} == {})", self.v(a), self.v(b))
            }
            Inst::Compare(op, a, b) => format!("{} {} {}", self.v(a), compare(op), self.v(b)),
            Inst::Select(c, a, b) => format!("{} ? {} : {}", self.v(c), self.v(a), self.v(b)),
            Inst::Cast(a) => cast(self.k.values[a as usize].ty.scalar, ty, self.v(a)),
            Inst::Bitcast(a) => bitcast(self.k.values[a as usize].ty, ty, self.v(a)),
            Inst::Fma(a, b, c) if ty.scalar == ScalarType::F64 => {
                format!("fma({}, {}, {})", self.v(a), self.v(b), self.v(c))
            }
            Inst::Fma(a, b, c) => format!("mad({}, {}, {})", self.v(a), self.v(b), self.v(c)),
            Inst::GetVar { var, index } => self.variable(var, index),
            Inst::Load { pointer, index } => self.load(pointer, index, ty),
            Inst::LoadShared { shared, index } => format!("s{shared}[{}]", self.v(index)),
            Inst::Extract(a, lane) => format!("{}[{lane}]", self.v(a)),
            Inst::Vector(ref lanes) => {
                let lanes: Vec<&str> = lanes.iter().map(|&lane| self.v(lane)).collect();
                format!("{}({})", type_name(ty), lanes.join(", "))
            }
            Inst::Subgroup(op, a) => {
                let function = match op {
                    Subgroup::Add => "WaveActiveSum",
                    Subgroup::Min => "WaveActiveMin",
                    Subgroup::Max => "WaveActiveMax",
                    Subgroup::First => "WaveReadLaneFirst",
                };
                format!("{function}({})", self.v(a))
            }
            Inst::ShuffleXor(a, mask) => format!("WaveReadLaneAt({}, WaveGetLaneIndex() ^ {mask}u)", self.v(a)),
            Inst::Larger(a, b) => format!("max({}, {})", self.v(a), self.v(b)),
            Inst::Halves(low, high) => format!("half_of({}) | half_of({}) << 16", self.v(low), self.v(high)),
            Inst::Half(word, half) => format!("float_of({} >> {}u & 0xffffu)", self.v(word), 16 * half),
            Inst::Atomic { .. } | Inst::AtomicShared { .. } | Inst::CompareExchange { .. } => {
                unreachable!("a statement of its own")
            }
            Inst::Component { .. } => unreachable!("kernels with matrices are refused"),
        }
    }

    fn unary(&self, op: Unary, ty: Type, a: &str) -> String {
        let function = match (op, ty.scalar) {
            (Unary::Neg, _) => return format!("-{a}"),
            (Unary::Not, ScalarType::Bool) => return format!("!{a}"),
            (Unary::Not, _) => return format!("~{a}"),
            (Unary::Abs, ScalarType::F64) => "magnitude",
            (Unary::Floor, ScalarType::F64) => "floored",
            (Unary::Ceil, ScalarType::F64) => "ceiled",
            (Unary::Trunc, ScalarType::F64) => "truncated",
            (Unary::Round, ScalarType::F64) => "rounded",
            (Unary::Abs, _) => "abs",
            (Unary::Floor, _) => "floor",
            (Unary::Ceil, _) => "ceil",
            (Unary::Trunc, _) => "trunc",
            (Unary::Round, _) => "round",
            (Unary::CountOneBits, _) => "countbits",
            (Unary::HighestBit, _) => "firstbithigh",
            (Unary::FastExp2, _) => "exp2",
        };
        format!("{function}({a})")
    }
}

fn binary(op: Binary, ty: Type, a: &str, b: &str) -> String {
    let logical = ty.scalar == ScalarType::Bool;
    let infix = match op {
        Binary::Add => "+",
        Binary::Sub => "-",
        Binary::Mul => "*",
        Binary::Div => "/",
        Binary::Rem => "%",
        Binary::And if logical => "&&",
        Binary::Or if logical => "||",
        Binary::Xor if logical => "!=",
        Binary::And => "&",
        Binary::Or => "|",
        Binary::Xor => "^",
        Binary::Shl => "<<",
        Binary::Shr => ">>",
        Binary::Min => return format!("{a} < {b} ? {a} : {b}"),
        Binary::Max => return format!("{a} > {b} ? {a} : {b}"),
        Binary::MulHigh => return format!("mul_high({a}, {b})"),
    };
    format!("{a} {infix} {b}")
}

fn compare(op: Compare) -> &'static str {
    match op {
        Compare::Eq => "==",
        Compare::Ne => "!=",
        Compare::Lt => "<",
        Compare::Le => "<=",
        Compare::Gt => ">",
        Compare::Ge => ">=",
    }
}

/// A conversion, in forms that are right in the compiler's SPIR-V, too. That SPIR-V converts
/// between a float and an integer of another width through a float of the integer's width, or
/// through an integer of the float's width.
fn cast(from: ScalarType, to: Type, a: &str) -> String {
    let wide = |scalar: ScalarType| scalar.is_integer() && scalar.bytes() == 8;
    match (from, to.scalar) {
        (from, ScalarType::F32) if wide(from) => format!("to_float({a})"),
        (ScalarType::F64, scalar) if scalar.is_integer() && !wide(scalar) => format!("({})(int64_t){a}", type_name(to)),
        (ScalarType::F32, scalar) if wide(scalar) => format!("({})to_uint64({a})", type_name(to)),
        _ => format!("({}){a}", type_name(to)),
    }
}

/// The same bits as another type of the same width.
fn bitcast(from: Type, to: Type, a: &str) -> String {
    if from == to {
        return a.to_owned();
    }
    if from.scalar.bytes() == 4 && to.scalar.bytes() == 4 {
        let function = match to.scalar {
            ScalarType::F32 => "asfloat",
            ScalarType::I32 => "asint",
            _ => "asuint",
        };
        return format!("{function}({a})");
    }
    if from.scalar.is_integer() && to.scalar.is_integer() && from.lanes == to.lanes {
        return format!("({}){a}", type_name(to));
    }
    // Between 64-bit types, through two 32-bit words.
    let words = match from.scalar {
        ScalarType::F64 => format!("halves({a})"),
        scalar if scalar.bytes() == 8 => format!("split((uint64_t){a})"),
        ScalarType::U32 => a.to_owned(),
        _ => format!("asuint({a})"),
    };
    match to.scalar {
        ScalarType::F64 => format!("whole({words})"),
        scalar if scalar.bytes() == 8 => format!("({})join({words})", type_name(to)),
        _ => format!("({})({words})", type_name(to)),
    }
}
