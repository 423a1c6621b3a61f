//! Exponentials, logarithms, trigonometric and hyperbolic functions.

use crate::kernel::Operator;
use crate::operators::common::dtypes::FIELDS;
use crate::operators::common::elementwise::function;
use crate::operators::common::functions;
use dml_compute::pointwise::{special, unary};

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        function("Exp", &unary::EXP, FIELDS),
        function("Expm1", &unary::EXPM1, FIELDS),
        function("Log", &unary::LOG, FIELDS),
        function("Log1p", &unary::LOG1P, FIELDS),
        function("Xlogy", &functions::XLOGY, FIELDS),
        function("Xlog1py", &functions::XLOG1PY, FIELDS),
        function("Sin", &unary::SIN, FIELDS),
        function("Cos", &unary::COS, FIELDS),
        function("Tan", &unary::TAN, FIELDS),
        function("Asin", &unary::ASIN, FIELDS),
        function("Acos", &unary::ACOS, FIELDS),
        function("Atan", &unary::ATAN, FIELDS),
        function("Sinh", &unary::SINH, FIELDS),
        function("Cosh", &unary::COSH, FIELDS),
        function("Tanh", &unary::TANH, FIELDS),
        function("Asinh", &special::ASINH, FIELDS),
        function("Acosh", &special::ACOSH, FIELDS),
        function("Atanh", &special::ATANH, FIELDS),
    ]
}
