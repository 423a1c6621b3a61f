//! How a reduction is divided into passes and workgroups. It depends on shapes, strides and
//! addresses, never on the adapter.

use crate::reduction::fold::Reduction;
use crate::view::layout::{Layout, index_type, order};
use crate::view::{Dims, View};
use dml_kernel::ScalarType;
use dml_kernel::dense::{self, GROUP};
use smallvec::SmallVec;
use std::borrow::Cow;

/// Minimum number of elements that one invocation folds, before the reduction is split into parts
/// for more workgroups.
const MIN_SHARE: i64 = 32;

/// Maximum number of elements that one invocation folds: bounds the rounding error of its chains.
const MAX_SHARE: i64 = 128;

/// Number of workgroups that keep a large adapter busy.
const MIN_WORKGROUPS: i64 = 1024;

/// Adjacent outputs in a workgroup, if the elements of an output are not adjacent in memory.
const COLUMNS: i64 = 32;

/// The operands, with kept and reduced dimensions separated.
pub struct Plan {
    /// Layout of the kept dimensions: strides of the inputs, then of the results.
    pub kept: Layout,
    /// Integer type of positions and offsets.
    pub index: ScalarType,
    /// Number of results.
    pub outputs: i64,
    /// Number of elements of each result.
    extent: i64,
    inputs: usize,
}

/// One launch of the reduction.
pub struct Pass {
    /// Whether the pass reads the inputs, and not partial results.
    pub first: bool,
    /// Strides over the kept dimensions of the partial results that the pass reads.
    read_strides: SmallVec<[Dims; 4]>,
    /// Strides over the kept dimensions of the partial results that the pass writes, if there is a
    /// next pass.
    partial_strides: Dims,
    /// Layout of the reduced dimensions.
    pub reduced: Layout,
    /// Invocations that share one output; a power of two.
    pub lanes: u32,
    /// Neighbouring invocations share an output; otherwise they have neighbouring outputs.
    pub lanes_first: bool,
    /// Elements in one access (vector width).
    pub width: u32,
    /// Bitmask: input i is one element for all elements of an output.
    pub constants: u32,
    /// Number of accesses for one output.
    pub extent: i64,
    /// Number of parts of the extent, which are folded by different workgroups.
    pub parts: i64,
    /// Number of accesses in a part.
    pub part_length: i64,
    /// Distance between the partial results of two parts.
    pub part_stride: i64,
    /// Number of workgroups for each part.
    pub blocks: u32,
}

impl Plan {
    /// The plan, and the pass that reads the inputs.
    pub fn new(r: &Reduction, ordered: bool) -> (Plan, Pass) {
        let (axes, sizes) = (&r.axes, &r.inputs[0].sizes);
        let (mut kept, mut reduced): (SmallVec<[Dims; 6]>, SmallVec<[Dims; 4]>) = Default::default();
        for t in r.inputs {
            kept.push(axes.part(&t.strides, false));
            reduced.push(axes.part(&t.strides, true));
        }
        for t in r.outs {
            kept.push(axes.kept_strides(t));
        }
        let walk = |sizes: &[i64], strides: &[Dims], ordered: bool| {
            let mut all: SmallVec<[&[i64]; 6]> = SmallVec::new();
            for s in strides {
                all.push(s);
            }
            if ordered { Layout::row_major(sizes, &all) } else { Layout::in_order(sizes, &all, &order(sizes, &all)) }
        };
        let mut kept = walk(&axes.part(sizes, false), &kept, false);
        let mut reduced = walk(&axes.part(sizes, true), &reduced, ordered);
        // Sizes of 0 are not used as divisors: a driver may run the body of a loop of no
        // iterations, and load from there.
        reduced.sizes.iter_mut().for_each(|n| *n = (*n).max(1));
        let tensors = r.inputs.iter().chain(r.outs).chain(r.tables);
        let furthest = tensors.map(|t| t.reach()).max().unwrap_or(0).max(r.inputs[0].numel());
        let index = index_type(furthest);
        (kept.index, reduced.index) = (index, index);
        let plan = Plan { outputs: r.outs[0].numel(), extent: axes.extent(sizes), inputs: r.inputs.len(), kept, index };
        let first = plan.first(r, reduced);
        (plan, first)
    }

    /// The pass that reads the inputs. `read` is their layout over the reduced dimensions.
    fn first(&self, r: &Reduction, mut read: Layout) -> Pass {
        let kept = &self.kept;
        // Neighbouring invocations read adjacent elements.
        let lanes_first = kept.rank() == 0 || read.rank() > 0 && read.strides[0][0] <= kept.strides[0][0];
        // Whether an input is expanded over the reduced dimensions.
        let is_constant = |t: usize| read.rank() > 0 && read.is_constant(t);
        let constants = (0..self.inputs).fold(0, |mask, t| mask | u32::from(is_constant(t)) << t);
        let width = if lanes_first { self.width(r.inputs, &read, constants) } else { 1 };
        if width > 1 {
            read.sizes[0] /= width;
        }
        let mut pass = self.pass(true, SmallVec::new(), read, lanes_first, width, self.extent / width);
        pass.constants = constants;
        pass
    }

    /// The pass that reads the partial results of `before`, which are `accumulators` tensors.
    pub fn next(&self, before: &Pass, accumulators: usize) -> Pass {
        let mut sizes = Dims::new();
        if before.parts > 1 {
            sizes.push(before.parts);
        }
        let strides = std::iter::repeat_n(Dims::from_elem(before.part_stride, sizes.len()), accumulators).collect();
        let reduced = Layout { sizes, strides, index: self.index };
        let read = std::iter::repeat_n(before.partial_strides.clone(), accumulators).collect();
        self.pass(false, read, reduced, before.lanes_first, 1, before.parts)
    }

    fn pass(
        &self,
        first: bool,
        read_strides: SmallVec<[Dims; 4]>,
        reduced: Layout,
        lanes_first: bool,
        width: i64,
        extent: i64,
    ) -> Pass {
        let group = i64::from(GROUP);
        let lanes = if lanes_first {
            power_of_two(ceil_div(extent, (4 / width).max(1))).min(group)
        } else {
            power_of_two(ceil_div(extent, 8)).min(group / power_of_two(self.outputs).min(COLUMNS))
        };
        let blocks = ceil_div(self.outputs, group / lanes);
        // Shares are multiples of 4, the number of an invocation's independent chains.
        let each = ceil_div(extent, lanes) * width;
        let share = (each * blocks / MIN_WORKGROUPS).clamp(MIN_SHARE, MAX_SHARE) / 4 * 4;
        let parts = ceil_div(each, share).max(1);
        let part_length = if parts == 1 { extent } else { share / width * lanes };
        let parts = if parts == 1 { 1 } else { ceil_div(extent, part_length) };
        let (step, part_stride) = if lanes_first { (parts, 1) } else { (1, self.outputs) };
        let mut partial_strides = Dims::new();
        let mut outputs = step;
        for &n in &self.kept.sizes {
            partial_strides.push(outputs);
            outputs *= n;
        }
        Pass {
            first,
            read_strides,
            partial_strides,
            reduced,
            lanes: lanes as u32,
            lanes_first,
            width: width as u32,
            constants: 0,
            extent,
            parts,
            part_length,
            part_stride,
            blocks: blocks as u32,
        }
    }

    /// The layout of the kept dimensions: strides of what the pass reads, then of what it writes.
    pub fn kept(&self, pass: &Pass) -> Cow<'_, Layout> {
        if pass.first && pass.parts == 1 {
            return Cow::Borrowed(&self.kept);
        }
        let reads = if pass.first { &self.kept.strides[..self.inputs] } else { &pass.read_strides };
        // There is one tensor of partial results for each accumulator, all with the same strides,
        // so the kernel has one layout for them.
        let partial = std::slice::from_ref(&pass.partial_strides);
        let writes = if pass.parts == 1 { &self.kept.strides[self.inputs..] } else { partial };
        let strides = reads.iter().chain(writes).cloned().collect();
        Cow::Owned(Layout { sizes: self.kept.sizes.clone(), strides, index: self.index })
    }

    /// Vector width: elements in 16 bytes of the widest input, if every row of every input is dense
    /// and aligned to that. Inputs that are constant over a row do not count.
    fn width(&self, inputs: &[&View], reduced: &Layout, constants: u32) -> i64 {
        let mut rows = (0..self.inputs).filter(|t| constants >> t & 1 == 0);
        let widest = rows.clone().map(|t| inputs[t].element_size()).max().unwrap_or(16);
        let width = 16 / widest as i64;
        let dense = reduced.rank() == 1 && rows.clone().all(|t| reduced.strides[t][0] == 1);
        let whole = self.extent % width == 0;
        let aligned = rows.all(|t| {
            inputs[t].data.is_multiple_of(width as u64 * inputs[t].element_size())
                && self.kept.strides[t].iter().all(|s| s % width == 0)
        });
        if dense && whole && aligned { width } else { 1 }
    }
}

impl Pass {
    /// Number of workgroups, folded into two dimensions if one is not enough.
    pub fn groups(&self) -> [u32; 3] {
        dense::folded(u64::from(self.blocks) * self.parts as u64)
    }
}

/// Quotient of non-negative numbers, rounded up.
fn ceil_div(a: i64, b: i64) -> i64 {
    (a + b - 1) / b
}

/// The smallest power of two that is at least `n` and at least 1.
fn power_of_two(n: i64) -> i64 {
    (n.max(1) as u64).next_power_of_two() as i64
}
