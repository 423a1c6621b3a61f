//! The gamma function's relatives: its logarithm and derivatives, incomplete and multivariate ones,
//! and zeta.

use crate::functions;
use crate::pointwise::rule::Rule;
use dml_kernel::math::special;

functions! {
    /// The logarithm of the gamma function's magnitude.
    LGAMMA = "lgamma"(x).heavy().rule(Rule::Float) => special::lgamma(x);
    /// The logarithmic derivative of the gamma function.
    DIGAMMA = "digamma"(x).heavy().rule(Rule::Float) => special::digamma(x);
    /// `constant` plus the sum of `lgamma(x - j / 2)`, j from 0 to `count` - 1.
    MVLGAMMA = "mvlgamma"(x, count, constant).heavy().rule(Rule::Float) => {
        let b = x.builder();
        let (j, sum) = (b.var(x.like(0.0)), b.var(constant));
        b.while_(
            || j.get().lt(count),
            || {
                sum.set(sum.get() + special::lgamma(x - 0.5 * j.get()));
                j.set(j.get() + 1.0);
            },
        );
        sum.get()
    };
    /// The regularised incomplete gamma function of `a`, from 0 to `x`.
    IGAMMA = "igamma"(a, x).heavy() => special::igamma(a, x);
    /// The regularised incomplete gamma function of `a`, from `x` on.
    IGAMMAC = "igammac"(a, x).heavy() => special::igammac(a, x);
    /// The derivative of [`DIGAMMA`]. The CPU has an algorithm of its own for it, which knows the
    /// limits at the infinities.
    TRIGAMMA = "trigamma"(x).heavy().rule(Rule::Float) => {
        let limit = x.gt(0).select(x.like(0.0), x.like(f64::NAN));
        x.is_inf().select(limit, special::zeta(x.like(2.0), x))
    };
    /// A higher derivative of [`DIGAMMA`]: `factor * zeta(order, x)`.
    POLYGAMMA = "polygamma"(x, order, factor).heavy().rule(Rule::Float) => factor * special::zeta(order, x);
    /// The Hurwitz zeta function of exponent `s` from `q` on.
    ZETA = "zeta"(s, q).heavy().rule(Rule::Float) => special::zeta(s, q);
    /// How a sample of a gamma distribution moves with its shape.
    STANDARD_GAMMA_GRAD = "_standard_gamma_grad"(shape, sample).heavy().rule(Rule::Exact) => {
        special::gamma_sample_gradient(shape, sample)
    };
    /// How an element of a Dirichlet sample moves with its own concentration, but for a factor that
    /// all elements share.
    DIRICHLET_GRAD = "_dirichlet_grad"(x, alpha, total).heavy().rule(Rule::Exact) => {
        special::beta_sample_gradient(x, alpha, total)
    };
}
