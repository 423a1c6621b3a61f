//! Functions related to the gamma function: its logarithm and derivatives, incomplete and
//! multivariate ones, and zeta.

use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::pointwise::operator::{Argument, check_not_half, common_dtype, operator_of, resized, strided};
use crate::{check, operators};
use dml_compute::pointwise::function::Function;
use dml_compute::pointwise::gamma as functions;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::{Dims, View};
use dml_kernel::DType;
use smallvec::SmallVec;

operators! {
    lgamma(self, out) {
        "aten::lgamma(Tensor self) -> Tensor",
        "aten::lgamma_(Tensor(a!) self) -> Tensor(a!)",
        "aten::lgamma.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    digamma(self, out) {
        "aten::digamma(Tensor self) -> Tensor",
        "aten::digamma_(Tensor(a!) self) -> Tensor(a!)",
        "aten::digamma.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    mvlgamma(self, p, out) {
        "aten::mvlgamma(Tensor self, int p) -> Tensor",
        "aten::mvlgamma_(Tensor(a!) self, int p) -> Tensor(a!)",
        "aten::mvlgamma.out(Tensor self, int p, *, Tensor(a!) out) -> Tensor(a!)",
    }
    incomplete(self, other, out; &functions::IGAMMA) {
        "aten::igamma(Tensor self, Tensor other) -> Tensor",
        "aten::igamma_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::igamma.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    incomplete(self, other, out; &functions::IGAMMAC) {
        "aten::igammac(Tensor self, Tensor other) -> Tensor",
        "aten::igammac_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::igammac.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    polygamma(n, self, out) {
        "aten::polygamma(int n, Tensor self) -> Tensor",
        "aten::polygamma.out(int n, Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    standard_gamma_grad(self, output) {
        "aten::_standard_gamma_grad(Tensor self, Tensor output) -> Tensor",
    }
    dirichlet_grad(x, alpha, total) {
        "aten::_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor",
    }
    zeta(self, other, out) {
        "aten::special_zeta(Tensor self, Tensor other) -> Tensor",
        "aten::special_zeta.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

fn lgamma(call: &mut Call, x: AnyTensor, out: Out) -> Result<()> {
    operator_of(call, out, &functions::LGAMMA, &[x.into()])
}

fn digamma(call: &mut Call, x: AnyTensor, out: Out) -> Result<()> {
    operator_of(call, out, &functions::DIGAMMA, &[x.into()])
}

/// `p (p - 1) / 4 log(pi) + sum of lgamma(self - j / 2)`, j from 0 to p - 1. Since the CPU computes
/// it as a sum, the result is contiguous.
fn mvlgamma(call: &mut Call, x: AnyTensor, p: i64, out: Out) -> Result<()> {
    check!(x.dtype != DType::Bool, Runtime, "The input tensor may not be a boolean tensor.");
    check!(p >= 1, Runtime, "p has to be greater than or equal to 1");
    let dtype = if x.dtype.is_float() { x.dtype } else { call.host.default_dtype() };
    let (mut result, strides) = (None, View::contiguous_strides(&x.sizes));
    let mut given = None;
    let out = resized(call, out, &mut given, (&x.sizes, &strides))?;
    let out = strided(call, out, &mut result, dtype, (&x.sizes, &strides))?;
    let constant = (p as f64) * (p as f64 - 1.0) / 4.0 * std::f64::consts::PI.ln();
    let arguments = [x.into(), Argument::Number(Number::Int(p)), Argument::Number(Number::Double(constant))];
    operator_of(call, out, &functions::MVLGAMMA, &arguments)
}

/// The n-th derivative of [`special::digamma`], `(-1)^(n + 1) n! zeta(n + 1, self)` for n > 0.
fn polygamma(call: &mut Call, n: i64, x: AnyTensor, out: Out) -> Result<()> {
    check!(n >= 0, Runtime, "polygamma(n, x) does not support negative n.");
    if n == 0 {
        return digamma(call, x, out);
    }
    if n == 1 {
        // The CPU has a separate algorithm for it, with the limits at the infinities.
        return operator_of(call, out, &functions::TRIGAMMA, &[x.into()]);
    }
    // Beyond 170 the factorial is infinite.
    let factorial: f64 = (1..=n.min(171)).map(|k| k as f64).product();
    let factor = if n % 2 == 0 { -factorial } else { factorial };
    let arguments = [x.into(), Argument::Number(Number::Int(n + 1)), Argument::Number(Number::Double(factor))];
    operator_of(call, out, &functions::POLYGAMMA, &arguments)
}

/// The Hurwitz zeta function of exponent `self` from `other` on.
fn zeta(call: &mut Call, s: AnyTensor, from: AnyTensor, out: Out) -> Result<()> {
    check_not_half(call, &[s, from], "zeta")?;
    operator_of(call, out, &functions::ZETA, &[s.into(), from.into()])
}

/// Regularized incomplete gamma functions of `self`, up to and from `other`.
fn incomplete(call: &mut Call, a: AnyTensor, x: AnyTensor, out: Out, function: &'static Function) -> Result<()> {
    let common = common_dtype(call, &[a, x]);
    check!(common.is_float(), NotImplemented, "\"{}_cpu\" not implemented for '{common}'", function.name);
    operator_of(call, out, function, &[a.into(), x.into()])
}

/// The derivative of samples of gamma distributions with respect to their shapes, `self`. Also for
/// 16-bit floats, which CUDA supports and the CPU does not.
fn standard_gamma_grad(call: &mut Call, shape: AnyTensor, sample: AnyTensor) -> Result<()> {
    gradient(call, &functions::STANDARD_GAMMA_GRAD, &[shape, sample])
}

/// The derivative of an element of a Dirichlet sample with respect to its own concentration,
/// without a factor that all elements share.
fn dirichlet_grad(call: &mut Call, x: AnyTensor, alpha: AnyTensor, total: AnyTensor) -> Result<()> {
    check_not_half(call, &[x, alpha, total], "_dirichlet_grad")?;
    gradient(call, &functions::DIRICHLET_GRAD, &[x, alpha, total])
}

/// For floats of one dtype only; the result is contiguous.
fn gradient(call: &mut Call, function: &'static Function, tensors: &[AnyTensor]) -> Result<()> {
    let dtype = tensors[0].dtype;
    for t in tensors {
        check!(t.dtype == dtype, Runtime, "Found dtype {} but expected {dtype}", t.dtype);
    }
    check!(dtype.is_float(), NotImplemented, "\"{}_cpu\" not implemented for '{dtype}'", function.name);
    let arguments: SmallVec<[Argument; 4]> = tensors.iter().map(|&t| t.into()).collect();
    let sizes = tensors.iter().try_fold(Dims::new(), |sizes, t| call.broadcast(&sizes, &t.sizes))?;
    let (mut result, strides) = (None, View::contiguous_strides(&sizes));
    let out = strided(call, Out::New, &mut result, dtype, (&sizes, &strides))?;
    operator_of(call, out, function, &arguments)
}
