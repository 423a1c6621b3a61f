//! Coordinates of the lower and the upper triangle of a matrix.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::{KernelSpec, Output};
use crate::view::View;
use dml_engine::interface::I64;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// Number of elements left of `diagonal` in the first `rows` rows of a matrix of `columns` columns:
/// row `r` has `min(max(r + diagonal, 0), columns)`.
pub fn left_of(rows: i64, columns: i64, diagonal: i64) -> i64 {
    let (rows, first) = ((rows + diagonal.min(0)).max(0), diagonal.clamp(0, columns));
    // Rows grow by one element each until they are full.
    let growing = rows.min(columns - first);
    growing * first + growing * (growing - 1) / 2 + (rows - growing) * columns
}

/// [`left_of`] in a kernel.
fn left_of_value<'b>(rows: Value<'b>, columns: Value<'b>, diagonal: Value<'b>) -> Value<'b> {
    let (rows, first) = ((rows + diagonal.min(0)).max(0), diagonal.max(0).min(columns));
    let growing = rows.min(columns - first);
    growing * first + growing * (growing - 1) / 2 + (rows - growing) * columns
}

/// Writes the rows and columns of the elements of a triangle of a `[rows, columns]` matrix, in
/// row-major order: the elements left of `diagonal`, or the others if `upper`. `out` is
/// `[2, count]`, contiguous, int32 or int64, not empty.
pub fn coordinates(cx: &Context, rows: i64, columns: i64, diagonal: i64, upper: bool, out: &View) -> Result<()> {
    let count = out.sizes[1];
    let arguments = Arguments { out, count, rows, columns, diagonal };
    cx.run_threads(&Spec { dtype: out.dtype, upper }, &arguments, count as u64)
}

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    dtype: DType,
    upper: bool,
}

parameters! {
    Spec as s => Arguments, Parameters {
        out: Output = s.dtype,
        count: I64,
        rows: I64,
        columns: I64,
        diagonal: I64,
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "triangle_indices"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let i = linear_id(b, ScalarType::U64).bitcast(ScalarType::I64);
        b.if_(i.lt(p.count), || {
            // The last row before which there are at most `i` elements.
            let (low, high) = (b.var(b.int(ScalarType::I64, 0)), b.var(p.rows));
            b.while_(
                || (high.get() - low.get()).gt(1),
                || {
                    let middle = (low.get() + high.get()) / 2;
                    let left = left_of_value(middle, p.columns, p.diagonal);
                    let until = if self.upper { middle * p.columns - left } else { left };
                    b.if_else(until.le(i), || low.set(middle), || high.set(middle));
                },
            );
            let row = low.get();
            let left = left_of_value(row, p.columns, p.diagonal);
            let column = if self.upper { i - (row * p.columns - left) + (row + p.diagonal).max(0) } else { i - left };
            p.out.store(i, row);
            p.out.store(i + p.count, column);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_all_elements() {
        for (rows, columns) in [(0, 3), (3, 0), (1, 1), (4, 4), (3, 7), (7, 3)] {
            for diagonal in -9..9 {
                let count = (0..rows).map(|r: i64| (r + diagonal).clamp(0, columns)).sum::<i64>();
                assert_eq!(left_of(rows, columns, diagonal), count, "{rows} {columns} {diagonal}");
            }
        }
    }

    #[test]
    fn kernels_are_valid() {
        for (dtype, upper) in [(DType::I64, true), (DType::I32, false)] {
            crate::primitives::validate::accepted(&Spec { dtype, upper }.build());
        }
    }
}
