//! The rows of a recurrence's tensors that belong to each step.
//!
//! The tensors of all steps are matrices whose rows are steps of sequences, in one of four orders:
//! step-major, the same with rows that no sequence has, sequence-major, or packed, which is
//! step-major with only those sequences that have not ended, the longest ones first.

use crate::error::Result;
use dml_engine::interface::{Table, U32};
use dml_engine::{ArgumentBlock, Parameter};
use dml_kernel::{Builder, DType, Pointer, Value};

/// The rows of one step.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
struct Step {
    /// The row of the first sequence.
    first: u32,
    /// Number of sequences that have this step.
    active: u32,
}

/// The steps of a recurrence, in the order in which they are computed.
#[derive(Clone, Debug)]
pub struct Steps {
    steps: Vec<Step>,
    /// Distance between the rows of adjacent sequences.
    sequence_stride: u32,
    /// Number of sequences.
    batch: u32,
}

impl Steps {
    /// Whether `rows` rows are the steps of `batch` sequences: packed with `batch_sizes`, or of
    /// equal length if that is empty.
    pub fn fit(rows: i64, batch: i64, batch_sizes: &[i64]) -> bool {
        if batch_sizes.is_empty() {
            return rows == 0 || batch > 0 && rows % batch == 0;
        }
        let ordered = batch_sizes.is_sorted_by(|x, y| x >= y) && batch_sizes.last() > Some(&0);
        ordered && batch_sizes[0] == batch && batch_sizes.iter().sum::<i64>() == rows
    }

    /// The steps of `batch` sequences in `rows` rows: packed with `batch_sizes`, or of equal length
    /// if that is empty.
    pub fn new(rows: i64, batch: i64, batch_sizes: &[i64], batch_first: bool, reverse: bool) -> Result<Steps> {
        check!(rows < i64::from(i32::MAX), TooLarge, "a recurrence over {rows} rows is too long for dml");
        check!(
            Steps::fit(rows, batch, batch_sizes),
            Invalid,
            "expected steps of {batch} sequences, but got {rows} rows and batch sizes {batch_sizes:?}"
        );
        let mut first = 0;
        let mut steps: Vec<Step> = if batch_sizes.is_empty() {
            let (length, next) =
                (rows.checked_div(batch).unwrap_or(0) as u32, if batch_first { 1 } else { batch as u32 });
            (0..length).map(|t| Step { first: t * next, active: batch as u32 }).collect()
        } else {
            let step = |&size: &i64| {
                first += size as u32;
                Step { first: first - size as u32, active: size as u32 }
            };
            batch_sizes.iter().map(step).collect()
        };
        if reverse {
            steps.reverse();
        }
        let sequence_stride = if batch_sizes.is_empty() && batch_first { steps.len() as u32 } else { 1 };
        Ok(Steps { steps, sequence_stride, batch: batch as u32 })
    }

    /// The steps of `batch` sequences in step-major order with a row for every sequence at every
    /// step, of which the first `active` ones, as many as the step before or fewer, have each step.
    pub fn padded(batch: i64, active: &[i64], reverse: bool) -> Result<Steps> {
        let ordered = active.is_sorted_by(|x, y| x >= y) && active.iter().all(|n| (1..=batch).contains(n));
        check!(ordered, Invalid, "expected falling numbers of {batch} sequences or fewer, but got {active:?}");
        let rows = batch * active.len() as i64;
        check!(rows < i64::from(i32::MAX), TooLarge, "a recurrence over {rows} rows is too long for dml");
        let step = |(t, &active): (usize, &i64)| Step { first: t as u32 * batch as u32, active: active as u32 };
        let mut steps: Vec<Step> = active.iter().enumerate().map(step).collect();
        if reverse {
            steps.reverse();
        }
        Ok(Steps { steps, sequence_stride: 1, batch: batch as u32 })
    }

    /// Number of steps.
    pub fn count(&self) -> usize {
        self.steps.len()
    }

    /// Number of sequences.
    pub fn batch(&self) -> u32 {
        self.batch
    }

    /// Number of sequences that have step `i`; 0 after the last step.
    pub fn active(&self, i: usize) -> u32 {
        self.steps.get(i).map_or(0, |step| step.active)
    }

    /// The first row of step `i`, and the distance to the next sequence's row.
    pub fn rows(&self, i: usize) -> (i64, i64) {
        (self.steps.get(i).map_or(0, |step| step.first).into(), self.sequence_stride.into())
    }

    /// The table of `count` steps from step `first` on, each with the previous step, for a kernel.
    pub fn words(&self, first: usize, count: usize) -> Vec<u64> {
        let word = |step: Step| u64::from(step.first) | u64::from(step.active) << 32;
        let before = |i: usize| i.checked_sub(1).map_or(Step::default(), |i| self.steps[i]);
        (first..first + count).flat_map(|i| [word(self.steps[i]), word(before(i))]).collect()
    }

    /// The same table with the steps in reverse order.
    pub fn reversed_table(&self, first: usize, count: usize) -> Vec<u64> {
        self.words(first, count).chunks(2).rev().flatten().copied().collect()
    }
}

/// Kernel parameter: a range of steps. It has to be the first parameter.
pub struct StepTable;

/// The argument for [`StepTable`].
pub struct StepRange<'a> {
    /// Two words for each step; at least those of one step.
    pub words: &'a [u64],
    /// Number of steps in the range.
    pub count: usize,
    /// All steps of the recurrence.
    pub steps: &'a Steps,
}

/// A range of steps in a kernel.
pub struct StepParams<'b> {
    table: Pointer<'b>,
    /// Number of steps in the range.
    pub count: Value<'b>,
    /// Number of sequences.
    pub batch: Value<'b>,
    sequence_stride: Value<'b>,
}

impl Parameter for StepTable {
    type Type = ();
    type Argument<'a> = StepRange<'a>;
    type Declared<'b> = StepParams<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, (): &()) -> StepParams<'b> {
        let table = Table::declare(b, "table", &DType::U32);
        let number = |name: &str| U32::declare(b, name, &());
        StepParams { table, count: number("count"), batch: number("batch"), sequence_stride: number("apart") }
    }

    fn pass(range: &StepRange, (): &(), block: &mut ArgumentBlock) {
        Table::pass(&range.words, &DType::U32, block);
        for number in [range.count as u32, range.steps.batch, range.steps.sequence_stride] {
            U32::pass(&number, &(), block);
        }
    }
}

/// One step in a kernel.
pub struct StepPosition<'b> {
    first: Value<'b>,
    sequence_stride: Value<'b>,
    /// Number of sequences that have the step.
    pub active: Value<'b>,
}

impl<'b> StepPosition<'b> {
    /// The row of a sequence that has the step.
    pub fn row(&self, sequence: Value<'b>) -> Value<'b> {
        self.first + sequence * self.sequence_stride
    }
}

impl<'b> StepParams<'b> {
    /// Step `i`.
    pub fn step(&self, i: Value<'b>) -> StepPosition<'b> {
        self.step_position(i * 4)
    }

    /// The step before step `i`; before the first step, one that no sequence has.
    pub fn before(&self, i: Value<'b>) -> StepPosition<'b> {
        self.step_position(i * 4 + 2)
    }

    fn step_position(&self, at: Value<'b>) -> StepPosition<'b> {
        StepPosition {
            first: self.table.load(at),
            sequence_stride: self.sequence_stride,
            active: self.table.load(at + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_steps() {
        let rows = |batch_sizes: &[i64], batch_first, reverse| {
            let steps = Steps::new(6, 3, batch_sizes, batch_first, reverse).expect("steps");
            (0..steps.count()).map(|i| (steps.rows(i), steps.active(i))).collect::<Vec<_>>()
        };
        assert_eq!(rows(&[], false, false), [((0, 1), 3), ((3, 1), 3)]);
        assert_eq!(rows(&[], true, true), [((1, 2), 3), ((0, 2), 3)]);
        assert_eq!(rows(&[3, 2, 1], false, false), [((0, 1), 3), ((3, 1), 2), ((5, 1), 1)]);
        assert_eq!(rows(&[3, 2, 1], false, true), [((5, 1), 1), ((3, 1), 2), ((0, 1), 3)]);
    }

    #[test]
    fn padded_steps_have_a_row_for_every_sequence() {
        let steps = Steps::padded(3, &[3, 2, 2], true).expect("steps");
        let rows: Vec<_> = (0..steps.count()).map(|i| (steps.rows(i), steps.active(i))).collect();
        assert_eq!(rows, [((6, 1), 2), ((3, 1), 2), ((0, 1), 3)]);
        for active in [&[2, 3][..], &[3, 0], &[4]] {
            assert!(Steps::padded(3, active, false).is_err(), "{active:?}");
        }
    }

    #[test]
    fn a_step_comes_with_the_one_before() {
        let steps = Steps::new(6, 3, &[3, 2, 1], false, false).expect("steps");
        let word = |first: u64, active: u64| first | active << 32;
        assert_eq!(steps.words(1, 2), [word(3, 2), word(0, 3), word(5, 1), word(3, 2)]);
        assert_eq!(steps.reversed_table(0, 2), [word(3, 2), word(0, 3), word(0, 3), 0]);
    }

    #[test]
    fn rows_that_are_no_steps_are_refused() {
        for batch_sizes in [&[2, 3][..], &[3, 3, 1], &[3, 3, 0], &[2, 2, 2]] {
            assert!(Steps::new(6, 3, batch_sizes, false, false).is_err(), "{batch_sizes:?}");
        }
        assert!(Steps::new(7, 3, &[], false, false).is_err());
    }
}
