//! How a product is run: on matrix units or without, and in which tile, remembered by its sizes.
//!
//! The choice depends on the adapter and the shape alone, so a product gives the same bits every
//! time.

use crate::matmul::matrix_select::{self, MatrixChoice, SplitChoice};
use crate::matmul::matrix_tile::{MatrixTile, Units};
use crate::matmul::order::Order;
use crate::matmul::rounding::Rounding;
use crate::matmul::select::{self, Choice, Limits};
use crate::matmul::split::Form;
use crate::matmul::waves::{self, Waves};
use dml_kernel::DType;
use std::cell::Cell;

/// How a product is run.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Way {
    /// Every invocation multiplies and adds.
    Plain(Choice),
    /// The same, in two launches of rows of their own.
    Waves(Waves),
    /// On matrix units.
    Matrix(MatrixChoice),
    /// The same, in two launches of rows of their own.
    MatrixWaves(Waves<MatrixTile>),
    /// On matrix units, of float32 in two terms of float16.
    Split(SplitChoice),
    /// On matrix units, of float32 rounded to bfloat16.
    Rounded(MatrixChoice),
}

/// What a choice depends on.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Question {
    /// The adapter.
    pub limits: Limits,
    /// Its matrix units for the operands' dtype, or for what they may become.
    pub units: Option<Units>,
    /// What operands may become.
    pub form: Option<Form>,
    /// `[batch, m, n, k]`
    pub size: [i64; 4],
    /// Bytes of the elements that plain tiles compute with.
    pub bytes: u32,
    /// Long steps along k suit matrix units: both operands are read in whole units of 16 bytes.
    pub long_steps: bool,
    /// The second operand is contiguous along k.
    pub b_along_k: bool,
    /// Rows may be computed by themselves.
    pub by_rows: bool,
    /// Operands that are rounded as they are read.
    pub rounding: Rounding,
}

/// The part of one launch's time that two must not take more than.
const WORTH_TWO_LAUNCHES: f64 = 0.95;

/// An estimated time, and the way that takes it.
type Timed = (f64, Way);

thread_local! {
    /// Choices of the thread's last products, each at a place that its sizes tell: the estimates
    /// take microseconds.
    static CHOSEN: [Cell<Option<(Question, Timed)>>; 64] = const { [const { Cell::new(None) }; 64] };
}

/// The way of the least estimated time; where operands are rounded as they are read, of those that
/// give the bits of the way of halves.
pub fn choose(question: Question) -> Way {
    timed(question).1
}

/// Which of the question's operands are to be rounded as they are read. The others are written in
/// 16 bits before, each in a pass of its own.
pub fn rounded_on_load(question: Question) -> [Option<DType>; 2] {
    let Question { limits, size: [batch, m, n, k], rounding, .. } = question;
    let all = rounding.operands;
    let written = [m, n].map(|outer| limits.passes(1, ((4 + 2) * batch * outer * k) as f64));
    let ways = [[true, true], [true, false], [false, true], [false, false]].into_iter().filter_map(|reads| {
        let of = |i: usize| all[i].filter(|_| reads[i]);
        let rounded = [of(0), of(1)];
        let is_new = (0..2).all(|i| all[i].is_some() || reads[i]);
        let passes: f64 = (0..2).filter(|&i| rounded[i] != all[i]).map(|i| written[i]).sum();
        let rounding = Rounding { operands: rounded, ..rounding };
        is_new.then(|| (passes + timed(Question { rounding, ..question }).0, rounded))
    });
    // The first of equals: memory that is not needed.
    ways.reduce(|best, next| if next.0 < best.0 { next } else { best }).map_or([None; 2], |(_, rounded)| rounded)
}

/// The way that is chosen, and the estimate of its time.
fn timed(question: Question) -> Timed {
    // The high bits of products with an odd number depend on every size.
    let rounded = question.rounding.operands.map(|dtype| dtype.map_or(0, |dtype| dtype as i64));
    let mixed = question
        .size
        .iter()
        .chain(&rounded)
        .fold(0u64, |mixed, &n| (mixed ^ n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23));
    CHOSEN.with(|chosen| {
        let place = &chosen[(mixed >> 58) as usize];
        match place.get() {
            Some((asked, way)) if asked == question => way,
            _ => {
                let way = if question.rounding.is_none() { estimated(&question) } else { of_rounded(&question) };
                place.set(Some((question, way)));
                way
            }
        }
    })
}

/// The way of operands that are rounded as they are read.
fn of_rounded(question: &Question) -> Timed {
    let Question { limits, units, form: _, size, bytes, long_steps, b_along_k, by_rows: _, rounding } = *question;
    let [batch, m, n, k] = size;
    let (_, of_halves) = timed(Question { rounding: Rounding::NONE, ..*question });
    let plain = |rows, choice| select::time(&limits, [batch, rows, n, k], bytes, b_along_k, choice, rounding);
    // The fastest tile that adds up in the order of one of halves.
    let in_order = |rows, of: MatrixChoice| {
        let tiles = |units| matrix_select::rated(&limits, units, [batch, rows, n, k], long_steps, rounding);
        let choices = units.into_iter().flat_map(tiles).map(|(time, tile, split_k)| (time, Choice { tile, split_k }));
        let order = Order::of_way(Way::Matrix(of), k);
        let alike = choices.filter(|&(_, choice)| Order::of_way(Way::Matrix(choice), k) == order);
        alike.min_by(|x, y| x.0.total_cmp(&y.0))
    };
    let time = match of_halves {
        Way::Plain(choice) => plain(m, choice),
        Way::Waves(Waves { first, rows, rest }) => {
            plain(rows, Choice { tile: first, split_k: 1 }) + plain(m - rows, rest)
        }
        Way::Matrix(choice) => {
            return in_order(m, choice)
                .map_or((f64::INFINITY, of_halves), |(time, choice)| (time, Way::Matrix(choice)));
        }
        Way::MatrixWaves(Waves { first, rows, rest }) => {
            let launches = in_order(rows, Choice { tile: first, split_k: 1 }).zip(in_order(m - rows, rest));
            return launches.map_or((f64::INFINITY, of_halves), |((time, first), (rest_time, rest))| {
                (time + rest_time, Way::MatrixWaves(Waves { first: first.tile, rows, rest }))
            });
        }
        Way::Split(_) | Way::Rounded(_) => f64::INFINITY,
    };
    (time, of_halves)
}

fn estimated(question: &Question) -> Timed {
    let Question { limits, units, form, size, bytes, long_steps, b_along_k, by_rows, rounding: _ } = question;
    let in_one = |size| Some(select::choose(limits, size, *bytes, *b_along_k));
    let waves = || waves::choose(limits, *size, select::entries(limits, *bytes, *b_along_k), in_one);
    let (time, plain) = select::choose(limits, *size, *bytes, *b_along_k);
    let (time, plain) =
        faster((time, Way::Plain(plain)), *by_rows, || waves().map(|(t, waves)| (t, Way::Waves(waves))));
    let Some(units) = *units else { return (time, plain) };
    let other = match form {
        None => {
            let in_one = |size| matrix_select::choose(limits, units, size, *long_steps);
            let waves = || {
                waves::choose(limits, *size, matrix_select::entries(limits, units, *long_steps, Rounding::NONE), in_one)
            };
            in_one(*size).map(|(time, choice)| {
                faster((time, Way::Matrix(choice)), *by_rows, || waves().map(|(t, waves)| (t, Way::MatrixWaves(waves))))
            })
        }
        Some(Form::Halves) => {
            let split = matrix_select::choose_split(limits, units, *size, *b_along_k);
            split.map(|(time, choice)| (time, Way::Split(choice)))
        }
        Some(Form::Rounded) => {
            let rounded = matrix_select::choose_rounded(limits, units, *size);
            rounded.map(|(time, choice)| (time, Way::Rounded(choice)))
        }
    };
    match other {
        // Emulated and small units are there to be tried, not to be fast.
        Some((other, way)) if other <= time || units.emulated || (units.small && form.is_some()) => (other, way),
        _ => (time, plain),
    }
}

/// One launch, or two where they may be and are faster.
fn faster(one: (f64, Way), by_rows: bool, two: impl Fn() -> Option<(f64, Way)>) -> (f64, Way) {
    match by_rows.then(two).flatten() {
        Some(two) if two.0 < WORTH_TWO_LAUNCHES * one.0 => two,
        _ => one,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(shared_memory: u32, invocations: u32) -> Limits {
        Limits { shared_memory, invocations, ..Limits::LARGE }
    }

    const UNITS: Option<Units> =
        Some(Units { shape: [16, 16, 16], lanes: 32, emulated: false, small: false, bytes: 2 });

    #[test]
    fn remembered_choices_are_those_of_the_estimate() {
        let adapters = [limits(48 << 10, 1024), limits(16 << 10, 128)];
        for _ in 0..2 {
            for n in 1..200 {
                for limits in adapters {
                    for (bytes, b_along_k, units) in [(4, false, None), (4, true, UNITS), (8, false, None)] {
                        let size = [1 + n % 3, n, 7 * n, 512];
                        let (form, long_steps, by_rows) = (None, n % 2 == 0, n % 3 == 0);
                        let rounding = Rounding::NONE;
                        let question =
                            Question { limits, units, form, size, bytes, long_steps, b_along_k, by_rows, rounding };
                        assert_eq!(timed(question), estimated(&question), "{size:?}");
                        let rounding = Rounding { operands: [F16, None], own: n % 2 == 0 };
                        let question = Question { rounding, ..question };
                        assert_eq!(timed(question), of_rounded(&question), "{size:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn large_products_of_halves_run_on_matrix_units() {
        for (shared_memory, invocations) in [(48 << 10, 1024), (32 << 10, 256), (16 << 10, 128)] {
            let limits = limits(shared_memory, invocations);
            for n in [512, 1024, 4096, 8192] {
                let question = of_size(limits, n);
                let Way::Matrix(choice) = choose(question) else { panic!("{question:?}") };
                assert!(choice.tile.shared_bytes() <= shared_memory && choice.tile.threads() <= invocations);
                assert!(matches!(choose(Question { units: None, ..question }), Way::Plain(_)));
            }
        }
    }

    fn of_size(limits: Limits, n: i64) -> Question {
        Question {
            limits,
            units: UNITS,
            form: None,
            size: [1, n, n, n],
            bytes: 4,
            long_steps: true,
            b_along_k: false,
            by_rows: true,
            rounding: Rounding::NONE,
        }
    }

    const F16: Option<DType> = Some(DType::F16);

    #[test]
    fn operands_of_few_rows_are_rounded_as_they_are_read_and_those_of_large_products_written_first() {
        let own = |operands| Rounding { operands, own: true };
        let question = |size| Question { size, rounding: own([F16, None]), ..of_size(Limits::LARGE, 1) };
        for size in [[1, 16, 1024, 1024], [1, 16, 4096, 4096], [32, 64, 32, 64]] {
            assert_eq!(rounded_on_load(question(size)), [F16, None], "{size:?}");
        }
        for size in [[1, 4096, 4096, 4096], [1, 8192, 8192, 1024]] {
            assert_eq!(rounded_on_load(question(size)), [None; 2], "{size:?}");
        }
        // Weights that few rows are multiplied by: written once, they would be read once.
        let weights = Question { rounding: own([None, F16]), ..question([1, 32, 8192, 8192]) };
        assert_eq!(rounded_on_load(weights), [None, F16]);
    }

    #[test]
    fn operands_that_are_rounded_as_they_are_read_are_added_up_in_the_order_of_halves() {
        let sizes = [[1, 64, 4096, 4096], [1, 100, 768, 3072], [3, 33, 50_257, 768], [1, 64, 64, 65_536]];
        for units in [None, UNITS] {
            for size in sizes {
                for operands in [[F16, None], [None, F16], [F16, F16]] {
                    let rounding = Rounding { operands, own: false };
                    let halves = Question { units, size, ..of_size(Limits::LARGE, 1) };
                    let (time, way) = timed(Question { rounding, ..halves });
                    assert_eq!(Order::of_way(way, size[3]), Order::of_way(choose(halves), size[3]));
                    assert!(time.is_finite(), "{size:?} {operands:?}");
                    let Way::Matrix(choice) = way else { continue };
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
                let question = Question { form: Some(Form::Halves), ..of_size(limits, n) };
                let Way::Split(SplitChoice { tile, plain }) = choose(question) else { panic!("{question:?}") };
                assert!(16 * tile.units_of_terms() <= shared_memory && tile.threads() <= invocations);
                let [rows, columns] = SplitChoice::blocks(&tile);
                assert!(plain.m <= rows && plain.n <= columns && limits.allow(&plain, 4));
                let rounded = Question { form: Some(Form::Rounded), ..question };
                assert!(matches!(choose(rounded), Way::Rounded(_)), "{rounded:?}");
            }
            for form in [Form::Halves, Form::Rounded] {
                assert!(matches!(choose(Question { form: Some(form), ..of_size(limits, 64) }), Way::Plain(_)));
            }
        }
    }
}
