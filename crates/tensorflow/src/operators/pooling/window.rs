//! The windows of pooling operators.

use crate::c_api::Attributes;
use crate::error::{Error, Result};
use crate::kernel::{Call, Operator};
use crate::operators::common::window::{Format, Padding, Spatial};
use crate::require;
use dml_compute::Dims;
use dml_compute::spatial::pooling::window::Windows;
use dml_kernel::DType;

/// What an operator says of its windows.
#[derive(Clone, Debug)]
pub struct Pooling {
    /// The place of channels.
    pub format: Format,
    padding: Padding,
    kernel: Spatial,
    stride: Spatial,
}

impl Pooling {
    /// Of an operator with `rank` spatial dimensions.
    pub fn new(attributes: &Attributes, rank: usize) -> Result<Self> {
        let format = Format::of(attributes)?;
        let padding = Padding::of(attributes, format, rank)?;
        Self::of(format, padding, &attributes.ints("ksize")?, &attributes.ints("strides")?, rank)
    }

    /// The attributes of an operator over images whose windows are inputs.
    pub fn without_windows(attributes: &Attributes) -> Result<(Format, Padding)> {
        let format = Format::of(attributes)?;
        Ok((format, Padding::of(attributes, format, 2)?))
    }

    /// Windows of these sizes and strides, which are lists for all dimensions.
    pub fn of(format: Format, padding: Padding, kernel: &[i64], stride: &[i64], rank: usize) -> Result<Self> {
        for (name, list) in [("ksize", kernel), ("strides", stride)] {
            require!(
                list.len() == rank + 2,
                "Sliding window {name} field must specify {} dimensions, got {list:?}",
                rank + 2
            );
            require!(list.iter().all(|&n| n > 0), "{name} must be a positive int32 value, got: {list:?}");
        }
        let ((batch, channels, kernel), (b, c, stride)) = (format.split(kernel), format.split(stride));
        if [batch, channels, b, c] != [1; 4] {
            let message = "Pooling is not yet supported on the batch and depth dimensions.";
            return Err(Error::Unimplemented(message.to_owned()));
        }
        Ok(Self { format, padding, kernel, stride })
    }

    /// The windows over images of this shape, and the shape of the result.
    pub fn windows(&self, sizes: &[i64]) -> Result<(Windows, Dims)> {
        let rank = self.kernel.len();
        require!(sizes.len() == rank + 2, "tensor_in must be {}-dimensional: {sizes:?}", rank + 2);
        let (batch, channels, spatial) = self.format.split(sizes);
        let (mut counts, mut padding) = (Spatial::new(), Spatial::new());
        for (d, &size) in spatial.iter().enumerate() {
            let (count, before) = self.padding.windows(d, size, self.kernel[d], self.stride[d])?;
            counts.push(count);
            padding.push(before);
        }
        if let Padding::Explicit(pairs) = &self.padding {
            let small = pairs.iter().zip(&self.kernel).all(|(pair, &size)| pair.iter().all(|&n| n < size));
            require!(small, "padding must be smaller than the window: {pairs:?} vs {:?}", self.kernel);
        }
        let windows = Windows {
            kernel: self.kernel.clone(),
            stride: self.stride.clone(),
            padding,
            dilation: Spatial::from_elem(1, rank),
            ceil: false,
        };
        Ok((windows, self.format.sizes(batch, channels, &counts)))
    }
}

/// An operator over windows that attributes describe, with `rank` spatial dimensions.
pub fn operator(
    name: &'static str,
    rank: usize,
    compute: fn(&Call, &Pooling) -> Result<()>,
    dtypes: &'static [DType],
) -> Operator {
    let make = move |attributes: &Attributes| {
        let pooling = Pooling::new(attributes, rank)?;
        Ok(move |call: &Call| compute(call, &pooling))
    };
    Operator::new(name, make).of("T", dtypes)
}
