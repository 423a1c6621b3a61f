//! The kernel that reduces a few columns to triangular form by Householder reflections, with the
//! whole panel in its invocations' registers.
//!
//! A workgroup processes a matrix, and each invocation every `threads`-th row; memory is read once
//! and written once. The inner products of a column with all others, in one reduction over the
//! workgroup, give the update of the columns to its right, and with those to its left the matrix T
//! of the compact WY form. If the squares of a column's numbers may underflow or overflow, it is
//! scaled by a power of two.

use crate::context::Context;
use crate::linear_algebra::element::{Element, ElementVar, OutputElements, SharedElements};
use crate::linear_algebra::matrices::{self, MatrixStrides};
use crate::linear_algebra::register_panel::{Row, Shape, WorkgroupMax};
use crate::primitives::kernel::KernelSpec;
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::{Builder, DType, ScalarType, Value, math};

/// Maximum number of partial sums of each column before the last step of the reduction.
const MAX_PARTIAL_SUMS: u32 = 32;

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RegisterPanel {
    /// The dtype of the matrices.
    pub dtype: DType,
    /// Integer type of offsets.
    pub index: ScalarType,
    /// The panel that a workgroup holds.
    pub shape: Shape,
    /// Invocations that store their sums in shared memory at once, a power of two; the others add
    /// to them in rounds.
    pub invocations_per_exchange: u32,
    /// The reflections' vectors are also written with explicit ones and zeros, and T, for them to
    /// be applied.
    pub applied: bool,
    /// For adapters with few registers: numbers that are summed are loaded where they are added.
    pub few_registers: bool,
}

impl RegisterPanel {
    /// The kernel for panels of `rows` rows on the context's adapter, for reflections that are
    /// applied; `None` if registers cannot hold this number of rows.
    pub fn here(cx: &Context, dtype: DType, index: ScalarType, rows: i64) -> Option<RegisterPanel> {
        let shape = Shape::here(cx, dtype, rows)?;
        let capabilities = &cx.device.info().capabilities;
        let room = capabilities.max_shared_memory;
        Some(RegisterPanel {
            dtype,
            index,
            shape,
            invocations_per_exchange: invocations_per_exchange(dtype, &shape, room),
            applied: true,
            few_registers: capabilities.has_few_registers(),
        })
    }

    /// Number of partial sums of each column before the last step.
    fn parts(&self) -> u32 {
        (self.shape.threads / self.shape.columns).clamp(1, MAX_PARTIAL_SUMS).min(self.invocations_per_exchange)
    }
}

/// The number of invocations whose sums fit into `room` bytes of shared memory, of which up to 16
/// KiB are for other data.
fn invocations_per_exchange(dtype: DType, shape: &Shape, room: u32) -> u32 {
    let bytes = match room >> 10 {
        48.. => 32 << 10,
        32.. => 16 << 10,
        _ => 2 << 10,
    };
    (bytes / dtype.bytes() as u32 / shape.columns).min(shape.threads)
}

parameters! {
    pub RegisterPanel as s => RegisterPanelArguments, RegisterPanelParameters {
        /// The panel, from the diagonal down.
        a: OutputElements = s.dtype,
        /// The factors of the reflections `I - tau v v^H`; their adjoints reduce the matrix to a
        /// triangle with a real diagonal.
        tau: OutputElements = s.dtype,
        /// The vectors with ones on the diagonal and zeros above; and T. Neither is accessed unless
        /// reflections are applied.
        v: OutputElements = s.dtype,
        t: OutputElements = s.dtype,
        strides: MatrixStrides = s.index,
        v_strides: MatrixStrides = s.index,
        t_strides: MatrixStrides = s.index,
        batch: U32,
        /// Number of rows, at least the number of columns.
        rows: U32,
        columns: U32,
        /// Index of the first reflection in `tau`, and number of reflections of a whole matrix.
        first: U32,
        tau_apart: U32,
        /// Rows of `v` above the panel's, at most 32, which are set to zero.
        above: U32,
    }
}

/// A power of two near `largest`, and its reciprocal; 1 and 1 if `largest` is not finite.
fn scales<'b>(b: &'b Builder, largest: Value<'b>) -> [Value<'b>; 2] {
    let (bits, fraction, top) = match largest.scalar() {
        ScalarType::F64 => (ScalarType::U64, 52, 2047),
        _ => (ScalarType::U32, 23, 255),
    };
    let int = |x| b.int(bits, x);
    let exponent = (largest.bitcast(bits) >> int(fraction)) & int(top);
    let ordinary = exponent.max(int(1)).min(int(top - 2));
    let finite = exponent.lt(int(top));
    [ordinary, int(top - 1) - ordinary].map(|exponent| {
        let power = (exponent << int(fraction)).bitcast(largest.scalar());
        finite.select(power, largest.like(1.0))
    })
}

/// The sum of at least one element, pairwise, which has a smaller rounding error than a sequential
/// sum.
fn sum_of(mut all: Vec<Element<'_>>) -> Element<'_> {
    while all.len() > 1 {
        all = all.chunks(2).map(|pair| pair[1..].iter().fold(pair[0], |x, &y| x + y)).collect();
    }
    all[0]
}

/// The same sum of elements `first` to `first + count`, each loaded where it is added.
fn sum_in_turn<'b>(first: u32, count: u32, load: &dyn Fn(u32) -> Element<'b>) -> Element<'b> {
    if count == 1 {
        return load(first);
    }
    let half = count.next_power_of_two() / 2;
    sum_in_turn(first, half, load) + sum_in_turn(first + half, count - half, load)
}

impl KernelSpec for RegisterPanel {
    fn name(&self) -> &'static str {
        "qr_held_panel"
    }

    fn workgroup(&self) -> [u32; 3] {
        [self.shape.threads, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: RegisterPanelParameters<'b>) {
        let (dtype, compute, Shape { threads, columns, .. }) = (self.dtype, self.dtype.compute(), self.shape);
        let (invocations_per_exchange, parts) = (self.invocations_per_exchange, self.parts());
        let (matrix, _) = matrices::workgroup_tile(b, p.batch, b.u32(1));
        let local = b.local_id(0);
        let nothing = Element::constant(b, dtype, 0.0);
        let shared = |len| SharedElements::shared(b, dtype, len);
        let search = WorkgroupMax::new(b, compute, threads);
        let (sums, partial, totals) =
            (shared(invocations_per_exchange * columns), shared(parts * columns), shared(columns));
        // The diagonal's row, the factors of the update by column, a column of V^H V, and T in
        // column-major order.
        let (top, along, inner, t) = (shared(columns), shared(columns), shared(columns), shared(columns * columns));
        // The divisor of the vector, the element on the diagonal, and the reflection's factor.
        let told = shared(3);
        let [divisor_at, diagonal_at, tau_at] = [0, 1, 2];
        let rows = Row::all(b, dtype, &self.shape, p.rows, |row, column| {
            p.a.load(p.strides.at(matrix, row, column.min(p.columns - 1)))
        });
        if self.applied {
            b.if_(local.lt(p.above), || {
                b.for_(0, p.columns, 1, |column| p.v.store(p.v_strides.at(matrix, local, column), nothing));
            });
        }
        // All terms of a sum; where registers are few the sum itself.
        let terms = |count: u32, load: &dyn Fn(u32) -> Element<'b>| -> Vec<Element<'b>> {
            if self.few_registers { vec![sum_in_turn(0, count, load)] } else { (0..count).map(load).collect() }
        };
        let one = b.float(compute, 1.0);
        let (low, high) = if compute == ScalarType::F64 {
            (2f64.powi(-800), 2f64.powi(600))
        } else {
            (2f64.powi(-80), 2f64.powi(60))
        };
        // Whether a row is below the diagonal; `None` for all but an invocation's first row, which
        // always are.
        let below = |i: usize, row: &Row<'b>, j: Value<'b>| (i == 0).then(|| row.index.get().gt(j));
        b.for_(0, p.columns, 1, |j| {
            b.if_(local.eq(j), || {
                for (k, element) in rows[0].elements.iter().enumerate() {
                    top.store(k as u32, element.get());
                }
            });
            let scale = [b.var(one), b.var(one)];
            let tries = b.var(b.u32(0));
            b.while_(
                || tries.get().lt(2),
                || {
                    let factor = scale[1].get();
                    // The inner products of the column below the diagonal with itself and with all
                    // others.
                    for turn in 0..threads / invocations_per_exchange {
                        let slot = local & (invocations_per_exchange - 1);
                        b.if_((local >> invocations_per_exchange.ilog2()).eq(turn), || {
                            for k in 0..columns {
                                let sum = ElementVar::var(b, nothing);
                                for (i, row) in rows.iter().enumerate() {
                                    let own = row.elements[0].get().times(factor);
                                    let other = if k == 0 { own } else { row.elements[k as usize].get() };
                                    let before = if i == 0 { nothing } else { sum.get() };
                                    let with = before.add_product(own.conjugate(), other);
                                    sum.set(
                                        below(i, row, j).map_or(with, |below| Element::select(below, with, nothing)),
                                    );
                                }
                                let at = slot + k * invocations_per_exchange;
                                let before = (turn > 0).then(|| sums.load(at));
                                sums.store(at, before.map_or(sum.get(), |before| before + sum.get()));
                            }
                        });
                        b.barrier();
                    }
                    b.for_(local, b.u32(parts * columns), threads, |task| {
                        let (k, part) = (task / parts, task & (parts - 1));
                        let all = terms(invocations_per_exchange / parts, &|e| {
                            sums.load(k * invocations_per_exchange + part + e * parts)
                        });
                        partial.store(part * columns + k, sum_of(all));
                    });
                    b.barrier();
                    b.if_(local.lt(columns), || {
                        let all = terms(parts, &|part| partial.load(local + part * columns));
                        totals.store(local, sum_of(all));
                    });
                    b.barrier();
                    let square = totals.load(0).real() + top.load(0).times(factor).square();
                    let ordinary = square.gt(low) & square.lt(high);
                    b.if_else(
                        ordinary | tries.get().ne(0),
                        || tries.set(2),
                        || {
                            tries.set(1);
                            let sizes = rows.iter().enumerate().map(|(i, row)| {
                                let size = row.elements[0].get().size();
                                if i == 0 { row.index.get().ge(j).select(size, size.like(0.0)) } else { size }
                            });
                            let own = sizes.reduce(|x, y| y.gt(x).select(y, x)).unwrap_or(one);
                            let [scaled, inverse] = scales(b, search.largest(own));
                            scale[0].set(scaled);
                            scale[1].set(inverse);
                        },
                    );
                },
            );
            let (scaled, inverse) = (scale[0].get(), scale[1].get());
            let square = totals.load(0).real();
            // Everything below the diagonal is zero, and the diagonal is real: no reflection.
            let flat = square.is_zero();
            let flat = top.load(0).imaginary().map_or(flat, |im| flat & im.is_zero());
            b.if_(local.lt(columns), || {
                let alpha = top.load(0).times(inverse);
                let norm = math::sqrt(alpha.square() + square);
                let beta = alpha.real().is_below_zero().select(norm, -norm);
                let safe = flat.select(one, beta);
                let tau = Element::select(flat, nothing, (alpha.of_same_kind(beta) - alpha).over(safe));
                let apart = Element::select(flat, nothing.like(1.0), alpha - alpha.of_same_kind(beta));
                let (own, sum) = (top.load(local), totals.load(local));
                along.store(local, tau.conjugate() * (own + sum / apart.conjugate()));
                // Completed columns come last.
                let left = b.u32(columns) - j;
                b.if_(local.ge(left), || inner.store(local - left, own.conjugate() + sum.conjugate() / apart));
                b.if_(local.eq(0), || {
                    told.store(divisor_at, apart);
                    told.store(diagonal_at, alpha.of_same_kind(beta * scaled));
                    told.store(tau_at, tau);
                    let own = matrix.cast(self.index) * p.tau_apart.cast(self.index);
                    p.tau.store(own + (p.first + j).cast(self.index), tau);
                });
            });
            b.barrier();
            if self.applied {
                // The rows of T do not depend on each other.
                let row = local - (threads - columns);
                b.if_(local.ge(threads - columns), || {
                    let sum = ElementVar::var(b, nothing);
                    b.for_(row, j, 1, |i| sum.set(sum.get() + t.load(i * columns + row) * inner.load(i)));
                    let tau = told.load(tau_at);
                    let value = Element::select(row.eq(j), tau, -(tau * sum.get()));
                    t.store(j * columns + row, Element::select(row.gt(j), nothing, value));
                });
            }
            for (i, row) in rows.iter().enumerate() {
                let first = row.elements[0].get();
                let from_diagonal = if i == 0 { row.index.get().ge(j) } else { b.bool(true) };
                b.if_else(
                    row.in_range & from_diagonal & !flat,
                    || {
                        // A division rather than a product with a reciprocal, whose rounding error
                        // would affect the whole vector.
                        let vector = first.times(inverse) / told.load(divisor_at);
                        let (factor, last) = match below(i, row, j) {
                            Some(below) => (
                                Element::select(below, vector, vector.like(1.0)),
                                Element::select(below, vector, told.load(diagonal_at)),
                            ),
                            None => (vector, vector),
                        };
                        for k in 1..columns {
                            let next = row.elements[k as usize].get();
                            // Completed columns follow the `columns - j` others.
                            let updated = next.minus_product(factor, along.load(k));
                            let next = Element::select((j + k).lt(columns), updated, next);
                            row.elements[k as usize - 1].set(next);
                        }
                        row.elements[columns as usize - 1].set(last);
                    },
                    || row.rotate(first),
                );
            }
        });
        Row::rotate_back(b, &rows, p.columns);
        for (i, row) in rows.iter().enumerate() {
            b.if_(row.in_range, || {
                for (column, element) in row.elements.iter().enumerate() {
                    let column = b.u32(column as u32);
                    let at = row.index.get();
                    b.if_(column.lt(p.columns), || {
                        p.a.store(p.strides.at(matrix, at, column), element.get());
                        if self.applied {
                            let vector = match i {
                                0 => {
                                    let upper = Element::select(at.eq(column), nothing.like(1.0), nothing);
                                    Element::select(at.gt(column), element.get(), upper)
                                }
                                _ => element.get(),
                            };
                            p.v.store(p.v_strides.at(matrix, at + p.above, column), vector);
                        }
                    });
                }
            });
        }
        if self.applied {
            b.barrier();
            b.if_(local.lt(p.columns), || {
                b.for_(0, p.columns, 1, |column| {
                    p.t.store(p.t_strides.at(matrix, local, column), t.load(column * columns + local));
                });
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;
    use dml_kernel::ir::SharedInfo;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index, rows, room, applied) in [
            (DType::F32, ScalarType::U32, 32, 48 << 10, false),
            (DType::F32, ScalarType::U32, 4096, 16 << 10, true),
            (DType::C64, ScalarType::U32, 700, 48 << 10, true),
            (DType::F64, ScalarType::U64, 2000, 16 << 10, true),
            (DType::C128, ScalarType::U64, 1000, 16 << 10, true),
        ] {
            let shape = Shape::of(dtype, rows, 1024).expect("held");
            let spec = RegisterPanel {
                dtype,
                index,
                shape,
                invocations_per_exchange: invocations_per_exchange(dtype, &shape, room),
                applied,
                few_registers: false,
            };
            accepted(&spec.build());
            accepted(&RegisterPanel { few_registers: true, ..spec }.build());
        }
    }

    #[test]
    fn shared_memory_suffices() {
        for dtype in [DType::F32, DType::F64, DType::C64, DType::C128] {
            for room in [16 << 10, 32 << 10, 48 << 10] {
                for rows in [20, 200, 1000, 2000, 4000, 8000] {
                    let Some(shape) = Shape::of(dtype, rows, 1024) else { continue };
                    let spec = RegisterPanel {
                        dtype,
                        index: ScalarType::U32,
                        shape,
                        invocations_per_exchange: invocations_per_exchange(dtype, &shape, room),
                        applied: true,
                        few_registers: false,
                    };
                    let bytes = |array: &SharedInfo| array.len * array.ty.scalar.bytes();
                    let needed: u32 = spec.build().shared.iter().map(bytes).sum();
                    assert!(needed <= room, "{dtype:?}, {rows}: {needed} of {room}");
                }
            }
        }
    }
}
