//! Products of a few rows in shared memory with a matrix in memory, again and again inside of one
//! kernel.

use crate::matmul::gemm::multiply_add;
use dml_kernel::{Builder, Pointer, ScalarType, Shared, Value};

/// Neighbours along k that are taken together: a vector of shared memory.
const QUAD: u32 = 4;

/// How a workgroup multiplies `rows` rows of `k` numbers with a contiguous `[k, n]` matrix.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tile {
    /// Invocations of the workgroup.
    pub threads: u32,
    /// Rows.
    pub rows: u32,
    /// Rows of the matrix.
    pub k: u32,
    /// Its columns.
    pub n: u32,
    /// Neighbouring columns of an invocation, read in one access: 1, 2 or 4, a divisor of `n`.
    pub width: u32,
    /// Most vectors along k of the matrix that an invocation holds in registers.
    pub held: u32,
}

impl Tile {
    /// Groups of neighbouring columns.
    fn columns(&self) -> u32 {
        self.n / self.width
    }

    /// Those that are computed at a time.
    fn across(&self) -> u32 {
        self.columns().min(self.threads)
    }

    /// Whole vectors along k.
    fn quads(&self) -> u32 {
        self.k / QUAD
    }

    /// Parts of k, each of which is summed by other invocations.
    fn slices(&self) -> u32 {
        (self.threads / self.across()).clamp(1, self.quads().max(1))
    }

    /// Vectors along k of a part.
    fn quads_of_slice(&self) -> u32 {
        self.quads().div_ceil(self.slices())
    }

    /// Vectors along k of a part that are held in registers: as many as every part has.
    fn held_of_slice(&self) -> u32 {
        let of_last = self.quads().saturating_sub((self.slices() - 1) * self.quads_of_slice());
        if self.rounds() > 1 { 0 } else { self.held.min(of_last) }
    }

    /// How often the workgroup walks over columns.
    fn rounds(&self) -> u32 {
        self.columns().div_ceil(self.across())
    }

    /// Places between the sums of one column of a group and those of the next: in banks of shared
    /// memory of their own.
    fn pitch(&self) -> u32 {
        let columns = self.columns();
        if self.width > 1 && columns >= 32 { (columns + 24) / 32 * 32 + 8 } else { columns }
    }

    fn sums(&self) -> u32 {
        self.slices() * self.rows * self.width * self.pitch()
    }

    fn left(&self) -> u32 {
        self.rows * self.k.div_ceil(QUAD)
    }

    /// Bytes of shared memory, of numbers of so many bytes.
    pub fn shared_bytes(&self, bytes: u32) -> u32 {
        (self.sums() + self.left() * QUAD) * bytes
    }

    /// Turns of loops that an invocation takes for a product.
    pub fn turns(&self) -> u32 {
        self.rounds() * (self.quads_of_slice() + 1)
    }
}

/// The product in a kernel, whose sums are of one type.
pub struct RowProduct<'b> {
    b: &'b Builder,
    tile: Tile,
    scalar: ScalarType,
    left: Shared<'b>,
    sums: Shared<'b>,
    matrix: Pointer<'b>,
    /// What is held in registers: vectors along k, rows of the matrix, columns.
    held: Vec<Weights<'b>>,
}

/// A part of the matrix: rows, columns.
type Weights<'b> = Vec<Vec<Value<'b>>>;

impl<'b> RowProduct<'b> {
    /// A product with a matrix, that nobody writes: takes the shared memory, and reads what is
    /// held.
    pub fn new(b: &'b Builder, tile: Tile, scalar: ScalarType, matrix: Pointer<'b>) -> RowProduct<'b> {
        let (left, sums) = (b.shared(scalar, QUAD as u8, tile.left()), b.shared(scalar, 1, tile.sums()));
        let mut product = RowProduct { b, tile, scalar, left, sums, matrix, held: vec![] };
        let (slice, column) = product.place_of_invocation();
        // Superfluous invocations hold what the last ones do.
        let first = slice.min(b.u32(tile.slices() - 1)) * tile.quads_of_slice();
        product.held = (0..tile.held_of_slice()).map(|i| product.weights(first + i, QUAD, column)).collect();
        product
    }

    /// The part of k and the group of columns of this invocation.
    fn place_of_invocation(&self) -> (Value<'b>, Value<'b>) {
        let (local, across) = (self.b.local_id(0), self.tile.across());
        (local / across, local % across)
    }

    /// Some rows of the matrix from a vector along k on, in a group of columns.
    fn weights(&self, quad: Value<'b>, depth: u32, column: Value<'b>) -> Weights<'b> {
        (0..depth)
            .map(|i| self.matrix.load_chunk((quad * QUAD + i) * self.tile.columns() + column, self.tile.width))
            .map(|chunk| chunk.into_iter().map(|x| x.cast(self.scalar)).collect())
            .collect()
    }

    /// Sets number `k` of a row.
    pub fn set(&self, row: Value<'b>, k: Value<'b>, value: Value<'b>) {
        self.left.store_lane(row * self.tile.k.div_ceil(QUAD) + k / QUAD, k % QUAD, value);
    }

    /// Multiplies. A barrier must stand between [`set`](Self::set) and this, and between this and
    /// [`get`](Self::get).
    pub fn multiply(&self) {
        let (b, tile) = (self.b, &self.tile);
        let (slice, column) = self.place_of_invocation();
        if tile.rounds() > 1 {
            let zero = b.u32(0);
            b.for_(b.local_id(0), b.u32(tile.columns()), tile.across(), |column| self.column(zero, column));
        } else if tile.across() * tile.slices() < tile.threads {
            b.if_(slice.lt(tile.slices()), || self.column(slice, column));
        } else {
            self.column(slice, column);
        }
    }

    /// The sums of one part of k in a group of columns.
    fn column(&self, slice: Value<'b>, column: Value<'b>) {
        let (b, tile) = (self.b, &self.tile);
        let (rows, width, quads) = (tile.rows, tile.width, tile.quads());
        let zero = b.constant_of(self.scalar, 0.0);
        let sums: Vec<Vec<_>> = (0..rows).map(|_| (0..width).map(|_| b.var(zero)).collect()).collect();
        let add = |quad: Value<'b>, weights: &Weights<'b>| {
            for (row, sums) in (0..rows).zip(&sums) {
                let left = self.left.load(quad + row * tile.k.div_ceil(QUAD));
                for (i, weights) in (0..).zip(weights) {
                    for (sum, &weight) in sums.iter().zip(weights) {
                        sum.set(multiply_add(left.lane(i), weight, sum.get()));
                    }
                }
            }
        };
        let first = slice * tile.quads_of_slice();
        let end = first + tile.quads_of_slice();
        let end = if quads.is_multiple_of(tile.slices()) { end } else { end.min(b.u32(quads)) };
        for (i, weights) in (0..).zip(&self.held) {
            add(first + i, weights);
        }
        b.for_(first + tile.held_of_slice(), end, 1, |quad| add(quad, &self.weights(quad, QUAD, column)));
        if !tile.k.is_multiple_of(QUAD) {
            b.if_(slice.eq(0), || add(b.u32(quads), &self.weights(b.u32(quads), tile.k % QUAD, column)));
        }
        for (row, sums) in (0..rows).zip(&sums) {
            for (lane, sum) in (0..width).zip(sums) {
                self.sums.store(self.place(slice, b.u32(row), b.u32(lane), column), sum.get());
            }
        }
    }

    fn place(&self, slice: Value<'b>, row: Value<'b>, lane: Value<'b>, column: Value<'b>) -> Value<'b> {
        ((slice * self.tile.rows + row) * self.tile.width + lane) * self.tile.pitch() + column
    }

    /// The product's column `n` of a row.
    pub fn get(&self, row: Value<'b>, n: Value<'b>) -> Value<'b> {
        let b = self.b;
        let (lane, column) = (n % self.tile.width, n / self.tile.width);
        let parts = (0..self.tile.slices()).map(|slice| self.sums.load(self.place(b.u32(slice), row, lane, column)));
        parts.reduce(|sum, part| sum + part).unwrap_or_else(|| b.constant_of(self.scalar, 0.0))
    }
}
