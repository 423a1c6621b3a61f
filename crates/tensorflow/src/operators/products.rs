//! Products of matrices.

use super::dtypes::FLOATS;
use super::{Attributes, Call, Operator};
use crate::error::Result;
use crate::require;
use dml_compute::matmul::product::Product;
use dml_compute::movement::copy;
use dml_compute::{Scalar, View};

/// A matrix, or its transpose.
fn matrix(t: View, is_transposed: bool) -> View {
    let rank = t.dim();
    if is_transposed { t.transpose(rank - 2, rank - 1) } else { t }
}

/// `MatMul`.
fn mat_mul(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let transposed = [attributes.bool("transpose_a")?, attributes.bool("transpose_b")?];
    Ok(move |call: &Call| {
        let [a, b] = [call.input(0)?, call.input(1)?];
        require!(
            a.dim() == 2 && b.dim() == 2,
            "In[0] and In[1] of MatMul must be matrices: {:?}, {:?}",
            a.sizes,
            b.sizes
        );
        let [a, b] = [matrix(a, transposed[0]), matrix(b, transposed[1])];
        require!(
            a.sizes[1] == b.sizes[0],
            "Matrix size-incompatible: In[0]: {:?}, In[1]: {:?}",
            call.sizes(0)?,
            call.sizes(1)?
        );
        let out = call.output(0, &[a.sizes[0], b.sizes[1]])?;
        if a.sizes[1] == 0 {
            return Ok(copy::fill_with(&call.cx(), &out, Scalar::Int(0))?);
        }
        Ok(Product::new(&a, &b).run(&call.cx(), &out)?)
    })
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![Operator::new("MatMul", mat_mul).of("T", FLOATS)]
}
