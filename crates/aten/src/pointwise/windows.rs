//! Windows whose points PyTorch computes (`plugin/operators/stubs.cpp`).

use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operators;
use crate::pointwise::operator::operator;
use dml_compute::pointwise::windows::KAISER;
use dml_compute::scalar::Scalar as Number;

operators! {
    kaiser(self, window_length, beta, out) {
        "torch_dml::kaiser_window.out(Tensor self, int window_length, float beta, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// The window at the points 0, 1, .. below its length, which is at least 2.
fn kaiser(call: &mut Call, points: AnyTensor, length: i64, beta: f64, out: Out) -> Result<()> {
    let step = 2.0 / (length - 1) as f64;
    operator(call, out, &KAISER, &[points], &[step, beta].map(Number::Double))
}
