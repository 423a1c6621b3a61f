//! How a product is run: on matrix units or without, and in which tile, remembered by its sizes.
//!
//! The choice depends on the adapter and the shape alone, so a product gives the same bits every time.

use super::matrix_select::{self, MatrixChoice, SplitChoice};
use super::matrix_tile::{MatrixTile, Units};
use super::select::{self, Choice, Limits};
use super::split::Form;
use super::waves::{self, Waves};
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
}

/// The part of one launch's time that two must not take more than.
const WORTH_TWO_LAUNCHES: f64 = 0.95;

thread_local! {
    /// Choices of the thread's last products, each at a place that its sizes tell: the estimates take microseconds.
    static CHOSEN: [Cell<Option<(Question, Way)>>; 64] = const { [const { Cell::new(None) }; 64] };
}

/// The way of the least estimated time.
pub fn choose(question: Question) -> Way {
    // The high bits of products with an odd number depend on every size.
    let mixed = question
        .size
        .iter()
        .fold(0u64, |mixed, &n| (mixed ^ n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23));
    CHOSEN.with(|chosen| {
        let place = &chosen[(mixed >> 58) as usize];
        match place.get() {
            Some((asked, way)) if asked == question => way,
            _ => {
                let way = estimated(&question);
                place.set(Some((question, way)));
                way
            }
        }
    })
}

fn estimated(question: &Question) -> Way {
    let Question { limits, units, form, size, bytes, long_steps, b_along_k, by_rows } = question;
    let in_one = |size| Some(select::choose(limits, size, *bytes, *b_along_k));
    let waves = || waves::choose(limits, *size, select::entries(limits, *bytes, *b_along_k), in_one);
    let (time, plain) = select::choose(limits, *size, *bytes, *b_along_k);
    let (time, plain) =
        faster((time, Way::Plain(plain)), *by_rows, || waves().map(|(t, waves)| (t, Way::Waves(waves))));
    let Some(units) = *units else { return plain };
    let other = match form {
        None => {
            let in_one = |size| matrix_select::choose(limits, units, size, *long_steps);
            let waves = || waves::choose(limits, *size, matrix_select::entries(limits, units, *long_steps), in_one);
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
        // Small units are there to be tried, not to be fast.
        Some((other, way)) if other <= time || (units.small && form.is_some()) => way,
        _ => plain,
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
                        let (form, long_steps) = (None, n % 2 == 0);
                        let question =
                            Question { limits, units, form, size, bytes, long_steps, b_along_k, by_rows: n % 3 == 0 };
                        assert_eq!(choose(question), estimated(&question), "{size:?}");
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
        let size = [1, n, n, n];
        Question { limits, units: UNITS, form: None, size, bytes: 4, long_steps: true, b_along_k: false, by_rows: true }
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
