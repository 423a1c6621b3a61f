//! Bessel functions and the Airy function.

use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operators;
use crate::pointwise::operator::{check_not_half, operator_of};
use dml_compute::pointwise::bessel as functions;
use dml_compute::pointwise::function::Function;

operators! {
    any(self, out; of functions::I0) {
        "aten::i0(Tensor self) -> Tensor",
        "aten::i0_(Tensor(a!) self) -> Tensor(a!)",
        "aten::i0.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    any(self, out; of functions::I0E) {
        "aten::special_i0e(Tensor self) -> Tensor",
        "aten::special_i0e.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    any(self, out; of functions::I1) {
        "aten::special_i1(Tensor self) -> Tensor",
        "aten::special_i1.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    any(self, out; of functions::I1E) {
        "aten::special_i1e(Tensor self) -> Tensor",
        "aten::special_i1e.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run_without_half(self, out; of functions::MODIFIED_BESSEL_I0) {
        "aten::special_modified_bessel_i0(Tensor self) -> Tensor",
        "aten::special_modified_bessel_i0.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run_without_half(self, out; of functions::MODIFIED_BESSEL_I1) {
        "aten::special_modified_bessel_i1(Tensor self) -> Tensor",
        "aten::special_modified_bessel_i1.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run_without_half(self, out; of functions::MODIFIED_BESSEL_K0) {
        "aten::special_modified_bessel_k0(Tensor self) -> Tensor",
        "aten::special_modified_bessel_k0.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run_without_half(self, out; of functions::MODIFIED_BESSEL_K1) {
        "aten::special_modified_bessel_k1(Tensor self) -> Tensor",
        "aten::special_modified_bessel_k1.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run_without_half(x, out; of functions::SCALED_MODIFIED_BESSEL_K0) {
        "aten::special_scaled_modified_bessel_k0(Tensor x) -> Tensor",
        "aten::special_scaled_modified_bessel_k0.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run_without_half(x, out; of functions::SCALED_MODIFIED_BESSEL_K1) {
        "aten::special_scaled_modified_bessel_k1(Tensor x) -> Tensor",
        "aten::special_scaled_modified_bessel_k1.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run_without_half(self, out; of functions::BESSEL_J0) {
        "aten::special_bessel_j0(Tensor self) -> Tensor",
        "aten::special_bessel_j0.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run_without_half(self, out; of functions::BESSEL_J1) {
        "aten::special_bessel_j1(Tensor self) -> Tensor",
        "aten::special_bessel_j1.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run_without_half(self, out; of functions::BESSEL_Y0) {
        "aten::special_bessel_y0(Tensor self) -> Tensor",
        "aten::special_bessel_y0.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run_without_half(self, out; of functions::BESSEL_Y1) {
        "aten::special_bessel_y1(Tensor self) -> Tensor",
        "aten::special_bessel_y1.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run_without_half(x, out; of functions::SPHERICAL_BESSEL_J0) {
        "aten::special_spherical_bessel_j0(Tensor x) -> Tensor",
        "aten::special_spherical_bessel_j0.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run_without_half(x, out; of functions::AIRY_AI) {
        "aten::special_airy_ai(Tensor x) -> Tensor",
        "aten::special_airy_ai.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// Functions that the CPU has for every dtype.
fn any(call: &mut Call, x: AnyTensor, out: Out, function: &'static Function) -> Result<()> {
    operator_of(call, out, function, &[x.into()])
}

/// Functions that the CPU does not have for 16-bit floats.
fn run_without_half(call: &mut Call, x: AnyTensor, out: Out, function: &'static Function) -> Result<()> {
    check_not_half(call, &[x], function.name)?;
    any(call, x, out, function)
}
