//! What Jacobi's methods share: rounds of disjoint pairs of columns, and the rotation of a pair.

use crate::linear_algebra::element::Element;
use dml_kernel::{Value, math};

/// Pairs of a round of `n` columns; if `n` is odd, one column has no partner.
pub fn pairs(n: i64) -> i64 {
    (n + 1) / 2
}

/// Rounds in which every pair of `n` columns meets once.
pub fn rounds(n: i64) -> i64 {
    2 * pairs(n) - 1
}

/// Pair `i` of a round, smaller index first, in the order of a round-robin tournament: the last
/// player stays, the others move on. The larger index may be `n`, which means no column.
pub fn pair<'b>(n: Value<'b>, round: Value<'b>, i: Value<'b>) -> (Value<'b>, Value<'b>) {
    let others = ((n + 1) / 2) * 2 - 1;
    let x = (round + i) % others;
    let y = (round + others - i) % others;
    let y = i.eq(0).select(others, y);
    (x.min(y), x.max(y))
}

/// A rotation `[[c, s], [-s, c]]`, applied from the right; with a phase `w`,
/// `[[c, s w^*], [-s w, c]]`.
#[derive(Copy, Clone)]
pub struct Rotation<'b> {
    /// `s`
    pub sine: Value<'b>,
    /// `s / (1 + c)`: with it a small rotation adds a small number, whose rounding error is small
    /// too, and norms are preserved.
    pub half_tangent: Value<'b>,
    /// `s / c`
    pub tangent: Value<'b>,
}

impl<'b> Rotation<'b> {
    /// The rotation that diagonalises a symmetric matrix `[[p, r], [r, q]]`.
    pub fn of(p: Value<'b>, q: Value<'b>, r: Value<'b>) -> Rotation<'b> {
        let (zero, one) = (p.like(0.0), p.like(1.0));
        let none = r.is_zero();
        let theta = (q - p) / none.select(one, r + r);
        let size = theta.abs();
        // Where the square overflows it is negligible: the root is then `size`.
        let root = math::sqrt(theta * theta + 1.0);
        let tangent = one / (size + root.is_inf().select(size, root));
        let tangent = none.select(zero, theta.is_below_zero().select(-tangent, tangent));
        let cosine = one / math::sqrt(tangent * tangent + 1.0);
        let sine = tangent * cosine;
        Rotation { sine, half_tangent: sine / (cosine + 1.0), tangent }
    }
}

/// Rotates two elements of a row, by sine and half tangent.
pub fn rotated<'b>(
    (sine, half): (Value<'b>, Value<'b>),
    phase: UnitPhase<'b>,
    x: Element<'b>,
    y: Element<'b>,
) -> (Element<'b>, Element<'b>) {
    let (over_x, over_y) = (phase.of(y), phase.conjugate().of(x));
    (x - (over_x + x.times(half)).times(sine), y + (over_y - y.times(half)).times(sine))
}

/// A complex number of absolute value one. `None` means 1: for real matrices signs are in the
/// rotation.
#[derive(Copy, Clone)]
pub struct UnitPhase<'b>(pub Option<Element<'b>>);

impl<'b> UnitPhase<'b> {
    /// Splits a number into a phase and a real number: for a complex number its absolute value, for
    /// a real number the number itself.
    pub fn split(number: Element<'b>) -> (UnitPhase<'b>, Value<'b>) {
        match number {
            Element::Real(x) => (UnitPhase(None), x),
            Element::Complex(_) => {
                let size = number.abs();
                let divisor = size.is_zero().select(size.like(1.0), size);
                (UnitPhase(Some(number.over(divisor))), size)
            }
        }
    }

    /// The phase times a number.
    pub fn of(self, number: Element<'b>) -> Element<'b> {
        self.0.map_or(number, |phase| phase * number)
    }

    /// Its conjugate.
    pub fn conjugate(self) -> UnitPhase<'b> {
        UnitPhase(self.0.map(Element::conjugate))
    }
}

/// Converts an element `(i, j)` of a symmetric or Hermitian matrix to or from the element that the
/// lower triangle stores for it.
pub fn mirrored<'b>(i: Value<'b>, j: Value<'b>, element: Element<'b>) -> Element<'b> {
    match element {
        Element::Real(_) => element,
        Element::Complex(_) => Element::select(i.lt(j), element.conjugate(), element),
    }
}
