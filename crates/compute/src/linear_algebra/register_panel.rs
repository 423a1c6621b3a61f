//! What the panel kernels share whose invocations hold the whole panel in registers.
//!
//! Columns rotate through the registers, the next one always first, so that register numbers are
//! constants in a loop whose iterations all run the same code.

use crate::context::Context;
use crate::linear_algebra::element::{Element, ElementVar};
use crate::primitives::registers::{Kept, Loads};
use dml_kernel::{Builder, DType, ScalarType, Shared, Value, Var};

/// Bytes of elements that an invocation holds: registers of this size are available on every GPU,
/// even in the largest workgroups.
const MAX_REGISTER_BYTES: u32 = 128;

/// What an invocation keeps in registers: its elements, and pivots, factors and sums.
fn kept(dtype: DType) -> Kept {
    let bytes = dtype.bytes() as u32;
    Kept { bytes, elements: MAX_REGISTER_BYTES / bytes + 8, loaded: (1, Loads::Elements) }
}

/// Invocations in the last step of a workgroup's reduction.
const LAST_STEP_INVOCATIONS: u32 = 32;

/// The panel that a workgroup holds.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Invocations of the workgroup.
    pub threads: u32,
    /// Rows of each invocation.
    pub rows: u32,
    /// Columns of each row.
    pub columns: u32,
}

impl Shape {
    /// The shape for panels of `rows` rows on the context's adapter.
    pub fn here(cx: &Context, dtype: DType, rows: i64) -> Option<Shape> {
        let capabilities = &cx.device.info().capabilities;
        let fits = |&threads: &u32| kept(dtype).fits(capabilities.registers, threads);
        let most = [1024, 512].into_iter().find(fits).unwrap_or(256);
        Shape::of(dtype, rows, capabilities.max_workgroup_invocations.min(most))
    }

    /// The shape for panels of `rows` rows, on an adapter whose workgroups have up to `most`
    /// invocations; `None` if registers cannot hold this number of rows.
    pub fn of(dtype: DType, rows: i64, most: u32) -> Option<Shape> {
        let most = (most.min(1024) + 1).next_power_of_two() / 2;
        let threads = [64, 256].into_iter().find(|&threads| rows <= threads && threads as u32 <= most);
        let threads = threads.map_or(most, |threads| threads as u32);
        let each = (rows as u64).div_ceil(threads.into()).next_power_of_two();
        let columns = u64::from(MAX_REGISTER_BYTES) / dtype.bytes() / each;
        (columns >= 4 && threads >= LAST_STEP_INVOCATIONS).then_some(Shape {
            threads,
            rows: each as u32,
            columns: columns as u32,
        })
    }
}

/// A row of a panel in an invocation's registers.
pub struct Row<'b> {
    /// Whether the row is in range.
    pub in_range: Value<'b>,
    /// Index of the row (u32), which row exchanges change.
    pub index: Var<'b>,
    /// The row's elements.
    pub elements: Vec<ElementVar<'b>>,
}

impl<'b> Row<'b> {
    /// The rows of an invocation, of `rows` in all; rows out of range are zeros. `load` loads the
    /// element of a row and a column, and is also called with columns beyond the panel's last.
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
                let in_range = row.lt(rows);
                let elements: Vec<ElementVar> = (0..shape.columns).map(|_| ElementVar::var(b, nothing)).collect();
                b.if_(in_range, || {
                    for (column, element) in elements.iter().enumerate() {
                        element.set(load(row, b.u32(column as u32)));
                    }
                });
                Row { in_range, index: b.var(row), elements }
            })
            .collect()
    }

    /// Rotates rows whose first `processed` columns are done until all columns are in their
    /// original registers.
    pub fn rotate_back(b: &'b Builder, rows: &[Row<'b>], processed: Value<'b>) {
        let columns = rows.first().map_or(0, |row| row.elements.len() as u32);
        b.for_(processed, b.u32(columns), 1, |_| rows.iter().for_each(|row| row.rotate(row.elements[0].get())));
    }

    /// Rotates the registers by one: the next column comes first, and `last` is stored last.
    pub fn rotate(&self, last: Element<'b>) {
        for k in 1..self.elements.len() {
            self.elements[k - 1].set(self.elements[k].get());
        }
        self.elements[self.elements.len() - 1].set(last);
    }
}

/// The maximum over a workgroup's invocations.
pub struct WorkgroupMax<'b> {
    b: &'b Builder,
    threads: u32,
    /// One number for each invocation.
    sizes: Shared<'b>,
    /// Maxima of the last step's invocations, followed by the overall maximum.
    joined: Shared<'b>,
}

impl<'b> WorkgroupMax<'b> {
    /// For a workgroup of `threads` invocations.
    pub fn new(b: &'b Builder, scalar: ScalarType, threads: u32) -> WorkgroupMax<'b> {
        WorkgroupMax {
            b,
            threads,
            sizes: b.shared(scalar, 1, threads),
            joined: b.shared(scalar, 1, LAST_STEP_INVOCATIONS + 1),
        }
    }

    /// The maximum of `size`, in all invocations; valid until the next call. NaN is ignored unless
    /// all numbers are NaN.
    pub fn largest(&self, size: Value<'b>) -> Value<'b> {
        let (b, local) = (self.b, self.b.local_id(0));
        let joining = local.lt(LAST_STEP_INVOCATIONS);
        let largest = |all: Vec<Value<'b>>| all.into_iter().reduce(|x, y| y.gt(x).select(y, x)).unwrap_or(size);
        self.sizes.store(local, size);
        b.barrier();
        b.if_(joining, || {
            let all = (0..self.threads / LAST_STEP_INVOCATIONS)
                .map(|i| self.sizes.load(local + i * LAST_STEP_INVOCATIONS))
                .collect();
            self.joined.store(local, largest(all));
        });
        b.barrier();
        b.if_(joining, || {
            let all = (0..LAST_STEP_INVOCATIONS).map(|i| self.joined.load(i)).collect();
            let found = largest(all);
            b.if_(local.eq(0), || self.joined.store(LAST_STEP_INVOCATIONS, found));
        });
        b.barrier();
        self.joined.load(LAST_STEP_INVOCATIONS)
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
                        assert!(u64::from(each * columns) * dtype.bytes() <= u64::from(MAX_REGISTER_BYTES));
                    }
                }
            }
        }
        assert_eq!(Shape::of(DType::F32, 4096, 1024), Some(Shape { threads: 1024, rows: 4, columns: 8 }));
        assert_eq!(Shape::of(DType::F32, 20, 1024), Some(Shape { threads: 64, rows: 1, columns: 32 }));
        assert_eq!(Shape::of(DType::F32, 20_000, 1024), None);
    }
}
