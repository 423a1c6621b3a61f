//! Complex numbers and their parts.

use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{COMPLEX, WIDE_FLOATS};
use crate::operators::common::elementwise::{broadcast, compute, elementwise_with};
use crate::operators::common::functions;
use dml_compute::complex::parts::from_parts;
use dml_compute::pointwise::complex;
use dml_compute::pointwise::function::Function;
use dml_kernel::DType;

/// A real number of each complex one.
fn real_of(name: &'static str, function: &'static Function) -> Operator {
    Operator::plain(name, move |call: &Call| {
        let z = call.input(0)?;
        let out = call.output(0, &z.sizes)?;
        compute(&call.cx(), function, &out, &[z], &[])
    })
    .of("T", COMPLEX)
    .tied("Tout", "T", DType::real)
}

/// `Complex`.
fn from_real(call: &Call) -> Result<()> {
    let [re, im] = [call.input(0)?, call.input(1)?];
    let sizes = broadcast(call.operator(), &re.sizes, &im.sizes)?;
    let out = call.output(0, &sizes)?;
    Ok(from_parts(&call.cx(), &re.expand(&sizes), &im.expand(&sizes), &out)?)
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        Operator::plain("Complex", from_real).of("T", WIDE_FLOATS).tied("Tout", "T", DType::complex),
        real_of("Real", &functions::REAL),
        real_of("Imag", &functions::IMAG),
        real_of("Angle", &complex::ANGLE),
        real_of("ComplexAbs", &complex::ABS),
        Operator::plain("Conj", |call: &Call| elementwise_with(call, &complex::CONJ, &[])).of("T", COMPLEX),
    ]
}
