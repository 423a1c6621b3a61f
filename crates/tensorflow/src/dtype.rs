//! TensorFlow's numbers of dtypes (`TF_DataType`).

use dml_kernel::DType;

/// Each dtype that both sides have, with TensorFlow's number.
const NUMBERS: [(DType, i32); 17] = [
    (DType::F32, 1),
    (DType::F64, 2),
    (DType::I32, 3),
    (DType::U8, 4),
    (DType::I16, 5),
    (DType::I8, 6),
    (DType::C64, 8),
    (DType::I64, 9),
    (DType::Bool, 10),
    (DType::BF16, 14),
    (DType::U16, 17),
    (DType::C128, 18),
    (DType::F16, 19),
    (DType::U32, 22),
    (DType::U64, 23),
    (DType::F8E5M2, 24),
    (DType::F8E4M3FN, 25),
];

/// The number of a dtype. TensorFlow lacks complex32 and two 8-bit floats, which no operator here
/// makes: their number is 0, that of no dtype.
pub fn number_of(dtype: DType) -> i32 {
    NUMBERS.iter().find(|(d, _)| *d == dtype).map_or(0, |&(_, n)| n)
}

/// The dtype of a number; `None` for strings, resources, variants and quantised dtypes.
pub fn of_number(number: i32) -> Option<DType> {
    NUMBERS.iter().find(|&&(_, n)| n == number).map(|&(d, _)| d)
}
