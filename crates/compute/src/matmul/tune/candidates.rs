//! The algorithms of a product that are worth measuring.

use crate::matmul::choice::{Algorithm, ChoiceKey};
use crate::matmul::matrix_unit_select::{self, MatrixChoice};
use crate::matmul::order::Order;
use crate::matmul::select::{self, Choice};
use crate::matmul::two_launches::Waves;
use dml_environment::Autotune;
use smallvec::{SmallVec, smallvec};

/// Algorithms for one product; the first one is the estimate's choice.
pub type Candidates = SmallVec<[Algorithm; 4]>;

/// Maximum number of candidates.
const MAX_CANDIDATES: usize = 4;

/// Algorithms whose estimated time is more than this factor above the least are not measured.
const CANDIDATE_FACTOR: f64 = 1.5;

/// The algorithms to measure, the chosen one first: those whose estimated time is close to the
/// least and that give the same bits; with [`Autotune::All`] also those with other bits.
pub fn candidates(choice_key: &ChoiceKey, chosen: Algorithm, mode: Autotune) -> Candidates {
    let ChoiceKey { limits, matrix_units, form, size, bytes, prefers_long_steps, b_along_k, by_rows: _, rounding } =
        *choice_key;
    let k = size[3];
    let Some(order) = Order::of_algorithm(chosen, k) else { return smallvec![chosen] };
    let plain = select::candidates_with_times(&limits, size, bytes, b_along_k)
        .map(|(time, tile, split_k)| (time, Algorithm::Plain(Choice { tile, split_k })));
    let on_units = matrix_units.filter(|_| form.is_none()).into_iter().flat_map(|matrix_units| {
        matrix_unit_select::candidates_with_times(&limits, matrix_units, size, prefers_long_steps, rounding)
            .map(|(time, tile, split_k)| (time, Algorithm::Matrix(MatrixChoice { tile, split_k })))
    });
    let mut all: Vec<(f64, Algorithm)> = plain
        .chain(on_units)
        .filter(|&(_, algorithm)| mode == Autotune::All || Order::of_algorithm(algorithm, k) == Some(order))
        .collect();
    all.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let least = all.first().map_or(0.0, |(time, _)| *time);
    let others = all
        .into_iter()
        .filter(|&(time, algorithm)| algorithm != chosen && time <= CANDIDATE_FACTOR * least)
        .map(|(_, algorithm)| algorithm);
    std::iter::once(chosen).chain(others.take(MAX_CANDIDATES - 1)).collect()
}

/// An algorithm's name in records on disk.
pub fn text(algorithm: Algorithm) -> String {
    match algorithm {
        Algorithm::Plain(Choice { tile, split_k }) => format!("{tile} in {split_k}"),
        Algorithm::Matrix(MatrixChoice { tile, split_k }) => format!("m{tile} in {split_k}"),
        Algorithm::TwoLaunches(Waves { first, rows, rest }) => {
            format!("{rows} rows {first}, others {} in {}", rest.tile, rest.split_k)
        }
        Algorithm::MatrixTwoLaunches(Waves { first, rows, rest }) => {
            format!("{rows} rows m{first}, others m{} in {}", rest.tile, rest.split_k)
        }
        Algorithm::SplitFloat(choice) => format!("halves {} {}", choice.tile, choice.fallback_tile),
        Algorithm::RoundedFloat(MatrixChoice { tile, split_k }) => format!("rounded {tile} in {split_k}"),
    }
}

/// The algorithm of a record, if it is one of `algorithms`.
pub fn of_text(algorithms: &Candidates, noted: &str) -> Option<Algorithm> {
    algorithms.iter().copied().find(|&algorithm| text(algorithm) == noted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matmul::choice::choose;
    use crate::matmul::matrix_unit_tile::Units;
    use crate::matmul::rounding::Rounding;
    use crate::matmul::select::Limits;

    const UNITS: Units =
        Units { shape: [16, 16, 16], lanes: 32, emulated: false, small: false, bytes: 2, transposes: false };
    const LIMITS: Limits = Limits::LARGE_GPU;

    fn choice_key(size: [i64; 4], matrix_units: Option<Units>) -> ChoiceKey {
        ChoiceKey {
            limits: LIMITS,
            matrix_units,
            form: None,
            size,
            bytes: 4,
            prefers_long_steps: true,
            b_along_k: false,
            by_rows: false,
            rounding: Rounding::NONE,
        }
    }

    const SIZES: [[i64; 4]; 6] = [
        [1, 4096, 4096, 4096],
        [1, 1000, 2000, 700],
        [96, 512, 512, 64],
        [1, 64, 64, 65_536],
        [1, 100, 768, 3072],
        [3, 33, 50_257, 768],
    ];

    #[test]
    fn candidates_are_different_few_and_of_one_order() {
        let mut tuned = 0;
        for size in SIZES {
            for matrix_units in [None, Some(UNITS)] {
                let choice_key = choice_key(size, matrix_units);
                let chosen = choose(choice_key);
                let algorithms = candidates(&choice_key, chosen, Autotune::On);
                assert_eq!(algorithms[0], chosen);
                assert!(algorithms.len() <= MAX_CANDIDATES);
                for (i, &algorithm) in algorithms.iter().enumerate() {
                    assert!(!algorithms[..i].contains(&algorithm));
                    assert_eq!(
                        Order::of_algorithm(algorithm, size[3]),
                        Order::of_algorithm(chosen, size[3]),
                        "{size:?}: {algorithm:?}"
                    );
                }
                tuned += usize::from(algorithms.len() > 1);
            }
        }
        assert!(tuned >= SIZES.len(), "{tuned} of {} have something to try", 2 * SIZES.len());
    }

    #[test]
    fn all_orders_are_more() {
        let differ = |size: [i64; 4]| {
            let choice_key = choice_key(size, Some(UNITS));
            let algorithms = candidates(&choice_key, choose(choice_key), Autotune::All);
            algorithms.iter().any(|&algorithm| {
                Order::of_algorithm(algorithm, size[3]) != Order::of_algorithm(algorithms[0], size[3])
            })
        };
        assert!(SIZES.into_iter().any(differ));
    }

    #[test]
    fn notes_are_read_back_and_others_ignored() {
        for size in SIZES {
            let choice_key = choice_key(size, Some(UNITS));
            let algorithms = candidates(&choice_key, choose(choice_key), Autotune::All);
            for &algorithm in &algorithms {
                assert_eq!(of_text(&algorithms, &text(algorithm)), Some(algorithm));
                assert!(text(algorithm).len() <= 120);
            }
            for foreign in ["", "right", "128x256x16/8x8/8x4/s2/k8/u in 7", "m1x1x1/1x1/1x1x1 in 1"] {
                assert_eq!(of_text(&algorithms, foreign), None);
            }
        }
    }

    #[test]
    fn products_of_terms_are_left_alone() {
        let choice_key =
            ChoiceKey { form: Some(crate::matmul::split::Form::Halves), ..choice_key(SIZES[0], Some(UNITS)) };
        let chosen = choose(choice_key);
        assert!(matches!(chosen, Algorithm::SplitFloat(_)));
        assert_eq!(candidates(&choice_key, chosen, Autotune::All).as_slice(), [chosen]);
    }
}
