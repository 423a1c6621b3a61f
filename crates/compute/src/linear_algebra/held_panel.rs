//! What kernels of panels share whose invocations hold all of the panel in registers.
//!
//! Columns go round in the registers, the next one always first, so that their numbers are
//! constants in a loop of which every turn is the same code.

use crate::context::Context;
use crate::linear_algebra::element::{Element, ElementVar};
use dml_kernel::{Builder, DType, ScalarType, Shared, Value, Var};

/// Bytes of elements that an invocation holds: what the largest workgroups leave it on every GPU.
const HELD: u32 = 128;

/// Invocations that join what others found.
const JOINING: u32 = 32;

/// What a workgroup holds.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Its invocations.
    pub threads: u32,
    /// Rows of each.
    pub rows: u32,
    /// Columns of each row.
    pub columns: u32,
}

impl Shape {
    /// For panels of so many rows on the call's adapter.
    pub fn here(cx: &Context, dtype: DType, rows: i64) -> Option<Shape> {
        Shape::of(dtype, rows, cx.device.info().capabilities.max_workgroup_invocations)
    }

    /// For panels of so many rows, on an adapter whose workgroups have up to `most` invocations;
    /// none where so many are not held.
    pub fn of(dtype: DType, rows: i64, most: u32) -> Option<Shape> {
        let most = (most.min(1024) + 1).next_power_of_two() / 2;
        let threads = [64, 256].into_iter().find(|&threads| rows <= threads && threads as u32 <= most);
        let threads = threads.map_or(most, |threads| threads as u32);
        let each = (rows as u64).div_ceil(threads.into()).next_power_of_two();
        let columns = u64::from(HELD) / dtype.bytes() / each;
        (columns >= 4 && threads >= JOINING).then_some(Shape { threads, rows: each as u32, columns: columns as u32 })
    }
}

/// A row of a panel.
pub struct Row<'b> {
    /// Whether the matrix has it.
    pub exists: Value<'b>,
    /// Its number (u32), or where it is among exchanged ones.
    pub place: Var<'b>,
    /// Its elements.
    pub held: Vec<ElementVar<'b>>,
}

impl<'b> Row<'b> {
    /// Those of an invocation, of `rows` in all; a row that does not exist is zeros. `load` gives
    /// the element of a row and a column, also of columns that the panel lacks.
    pub fn all(
        b: &'b Builder,
        dtype: DType,
        shape: &Shape,
        rows: Value<'b>,
        load: impl Fn(Value<'b>, Value<'b>) -> Element<'b>,
    ) -> Vec<Row<'b>> {
        let nothing = Element::constant(b, dtype, 0.0);
        (0..shape.rows)
            .map(|i| {
                let row = b.local_id(0) + i * shape.threads;
                let exists = row.lt(rows);
                let held: Vec<ElementVar> = (0..shape.columns).map(|_| ElementVar::var(b, nothing)).collect();
                b.if_(exists, || {
                    for (column, held) in held.iter().enumerate() {
                        held.set(load(row, b.u32(column as u32)));
                    }
                });
                Row { exists, place: b.var(row), held }
            })
            .collect()
    }

    /// Of rows whose first `turned` columns went round: all columns are where they began.
    pub fn turn_back(b: &'b Builder, rows: &[Row<'b>], turned: Value<'b>) {
        let columns = rows.first().map_or(0, |row| row.held.len() as u32);
        b.for_(turned, b.u32(columns), 1, |_| rows.iter().for_each(|row| row.turn(row.held[0].get())));
    }

    /// The next column comes first, and `last` goes last.
    pub fn turn(&self, last: Element<'b>) {
        for k in 1..self.held.len() {
            self.held[k - 1].set(self.held[k].get());
        }
        self.held[self.held.len() - 1].set(last);
    }
}

/// The largest of the sizes that a workgroup's invocations have.
pub struct Search<'b> {
    b: &'b Builder,
    threads: u32,
    /// One of each invocation.
    sizes: Shared<'b>,
    /// What the joining ones found, and after them the largest of all.
    joined: Shared<'b>,
}

impl<'b> Search<'b> {
    /// Of a workgroup of so many invocations.
    pub fn new(b: &'b Builder, scalar: ScalarType, threads: u32) -> Search<'b> {
        Search { b, threads, sizes: b.shared(scalar, 1, threads), joined: b.shared(scalar, 1, JOINING + 1) }
    }

    /// The largest one, known to all until the next call. A NaN is never found unless all are.
    pub fn largest(&self, size: Value<'b>) -> Value<'b> {
        let (b, local) = (self.b, self.b.local_id(0));
        let joining = local.lt(JOINING);
        let largest = |all: Vec<Value<'b>>| all.into_iter().reduce(|x, y| y.gt(x).select(y, x)).unwrap_or(size);
        self.sizes.store(local, size);
        b.barrier();
        b.if_(joining, || {
            let all = (0..self.threads / JOINING).map(|i| self.sizes.load(local + i * JOINING)).collect();
            self.joined.store(local, largest(all));
        });
        b.barrier();
        b.if_(joining, || {
            let all = (0..JOINING).map(|i| self.joined.load(i)).collect();
            let found = largest(all);
            b.if_(local.eq(0), || self.joined.store(JOINING, found));
        });
        b.barrier();
        self.joined.load(JOINING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_hold_all_rows() {
        for most in [32, 128, 1000, 1024, 2048] {
            for rows in [1, 32, 65, 1024, 1025, 5000, 1 << 20] {
                for dtype in [DType::F32, DType::C128] {
                    if let Some(Shape { threads, rows: each, columns }) = Shape::of(dtype, rows, most) {
                        assert!(threads <= most && i64::from(threads * each) >= rows && columns >= 4);
                        assert!(u64::from(each * columns) * dtype.bytes() <= u64::from(HELD));
                    }
                }
            }
        }
        assert_eq!(Shape::of(DType::F32, 4096, 1024), Some(Shape { threads: 1024, rows: 4, columns: 8 }));
        assert_eq!(Shape::of(DType::F32, 20, 1024), Some(Shape { threads: 64, rows: 1, columns: 32 }));
        assert_eq!(Shape::of(DType::F32, 20_000, 1024), None);
    }
}
