//! The sets of dtypes that operators have kernels for.
//!
//! TensorFlow's C interface registers no kernels for 8-bit floats.
//!
//! int32 is missing in the sets of arithmetic: TensorFlow computes it on the host, where shapes
//! are.

use dml_kernel::DType;

/// A set of the dtypes of others.
macro_rules! union {
    ($($set:expr),+) => {{
        const COUNT: usize = 0 $(+ $set.len())+;
        const UNION: [DType; COUNT] = {
            let (mut all, mut count) = ([DType::F32; COUNT], 0);
            $(
                let mut i = 0;
                while i < $set.len() {
                    all[count] = $set[i];
                    (i, count) = (i + 1, count + 1);
                }
            )+
            all
        };
        &UNION
    }};
}

/// Floats.
pub const FLOATS: &[DType] = &[DType::F32, DType::F16, DType::BF16, DType::F64];

/// Floats and int32, of convolutions.
pub const FLOATS_AND_I32: &[DType] = union!(FLOATS, [DType::I32]);

/// Floats of at most 32 bits.
pub const HALF_FLOATS: &[DType] = &[DType::F32, DType::F16, DType::BF16];

/// What patches of images may be: what is only copied, beside integers.
pub const MOVED_FLOATS: &[DType] = union!(FIELDS, [DType::Bool]);

/// Floats and complex numbers.
pub const FIELDS: &[DType] = union!(FLOATS, COMPLEX);

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
pub const NUMBERS: &[DType] = union!(REALS, COMPLEX);

/// Everything except int32.
pub const ALL: &[DType] = union!(NUMBERS, [DType::Bool]);

/// The dtypes of indices, of classes and of drawn integers.
pub const INDICES: &[DType] = &[DType::I32, DType::I64];

/// Everything, with int32 in device memory.
pub const ALL_AND_I32: &[DType] = union!(ALL, [DType::I32]);

/// Floats, complex numbers and int64.
pub const FIELDS_AND_I64: &[DType] = union!(FIELDS, [DType::I64]);

/// Floats, complex numbers, int64 and int32 in device memory.
pub const FIELDS_AND_INDICES: &[DType] = union!(FIELDS, INDICES);

/// Floats and bool.
pub const FLOATS_AND_BOOL: &[DType] = union!(FLOATS, [DType::Bool]);

/// Real numbers, with int32 in device memory.
pub const REALS_AND_I32: &[DType] = union!(REALS, [DType::I32]);

/// Numbers, with int32 in device memory.
pub const NUMBERS_AND_I32: &[DType] = union!(NUMBERS, [DType::I32]);

/// Floats and int64.
pub const FLOATS_AND_I64: &[DType] = union!(FLOATS, [DType::I64]);

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
pub const SIGNED_FIELDS: &[DType] = union!(SIGNED, COMPLEX);

/// Floats, int32 and int64.
pub const FLOATS_AND_SIGNED: &[DType] = union!(FLOATS, INDICES);

/// Floats of at least 32 bits.
pub const WIDE_FLOATS: &[DType] = &[DType::F32, DType::F64];

/// Complex numbers.
pub const COMPLEX: &[DType] = &[DType::C64, DType::C128];

/// Real and complex floats of at least 32 bits: what linear algebra decomposes.
pub const MATRICES: &[DType] = union!(WIDE_FLOATS, COMPLEX);

/// Integers, int32 too.
pub const ALL_INTEGERS: &[DType] =
    &[DType::I32, DType::I64, DType::I16, DType::I8, DType::U8, DType::U16, DType::U32, DType::U64];
