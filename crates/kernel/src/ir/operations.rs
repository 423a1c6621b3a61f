//! The operations of instructions.

/// The builtin values of an invocation.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Builtin {
    /// Workgroup index along dimension 0, 1 or 2.
    Group(u8),
    /// Invocation index inside the workgroup along a dimension.
    Local(u8),
    /// Number of workgroups along a dimension.
    Groups(u8),
    SubgroupLane,
    SubgroupSize,
    SubgroupIndex,
}

/// Operations on one value. All are exact on every driver.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Unary {
    Neg,
    Not,
    Abs,
    Floor,
    Ceil,
    Trunc,
    /// To the nearest integer, halves to even.
    Round,
    CountOneBits,
    /// Index of the highest set bit of an unsigned 32-bit integer, all ones for 0.
    HighestBit,
    /// `2^x` of an f32 by the adapter's instruction: Vulkan guarantees an error of at most 3 + 2|x|
    /// ulp, results below 2^-126 may be 0, and adapters differ. For results that are rounded to 16
    /// bits; [`crate::math::exp2`] has the same bits everywhere.
    FastExp2,
}

/// Operations on two values of one type. Float operations are correctly rounded and never
/// contracted.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    /// Integers only, toward zero; undefined for a zero divisor. Floats: [`crate::math::div`].
    Div,
    /// Integers only; the sign of the dividend.
    Rem,
    And,
    Or,
    Xor,
    Shl,
    /// Arithmetic for signed types.
    Shr,
    Min,
    Max,
    /// High 32 bits of the product of two u32.
    MulHigh,
}

/// Comparisons; float ones are ordered (false for NaN), except `Ne`, which is true for NaN.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// Atomic read-modify-write operations on 32 and 64-bit integers.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Atomic {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
    Exchange,
}

/// Reductions over a subgroup.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Subgroup {
    Add,
    Min,
    Max,
    /// The value of the lowest active lane.
    First,
}
