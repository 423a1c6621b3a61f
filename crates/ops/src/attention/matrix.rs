//! A batch of heads of matrices, with strides of its own.

use crate::primitives::launch::Launcher;
use crate::tensor::Tensor;
use crate::tensor::layout::index_type;
use dml_kernel::{Builder, DType, Pointer, Scalar, Value};

/// `[batch, head, row, column]`
pub struct Matrix<'b> {
    pointer: Pointer<'b>,
    strides: [Value<'b>; 4],
    index: Scalar,
}

/// One matrix of it.
pub struct Plane<'b> {
    pointer: Pointer<'b>,
    row: Value<'b>,
    column: Value<'b>,
    index: Scalar,
}

impl<'b> Matrix<'b> {
    /// Declares what [`pass`] passes.
    pub fn declare(b: &'b Builder, name: &str, dtype: DType, index: Scalar) -> Matrix<'b> {
        let pointer = b.pointer(name, dtype);
        let strides = ["batch", "head", "row", "column"].map(|d| b.param(&format!("{name}_{d}"), index));
        Matrix { pointer, strides, index }
    }

    /// The matrix of one head.
    pub fn plane(&self, batch: Value<'b>, head: Value<'b>) -> Plane<'b> {
        let [of_batch, of_head, row, column] = self.strides;
        let wide = |x: Value<'b>| x.cast(Scalar::U64);
        let pointer = self.pointer.offset(wide(batch) * wide(of_batch) + wide(head) * wide(of_head));
        Plane { pointer, row, column, index: self.index }
    }
}

impl<'b> Plane<'b> {
    fn at(&self, row: Value<'b>, column: Value<'b>) -> Value<'b> {
        row.cast(self.index) * self.row + column.cast(self.index) * self.column
    }

    /// One element, by u32 indices.
    pub fn load(&self, row: Value<'b>, column: Value<'b>) -> Value<'b> {
        self.pointer.load(self.at(row, column))
    }

    /// Writes one element.
    pub fn store(&self, row: Value<'b>, column: Value<'b>, value: Value<'b>) {
        self.pointer.store(self.at(row, column), value);
    }
}

/// Passes strides after the tensor's address; `transposed` exchanges rows and columns.
pub fn pass<'c, 'a>(launcher: Launcher<'c, 'a>, t: &Tensor, transposed: bool, index: Scalar) -> Launcher<'c, 'a> {
    let order = if transposed { [0, 1, 3, 2] } else { [0, 1, 2, 3] };
    order.iter().fold(launcher, |l, &d| l.index(index, t.strides[d]))
}

/// The type of offsets in every plane of these tensors.
pub fn index_of(tensors: &[&Tensor]) -> Scalar {
    let reach = |t: &Tensor| (2..4).map(|d| (t.sizes[d] - 1).max(0) * t.strides[d]).sum::<i64>();
    let strides = tensors.iter().flat_map(|t| t.strides.iter().copied()).max().unwrap_or(0);
    let reach = tensors.iter().map(|t| reach(t)).max().unwrap_or(0).max(strides);
    index_type(reach)
}
