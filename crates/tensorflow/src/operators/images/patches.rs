//! Patches of images and of volumes as a dimension of their own.

use crate::c_api::Attributes;
use crate::error::{Error, Result};
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{FLOATS, MOVED_FLOATS};
use crate::operators::common::window::{Padding, Spatial};
use crate::require;
use dml_compute::movement::copy;
use dml_compute::{Dims, Scalar, View};

/// What an operator's attributes say of its patches.
struct Patches {
    kernel: Spatial,
    stride: Spatial,
    dilation: Spatial,
    padding: Padding,
}

/// The spatial part of an attribute that is a list for all dimensions, with channels last.
fn spatial(attributes: &Attributes, name: &str, rank: usize) -> Result<Spatial> {
    let list = attributes.ints(name)?;
    require!(list.len() == rank + 2, "{name} must have {} values: {list:?}", rank + 2);
    if list[0] != 1 || list[rank + 1] != 1 {
        return Err(Error::Unimplemented(format!("Only support {name} across space: {list:?}")));
    }
    require!(list.iter().all(|&n| n > 0), "{name} must be positive: {list:?}");
    Ok(list[1..=rank].iter().copied().collect())
}

impl Patches {
    fn new(attributes: &Attributes, rank: usize) -> Result<Self> {
        let has_rates = attributes.has("rates")?;
        Ok(Self {
            kernel: spatial(attributes, "ksizes", rank)?,
            stride: spatial(attributes, "strides", rank)?,
            dilation: if has_rates { spatial(attributes, "rates", rank)? } else { Spatial::from_elem(1, rank) },
            padding: match attributes.string("padding")?.as_str() {
                "SAME" => Padding::Same,
                _ => Padding::Valid,
            },
        })
    }

    fn run(&self, call: &Call) -> Result<()> {
        let (cx, mut input) = (call.cx(), call.input(0)?);
        let rank = self.kernel.len();
        require!(input.dim() == rank + 2, "input must be {}-dimensional: {:?}", rank + 2, input.sizes);
        let (mut counts, mut padded) = (Spatial::new(), input.sizes.clone());
        let mut starts = Spatial::new();
        for d in 0..rank {
            let (size, window) = (input.sizes[1 + d], (self.kernel[d] - 1) * self.dilation[d] + 1);
            let (count, before) = self.padding.windows(d, size, window, self.stride[d])?;
            counts.push(count);
            starts.push(before);
            padded[1 + d] = size.max((count - 1) * self.stride[d] + window - before) + before;
        }
        let taps: i64 = self.kernel.iter().product();
        let mut sizes = Dims::from_slice(&[input.sizes[0]]);
        sizes.extend_from_slice(&counts);
        sizes.push(taps * input.sizes[rank + 1]);
        let mut out = call.output(0, &sizes)?;
        if out.numel() == 0 {
            return Ok(());
        }
        if input.dtype.is_complex() {
            // A number is two channels.
            for t in [&mut input, &mut out] {
                t.dtype = t.dtype.real();
                let last = t.dim() - 1;
                t.sizes[last] *= 2;
                t.strides = View::contiguous_strides(&t.sizes);
            }
            padded[rank + 1] *= 2;
        }
        // Zeros around the images, then their patches as a view with overlaps.
        let images = if padded == input.sizes {
            input
        } else {
            let images = cx.empty(input.dtype, &padded)?;
            copy::fill_with(&cx, &images, Scalar::Int(0))?;
            let mut inner = images.clone();
            for (d, &start) in starts.iter().enumerate() {
                inner = inner.narrow(1 + d, start, input.sizes[1 + d]);
            }
            copy::device_copy(&cx, &input, &inner)?;
            images
        };
        let steps =
            |by: &Spatial| by.iter().zip(&images.strides[1..]).map(|(n, stride)| n * stride).collect::<Spatial>();
        let together = |first: i64, a: &[i64], b: &[i64], last: i64| {
            let mut all = Dims::from_slice(&[first]);
            all.extend(a.iter().chain(b).copied());
            all.push(last);
            all
        };
        let sizes = together(images.sizes[0], &counts, &self.kernel, images.sizes[rank + 1]);
        let strides = together(images.strides[0], &steps(&self.stride), &steps(&self.dilation), 1);
        let patches = images.as_strided(&sizes, &strides, 0);
        let result = out.as_strided(&sizes, &View::contiguous_strides(&sizes), 0);
        Ok(copy::device_copy(&cx, &patches, &result)?)
    }
}

fn operator(name: &'static str, rank: usize) -> Operator {
    Operator::new(name, move |attributes: &Attributes| {
        let patches = Patches::new(attributes, rank)?;
        Ok(move |call: &Call| patches.run(call))
    })
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![operator("ExtractImagePatches", 2).of("T", MOVED_FLOATS), operator("ExtractVolumePatches", 3).of("T", FLOATS)]
}
