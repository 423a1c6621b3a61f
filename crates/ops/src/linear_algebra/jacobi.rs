//! Kernels of Jacobi's method: rounds of disjoint pairs, a rotation of two-sided ones, and what is left off the diagonal.

use super::element::{Element, ElementVar, InputElements, OutputElements};
use super::matrices::{self, MatrixStrides};
use super::workgroup_sums::{Joined, THREADS, larger};
use crate::primitives::kernel::{KernelSpec, Output};
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value, math};

/// Pairs of a round of `n` columns; with an odd number of columns one has none to pair with.
pub fn pairs(n: i64) -> i64 {
    (n + 1) / 2
}

/// Rounds in which every pair of `n` columns meets once.
pub fn rounds(n: i64) -> i64 {
    2 * pairs(n) - 1
}

/// Pair `i` of a round, smaller index first, as a round-robin tournament has it: the last player stays, the others move on. The larger index may
/// be `n`, which is no column.
pub fn pair<'b>(n: Value<'b>, round: Value<'b>, i: Value<'b>) -> (Value<'b>, Value<'b>) {
    let others = ((n + 1) / 2) * 2 - 1;
    let x = (round + i) % others;
    let y = (round + others - i) % others;
    let y = i.eq(0).select(others, y);
    (x.min(y), x.max(y))
}

/// A rotation `[[c, s], [-s, c]]`, from the right; with a phase `w`, `[[c, s w^*], [-s w, c]]`.
#[derive(Copy, Clone)]
pub struct Rotation<'b> {
    /// `s`
    pub sine: Value<'b>,
    /// `s / (1 + c)`: with it a small rotation adds something small, whose rounding is small too, and lengths stay what they are.
    pub half_tangent: Value<'b>,
    /// `s / c`
    pub tangent: Value<'b>,
}

impl<'b> Rotation<'b> {
    /// What makes the columns of a symmetric matrix `[[p, r], [r, q]]` orthogonal.
    pub fn of(p: Value<'b>, q: Value<'b>, r: Value<'b>) -> Rotation<'b> {
        let (zero, one) = (p.like(0.0), p.like(1.0));
        let none = r.is_zero();
        let theta = (q - p) / none.select(one, r + r);
        let size = theta.abs();
        // Beyond the square root of the largest number the square is not needed.
        let root = math::sqrt(theta * theta + 1.0);
        let tangent = one / (size + root.is_inf().select(size, root));
        let tangent = none.select(zero, theta.is_below_zero().select(-tangent, tangent));
        let cosine = one / math::sqrt(tangent * tangent + 1.0);
        let sine = tangent * cosine;
        Rotation { sine, half_tangent: sine / (cosine + 1.0), tangent }
    }

    /// Two elements of a row, of the two columns; `phase` is that of the element of the matrix that becomes 0.
    pub fn turn(&self, phase: Phase<'b>, left: Element<'b>, right: Element<'b>) -> (Element<'b>, Element<'b>) {
        turned((self.sine, self.half_tangent), phase, left, right)
    }
}

/// Two elements of a row, turned by the rotation of this sine and half tangent.
pub fn turned<'b>(
    (sine, half): (Value<'b>, Value<'b>),
    phase: Phase<'b>,
    x: Element<'b>,
    y: Element<'b>,
) -> (Element<'b>, Element<'b>) {
    let (over_x, over_y) = (phase.of(y), phase.conjugate().of(x));
    (x - (over_x + x.times(half)).times(sine), y + (over_y - y.times(half)).times(sine))
}

/// A number of length one; that of real matrices is 1, their signs being in the rotation.
#[derive(Copy, Clone)]
pub struct Phase<'b>(pub Option<Element<'b>>);

impl<'b> Phase<'b> {
    /// A number taken apart into a phase and a real number. That of a complex number is its absolute value.
    pub fn apart(number: Element<'b>) -> (Phase<'b>, Value<'b>) {
        match number {
            Element::Real(x) => (Phase(None), x),
            Element::Complex(_) => {
                let size = number.abs();
                let divisor = size.is_zero().select(size.like(1.0), size);
                (Phase(Some(number.over(divisor))), size)
            }
        }
    }

    /// Times another number.
    pub fn of(self, number: Element<'b>) -> Element<'b> {
        self.0.map_or(number, |phase| phase * number)
    }

    /// Its conjugate.
    pub fn conjugate(self) -> Phase<'b> {
        Phase(self.0.map(Element::conjugate))
    }
}

/// The element `(i, j)` of a symmetric or Hermitian matrix, of the one that the lower triangle has for it; or the other way round.
pub fn mirrored<'b>(i: Value<'b>, j: Value<'b>, element: Element<'b>) -> Element<'b> {
    match element {
        Element::Real(_) => element,
        Element::Complex(_) => Element::select(i.lt(j), element.conjugate(), element),
    }
}

/// A round of two-sided rotations of symmetric or Hermitian matrices, of which the lower triangle counts. An invocation takes the four elements where two pairs
/// cross, or two of a row of the basis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Round {
    /// Of the matrices.
    pub dtype: DType,
    /// Type of offsets.
    pub index: ScalarType,
}

parameters! {
    pub Round as s => RoundArguments, RoundParameters {
        a: InputElements = s.dtype,
        basis: InputElements = s.dtype,
        next_a: OutputElements = s.dtype,
        next_basis: OutputElements = s.dtype,
        /// Of all four.
        strides: MatrixStrides = s.index,
        batch: U32,
        n: U32,
        round: U32,
    }
}

impl KernelSpec for Round {
    fn name(&self) -> &'static str {
        "jacobi_round"
    }

    fn write<'b>(&self, b: &'b Builder, p: RoundParameters<'b>) {
        let id = linear_id(b, self.index);
        let pairs = (p.n + 1) / 2;
        let line = id / pairs.cast(self.index);
        let column = (id - line * pairs.cast(self.index)).cast(ScalarType::U32);
        let lines = pairs + p.n;
        let matrix = (line / lines.cast(self.index)).cast(ScalarType::U32);
        let row = (line % lines.cast(self.index)).cast(ScalarType::U32);
        let at = |row: Value<'b>, column: Value<'b>| p.strides.at(matrix, row.max(column), row.min(column));
        let rotation_of = |(x, y): (Value<'b>, Value<'b>)| {
            let last = p.n - 1;
            let [r, q] = [(y, x), (y, y)].map(|(i, j)| p.a.load(at(i.min(last), j.min(last))));
            let (phase, r) = Phase::apart(r);
            let rotation = Rotation::of(p.a.load(at(x, x)).real(), q.real(), y.lt(p.n).select(r, r.like(0.0)));
            (rotation, phase, r)
        };
        b.if_(matrix.lt(p.batch) & row.ge(pairs), || {
            let (x, y) = pair(p.n, p.round, column);
            let (rotation, phase, _) = rotation_of((x, y));
            let row = row - pairs;
            let at = |column| p.strides.at(matrix, row, column);
            let left = p.basis.load(at(x));
            b.if_else(
                y.lt(p.n),
                || {
                    let right = p.basis.load(at(y));
                    let (left, right) = rotation.turn(phase, left, right);
                    p.next_basis.store(at(x), left);
                    p.next_basis.store(at(y), right);
                },
                || p.next_basis.store(at(x), left),
            );
        });
        b.if_(matrix.lt(p.batch) & row.eq(column), || {
            let (x, y) = pair(p.n, p.round, column);
            let (Rotation { tangent, .. }, _, r) = rotation_of((x, y));
            let real = |x: Value<'b>| Element::of_real(self.dtype, x);
            let on_diagonal = |x: Value<'b>| p.a.load(at(x, x)).real();
            p.next_a.store(at(x, x), real(on_diagonal(x) - y.lt(p.n).select(tangent * r, r.like(0.0))));
            b.if_(y.lt(p.n), || {
                p.next_a.store(at(y, y), real(on_diagonal(y) + tangent * r));
                p.next_a.store(at(y, x), real(r.like(0.0)));
            });
        });
        b.if_(matrix.lt(p.batch) & row.lt(column), || {
            let [rows, columns] = [row, column].map(|i| pair(p.n, p.round, i));
            let [(of_rows, row_phase, _), (of_columns, phase, _)] = [rows, columns].map(rotation_of);
            let inside = |i: Value<'b>, j: Value<'b>| i.lt(p.n) & j.lt(p.n);
            let element = |i: Value<'b>, j: Value<'b>| {
                let value = ElementVar::var(b, Element::constant(b, self.dtype, 0.0));
                b.if_(inside(i, j), || value.set(mirrored(i, j, p.a.load(at(i, j)))));
                value.get()
            };
            let [xx, xy] = [columns.0, columns.1].map(|j| element(rows.0, j));
            let [yx, yy] = [columns.0, columns.1].map(|j| element(rows.1, j));
            let of_column = |x, y| of_columns.turn(phase, x, y);
            let of_row = |x, y| of_rows.turn(row_phase.conjugate(), x, y);
            let ((xx, xy), (yx, yy)) = (of_column(xx, xy), of_column(yx, yy));
            let ((xx, yx), (xy, yy)) = (of_row(xx, yx), of_row(xy, yy));
            for (i, j, value) in
                [(rows.0, columns.0, xx), (rows.0, columns.1, xy), (rows.1, columns.0, yx), (rows.1, columns.1, yy)]
            {
                b.if_(inside(i, j), || p.next_a.store(at(i, j), mirrored(i, j, value)));
            }
        });
    }
}

/// Tells whether something that counts is left off the diagonal of a matrix, or none of it is finite. A workgroup takes a matrix.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Remainder {
    /// Of the matrices.
    pub dtype: DType,
    /// Type of offsets.
    pub index: ScalarType,
}

parameters! {
    pub Remainder as s => RemainderArguments, RemainderParameters {
        a: InputElements = s.dtype,
        /// Becomes 1.
        left: Output = DType::I32,
        strides: MatrixStrides = s.index,
        batch: U32,
        n: U32,
    }
}

impl KernelSpec for Remainder {
    fn name(&self) -> &'static str {
        "jacobi_remainder"
    }

    fn workgroup(&self) -> [u32; 3] {
        [THREADS, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: RemainderParameters<'b>) {
        let compute = self.dtype.compute();
        let (matrix, _) = matrices::own_tile(b, p.batch, b.u32(1));
        let local = b.local_id(0);
        let joined = Joined::new(b, compute, 2);
        let [on, off] = [(); 2].map(|()| b.var(b.float(compute, 0.0)));
        b.for_(local, p.n, THREADS, |row| {
            b.for_(0, row + 1, 1, |column| {
                let size = p.a.load(p.strides.at(matrix, row, column)).size();
                let largest = |v: dml_kernel::Var<'b>| v.set(larger(v.get(), size));
                b.if_else(row.eq(column), || largest(on), || largest(off));
            });
        });
        joined.join(&[on, off], larger);
        let (on, off) = (joined.result(0), joined.result(1));
        let epsilon = if compute == ScalarType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let bound = on * (epsilon / 8.0);
        b.if_(local.eq(0) & !off.le(bound), || p.left.store(0, 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in [
            (DType::F32, ScalarType::U32),
            (DType::F64, ScalarType::U64),
            (DType::C64, ScalarType::U64),
            (DType::C128, ScalarType::U32),
        ] {
            accepted(&Round { dtype, index }.build());
            accepted(&Remainder { dtype, index }.build());
        }
    }
}
