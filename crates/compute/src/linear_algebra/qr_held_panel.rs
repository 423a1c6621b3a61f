//! The kernel that turns a few columns into a triangle by Householder reflections, all of which its
//! invocations hold in registers.
//!
//! A workgroup takes a matrix, an invocation every so many of its rows; memory is read once and
//! written once. A column's products with all others, in one sum over the workgroup, give what it
//! makes of those to its right, and with those to its left the matrix T of the compact WY form.
//! Columns are scaled where the sum of their squares may lack small numbers or be too large, by a
//! power of two.

use crate::context::Context;
use crate::linear_algebra::element::{Element, ElementVar, OutputElements, SharedElements};
use crate::linear_algebra::held_panel::{Row, Search, Shape};
use crate::linear_algebra::matrices::{self, MatrixStrides};
use crate::primitives::kernel::KernelSpec;
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::{Builder, DType, ScalarType, Value, math};

/// Sums of parts of the rows, of each column, before the last sum: at most so many.
const PARTS: u32 = 32;

/// Everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HeldPanel {
    /// Of the matrices.
    pub dtype: DType,
    /// Type of offsets.
    pub index: ScalarType,
    /// What a workgroup holds.
    pub shape: Shape,
    /// Invocations that leave their sums in shared memory at once, a power of two; the others add
    /// to them in turns.
    pub together: u32,
    /// The reflections are written a second time, fit to be applied.
    pub applied: bool,
}

impl HeldPanel {
    /// For panels of so many rows on the call's adapter, to be applied; none where so many are not
    /// held.
    pub fn here(cx: &Context, dtype: DType, index: ScalarType, rows: i64) -> Option<HeldPanel> {
        let shape = Shape::here(cx, dtype, rows)?;
        let room = cx.device.info().capabilities.max_shared_memory;
        Some(HeldPanel { dtype, index, shape, together: together(dtype, &shape, room), applied: true })
    }

    /// Sums of each column before the last one.
    fn parts(&self) -> u32 {
        (self.shape.threads / self.shape.columns).clamp(1, PARTS).min(self.together)
    }
}

/// How many invocations' sums go into shared memory of so many bytes, of which up to 16 KiB are for
/// other things.
fn together(dtype: DType, shape: &Shape, room: u32) -> u32 {
    let bytes = match room >> 10 {
        48.. => 32 << 10,
        32.. => 16 << 10,
        _ => 2 << 10,
    };
    (bytes / dtype.bytes() as u32 / shape.columns).min(shape.threads)
}

parameters! {
    pub HeldPanel as s => HeldPanelArguments, HeldPanelParameters {
        /// The panel, from the diagonal down.
        a: OutputElements = s.dtype,
        /// The factors of the reflections `I - tau v v^H`; their adjoints make the triangle, whose
        /// diagonal is real.
        tau: OutputElements = s.dtype,
        /// The vectors with ones on the diagonal and zeros above; and T. Neither is touched unless
        /// they are to be applied.
        v: OutputElements = s.dtype,
        t: OutputElements = s.dtype,
        strides: MatrixStrides = s.index,
        v_strides: MatrixStrides = s.index,
        t_strides: MatrixStrides = s.index,
        batch: U32,
        /// Not fewer than columns.
        rows: U32,
        columns: U32,
        /// The first reflection's place in `tau`, and the reflections of a whole matrix.
        first: U32,
        tau_apart: U32,
        /// Rows of `v` before the panel's, at most 32, which become zeros.
        above: U32,
    }
}

/// A power of two near `largest`, and its reciprocal: 1 and 1 where that is not finite.
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

/// The sum of at least one element, in pairs of pairs, which rounds less than one after another.
fn sum_of(mut all: Vec<Element<'_>>) -> Element<'_> {
    while all.len() > 1 {
        all = all.chunks(2).map(|pair| pair[1..].iter().fold(pair[0], |x, &y| x + y)).collect();
    }
    all[0]
}

impl KernelSpec for HeldPanel {
    fn name(&self) -> &'static str {
        "qr_held_panel"
    }

    fn workgroup(&self) -> [u32; 3] {
        [self.shape.threads, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: HeldPanelParameters<'b>) {
        let (dtype, compute, Shape { threads, columns, .. }) = (self.dtype, self.dtype.compute(), self.shape);
        let (together, parts) = (self.together, self.parts());
        let (matrix, _) = matrices::own_tile(b, p.batch, b.u32(1));
        let local = b.local_id(0);
        let nothing = Element::constant(b, dtype, 0.0);
        let shared = |len| SharedElements::shared(b, dtype, len);
        let search = Search::new(b, compute, threads);
        let (sums, partial, totals) = (shared(together * columns), shared(parts * columns), shared(columns));
        // The row on the diagonal, what each column's product is, a column of V^H V, and T by
        // columns.
        let (top, along, inner, t) = (shared(columns), shared(columns), shared(columns), shared(columns * columns));
        // What the vector is divided by, the element on the diagonal, the reflection's factor.
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
        let one = b.float(compute, 1.0);
        let (low, high) = if compute == ScalarType::F64 {
            (2f64.powi(-800), 2f64.powi(600))
        } else {
            (2f64.powi(-80), 2f64.powi(60))
        };
        // Whether a row is below the diagonal: those that an invocation has beside its first always
        // are.
        let below = |i: usize, row: &Row<'b>, j: Value<'b>| (i == 0).then(|| row.place.get().gt(j));
        b.for_(0, p.columns, 1, |j| {
            b.if_(local.eq(j), || {
                for (k, held) in rows[0].held.iter().enumerate() {
                    top.store(k as u32, held.get());
                }
            });
            let scale = [b.var(one), b.var(one)];
            let tries = b.var(b.u32(0));
            b.while_(
                || tries.get().lt(2),
                || {
                    let factor = scale[1].get();
                    // The products of the column below the diagonal with itself and with all
                    // others.
                    for turn in 0..threads / together {
                        let place = local & (together - 1);
                        b.if_((local >> together.ilog2()).eq(turn), || {
                            for k in 0..columns {
                                let sum = ElementVar::var(b, nothing);
                                for (i, row) in rows.iter().enumerate() {
                                    let own = row.held[0].get().times(factor);
                                    let other = if k == 0 { own } else { row.held[k as usize].get() };
                                    let before = if i == 0 { nothing } else { sum.get() };
                                    let with = before.plus_product(own.conjugate(), other);
                                    sum.set(
                                        below(i, row, j).map_or(with, |below| Element::select(below, with, nothing)),
                                    );
                                }
                                let at = place + k * together;
                                let before = (turn > 0).then(|| sums.load(at));
                                sums.store(at, before.map_or(sum.get(), |before| before + sum.get()));
                            }
                        });
                        b.barrier();
                    }
                    b.for_(local, b.u32(parts * columns), threads, |task| {
                        let (k, part) = (task / parts, task & (parts - 1));
                        let all = (0..together / parts).map(|e| sums.load(k * together + part + e * parts));
                        let all: Vec<Element> = all.collect();
                        partial.store(part * columns + k, sum_of(all));
                    });
                    b.barrier();
                    b.if_(local.lt(columns), || {
                        let all: Vec<Element> = (0..parts).map(|part| partial.load(local + part * columns)).collect();
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
                                let size = row.held[0].get().size();
                                if i == 0 { row.place.get().ge(j).select(size, size.like(0.0)) } else { size }
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
            // Nothing is below the diagonal, which is real: no reflection.
            let flat = square.is_zero();
            let flat = top.load(0).imaginary().map_or(flat, |im| flat & im.is_zero());
            b.if_(local.lt(columns), || {
                let alpha = top.load(0).times(inverse);
                let norm = math::sqrt(alpha.square() + square);
                let beta = alpha.real().is_below_zero().select(norm, -norm);
                let safe = flat.select(one, beta);
                let tau = Element::select(flat, nothing, (alpha.alike(beta) - alpha).over(safe));
                let apart = Element::select(flat, nothing.like(1.0), alpha - alpha.alike(beta));
                let (own, sum) = (top.load(local), totals.load(local));
                along.store(local, tau.conjugate() * (own + sum / apart.conjugate()));
                // Columns that are done are the last ones.
                let left = b.u32(columns) - j;
                b.if_(local.ge(left), || inner.store(local - left, own.conjugate() + sum.conjugate() / apart));
                b.if_(local.eq(0), || {
                    told.store(divisor_at, apart);
                    told.store(diagonal_at, alpha.alike(beta * scaled));
                    told.store(tau_at, tau);
                    let own = matrix.cast(self.index) * p.tau_apart.cast(self.index);
                    p.tau.store(own + (p.first + j).cast(self.index), tau);
                });
            });
            b.barrier();
            if self.applied {
                // Row by row of T: none depends on another.
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
                let first = row.held[0].get();
                let from_diagonal = if i == 0 { row.place.get().ge(j) } else { b.bool(true) };
                b.if_else(
                    row.exists & from_diagonal & !flat,
                    || {
                        // No product with a reciprocal, whose rounding would be that of all of the
                        // vector.
                        let vector = first.times(inverse) / told.load(divisor_at);
                        let (factor, kept) = match below(i, row, j) {
                            Some(below) => (
                                Element::select(below, vector, vector.like(1.0)),
                                Element::select(below, vector, told.load(diagonal_at)),
                            ),
                            None => (vector, vector),
                        };
                        for k in 1..columns {
                            let next = row.held[k as usize].get();
                            // What is done comes behind the `columns - j` that are not.
                            let updated = next.minus_product(factor, along.load(k));
                            let next = Element::select((j + k).lt(columns), updated, next);
                            row.held[k as usize - 1].set(next);
                        }
                        row.held[columns as usize - 1].set(kept);
                    },
                    || row.turn(first),
                );
            }
        });
        Row::turn_back(b, &rows, p.columns);
        for (i, row) in rows.iter().enumerate() {
            b.if_(row.exists, || {
                for (column, held) in row.held.iter().enumerate() {
                    let column = b.u32(column as u32);
                    let at = row.place.get();
                    b.if_(column.lt(p.columns), || {
                        p.a.store(p.strides.at(matrix, at, column), held.get());
                        if self.applied {
                            let vector = match i {
                                0 => {
                                    let upper = Element::select(at.eq(column), nothing.like(1.0), nothing);
                                    Element::select(at.gt(column), held.get(), upper)
                                }
                                _ => held.get(),
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
            accepted(&HeldPanel { dtype, index, shape, together: together(dtype, &shape, room), applied }.build());
        }
    }

    #[test]
    fn shared_memory_suffices() {
        for dtype in [DType::F32, DType::F64, DType::C64, DType::C128] {
            for room in [16 << 10, 32 << 10, 48 << 10] {
                for rows in [20, 200, 1000, 2000, 4000, 8000] {
                    let Some(shape) = Shape::of(dtype, rows, 1024) else { continue };
                    let spec = HeldPanel {
                        dtype,
                        index: ScalarType::U32,
                        shape,
                        together: together(dtype, &shape, room),
                        applied: true,
                    };
                    let bytes = |array: &SharedInfo| array.len * array.ty.scalar.bytes();
                    let needed: u32 = spec.build().shared.iter().map(bytes).sum();
                    assert!(needed <= room, "{dtype:?}, {rows}: {needed} of {room}");
                }
            }
        }
    }
}
