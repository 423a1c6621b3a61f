//! Coordinates of the lower and the upper triangle of a matrix: tril_indices and triu_indices.

use crate::check;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::primitives::launch::{GROUP, linear_id};
use dml_kernel::{Builder, DType, Kernel, Scalar, Value};

/// This family's overloads.
pub const OPERATORS: &[Operator] =
    &[op("aten::tril_indices", |c| indices(c, false)), op("aten::triu_indices", |c| indices(c, true))];

/// How many elements of a matrix of `columns` lie left of `diagonal` in the first `rows` rows: row `r` has
/// `min(max(r + diagonal, 0), columns)`.
fn left_of(rows: i64, columns: i64, diagonal: i64) -> i64 {
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

/// `tril_indices(row, col, offset, *, dtype, ..)`: `[2, count]`, in row-major order
fn indices(call: &mut Call, upper: bool) -> Result<()> {
    let (rows, columns, offset) = (call.int(0)?, call.int(1)?, call.int(2)?);
    check!(rows >= 0, Runtime, "row must be non-negative, got{rows}");
    check!(columns >= 0, Runtime, "col must be non-negative, got{columns}");
    let dtype = call.opt_dtype(3)?.unwrap_or(DType::I64);
    check!(
        matches!(dtype, DType::I64 | DType::I32),
        NotImplemented,
        "\"{}\" not implemented for '{dtype}'",
        if upper { "triu_indices" } else { "tril_indices" }
    );
    let offset = offset.clamp(-rows, columns);
    let diagonal = if upper { offset } else { offset + 1 };
    let left = left_of(rows, columns, diagonal);
    let count = if upper { rows * columns - left } else { left };
    let out = call.empty(dtype, &[2, count])?;
    if count > 0 {
        let kernel =
            call.kernel("triangle_indices", [dtype as u32, u32::from(upper), 0, 0, 0, 0], || build(dtype, upper))?;
        let launcher = call.launch(kernel).write(&out);
        [count, rows, columns, diagonal].iter().fold(launcher, |l, &x| l.i64(x)).threads(count as u64)?;
    }
    call.ret(out);
    Ok(())
}

fn build(dtype: DType, upper: bool) -> Kernel {
    let b = Builder::new("triangle_indices", [GROUP, 1, 1]);
    let out = b.pointer("out", dtype);
    let [count, rows, columns, diagonal] =
        ["count", "rows", "columns", "diagonal"].map(|name| b.param(name, Scalar::I64));
    let i = linear_id(&b, Scalar::U64).bitcast(Scalar::I64);
    b.if_(i.lt(count), || {
        // The last row before which there are no more than `i` elements.
        let (low, high) = (b.var(b.int(Scalar::I64, 0)), b.var(rows));
        b.while_(
            || (high.get() - low.get()).gt(1),
            || {
                let middle = (low.get() + high.get()) / 2;
                let left = left_of_value(middle, columns, diagonal);
                let until = if upper { middle * columns - left } else { left };
                b.if_else(until.le(i), || low.set(middle), || high.set(middle));
            },
        );
        let row = low.get();
        let left = left_of_value(row, columns, diagonal);
        let column = if upper { i - (row * columns - left) + (row + diagonal).max(0) } else { i - left };
        out.store(i, row);
        out.store(i + count, column);
    });
    b.finish()
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
            crate::primitives::validate::accepted(&build(dtype, upper));
        }
    }
}
