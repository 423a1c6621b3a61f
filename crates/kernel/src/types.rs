//! Types of values inside a kernel.

/// The type of a value that a kernel computes with. Narrower types exist in memory only ([`crate::DType`]).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Scalar {
    Bool,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

impl Scalar {
    /// Bytes of one value; a bool has no size.
    pub const fn bytes(self) -> u32 {
        match self {
            Scalar::Bool => 0,
            Scalar::I32 | Scalar::U32 | Scalar::F32 => 4,
            Scalar::I64 | Scalar::U64 | Scalar::F64 => 8,
        }
    }

    /// f32 or f64.
    pub const fn is_float(self) -> bool {
        matches!(self, Scalar::F32 | Scalar::F64)
    }

    /// i32 or i64.
    pub const fn is_signed(self) -> bool {
        matches!(self, Scalar::I32 | Scalar::I64)
    }

    /// Any integer.
    pub const fn is_integer(self) -> bool {
        matches!(self, Scalar::I32 | Scalar::U32 | Scalar::I64 | Scalar::U64)
    }

    /// The unsigned integer of the same width.
    pub const fn unsigned(self) -> Scalar {
        match self {
            Scalar::I64 | Scalar::U64 | Scalar::F64 => Scalar::U64,
            _ => Scalar::U32,
        }
    }
}

/// The type of a value: a scalar, or a short vector that wide loads and stores move.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    /// The element.
    pub scalar: Scalar,
    /// 1, 2 or 4.
    pub lanes: u8,
}

impl Type {
    /// A scalar's type.
    pub const fn scalar(scalar: Scalar) -> Type {
        Type { scalar, lanes: 1 }
    }
}

/// How elements lie in memory, as far as a load instruction sees it: 8 and 16-bit words are widened to u32.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Word {
    W8,
    W16,
    Full(Scalar),
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

    /// The type a load yields and a store takes.
    pub const fn value(self) -> Scalar {
        match self {
            Word::W8 | Word::W16 => Scalar::U32,
            Word::Full(s) => s,
        }
    }
}
