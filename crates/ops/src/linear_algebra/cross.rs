//! The cross product of vectors of three elements along a dimension.

use crate::check;
use crate::movement::copy::cast;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::pointwise::elementwise;
use crate::pointwise::kernel::{self, Input};
use crate::tensor::overlap;
use dml_kernel::DType;

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[op("aten::linalg_cross.out", cross)];

/// `linalg_cross.out(self, other, *, dim, out)`
fn cross(call: &mut Call) -> Result<()> {
    let (x, y) = (call.tensor(0)?, call.tensor(1)?);
    check!(x.dim() == y.dim(), Runtime, "linalg.cross: inputs must have the same number of dimensions.");
    let dim = call.wrap_dim(call.int(2)?, x.dim())?;
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
    let out = call.out(Some(3), x.dtype, &sizes)?;
    elementwise::check_no_self_overlap(&out)?;
    if out.numel() > 0 {
        let target = if out.dtype == x.dtype && !overlap::touches(&out, x) && !overlap::touches(&out, y) {
            out.clone()
        } else {
            call.empty(x.dtype, &sizes)?
        };
        let parts = |t: &crate::Tensor| [0, 1, 2].map(|i| t.narrow(dim, i, 1));
        let outs = parts(&target);
        let inputs = [parts(&x.expand(&sizes)), parts(&y.expand(&sizes))].concat();
        let inputs: Vec<Input> = inputs.into_iter().map(Input::Tensor).collect();
        kernel::run(call, "cross", 0, &[&outs[0], &outs[1], &outs[2]], &inputs, x.dtype, |_, v| {
            [(1, 2), (2, 0), (0, 1)].map(|(i, j)| v[i] * v[3 + j] - v[j] * v[3 + i]).to_vec()
        })?;
        if target.data != out.data {
            crate::movement::copy::device_copy(call, &cast(call, &target, out.dtype)?, &out)?;
        }
    }
    call.ret(out);
    Ok(())
}
