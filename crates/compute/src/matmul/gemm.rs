//! The tiled product: `out[batch, m, n] = epilogue(sum over k of a[batch, m, k] * b[batch, k, n])`.
//!
//! A workgroup computes one tile of the result. Tiles of both operands are staged in shared memory
//! as `[k][outer]`, so that an invocation reads its rows and columns as vectors; the next k-tile is
//! prefetched to registers while this one is multiplied. Workgroups are ordered in bands of eight
//! tile rows, which keeps both operands in cache. If the result is small and k is long, ranges of k
//! are computed by separate workgroups, and [`super::split_k`] adds the partial sums in order: no
//! atomics, the same bits every time.
//!
//! The blocking is that of Goto and van de Geijn ("Anatomy of high-performance matrix
//! multiplication", 2008) applied to GPUs (Volkov and Demmel, "Benchmarking GPUs to tune dense
//! linear algebra", 2008).

use crate::matmul::epilogue::EpilogueCode;
use crate::matmul::interface::{Product, ProductSpec};
use crate::matmul::operand::{Axis, VECTOR};
use crate::matmul::reader::{Lane, Reader};
use crate::matmul::tile::Tile;
use crate::matmul::workgroup_tile::WorkgroupTile;
use crate::primitives::kernel::KernelSpec;
use dml_engine::parameters;
use dml_kernel::{Builder, ScalarType, Shared, Value, Var};

/// Specialisation: everything that changes the code of a product.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// The tile of a workgroup.
    pub tile: Tile,
    /// Whether m or n is not a multiple of the tile's.
    pub has_edge_tiles: bool,
    /// The operands and the epilogue; the step along k is the tile's.
    pub product: ProductSpec,
}

parameters! {
    /// A product in tiles.
    pub Spec as s => Arguments, Parameters {
        /// The operands and the epilogue.
        product: Product = s.product,
    }
}

/// Workgroups: dimensions 0 and 1 are tiles, 2 is batches times ranges of k.
impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "gemm"
    }

    fn full_name(&self) -> String {
        format!("gemm {}", self.tile)
    }

    fn workgroup(&self) -> [u32; 3] {
        [self.tile.threads(), 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let tile = self.tile;
        let compute = self.product.a.dtype.compute();
        let p = p.product;
        let (m, n) = (p.m, p.n);
        let WorkgroupTile { left, right, out, m0, n0, k_begin, k_end } =
            WorkgroupTile::of_workgroup(b, [tile.m, tile.n], p);

        let lane = b.local_id(0);
        let clamp = self.has_edge_tiles;
        let mut stage_a = Stage::new(b, &left, &tile, Side::A, compute, lane, m0, clamp.then_some(m));
        let mut stage_b = Stage::new(b, &right, &tile, Side::B, compute, lane, n0, clamp.then_some(n));
        if tile.lean {
            stage_a.begin(b, k_begin);
            stage_b.begin(b, k_begin);
        }
        let limit = self.product.has_k_remainder.then_some(k_end);
        let sums = Sums::new(b, &tile, compute, lane);

        stage_a.store(b, b.u32(0), &stage_a.fetch(b, k_begin, limit));
        stage_b.store(b, b.u32(0), &stage_b.fetch(b, k_begin, limit));
        b.barrier();
        let count = (k_end - k_begin + (tile.k - 1)) >> tile.k.ilog2();
        let turn = |step: Value<'b>, here: Value<'b>| {
            // The last step prefetches the first tile again: cheaper than a branch.
            let more = (step + 1).lt(count);
            // A lean loop repeats the last tile instead, whose pointers it has.
            let next = if tile.lean { more.select(step + 1, step) } else { more.select(step + 1, 0) };
            let k0 = k_begin + (next << tile.k.ilog2());
            stage_a.advance(more);
            stage_b.advance(more);
            let (next_a, next_b) = (stage_a.fetch(b, k0, limit), stage_b.fetch(b, k0, limit));
            sums.add(&stage_a, &stage_b, here);
            let store = || {
                if tile.stages == 1 {
                    b.barrier();
                }
                let there = if tile.stages == 2 { here ^ 1 } else { here };
                stage_a.store(b, there, &next_a);
                stage_b.store(b, there, &next_b);
                b.barrier();
            };
            if tile.guard { b.if_(more, store) } else { store() }
        };
        if tile.unroll {
            b.for_(0u32, count & !1u32, 2u32, |step| {
                turn(step, b.u32(0));
                turn(step + 1, b.u32(1));
            });
            b.if_((count & 1).ne(0), || turn(count - 1, b.u32(0)));
        } else {
            b.for_(0u32, count, 1u32, |step| turn(step, if tile.stages == 2 { step & 1 } else { b.u32(0) }));
        }
        sums.store(b, &out, clamp.then_some((m0, m, n)));
    }
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Side {
    A,
    B,
}

/// The tile of one operand in shared memory, and this invocation's part in copying it there.
struct Stage<'r, 'b> {
    reader: &'r Reader<'b>,
    shared: Shared<'b>,
    /// Elements of a vector in shared memory.
    vector: u32,
    /// Rows (columns) of the tile, and its length along k.
    outer: u32,
    depth: u32,
    swizzled: bool,
    loads: Vec<Load<'b>>,
    /// Whether this invocation copies anything; `None` if every invocation does.
    is_active: Option<Value<'b>>,
    lean: bool,
    /// Of a lean loop: where the k-tile begins in a strided operand, in elements, and the step.
    position: Option<(Var<'b>, Value<'b>)>,
}

struct Load<'b> {
    lane: Lane<'b>,
    /// Position in the tile.
    outer: Value<'b>,
    k: Value<'b>,
    /// Of a lean loop: the element of shared memory, and no more, since registers are few.
    stored: Option<Value<'b>>,
}

impl<'r, 'b> Stage<'r, 'b> {
    fn new(
        b: &'b Builder,
        reader: &'r Reader<'b>,
        tile: &Tile,
        side: Side,
        compute: ScalarType,
        lane: Value<'b>,
        origin: Value<'b>,
        size: Option<Value<'b>>,
    ) -> Stage<'r, 'b> {
        let (outer, thread) = if side == Side::A { (tile.m, tile.thread_m) } else { (tile.n, tile.thread_n) };
        let (depth, threads) = (tile.k, tile.threads());
        let vector = thread.min(4);
        let shared = b.shared(compute, vector as u8, tile.stages * depth * outer / vector);
        let width = reader.access.width();
        let along_k = reader.access.axis == Axis::Inner;
        let units = outer * depth / width;
        let is_active = (units < threads).then(|| lane.lt(units));
        let loads = (0..(units / threads).max(1))
            .map(|i| {
                let unit = if units < threads { lane & (units - 1) } else { lane + i * threads };
                let (o, k) = if along_k {
                    // A load's index has three digits: `near` neighbours along k, then all of the
                    // outer index, then the rest of k.
                    let near = if width == 1 { depth } else { tile.k_lanes.min(depth / width) };
                    let rest = unit >> near.ilog2();
                    let o = rest & (outer - 1);
                    (o, ((rest >> outer.ilog2()) * near + (unit & (near - 1))) * width)
                } else {
                    let across = outer / width;
                    ((unit & (across - 1)) * width, unit >> across.ilog2())
                };
                // Past the edge, the last row is read again; its sums are not stored.
                let step = if along_k { 1 } else { width };
                let local = size.map_or(o, |size| o.min(size - step - origin));
                Load { lane: reader.lane(b, origin, local, k), outer: o, k, stored: None }
            })
            .collect();
        let swizzled = tile.swizzle && along_k && width == VECTOR && outer >= 32;
        Stage { reader, shared, vector, outer, depth, swizzled, loads, is_active, lean: tile.lean, position: None }
    }

    /// Begins a lean loop at `k_begin`.
    fn begin(&mut self, b: &'b Builder, k_begin: Value<'b>) {
        if let Some(stride) = self.reader.stride() {
            let elements = |k: Value<'b>| k.cast(ScalarType::U64) * stride.cast(ScalarType::U64);
            self.position = Some((b.var(elements(k_begin)), elements(b.u32(self.depth))));
        }
        for i in 0..self.loads.len() {
            let load = &self.loads[i];
            let at = load.k * self.outer + self.stored_column(load);
            self.loads[i].stored = Some(at);
        }
    }

    /// Advances a lean loop by a step where `more` is true.
    fn advance(&self, more: Value<'b>) {
        if let Some((position, step)) = &self.position {
            position.set(position.get() + more.select(*step, 0));
        }
    }

    /// The column of shared memory for a load's outer index.
    fn stored_column(&self, load: &Load<'b>) -> Value<'b> {
        if self.swizzled { load.outer ^ (((load.k >> 2) & 3) << 3) } else { load.outer }
    }

    fn fetch(&self, b: &'b Builder, k0: Value<'b>, k_end: Option<Value<'b>>) -> Vec<Vec<Value<'b>>> {
        let tile = match &self.position {
            Some((position, _)) => self.reader.tile_from(position.get()),
            None => self.reader.tile(k0),
        };
        self.loads.iter().map(|load| self.reader.fetch(b, tile, k0, &load.lane, k_end)).collect()
    }

    fn store(&self, b: &'b Builder, stage: Value<'b>, loaded: &[Vec<Value<'b>>]) {
        let store = || {
            for (load, values) in self.loads.iter().zip(loaded) {
                if let Some(stored) = load.stored {
                    self.store_lean(b, stage, stored, values);
                    continue;
                }
                let base = stage * (self.depth * self.outer);
                if self.reader.access.axis == Axis::Outer {
                    let first = base + load.k * self.outer + load.outer;
                    self.store_row(b, first, values);
                } else {
                    let column = self.stored_column(load);
                    let first = base + load.k * self.outer + column;
                    for (i, &value) in values.iter().enumerate() {
                        self.store_row(b, first + i as u32 * self.outer, &[value]);
                    }
                }
            }
        };
        match self.is_active {
            Some(is_active) => b.if_(is_active, store),
            None => store(),
        }
    }

    /// Stores what a load of a lean loop has yielded.
    fn store_lean(&self, b: &'b Builder, stage: Value<'b>, stored: Value<'b>, values: &[Value<'b>]) {
        let first = stage * (self.depth * self.outer / self.vector) + (stored >> self.vector.ilog2());
        let lane = stored & (self.vector - 1);
        if self.reader.access.axis == Axis::Inner {
            let row = self.outer / self.vector;
            for (i, &value) in values.iter().enumerate() {
                self.shared.store_lane(first + i as u32 * row, lane, value);
            }
        } else if values.len() as u32 >= self.vector && self.vector > 1 {
            for (i, part) in values.chunks(self.vector as usize).enumerate() {
                self.shared.store(first + i as u32, b.vector(part));
            }
        } else {
            // Neighbours begin at a multiple of their number, so they are in one vector, or each is
            // one.
            for (i, &value) in values.iter().enumerate() {
                let (vector, place) = if self.vector == 1 { (i as u32, 0) } else { (0, i as u32) };
                self.shared.store_lane(first + vector, lane + place, value);
            }
        }
    }

    /// Stores neighbours along the outer index.
    fn store_row(&self, b: &'b Builder, first: Value<'b>, values: &[Value<'b>]) {
        let vector = self.vector;
        if values.len() as u32 >= vector {
            for (i, part) in values.chunks(vector as usize).enumerate() {
                let value = if vector == 1 { part[0] } else { b.vector(part) };
                self.shared.store((first >> vector.ilog2()) + i as u32, value);
            }
            return;
        }
        for (i, &value) in values.iter().enumerate() {
            let at = first + i as u32;
            self.shared.store_lane(at >> vector.ilog2(), at & (vector - 1), value);
        }
    }

    /// Loads `groups` vectors of row `k` of the tile, `step` elements apart, from element `first`
    /// on.
    fn row(&self, stage: Value<'b>, first: Value<'b>, k: u32, groups: u32, step: u32) -> Vec<Value<'b>> {
        (0..groups)
            .flat_map(|g| {
                if self.lean {
                    return self.lean_vector(stage, first, k, g * step);
                }
                let mut at = first;
                let mut constant = k * self.outer + g * step;
                if self.swizzled {
                    at = (at + g * step) ^ ((k >> 2 & 3) << 3);
                    constant = k * self.outer;
                }
                let base = (stage * (self.depth * self.outer) + at) >> self.vector.ilog2();
                let loaded = self.shared.load(base + constant / self.vector);
                self.lanes(loaded)
            })
            .collect()
    }

    /// A vector of row `k` in a lean loop, `apart` elements from element `first` on. Both are
    /// multiples of the vector.
    fn lean_vector(&self, stage: Value<'b>, first: Value<'b>, k: u32, apart: u32) -> Vec<Value<'b>> {
        let of_stage = stage * (self.depth * self.outer / self.vector);
        let mut at = first >> self.vector.ilog2();
        let mut constant = (k * self.outer + apart) / self.vector;
        let swizzle = if self.swizzled { (k >> 2 & 3) << 3 } else { 0 };
        if swizzle != 0 {
            at = (at + apart / self.vector) ^ (swizzle / self.vector);
            constant = k * self.outer / self.vector;
        }
        self.lanes(self.shared.load(at + of_stage + constant))
    }

    fn lanes(&self, loaded: Value<'b>) -> Vec<Value<'b>> {
        let lanes = self.vector as u8;
        if lanes == 1 { vec![loaded] } else { (0..lanes).map(|l| loaded.lane(l)).collect() }
    }
}

/// The accumulators of one invocation.
struct Sums<'b> {
    tile: Tile,
    sums: Vec<Var<'b>>,
    /// First row and column in the tile.
    m: Value<'b>,
    n: Value<'b>,
}

impl<'b> Sums<'b> {
    fn new(b: &'b Builder, tile: &Tile, compute: ScalarType, lane: Value<'b>) -> Sums<'b> {
        let lanes = tile.lanes_m * tile.lanes_n;
        let (lm, ln) = morton(b, lane & (lanes - 1), tile.lanes_m, tile.lanes_n);
        let patch = lane >> lanes.ilog2();
        let across = tile.n / (tile.lanes_n * tile.thread_n);
        let (pm, pn) = (patch >> across.ilog2(), patch & (across - 1));
        let m = pm * (tile.lanes_m * tile.thread_m) + lm * tile.thread_m.min(4);
        let n = pn * (tile.lanes_n * tile.thread_n) + ln * tile.thread_n.min(4);
        let zero = b.constant_of(compute, 0.0);
        let sums = (0..tile.thread_m * tile.thread_n).map(|_| b.var(zero)).collect();
        Sums { tile: *tile, sums, m, n }
    }

    /// The groups of adjacent rows or columns that an invocation has: their number, their length,
    /// and the distance between them.
    fn groups(thread: u32, lanes: u32) -> (u32, u32, u32) {
        let vector = thread.min(4);
        (thread / vector, vector, lanes * vector)
    }

    fn add(&self, stage_a: &Stage<'_, 'b>, stage_b: &Stage<'_, 'b>, stage: Value<'b>) {
        let tile = &self.tile;
        let (groups_m, _, step_m) = Self::groups(tile.thread_m, tile.lanes_m);
        let (groups_n, _, step_n) = Self::groups(tile.thread_n, tile.lanes_n);
        let fragment =
            |k: u32| [stage_a.row(stage, self.m, k, groups_m, step_m), stage_b.row(stage, self.n, k, groups_n, step_n)];
        for k in 0..tile.k {
            let [x, y] = fragment(k);
            for (i, &x) in x.iter().enumerate() {
                for (j, &y) in y.iter().enumerate() {
                    let sum = self.sums[i * tile.thread_n as usize + j];
                    sum.set(multiply_add(x, y, sum.get()));
                }
            }
        }
    }

    /// Stores all accumulators. `edge` is the tile's first row, and the result's rows and columns,
    /// if the tile may be partial.
    fn store(&self, b: &'b Builder, out: &EpilogueCode<'b>, edge: Option<(Value<'b>, Value<'b>, Value<'b>)>) {
        let tile = &self.tile;
        let (_, vector_m, step_m) = Self::groups(tile.thread_m, tile.lanes_m);
        let (groups_n, vector_n, step_n) = Self::groups(tile.thread_n, tile.lanes_n);
        for i in 0..tile.thread_m {
            let m = self.m + (i / vector_m * step_m + i % vector_m);
            let store = || {
                for g in 0..groups_n {
                    let at = (i * tile.thread_n + g * vector_n) as usize;
                    let sums: Vec<Value> = self.sums[at..at + vector_n as usize].iter().map(|s| s.get()).collect();
                    out.store(b, [m, self.n + g * step_n], &sums, edge.map(|e| e.2), None);
                }
            };
            match edge {
                Some((m0, rows, _)) => b.if_((m0 + m).lt(rows), store),
                None => store(),
            }
        }
    }
}

/// `x * y + z`; for floats the driver decides whether it is fused.
pub fn multiply_add<'b>(x: Value<'b>, y: Value<'b>, z: Value<'b>) -> Value<'b> {
    if x.scalar().is_float() { x.fma(y, z) } else { x * y + z }
}

/// A lane's row and column in a patch, in Morton order: the lane's bits alternate between column
/// and row as long as both have bits left.
fn morton<'b>(b: &'b Builder, lane: Value<'b>, rows: u32, columns: u32) -> (Value<'b>, Value<'b>) {
    let (mut m, mut n) = (b.u32(0), b.u32(0));
    let (mut bits_m, mut bits_n) = (0, 0);
    for bit in 0..(rows * columns).ilog2() {
        let value = (lane >> bit) & 1;
        let to_column = bits_n < columns.ilog2() && (bits_n <= bits_m || bits_m == rows.ilog2());
        if to_column {
            n = n | (value << bits_n);
            bits_n += 1;
        } else {
            m = m | (value << bits_m);
            bits_m += 1;
        }
    }
    (m, n)
}
