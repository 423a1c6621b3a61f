//! Operands that a product rounds to 16 bits on load: to which dtype, and the cost.

use crate::matmul::matrix_unit_tile::MatrixTile;
use dml_kernel::DType;

/// Maximum number of words of operands that an invocation prefetches to registers: as many as in
/// the largest tile of 16-bit operands, which leaves no register. An element that is rounded after
/// it is fetched is a word.
const MAX_PREFETCHED_WORDS: u32 = 64;

/// How operands are rounded on load.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Rounding {
    /// The dtype to which each operand is rounded, if it is.
    pub operands: [Option<DType>; 2],
    /// The adapter itself converts to f16 (`Capabilities::converts_halves`).
    pub own: bool,
}

impl Rounding {
    /// No operand is rounded.
    pub const NONE: Rounding = Rounding { operands: [None; 2], own: false };

    /// Whether no operand is rounded.
    pub fn is_none(&self) -> bool {
        self.operands == [None; 2]
    }

    /// Cost model: what loading an element as float32 and rounding it to a dtype costs, in
    /// multiplications of float32. On an H100, twice the bytes and the registers cost more than the
    /// conversion, which is half an instruction (docs/notebook/2026-11.md). A conversion by integer
    /// operations is 16 operations or 6, of which a unit does half as many a cycle.
    fn cost(&self, dtype: DType) -> f64 {
        match dtype {
            DType::BF16 => 18.0,
            _ if self.own => 8.0,
            _ => 38.0,
        }
    }

    /// Whether the elements that a tile prefetches fit into registers.
    pub fn fits(&self, tile: &MatrixTile) -> bool {
        if self.is_none() {
            return true;
        }
        let [a, b] = self.operands.map(|dtype| if dtype.is_some() { 4 } else { tile.bytes });
        (tile.m * a + tile.n * b) * tile.k / 4 <= MAX_PREFETCHED_WORDS * tile.threads()
    }

    /// The rate of a tile of `m` rows and `n` columns when it rounds operands on load.
    pub fn rate_with_rounding(&self, rate: f64, [m, n]: [u32; 2]) -> f64 {
        // Each step along k is m * n multiplications.
        let [a, b] = self.operands.map(|dtype| dtype.map_or(0.0, |dtype| self.cost(dtype)));
        1.0 / (1.0 / rate + a / f64::from(n) + b / f64::from(m))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matmul::matrix_unit_select;
    use crate::matmul::matrix_unit_tile::Units;

    const F16: Option<DType> = Some(DType::F16);
    const BF16: Option<DType> = Some(DType::BF16);

    #[test]
    fn short_steps_fit_and_long_ones_of_a_large_tile_do_not() {
        let of = |operands| Rounding { operands, own: true };
        let units = Units { shape: [16; 3], lanes: 32, emulated: false, small: false, bytes: 2, transposes: false };
        for (tile, _) in matrix_unit_select::tiles(units) {
            assert!(tile.k > 32 || of([F16, F16]).fits(&tile), "{tile}");
        }
        let large = MatrixTile::parse("128x128x64/64x64", units).expect("a tile");
        assert!(!of([F16, None]).fits(&large) && !of([None, F16]).fits(&large));
    }

    #[test]
    fn the_rate_falls_with_what_is_rounded() {
        let of = |operands, own| Rounding { operands, own }.rate_with_rounding(5.7, [128, 256]);
        assert!((of([None; 2], false) - 5.7).abs() < 1e-9);
        assert!(of([BF16, None], false) < 5.7 && of([F16, None], false) < of([BF16, None], false));
        assert!(of([F16, None], true) > of([BF16, None], false));
        // The right operand has fewer elements in a tile than the left one.
        assert!(of([None, F16], false) < of([F16, None], false) && of([F16, F16], false) < of([None, F16], false));
    }
}
