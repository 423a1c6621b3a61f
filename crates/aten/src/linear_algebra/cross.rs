//! The cross product of vectors of three elements along a dimension.

use crate::movement::copies::checked_copy;
use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::tensor::overlap;
use crate::{check, operators};
use dml_compute::linear_algebra::functions::CROSS;
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    cross(self, other, dim, out) {
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
    if out.numel() > 0 {
        let apart = !dml_compute::view::overlap::touches(&out, x) && !dml_compute::view::overlap::touches(&out, y);
        let target = if apart { out.clone() } else { call.empty(x.dtype, &sizes)? };
        let parts = |t: &View| [0, 1, 2].map(|i| t.narrow(dim, i, 1));
        let outs = parts(&target);
        let inputs = [parts(&x.expand(&sizes)), parts(&y.expand(&sizes))].concat();
        let inputs: Vec<Input> = inputs.into_iter().map(Input::Tensor).collect();
        kernel::run(call, &CROSS, &[&outs[0], &outs[1], &outs[2]], &inputs, x.dtype)?;
        if target.data != out.data {
            checked_copy(call, &target, &out)?;
        }
    }
    call.ret(out);
    Ok(())
}
