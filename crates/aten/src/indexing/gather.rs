//! The operator gather: reading with an index for each element.

use crate::indexing::arguments::{check_index, check_shapes};
use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::operators;
use crate::tensor::overlap;
use dml_compute::indexing::arguments::at_least_1d;
use dml_compute::indexing::gather;
use dml_compute::view::View;

operators! {
    gather(self, dim, index, out).complex(Complex::Run(complex::run_as_bits)).runtime_index() {
        "aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
        "aten::gather.out(Tensor self, int dim, Tensor index, *, bool sparse_grad=False, Tensor(a!) out) -> Tensor(a!)",
    }
}

fn gather(call: &mut Call, t: &View, dim: i64, index: &View, out: Out) -> Result<()> {
    let dim = call.wrap_dim(dim, t.dim())?;
    check_index(call, index)?;
    let (base, at) = (at_least_1d(t), at_least_1d(index));
    check_shapes(call, &base, dim, &at, None)?;
    structured::check_given(out.given(), t.dtype)?;
    let out = call.result(out.given(), t.dtype, &index.sizes)?;
    overlap::check_internal(&out)?;
    overlap::check_none(&out, &[t, index])?;
    gather::gather(call, &base, dim, &at, &at_least_1d(&out))?;
    call.ret(out);
    Ok(())
}
