//! The tiled product: `out[batch, m, n] = epilogue(sum over k of a[batch, m, k] * b[batch, k, n])`.
//!
//! A workgroup computes one tile of the result. Tiles of both operands are staged in shared memory
//! as `[k][outer]`, so that an invocation reads its rows and columns as vectors; the next k-tile
//! travels to registers while this one is multiplied. Workgroups walk the result in bands of eight
//! tile rows, which keeps both operands in cache. Where the result is small and k is long, parts of
//! k go to workgroups of their own, and [`super::split_k`] adds the parts in order: no atomics, the
//! same bits every time.
//!
//! The blocking is that of Goto and van de Geijn ("Anatomy of high-performance matrix
//! multiplication", 2008) carried to GPUs (Volkov and Demmel, "Benchmarking GPUs to tune dense
//! linear algebra", 2008).

use crate::matmul::epilogue::Writer;
use crate::matmul::interface::{Product, ProductSpec};
use crate::matmul::operand::{Axis, WIDE};
use crate::matmul::place::Place;
use crate::matmul::reader::{Lane, Reader};
use crate::matmul::tile::Tile;
use crate::primitives::kernel::KernelSpec;
use dml_engine::parameters;
use dml_kernel::{Builder, ScalarType, Shared, Value, Var};

/// Everything that changes the code of a product.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// How it is cut up.
    pub tile: Tile,
    /// m or n is no multiple of the tile's.
    pub ragged_edge: bool,
    /// What is multiplied; the step along k is the tile's.
    pub product: ProductSpec,
}

parameters! {
    /// A product in tiles.
    pub Spec as s => Arguments, Parameters {
        /// What is multiplied.
        product: Product = s.product,
    }
}

/// Dimensions 0 and 1 of the workgroups count tiles, 2 counts batches times parts of k.
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
        let Place { left, right, out, m0, n0, k_begin, k_end } = Place::of_workgroup(b, [tile.m, tile.n], p);

        let lane = b.local_id(0);
        let clamp = self.ragged_edge;
        let stage_a = Stage::new(b, &left, &tile, Side::A, compute, lane, m0, clamp.then_some(m));
        let stage_b = Stage::new(b, &right, &tile, Side::B, compute, lane, n0, clamp.then_some(n));
        let limit = self.product.ragged_k.then_some(k_end);
        let sums = Sums::new(b, &tile, compute, lane);

        stage_a.store(b, b.u32(0), &stage_a.fetch(b, k_begin, limit));
        stage_b.store(b, b.u32(0), &stage_b.fetch(b, k_begin, limit));
        b.barrier();
        let count = (k_end - k_begin + (tile.k - 1)) >> tile.k.ilog2();
        let turn = |step: Value<'b>, here: Value<'b>| {
            // The last step prefetches the first tile again: cheaper than a branch.
            let more = (step + 1).lt(count);
            let next = more.select(step + 1, 0);
            let k0 = k_begin + (next << tile.k.ilog2());
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

/// One operand's tile in shared memory, and this invocation's part in filling it.
struct Stage<'r, 'b> {
    reader: &'r Reader<'b>,
    shared: Shared<'b>,
    /// Elements of a shared vector.
    vector: u32,
    /// Rows (columns) of the tile, and its depth.
    outer: u32,
    depth: u32,
    swizzled: bool,
    loads: Vec<Load<'b>>,
    /// Whether this invocation has a part at all.
    busy: Option<Value<'b>>,
}

struct Load<'b> {
    lane: Lane<'b>,
    /// PatternStrides in the tile.
    outer: Value<'b>,
    k: Value<'b>,
}

impl<'r, 'b> Stage<'r, 'b> {
    #[allow(clippy::too_many_arguments)]
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
        let busy = (units < threads).then(|| lane.lt(units));
        let loads = (0..(units / threads).max(1))
            .map(|i| {
                let unit = if units < threads { lane & (units - 1) } else { lane + i * threads };
                let (o, k) = if along_k {
                    // `near` neighbours along k, then all of the outer index, then the rest of k.
                    let near = if width == 1 { depth } else { tile.k_lanes.min(depth / width) };
                    let rest = unit >> near.ilog2();
                    let o = rest & (outer - 1);
                    (o, ((rest >> outer.ilog2()) * near + (unit & (near - 1))) * width)
                } else {
                    let across = outer / width;
                    ((unit & (across - 1)) * width, unit >> across.ilog2())
                };
                // Beyond the edge, the last row is read again: its sums are not stored.
                let step = if along_k { 1 } else { width };
                let local = size.map_or(o, |size| o.min(size - step - origin));
                Load { lane: reader.lane(b, origin, local, k), outer: o, k }
            })
            .collect();
        let swizzled = tile.swizzle && along_k && width == WIDE && outer >= 32;
        Stage { reader, shared, vector, outer, depth, swizzled, loads, busy }
    }

    fn fetch(&self, b: &'b Builder, k0: Value<'b>, k_end: Option<Value<'b>>) -> Vec<Vec<Value<'b>>> {
        let tile = self.reader.tile(k0);
        self.loads.iter().map(|load| self.reader.fetch(b, tile, k0, &load.lane, k_end)).collect()
    }

    fn store(&self, b: &'b Builder, stage: Value<'b>, loaded: &[Vec<Value<'b>>]) {
        let store = || {
            for (load, values) in self.loads.iter().zip(loaded) {
                let base = stage * (self.depth * self.outer);
                if self.reader.access.axis == Axis::Outer {
                    let first = base + load.k * self.outer + load.outer;
                    self.store_row(b, first, values);
                } else {
                    let outer = if self.swizzled { load.outer ^ (((load.k >> 2) & 3) << 3) } else { load.outer };
                    let first = base + load.k * self.outer + outer;
                    for (i, &value) in values.iter().enumerate() {
                        self.store_row(b, first + i as u32 * self.outer, &[value]);
                    }
                }
            }
        };
        match self.busy {
            Some(busy) => b.if_(busy, store),
            None => store(),
        }
    }

    /// Neighbours along the outer index.
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

    /// `groups` vectors of row `k` of the tile, `step` elements apart, from element `first`.
    fn row(&self, stage: Value<'b>, first: Value<'b>, k: u32, groups: u32, step: u32) -> Vec<Value<'b>> {
        (0..groups)
            .flat_map(|g| {
                let mut at = first;
                let mut constant = k * self.outer + g * step;
                if self.swizzled {
                    at = (at + g * step) ^ ((k >> 2 & 3) << 3);
                    constant = k * self.outer;
                }
                let base = (stage * (self.depth * self.outer) + at) >> self.vector.ilog2();
                let loaded = self.shared.load(base + constant / self.vector);
                let lanes = self.vector as u8;
                if lanes == 1 { vec![loaded] } else { (0..lanes).map(|l| loaded.lane(l)).collect() }
            })
            .collect()
    }
}

/// The sums of one invocation.
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

    /// Groups of neighbouring rows or columns, their length, and the step between them.
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

    /// Stores all sums; `edge` guards a ragged one by the tile's first row, and the result's rows
    /// and columns.
    fn store(&self, b: &'b Builder, out: &Writer<'b>, edge: Option<(Value<'b>, Value<'b>, Value<'b>)>) {
        let tile = &self.tile;
        let (_, vector_m, step_m) = Self::groups(tile.thread_m, tile.lanes_m);
        let (groups_n, vector_n, step_n) = Self::groups(tile.thread_n, tile.lanes_n);
        for i in 0..tile.thread_m {
            let m = self.m + (i / vector_m * step_m + i % vector_m);
            let store = || {
                for g in 0..groups_n {
                    let at = (i * tile.thread_n + g * vector_n) as usize;
                    let sums: Vec<Value> = self.sums[at..at + vector_n as usize].iter().map(|s| s.get()).collect();
                    out.store(b, m, self.n + g * step_n, &sums, edge.map(|e| e.2));
                }
            };
            match edge {
                Some((m0, rows, _)) => b.if_((m0 + m).lt(rows), store),
                None => store(),
            }
        }
    }
}

/// `x * y + z`, in floats with one rounding or two as the driver likes.
pub fn multiply_add<'b>(x: Value<'b>, y: Value<'b>, z: Value<'b>) -> Value<'b> {
    if x.scalar().is_float() { x.fma(y, z) } else { x * y + z }
}

/// A lane's row and column in a patch: bits are dealt to the column and the row in turn while both
/// have some left.
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
