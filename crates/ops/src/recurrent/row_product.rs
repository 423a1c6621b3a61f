//! Products of a few rows in shared memory with a matrix in memory, again and again inside of one kernel.

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

    /// How often the workgroup walks over columns.
    fn rounds(&self) -> u32 {
        self.columns().div_ceil(self.across())
    }

    /// Places between the sums of one column of a group and those of the next: in banks of shared memory of their own.
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
}

impl<'b> RowProduct<'b> {
    /// Takes its shared memory.
    pub fn new(b: &'b Builder, tile: Tile, scalar: ScalarType) -> RowProduct<'b> {
        let (left, sums) = (b.shared(scalar, QUAD as u8, tile.left()), b.shared(scalar, 1, tile.sums()));
        RowProduct { b, tile, scalar, left, sums }
    }

    /// Sets number `k` of a row.
    pub fn set(&self, row: Value<'b>, k: Value<'b>, value: Value<'b>) {
        self.left.store_lane(row * self.tile.k.div_ceil(QUAD) + k / QUAD, k % QUAD, value);
    }

    /// Multiplies. A barrier must stand between [`set`](Self::set) and this, and between this and [`get`](Self::get).
    pub fn multiply(&self, matrix: Pointer<'b>) {
        let (b, tile) = (self.b, &self.tile);
        let (local, across, slices) = (b.local_id(0), tile.across(), tile.slices());
        if tile.rounds() > 1 {
            b.for_(local, b.u32(tile.columns()), across, |column| self.column(matrix, b.u32(0), column));
        } else if across * slices < tile.threads {
            b.if_(local.lt(across * slices), || self.column(matrix, local / across, local % across));
        } else {
            self.column(matrix, local / across, local % across);
        }
    }

    /// The sums of one part of k in a group of columns.
    fn column(&self, matrix: Pointer<'b>, slice: Value<'b>, column: Value<'b>) {
        let (b, tile) = (self.b, &self.tile);
        let (rows, width, quads) = (tile.rows, tile.width, tile.quads());
        let zero = b.constant_of(self.scalar, 0.0);
        let sums: Vec<Vec<_>> = (0..rows).map(|_| (0..width).map(|_| b.var(zero)).collect()).collect();
        let add = |quad: Value<'b>, depth: u32| {
            // All loads first: they do not wait for each other.
            let weights: Vec<Vec<Value>> = (0..depth)
                .map(|i| matrix.load_chunk((quad * QUAD + i) * tile.columns() + column, width))
                .map(|chunk| chunk.into_iter().map(|x| x.cast(self.scalar)).collect())
                .collect();
            for (row, sums) in (0..rows).zip(&sums) {
                let left = self.left.load(quad + row * tile.k.div_ceil(QUAD));
                for (i, weights) in (0..depth as u8).zip(&weights) {
                    for (sum, &weight) in sums.iter().zip(weights) {
                        sum.set(multiply_add(left.lane(i), weight, sum.get()));
                    }
                }
            }
        };
        let first = slice * tile.quads_of_slice();
        let end = (first + tile.quads_of_slice()).min(b.u32(quads));
        b.for_(first, end, 1, |quad| add(quad, QUAD));
        if !tile.k.is_multiple_of(QUAD) {
            b.if_(slice.eq(0), || add(b.u32(quads), tile.k % QUAD));
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
