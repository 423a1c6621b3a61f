//! Products with at most four rows (GEMV): vectors times matrices, inner products. No element is
//! used twice, so nothing is staged in shared memory: every invocation iterates over its part of k,
//! and the workgroup reduces the invocations' sums at the end.

use crate::matmul::gemm::multiply_add;
use crate::matmul::interface::{Product, ProductSpec};
use crate::matmul::operand::{Access, Axis};
use crate::matmul::select::Limits;
use crate::matmul::split_k;
use crate::primitives::kernel::KernelSpec;
use crate::primitives::loops::MAX_SOFTWARE_ITERATIONS;
use crate::primitives::registers::{Kept, Loads, loads_in_flight};
use dml_engine::parameters;
use dml_kernel::{Builder, Value};

/// Maximum number of rows.
pub const MAX_ROWS: i64 = 4;

/// Maximum steps along k whose loads an invocation issues together.
const LOADS_IN_FLIGHT: u32 = 4;

/// Specialisation: everything that changes the code.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// Invocations of a workgroup.
    pub threads: u32,
    /// Invocations along k, which share a column.
    pub along_k: u32,
    /// Steps along k whose loads an invocation issues together.
    pub loads_in_flight: u32,
    /// Rows of the first operand and of the result: m.
    pub rows: u32,
    /// The operands and the epilogue. The first operand has vector loads only if the second has
    /// them along k. The second operand may be of another dtype, and is then converted. The step
    /// along k is [`Spec::step`].
    pub product: ProductSpec,
}

impl Spec {
    /// Columns of one invocation.
    fn columns(&self) -> u32 {
        if self.product.b.axis == Axis::Outer { self.product.b.width() } else { 1 }
    }

    /// Elements along k of one load.
    fn deep(&self) -> u32 {
        if self.product.b.axis == Axis::Inner { self.product.b.width() } else { 1 }
    }

    /// Columns of one workgroup.
    pub fn width(&self) -> u32 {
        self.threads / self.along_k * self.columns()
    }

    /// Elements along k of one step of a workgroup.
    pub fn step(&self) -> u32 {
        self.along_k * self.deep() * self.loads_in_flight
    }
}

parameters! {
    /// A product of few rows.
    pub Spec as s => Arguments, Parameters {
        /// The operands and the epilogue.
        product: Product = s.product,
    }
}

/// Workgroups: dimensions 0 and 1 are columns, 2 is batches times ranges of k.
impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "gemv"
    }

    fn full_name(&self) -> String {
        format!("gemv {}", self.rows)
    }

    fn workgroup(&self) -> [u32; 3] {
        [self.threads, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let (deep, columns, rows) = (self.deep(), self.columns(), self.rows);
        let (threads, along_k) = (self.threads, self.along_k);
        let ProductSpec { a: access, b: matrix_access, has_k_remainder, .. } = self.product;
        let compute = access.dtype.compute();
        let p = p.product;
        let (n, k) = (p.n, p.k);
        let (mut x, mut matrix) = (p.a_elements.reader(p.a), p.b_elements.reader(p.b));
        let mut out = p.epilogue.at(b, p.out, p.bias, p.tensors);

        let group = b.group_id(0) + b.group_id(1) * b.group_count(0);
        let n0 = group * self.width();
        b.if_(n0.ge(n), || b.return_());
        let z = b.group_id(2);
        let (batch, k_begin, k_end) = split_k::part(b, z, k, p.split_k);
        let m0 = b.u32(0);
        x.begin(batch, m0);
        matrix.begin(batch, n0);
        out.begin(z, m0, n0);

        // Neighbouring invocations are along k if memory is contiguous along it, else along
        // columns.
        let lane = b.local_id(0);
        let across = threads / along_k;
        let (column, part_k) = if matrix_access.axis == Axis::Inner {
            (lane >> along_k.ilog2(), lane & (along_k - 1))
        } else {
            (lane & (across - 1), lane >> across.ilog2())
        };
        let column = column * columns;
        let local = column.min(n - columns - n0);
        let zero = b.constant_of(compute, 0.0);
        let sums: Vec<_> = (0..rows * columns).map(|_| b.var(zero)).collect();
        let limit = has_k_remainder.then_some(k_end);
        let lanes: Vec<_> = (0..self.loads_in_flight)
            .map(|ahead| {
                let k = (part_k + ahead * along_k) * deep;
                let of_x: Vec<_> = (0..rows)
                    .map(|row| {
                        let loads = deep / access.width();
                        (0..loads).map(|i| x.lane(b, m0, b.u32(row), k + i)).collect::<Vec<_>>()
                    })
                    .collect();
                (matrix.lane(b, n0, local, k), of_x)
            })
            .collect();
        b.for_(k_begin, k_end, self.step(), |k0| {
            let (tile_x, tile) = (x.tile(k0), matrix.tile(k0));
            let loaded: Vec<(Vec<Value>, Vec<Vec<Value>>)> = lanes
                .iter()
                .map(|(lane, of_x)| {
                    let fetch = |lane| x.fetch(b, tile_x, k0, lane, limit);
                    let xs = of_x.iter().map(|row| row.iter().flat_map(fetch).collect()).collect();
                    let values = matrix.fetch(b, tile, k0, lane, limit);
                    (values.into_iter().map(|value| value.cast(compute)).collect(), xs)
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

        // The halves of the workgroup are added until there is one invocation for each column.
        if along_k > 1 {
            let shared = b.shared(compute, 1, threads * rows * columns);
            let next = if matrix_access.axis == Axis::Inner { 1 } else { across };
            for (i, sum) in sums.iter().enumerate() {
                shared.store(lane + i as u32 * threads, sum.get());
            }
            let mut half = along_k / 2;
            while half > 0 {
                b.barrier();
                b.if_(part_k.lt(half), || {
                    for (i, sum) in sums.iter().enumerate() {
                        let own = lane + i as u32 * threads;
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
                out.store(b, [b.u32(row), column], &values, None, None);
            }
        });
    }
}

/// How a product is divided.
pub struct Division {
    /// Invocations of a workgroup.
    pub threads: u32,
    /// Invocations along k.
    pub along_k: u32,
    /// See [`Spec::loads_in_flight`].
    pub loads_in_flight: u32,
    /// Ranges of k for separate workgroups.
    pub parts: u32,
}

/// How a product of `[batch, m, n, k]` is divided.
pub fn choose(limits: &Limits, size: [i64; 4], b: &Access) -> Division {
    let Limits { software, compute_units, shared_memory, .. } = *limits;
    let [batch, m, n, k] = size;
    let mut threads = if software { 32 } else { 256 };
    let width = u64::from(b.width());
    let deep = if b.axis == Axis::Inner { width } else { 1 };
    // Each invocation has an element of shared memory for every one of its sums.
    let sums = m as u32 * if b.axis == Axis::Outer { b.width() } else { 1 } * b.dtype.compute().bytes();
    while threads * sums > shared_memory && threads > 32 {
        threads /= 2;
    }
    // Every invocation along k gets several loads; if there are many columns and they are
    // contiguous, a warp reads adjacent ones.
    let useful = (k as u64 / (deep * u64::from(LOADS_IN_FLIGHT))).max(1).next_power_of_two().min(u64::from(threads));
    let columns = if deep == width && width > 1 { 1 } else { width };
    let along_k = if b.axis == Axis::Outer {
        let across = (n as u64).div_ceil(columns).next_power_of_two().min(32);
        useful.min(u64::from(threads) / across)
    } else {
        useful
    } as u32;
    let groups = (n as u64).div_ceil(u64::from(threads / along_k) * columns) * batch as u64;
    let step = u64::from(along_k) * deep * u64::from(LOADS_IN_FLIGHT);
    let wanted = (2.0 * compute_units / groups as f64) as u64;
    let parts = if software {
        (k as u64).div_ceil(MAX_SOFTWARE_ITERATIONS * step)
    } else {
        wanted.min(k as u64 / (4 * step)).clamp(1, 64)
    };
    let compute = b.dtype.compute().bytes();
    let loads_in_flight = loads_in_flight(limits.registers, threads, LOADS_IN_FLIGHT, |loads| Kept {
        bytes: compute,
        elements: sums / compute + loads * (m + 1) as u32 * width as u32,
        loaded: (loads * (m + 1) as u32 * width as u32, if width > 1 { Loads::Vectors } else { Loads::Elements }),
    });
    Division { threads, along_k, loads_in_flight, parts: parts as u32 }
}
