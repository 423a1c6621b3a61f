//! Images of one to three spatial dimensions, as pooling, resampling, padding and sampling see them.
//!
//! A tensor is `[batch, channels, spatial ...]` with its own strides, where the batch may be missing; spatial dimensions
//! are width, height and width, or depth, height and width. Results keep the input's memory format.

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::primitives::launch::Launcher;
use crate::tensor::memory_format;
use crate::tensor::{Dims, Tensor};
use dml_kernel::{Builder, DType, Scalar, Value};
use smallvec::SmallVec;

/// One value a spatial dimension.
pub type Spatial = SmallVec<[i64; 3]>;

/// A result with channels closest in memory or in row-major order: new, or the `out=` argument at `out`.
pub fn result(call: &Call, out: Option<usize>, dtype: DType, sizes: &[i64], channels_last: bool) -> Result<Tensor> {
    let strides = memory_format::strides(sizes, channels_last);
    let Some(i) = out else { return call.empty_strided(dtype, sizes, &strides) };
    let mut given = call.tensor(i)?.clone();
    structured::check_dtype(call, out, dtype)?;
    if given.sizes.as_slice() != sizes {
        call.host.resize(&mut given, sizes, &strides)?;
    }
    Ok(given)
}

/// The shape of `input` with other sizes of the spatial dimensions.
pub fn sizes_with(input: &Tensor, spatial: &[i64]) -> Dims {
    let mut sizes = input.sizes.clone();
    let lead = sizes.len() - spatial.len();
    sizes[lead..].copy_from_slice(spatial);
    sizes
}

/// A tensor with `rank` spatial dimensions with a batch dimension, if it has none.
pub fn batched(t: &Tensor, rank: usize) -> Tensor {
    if t.dim() == rank + 2 {
        return t.clone();
    }
    let mut sizes = Dims::from_slice(&[1]);
    let mut strides = Dims::from_slice(&[0]);
    sizes.extend(t.sizes.iter().copied());
    strides.extend(t.strides.iter().copied());
    t.as_strided(&sizes, &strides, 0)
}

/// The type of offsets into these tensors.
pub fn index_type(tensors: &[&Tensor]) -> Scalar {
    let furthest = tensors.iter().map(|t| t.reach().max(t.numel())).max().unwrap_or(0);
    crate::tensor::layout::index_type(furthest)
}

/// Strides of an operand as kernel parameters.
pub struct Strides<'b> {
    batch: Value<'b>,
    channel: Value<'b>,
    spatial: Vec<Value<'b>>,
}

impl<'b> Strides<'b> {
    /// Declares those of an operand with `rank` spatial dimensions; [`pass_strides`] passes them.
    pub fn declare(b: &'b Builder, index: Scalar, rank: usize) -> Strides<'b> {
        let (batch, channel) = (b.param("stride_n", index), b.param("stride_c", index));
        Strides { batch, channel, spatial: (0..rank).map(|d| b.param(&format!("stride_{d}"), index)).collect() }
    }

    /// Spatial dimensions.
    pub fn rank(&self) -> usize {
        self.spatial.len()
    }

    /// Offset of the image of this batch and channel.
    pub fn image(&self, at: &Place<'b>) -> Value<'b> {
        at.batch * self.batch + at.channel * self.channel
    }

    /// Offset of coordinate `at` (i32) of spatial dimension `d`.
    pub fn step(&self, d: usize, at: Value<'b>) -> Value<'b> {
        at.cast(self.spatial[d].scalar()) * self.spatial[d]
    }

    /// Offset of a pixel (i32 coordinates) in its image.
    pub fn pixel(&self, at: &[Value<'b>]) -> Value<'b> {
        let mut offset = self.step(0, at[0]);
        for (d, &x) in at.iter().enumerate().skip(1) {
            offset = offset + self.step(d, x);
        }
        offset
    }

    /// Offset of an element.
    pub fn element(&self, at: &Place<'b>) -> Value<'b> {
        self.image(at) + self.pixel(&at.at)
    }
}

/// Passes the strides of a batched tensor.
pub fn pass_strides<'c, 'a>(launcher: Launcher<'c, 'a>, index: Scalar, t: &Tensor) -> Launcher<'c, 'a> {
    t.strides.iter().fold(launcher, |l, &s| l.index(index, s))
}

/// Where an invocation's element is.
pub struct Place<'b> {
    /// Image of the batch.
    pub batch: Value<'b>,
    /// Channel.
    pub channel: Value<'b>,
    /// Spatial coordinates, i32.
    pub at: Vec<Value<'b>>,
}

impl<'b> Place<'b> {
    /// The place of element `i` of images of `size` when elements are counted with columns, or with channels, fastest.
    pub fn new(i: Value<'b>, channels: Value<'b>, size: &[Value<'b>], channels_last: bool) -> Place<'b> {
        let index = i.scalar();
        let mut rest = i;
        let mut split = |n: Value<'b>| {
            let quotient = rest / n;
            let here = rest - quotient * n;
            rest = quotient;
            here
        };
        let mut channel = channels_last.then(|| split(channels));
        let mut at: Vec<Value> = size.iter().rev().map(|n| split(n.cast(index)).cast(Scalar::I32)).collect();
        at.reverse();
        let channel = *channel.get_or_insert_with(|| split(channels));
        Place { batch: rest, channel, at }
    }
}

/// Declares an i32 parameter for each spatial dimension; [`pass_axes`] passes them.
pub fn axis_params<'b>(b: &'b Builder, name: &str, rank: usize) -> Vec<Value<'b>> {
    (0..rank).map(|d| b.param(&format!("{name}_{d}"), Scalar::I32)).collect()
}

/// Passes a number of each spatial dimension.
pub fn pass_axes<'c, 'a>(launcher: Launcher<'c, 'a>, numbers: &[i64]) -> Launcher<'c, 'a> {
    numbers.iter().fold(launcher, |l, &n| l.i32(n as i32))
}

/// Row-major number of a pixel (i32 coordinates) of images of `size`, as the signed twin of `index`.
pub fn pixel_number<'b>(at: &[Value<'b>], size: &[Value<'b>], index: Scalar) -> Value<'b> {
    let wide = if index == Scalar::U64 { Scalar::I64 } else { Scalar::I32 };
    let mut number = at[0].cast(wide);
    for (x, n) in at.iter().zip(size).skip(1) {
        number = number * n.cast(wide) + x.cast(wide);
    }
    number
}

/// Runs `body` for every point of a grid, given by the first, the end and the step of each dimension; the last one runs
/// fastest.
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
