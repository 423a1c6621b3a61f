//! Bessel functions and the Airy function.

use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operators;
use crate::pointwise::operator::{check_not_half, heavy_operator};
use dml_compute::pointwise::bessel::spherical;
use dml_compute::pointwise::operator::Rule;
use dml_kernel::math;
use math::special;

operators! {
    any(self, out; "i0", special::i0) {
        "aten::i0(Tensor self) -> Tensor",
        "aten::i0_(Tensor(a!) self) -> Tensor(a!)",
        "aten::i0.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    any(self, out; "special_i0e", special::i0e) {
        "aten::special_i0e(Tensor self) -> Tensor",
        "aten::special_i0e.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    any(self, out; "special_i1", special::i1) {
        "aten::special_i1(Tensor self) -> Tensor",
        "aten::special_i1.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    any(self, out; "special_i1e", special::i1e) {
        "aten::special_i1e(Tensor self) -> Tensor",
        "aten::special_i1e.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    not_half(self, out; "special_modified_bessel_i0", special::i0) {
        "aten::special_modified_bessel_i0(Tensor self) -> Tensor",
        "aten::special_modified_bessel_i0.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    not_half(self, out; "special_modified_bessel_i1", special::i1) {
        "aten::special_modified_bessel_i1(Tensor self) -> Tensor",
        "aten::special_modified_bessel_i1.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    not_half(self, out; "special_modified_bessel_k0", special::k0) {
        "aten::special_modified_bessel_k0(Tensor self) -> Tensor",
        "aten::special_modified_bessel_k0.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    not_half(self, out; "special_modified_bessel_k1", special::k1) {
        "aten::special_modified_bessel_k1(Tensor self) -> Tensor",
        "aten::special_modified_bessel_k1.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    not_half(x, out; "special_scaled_modified_bessel_k0", special::k0e) {
        "aten::special_scaled_modified_bessel_k0(Tensor x) -> Tensor",
        "aten::special_scaled_modified_bessel_k0.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
    }
    not_half(x, out; "special_scaled_modified_bessel_k1", special::k1e) {
        "aten::special_scaled_modified_bessel_k1(Tensor x) -> Tensor",
        "aten::special_scaled_modified_bessel_k1.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
    }
    not_half(self, out; "special_bessel_j0", special::j0) {
        "aten::special_bessel_j0(Tensor self) -> Tensor",
        "aten::special_bessel_j0.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    not_half(self, out; "special_bessel_j1", special::j1) {
        "aten::special_bessel_j1(Tensor self) -> Tensor",
        "aten::special_bessel_j1.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    not_half(self, out; "special_bessel_y0", special::y0) {
        "aten::special_bessel_y0(Tensor self) -> Tensor",
        "aten::special_bessel_y0.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    not_half(self, out; "special_bessel_y1", special::y1) {
        "aten::special_bessel_y1(Tensor self) -> Tensor",
        "aten::special_bessel_y1.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    not_half(x, out; "special_spherical_bessel_j0", spherical) {
        "aten::special_spherical_bessel_j0(Tensor x) -> Tensor",
        "aten::special_spherical_bessel_j0.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
    }
    not_half(x, out; "special_airy_ai", special::airy_ai) {
        "aten::special_airy_ai(Tensor x) -> Tensor",
        "aten::special_airy_ai.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// Functions that CPU has for every dtype.
fn any(call: &mut Call, x: AnyTensor, out: Out, name: &'static str, body: math::Unary) -> Result<()> {
    heavy_operator(call, out, Rule::Float, name, &[x.into()], |_, v| body(v[0]))
}

/// Functions that CPU has not for 16-bit floats.
fn not_half(call: &mut Call, x: AnyTensor, out: Out, name: &'static str, body: math::Unary) -> Result<()> {
    check_not_half(call, &[x], name)?;
    any(call, x, out, name, body)
}
