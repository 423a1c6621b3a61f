//! In which rows of its tensors a recurrence finds the sequences at each step.
//!
//! The tensors of all steps are matrices whose rows are steps of sequences, in one of three orders:
//! step after step, sequence after sequence, or packed, which is step after step of the sequences
//! that are not over, the longest ones first.

use crate::error::Result;
use dml_engine::interface::{Table, U32};
use dml_engine::{ArgumentBlock, Parameter};
use dml_kernel::{Builder, DType, Pointer, Value};

/// Where the rows of one step are.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
struct Step {
    /// The row of the first sequence.
    first: u32,
    /// Sequences that have this step.
    active: u32,
}

/// The steps of a recurrence, in the order in which it takes them.
#[derive(Clone, Debug)]
pub struct Steps {
    steps: Vec<Step>,
    /// From the row of a sequence to that of the next one.
    apart: u32,
    /// Sequences.
    batch: u32,
}

impl Steps {
    /// The steps of `batch` sequences in `rows` rows: packed by `batch_sizes`, or, if there are
    /// none, all equally long.
    pub fn new(rows: i64, batch: i64, batch_sizes: &[i64], batch_first: bool, reverse: bool) -> Result<Steps> {
        check!(rows < i64::from(i32::MAX), TooLarge, "a recurrence over {rows} rows is too long for dml");
        let fits = if batch_sizes.is_empty() {
            rows == 0 || batch > 0 && rows % batch == 0
        } else {
            let ordered = batch_sizes.is_sorted_by(|x, y| x >= y) && batch_sizes.last() > Some(&0);
            ordered && batch_sizes[0] == batch && batch_sizes.iter().sum::<i64>() == rows
        };
        check!(
            fits,
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
        let apart = if batch_sizes.is_empty() && batch_first { steps.len() as u32 } else { 1 };
        Ok(Steps { steps, apart, batch: batch as u32 })
    }

    /// Their number.
    pub fn count(&self) -> usize {
        self.steps.len()
    }

    /// Sequences.
    pub fn batch(&self) -> u32 {
        self.batch
    }

    /// Sequences that have step `i`; 0 beyond the last.
    pub fn active(&self, i: usize) -> u32 {
        self.steps.get(i).map_or(0, |step| step.active)
    }

    /// The first row of step `i`, and how many rows the next sequence is from it.
    pub fn rows(&self, i: usize) -> (i64, i64) {
        (self.steps.get(i).map_or(0, |step| step.first).into(), self.apart.into())
    }

    /// The words by which a kernel finds `count` steps from step `first` on, each with the one
    /// before.
    pub fn words(&self, first: usize, count: usize) -> Vec<u64> {
        let word = |step: Step| u64::from(step.first) | u64::from(step.active) << 32;
        let before = |i: usize| i.checked_sub(1).map_or(Step::default(), |i| self.steps[i]);
        (first..first + count).flat_map(|i| [word(self.steps[i]), word(before(i))]).collect()
    }

    /// The same words, with the steps in the opposite order.
    pub fn words_back(&self, first: usize, count: usize) -> Vec<u64> {
        self.words(first, count).chunks(2).rev().flatten().copied().collect()
    }
}

/// Some steps, as a kernel's first parameter.
pub struct StepTable;

/// The argument for [`StepTable`].
pub struct Taken<'a> {
    /// Two words for each step; those of one at least.
    pub words: &'a [u64],
    /// How many steps are taken of them.
    pub count: usize,
    /// What they are of.
    pub steps: &'a Steps,
}

/// Some steps in a kernel.
pub struct StepParams<'b> {
    table: Pointer<'b>,
    /// Their number.
    pub count: Value<'b>,
    /// Sequences.
    pub batch: Value<'b>,
    apart: Value<'b>,
}

impl Parameter for StepTable {
    type Type = ();
    type Argument<'a> = Taken<'a>;
    type Declared<'b> = StepParams<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, (): &()) -> StepParams<'b> {
        let table = Table::declare(b, "table", &DType::U32);
        let number = |name: &str| U32::declare(b, name, &());
        StepParams { table, count: number("count"), batch: number("batch"), apart: number("apart") }
    }

    fn pass(taken: &Taken, (): &(), block: &mut ArgumentBlock) {
        Table::pass(&taken.words, &DType::U32, block);
        for number in [taken.count as u32, taken.steps.batch, taken.steps.apart] {
            U32::pass(&number, &(), block);
        }
    }
}

/// One step in a kernel.
pub struct StepPlace<'b> {
    first: Value<'b>,
    apart: Value<'b>,
    /// Sequences that have it.
    pub active: Value<'b>,
}

impl<'b> StepPlace<'b> {
    /// The row of a sequence that has the step.
    pub fn row(&self, sequence: Value<'b>) -> Value<'b> {
        self.first + sequence * self.apart
    }
}

impl<'b> StepParams<'b> {
    /// Step `i`.
    pub fn step(&self, i: Value<'b>) -> StepPlace<'b> {
        self.place(i * 4)
    }

    /// The step that the recurrence takes before step `i`; no sequence has the one before the
    /// first.
    pub fn before(&self, i: Value<'b>) -> StepPlace<'b> {
        self.place(i * 4 + 2)
    }

    fn place(&self, at: Value<'b>) -> StepPlace<'b> {
        StepPlace { first: self.table.load(at), apart: self.apart, active: self.table.load(at + 1) }
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
    fn a_step_comes_with_the_one_before() {
        let steps = Steps::new(6, 3, &[3, 2, 1], false, false).expect("steps");
        let word = |first: u64, active: u64| first | active << 32;
        assert_eq!(steps.words(1, 2), [word(3, 2), word(0, 3), word(5, 1), word(3, 2)]);
        assert_eq!(steps.words_back(0, 2), [word(3, 2), word(0, 3), word(0, 3), 0]);
    }

    #[test]
    fn rows_that_are_no_steps_are_refused() {
        for batch_sizes in [&[2, 3][..], &[3, 3, 1], &[3, 3, 0], &[2, 2, 2]] {
            assert!(Steps::new(6, 3, batch_sizes, false, false).is_err(), "{batch_sizes:?}");
        }
        assert!(Steps::new(7, 3, &[], false, false).is_err());
    }
}
