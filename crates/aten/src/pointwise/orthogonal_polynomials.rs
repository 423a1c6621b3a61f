//! Orthogonal polynomials of degree n, elementwise in x and n. A fractional n is cut; a negative one, NaN and infinity
//! give 0.
//!
//! By their recurrences, one rounding less a step than written, which stop where a value has overflowed. Chebyshev's of a high
//! degree by their trigonometric form within -1 to 1, and by the hyperbolic one outside, which take the same time for every
//! degree: of a degree of 2^53, just above 1, no recurrence would end. Laguerre's and Legendre's of a degree above 2^20 are NaN,
//! as Hermite's are above the CPU's limits: the CPU takes minutes for one, and a GPU's driver ends a program that does.

use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operators;
use crate::pointwise::operator::{check_not_half, heavy_operator};
use dml_compute::pointwise::operator::Rule;
use dml_compute::pointwise::orthogonal_polynomials::{Kind, MAX_STEPS, chebyshev, hermite, laguerre, legendre, valid};
use dml_compute::primitives::loops::SOFTWARE_TURNS;
use dml_engine::AdapterKind;
use dml_kernel::{Value, math};

operators! {
    run(x, n, out; "chebyshev_polynomial_t", |x, n| chebyshev(x, n, Kind::T, 6.0)) {
        "aten::special_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor",
        "aten::special_chebyshev_polynomial_t.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(x, n, out; "chebyshev_polynomial_u", |x, n| chebyshev(x, n, Kind::U, 8.0)) {
        "aten::special_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor",
        "aten::special_chebyshev_polynomial_u.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(x, n, out; "chebyshev_polynomial_v", |x, n| chebyshev(x, n, Kind::V, 8.0)) {
        "aten::special_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor",
        "aten::special_chebyshev_polynomial_v.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(x, n, out; "chebyshev_polynomial_w", |x, n| chebyshev(x, n, Kind::W, 8.0)) {
        "aten::special_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor",
        "aten::special_chebyshev_polynomial_w.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(x, n, out; "shifted_chebyshev_polynomial_t", |x, n| chebyshev(x + x - 1.0, n, Kind::T, 6.0)) {
        "aten::special_shifted_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor",
        "aten::special_shifted_chebyshev_polynomial_t.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(x, n, out; "shifted_chebyshev_polynomial_u", |x, n| chebyshev(x + x - 1.0, n, Kind::U, 6.0)) {
        "aten::special_shifted_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor",
        "aten::special_shifted_chebyshev_polynomial_u.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(x, n, out; "shifted_chebyshev_polynomial_v", |x, n| chebyshev(x + x - 1.0, n, Kind::V, 6.0)) {
        "aten::special_shifted_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor",
        "aten::special_shifted_chebyshev_polynomial_v.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(x, n, out; "shifted_chebyshev_polynomial_w", |x, n| chebyshev(x + x - 1.0, n, Kind::W, 4.0)) {
        "aten::special_shifted_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor",
        "aten::special_shifted_chebyshev_polynomial_w.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(x, n, out; "hermite_polynomial_h", |x, n| hermite(x + x, n, 2.0)) {
        "aten::special_hermite_polynomial_h(Tensor x, Tensor n) -> Tensor",
        "aten::special_hermite_polynomial_h.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(x, n, out; "hermite_polynomial_he", |x, n| hermite(x, n, 1.0)) {
        "aten::special_hermite_polynomial_he(Tensor x, Tensor n) -> Tensor",
        "aten::special_hermite_polynomial_he.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run_long(x, n, out; ["laguerre_polynomial_l", "laguerre_polynomial_l_unrolled"], laguerre) {
        "aten::special_laguerre_polynomial_l(Tensor x, Tensor n) -> Tensor",
        "aten::special_laguerre_polynomial_l.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run_long(x, n, out; ["legendre_polynomial_p", "legendre_polynomial_p_unrolled"], legendre) {
        "aten::special_legendre_polynomial_p(Tensor x, Tensor n) -> Tensor",
        "aten::special_legendre_polynomial_p.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

fn run(call: &mut Call, x: AnyTensor, n: AnyTensor, out: Out, name: &'static str, body: math::Binary) -> Result<()> {
    check_not_half(call, &[x, n], name)?;
    heavy_operator(call, out, Rule::Float, name, &[x.into(), n.into()], |_, v| valid(v, body))
}

/// [`run`] of a recurrence of up to [`MAX_STEPS`]: on a software adapter several steps are a turn of its loop.
fn run_long(
    call: &mut Call,
    x: AnyTensor,
    n: AnyTensor,
    out: Out,
    names: [&'static str; 2],
    body: for<'b> fn(Value<'b>, Value<'b>, u32) -> Value<'b>,
) -> Result<()> {
    let software = call.device.info().kind == AdapterKind::Software;
    let steps = if software { MAX_STEPS as u64 / SOFTWARE_TURNS + 1 } else { 1 } as u32;
    check_not_half(call, &[x, n], names[0])?;
    let family = names[usize::from(software)];
    heavy_operator(call, out, Rule::Float, family, &[x.into(), n.into()], |_, v| valid(v, |x, n| body(x, n, steps)))
}
