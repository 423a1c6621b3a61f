//! The tiled product on matrix units: of f16 or bf16 accumulated in f32, of i8 accumulated in i32;
//! or of f32 in [terms](super::split_product) of f16.
//!
//! A workgroup computes one tile of the result, and each subgroup a part of it in matrices of the
//! adapter's shape. Tiles of both operands are staged in shared memory in rows of 16-byte vectors,
//! in the order in which they are in memory or along k, as the adapter's units load them fastest
//! ([`MatrixTile::transposes`]). The next k-tile is prefetched to registers while one is
//! multiplied; it is stored after the last matrices of the current k-tile are loaded, overlapped
//! with their multiplications.

use crate::matmul::interface::{Product, ProductSpec};
use crate::matmul::matrix_unit_stage::Stage;
use crate::matmul::matrix_unit_tile::MatrixTile;
use crate::matmul::operand::{VECTOR, VECTOR_16_BIT};
use crate::matmul::scales::{LOW_TERM_EXPONENT, RunAccumulator, Scales};
use crate::matmul::workgroup_tile::WorkgroupTile;
use crate::primitives::kernel::KernelSpec;
use dml_engine::parameters;
use dml_kernel::{Builder, DType, Matrix, MatrixLayout, MatrixType, ScalarType, Shared, Value};

/// Specialisation: everything that changes the code of a product on matrix units.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// The tile of a workgroup.
    pub tile: MatrixTile,
    /// Whether m or n is not a multiple of the tile's.
    pub has_edge_tiles: bool,
    /// Whether each operand's loads are vectors of 16 bytes.
    pub vector_loads: [bool; 2],
    /// How far operands can be read past their edges.
    pub padding: Padding,
    /// The operands and the epilogue; the step along k is the tile's.
    pub product: ProductSpec,
}

/// The padding after an operand's last row (column).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Padding {
    /// No padding.
    None,
    /// Padded to whole tiles.
    Whole,
    /// Padded to whole tiles; along k there are low and high [terms](super::terms), and the length
    /// of k is that of one term.
    Terms {
        /// k is longer than a [run](super::scales::run), so sums are accumulated in memory after
        /// each run.
        uses_accumulator_buffer: bool,
    },
}

parameters! {
    /// A product on matrix units.
    pub Spec as s => Arguments, Parameters {
        /// The operands and the epilogue.
        product: Product = s.product,
        /// The scaling of sums of terms.
        terms: Option<Scales> = s.terms(),
    }
}

impl Spec {
    /// For operands in terms: whether sums are accumulated in memory after each run of k.
    fn terms(&self) -> Option<bool> {
        match self.padding {
            Padding::Terms { uses_accumulator_buffer } => Some(uses_accumulator_buffer),
            Padding::None | Padding::Whole => None,
        }
    }
}

/// Workgroups: dimensions 0 and 1 are tiles, 2 is batches times ranges of k.
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
        let Parameters { product: p, terms } = p;
        let (m, n) = (p.m, p.n);
        let WorkgroupTile { left, right, out, m0, n0, k_begin, k_end } =
            WorkgroupTile::of_workgroup(b, [tile.m, tile.n], p);

        let vectors = if terms.is_some() { tile.vectors_of_terms() } else { tile.shared_vectors() };
        let memory = b.shared(ScalarType::U32, tile.words() as u8, vectors);
        let edge = |size: Value<'b>| (self.has_edge_tiles && self.padding == Padding::None).then_some(size);
        let a = Stage::new(b, &left, &tile, memory, b.u32(0), (tile.m, self.vector_loads[0]), (m0, edge(m)));
        let behind = tile.vectors(a.rows, a.length);
        let w = Stage::new(b, &right, &tile, memory, b.u32(behind), (tile.n, self.vector_loads[1]), (n0, edge(n)));
        let limit = self.product.has_k_remainder.then_some(k_end);
        let sums = Sums::new(b, &tile, self.product.a.factors());

        let length = (k_end - k_begin + (tile.k - 1)) >> tile.k.ilog2();
        let count = if terms.is_some() { length * 3 } else { length };
        let fetch = |step: Value<'b>| {
            // The last step fetches the first tile again: cheaper than a branch.
            let k0 = k_begin + (step.lt(count).select(step, 0) << tile.k.ilog2());
            // Products of the left operand's low and high terms with the right operand's high and
            // low ones; then products of the high terms of both.
            let last = terms.map(|_| step.ge(length * 2) & step.lt(count));
            let back = |terms: u32| last.map_or(k0, |last| k0 - last.select(k_end * terms, 0));
            a.fetch(b, back(1), limit);
            w.fetch(b, back(2), limit);
        };
        fetch(b.u32(0));
        for stage in [&a, &w] {
            stage.store(b);
        }
        b.barrier();
        fetch(b.u32(1));
        let turn = |step: Value<'b>| {
            sums.load(&a, &w);
            sums.multiply_all_but_the_last();
            b.barrier();
            sums.multiply_last(0..1);
            a.store(b);
            w.store(b);
            fetch(step + 2);
            sums.multiply_last(1..tile.fragments()[0]);
            b.barrier();
        };
        let rows = self.has_edge_tiles.then_some((m0, m));
        let columns = self.has_edge_tiles.then_some(n);
        let Some(mut scales) = terms else {
            b.for_(0u32, count, 1u32, turn);
            let width = if self.product.epilogue.stores_vectors { VECTOR_16_BIT } else { VECTOR };
            let exchange = Exchange { memory, begin: 0, together: tile.accumulators_per_store(), width };
            let fetch = |at| if self.has_edge_tiles { None } else { out.fetch(at, width as usize) };
            return sums.store(b, exchange, rows, fetch, |_, at, sums, fetched| {
                out.store(b, at, sums, columns, fetched.as_deref());
            });
        };
        scales.begin(b.group_id(2), [m0, n0]);
        let exchange = Exchange {
            memory,
            begin: tile.operand_vectors(),
            together: tile.term_accumulators_per_store(),
            width: VECTOR,
        };
        // First the products with low terms, which are then scaled; then those of high terms, one
        // run of k at a time.
        let steps = scales.run >> tile.k.ilog2();
        let runs = (length + (steps - 1)) / steps;
        b.for_(0u32, runs + 1, 1u32, |run| {
            let first = run.eq(0);
            let begin = first.select(b.u32(0), length * 2 + (run - 1) * steps);
            let end = first.select(length * 2, (length * 2 + run * steps).min(count));
            b.for_(begin, end, 1u32, turn);
            b.if_else(
                first,
                || sums.scale(2f64.powi(-LOW_TERM_EXPONENT)),
                || {
                    let accumulator = RunAccumulator::new(b, scales, [run.gt(1), run.lt(runs)], tile.m * tile.n);
                    sums.store(
                        b,
                        exchange,
                        rows,
                        |_| (),
                        |vector, [m, n], sums, ()| {
                            accumulator.add(vector, sums, |sums| {
                                out.store(b, [m, n], &scales.undo(b, m, n, sums), columns, None);
                            });
                        },
                    );
                    sums.fill(0.0);
                },
            );
        });
    }
}

/// Shared memory through which subgroups convert accumulators from matrices to rows.
#[derive(Copy, Clone)]
struct Exchange<'b> {
    memory: Shared<'b>,
    /// Offset of the first subgroup's part.
    begin: u32,
    /// Matrices, vertically and horizontally, that a subgroup stores at a time.
    together: [u32; 2],
    /// Adjacent accumulators that an invocation processes at a time.
    width: u32,
}

/// The accumulators of one subgroup, and the operands' matrices.
struct Sums<'b> {
    tile: MatrixTile,
    /// First row and column of the subgroup in the tile, and its index.
    m: Value<'b>,
    n: Value<'b>,
    subgroup: Value<'b>,
    /// Operands' matrices for every step along k.
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
        let sums = Sums {
            tile: *tile,
            m: (subgroup >> across.ilog2()) * tile.subgroup_m,
            n: (subgroup & (across - 1)) * tile.subgroup_n,
            subgroup,
            left: (0..steps).map(|_| matrices(rows, left)).collect(),
            right: (0..steps).map(|_| matrices(columns, right)).collect(),
            sums,
        };
        sums.fill(0.0);
        sums
    }

    fn fill(&self, value: f64) {
        self.sums.iter().flatten().for_each(|sum| sum.fill(value));
    }

    fn scale(&self, by: f64) {
        self.sums.iter().flatten().for_each(|sum| sum.scale(by));
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

    /// Passes all accumulators to `take`, some matrices at a time through the subgroup's part of
    /// shared memory. The arguments of `take` are the index of the chunk of `width` adjacent
    /// columns among the tile's chunks (an index belongs to the same invocation in every call), row
    /// and column of the chunk in the tile, the values, and what `fetch` has returned for the row
    /// and the column: it is called for some chunks before the first of them is taken. `edge` is
    /// the tile's first row and the number of the result's rows, if the tile may be partial.
    fn store<F>(
        &self,
        b: &'b Builder,
        Exchange { memory, begin, together: [down, across], width }: Exchange<'b>,
        edge: Option<(Value<'b>, Value<'b>)>,
        fetch: impl Fn([Value<'b>; 2]) -> F,
        take: impl Fn(Value<'b>, [Value<'b>; 2], &[Value<'b>], F),
    ) {
        let [rows, columns] = [self.tile.shape[0] * down, self.tile.shape[1] * across];
        let scalar = self.sums[0][0].ty().dtype.compute();
        let (lanes, lane) = (self.tile.lanes, b.subgroup_lane());
        let (in_row, chunks) = (columns / width, rows * columns / width);
        // Vectors of shared memory for these matrices.
        let (words, pieces) = (self.tile.words(), width / self.tile.words());
        let row_units = self.tile.sum_row(across);
        let begin = begin + self.subgroup * (rows * row_units);
        let vector = self.subgroup * (self.tile.subgroup_m * self.tile.subgroup_n / width);
        let groups = self.tile.fragments()[1] / across;
        // Row and column of a chunk among those that are stored together.
        let at = |chunk: Value<'b>| (chunk >> in_row.ilog2(), chunk & (in_row - 1));
        let load = |chunk: Value<'b>| -> Vec<Value<'b>> {
            let (row, column) = at(chunk);
            let place = begin + row * row_units + column * pieces;
            let vectors: Vec<_> = (0..pieces).map(|i| memory.load(place + i)).collect();
            let lanes = vectors.iter().flat_map(|vector| (0..words as u8).map(|lane| vector.lane(lane)));
            lanes.map(|word| word.bitcast(scalar)).collect()
        };
        for (i, lines) in (0u32..).zip(self.sums.chunks(down as usize)) {
            for j in 0..groups {
                for (y, line) in (0u32..).zip(lines) {
                    for (x, sum) in (0u32..).zip(&line[(j * across) as usize..][..across as usize]) {
                        let place = begin + (y * self.tile.shape[0] * row_units + x * (self.tile.shape[1] / words));
                        sum.store(memory, place, row_units, MatrixLayout::RowMajor);
                    }
                }
                b.subgroup_barrier();
                let place = |chunk: Value<'b>| {
                    let (row, column) = at(chunk);
                    [self.m + i * rows + row, self.n + j * columns + column * width]
                };
                let fetch = |chunk: Value<'b>| fetch(place(chunk));
                let store = |chunk: Value<'b>, sums: &[Value<'b>], fetched: F| {
                    let [m, n] = place(chunk);
                    let take = || take(vector + (i * groups + j) * chunks + chunk, [m, n], sums, fetched);
                    match edge {
                        Some((m0, rows)) => b.if_((m0 + m).lt(rows), take),
                        None => take(),
                    }
                };
                if chunks < lanes {
                    b.if_(lane.lt(chunks), || store(lane, &load(lane), fetch(lane)));
                } else {
                    let all: Vec<_> = (0..chunks).step_by(lanes as usize).map(|first| lane + first).collect();
                    for some in all.chunks(LOADS_IN_FLIGHT) {
                        let fetched: Vec<_> = some.iter().map(|&chunk| fetch(chunk)).collect();
                        let loaded: Vec<_> = some.iter().map(|&chunk| load(chunk)).collect();
                        some.iter().zip(loaded).zip(fetched).for_each(|((&chunk, sums), fetched)| {
                            store(chunk, &sums, fetched);
                        });
                    }
                }
                b.subgroup_barrier();
            }
        }
    }
}

/// Chunks that an invocation loads before it passes on the first one. This hides the latency of
/// shared memory, and takes registers.
const LOADS_IN_FLIGHT: usize = 4;
