//! Matrices of a subgroup, in registers of the adapter's matrix units or emulated.
//!
//! An emulated matrix is a private array of each invocation, and every invocation computes the
//! whole matrix. It is for tests on adapters without matrix units, and defines the results of
//! matrix units.

use crate::builder::{Builder, LocalArray, Operand, Pointer, Shared, Value};
use crate::component_map::ComponentMap;
use crate::dtype::DType;
use crate::ir::{Inst, MatrixId, MatrixMemory, MatrixStmt, Stmt};
use crate::matrix_type::{MatrixLayout, MatrixType, MatrixUse};
use crate::storage::{convert, decode};
use crate::types::{ScalarType, Type};

/// A matrix of a subgroup: mutable, and uninitialised at first. Every invocation of the subgroup
/// must execute each operation on it, with the same operands.
#[derive(Copy, Clone)]
pub struct Matrix<'b> {
    b: &'b Builder,
    ty: MatrixType,
    storage: Storage<'b>,
}

#[derive(Copy, Clone)]
enum Storage<'b> {
    Register(MatrixId),
    Emulated(LocalArray<'b>),
}

/// Memory that a matrix is loaded from or stored to.
#[derive(Copy, Clone)]
pub enum MatrixSource<'b> {
    /// A shared array of 4-byte numbers or of vectors of them; the matrix's elements are packed
    /// into its bytes.
    Shared(Shared<'b>),
    /// A tensor with the matrix's dtype.
    Pointer(Pointer<'b>),
}

impl<'b> From<Shared<'b>> for MatrixSource<'b> {
    fn from(shared: Shared<'b>) -> Self {
        MatrixSource::Shared(shared)
    }
}

impl<'b> From<Pointer<'b>> for MatrixSource<'b> {
    fn from(pointer: Pointer<'b>) -> Self {
        MatrixSource::Pointer(pointer)
    }
}

impl MatrixSource<'_> {
    fn memory(self) -> MatrixMemory {
        match self {
            MatrixSource::Shared(shared) => MatrixMemory::Shared(shared.id()),
            MatrixSource::Pointer(pointer) => MatrixMemory::Pointer(pointer.id()),
        }
    }
}

impl Builder {
    /// A matrix in registers of the adapter's matrix units, which must support the type.
    pub fn matrix(&self, ty: MatrixType) -> Matrix<'_> {
        Matrix { b: self, ty, storage: Storage::Register(self.declare_matrix(ty)) }
    }

    /// An emulated matrix.
    pub fn emulated_matrix(&self, ty: MatrixType) -> Matrix<'_> {
        Matrix { b: self, ty, storage: Storage::Emulated(self.local_array(ty.dtype.compute(), ty.len())) }
    }
}

impl<'b> Matrix<'b> {
    /// Its type.
    pub fn ty(self) -> MatrixType {
        self.ty
    }

    fn stmt(self, stmt: MatrixStmt) {
        self.b.stmt(Stmt::Matrix(stmt));
    }

    /// The registers of this matrix and of others; `None` if they are emulated. Either all of them
    /// are, or none.
    fn registers<const N: usize>(self, others: [Matrix<'b>; N]) -> Option<(MatrixId, [MatrixId; N])> {
        let id = |m: Matrix<'b>| match m.storage {
            Storage::Register(id) => Some(id),
            Storage::Emulated(_) => None,
        };
        let mut ids = [0; N];
        for (to, from) in ids.iter_mut().zip(others) {
            assert_eq!(id(from).is_some(), id(self).is_some(), "all matrices are emulated, or none");
            *to = id(from)?;
        }
        Some((id(self)?, ids))
    }

    fn array(self) -> LocalArray<'b> {
        match self.storage {
            Storage::Emulated(array) => array,
            Storage::Register(_) => unreachable!("a register has no array"),
        }
    }

    /// Runs `body` for every element's index.
    fn each(self, body: impl FnOnce(Value<'b>)) {
        self.b.for_(0u32, self.b.u32(self.ty.len()), 1u32, body);
    }

    /// Sets every element of an accumulator to `value` (f32, or i32 for an i32 accumulator).
    pub fn fill(self, value: impl Operand<'b>) {
        let value = value.value(self.b, self.ty.dtype.compute());
        match self.storage {
            Storage::Register(matrix) => self.stmt(MatrixStmt::Fill { matrix, value: value.id }),
            Storage::Emulated(array) => self.each(|i| array.set(i, convert(value, self.ty.dtype))),
        }
    }

    /// Loads the matrix from memory, beginning with element `index`. Neighbouring rows (columns in
    /// a column-major layout) are `stride` elements apart. Index and stride count elements of the
    /// shared array as declared, or elements of the tensor, whose dtype is the matrix's.
    pub fn load(
        self,
        from: impl Into<MatrixSource<'b>>,
        index: impl Operand<'b>,
        stride: impl Operand<'b>,
        layout: MatrixLayout,
    ) {
        let from = from.into();
        let (index, stride) = (index.value(self.b, ScalarType::U32), stride.value(self.b, ScalarType::U32));
        match self.storage {
            Storage::Register(matrix) => {
                self.stmt(MatrixStmt::Load { matrix, from: from.memory(), index: index.id, stride: stride.id, layout })
            }
            Storage::Emulated(array) => self.lines(layout, |line, along, element| {
                array.set(element, self.element(from, index + line * stride, along));
            }),
        }
    }

    /// Stores the matrix, with the arguments of [`load`](Self::load).
    pub fn store(
        self,
        to: impl Into<MatrixSource<'b>>,
        index: impl Operand<'b>,
        stride: impl Operand<'b>,
        layout: MatrixLayout,
    ) {
        let to = to.into();
        let (index, stride) = (index.value(self.b, ScalarType::U32), stride.value(self.b, ScalarType::U32));
        match self.storage {
            Storage::Register(matrix) => {
                self.stmt(MatrixStmt::Store { matrix, to: to.memory(), index: index.id, stride: stride.id, layout });
            }
            Storage::Emulated(array) => self.b.if_(self.b.subgroup_lane().eq(0), || {
                self.lines(layout, |line, along, element| {
                    self.set_element(to, index + line * stride, along, array.get(element));
                });
            }),
        }
    }

    /// Runs `body` for every line of contiguous elements (its index as a value), every position in
    /// the line, and the index of the matrix element there.
    fn lines(self, layout: MatrixLayout, body: impl Fn(Value<'b>, u32, Value<'b>)) {
        let MatrixType { rows, columns, .. } = self.ty;
        let (lines, length) = if layout == MatrixLayout::RowMajor { (rows, columns) } else { (columns, rows) };
        self.b.for_(0u32, self.b.u32(lines), 1u32, |line| {
            for along in 0..length {
                let element = match layout {
                    MatrixLayout::RowMajor => line * columns + along,
                    MatrixLayout::ColumnMajor => along * columns + line,
                };
                body(line, along, element);
            }
        });
    }

    /// The position of a line's element `along` in shared memory: the element of the array, its
    /// lane, and the first bit in the lane.
    fn packed(self, shared: Shared<'b>, along: u32) -> (u32, u8, u32) {
        let bits = along * 8 * self.ty.dtype.bytes() as u32;
        let lanes = u32::from(shared.lanes());
        (bits / (32 * lanes), (bits / 32 % lanes) as u8, bits % 32)
    }

    fn element(self, from: MatrixSource<'b>, line: Value<'b>, along: u32) -> Value<'b> {
        match from {
            MatrixSource::Pointer(pointer) => pointer.load(line + along),
            MatrixSource::Shared(shared) => {
                let (element, lane, shift) = self.packed(shared, along);
                let word = shared.load(line + element);
                let word = if shared.lanes() == 1 { word } else { word.lane(lane) };
                let (dtype, size) = (self.ty.dtype, self.ty.dtype.bytes());
                if size == 4 {
                    return word.bitcast(dtype.compute());
                }
                decode((word.bitcast(ScalarType::U32) >> shift) & ((1u32 << (8 * size)) - 1), dtype)
            }
        }
    }

    fn set_element(self, to: MatrixSource<'b>, line: Value<'b>, along: u32, value: Value<'b>) {
        match to {
            MatrixSource::Pointer(pointer) => pointer.store(line + along, value),
            MatrixSource::Shared(shared) => {
                let (element, lane, _) = self.packed(shared, along);
                assert_eq!(self.ty.dtype.bytes(), 4, "accumulators are stored to shared memory as 4 bytes");
                shared.store_lane(line + element, u32::from(lane), value.bitcast(shared.scalar()));
            }
        }
    }

    /// `self += left * right`
    pub fn multiply_add(self, left: Matrix<'b>, right: Matrix<'b>) {
        if let Some((sum, [left, right])) = self.registers([left, right]) {
            return self.stmt(MatrixStmt::MultiplyAdd { sum, left, right });
        }
        let (b, depth, columns) = (self.b, left.ty.columns, self.ty.columns);
        let (sums, left, right) = (self.array(), left.array(), right.array());
        self.each(|i| {
            let (row, column) = (i / columns, i % columns);
            let sum = b.var(sums.get(i));
            for k in 0..depth {
                let (x, y) = (left.get(row * depth + k), right.get(column + k * columns));
                let product = if x.scalar().is_float() { x.fma(y, sum.get()) } else { x * y + sum.get() };
                sum.set(product);
            }
            sums.set(i, convert(sum.get(), self.ty.dtype));
        });
    }

    /// `self += other`, of accumulators of one type.
    pub fn add(self, other: Matrix<'b>) {
        match self.registers([other]) {
            Some((to, [from])) => self.stmt(MatrixStmt::Add { to, from }),
            None => {
                let (to, from) = (self.array(), other.array());
                self.each(|i| to.set(i, convert(to.get(i) + from.get(i), self.ty.dtype)));
            }
        }
    }

    /// Multiplies every element of a float accumulator by a number (f32).
    pub fn scale(self, by: impl Operand<'b>) {
        let by = by.value(self.b, ScalarType::F32);
        match self.storage {
            Storage::Register(matrix) => self.stmt(MatrixStmt::Scale { matrix, by: by.id }),
            Storage::Emulated(array) => self.each(|i| array.set(i, convert(array.get(i) * by, self.ty.dtype))),
        }
    }

    /// This invocation's components of a float matrix, as f32. `map` is the mapping of the
    /// adapter's matrix units.
    pub fn components(self, map: &ComponentMap) -> Vec<Value<'b>> {
        let components = 0..map.components();
        match self.storage {
            Storage::Register(matrix) => components
                .map(|component| self.b.def(Type::scalar(ScalarType::F32), Inst::Component { matrix, component }))
                .collect(),
            Storage::Emulated(array) => {
                let [row, column] = map.lane_position(self.b);
                let begin = row * self.ty.columns + column;
                let element = |[row, column]: [u32; 2]| row * self.ty.columns + column;
                components.map(|component| array.get(begin + element(map.component_position(component)))).collect()
            }
        }
    }

    /// Replaces this invocation's components of a float matrix by numbers (f32), rounded to the
    /// matrix's dtype.
    pub fn set_components(self, map: &ComponentMap, values: &[Value<'b>]) {
        assert_eq!(values.len(), map.components() as usize, "one number for each component");
        match self.storage {
            Storage::Register(matrix) => {
                for (component, value) in (0..).zip(values) {
                    self.stmt(MatrixStmt::SetComponent { matrix, component, value: value.id });
                }
            }
            Storage::Emulated(array) => {
                let (b, len) = (self.b, self.ty.len());
                let exchange = b.exchange(b.invocations() / map.lanes() * len);
                let begin = b.subgroup_index() * len;
                let [row, column] = map.lane_position(b);
                let own = begin + row * self.ty.columns + column;
                b.subgroup_barrier();
                for (component, &value) in (0..).zip(values) {
                    let [row, column] = map.component_position(component);
                    exchange.store(own + (row * self.ty.columns + column), convert(value, self.ty.dtype));
                }
                b.subgroup_barrier();
                self.each(|i| array.set(i, exchange.load(begin + i)));
            }
        }
    }

    /// Copies another accumulator's elements, converted to this matrix's dtype.
    pub fn convert_from(self, other: Matrix<'b>) {
        match self.registers([other]) {
            Some((to, [from])) => self.stmt(MatrixStmt::Convert { to, from }),
            None => {
                let (to, from) = (self.array(), other.array());
                self.each(|i| to.set(i, convert(from.get(i), self.ty.dtype)));
            }
        }
    }
}

/// The types of the three matrices of a product of size `[m, n, k]`: left, right and sum.
pub fn product_types([m, n, k]: [u32; 3], operands: DType, sums: DType) -> [MatrixType; 3] {
    let ty = |dtype, rows, columns, part| MatrixType { dtype, rows, columns, part };
    [ty(operands, m, k, MatrixUse::Left), ty(operands, k, n, MatrixUse::Right), ty(sums, m, n, MatrixUse::Accumulator)]
}
