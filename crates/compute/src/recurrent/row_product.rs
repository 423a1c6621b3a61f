//! Repeated products, inside of one kernel, of a few rows in shared memory with a matrix in memory.

use crate::matmul::gemm::multiply_add;
use dml_kernel::{Builder, Pointer, ScalarType, Shared, Value};

/// Adjacent elements along k that are loaded together: a vector of shared memory.
const VECTOR: u32 = 4;

/// How a workgroup multiplies `rows` rows of `k` numbers by a contiguous `[k, n]` matrix.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tile {
    /// Invocations of the workgroup.
    pub threads: u32,
    /// Rows.
    pub rows: u32,
    /// Rows of the matrix.
    pub k: u32,
    /// Columns of the matrix.
    pub n: u32,
    /// Adjacent columns of an invocation, loaded in one access: 1, 2 or 4, a divisor of `n`.
    pub width: u32,
    /// Maximum number of vectors along k of the matrix that an invocation holds in registers.
    pub register_vectors: u32,
}

impl Tile {
    /// Number of groups of adjacent columns.
    fn columns(&self) -> u32 {
        self.n / self.width
    }

    /// Number of column groups that are computed at a time.
    fn across(&self) -> u32 {
        self.columns().min(self.threads)
    }

    /// Number of whole vectors along k.
    fn vectors(&self) -> u32 {
        self.k / VECTOR
    }

    /// Number of slices of k, each of which is summed by other invocations.
    fn slices(&self) -> u32 {
        (self.threads / self.across()).clamp(1, self.vectors().max(1))
    }

    /// Vectors along k of a slice.
    fn vectors_of_slice(&self) -> u32 {
        self.vectors().div_ceil(self.slices())
    }

    /// Vectors along k of a slice that are held in registers: as many as every slice has.
    fn register_vectors_of_slice(&self) -> u32 {
        let of_last = self.vectors().saturating_sub((self.slices() - 1) * self.vectors_of_slice());
        if self.rounds() > 1 { 0 } else { self.register_vectors.min(of_last) }
    }

    /// Number of iterations of the workgroup over columns.
    fn rounds(&self) -> u32 {
        self.columns().div_ceil(self.across())
    }

    /// Distance in shared memory between the sums of a group's columns, which puts them in
    /// different banks.
    fn pitch(&self) -> u32 {
        let columns = self.columns();
        if self.width > 1 && columns >= 32 { (columns + 24) / 32 * 32 + 8 } else { columns }
    }

    fn sums(&self) -> u32 {
        self.slices() * self.rows * self.width * self.pitch()
    }

    fn rows_vectors(&self) -> u32 {
        self.rows * self.k.div_ceil(VECTOR)
    }

    /// Bytes of shared memory, for numbers of `bytes` bytes.
    pub fn shared_bytes(&self, bytes: u32) -> u32 {
        (self.sums() + self.rows_vectors() * VECTOR) * bytes
    }

    /// Loop iterations of an invocation for a product.
    pub fn loop_iterations(&self) -> u32 {
        self.rounds() * (self.vectors_of_slice() + 1)
    }
}

/// The product in a kernel. Accumulators have one type.
pub struct RowProduct<'b> {
    b: &'b Builder,
    tile: Tile,
    scalar: ScalarType,
    rows_operand: Shared<'b>,
    sums: Shared<'b>,
    matrix: Pointer<'b>,
    /// The part of the matrix that is held in registers: vectors along k, rows of the matrix,
    /// columns.
    register_weights: Vec<Weights<'b>>,
}

/// A part of the matrix: rows, columns.
type Weights<'b> = Vec<Vec<Value<'b>>>;

impl<'b> RowProduct<'b> {
    /// A product with a matrix that is not written during the kernel: allocates shared memory, and
    /// loads the part that is held in registers.
    pub fn new(b: &'b Builder, tile: Tile, scalar: ScalarType, matrix: Pointer<'b>) -> RowProduct<'b> {
        let (rows_operand, sums) =
            (b.shared(scalar, VECTOR as u8, tile.rows_vectors()), b.shared(scalar, 1, tile.sums()));
        let mut product = RowProduct { b, tile, scalar, rows_operand, sums, matrix, register_weights: vec![] };
        let (slice, column) = product.invocation_position();
        // Excess invocations hold the same as the last ones.
        let first = slice.min(b.u32(tile.slices() - 1)) * tile.vectors_of_slice();
        product.register_weights =
            (0..tile.register_vectors_of_slice()).map(|i| product.weights(first + i, VECTOR, column)).collect();
        product
    }

    /// The slice of k and the group of columns of this invocation.
    fn invocation_position(&self) -> (Value<'b>, Value<'b>) {
        let (local, across) = (self.b.local_id(0), self.tile.across());
        (local / across, local % across)
    }

    /// Loads `depth` rows of the matrix from vector `vector` along k on, in a group of columns.
    fn weights(&self, vector: Value<'b>, depth: u32, column: Value<'b>) -> Weights<'b> {
        (0..depth)
            .map(|i| self.matrix.load_chunk((vector * VECTOR + i) * self.tile.columns() + column, self.tile.width))
            .map(|chunk| chunk.into_iter().map(|x| x.cast(self.scalar)).collect())
            .collect()
    }

    /// Sets element `k` of a row.
    pub fn set(&self, row: Value<'b>, k: Value<'b>, value: Value<'b>) {
        self.rows_operand.store_lane(row * self.tile.k.div_ceil(VECTOR) + k / VECTOR, k % VECTOR, value);
    }

    /// Multiplies. There has to be a barrier between [`set`](Self::set) and this, and between this
    /// and [`get`](Self::get).
    pub fn multiply(&self) {
        let (b, tile) = (self.b, &self.tile);
        let (slice, column) = self.invocation_position();
        if tile.rounds() > 1 {
            let zero = b.u32(0);
            b.for_(b.local_id(0), b.u32(tile.columns()), tile.across(), |column| self.column(zero, column));
        } else if tile.across() * tile.slices() < tile.threads {
            b.if_(slice.lt(tile.slices()), || self.column(slice, column));
        } else {
            self.column(slice, column);
        }
    }

    /// The sums of one slice of k in a group of columns.
    fn column(&self, slice: Value<'b>, column: Value<'b>) {
        let (b, tile) = (self.b, &self.tile);
        let (rows, width, vectors) = (tile.rows, tile.width, tile.vectors());
        let zero = b.constant_of(self.scalar, 0.0);
        let sums: Vec<Vec<_>> = (0..rows).map(|_| (0..width).map(|_| b.var(zero)).collect()).collect();
        let add = |vector: Value<'b>, weights: &Weights<'b>| {
            for (row, sums) in (0..rows).zip(&sums) {
                let left = self.rows_operand.load(vector + row * tile.k.div_ceil(VECTOR));
                for (i, weights) in (0..).zip(weights) {
                    for (sum, &weight) in sums.iter().zip(weights) {
                        sum.set(multiply_add(left.lane(i), weight, sum.get()));
                    }
                }
            }
        };
        let first = slice * tile.vectors_of_slice();
        let end = first + tile.vectors_of_slice();
        let end = if vectors.is_multiple_of(tile.slices()) { end } else { end.min(b.u32(vectors)) };
        for (i, weights) in (0..).zip(&self.register_weights) {
            add(first + i, weights);
        }
        b.for_(first + tile.register_vectors_of_slice(), end, 1, |vector| {
            add(vector, &self.weights(vector, VECTOR, column))
        });
        if !tile.k.is_multiple_of(VECTOR) {
            b.if_(slice.eq(0), || add(b.u32(vectors), &self.weights(b.u32(vectors), tile.k % VECTOR, column)));
        }
        for (row, sums) in (0..rows).zip(&sums) {
            for (lane, sum) in (0..width).zip(sums) {
                self.sums.store(self.offset(slice, b.u32(row), b.u32(lane), column), sum.get());
            }
        }
    }

    fn offset(&self, slice: Value<'b>, row: Value<'b>, lane: Value<'b>, column: Value<'b>) -> Value<'b> {
        ((slice * self.tile.rows + row) * self.tile.width + lane) * self.tile.pitch() + column
    }

    /// Column `n` of a row of the product.
    pub fn get(&self, row: Value<'b>, n: Value<'b>) -> Value<'b> {
        let b = self.b;
        let (lane, column) = (n % self.tile.width, n / self.tile.width);
        let parts = (0..self.tile.slices()).map(|slice| self.sums.load(self.offset(b.u32(slice), row, lane, column)));
        parts.reduce(|sum, part| sum + part).unwrap_or_else(|| b.constant_of(self.scalar, 0.0))
    }
}
