//! The convolutions that PyTorch calls by a name of their own: the same kernels under other
//! argument lists.

use crate::convolution::geometry::Arguments;
use crate::view::View;

/// What all of them take: input, weight, the kernel's size, bias.
pub type Operands<'t> = (&'t View, &'t View, &'t [i64], Option<&'t View>);

pub const PLAIN: Arguments<'static> =
    Arguments { stride: &[1], padding: &[0], dilation: &[1], transposed: false, output_padding: &[0], groups: 1 };

pub fn unsqueeze(t: &View) -> View {
    let (mut sizes, mut strides) = (t.sizes.clone(), t.strides.clone());
    sizes.insert(0, 1);
    strides.insert(0, t.numel().max(1));
    t.as_strided(&sizes, &strides, 0)
}
