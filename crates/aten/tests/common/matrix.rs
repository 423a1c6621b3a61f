//! Random matrices with their elements in f64, and their products.

use super::{Random, TestHost, Values};
use dml_compute::View;
use dml_kernel::DType;

/// The dtypes of products.
pub const DTYPES: [DType; 9] =
    [DType::F32, DType::F16, DType::BF16, DType::F64, DType::I64, DType::I32, DType::I16, DType::I8, DType::U8];

/// A matrix of `sizes` (the last two are its rows and columns) with memory layout `layout`: rows or
/// columns contiguous, or neither.
pub struct Matrix {
    /// The tensor.
    pub t: View,
    /// Its elements in row-major order.
    pub values: Vec<f64>,
}

/// The memory layout of a matrix.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Layout {
    /// Rows are contiguous.
    Rows,
    /// Columns are contiguous.
    Columns,
    /// Neither is.
    Gaps,
}

impl Matrix {
    /// Random elements.
    pub fn new(host: &TestHost, random: &mut Random, dtype: DType, [batch, m, n]: [i64; 3], layout: Layout) -> Matrix {
        let values = random.values(dtype, (batch * m * n) as usize);
        let strides = match layout {
            Layout::Rows => [m * n, n, 1],
            Layout::Columns => [m * n, 1, m],
            Layout::Gaps => [m * (n * 3 + 1), n * 3 + 1, 3],
        };
        let len = if layout == Layout::Gaps { batch * strides[0] } else { batch * m * n };
        let mut memory = vec![0.0; len as usize];
        for b in 0..batch {
            for i in 0..m {
                for j in 0..n {
                    memory[(b * strides[0] + i * strides[1] + j * strides[2]) as usize] =
                        values[((b * m + i) * n + j) as usize];
                }
            }
        }
        let t = host.of(dtype, &[len], &memory).as_strided(&[batch, m, n], &strides, 0);
        Matrix { t, values }
    }

    /// The first matrix, without the batch dimension.
    pub fn flat(&self) -> View {
        self.t.as_strided(&self.t.sizes[1..], &self.t.strides[1..], 0)
    }
}

/// `[batch, m, n]` sums over k, in f64.
pub fn product(a: &Matrix, b: &Matrix) -> Vec<f64> {
    let ([batch, m, k], n) = ([a.t.sizes[0], a.t.sizes[1], a.t.sizes[2]].map(|x| x as usize), b.t.sizes[2] as usize);
    let mut out = vec![0.0; batch * m * n];
    for z in 0..batch {
        for i in 0..m {
            for l in 0..k {
                let x = a.values[(z * m + i) * k + l];
                for j in 0..n {
                    out[(z * m + i) * n + j] += x * b.values[(z * k + l) * n + j];
                }
            }
        }
    }
    out
}

fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 2f64.powi(-11),
        DType::BF16 => 2f64.powi(-8),
        DType::F32 => 2f64.powi(-23),
        DType::F64 => 2f64.powi(-52),
        _ => 0.0,
    }
}

/// Fails if results differ from those in f64. The tolerance is one rounding of the result, and
/// those of a sum of k products below 1 in f32 or f64.
pub fn assert_close(dtype: DType, k: i64, got: &[f64], want: &[f64], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    let sums = if dtype == DType::F64 { 2f64.powi(-52) } else { 2f64.powi(-23) };
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let wrapped = match dtype {
            DType::I8 => f64::from(*w as i64 as i8),
            DType::U8 => f64::from(*w as i64 as u8),
            DType::I16 => f64::from(*w as i64 as i16),
            _ => *w,
        };
        let bound = if dtype.is_float() { epsilon(dtype) * w.abs() + sums * (k as f64 + 1.0) } else { 0.0 };
        assert!((g - wrapped).abs() <= bound, "{what}: element {i} is {g}, not {wrapped}");
    }
}
