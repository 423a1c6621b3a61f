//! Complex tensors as tensors of reals that share their memory.

use crate::complex::functions::JOIN;
use crate::context::Context;
use crate::error::Result;
use crate::pointwise::kernel::{self, Input};
use crate::view::{Dims, View};
use dml_kernel::DType;

/// The real and the imaginary parts as two tensors, with twice the strides.
pub fn parts(t: &View) -> [View; 2] {
    let dtype = t.dtype.real();
    let strides: Dims = t.strides.iter().map(|s| 2 * s).collect();
    [0, 1].map(|i| view(t, dtype, t.sizes.clone(), strides.clone(), t.data + i * dtype.bytes()))
}

/// The parts as a last dimension of size 2.
pub fn as_real(t: &View) -> View {
    as_pairs(t, t.dtype.real())
}

fn as_pairs(t: &View, dtype: DType) -> View {
    let sizes = t.sizes.iter().copied().chain([2]).collect();
    let strides = t.strides.iter().map(|s| 2 * s).chain([1]).collect();
    view(t, dtype, sizes, strides, t.data)
}

/// The same elements as unsigned integers; elements of 16 bytes are pairs of them, along a last
/// dimension.
pub fn as_bits(t: &View) -> View {
    if t.dtype == DType::C128 {
        return as_pairs(t, DType::U64);
    }
    view(t, t.dtype.bits(), t.sizes.clone(), t.strides.clone(), t.data)
}

fn view(t: &View, dtype: DType, sizes: Dims, strides: Dims, data: u64) -> View {
    let View { location, storage, .. } = *t;
    View { data, ..View::over(storage, location, dtype, sizes, strides) }
}

/// Combines two real tensors of the same shape into a complex one.
pub fn from_parts(cx: &Context, re: &View, im: &View, out: &View) -> Result<()> {
    let [out_re, out_im] = parts(out);
    let inputs = [Input::Tensor(re.clone()), Input::Tensor(im.clone())];
    kernel::run(cx, &JOIN, &[&out_re, &out_im], &inputs, re.dtype)
}
