//! How a reduction is laid over workgroups. It depends on shapes, strides and addresses, never on the adapter.

use super::Reduction;
use crate::launch::GROUP;
use crate::layout::Layout;
use crate::tensor::{Dims, Tensor};
use dml_kernel::Scalar;
use smallvec::SmallVec;

/// Elements that one invocation folds before the reduction is split into parts for more workgroups.
const FEW: i64 = 32;
/// Elements that one invocation folds at most: bounds the rounding error of its chains.
const MANY: i64 = 128;
/// Workgroups that keep a large adapter busy.
const ENOUGH_GROUPS: i64 = 1024;
/// Neighbouring outputs in a workgroup when their elements are neighbours in memory.
const COLUMNS: i64 = 32;

/// The operands split into kept and reduced dimensions.
pub(super) struct Plan {
    /// Kept dimensions: strides of the inputs, then of the results.
    pub kept: Layout,
    /// Reduced dimensions: strides of the inputs.
    reduced: Layout,
    /// Type of positions and offsets.
    pub index: Scalar,
    /// Results.
    pub outputs: i64,
    /// Elements of each result.
    extent: i64,
    inputs: usize,
}

/// One launch.
pub(super) struct Pass {
    /// Reads the inputs, not partial results.
    pub first: bool,
    /// Strides of what is read, over the kept dimensions.
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
    pub fn new(r: &Reduction, ordered: bool) -> Plan {
        let axes = &r.axes;
        let kept: SmallVec<[Tensor; 6]> =
            r.inputs.iter().map(|t| axes.part(t, false)).chain(r.outs.iter().map(|t| axes.kept_of_result(t))).collect();
        let reduced: SmallVec<[Tensor; 4]> = r.inputs.iter().map(|t| axes.part(t, true)).collect();
        let mut kept = Layout::new(&kept.iter().collect::<SmallVec<[&Tensor; 6]>>());
        let reduced_refs: SmallVec<[&Tensor; 4]> = reduced.iter().collect();
        let mut reduced = if ordered { in_order(&reduced_refs) } else { Layout::new(&reduced_refs) };
        let tensors = r.inputs.iter().chain(r.outs).chain(r.tables);
        let furthest = tensors.map(|t| t.reach()).max().unwrap_or(0).max(r.inputs[0].numel());
        let index = crate::layout::index_type(furthest);
        (kept.index, reduced.index) = (index, index);
        Plan {
            outputs: r.outs[0].numel(),
            extent: axes.extent(&r.inputs[0].sizes),
            inputs: r.inputs.len(),
            kept,
            reduced,
            index,
        }
    }

    /// The pass that reads the inputs.
    pub fn first(&self, r: &Reduction) -> Pass {
        let (kept, reduced) = (&self.kept, &self.reduced);
        // Neighbouring invocations read neighbouring elements.
        let lanes_first = kept.rank() == 0 || reduced.rank() > 0 && reduced.strides[0][0] <= kept.strides[0][0];
        let width = if lanes_first { self.width(r.inputs) } else { 1 };
        let mut read = reduced.clone();
        if width > 1 {
            read.sizes[0] /= width;
        }
        let strides = kept.strides[..self.inputs].iter().cloned().collect();
        let constants = (0..self.inputs).fold(0, |mask, t| mask | u32::from(self.is_constant(t)) << t);
        Pass { constants, ..self.pass(true, strides, read, lanes_first, width, self.extent / width) }
    }

    /// Whether input `t` is expanded over the reduced dimensions.
    fn is_constant(&self, t: usize) -> bool {
        self.reduced.rank() > 0 && self.reduced.is_constant(t)
    }

    /// The pass that reads the partial results of `before`; there are `accumulators` tensors of them.
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
        let share = (each * blocks / ENOUGH_GROUPS).clamp(FEW, MANY) / 4 * 4;
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

    /// The kept dimensions as a pass walks them: strides of what it reads, then of what it writes.
    pub fn kept_with(&self, pass: &Pass) -> Layout {
        let mut strides = pass.read_strides.clone();
        if pass.parts == 1 {
            strides.extend(self.kept.strides[self.inputs..].iter().cloned());
        } else {
            // One tensor of partial results per accumulator; they are alike, so the kernel walks one for all.
            strides.push(pass.partial_strides.clone());
        }
        Layout { sizes: self.kept.sizes.clone(), strides, index: self.index }
    }

    /// Elements that one access can take: 16 bytes of the widest input, if every row of every input is dense and
    /// starts at such a boundary. Inputs that are constant over a row do not count.
    fn width(&self, inputs: &[&Tensor]) -> i64 {
        let rows: SmallVec<[usize; 4]> = (0..self.inputs).filter(|&t| !self.is_constant(t)).collect();
        let widest = rows.iter().map(|&t| inputs[t].element_size()).max().unwrap_or(16);
        let width = 16 / widest as i64;
        let dense = self.reduced.rank() == 1 && rows.iter().all(|&t| self.reduced.strides[t][0] == 1);
        let whole = self.extent % width == 0;
        let aligned = rows.iter().all(|&t| {
            inputs[t].data.is_multiple_of(width as u64 * inputs[t].element_size())
                && self.kept.strides[t].iter().all(|s| s % width == 0)
        });
        if dense && whole && aligned { width } else { 1 }
    }
}

impl Pass {
    /// Workgroups, folded into two dimensions where one is too short.
    pub fn groups(&self) -> [u32; 3] {
        let all = i64::from(self.blocks) * self.parts;
        let rows = ceil_div(all, 65_535);
        [ceil_div(all, rows) as u32, rows as u32, 1]
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

/// Like [`Layout::new`], but the walk is in row-major order.
fn in_order(operands: &[&Tensor]) -> Layout {
    let sizes = &operands[0].sizes;
    let dense = Tensor::contiguous_strides(sizes);
    let dense = operands[0].as_strided(sizes, &dense, 0);
    let mut all: SmallVec<[&Tensor; 5]> = SmallVec::new();
    all.push(&dense);
    all.extend(operands.iter().copied());
    let mut layout = Layout::new(&all);
    layout.strides.remove(0);
    layout
}
