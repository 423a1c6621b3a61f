//! The shapes of cooperative matrices that an adapter multiplies.

/// The element type of a cooperative matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is named as its type")]
pub enum MatrixElement {
    F16,
    Bf16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
}

/// One supported `result[m,n] = a[m,k] * b[k,n] + c[m,n]` of a subgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MatrixShape {
    /// Rows of `a`, `c` and the result.
    pub m: u32,
    /// Columns of `b`, `c` and the result.
    pub n: u32,
    /// Columns of `a`, rows of `b`.
    pub k: u32,
    /// Element of `a`.
    pub a: MatrixElement,
    /// Element of `b`.
    pub b: MatrixElement,
    /// Element of `c`.
    pub c: MatrixElement,
    /// Element of the result.
    pub result: MatrixElement,
    /// The integer accumulation saturates.
    pub saturating: bool,
}
