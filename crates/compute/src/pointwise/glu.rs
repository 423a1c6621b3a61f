//! The gated linear unit `a * sigmoid(b)` of the two halves of a tensor (Y. Dauphin et al., "Language modeling with
//! gated convolutional networks", ICML 2017), its gradient, and the derivatives of both along a direction.

use crate::pointwise::kernel::Input;
use crate::view::View;
use dml_kernel::Value;
use smallvec::SmallVec;

/// The two halves of a tensor.
pub fn halves(x: &View, dim: usize) -> [View; 2] {
    let n = x.sizes[dim] / 2;
    [x.narrow(dim, 0, n), x.narrow(dim, n, n)]
}

pub fn inputs(tensors: &[&View]) -> SmallVec<[Input; 6]> {
    tensors.iter().map(|&t| Input::Tensor(t.clone())).collect()
}

/// The slope of the sigmoid at a place where it is `s`.
pub fn slope(s: Value<'_>) -> Value<'_> {
    s * (1.0 - s)
}
