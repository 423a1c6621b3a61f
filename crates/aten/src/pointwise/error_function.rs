//! Relatives of the error function: its inverse, its scaled complement, and the normal distribution's functions.

use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operators;
use crate::pointwise::operator::{check_not_half, heavy_operator};
use dml_compute::pointwise::error_function::log_ndtr;
use dml_compute::pointwise::operator::Rule;
use dml_kernel::math;
use math::special;

operators! {
    erfinv(self, out) {
        "aten::erfinv(Tensor self) -> Tensor",
        "aten::erfinv_(Tensor(a!) self) -> Tensor(a!)",
        "aten::erfinv.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    not_half(self, out; "erfcx", special::erfcx) {
        "aten::special_erfcx(Tensor self) -> Tensor",
        "aten::special_erfcx.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    not_half(self, out; "ndtri", special::ndtri) {
        "aten::special_ndtri(Tensor self) -> Tensor",
        "aten::special_ndtri.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    not_half(self, out; "log_ndtr", log_ndtr) {
        "aten::special_log_ndtr(Tensor self) -> Tensor",
        "aten::special_log_ndtr.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

fn erfinv(call: &mut Call, x: AnyTensor, out: Out) -> Result<()> {
    heavy_operator(call, out, Rule::Float, "erfinv", &[x.into()], |_, v| special::erfinv(v[0]))
}

fn not_half(call: &mut Call, x: AnyTensor, out: Out, name: &'static str, body: math::Unary) -> Result<()> {
    check_not_half(call, &[x], name)?;
    heavy_operator(call, out, Rule::Float, name, &[x.into()], |_, v| body(v[0]))
}
