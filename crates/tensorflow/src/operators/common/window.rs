//! Windows over images: the memory order of images, padding, and the sizes of results.

use crate::c_api::Attributes;
use crate::error::{Error, Result};
use crate::require;
use dml_compute::{Dims, View};
use smallvec::SmallVec;

/// One value for each spatial dimension.
pub type Spatial = SmallVec<[i64; 3]>;

/// The place of channels in the shape of images.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// `[batch, channels, spatial..]`
    ChannelsFirst,
    /// `[batch, spatial.., channels]`
    ChannelsLast,
}

impl Format {
    /// The format that the attribute `data_format` names; that of a node without it.
    pub fn of(attributes: &Attributes) -> Result<Self> {
        if !attributes.has("data_format")? {
            return Ok(Self::ChannelsLast);
        }
        match attributes.string("data_format")?.as_str() {
            "NHWC" | "NDHWC" | "CHANNELS_LAST" => Ok(Self::ChannelsLast),
            "NCHW" | "NCDHW" | "CHANNELS_FIRST" => Ok(Self::ChannelsFirst),
            "NCHW_VECT_C" | "NHWC_VECT_W" => Err(Error::Unimplemented("vectorized data formats".to_owned())),
            other => Err(Error::InvalidArgument(format!("Invalid data format: {other}"))),
        }
    }

    /// A tensor of images as `[batch, channels, spatial..]`: the same memory.
    pub fn image(self, t: &View) -> View {
        t.permute(&self.order(t.dim()))
    }

    /// The dimensions of a shape in the order batch, channels, spatial.
    fn order(self, rank: usize) -> SmallVec<[usize; 6]> {
        match self {
            Self::ChannelsFirst => (0..rank).collect(),
            Self::ChannelsLast => [0, rank - 1].into_iter().chain(1..rank - 1).collect(),
        }
    }

    /// The shape of images in the order batch, channels, spatial.
    pub fn image_sizes(self, sizes: &[i64]) -> Dims {
        self.order(sizes.len()).iter().map(|&d| sizes[d]).collect()
    }

    /// The shape of a tensor of images, of this format.
    pub fn sizes(self, batch: i64, channels: i64, spatial: &[i64]) -> Dims {
        let mut sizes = Dims::from_slice(&[batch]);
        sizes.extend_from_slice(spatial);
        sizes.insert(if self == Self::ChannelsFirst { 1 } else { sizes.len() }, channels);
        sizes
    }

    /// The values of a list for all dimensions: of the batch, of the channels, of the spatial ones.
    pub fn split(self, list: &[i64]) -> (i64, i64, Spatial) {
        let in_order = self.image_sizes(list);
        (in_order[0], in_order[1], in_order[2..].iter().copied().collect())
    }

    /// A list of an attribute for all dimensions of images, where batch and channels have 1.
    pub fn spatial_of(self, name: &str, list: &[i64], rank: usize) -> Result<Spatial> {
        require!(list.len() == rank + 2, "{name} must specify {} dimensions, got {list:?}", rank + 2);
        let (batch, channels, spatial) = self.split(list);
        if (batch, channels) != (1, 1) {
            return Err(Error::Unimplemented(format!(
                "{name} in the batch and depth dimensions are not supported: {list:?}"
            )));
        }
        require!(spatial.iter().all(|&n| n > 0), "Row and column {name} should be larger than 0: {list:?}");
        Ok(spatial)
    }
}

/// The padding of images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Padding {
    /// As many windows as the stride allows, with the padding that this needs, half of it before.
    Same,
    /// None.
    Valid,
    /// Before and after each spatial dimension.
    Explicit(SmallVec<[[i64; 2]; 3]>),
}

impl Padding {
    /// The padding that the attributes `padding` and `explicit_paddings` name.
    pub fn of(attributes: &Attributes, format: Format, rank: usize) -> Result<Self> {
        match attributes.string("padding")?.as_str() {
            "SAME" => Ok(Self::Same),
            "VALID" => Ok(Self::Valid),
            "EXPLICIT" => {
                let list = attributes.ints("explicit_paddings")?;
                require!(
                    list.len() == 2 * (rank + 2),
                    "explicit_paddings attribute must contain {} values, but got: {}",
                    2 * (rank + 2),
                    list.len()
                );
                let pairs: Vec<i64> = (0..rank as i64 + 2).collect();
                let (batch, channels, spatial) = format.split(&pairs);
                let pair = |d: i64| [list[2 * d as usize], list[2 * d as usize + 1]];
                require!(
                    pair(batch) == [0, 0] && pair(channels) == [0, 0] && list.iter().all(|&n| n >= 0),
                    "explicit_paddings must be nonnegative, and 0 in the batch and depth dimensions: {list:?}"
                );
                Ok(Self::Explicit(spatial.into_iter().map(pair).collect()))
            }
            other => Err(Error::InvalidArgument(format!("Invalid padding: {other}"))),
        }
    }

    /// The number of windows along a dimension, and the padding before its first element. `size` is
    /// the size of the dimension, `window` what a window covers with its gaps.
    pub fn windows(&self, d: usize, size: i64, window: i64, stride: i64) -> Result<(i64, i64)> {
        let (before, room) = match self {
            Self::Same => {
                let count = (size + stride - 1) / stride;
                let padding = ((count - 1) * stride + window - size).max(0);
                return Ok((count, padding / 2));
            }
            Self::Valid => (0, size - window),
            Self::Explicit(pairs) => (pairs[d][0], size + pairs[d][0] + pairs[d][1] - window),
        };
        let count = (room + stride).div_euclid(stride);
        require!(
            count >= 0,
            "Computed output size would be negative: {count} [input_size: {size}, effective_filter_size: {window}, \
             stride: {stride}]"
        );
        Ok((count, before))
    }
}
