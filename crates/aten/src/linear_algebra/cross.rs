//! The operator of the cross product of vectors of three elements along a dimension.

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::tensor::overlap;
use crate::{check, operators};
use dml_compute::linear_algebra::cross;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    cross(self, other, dim, out).complex(Complex::Run(complex::product::cross)) {
        "aten::linalg_cross.out(Tensor self, Tensor other, *, int dim=-1, Tensor(a!) out) -> Tensor(a!)",
    }
}

fn cross(call: &mut Call, x: &View, y: &View, dim: i64, out: Out) -> Result<()> {
    check!(x.dim() == y.dim(), Runtime, "linalg.cross: inputs must have the same number of dimensions.");
    let dim = call.wrap_dim(dim, x.dim())?;
    check!(
        x.size(dim as i64) == 3 && y.size(dim as i64) == 3,
        Runtime,
        "linalg.cross: inputs dimension {dim} must have length 3. Got {} and {}",
        x.size(dim as i64),
        y.size(dim as i64)
    );
    let sizes = call.broadcast(&x.sizes, &y.sizes)?;
    check!(
        x.dtype == y.dtype,
        Runtime,
        "linalg.cross: expected both inputs of one dtype, but got {} and {}",
        x.dtype,
        y.dtype
    );
    check!(x.dtype != DType::Bool, NotImplemented, "\"cross\" not implemented for 'Bool'");
    let out = structured::result(call, out.given(), x.dtype, &sizes)?;
    overlap::check_partial(&out, [x, y])?;
    cross::cross(call, x, y, dim, &out)?;
    call.ret(out);
    Ok(())
}
