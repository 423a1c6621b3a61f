"""Calls that draw random numbers, compared with the CPU's by their distribution, since the numbers
differ.
"""

from __future__ import annotations

import random

import torch

from .calls import FORWARD, Call

COUNT = 4096
# By name: an expression of parameters p and q, each a vector, a tensor x of n rows, the dtype t,
# the device d and a small number k. All numbers of a column have one distribution.
EXPRESSIONS: dict[str, str] = {
    "rand": "torch.rand(n, 2, dtype=t, device=d)",
    "rand_like": "torch.rand_like(x)",
    "randn": "torch.randn(n, 2, dtype=t, device=d)",
    "randn_like": "torch.randn_like(x)",
    "randint": "torch.randint(-3, k, (n, 2), device=d)",
    "randint_like": "torch.randint_like(x, 1, k)",
    "random": "x.clone().random_(0, k)",
    "random to": "x.clone().long().random_(k)",
    "randperm": "torch.stack([torch.randperm(k, device=d)[:2] for _ in range(300)])",
    "uniform": "x.clone().uniform_(-1.5, float(k))",
    "normal_": "x.clone().normal_(0.5, float(k))",
    "normal of tensors": "torch.normal(x * 0 + p, x * 0 + q)",
    "normal of means": "torch.normal(x * 0 + p, 2.0)",
    "normal of deviations": "torch.normal(-1.0, x * 0 + q)",
    "exponential": "x.clone().exponential_(0.25 * k)",
    "geometric": "x.clone().geometric_(1 / (k + 1))",
    "cauchy": "x.clone().cauchy_(0.5, float(k))",
    "log_normal": "x.clone().log_normal_(0.25, 0.5)",
    "bernoulli": "torch.bernoulli((x * 0 + q).clamp(0, 1))",
    "bernoulli_ p": "x.clone().bernoulli_(1 / k)",
    "bernoulli_ tensor": "x.clone().bernoulli_((x * 0 + q).clamp(0, 1))",
    "poisson": "torch.poisson(x * 0 + q * k)",
    "binomial": "torch.binomial(x * 0 + k, (x * 0 + q).clamp(0, 1))",
    "gamma": "torch._standard_gamma(x * 0 + q)",
    "dirichlet": "torch._sample_dirichlet(x * 0 + q)",
    "multinomial": "torch.multinomial(q.expand(n, -1) + 0.1, 2, replacement=True)",
    "multinomial once": "torch.multinomial(q.expand(n, -1) + 0.1, 2)",
    "dropout": "F.dropout(x * 0 + 1, 0.5 / k)",
    "alpha_dropout": "F.alpha_dropout(x * 0 + 1, 0.3)",
    "feature_dropout": "F.dropout1d((x * 0 + 1).unsqueeze(-1), 0.4).squeeze(-1)",
    "native_dropout": "torch.native_dropout(x * 0 + 1, 0.25, True)[0]",
    "rrelu": "F.rrelu(x * 0 - 1, 0.1, 0.6, training=True)",
    "gumbel_softmax": "F.gumbel_softmax(x * 0 + q, tau=1.0)",
    "Gamma": "torch.distributions.Gamma(q, p.abs() + 0.5).rsample((n,))",
    "Beta": "torch.distributions.Beta(q, p.abs() + 0.5).rsample((n,))",
    "Dirichlet": "torch.distributions.Dirichlet(q).rsample((n,))",
    "StudentT": "torch.distributions.StudentT(q + 1).rsample((n,))",
    "Laplace": "torch.distributions.Laplace(p, q).rsample((n,))",
    "Gumbel": "torch.distributions.Gumbel(p, q).rsample((n,))",
    "Categorical": "torch.distributions.Categorical(q + 0.1).sample((n,)).unsqueeze(-1)",
    "NegativeBinomial": "torch.distributions.NegativeBinomial(q * 0 + k, q.clamp(0.05, 0.9)).sample((n,))",
    "VonMises": "torch.distributions.VonMises(p * 0, q).sample((n,))",
    "Weibull": "torch.distributions.Weibull(q, p.abs() + 0.5).rsample((n,))",
    "trunc_normal": "torch.nn.init.trunc_normal_(x.clone(), 0.0, 1.0, -1.0, 2.0)",
    "orthogonal trace": "torch.stack([torch.nn.init.orthogonal_(x[:4, :2].clone())[0] for _ in range(300)])",
}
# Dtypes: expressions for which the CPU has no narrow dtype use float32.
WIDE_ONLY = {"orthogonal trace", "StudentT", "VonMises", "Gamma", "Beta", "Dirichlet", "Laplace", "Gumbel", "Weibull"}
NAMES = tuple(f"draw {name}" for name in EXPRESSIONS)


def make(rng: random.Random, name: str) -> Call:
    """A call of one of these expressions."""
    base = name.removeprefix("draw ")
    dtype = rng.choices((torch.float32, torch.float64, torch.float16, torch.bfloat16), (5, 2, 2, 2))[0]
    if base in WIDE_ONLY:
        dtype = torch.float32
    columns = rng.choice((2, 3, 4))
    p = torch.tensor([rng.uniform(-3, 3) for _ in range(columns)], dtype=dtype)
    q = torch.tensor([rng.choice((rng.uniform(0.05, 1), rng.uniform(0.5, 6))) for _ in range(columns)], dtype=dtype)
    x = torch.zeros(COUNT, columns, dtype=dtype)
    if rng.random() < 0.3:
        x = torch.zeros(columns, COUNT, dtype=dtype).t()
    text = f"lambda x, p, q, t, d, n, k: {EXPRESSIONS[base]}"
    given = [x, p, q, dtype, torch.device("cpu"), COUNT, rng.choice((2, 3, 5, 11, 40))]
    return Call(text, given, {}, FORWARD, rng.getrandbits(31))
