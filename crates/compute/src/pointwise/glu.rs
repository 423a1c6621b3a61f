//! The gated linear unit `a * sigmoid(b)` of the two halves of a tensor (Y. Dauphin et al.,
//! "Language modeling with gated convolutional networks", ICML 2017), its gradient, and the
//! derivatives of both along a direction.

use crate::functions;
use crate::pointwise::kernel::Input;
use crate::view::View;
use dml_kernel::{Value, math};
use smallvec::SmallVec;

/// The two halves of a tensor.
pub fn halves(x: &View, dim: usize) -> [View; 2] {
    let n = x.sizes[dim] / 2;
    [x.narrow(dim, 0, n), x.narrow(dim, n, n)]
}

/// Tensors as the inputs of a function.
pub fn inputs(tensors: &[&View]) -> SmallVec<[Input; 6]> {
    tensors.iter().map(|&t| Input::Tensor(t.clone())).collect()
}

/// The derivative of the sigmoid where its value is `s`.
fn sigmoid_derivative(s: Value<'_>) -> Value<'_> {
    s * (1.0 - s)
}

functions! {
    /// `a * sigmoid(b)`
    GLU = "glu"(a, b) => a * math::sigmoid(b);
    /// The gradients of `a` and `b`.
    GLU_BACKWARD = "glu_backward"(grad, a, b) => {
        let s = math::sigmoid(b);
        [grad * s, grad * a * sigmoid_derivative(s)]
    };
    /// How the result `y` changes along `da` and `db`.
    GLU_JVP = "glu_jvp"(y, b, da, db) => {
        let s = math::sigmoid(b);
        da * s + y * (1.0 - s) * db
    };
    /// How the gradients of `a` and `b` change along `dg`, `da` and `db`.
    GLU_BACKWARD_JVP = "glu_backward_jvp"(g, dg, a, b, da, db) => {
        let s = math::sigmoid(b);
        let ds = sigmoid_derivative(s);
        let change = dg * a + g * da + g * a * (1.0 - 2.0 * s) * db;
        [dg * s + g * ds * db, change * ds]
    };
}
