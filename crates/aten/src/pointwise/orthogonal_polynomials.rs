//! Orthogonal polynomials of degree n, elementwise in x and n. A fractional n is cut; a negative
//! one, NaN and infinity give 0.
//!
//! By their recurrences, one rounding less a step than written, which stop where a value has
//! overflowed. Chebyshev's of a high degree by their trigonometric form within -1 to 1, and by the
//! hyperbolic one outside, which take the same time for every degree: of a degree of 2^53, just
//! above 1, no recurrence would end. Laguerre's and Legendre's of a degree above 2^20 are NaN, as
//! Hermite's are above the CPU's limits: the CPU takes minutes for one, and a GPU's driver ends a
//! program that does.

use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operators;
use crate::pointwise::operator::{check_not_half, operator_of};
use dml_compute::pointwise::function::Function;
use dml_compute::pointwise::orthogonal_polynomials as functions;
use dml_engine::AdapterKind;

operators! {
    run(x, n, out; of functions::CHEBYSHEV_POLYNOMIAL_T) {
        "aten::special_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor",
        "aten::special_chebyshev_polynomial_t.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(x, n, out; of functions::CHEBYSHEV_POLYNOMIAL_U) {
        "aten::special_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor",
        "aten::special_chebyshev_polynomial_u.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(x, n, out; of functions::CHEBYSHEV_POLYNOMIAL_V) {
        "aten::special_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor",
        "aten::special_chebyshev_polynomial_v.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(x, n, out; of functions::CHEBYSHEV_POLYNOMIAL_W) {
        "aten::special_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor",
        "aten::special_chebyshev_polynomial_w.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(x, n, out; of functions::SHIFTED_CHEBYSHEV_POLYNOMIAL_T) {
        "aten::special_shifted_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor",
        "aten::special_shifted_chebyshev_polynomial_t.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(x, n, out; of functions::SHIFTED_CHEBYSHEV_POLYNOMIAL_U) {
        "aten::special_shifted_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor",
        "aten::special_shifted_chebyshev_polynomial_u.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(x, n, out; of functions::SHIFTED_CHEBYSHEV_POLYNOMIAL_V) {
        "aten::special_shifted_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor",
        "aten::special_shifted_chebyshev_polynomial_v.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(x, n, out; of functions::SHIFTED_CHEBYSHEV_POLYNOMIAL_W) {
        "aten::special_shifted_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor",
        "aten::special_shifted_chebyshev_polynomial_w.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(x, n, out; of functions::HERMITE_POLYNOMIAL_H) {
        "aten::special_hermite_polynomial_h(Tensor x, Tensor n) -> Tensor",
        "aten::special_hermite_polynomial_h.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(x, n, out; of functions::HERMITE_POLYNOMIAL_HE) {
        "aten::special_hermite_polynomial_he(Tensor x, Tensor n) -> Tensor",
        "aten::special_hermite_polynomial_he.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run_for_adapter(x, n, out; [&functions::LAGUERRE_POLYNOMIAL_L, &functions::LAGUERRE_POLYNOMIAL_L_UNROLLED]) {
        "aten::special_laguerre_polynomial_l(Tensor x, Tensor n) -> Tensor",
        "aten::special_laguerre_polynomial_l.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run_for_adapter(x, n, out; [&functions::LEGENDRE_POLYNOMIAL_P, &functions::LEGENDRE_POLYNOMIAL_P_UNROLLED]) {
        "aten::special_legendre_polynomial_p(Tensor x, Tensor n) -> Tensor",
        "aten::special_legendre_polynomial_p.out(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

fn run(call: &mut Call, x: AnyTensor, n: AnyTensor, out: Out, function: &'static Function) -> Result<()> {
    check_not_half(call, &[x, n], function.name)?;
    operator_of(call, out, function, &[x.into(), n.into()])
}

/// [`run`] for a recurrence of many steps: on a software adapter with the second function, which
/// computes several steps per loop iteration.
fn run_for_adapter(
    call: &mut Call,
    x: AnyTensor,
    n: AnyTensor,
    out: Out,
    functions: [&'static Function; 2],
) -> Result<()> {
    check_not_half(call, &[x, n], functions[0].name)?;
    let software = call.device.info().kind == AdapterKind::Software;
    operator_of(call, out, functions[usize::from(software)], &[x.into(), n.into()])
}
