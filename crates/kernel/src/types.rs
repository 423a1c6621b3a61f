//! Types of values inside a kernel.

use std::fmt;

/// The type of a value that a kernel computes with. Narrower types exist in memory only
/// ([`crate::DType`]).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ScalarType {
    Bool,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

impl ScalarType {
    /// Bytes of one value; a bool has no size.
    pub const fn bytes(self) -> u32 {
        match self {
            ScalarType::Bool => 0,
            ScalarType::I32 | ScalarType::U32 | ScalarType::F32 => 4,
            ScalarType::I64 | ScalarType::U64 | ScalarType::F64 => 8,
        }
    }

    /// f32 or f64.
    pub const fn is_float(self) -> bool {
        matches!(self, ScalarType::F32 | ScalarType::F64)
    }

    /// i32 or i64.
    pub const fn is_signed(self) -> bool {
        matches!(self, ScalarType::I32 | ScalarType::I64)
    }

    /// Any integer.
    pub const fn is_integer(self) -> bool {
        matches!(self, ScalarType::I32 | ScalarType::U32 | ScalarType::I64 | ScalarType::U64)
    }

    /// Its name in a kernel's text.
    pub const fn name(self) -> &'static str {
        match self {
            ScalarType::Bool => "bool",
            ScalarType::I32 => "i32",
            ScalarType::U32 => "u32",
            ScalarType::I64 => "i64",
            ScalarType::U64 => "u64",
            ScalarType::F32 => "f32",
            ScalarType::F64 => "f64",
        }
    }

    /// The unsigned integer of the same width.
    pub const fn unsigned(self) -> ScalarType {
        match self {
            ScalarType::I64 | ScalarType::U64 | ScalarType::F64 => ScalarType::U64,
            _ => ScalarType::U32,
        }
    }
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The type of a value: a scalar, or a short vector for wide loads and stores.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    /// The type of a lane.
    pub scalar: ScalarType,
    /// The number of lanes: 1, 2 or 4.
    pub lanes: u8,
}

impl Type {
    /// The type of a scalar.
    pub const fn scalar(scalar: ScalarType) -> Type {
        Type { scalar, lanes: 1 }
    }
}

impl fmt::Display for Type {
    /// `f32`, or `u32x4` for a vector.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lanes {
            1 => f.write_str(self.scalar.name()),
            lanes => write!(f, "{}x{lanes}", self.scalar),
        }
    }
}

/// The unit of a load or a store: 8 and 16-bit words are widened to u32 by a load.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Word {
    W8,
    W16,
    Full(ScalarType),
}

impl Word {
    /// Bytes in memory.
    pub const fn bytes(self) -> u32 {
        match self {
            Word::W8 => 1,
            Word::W16 => 2,
            Word::Full(s) => s.bytes(),
        }
    }

    /// Its name in a kernel's text; a narrow word has the name of the unsigned integer of its
    /// width.
    pub const fn name(self) -> &'static str {
        match self {
            Word::W8 => "u8",
            Word::W16 => "u16",
            Word::Full(scalar) => scalar.name(),
        }
    }

    /// The type of the value that a load yields and a store takes.
    pub const fn value(self) -> ScalarType {
        match self {
            Word::W8 | Word::W16 => ScalarType::U32,
            Word::Full(s) => s,
        }
    }
}
