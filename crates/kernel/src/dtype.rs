//! Element types of tensors in memory.
//!
//! A complex number is a pair of real numbers, the real part first. Kernels compute with real
//! numbers only: they take a tensor of complex numbers as two real tensors, or as bits.

use crate::types::{ScalarType, Word};
use std::fmt;

/// The element type of a tensor in memory. The discriminants are the codes of the C ABI.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum DType {
    Bool = 0,
    U8 = 1,
    I8 = 2,
    I16 = 3,
    I32 = 4,
    I64 = 5,
    F16 = 6,
    BF16 = 7,
    F32 = 8,
    F64 = 9,
    U16 = 10,
    U32 = 11,
    U64 = 12,
    C32 = 13,
    C64 = 14,
    C128 = 15,
    F8E4M3FN = 16,
    F8E5M2 = 17,
    F8E4M3FNUZ = 18,
    F8E5M2FNUZ = 19,
}

impl DType {
    /// The real dtypes except 8-bit floats, by code. A kernel's pointer may have them.
    pub const ALL: [DType; 13] = [
        DType::Bool,
        DType::U8,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
        DType::U16,
        DType::U32,
        DType::U64,
    ];

    /// The complex dtypes, whose codes follow those of [`ALL`](Self::ALL).
    pub const COMPLEX: [DType; 3] = [DType::C32, DType::C64, DType::C128];

    /// The 8-bit floats, whose codes follow those of [`COMPLEX`](Self::COMPLEX). A kernel's pointer
    /// may have them.
    pub const FLOAT8: [DType; 4] = [DType::F8E4M3FN, DType::F8E5M2, DType::F8E4M3FNUZ, DType::F8E5M2FNUZ];

    /// The dtype of a code of the C ABI.
    pub fn from_code(code: u8) -> Option<DType> {
        let code = usize::from(code);
        let complex = || DType::COMPLEX.get(code.wrapping_sub(DType::C32 as usize));
        let float8 = || DType::FLOAT8.get(code.wrapping_sub(DType::F8E4M3FN as usize));
        DType::ALL.get(code).or_else(complex).or_else(float8).copied()
    }

    /// The dtype with a [short name](DType::short_name).
    pub fn from_short_name(name: &str) -> Option<DType> {
        (0..=u8::MAX).filter_map(DType::from_code).find(|dtype| dtype.short_name() == name)
    }

    /// Its name in a kernel's text: `f32`, `bf16`, `u8`.
    pub const fn short_name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::U8 => "u8",
            DType::I8 => "i8",
            DType::I16 => "i16",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::U16 => "u16",
            DType::U32 => "u32",
            DType::U64 => "u64",
            DType::C32 => "c32",
            DType::C64 => "c64",
            DType::C128 => "c128",
            DType::F8E4M3FN => "f8e4m3fn",
            DType::F8E5M2 => "f8e5m2",
            DType::F8E4M3FNUZ => "f8e4m3fnuz",
            DType::F8E5M2FNUZ => "f8e5m2fnuz",
        }
    }

    /// Bytes of one element.
    pub const fn bytes(self) -> u64 {
        match self {
            DType::Bool | DType::U8 | DType::I8 => 1,
            DType::F8E4M3FN | DType::F8E5M2 | DType::F8E4M3FNUZ | DType::F8E5M2FNUZ => 1,
            DType::I16 | DType::F16 | DType::BF16 | DType::U16 => 2,
            DType::I32 | DType::F32 | DType::U32 | DType::C32 => 4,
            DType::I64 | DType::F64 | DType::U64 | DType::C64 => 8,
            DType::C128 => 16,
        }
    }

    /// Whether it is a complex type.
    pub const fn is_complex(self) -> bool {
        matches!(self, DType::C32 | DType::C64 | DType::C128)
    }

    /// Whether it is an 8-bit float.
    pub const fn is_float8(self) -> bool {
        self as u8 > DType::C128 as u8
    }

    /// Whether it is neither complex nor an 8-bit float: a dtype that every operator takes.
    pub const fn is_common(self) -> bool {
        self as u8 <= DType::U64 as u8
    }

    /// The dtype of the parts of a complex number; of a real dtype, the dtype itself.
    pub const fn real(self) -> DType {
        match self {
            DType::C32 => DType::F16,
            DType::C64 => DType::F32,
            DType::C128 => DType::F64,
            real => real,
        }
    }

    /// The complex dtype whose parts represent the numbers of a real dtype; f32 parts for integers.
    pub const fn complex(self) -> DType {
        match self {
            DType::F16 | DType::C32 => DType::C32,
            DType::F64 | DType::C128 => DType::C128,
            _ => DType::C64,
        }
    }

    /// Whether it is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::BF16 | DType::F32 | DType::F64) || self.is_float8()
    }

    /// Whether it is an integer type; bool is not one.
    pub const fn is_integer(self) -> bool {
        !self.is_float() && !matches!(self, DType::Bool) && !self.is_complex()
    }

    /// Whether it is a signed integer type.
    pub const fn is_signed_integer(self) -> bool {
        matches!(self, DType::I8 | DType::I16 | DType::I32 | DType::I64)
    }

    /// The type in which kernels compute: narrow integers in 32 bits, half-precision floats in f32,
    /// and the parts of complex numbers as real numbers.
    pub const fn compute(self) -> ScalarType {
        match self {
            DType::Bool => ScalarType::Bool,
            DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::U16 => ScalarType::I32,
            DType::U32 => ScalarType::U32,
            DType::I64 => ScalarType::I64,
            DType::U64 => ScalarType::U64,
            DType::F16 | DType::BF16 | DType::F32 | DType::C32 | DType::C64 => ScalarType::F32,
            DType::F8E4M3FN | DType::F8E5M2 | DType::F8E4M3FNUZ | DType::F8E5M2FNUZ => ScalarType::F32,
            DType::F64 | DType::C128 => ScalarType::F64,
        }
    }

    /// The memory word of a real dtype.
    pub fn word(self) -> Word {
        assert!(!self.is_complex(), "a kernel's pointer is to reals, not to {self}");
        match self {
            DType::Bool | DType::U8 | DType::I8 => Word::W8,
            float8 if float8.is_float8() => Word::W8,
            DType::I16 | DType::U16 | DType::F16 | DType::BF16 => Word::W16,
            other => Word::Full(other.compute()),
        }
    }

    /// The unsigned integer type of the same width, for copying bits; for 16 bytes, the type of
    /// each half.
    pub const fn bits(self) -> DType {
        match self.bytes() {
            1 => DType::U8,
            2 => DType::U16,
            4 => DType::U32,
            _ => DType::U64,
        }
    }
}

impl fmt::Display for DType {
    /// The name in messages: `Float`, `Half`, `Long`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DType::Bool => "Bool",
            DType::U8 => "Byte",
            DType::I8 => "Char",
            DType::I16 => "Short",
            DType::I32 => "Int",
            DType::I64 => "Long",
            DType::F16 => "Half",
            DType::BF16 => "BFloat16",
            DType::F32 => "Float",
            DType::F64 => "Double",
            DType::U16 => "UInt16",
            DType::U32 => "UInt32",
            DType::U64 => "UInt64",
            DType::C32 => "ComplexHalf",
            DType::C64 => "ComplexFloat",
            DType::C128 => "ComplexDouble",
            DType::F8E4M3FN => "Float8_e4m3fn",
            DType::F8E5M2 => "Float8_e5m2",
            DType::F8E4M3FNUZ => "Float8_e4m3fnuz",
            DType::F8E5M2FNUZ => "Float8_e5m2fnuz",
        })
    }
}
