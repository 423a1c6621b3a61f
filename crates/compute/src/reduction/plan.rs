//! How a reduction is laid over workgroups. It depends on shapes, strides and addresses, never on
//! the adapter.

use crate::reduction::fold::Reduction;
use crate::view::layout::{Layout, index_type, order};
use crate::view::{Dims, View};
use dml_kernel::ScalarType;
use dml_kernel::dense::{self, GROUP};
use smallvec::SmallVec;
use std::borrow::Cow;

/// Elements that one invocation folds before the reduction is split into parts for more workgroups.
const MIN_SHARE: i64 = 32;

/// Elements that one invocation folds at most: bounds the rounding error of its chains.
const MAX_SHARE: i64 = 128;

/// Workgroups that keep a large adapter busy.
const ENOUGH_GROUPS: i64 = 1024;

/// Neighbouring outputs in a workgroup when their elements are neighbours in memory.
const COLUMNS: i64 = 32;

/// The operands split into kept and reduced dimensions.
pub struct Plan {
    /// Kept dimensions: strides of the inputs, then of the results.
    pub kept: Layout,
    /// Type of positions and offsets.
    pub index: ScalarType,
    /// Results.
    pub outputs: i64,
    /// Elements of each result.
    extent: i64,
    inputs: usize,
}

/// One launch.
pub struct Pass {
    /// Reads the inputs, not partial results.
    pub first: bool,
    /// Strides of the partial results that a later pass reads, over the kept dimensions.
    read_strides: SmallVec<[Dims; 4]>,
    /// Strides of partial results over the kept dimensions, when there is a next pass.
    partial_strides: Dims,
    /// Reduced dimensions.
    pub reduced: Layout,
    /// Invocations that share one output; a power of two.
    pub lanes: u32,
    /// Neighbouring invocations share an output; otherwise they have neighbouring outputs.
    pub lanes_first: bool,
    /// Elements in one access.
    pub width: u32,
    /// A bit for each input: it is one element for all that an output folds.
    pub constants: u32,
    /// Accesses that one output needs.
    pub extent: i64,
    /// Parts of the extent that different workgroups fold.
    pub parts: i64,
    /// Accesses in a part.
    pub part_length: i64,
    /// Step between the partial results of two parts.
    pub part_stride: i64,
    /// Workgroups in a part.
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
            kept.push(axes.kept_of_result(t));
        }
        let walk = |sizes: &[i64], strides: &[Dims], ordered: bool| {
            let mut all: SmallVec<[&[i64]; 6]> = SmallVec::new();
            for s in strides {
                all.push(s);
            }
            if ordered { Layout::row_major(sizes, &all) } else { Layout::walk(sizes, &all, &order(sizes, &all)) }
        };
        let mut kept = walk(&axes.part(sizes, false), &kept, false);
        let mut reduced = walk(&axes.part(sizes, true), &reduced, ordered);
        // Positions are not divided by a size of 0: a driver may run the body of a loop of no
        // steps, and load from there.
        reduced.sizes.iter_mut().for_each(|n| *n = (*n).max(1));
        let tensors = r.inputs.iter().chain(r.outs).chain(r.tables);
        let furthest = tensors.map(|t| t.reach()).max().unwrap_or(0).max(r.inputs[0].numel());
        let index = index_type(furthest);
        (kept.index, reduced.index) = (index, index);
        let plan = Plan { outputs: r.outs[0].numel(), extent: axes.extent(sizes), inputs: r.inputs.len(), kept, index };
        let first = plan.first(r, reduced);
        (plan, first)
    }

    /// The pass that reads the inputs, whose strides over the reduced dimensions are `read`'s.
    fn first(&self, r: &Reduction, mut read: Layout) -> Pass {
        let kept = &self.kept;
        // Neighbouring invocations read neighbouring elements.
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

    /// The pass that reads the partial results of `before`; there are `accumulators` tensors of
    /// them.
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
        // Shares are multiples of 4, the independent chains of an invocation.
        let each = ceil_div(extent, lanes) * width;
        let share = (each * blocks / ENOUGH_GROUPS).clamp(MIN_SHARE, MAX_SHARE) / 4 * 4;
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

    /// The kept dimensions with the strides of what a pass reads, then of what it writes.
    pub fn kept(&self, pass: &Pass) -> Cow<'_, Layout> {
        if pass.first && pass.parts == 1 {
            return Cow::Borrowed(&self.kept);
        }
        let reads = if pass.first { &self.kept.strides[..self.inputs] } else { &pass.read_strides };
        // One tensor of partial results per accumulator; they are alike, so the kernel walks one
        // for all.
        let partial = std::slice::from_ref(&pass.partial_strides);
        let writes = if pass.parts == 1 { &self.kept.strides[self.inputs..] } else { partial };
        let strides = reads.iter().chain(writes).cloned().collect();
        Cow::Owned(Layout { sizes: self.kept.sizes.clone(), strides, index: self.index })
    }

    /// Elements that one access can take: 16 bytes of the widest input, if every row of every input
    /// is dense and starts at such a boundary. Inputs that are constant over a row do not count.
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
    /// Workgroups, folded into two dimensions where one is too short.
    pub fn groups(&self) -> [u32; 3] {
        dense::folded(u64::from(self.blocks) * self.parts as u64)
    }
}

/// Quotient of numbers that are not negative, rounded up.
fn ceil_div(a: i64, b: i64) -> i64 {
    (a + b - 1) / b
}

/// The smallest power of two that is not below, at least 1.
fn power_of_two(n: i64) -> i64 {
    (n.max(1) as u64).next_power_of_two() as i64
}
