//! Pooling windows.

use crate::spatial::geometry::Spatial;
use crate::view::View;

/// Windows along each spatial dimension, in elements.
#[derive(Clone, Debug)]
pub struct Windows {
    /// Size of a window.
    pub kernel: Spatial,
    /// Distance between windows.
    pub stride: Spatial,
    /// Padding on each side of an image.
    pub padding: Spatial,
    /// Distance between elements of a window.
    pub dilation: Spatial,
    /// The last window may extend beyond the padding if it begins inside.
    pub ceil: bool,
}

/// Number of elements of the largest window for pooling `from` to `to`.
pub fn adaptive_len(from: &[i64], to: &[i64]) -> i64 {
    from.iter().zip(to).map(|(&from, &to)| from / to.max(1) + 2).product()
}

impl Windows {
    /// Number of elements of a window.
    pub fn elements(&self) -> i64 {
        self.kernel.iter().product()
    }

    /// Number of spatial dimensions.
    pub fn rank(&self) -> usize {
        self.kernel.len()
    }

    /// Sizes of the result for an image of this size.
    pub fn output(&self, input: &[i64]) -> Spatial {
        let along = |(d, &size): (usize, &i64)| {
            let (stride, pad) = (self.stride[d], self.padding[d]);
            let reach = size + 2 * pad - self.dilation[d] * (self.kernel[d] - 1) - 1;
            let rounded = reach + if self.ceil { stride - 1 } else { 0 };
            let n = rounded.div_euclid(stride) + 1;
            // The last window starts inside the input or its left padding.
            if self.ceil && (n - 1) * stride >= size + pad { n - 1 } else { n }
        };
        input.iter().enumerate().map(along).collect()
    }
}

/// The spatial sizes of a tensor.
pub fn spatial(t: &View, rank: usize) -> &[i64] {
    &t.sizes[t.dim() - rank..]
}
