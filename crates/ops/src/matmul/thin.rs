//! Products with at most four rows: vectors times matrices, inner products. There is nothing to reuse, so nothing is
//! staged: every invocation walks its own part of k, and a workgroup adds its invocations' sums at the end.

use super::epilogue::{Epilogue, Pointers, Writer};
use super::kernel::multiply_add;
use super::operand::{Access, Axis, Reader};
use dml_kernel::{Builder, Kernel, Scalar, Value};

/// Most rows that it is used for.
pub const MOST_ROWS: i64 = 4;
/// Steps along k that an invocation has under way.
const AHEAD: u32 = 4;

/// Everything that changes the code.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Invocations of a workgroup.
    pub threads: u32,
    /// Invocations that share k.
    pub along_k: u32,
    /// Rows of the first operand and of the result: m.
    pub rows: u32,
    /// The first operand; wide only if the second is, along k.
    pub a: Access,
    /// The second operand.
    pub b: Access,
    /// What happens to sums.
    pub epilogue: Epilogue,
    /// Type of offsets.
    pub index: Scalar,
    /// k is no multiple of [`Spec::step`].
    pub ragged_k: bool,
    /// k is divided among workgroups.
    pub split: bool,
}

impl Spec {
    /// Columns of one invocation.
    fn columns(&self) -> u32 {
        if self.b.axis == Axis::Outer { self.b.width() } else { 1 }
    }

    /// Neighbours along k in one load.
    fn deep(&self) -> u32 {
        if self.b.axis == Axis::Inner { self.b.width() } else { 1 }
    }

    /// Columns of one workgroup.
    pub fn width(&self) -> u32 {
        self.threads / self.along_k * self.columns()
    }

    /// How far a workgroup walks along k at a time.
    pub fn step(&self) -> u32 {
        self.along_k * self.deep() * AHEAD
    }

    /// The parameters of its kernel's key.
    pub fn key(&self) -> [u32; 6] {
        let flags = [self.ragged_k, self.split, self.index == Scalar::U64];
        let flags = flags.iter().fold(0, |code, &flag| code << 1 | u32::from(flag));
        let shape = self.threads.ilog2() << 8 | self.along_k.ilog2() << 4 | self.rows;
        [shape, self.a.code(), self.b.code(), self.epilogue.code(), flags, 1]
    }
}

/// The product as a kernel. Workgroups: dimensions 0 and 1 count columns, 2 counts batches times parts of k.
pub fn build(spec: &Spec) -> Kernel {
    let compute = spec.a.dtype.compute();
    let (deep, columns, rows) = (spec.deep(), spec.columns(), spec.rows);
    let b = Builder::new(format!("gemm thin {rows}"), [spec.threads, 1, 1]);
    let pa = b.pointer("a", spec.a.dtype);
    let pb = b.pointer("b", spec.b.dtype);
    let pointers = Pointers::declare(&b, &spec.epilogue);
    let [_, n, k] = ["m", "n", "k"].map(|name| b.param(name, Scalar::U32));
    let mut x = Reader::declare(&b, "a", pa, spec.a, spec.index);
    let mut matrix = Reader::declare(&b, "b", pb, spec.b, spec.index);
    let mut out = Writer::declare(&b, pointers, spec.epilogue, compute, spec.index);
    let parts = spec.split.then(|| (b.param("parts", Scalar::U32), b.param("part", Scalar::U32)));

    let group = b.group_id(0) + b.group_id(1) * b.group_count(0);
    let n0 = group * spec.width();
    b.if_(n0.ge(n), || b.return_());
    let z = b.group_id(2);
    let (batch, k_begin, k_end) = match parts {
        None => (z, b.u32(0), k),
        Some((parts, part)) => {
            let batch = z / parts;
            let begin = (z - batch * parts) * part;
            (batch, begin, (begin + part).min(k))
        }
    };
    let m0 = b.u32(0);
    x.begin(batch, m0);
    matrix.begin(batch, n0);
    out.begin(z, m0, n0);

    // Neighbouring invocations share k where memory is contiguous along it, else columns.
    let lane = b.local_id(0);
    let across = spec.threads / spec.along_k;
    let (column, part_k) = if spec.b.axis == Axis::Inner {
        (lane >> spec.along_k.ilog2(), lane & (spec.along_k - 1))
    } else {
        (lane & (across - 1), lane >> across.ilog2())
    };
    let column = column * columns;
    let local = column.min(n - columns - n0);
    let zero = b.constant_of(compute, 0.0);
    let sums: Vec<_> = (0..rows * columns).map(|_| b.var(zero)).collect();
    let limit = spec.ragged_k.then_some(k_end);
    let lanes: Vec<_> = (0..AHEAD)
        .map(|ahead| {
            let k = (part_k + ahead * spec.along_k) * deep;
            let of_x: Vec<_> = (0..rows)
                .map(|row| {
                    let loads = deep / spec.a.width();
                    (0..loads).map(|i| x.lane(&b, m0, b.u32(row), k + i)).collect::<Vec<_>>()
                })
                .collect();
            (matrix.lane(&b, n0, local, k), of_x)
        })
        .collect();
    b.for_(k_begin, k_end, spec.step(), |k0| {
        let (tile_x, tile) = (x.tile(k0), matrix.tile(k0));
        let loaded: Vec<(Vec<Value>, Vec<Vec<Value>>)> = lanes
            .iter()
            .map(|(lane, of_x)| {
                let fetch = |lane| x.fetch(&b, tile_x, k0, lane, limit);
                let xs = of_x.iter().map(|row| row.iter().flat_map(fetch).collect()).collect();
                (matrix.fetch(&b, tile, k0, lane, limit), xs)
            })
            .collect();
        for (values, xs) in &loaded {
            for (row, x) in xs.iter().enumerate() {
                for (i, &value) in values.iter().enumerate() {
                    let (column, depth) = if deep == 1 { (i, 0) } else { (0, i) };
                    let sum = sums[row * columns as usize + column];
                    sum.set(multiply_add(x[depth], value, sum.get()));
                }
            }
        }
    });

    // Halves of the workgroup are added until one invocation has each column.
    if spec.along_k > 1 {
        let shared = b.shared(compute, 1, spec.threads * rows * columns);
        let next = if spec.b.axis == Axis::Inner { 1 } else { across };
        for (i, sum) in sums.iter().enumerate() {
            shared.store(lane + i as u32 * spec.threads, sum.get());
        }
        let mut half = spec.along_k / 2;
        while half > 0 {
            b.barrier();
            b.if_(part_k.lt(half), || {
                for (i, sum) in sums.iter().enumerate() {
                    let own = lane + i as u32 * spec.threads;
                    let total = sum.get() + shared.load(own + half * next);
                    sum.set(total);
                    shared.store(own, total);
                }
            });
            half /= 2;
        }
    }
    b.if_(part_k.eq(0) & (n0 + column).lt(n), || {
        for row in 0..rows {
            let at = (row * columns) as usize;
            let values: Vec<Value> = sums[at..at + columns as usize].iter().map(|s| s.get()).collect();
            out.store(&b, b.u32(row), column, &values, None);
        }
    });
    b.finish()
}

/// How a thin product of `[batch, m, n, k]` is cut up: invocations of a workgroup, those along k, parts of k.
pub fn shape(software: bool, units: f64, size: [i64; 4], b: &Access) -> (u32, u32, u32) {
    let [batch, _, n, k] = size;
    let threads = if software { 32 } else { 256 };
    let width = u64::from(b.width());
    let deep = if b.axis == Axis::Inner { width } else { 1 };
    // Every invocation along k gets some loads; where columns are many and contiguous, a warp reads them side by side.
    let useful = (k as u64 / (deep * u64::from(AHEAD))).max(1).next_power_of_two().min(u64::from(threads));
    let columns = if deep == width && width > 1 { 1 } else { width };
    let along_k = if b.axis == Axis::Outer {
        let across = (n as u64).div_ceil(columns).next_power_of_two().min(32);
        useful.min(u64::from(threads) / across)
    } else {
        useful
    } as u32;
    let groups = (n as u64).div_ceil(u64::from(threads / along_k) * columns) * batch as u64;
    let step = u64::from(along_k) * deep * u64::from(AHEAD);
    let wanted = (2.0 * units / groups as f64) as u64;
    let parts = if software { 1 } else { wanted.min(k as u64 / (4 * step)).clamp(1, 64) };
    (threads, along_k, parts as u32)
}
