//! Which ways of a product are worth a trial.

use crate::matmul::choice::{Question, Way};
use crate::matmul::matrix_select::{self, MatrixChoice};
use crate::matmul::order::Order;
use crate::matmul::select::{self, Choice};
use crate::matmul::waves::Waves;
use dml_environment::Autotune;
use smallvec::{SmallVec, smallvec};

/// Ways of one product, the estimate's first.
pub type Ways = SmallVec<[Way; 4]>;

/// Ways at most.
const MOST: usize = 4;

/// Ways that are estimated to take so many times as long as the best are not tried.
const NEAR: f64 = 1.5;

/// The ways to try, the chosen one first: those that are estimated to take nearly as little time
/// and give the same bits; with [`Autotune::All`] others too.
pub fn candidates(question: &Question, chosen: Way, mode: Autotune) -> Ways {
    let Question { limits, units, form, size, bytes, long_steps, b_along_k, by_rows: _, rounding } = *question;
    let k = size[3];
    let Some(order) = Order::of_way(chosen, k) else { return smallvec![chosen] };
    let plain = select::rated(&limits, size, bytes, b_along_k)
        .map(|(time, tile, split_k)| (time, Way::Plain(Choice { tile, split_k })));
    let on_units = units.filter(|_| form.is_none()).into_iter().flat_map(|units| {
        matrix_select::rated(&limits, units, size, long_steps, rounding)
            .map(|(time, tile, split_k)| (time, Way::Matrix(MatrixChoice { tile, split_k })))
    });
    let mut all: Vec<(f64, Way)> = plain
        .chain(on_units)
        .filter(|&(_, way)| mode == Autotune::All || Order::of_way(way, k) == Some(order))
        .collect();
    all.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let least = all.first().map_or(0.0, |(time, _)| *time);
    let others = all.into_iter().filter(|&(time, way)| way != chosen && time <= NEAR * least).map(|(_, way)| way);
    std::iter::once(chosen).chain(others.take(MOST - 1)).collect()
}

/// A way as a note has it.
pub fn text(way: Way) -> String {
    match way {
        Way::Plain(Choice { tile, split_k }) => format!("{tile} in {split_k}"),
        Way::Matrix(MatrixChoice { tile, split_k }) => format!("m{tile} in {split_k}"),
        Way::Waves(Waves { first, rows, rest }) => {
            format!("{rows} rows {first}, others {} in {}", rest.tile, rest.split_k)
        }
        Way::MatrixWaves(Waves { first, rows, rest }) => {
            format!("{rows} rows m{first}, others m{} in {}", rest.tile, rest.split_k)
        }
        Way::Split(choice) => format!("halves {} {}", choice.tile, choice.plain),
        Way::Rounded(MatrixChoice { tile, split_k }) => format!("rounded {tile} in {split_k}"),
    }
}

/// The way of a note, if it is one of these.
pub fn of_text(ways: &Ways, noted: &str) -> Option<Way> {
    ways.iter().copied().find(|&way| text(way) == noted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matmul::choice::choose;
    use crate::matmul::matrix_tile::Units;
    use crate::matmul::rounding::Rounding;
    use crate::matmul::select::Limits;

    const UNITS: Units = Units { shape: [16, 16, 16], lanes: 32, emulated: false, small: false, bytes: 2 };
    const LIMITS: Limits = Limits::LARGE;

    fn question(size: [i64; 4], units: Option<Units>) -> Question {
        Question {
            limits: LIMITS,
            units,
            form: None,
            size,
            bytes: 4,
            long_steps: true,
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
            for units in [None, Some(UNITS)] {
                let question = question(size, units);
                let chosen = choose(question);
                let ways = candidates(&question, chosen, Autotune::On);
                assert_eq!(ways[0], chosen);
                assert!(ways.len() <= MOST);
                for (i, &way) in ways.iter().enumerate() {
                    assert!(!ways[..i].contains(&way));
                    assert_eq!(Order::of_way(way, size[3]), Order::of_way(chosen, size[3]), "{size:?}: {way:?}");
                }
                tuned += usize::from(ways.len() > 1);
            }
        }
        assert!(tuned >= SIZES.len(), "{tuned} of {} have something to try", 2 * SIZES.len());
    }

    #[test]
    fn all_orders_are_more() {
        let differ = |size: [i64; 4]| {
            let question = question(size, Some(UNITS));
            let ways = candidates(&question, choose(question), Autotune::All);
            ways.iter().any(|&way| Order::of_way(way, size[3]) != Order::of_way(ways[0], size[3]))
        };
        assert!(SIZES.into_iter().any(differ));
    }

    #[test]
    fn notes_are_read_back_and_others_ignored() {
        for size in SIZES {
            let question = question(size, Some(UNITS));
            let ways = candidates(&question, choose(question), Autotune::All);
            for &way in &ways {
                assert_eq!(of_text(&ways, &text(way)), Some(way));
                assert!(text(way).len() <= 120);
            }
            for foreign in ["", "right", "128x256x16/8x8/8x4/s2/k8/u in 7", "m1x1x1/1x1/1x1x1 in 1"] {
                assert_eq!(of_text(&ways, foreign), None);
            }
        }
    }

    #[test]
    fn products_of_terms_are_left_alone() {
        let question = Question { form: Some(crate::matmul::split::Form::Halves), ..question(SIZES[0], Some(UNITS)) };
        let chosen = choose(question);
        assert!(matches!(chosen, Way::Split(_)));
        assert_eq!(candidates(&question, chosen, Autotune::All).as_slice(), [chosen]);
    }
}
