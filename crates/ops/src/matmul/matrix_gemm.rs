//! The tiled product on matrix units, of f16 or bf16 with sums in f32.
//!
//! A workgroup computes one tile of the result, a subgroup a part of it in matrices of the adapter's shape. Tiles of both
//! operands are staged in shared memory as they lie in memory, in rows of whole 16-byte units: a matrix is loaded in either
//! order, so nothing is transposed. While one k-tile is multiplied the next one is on its way to registers; it is stored
//! after the last matrices of this one are loaded, behind their multiplications.

use super::epilogue::Writer;
use super::interface::{Product, ProductSpec};
use super::matrix_tile::{MatrixTile, UNIT};
use super::operand::{Axis, WIDE};
use super::place::Place;
use super::reader::{Lane, Reader};
use crate::primitives::kernel::KernelSpec;
use dml_engine::parameters;
use dml_kernel::{Builder, DType, Matrix, MatrixLayout, MatrixType, MatrixUse, ScalarType, Shared, Value, Var};

/// Everything that changes the code of a product on matrix units.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// How it is cut up.
    pub tile: MatrixTile,
    /// m or n is no multiple of the tile's.
    pub ragged_edge: bool,
    /// Both operands' loads take whole units of 16 bytes.
    pub units: [bool; 2],
    /// What is multiplied; the step along k is the tile's.
    pub product: ProductSpec,
}

parameters! {
    /// A product on matrix units.
    pub Spec as s => Arguments, Parameters {
        /// What is multiplied.
        product: Product = s.product,
    }
}

/// Dimensions 0 and 1 of the workgroups count tiles, 2 counts batches times parts of k.
impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "matrix_gemm"
    }

    fn full_name(&self) -> String {
        format!("matrix_gemm {}", self.tile)
    }

    fn workgroup(&self) -> [u32; 3] {
        [self.tile.threads(), 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let tile = self.tile;
        let p = p.product;
        let (m, n) = (p.m, p.n);
        let Place { left, right, out, m0, n0, k_begin, k_end } = Place::of_workgroup(b, [tile.m, tile.n], p);

        let memory = b.shared(ScalarType::U32, 4, tile.shared_units());
        let edge = |size: Value<'b>| self.ragged_edge.then_some(size);
        let a = Stage::new(b, &left, &tile, memory, b.u32(0), (tile.m, self.units[0]), (m0, edge(m)));
        let behind = MatrixTile::units(a.rows, a.length);
        let w = Stage::new(b, &right, &tile, memory, b.u32(behind), (tile.n, self.units[1]), (n0, edge(n)));
        let limit = self.product.ragged_k.then_some(k_end);
        let sums = Sums::new(b, &tile, self.product.a.dtype);

        for stage in [&a, &w] {
            stage.fetch(b, k_begin, limit);
            stage.store(b);
        }
        b.barrier();
        let count = (k_end - k_begin + (tile.k - 1)) >> tile.k.ilog2();
        let fetch = |step: Value<'b>| {
            // The last step fetches the first tile again: cheaper than a branch.
            let k0 = k_begin + (step.lt(count).select(step, 0) << tile.k.ilog2());
            a.fetch(b, k0, limit);
            w.fetch(b, k0, limit);
        };
        fetch(b.u32(1));
        b.for_(0u32, count, 1u32, |step| {
            sums.load(&a, &w);
            sums.multiply_all_but_the_last();
            b.barrier();
            sums.multiply_last(0..1);
            a.store(b);
            w.store(b);
            fetch(step + 2);
            sums.multiply_last(1..tile.fragments()[0]);
            b.barrier();
        });
        sums.store(b, &out, memory, self.ragged_edge.then_some((m0, m, n)));
    }
}

/// One operand's tile in shared memory, and this invocation's part in filling it.
struct Stage<'r, 'b> {
    reader: &'r Reader<'b>,
    memory: Shared<'b>,
    /// Where it begins there.
    begin: Value<'b>,
    /// Rows, and contiguous elements of a row.
    rows: u32,
    length: u32,
    /// Elements of a load: a unit, or as the operand is read otherwise; of single ones two are fetched together.
    width: u32,
    loads: Vec<Load<'b>>,
    /// Whether this invocation has a part at all.
    busy: Option<Value<'b>>,
}

struct Load<'b> {
    /// One, or two of single elements.
    lanes: Vec<Lane<'b>>,
    /// Where it goes: unit and place in that.
    unit: Value<'b>,
    place: Value<'b>,
    /// What was fetched, two elements a word.
    words: Vec<Var<'b>>,
}

impl<'r, 'b> Stage<'r, 'b> {
    fn new(
        b: &'b Builder,
        reader: &'r Reader<'b>,
        tile: &MatrixTile,
        memory: Shared<'b>,
        begin: Value<'b>,
        (outer, units): (u32, bool),
        (origin, size): (Value<'b>, Option<Value<'b>>),
    ) -> Stage<'r, 'b> {
        let along_k = reader.access.axis == Axis::Inner;
        let (rows, length) = if along_k { (outer, tile.k) } else { (tile.k, outer) };
        let width = if units { UNIT } else { reader.access.width() };
        let step = width.max(2);
        let (lane, threads) = (b.local_id(0), tile.threads());
        let (across, total) = (length / step, rows * length / step);
        let busy = (total < threads).then(|| lane.lt(total));
        let loads = (0..(total / threads).max(1))
            .map(|i| {
                let load = if total < threads { lane & (total - 1) } else { lane + i * threads };
                let (row, first) = (load >> across.ilog2(), (load & (across - 1)) * step);
                let lanes = (0..step / width).map(|j| {
                    let along = first + j;
                    let (o, k) = if along_k { (row, along) } else { (along, row) };
                    // Beyond the edge, the last row is read again: its sums are not stored.
                    let wide = if along_k { 1 } else { width };
                    let local = size.map_or(o, |size| o.min(size - wide - origin));
                    reader.lane(b, origin, local, k)
                });
                Load {
                    lanes: lanes.collect(),
                    unit: begin + row * (length / UNIT + 1) + (first >> UNIT.ilog2()),
                    place: first & (UNIT - 1),
                    words: (0..step / 2).map(|_| b.var(b.u32(0))).collect(),
                }
            })
            .collect();
        Stage { reader, memory, begin, rows, length, width, loads, busy }
    }

    /// Fetches this invocation's part of the k-tile at `k0`.
    fn fetch(&self, b: &'b Builder, k0: Value<'b>, k_end: Option<Value<'b>>) {
        let words = self.width == UNIT;
        let tile = self.reader.tile(k0).retyped(if words { DType::U32 } else { DType::U16 });
        for load in &self.loads {
            let mut halves = Vec::new();
            for lane in &load.lanes {
                if words {
                    let words = self.reader.fetch_unit(b, tile, k0, lane, k_end);
                    load.words.iter().zip(words).for_each(|(to, word)| to.set(word));
                } else {
                    let bits = self.reader.fetch(b, tile, k0, lane, k_end);
                    halves.extend(bits.into_iter().map(|bits| bits.bitcast(ScalarType::U32)));
                }
            }
            for (to, pair) in load.words.iter().zip(halves.chunks_exact(2)) {
                to.set(pair[0] | (pair[1] << 16));
            }
        }
    }

    fn store(&self, b: &'b Builder) {
        let store = || {
            for load in &self.loads {
                let words: Vec<_> = load.words.iter().map(|word| word.get()).collect();
                if self.width == UNIT {
                    self.memory.store(load.unit, b.vector(&words));
                    continue;
                }
                for (i, word) in words.into_iter().enumerate() {
                    self.memory.store_lane(load.unit, (load.place >> 1) + i as u32, word);
                }
            }
        };
        match self.busy {
            Some(busy) => b.if_(busy, store),
            None => store(),
        }
    }

    /// Loads the matrix that begins at `outer` and `k`.
    fn load(&self, to: Matrix<'b>, outer: Value<'b>, k: u32) {
        let stride = self.length / UNIT + 1;
        let along_k = self.reader.access.axis == Axis::Inner;
        let index = if along_k { outer * stride + k / UNIT } else { (outer >> UNIT.ilog2()) + k * stride };
        // The left operand's rows are its outer index, the right one's columns.
        let left = to.ty().part == MatrixUse::Left;
        let layout = if along_k == left { MatrixLayout::RowMajor } else { MatrixLayout::ColumnMajor };
        to.load(self.memory, self.begin + index, stride, layout);
    }
}

/// The matrices of one subgroup.
struct Sums<'b> {
    tile: MatrixTile,
    /// First row and column of the subgroup in the tile, and its index.
    m: Value<'b>,
    n: Value<'b>,
    subgroup: Value<'b>,
    /// Of every step along k.
    left: Vec<Vec<Matrix<'b>>>,
    right: Vec<Vec<Matrix<'b>>>,
    sums: Vec<Vec<Matrix<'b>>>,
}

impl<'b> Sums<'b> {
    fn new(b: &'b Builder, tile: &MatrixTile, operands: DType) -> Sums<'b> {
        let [left, right, sum] = tile.types(operands);
        let [rows, columns, steps] = tile.fragments();
        let matrices = |count: u32, ty: MatrixType| -> Vec<Matrix<'b>> {
            (0..count).map(|_| if tile.emulated { b.emulated_matrix(ty) } else { b.matrix(ty) }).collect()
        };
        let [_, across] = tile.subgroups();
        let subgroup = b.subgroup_index();
        let sums: Vec<Vec<Matrix<'b>>> = (0..rows).map(|_| matrices(columns, sum)).collect();
        sums.iter().flatten().for_each(|sum| sum.fill(0.0));
        Sums {
            tile: *tile,
            m: (subgroup >> across.ilog2()) * tile.subgroup_m,
            n: (subgroup & (across - 1)) * tile.subgroup_n,
            subgroup,
            left: (0..steps).map(|_| matrices(rows, left)).collect(),
            right: (0..steps).map(|_| matrices(columns, right)).collect(),
            sums,
        }
    }

    /// Loads the operands' matrices of a whole k-tile.
    fn load(&self, a: &Stage<'_, 'b>, b: &Stage<'_, 'b>) {
        let [m, n, k] = self.tile.shape;
        for (step, (left, right)) in (0u32..).zip(self.left.iter().zip(&self.right)) {
            for (i, &matrix) in (0u32..).zip(left) {
                a.load(matrix, self.m + i * m, step * k);
            }
            for (j, &matrix) in (0u32..).zip(right) {
                b.load(matrix, self.n + j * n, step * k);
            }
        }
    }

    fn multiply(&self, step: usize, rows: std::ops::Range<u32>) {
        for i in rows {
            for (sum, &right) in self.sums[i as usize].iter().zip(&self.right[step]) {
                sum.multiply_add(self.left[step][i as usize], right);
            }
        }
    }

    fn multiply_all_but_the_last(&self) {
        (0..self.left.len() - 1).for_each(|step| self.multiply(step, 0..self.tile.fragments()[0]));
    }

    fn multiply_last(&self, rows: std::ops::Range<u32>) {
        self.multiply(self.left.len() - 1, rows);
    }

    /// Stores all sums, some matrices of a row at a time through the subgroup's part of shared memory. `edge` guards a ragged
    /// one by the tile's first row, and the result's rows and columns.
    fn store(
        &self,
        b: &'b Builder,
        out: &Writer<'b>,
        memory: Shared<'b>,
        edge: Option<(Value<'b>, Value<'b>, Value<'b>)>,
    ) {
        let [rows, columns, _] = self.tile.shape;
        let (lanes, lane) = (self.tile.lanes, b.subgroup_lane());
        let together = self.tile.stored_together();
        let (across, chunks) = (columns * together / WIDE, rows * columns * together / WIDE);
        let begin = self.subgroup * chunks;
        for (i, line) in (0u32..).zip(&self.sums) {
            for (j, group) in (0u32..).zip(line.chunks(together as usize)) {
                for (place, sum) in (0u32..).zip(group) {
                    sum.store(memory, begin + place * (columns / WIDE), across, MatrixLayout::RowMajor);
                }
                b.subgroup_barrier();
                for first in (0..chunks).step_by(lanes as usize) {
                    let chunk = lane + first;
                    let (row, column) = (chunk >> across.ilog2(), (chunk & (across - 1)) * WIDE);
                    let (m, n) = (self.m + i * rows + row, self.n + j * (columns * together) + column);
                    let store = || {
                        let words = memory.load(begin + chunk);
                        let sums: Vec<_> = (0..WIDE as u8).map(|l| words.lane(l).bitcast(ScalarType::F32)).collect();
                        out.store(b, m, n, &sums, edge.map(|e| e.2));
                    };
                    let inside = edge.map(|(m0, rows, _)| (m0 + m).lt(rows));
                    let busy = (chunks < lanes).then(|| lane.lt(chunks));
                    match (inside, busy) {
                        (Some(inside), Some(busy)) => b.if_(inside & busy, store),
                        (Some(only), None) | (None, Some(only)) => b.if_(only, store),
                        (None, None) => store(),
                    }
                }
                b.subgroup_barrier();
            }
        }
    }
}
