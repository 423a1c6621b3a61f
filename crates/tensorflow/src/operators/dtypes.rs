//! The sets of dtypes that operators have kernels for.
//!
//! TensorFlow's C interface registers no kernels for 8-bit floats.
//!
//! int32 is missing in the sets of arithmetic: TensorFlow computes it on the host, where shapes
//! are.

use dml_kernel::DType;

/// Floats.
pub const FLOATS: &[DType] = &[DType::F32, DType::F16, DType::BF16, DType::F64];

/// Floats and int32, of convolutions.
pub const FLOATS_AND_I32: &[DType] = &[DType::F32, DType::F16, DType::BF16, DType::F64, DType::I32];

/// Floats of at most 32 bits.
pub const HALF_FLOATS: &[DType] = &[DType::F32, DType::F16, DType::BF16];

/// What patches of images may be: what is only copied, beside integers.
pub const MOVED_FLOATS: &[DType] =
    &[DType::F32, DType::F16, DType::BF16, DType::F64, DType::Bool, DType::C64, DType::C128];

/// Floats and complex numbers.
pub const FIELDS: &[DType] = &[DType::F32, DType::F16, DType::BF16, DType::F64, DType::C64, DType::C128];

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

/// The dtypes of indices.
pub const INDICES: &[DType] = &[DType::I32, DType::I64];

/// Everything, with int32 in device memory.
pub const ALL_AND_I32: &[DType] = &[
    DType::F32,
    DType::F16,
    DType::BF16,
    DType::F64,
    DType::I64,
    DType::I32,
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

/// Floats, complex numbers and int64.
pub const FIELDS_AND_I64: &[DType] =
    &[DType::F32, DType::F16, DType::BF16, DType::F64, DType::C64, DType::C128, DType::I64];

/// Floats, complex numbers, int64 and int32 in device memory.
pub const FIELDS_AND_INDICES: &[DType] =
    &[DType::F32, DType::F16, DType::BF16, DType::F64, DType::C64, DType::C128, DType::I64, DType::I32];

/// Floats and bool.
pub const FLOATS_AND_BOOL: &[DType] = &[DType::F32, DType::F16, DType::BF16, DType::F64, DType::Bool];

/// Real numbers, with int32 in device memory.
pub const REALS_AND_I32: &[DType] = &[
    DType::F32,
    DType::F16,
    DType::BF16,
    DType::F64,
    DType::I64,
    DType::I32,
    DType::I16,
    DType::I8,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
];

/// Numbers, with int32 in device memory.
pub const NUMBERS_AND_I32: &[DType] = &[
    DType::F32,
    DType::F16,
    DType::BF16,
    DType::F64,
    DType::I64,
    DType::I32,
    DType::I16,
    DType::I8,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::C64,
    DType::C128,
];

/// Floats and int64.
pub const FLOATS_AND_I64: &[DType] = &[DType::F32, DType::F16, DType::BF16, DType::F64, DType::I64];

/// The dtypes of the indices of `OneHot`.
pub const ONE_HOT_INDICES: &[DType] = &[DType::I32, DType::I64, DType::U8, DType::I8];

/// The dtypes of the weights of numbers that are counted.
pub const BINCOUNT_WEIGHTS: &[DType] = &[DType::F32, DType::I32, DType::F64, DType::I64];

/// The dtypes whose rows are changed in place.
pub const INPLACE: &[DType] =
    &[DType::F32, DType::F16, DType::BF16, DType::F64, DType::I64, DType::I8, DType::U8, DType::U64];

/// Floats and signed integers except int32.
pub const SIGNED: &[DType] = &[DType::F32, DType::F16, DType::BF16, DType::F64, DType::I64, DType::I16, DType::I8];

/// [`SIGNED`] and complex numbers.
pub const SIGNED_FIELDS: &[DType] =
    &[DType::F32, DType::F16, DType::BF16, DType::F64, DType::I64, DType::I16, DType::I8, DType::C64, DType::C128];

/// Floats, int32 and int64.
pub const FLOATS_AND_SIGNED: &[DType] = &[DType::F32, DType::F16, DType::BF16, DType::F64, DType::I32, DType::I64];

/// Floats of at least 32 bits.
pub const WIDE_FLOATS: &[DType] = &[DType::F32, DType::F64];

/// Complex numbers.
pub const COMPLEX: &[DType] = &[DType::C64, DType::C128];

/// Real and complex floats of at least 32 bits: what linear algebra decomposes.
pub const MATRICES: &[DType] = &[DType::F32, DType::F64, DType::C64, DType::C128];

/// Integers, int32 too.
pub const ALL_INTEGERS: &[DType] =
    &[DType::I32, DType::I64, DType::I16, DType::I8, DType::U8, DType::U16, DType::U32, DType::U64];
