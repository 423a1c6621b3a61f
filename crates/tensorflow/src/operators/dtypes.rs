//! The sets of dtypes that operators have kernels for.
//!
//! int32 is missing in the sets of arithmetic: TensorFlow computes it on the host, where shapes are.

use dml_kernel::DType;

/// Floats.
pub const FLOATS: &[DType] = &[DType::F32, DType::F16, DType::BF16, DType::F64];

/// Floats and int32, of convolutions.
pub const CONVOLUTION: &[DType] = &[DType::F32, DType::F16, DType::BF16, DType::F64, DType::I32];

/// Floats of at most 32 bits.
pub const HALF_FLOATS: &[DType] = &[DType::F32, DType::F16, DType::BF16];

/// What patches of images may be: what is only copied, beside integers.
pub const MOVED_FLOATS: &[DType] =
    &[DType::F32, DType::F16, DType::BF16, DType::F64, DType::Bool, DType::C64, DType::C128];

/// Floats and complex numbers.
pub const FIELDS: &[DType] = &[DType::F32, DType::F16, DType::BF16, DType::F64, DType::C64, DType::C128];

/// Integers except int32.
pub const INTEGERS: &[DType] = &[DType::I64, DType::I16, DType::I8, DType::U8, DType::U16, DType::U32, DType::U64];

/// Real numbers except int32.
pub const REALS: &[DType] = &[
    DType::F32,
    DType::F16,
    DType::BF16,
    DType::F64,
    DType::I64,
    DType::I16,
    DType::I8,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
];

/// Numbers except int32.
pub const NUMBERS: &[DType] = &[
    DType::F32,
    DType::F16,
    DType::BF16,
    DType::F64,
    DType::I64,
    DType::I16,
    DType::I8,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::C64,
    DType::C128,
];

/// Everything except int32.
pub const ALL: &[DType] = &[
    DType::F32,
    DType::F16,
    DType::BF16,
    DType::F64,
    DType::I64,
    DType::I16,
    DType::I8,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::Bool,
    DType::C64,
    DType::C128,
];
