//! Relatives of the error function: its inverse, its scaled complement, and the normal
//! distribution's functions.

use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operators;
use crate::pointwise::operator::{check_not_half, operator_of};
use dml_compute::pointwise::error_function as functions;
use dml_compute::pointwise::function::Function;

operators! {
    erfinv(self, out) {
        "aten::erfinv(Tensor self) -> Tensor",
        "aten::erfinv_(Tensor(a!) self) -> Tensor(a!)",
        "aten::erfinv.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run_without_half(self, out; of functions::ERFCX) {
        "aten::special_erfcx(Tensor self) -> Tensor",
        "aten::special_erfcx.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run_without_half(self, out; of functions::NDTRI) {
        "aten::special_ndtri(Tensor self) -> Tensor",
        "aten::special_ndtri.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run_without_half(self, out; of functions::LOG_NDTR) {
        "aten::special_log_ndtr(Tensor self) -> Tensor",
        "aten::special_log_ndtr.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

fn erfinv(call: &mut Call, x: AnyTensor, out: Out) -> Result<()> {
    operator_of(call, out, &functions::ERFINV, &[x.into()])
}

fn run_without_half(call: &mut Call, x: AnyTensor, out: Out, function: &'static Function) -> Result<()> {
    check_not_half(call, &[x], function.name)?;
    operator_of(call, out, function, &[x.into()])
}
