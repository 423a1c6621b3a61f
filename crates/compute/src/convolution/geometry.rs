//! The checked shape of a convolution.

use crate::view::Dims;
use smallvec::SmallVec;

/// One value per spatial dimension.
pub type Spatial = SmallVec<[i64; 3]>;

/// A convolution from `input` to `output` channels over 1, 2 or 3 spatial dimensions. A transposed
/// convolution is the same one with the roles of its input and its result exchanged.
#[derive(Clone, Debug)]
pub struct Geometry {
    /// Number of images.
    pub batch: i64,
    /// Number of groups of channels, which are independent of each other.
    pub groups: i64,
    /// Channels in one group and spatial sizes of the larger side (a plain convolution's input).
    pub inner: (i64, Spatial),
    /// Channels in one group and spatial sizes of the other side (a plain convolution's result).
    pub outer: (i64, Spatial),
    /// Spatial sizes of the weight.
    pub kernel: Spatial,
    /// Steps of the window over the inner side.
    pub stride: Spatial,
    /// Zeros before the inner side. Those after it are as many as the outer side's size needs.
    pub padding: Spatial,
    /// Distance between the window's elements.
    pub dilation: Spatial,
    /// The operator is the transposed convolution: it maps the outer side to the inner side.
    pub transposed: bool,
}

/// The arguments of an operator that describe its convolution.
pub struct Arguments<'a> {
    /// Step of the window.
    pub stride: &'a [i64],
    /// Zeros around the input.
    pub padding: &'a [i64],
    /// Distance between the window's elements.
    pub dilation: &'a [i64],
    /// Whether it is a transposed convolution.
    pub transposed: bool,
    /// Added to one side of a transposed convolution's result.
    pub output_padding: &'a [i64],
    /// Number of groups of channels.
    pub groups: i64,
}

impl Geometry {
    /// Whether every window is one pixel, and each pixel has one window.
    pub fn is_pointwise(&self) -> bool {
        let all = |values: &[i64], x: i64| values.iter().all(|&n| n == x);
        all(&self.kernel, 1) && all(&self.stride, 1) && all(&self.padding, 0)
    }

    /// Sizes of the operator's result.
    pub fn result(&self) -> Dims {
        let (channels, spatial) = if self.transposed { &self.inner } else { &self.outer };
        let mut sizes = Dims::from_slice(&[self.batch, channels * self.groups]);
        sizes.extend_from_slice(spatial);
        sizes
    }
}

/// A list of values in the format of the CPU's messages: a single spatial dimension is the width,
/// with a height of `height`.
pub fn format_sizes(name: &str, values: &[i64], height: i64) -> String {
    let mut values = Spatial::from_slice(values);
    if values.len() == 1 {
        values.insert(0, height);
    }
    let axes = &["depth", "height", "width"][3 - values.len()..];
    axes.iter().zip(values).map(|(axis, n)| format!("{name}_{axis}: {n}")).collect::<Vec<_>>().join(" ")
}

/// Sizes joined by crosses: `2 x 3`.
pub fn format_product(sizes: impl Iterator<Item = i64>) -> String {
    sizes.map(|n| n.to_string()).collect::<Vec<_>>().join(" x ")
}
