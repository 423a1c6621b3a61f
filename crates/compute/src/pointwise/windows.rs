//! Windows: functions of a point's place among equally spaced ones.

use crate::functions;
use crate::pointwise::rule::Rule;
use dml_kernel::math::comparison::maximum;
use dml_kernel::math::{self, special};

functions! {
    /// The Kaiser window of shape beta at a point from 0 to `2 / step`:
    /// `i0(beta * sqrt(1 - (point * step - 1)^2)) / i0(beta)`.
    KAISER = "kaiser_window"(point, step, beta).heavy().rule(Rule::Float) => {
        let position = point * step - 1.0;
        let height = math::sqrt(maximum(1.0 - position * position, position.like(0.0)));
        special::i0(height * beta) / special::i0(beta)
    };
}
