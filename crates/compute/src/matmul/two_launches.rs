//! Products in two launches: whole waves of workgroups, and the remaining rows.
//!
//! If a product has a few more tiles than run at the same time, most units are idle during the last
//! wave. So the rows that fill all units a whole number of times are one launch, and for the other
//! rows k is divided until they fill the units too. Both launches are independent and run
//! concurrently. (The idea, with another way to divide the rest, is that of Osama and others,
//! "Stream-K: work-centric parallel decomposition for dense matrix-matrix multiplication on the
//! GPU", PPoPP 2023.)

use crate::matmul::select::{self, Choice, CostInputs, Limits};
use crate::matmul::tile::Tile;

/// How a product is computed in two launches.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Waves<T = Tile> {
    /// The tile of the first launch, whose k is undivided.
    pub first: T,
    /// Rows of the first launch.
    pub rows: i64,
    /// The second launch, for the other rows.
    pub rest: Choice<T>,
}

/// Maximum number of waves: with more, the last wave is a small part of the time.
const MAX_WAVES: f64 = 8.0;

/// The two launches with the least estimated time, and that time, for `size = [batch, m, n, k]`.
/// `tiles` are the candidates for the first launch, with their work and rates; `in_one` chooses the
/// second launch. `None` for a batch, if there is not a whole wave, or if no rows remain.
pub fn choose<T>(
    limits: &Limits,
    size: [i64; 4],
    tiles: impl Iterator<Item = (T, CostInputs, f64)>,
    in_one: impl Fn([i64; 4]) -> Option<(f64, Choice<T>)>,
) -> Option<(f64, Waves<T>)> {
    let [batch, m, n, k] = size;
    if limits.software || batch != 1 {
        return None;
    }
    let in_tile = |(tile, work, rate): (T, CostInputs, f64)| {
        let [tile_m, tile_n, _] = work.size;
        let [down, across] = [(m, tile_m), (n, tile_n)].map(|(size, of)| (size as u64).div_ceil(of.into()) as f64);
        let wave = (limits.compute_units * select::resident(work)).floor();
        let waves = (down * across / wave).floor();
        let rows = (waves * wave / across).floor() as i64 * i64::from(tile_m);
        if !(1.0..=MAX_WAVES).contains(&waves) || rows == 0 || rows >= m {
            return None;
        }
        let first = select::estimate(limits, work, rate, [1, rows, n, k], 1);
        let (rest_time, rest) = in_one([1, m - rows, n, k])?;
        Some((first + rest_time, Waves { first: tile, rows, rest }))
    };
    tiles.filter_map(in_tile).min_by(|x, y| x.0.total_cmp(&y.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::matmul::matrix_unit_select;
    use crate::matmul::matrix_unit_tile::{MatrixTile, Units};
    use crate::matmul::rounding::Rounding;

    const H100: Limits = Limits { compute_units: 132.0, ..Limits::LARGE_GPU };

    fn plain(limits: &Limits, size: [i64; 4]) -> Option<(f64, Waves)> {
        let in_one = |size| Some(select::choose(limits, size, 4, false));
        choose(limits, size, select::entries(limits, 4, false), in_one)
    }

    fn on_units(limits: &Limits, size: [i64; 4]) -> Option<(f64, Waves<MatrixTile>)> {
        choose(limits, size, matrix_unit_select::entries(limits, UNITS, true, Rounding::NONE), |size| {
            matrix_unit_select::choose(limits, UNITS, size, true)
        })
    }

    const UNITS: Units =
        Units { shape: [16, 16, 16], lanes: 32, emulated: false, small: false, bytes: 2, transposes: false };

    #[test]
    fn a_few_tiles_more_than_units_are_a_rest() {
        let size = [1, 6304, 768, 3072];
        let (time, waves) = plain(&H100, size).expect("it is one wave and a rest");
        let (whole, _) = select::choose(&H100, size, 4, false);
        assert!(time < 0.95 * whole && waves.rest.split_k > 1, "{waves:?} {time} {whole}");
        assert!(waves.rows % i64::from(waves.first.m) == 0 && (1..6304).contains(&waves.rows));
        let (time, waves) = on_units(&H100, size).expect("it is one wave and a rest");
        let (whole, _) = matrix_unit_select::choose(&H100, UNITS, size, true).expect("units");
        assert!(time < 0.95 * whole && waves.rest.split_k > 1, "{waves:?} {time} {whole}");
        assert!(waves.rows % i64::from(waves.first.m) == 0 && (1..6304).contains(&waves.rows));
    }

    #[test]
    fn nothing_is_cut_that_has_no_whole_wave_or_no_rest() {
        for size in [[1, 64, 64, 4096], [1, 512, 512, 512], [2, 6304, 768, 3072]] {
            assert!(plain(&H100, size).is_none() && on_units(&H100, size).is_none(), "{size:?}");
        }
        let software = Limits { software: true, ..H100 };
        assert!(
            plain(&software, [1, 6304, 768, 3072]).is_none() && on_units(&software, [1, 6304, 768, 3072]).is_none()
        );
    }
}
