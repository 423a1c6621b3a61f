//! Special functions: the error function's, the gamma function's and Bessel's relatives.

use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{FLOATS, WIDE_FLOATS};
use crate::operators::common::elementwise::{function, inputs};
use crate::operators::common::functions;
use crate::require;
use dml_compute::Dims;
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::pointwise::{bessel, error_function, float_parts, gamma, unary};
use dml_kernel::DType;

/// `Betainc`: of tensors of one shape, or of numbers. It is computed in float64.
fn betainc(call: &Call) -> Result<()> {
    let inputs = inputs(call)?;
    let sizes: Dims = inputs.iter().find(|t| t.dim() > 0).map_or_else(Dims::new, |t| t.sizes.clone());
    require!(
        inputs.iter().all(|t| t.dim() == 0 || t.sizes == sizes),
        "Shapes of a, b and x are inconsistent: {:?}, {:?}, {:?}",
        inputs[0].sizes,
        inputs[1].sizes,
        inputs[2].sizes
    );
    let out = call.output(0, &sizes)?;
    let operands: Vec<Input> = inputs.into_iter().map(Input::Tensor).collect();
    Ok(kernel::run(&call.cx(), &functions::BETAINC, &[&out], &operands, DType::F64)?)
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        function("Erf", &unary::ERF, FLOATS),
        function("Erfc", &unary::ERFC, FLOATS),
        function("Erfinv", &error_function::ERFINV, WIDE_FLOATS),
        function("Ndtri", &error_function::NDTRI, WIDE_FLOATS),
        function("Lgamma", &gamma::LGAMMA, FLOATS),
        function("Digamma", &gamma::DIGAMMA, FLOATS),
        function("Polygamma", &functions::POLYGAMMA, WIDE_FLOATS),
        function("Zeta", &gamma::ZETA, WIDE_FLOATS),
        function("Igamma", &gamma::IGAMMA, WIDE_FLOATS),
        function("IgammaGradA", &functions::IGAMMA_GRAD_A, WIDE_FLOATS),
        function("Igammac", &gamma::IGAMMAC, WIDE_FLOATS),
        function("RandomGammaGrad", &gamma::STANDARD_GAMMA_GRAD, WIDE_FLOATS),
        Operator::plain("Betainc", betainc).of("T", WIDE_FLOATS),
        function("NextAfter", &float_parts::NEXTAFTER, WIDE_FLOATS),
        function("BesselI0", &bessel::I0, FLOATS),
        function("BesselI0e", &bessel::I0E, FLOATS),
        function("BesselI1", &bessel::I1, FLOATS),
        function("BesselI1e", &bessel::I1E, FLOATS),
        function("BesselJ0", &bessel::BESSEL_J0, FLOATS),
        function("BesselJ1", &bessel::BESSEL_J1, FLOATS),
        function("BesselK0", &bessel::MODIFIED_BESSEL_K0, FLOATS),
        function("BesselK0e", &bessel::SCALED_MODIFIED_BESSEL_K0, FLOATS),
        function("BesselK1", &bessel::MODIFIED_BESSEL_K1, FLOATS),
        function("BesselK1e", &bessel::SCALED_MODIFIED_BESSEL_K1, FLOATS),
        function("BesselY0", &bessel::BESSEL_Y0, FLOATS),
        function("BesselY1", &bessel::BESSEL_Y1, FLOATS),
    ]
}
