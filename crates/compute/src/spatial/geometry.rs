//! Images of one to three spatial dimensions, as used by pooling, resampling, padding and sampling.
//!
//! A tensor is `[batch, channels, spatial ...]` with its own strides; the batch may be missing.
//! Spatial dimensions are width, height and width, or depth, height and width. Results keep the
//! input's memory format.

use crate::view::{Dims, View, layout, memory_format};
use dml_engine::interface::{I32, Index};
use dml_engine::{ArgumentBlock, Parameter};
use dml_kernel::{Builder, ScalarType, Value};
use smallvec::SmallVec;

/// One value for each spatial dimension.
pub type Spatial = SmallVec<[i64; 3]>;

/// The shape of `input` with other sizes of the spatial dimensions.
pub fn sizes_with(input: &View, spatial: &[i64]) -> Dims {
    let mut sizes = input.sizes.clone();
    let lead = sizes.len() - spatial.len();
    sizes[lead..].copy_from_slice(spatial);
    sizes
}

/// Whether a tensor with `rank` spatial dimensions has a batch, and is channels-last.
pub fn channels_last(t: &View, rank: usize) -> bool {
    t.dim() == rank + 2 && memory_format::is_channels_last(t)
}

/// A tensor with `rank` spatial dimensions, with a batch dimension of size 1 if it has no batch.
pub fn batched(t: &View, rank: usize) -> View {
    if t.dim() == rank + 2 {
        return t.clone();
    }
    let mut sizes = Dims::from_slice(&[1]);
    let mut strides = Dims::from_slice(&[0]);
    sizes.extend(t.sizes.iter().copied());
    strides.extend(t.strides.iter().copied());
    t.as_strided(&sizes, &strides, 0)
}

/// The integer type of offsets into these tensors.
pub fn index_type(tensors: &[&View]) -> ScalarType {
    let furthest = tensors.iter().map(|t| t.reach().max(t.numel())).max().unwrap_or(0);
    layout::index_type(furthest)
}

/// Kernel parameter: the strides of a batched tensor.
pub struct ImageStrides;

/// The strides of a batched tensor in a kernel.
pub struct Strides<'b> {
    batch: Value<'b>,
    channel: Value<'b>,
    spatial: Vec<Value<'b>>,
}

impl Parameter for ImageStrides {
    /// The integer type of offsets, and the number of spatial dimensions.
    type Type = (ScalarType, usize);
    type Argument<'a> = &'a View;
    type Declared<'b> = Strides<'b>;

    fn declare<'b>(b: &'b Builder, name: &str, &(index, rank): &(ScalarType, usize)) -> Strides<'b> {
        let (batch, channel) = (b.param(&format!("{name}_n"), index), b.param(&format!("{name}_c"), index));
        Strides { batch, channel, spatial: (0..rank).map(|d| b.param(&format!("{name}_{d}"), index)).collect() }
    }

    fn pass(t: &&View, (index, rank): &(ScalarType, usize), block: &mut ArgumentBlock) {
        if t.dim() != rank + 2 {
            block.mismatch("a tensor has not the spatial dimensions that the kernel is made for");
        }
        for stride in &t.strides {
            Index::pass(stride, index, block);
        }
    }
}

impl<'b> Strides<'b> {
    /// Number of spatial dimensions.
    pub fn rank(&self) -> usize {
        self.spatial.len()
    }

    /// Offset of the plane of this batch and channel.
    pub fn image(&self, at: &Coordinates<'b>) -> Value<'b> {
        at.batch * self.batch + at.channel * self.channel
    }

    /// Offset of coordinate `at` (i32) in spatial dimension `d`.
    pub fn step(&self, d: usize, at: Value<'b>) -> Value<'b> {
        at.cast(self.spatial[d].scalar()) * self.spatial[d]
    }

    /// Offset of a pixel (i32 coordinates) in its plane.
    pub fn pixel(&self, at: &[Value<'b>]) -> Value<'b> {
        let mut offset = self.step(0, at[0]);
        for (d, &x) in at.iter().enumerate().skip(1) {
            offset = offset + self.step(d, x);
        }
        offset
    }

    /// Offset of an element.
    pub fn element(&self, at: &Coordinates<'b>) -> Value<'b> {
        self.image(at) + self.pixel(&at.at)
    }
}

/// The coordinates of an invocation's element.
pub struct Coordinates<'b> {
    /// Index in the batch.
    pub batch: Value<'b>,
    /// Channel.
    pub channel: Value<'b>,
    /// Spatial coordinates, i32.
    pub at: Vec<Value<'b>>,
}

impl<'b> Coordinates<'b> {
    /// The coordinates of element `i` of images of `size`, with elements counted in channels-first
    /// or channels-last order.
    pub fn new(i: Value<'b>, channels: Value<'b>, size: &[Value<'b>], channels_last: bool) -> Coordinates<'b> {
        let index = i.scalar();
        let mut rest = i;
        let mut split = |n: Value<'b>| {
            let quotient = rest / n;
            let here = rest - quotient * n;
            rest = quotient;
            here
        };
        let mut channel = channels_last.then(|| split(channels));
        let mut at: Vec<Value> = size.iter().rev().map(|n| split(n.cast(index)).cast(ScalarType::I32)).collect();
        at.reverse();
        let channel = *channel.get_or_insert_with(|| split(channels));
        Coordinates { batch: rest, channel, at }
    }
}

/// Kernel parameter: a number for each spatial dimension (i32), such as sizes or properties of
/// windows.
pub struct PerAxis;

impl Parameter for PerAxis {
    /// The number of spatial dimensions.
    type Type = usize;
    type Argument<'a> = &'a [i64];
    type Declared<'b> = Vec<Value<'b>>;

    fn declare<'b>(b: &'b Builder, name: &str, &rank: &usize) -> Vec<Value<'b>> {
        (0..rank).map(|d| b.param(&format!("{name}_{d}"), ScalarType::I32)).collect()
    }

    fn pass(numbers: &&[i64], rank: &usize, block: &mut ArgumentBlock) {
        if numbers.len() != *rank {
            block.mismatch("there are more or fewer numbers than spatial dimensions");
        }
        for &n in *numbers {
            I32::pass(&(n as i32), &(), block);
        }
    }
}

/// Row-major index of a pixel (i32 coordinates) of images of `size`, of the signed type with the
/// width of `index`.
pub fn pixel_number<'b>(at: &[Value<'b>], size: &[Value<'b>], index: ScalarType) -> Value<'b> {
    let wide = if index == ScalarType::U64 { ScalarType::I64 } else { ScalarType::I32 };
    let mut number = at[0].cast(wide);
    for (x, n) in at.iter().zip(size).skip(1) {
        number = number * n.cast(wide) + x.cast(wide);
    }
    number
}

/// Runs `body` for every point of a grid, given by the first, the end and the step of each
/// dimension; the last dimension is the innermost loop.
pub fn for_each<'b>(b: &'b Builder, ranges: &[[Value<'b>; 3]], mut body: impl FnMut(&[Value<'b>])) {
    nest(b, ranges, &mut Vec::new(), &mut body);
}

fn nest<'b>(b: &'b Builder, ranges: &[[Value<'b>; 3]], at: &mut Vec<Value<'b>>, body: &mut dyn FnMut(&[Value<'b>])) {
    let Some((&[first, end, step], inner)) = ranges.split_first() else { return body(at) };
    b.for_(first, end, step, |x| {
        at.push(x);
        nest(b, inner, at, body);
        at.pop();
    });
}
