//! What Jacobi's methods share: rounds of disjoint pairs, and the rotation of a pair.

use crate::linear_algebra::element::Element;
use dml_kernel::{Value, math};

/// Pairs of a round of `n` columns; with an odd number of columns one has none to pair with.
pub fn pairs(n: i64) -> i64 {
    (n + 1) / 2
}

/// Rounds in which every pair of `n` columns meets once.
pub fn rounds(n: i64) -> i64 {
    2 * pairs(n) - 1
}

/// Pair `i` of a round, smaller index first, as a round-robin tournament has it: the last player
/// stays, the others move on. The larger index may be `n`, which is no column.
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
    /// `s / (1 + c)`: with it a small rotation adds something small, whose rounding is small too,
    /// and lengths stay what they are.
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
    /// A number taken apart into a phase and a real number. That of a complex number is its
    /// absolute value.
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

/// The element `(i, j)` of a symmetric or Hermitian matrix, of the one that the lower triangle has
/// for it; or the other way round.
pub fn mirrored<'b>(i: Value<'b>, j: Value<'b>, element: Element<'b>) -> Element<'b> {
    match element {
        Element::Real(_) => element,
        Element::Complex(_) => Element::select(i.lt(j), element.conjugate(), element),
    }
}
