//! How a product is computed: on matrix units or without, and in which tile. Choices are cached by
//! sizes.
//!
//! The choice depends on the adapter and the shape alone, so a product gives the same bits every
//! time.

use crate::matmul::matrix_unit_select::{self, MatrixChoice, SplitChoice};
use crate::matmul::matrix_unit_tile::{MatrixTile, Units};
use crate::matmul::order::Order;
use crate::matmul::rounding::Rounding;
use crate::matmul::select::{self, Choice, Limits};
use crate::matmul::split::Form;
use crate::matmul::two_launches::{self, Waves};
use dml_kernel::DType;
use std::cell::Cell;

/// An algorithm for a product, with its tile.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Algorithm {
    /// Without matrix units.
    Plain(Choice),
    /// Without matrix units, in two launches for separate ranges of rows.
    TwoLaunches(Waves),
    /// On matrix units.
    Matrix(MatrixChoice),
    /// On matrix units, in two launches for separate ranges of rows.
    MatrixTwoLaunches(Waves<MatrixTile>),
    /// On matrix units, with float32 operands split into two terms of float16.
    SplitFloat(SplitChoice),
    /// On matrix units, with float32 operands rounded to bfloat16.
    RoundedFloat(MatrixChoice),
}

impl Algorithm {
    /// Elements of a workgroup's tile of the result, of the larger of two.
    fn elements(self) -> u32 {
        match self {
            Algorithm::Plain(Choice { tile, .. }) => tile.m * tile.n,
            Algorithm::TwoLaunches(Waves { first, rest, .. }) => (first.m * first.n).max(rest.tile.m * rest.tile.n),
            Algorithm::MatrixTwoLaunches(Waves { first, rest, .. }) => {
                (first.m * first.n).max(rest.tile.m * rest.tile.n)
            }
            Algorithm::Matrix(MatrixChoice { tile, .. })
            | Algorithm::RoundedFloat(MatrixChoice { tile, .. })
            | Algorithm::SplitFloat(SplitChoice { tile, .. }) => tile.m * tile.n,
        }
    }

    fn uses_matrix_units(self) -> bool {
        !matches!(self, Algorithm::Plain(_) | Algorithm::TwoLaunches(_))
    }
}

/// The inputs of a choice, which are the key of its cache.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct ChoiceKey {
    /// The adapter's limits.
    pub limits: Limits,
    /// Its matrix units for the operands' dtype, or for the dtype to which operands may be
    /// converted.
    pub matrix_units: Option<Units>,
    /// The conversion of float32 operands, if any is possible.
    pub form: Option<Form>,
    /// `[batch, m, n, k]`
    pub size: [i64; 4],
    /// Bytes of an element in tiles without matrix units.
    pub bytes: u32,
    /// Long steps along k are good on matrix units: both operands are read in vectors of 16 bytes.
    pub prefers_long_steps: bool,
    /// Whether the second operand is contiguous along k.
    pub b_along_k: bool,
    /// Whether ranges of rows may be computed by separate launches.
    pub by_rows: bool,
    /// Operands that are rounded on load.
    pub rounding: Rounding,
}

/// Two launches are only chosen if they take less than this fraction of one launch's time.
const TWO_LAUNCH_THRESHOLD: f64 = 0.95;

/// An estimated time, and the algorithm that takes it.
type TimedAlgorithm = (f64, Algorithm);

thread_local! {
    /// A direct-mapped cache of the thread's last choices, since the estimates take microseconds.
    static CHOICE_CACHE: [Cell<Option<(ChoiceKey, TimedAlgorithm)>>; 64] = const { [const { Cell::new(None) }; 64] };
}

/// The algorithm with the least estimated time. If operands are rounded on load, only algorithms
/// are considered that give the same bits as with operands stored in 16 bits.
pub fn choose(choice_key: ChoiceKey) -> Algorithm {
    choose_cached(choice_key).1
}

/// The choice after one whose kernels the driver refuses: in a smaller tile, and after the smallest
/// on matrix units without them. `None` after the smallest of all.
pub fn smaller(choice_key: ChoiceKey, refused: Algorithm) -> Option<(ChoiceKey, Algorithm)> {
    let one_launch = ChoiceKey { by_rows: false, ..choice_key };
    let without_units = ChoiceKey { matrix_units: None, form: None, ..one_launch };
    let below = |choice_key: ChoiceKey, most_elements| {
        let choice_key = ChoiceKey { limits: Limits { most_elements, ..choice_key.limits }, ..choice_key };
        (choice_key, choose(choice_key))
    };
    let most_elements = refused.elements() - 1;
    if refused.uses_matrix_units() {
        let next = below(one_launch, most_elements);
        return Some(if next.1.uses_matrix_units() { next } else { below(without_units, u32::MAX) });
    }
    Some(below(without_units, most_elements)).filter(|(_, next)| next.elements() <= most_elements)
}

/// Which operands are best rounded on load. The others are first written in 16 bits, each in a pass
/// of its own.
pub fn rounded_on_load(choice_key: ChoiceKey) -> [Option<DType>; 2] {
    let ChoiceKey { limits, size: [batch, m, n, k], rounding, .. } = choice_key;
    let all = rounding.operands;
    let written = [m, n].map(|outer| limits.passes(1, ((4 + 2) * batch * outer * k) as f64));
    let algorithms = [[true, true], [true, false], [false, true], [false, false]].into_iter().filter_map(|reads| {
        let of = |i: usize| all[i].filter(|_| reads[i]);
        let rounded = [of(0), of(1)];
        let is_new = (0..2).all(|i| all[i].is_some() || reads[i]);
        let passes: f64 = (0..2).filter(|&i| rounded[i] != all[i]).map(|i| written[i]).sum();
        let rounding = Rounding { operands: rounded, ..rounding };
        is_new.then(|| (passes + choose_cached(ChoiceKey { rounding, ..choice_key }).0, rounded))
    });
    // The first one of equals, which needs less memory.
    algorithms.reduce(|best, next| if next.0 < best.0 { next } else { best }).map_or([None; 2], |(_, rounded)| rounded)
}

/// The chosen algorithm and its estimated time, from the cache.
fn choose_cached(choice_key: ChoiceKey) -> TimedAlgorithm {
    // Multiplicative hashing by an odd number: the high bits depend on every size.
    let rounded = choice_key.rounding.operands.map(|dtype| dtype.map_or(0, |dtype| dtype as i64));
    let mixed = choice_key
        .size
        .iter()
        .chain(&rounded)
        .fold(0u64, |mixed, &n| (mixed ^ n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23));
    CHOICE_CACHE.with(|chosen| {
        let place = &chosen[(mixed >> 58) as usize];
        match place.get() {
            Some((asked, algorithm)) if asked == choice_key => algorithm,
            _ => {
                let algorithm = if choice_key.rounding.is_none() {
                    choose_by_estimate(&choice_key)
                } else {
                    of_rounded(&choice_key)
                };
                place.set(Some((choice_key, algorithm)));
                algorithm
            }
        }
    })
}

/// The algorithm for operands that are rounded on load.
fn of_rounded(choice_key: &ChoiceKey) -> TimedAlgorithm {
    let ChoiceKey { limits, matrix_units, form: _, size, bytes, prefers_long_steps, b_along_k, by_rows: _, rounding } =
        *choice_key;
    let [batch, m, n, k] = size;
    let (_, of_halves) = choose_cached(ChoiceKey { rounding: Rounding::NONE, ..*choice_key });
    let plain = |rows, choice| select::time(&limits, [batch, rows, n, k], bytes, b_along_k, choice, rounding);
    // The fastest tile with the same order of additions as with operands stored in 16 bits.
    let in_order = |rows, of: MatrixChoice| {
        let tiles = |matrix_units| {
            matrix_unit_select::candidates_with_times(
                &limits,
                matrix_units,
                [batch, rows, n, k],
                prefers_long_steps,
                rounding,
            )
        };
        let choices =
            matrix_units.into_iter().flat_map(tiles).map(|(time, tile, split_k)| (time, Choice { tile, split_k }));
        let order = Order::of_algorithm(Algorithm::Matrix(of), k);
        let alike = choices.filter(|&(_, choice)| Order::of_algorithm(Algorithm::Matrix(choice), k) == order);
        alike.min_by(|x, y| x.0.total_cmp(&y.0))
    };
    let time = match of_halves {
        Algorithm::Plain(choice) => plain(m, choice),
        Algorithm::TwoLaunches(Waves { first, rows, rest }) => {
            plain(rows, Choice { tile: first, split_k: 1 }) + plain(m - rows, rest)
        }
        Algorithm::Matrix(choice) => {
            return in_order(m, choice)
                .map_or((f64::INFINITY, of_halves), |(time, choice)| (time, Algorithm::Matrix(choice)));
        }
        Algorithm::MatrixTwoLaunches(Waves { first, rows, rest }) => {
            let launches = in_order(rows, Choice { tile: first, split_k: 1 }).zip(in_order(m - rows, rest));
            return launches.map_or((f64::INFINITY, of_halves), |((time, first), (rest_time, rest))| {
                (time + rest_time, Algorithm::MatrixTwoLaunches(Waves { first: first.tile, rows, rest }))
            });
        }
        Algorithm::SplitFloat(_) | Algorithm::RoundedFloat(_) => f64::INFINITY,
    };
    (time, of_halves)
}

fn choose_by_estimate(choice_key: &ChoiceKey) -> TimedAlgorithm {
    let ChoiceKey { limits, matrix_units, form, size, bytes, prefers_long_steps, b_along_k, by_rows, rounding: _ } =
        choice_key;
    let in_one = |size| Some(select::choose(limits, size, *bytes, *b_along_k));
    let waves = || two_launches::choose(limits, *size, select::entries(limits, *bytes, *b_along_k), in_one);
    let (time, plain) = select::choose(limits, *size, *bytes, *b_along_k);
    let (time, plain) = faster((time, Algorithm::Plain(plain)), *by_rows, || {
        waves().map(|(t, waves)| (t, Algorithm::TwoLaunches(waves)))
    });
    let Some(matrix_units) = *matrix_units else { return (time, plain) };
    let other = match form {
        None => {
            let in_one = |size| matrix_unit_select::choose(limits, matrix_units, size, *prefers_long_steps);
            let waves = || {
                two_launches::choose(
                    limits,
                    *size,
                    matrix_unit_select::entries(limits, matrix_units, *prefers_long_steps, Rounding::NONE),
                    in_one,
                )
            };
            in_one(*size).map(|(time, choice)| {
                faster((time, Algorithm::Matrix(choice)), *by_rows, || {
                    waves().map(|(t, waves)| (t, Algorithm::MatrixTwoLaunches(waves)))
                })
            })
        }
        Some(Form::Halves) => {
            let split = matrix_unit_select::choose_split(limits, matrix_units, *size, *b_along_k);
            split.map(|(time, choice)| (time, Algorithm::SplitFloat(choice)))
        }
        Some(Form::Rounded) => {
            let rounded = matrix_unit_select::choose_rounded(limits, matrix_units, *size);
            rounded.map(|(time, choice)| (time, Algorithm::RoundedFloat(choice)))
        }
    };
    match other {
        // Emulated and small units are used for tests, even if they are slower.
        Some((other, algorithm))
            if other <= time || matrix_units.emulated || (matrix_units.small && form.is_some()) =>
        {
            (other, algorithm)
        }
        _ => (time, plain),
    }
}

/// One launch, or two if these are allowed and faster.
fn faster(one: (f64, Algorithm), by_rows: bool, two: impl Fn() -> Option<(f64, Algorithm)>) -> (f64, Algorithm) {
    match by_rows.then(two).flatten() {
        Some(two) if two.0 < TWO_LAUNCH_THRESHOLD * one.0 => two,
        _ => one,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(shared_memory: u32, invocations: u32) -> Limits {
        Limits { shared_memory, invocations, ..Limits::LARGE_GPU }
    }

    const UNITS: Option<Units> =
        Some(Units { shape: [16, 16, 16], lanes: 32, emulated: false, small: false, bytes: 2, transposes: false });

    #[test]
    fn remembered_choices_are_those_of_the_estimate() {
        let adapters = [limits(48 << 10, 1024), limits(16 << 10, 128)];
        for _ in 0..2 {
            for n in 1..200 {
                for limits in adapters {
                    for (bytes, b_along_k, matrix_units) in [(4, false, None), (4, true, UNITS), (8, false, None)] {
                        let size = [1 + n % 3, n, 7 * n, 512];
                        let (form, prefers_long_steps, by_rows) = (None, n % 2 == 0, n % 3 == 0);
                        let rounding = Rounding::NONE;
                        let choice_key = ChoiceKey {
                            limits,
                            matrix_units,
                            form,
                            size,
                            bytes,
                            prefers_long_steps,
                            b_along_k,
                            by_rows,
                            rounding,
                        };
                        assert_eq!(choose_cached(choice_key), choose_by_estimate(&choice_key), "{size:?}");
                        let rounding = Rounding { operands: [F16, None], own: n % 2 == 0 };
                        let choice_key = ChoiceKey { rounding, ..choice_key };
                        assert_eq!(choose_cached(choice_key), of_rounded(&choice_key), "{size:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn after_a_refused_choice_come_smaller_ones_and_after_matrix_units_those_without() {
        for (form, b_along_k) in [(None, false), (None, true), (Some(Form::Halves), false), (Some(Form::Rounded), true)]
        {
            for n in [512, 4096] {
                let choice_key = ChoiceKey { form, b_along_k, ..of_size(Limits::LARGE_GPU, n) };
                let first = (choice_key, choose(choice_key));
                let all: Vec<_> = std::iter::successors(Some(first), |&(key, refused)| smaller(key, refused))
                    .map(|(_, of)| of)
                    .collect();
                let plain = all.iter().position(|of| !of.uses_matrix_units()).expect("the last ones");
                let [on_units, without] = [&all[..plain], &all[plain..]];
                assert!(without.len() > 1 && without.iter().all(|of| !of.uses_matrix_units()), "{all:?}");
                for choices in [on_units, without] {
                    assert!(choices.is_sorted_by(|a, b| a.elements() > b.elements()), "{choices:?}");
                }
                assert_eq!(all.last().map(|of| of.elements()), Some(256), "the smallest tile of all: {all:?}");
            }
        }
    }

    #[test]
    fn large_products_of_halves_run_on_matrix_units() {
        for (shared_memory, invocations) in [(48 << 10, 1024), (32 << 10, 256), (16 << 10, 128)] {
            let limits = limits(shared_memory, invocations);
            for n in [512, 1024, 4096, 8192] {
                let choice_key = of_size(limits, n);
                let Algorithm::Matrix(choice) = choose(choice_key) else { panic!("{choice_key:?}") };
                assert!(choice.tile.shared_bytes() <= shared_memory && choice.tile.threads() <= invocations);
                assert!(matches!(choose(ChoiceKey { matrix_units: None, ..choice_key }), Algorithm::Plain(_)));
            }
        }
    }

    fn of_size(limits: Limits, n: i64) -> ChoiceKey {
        ChoiceKey {
            limits,
            matrix_units: UNITS,
            form: None,
            size: [1, n, n, n],
            bytes: 4,
            prefers_long_steps: true,
            b_along_k: false,
            by_rows: true,
            rounding: Rounding::NONE,
        }
    }

    const F16: Option<DType> = Some(DType::F16);

    #[test]
    fn operands_of_few_rows_are_rounded_as_they_are_read_and_those_of_large_products_written_first() {
        let own = |operands| Rounding { operands, own: true };
        let choice_key = |size| ChoiceKey { size, rounding: own([F16, None]), ..of_size(Limits::LARGE_GPU, 1) };
        for size in [[1, 16, 1024, 1024], [1, 16, 4096, 4096], [32, 64, 32, 64]] {
            assert_eq!(rounded_on_load(choice_key(size)), [F16, None], "{size:?}");
        }
        for size in [[1, 4096, 4096, 4096], [1, 8192, 8192, 1024]] {
            assert_eq!(rounded_on_load(choice_key(size)), [None; 2], "{size:?}");
        }
        // Weights that are multiplied by few rows: writing them in 16 bits would not pay off, since
        // they are read only once.
        let weights = ChoiceKey { rounding: own([None, F16]), ..choice_key([1, 32, 8192, 8192]) };
        assert_eq!(rounded_on_load(weights), [None, F16]);
    }

    #[test]
    fn operands_that_are_rounded_as_they_are_read_are_added_up_in_the_order_of_halves() {
        let sizes = [[1, 64, 4096, 4096], [1, 100, 768, 3072], [3, 33, 50_257, 768], [1, 64, 64, 65_536]];
        for matrix_units in [None, UNITS] {
            for size in sizes {
                for operands in [[F16, None], [None, F16], [F16, F16]] {
                    let rounding = Rounding { operands, own: false };
                    let halves = ChoiceKey { matrix_units, size, ..of_size(Limits::LARGE_GPU, 1) };
                    let (time, algorithm) = choose_cached(ChoiceKey { rounding, ..halves });
                    assert_eq!(Order::of_algorithm(algorithm, size[3]), Order::of_algorithm(choose(halves), size[3]));
                    assert!(time.is_finite(), "{size:?} {operands:?}");
                    let Algorithm::Matrix(choice) = algorithm else { continue };
                    assert!(rounding.fits(&choice.tile));
                }
            }
        }
    }

    #[test]
    fn large_products_of_floats_are_split_or_rounded_and_small_ones_plain() {
        for (shared_memory, invocations) in [(48 << 10, 1024), (32 << 10, 256)] {
            let limits = limits(shared_memory, invocations);
            for n in [2048, 4096, 8192] {
                let choice_key = ChoiceKey { form: Some(Form::Halves), ..of_size(limits, n) };
                let Algorithm::SplitFloat(SplitChoice { tile, fallback_tile }) = choose(choice_key) else {
                    panic!("{choice_key:?}")
                };
                assert!(16 * tile.vectors_of_terms() <= shared_memory && tile.threads() <= invocations);
                let [rows, columns] = SplitChoice::blocks(&tile);
                assert!(fallback_tile.m <= rows && fallback_tile.n <= columns && limits.allow(&fallback_tile, 4));
                let rounded = ChoiceKey { form: Some(Form::Rounded), ..choice_key };
                assert!(matches!(choose(rounded), Algorithm::RoundedFloat(_)), "{rounded:?}");
            }
            for form in [Form::Halves, Form::Rounded] {
                assert!(matches!(choose(ChoiceKey { form: Some(form), ..of_size(limits, 64) }), Algorithm::Plain(_)));
            }
        }
    }
}
