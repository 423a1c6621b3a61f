//! The order of sequences of different lengths: the longest first, as the recurrence needs it.

use super::network::Sizes;
use crate::error::Result;
use crate::require;
use dml_compute::indexing::index_select::Slices;
use dml_compute::movement::copy;
use dml_compute::primitives::indexed_access::Action;
use dml_compute::recurrent::steps::Steps;
use dml_compute::{Context, Scalar, View};
use dml_kernel::DType;

/// The order of the sequences, and their steps.
pub struct Order {
    /// Which sequence is at each place; `None` if all are of full length.
    places: Option<View>,
    /// How many sequences have each step; empty if all have all.
    active: Vec<i64>,
    sizes: Sizes,
}

impl Order {
    /// Of sequences of these lengths; without any, all have full length.
    pub fn new(cx: &Context, sizes: Sizes, lengths: Option<&[i64]>) -> Result<Self> {
        let all = Self { places: None, active: Vec::new(), sizes };
        let Some(lengths) = lengths else { return Ok(all) };
        require!(
            lengths.len() as i64 == sizes.batch && lengths.iter().all(|length| (1..=sizes.time).contains(length)),
            "sequence_lengths must be {} numbers between 1 and {}, but are {lengths:?}",
            sizes.batch,
            sizes.time
        );
        if lengths.iter().all(|&length| length == sizes.time) {
            return Ok(all);
        }
        let mut places: Vec<i64> = (0..sizes.batch).collect();
        places.sort_by_key(|&sequence| std::cmp::Reverse(lengths[sequence as usize]));
        let bytes: Vec<u8> = places.iter().flat_map(|place| place.to_le_bytes()).collect();
        let places = cx.empty(DType::I64, &[sizes.batch])?;
        cx.upload(places.data, &bytes)?;
        let longest = lengths.iter().max().copied().unwrap_or(0);
        let active = (0..longest).map(|t| lengths.iter().filter(|&&length| length > t).count() as i64).collect();
        Ok(Self { places: Some(places), active, sizes })
    }

    /// Whether there are rows of no sequence.
    pub fn has_gaps(&self) -> bool {
        self.places.is_some()
    }

    /// The steps, from the first or from the last of each sequence.
    pub fn steps(&self, reverse: bool) -> Result<Steps> {
        let Sizes { batch, .. } = self.sizes;
        Ok(if self.has_gaps() {
            Steps::padded(batch, &self.active, reverse)?
        } else {
            Steps::new(self.sizes.rows(), batch, &[], false, reverse)?
        })
    }

    /// Sequences as TensorFlow has them, in this order: `t` is of any strides, with the sequences
    /// in a dimension.
    pub fn sorted(&self, cx: &Context, t: &View, dim: usize) -> Result<View> {
        let Some(index) = &self.places else { return Ok(copy::as_contiguous(cx, t)?) };
        let sorted = cx.empty(t.dtype, &t.sizes)?;
        Slices { dim, index, negative: false }.run(cx, t, &t.sizes, &Action::Read(&sorted))?;
        Ok(sorted)
    }

    /// Writes what is in this order where TensorFlow has it.
    pub fn restore(&self, cx: &Context, sorted: &View, dim: usize, out: &View) -> Result<()> {
        let Some(index) = &self.places else { return Ok(copy::device_copy(cx, sorted, out)?) };
        Ok(Slices { dim, index, negative: false }.run(cx, out, &sorted.sizes, &Action::Write(sorted))?)
    }

    /// Sets the rows of no sequence to 0, in tensors that the recurrence writes.
    pub fn clear(&self, cx: &Context, tensors: &[&View]) -> Result<()> {
        if self.has_gaps() {
            for t in tensors {
                copy::fill_with(cx, t, Scalar::Int(0))?;
            }
        }
        Ok(())
    }
}
