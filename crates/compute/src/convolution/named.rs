//! Defaults of the convolution operators with fewer arguments.

use crate::convolution::geometry::Arguments;
use crate::view::View;

/// A convolution of stride 1 without padding, dilation or groups.
pub const UNIT_STRIDE: Arguments<'static> =
    Arguments { stride: &[1], padding: &[0], dilation: &[1], transposed: false, output_padding: &[0], groups: 1 };

/// A view with an additional batch dimension of size one.
pub fn unsqueeze(t: &View) -> View {
    let (mut sizes, mut strides) = (t.sizes.clone(), t.strides.clone());
    sizes.insert(0, 1);
    strides.insert(0, t.numel().max(1));
    t.as_strided(&sizes, &strides, 0)
}
