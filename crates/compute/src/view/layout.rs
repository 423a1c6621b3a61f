//! The iteration over operands of one shape: dimensions are reordered, merged, and indexed in 32 or
//! 64 bits.

use crate::view::{Dims, View, is_contiguous};
use dml_engine::interface::Index;
use dml_engine::{ArgumentBlock, Parameter};
use dml_kernel::{Builder, ScalarType, Value};
use smallvec::SmallVec;

/// The order of iteration: dimensions from fastest to slowest. The first operand whose strides
/// distinguish two dimensions determines their order, so that results of channels-last inputs are
/// channels-last.
pub fn order(sizes: &[i64], operands: &[&[i64]]) -> SmallVec<[usize; 6]> {
    let rank = sizes.len();
    let mut perm: SmallVec<[usize; 6]> = (0..rank).rev().collect();
    // 1: the two must be exchanged; -1: they are in order; 0: undetermined.
    let compare = |d0: usize, d1: usize| -> i32 {
        for strides in operands {
            let (s0, s1) = (strides[d0], strides[d1]);
            if s0 == 0 || s1 == 0 || s0 == s1 && sizes[d0] == sizes[d1] {
                continue;
            }
            if s0 != s1 {
                return if s0 < s1 { -1 } else { 1 };
            }
            if sizes[d0] > sizes[d1] {
                return 1;
            }
        }
        0
    };
    for i in 1..rank {
        let mut current = i;
        for before in (0..i).rev() {
            match compare(perm[before], perm[current]) {
                c if c > 0 => {
                    perm.swap(before, current);
                    current = before;
                }
                c if c < 0 => break,
                _ => {}
            }
        }
    }
    perm
}

/// Strides of a new dense tensor with dimensions in memory order `order` (fastest first).
pub fn dense_strides(sizes: &[i64], order: &[usize]) -> Dims {
    let mut strides = Dims::from_elem(0, sizes.len());
    let mut step = 1;
    for &d in order {
        strides[d] = step;
        step *= sizes[d].max(1);
    }
    strides
}

/// Strides of a pointwise operator's result: the inputs' own if they agree and are dense, otherwise
/// dense in [`order`]. Inputs are already expanded to `sizes`.
pub fn result_strides(sizes: &[i64], inputs: &[&View]) -> Dims {
    let strides: SmallVec<[&[i64]; 4]> = inputs.iter().map(|t| t.strides.as_slice()).collect();
    result_strides_of(sizes, &strides)
}

/// [`result_strides`] for inputs of these strides.
pub fn result_strides_of(sizes: &[i64], inputs: &[&[i64]]) -> Dims {
    if inputs.iter().all(|strides| is_contiguous(sizes, strides)) {
        return View::contiguous_strides(sizes);
    }
    if inputs.iter().all(|&strides| strides == inputs[0]) && are_dense(sizes, inputs[0]) {
        return Dims::from_slice(inputs[0]);
    }
    dense_strides(sizes, &order(sizes, inputs))
}

/// Whether a tensor's elements fill the memory from the first to the last one without sharing.
pub fn is_dense(t: &View) -> bool {
    are_dense(&t.sizes, &t.strides)
}

fn are_dense(sizes: &[i64], strides: &[i64]) -> bool {
    let mut order: SmallVec<[usize; 6]> = (0..sizes.len()).filter(|&d| sizes[d] != 1).collect();
    order.sort_by_key(|&d| strides[d]);
    let mut expected = 1;
    sizes.contains(&0)
        || order.iter().all(|&d| {
            let fits = strides[d] == expected;
            expected *= sizes[d];
            fits
        })
}

/// The strides of a new tensor like `t`: its own if it is dense, otherwise dense ones in the same
/// order.
pub fn preserved_strides(t: &View) -> Dims {
    if is_dense(t) {
        return t.strides.clone();
    }
    dense_strides(&t.sizes, &order(&t.sizes, &[&t.strides]))
}

/// Maximum number of elements for a 32-bit index: the offset in bytes stays below 4 GiB for every
/// dtype, since drivers (NVIDIA's 580.159 among them) multiply a 32-bit index in 32 bits.
pub const MAX_INDEX_32: i64 = 1 << 29;

/// The integer type of an index up to `reach`: u32 or u64.
pub fn index_type(reach: i64) -> ScalarType {
    if reach < MAX_INDEX_32 { ScalarType::U32 } else { ScalarType::U64 }
}

/// Operands of one shape with dimensions reordered (fastest first) and merged where every operand
/// allows it.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Elements of each dimension, fastest first. Empty for a single element.
    pub sizes: Dims,
    /// Strides of each operand, in elements.
    pub strides: SmallVec<[Dims; 4]>,
    /// The [`index_type`] of the largest index and offset.
    pub index: ScalarType,
}

impl Layout {
    /// The operands must have the same sizes; the first one's strides determine the order.
    pub fn new(operands: &[&View]) -> Layout {
        let all: SmallVec<[&[i64]; 4]> = operands.iter().map(|t| t.strides.as_slice()).collect();
        let sizes = &operands[0].sizes;
        Layout::in_order(sizes, &all, &order(sizes, &all))
    }

    /// Operands of these sizes, iterated over in row-major order: element `i` has the row-major
    /// index `i`.
    pub fn row_major(sizes: &[i64], operands: &[&[i64]]) -> Layout {
        let order: SmallVec<[usize; 6]> = (0..sizes.len()).rev().collect();
        Layout::in_order(sizes, operands, &order)
    }

    /// Operands of these sizes, iterated over in an order of dimensions (fastest first). Strides
    /// may be negative.
    pub fn in_order(sizes: &[i64], all: &[&[i64]], order: &[usize]) -> Layout {
        let mut merged = Dims::new();
        let mut strides: SmallVec<[Dims; 4]> = all.iter().map(|_| Dims::new()).collect();
        for &d in order {
            if sizes[d] == 1 {
                continue;
            }
            let last = merged.len().wrapping_sub(1);
            let joins = !merged.is_empty() && strides.iter().zip(all).all(|(s, a)| a[d] == s[last] * merged[last]);
            if joins {
                merged[last] *= sizes[d];
            } else {
                merged.push(sizes[d]);
                for (s, a) in strides.iter_mut().zip(all) {
                    s.push(a[d]);
                }
            }
        }
        let numel: i64 = sizes.iter().product();
        let reach = strides
            .iter()
            .map(|s| merged.iter().zip(s).map(|(n, s)| (n - 1) * s).sum::<i64>())
            .max()
            .unwrap_or(0)
            .max(numel);
        Layout { sizes: merged, strides, index: index_type(reach) }
    }

    /// The specialisation of kernels with this layout.
    pub fn spec(&self) -> LayoutSpec {
        LayoutSpec { rank: self.rank() as u32, operands: self.strides.len() as u32, index: self.index }
    }

    /// Number of dimensions after merging.
    pub fn rank(&self) -> usize {
        self.sizes.len()
    }

    /// Whether operand `i` is dense in the order of iteration.
    pub fn is_dense(&self, i: usize) -> bool {
        match self.rank() {
            0 => true,
            1 => self.strides[i][0] == 1,
            _ => false,
        }
    }

    /// Whether operand `i` is one element for all.
    pub fn is_constant(&self, i: usize) -> bool {
        self.strides[i].iter().all(|&s| s == 0)
    }
}

/// The sizes and strides of a [`Layout`] as kernel parameters.
pub struct LayoutParams<'b> {
    sizes: Vec<Value<'b>>,
    strides: Vec<Vec<Value<'b>>>,
    operands: usize,
    index: ScalarType,
}

/// Kernel parameter: the sizes and strides of a [`Layout`].
pub struct LayoutParameter;

/// The specialisation of kernels by a [`Layout`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct LayoutSpec {
    /// Number of dimensions after merging.
    pub rank: u32,
    /// Number of operands.
    pub operands: u32,
    /// Integer type of indices.
    pub index: ScalarType,
}

impl Parameter for LayoutParameter {
    type Type = LayoutSpec;
    type Argument<'a> = &'a Layout;
    type Declared<'b> = LayoutParams<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, of: &LayoutSpec) -> LayoutParams<'b> {
        declare(b, of.rank as usize, of.operands as usize, of.index)
    }

    fn pass(layout: &&Layout, of: &LayoutSpec, block: &mut ArgumentBlock) {
        if layout.spec() != *of {
            block.mismatch("a layout is not the one that the kernel is made for");
        }
        for d in 0..layout.rank() {
            Index::pass(&layout.sizes[d], &layout.index, block);
            for strides in &layout.strides {
                Index::pass(&strides[d], &layout.index, block);
            }
        }
    }
}

/// Declares the parameters of a layout of this rank.
pub fn declare(b: &Builder, rank: usize, operands: usize, index: ScalarType) -> LayoutParams<'_> {
    let mut sizes = Vec::new();
    let mut strides = Vec::new();
    for d in 0..rank {
        sizes.push(b.param(&format!("size{d}"), index));
        strides.push((0..operands).map(|i| b.param(&format!("stride{i}_{d}"), index)).collect());
    }
    LayoutParams { sizes, strides, operands, index }
}

impl<'b> LayoutParams<'b> {
    /// Number of elements of dimension `d`.
    pub fn size(&self, d: usize) -> Value<'b> {
        self.sizes[d]
    }

    /// Offsets of every operand for the element with index `linear`.
    pub fn offsets(&self, b: &'b Builder, linear: Value<'b>) -> Vec<Value<'b>> {
        let mut rest = linear;
        let mut offsets = vec![b.int(self.index, 0); self.operands];
        for (d, strides) in self.strides.iter().enumerate() {
            let here = if d + 1 == self.strides.len() {
                rest
            } else {
                let quotient = rest / self.sizes[d];
                let remainder = rest - quotient * self.sizes[d];
                rest = quotient;
                remainder
            };
            for (offset, &stride) in offsets.iter_mut().zip(strides) {
                *offset = *offset + here * stride;
            }
        }
        offsets
    }
}
