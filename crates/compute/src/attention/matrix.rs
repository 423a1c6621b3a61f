//! A batch of matrices by head, with arbitrary strides, as a kernel parameter.

use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::interface::Index;
use dml_engine::{ArgumentBlock, Parameter};
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};
use std::marker::PhantomData;

/// Kernel parameter: a tensor `[batch, head, row, column]`. `P` is its pointer's type,
/// [`Input`](crate::primitives::kernel::Input) or [`Output`](crate::primitives::kernel::Output);
/// the strides follow it.
pub struct Matrix<P>(PhantomData<P>);

/// A [`Matrix`] in a kernel.
pub struct MatrixParams<'b> {
    pointer: Pointer<'b>,
    strides: [Value<'b>; 4],
    index: ScalarType,
}

/// The matrix of one head.
#[derive(Copy, Clone)]
pub struct Plane<'b> {
    pointer: Pointer<'b>,
    row: Value<'b>,
    column: Value<'b>,
    index: ScalarType,
}

impl<P> Parameter for Matrix<P>
where
    P: for<'a> Parameter<Type = DType, Argument<'a> = &'a View, Declared<'a> = Pointer<'a>>,
{
    /// The dtype of elements, and the integer type of offsets inside one head's matrix.
    type Type = (DType, ScalarType);
    type Argument<'a> = &'a View;
    type Declared<'b> = MatrixParams<'b>;

    fn declare<'b>(b: &'b Builder, name: &str, (dtype, index): &(DType, ScalarType)) -> MatrixParams<'b> {
        let pointer = P::declare(b, name, dtype);
        let strides = ["batch", "head", "row", "column"].map(|d| b.param(&format!("{name}_{d}"), *index));
        MatrixParams { pointer, strides, index: *index }
    }

    fn pass(t: &&View, (dtype, index): &(DType, ScalarType), block: &mut ArgumentBlock) {
        P::pass(t, dtype, block);
        for stride in &t.strides {
            Index::pass(stride, index, block);
        }
    }
}

impl<'b> MatrixParams<'b> {
    /// The matrix of one batch element and head.
    pub fn plane(&self, batch: Value<'b>, head: Value<'b>) -> Plane<'b> {
        let [of_batch, of_head, row, column] = self.strides;
        let wide = |x: Value<'b>| x.cast(ScalarType::U64);
        let pointer = self.pointer.offset(wide(batch) * wide(of_batch) + wide(head) * wide(of_head));
        Plane { pointer, row, column, index: self.index }
    }
}

impl<'b> Plane<'b> {
    /// The submatrix of the rows from `row` on.
    pub fn rows_from(&self, row: Value<'b>) -> Plane<'b> {
        let elements = row.cast(ScalarType::U64) * self.row.cast(ScalarType::U64);
        Plane { pointer: self.pointer.offset(elements), ..*self }
    }

    /// Row stride in elements.
    pub fn row_stride(&self) -> Value<'b> {
        self.row
    }

    /// Pointer to the first element.
    pub fn pointer(&self) -> Pointer<'b> {
        self.pointer
    }

    /// Offset of an element from the first one, in elements.
    pub fn at(&self, row: Value<'b>, column: Value<'b>) -> Value<'b> {
        row.cast(self.index) * self.row + column.cast(self.index) * self.column
    }

    /// Loads one element, by u32 indices.
    pub fn load(&self, row: Value<'b>, column: Value<'b>) -> Value<'b> {
        self.pointer.load(self.at(row, column))
    }

    /// Loads `count` elements of a row from `column` on. If `count` is above 1, they have to be
    /// contiguous and aligned to `count` elements.
    pub fn load_chunk(&self, row: Value<'b>, column: Value<'b>, count: u32) -> Vec<Value<'b>> {
        match count {
            1 => vec![self.load(row, column)],
            _ => self.pointer.load_chunk(self.at(row, column) / count, count),
        }
    }

    /// Stores elements of a row from `column` on. If there are several, they have to be contiguous
    /// and aligned to their number.
    pub fn store_chunk(&self, row: Value<'b>, column: Value<'b>, values: &[Value<'b>]) {
        match values {
            [one] => self.store(row, column, *one),
            _ => self.pointer.store_chunk(self.at(row, column) / values.len() as u32, values),
        }
    }

    /// Stores one element.
    pub fn store(&self, row: Value<'b>, column: Value<'b>, value: Value<'b>) {
        self.pointer.store(self.at(row, column), value);
    }
}

/// The integer type of offsets that is wide enough for every head's matrix of these tensors.
pub fn index_of(tensors: &[&View]) -> ScalarType {
    let reach = |t: &View| (2..4).map(|d| (t.sizes[d] - 1).max(0) * t.strides[d]).sum::<i64>();
    let strides = tensors.iter().flat_map(|t| t.strides.iter().copied()).max().unwrap_or(0);
    let reach = tensors.iter().map(|t| reach(t)).max().unwrap_or(0).max(strides);
    index_type(reach)
}
