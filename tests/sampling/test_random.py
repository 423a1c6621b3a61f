"""Random numbers: reproducible from a seed, the same on every adapter, and with the right
distribution.
"""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from tests.support.compare import assert_same, assert_same_error
from tests.support.dtypes import FLOATS, dtypes

N = 100_000


def seeded(seed: int = 0) -> None:
    torch.manual_seed(seed)


@pytest.mark.smoke
def test_known_answers() -> None:
    """Random123's vectors for Philox4x32-10 with the counters 0 and 1 and the keys 0 and 42."""
    words = {
        0: [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8],
    }
    for seed, first in words.items():
        seeded(seed)
        high = torch.empty(4, dtype=torch.int32, device="dml").random_(0, 1 << 16)
        assert high.tolist() == [word >> 16 for word in first]
        seeded(seed)
        unit = torch.rand(4, device="dml")
        assert unit.tolist() == [(word >> 8) * 2.0**-24 for word in first]
        seeded(seed)
        pair = torch.rand(2, dtype=torch.float64, device="dml").tolist()
        joined = [((first[i] >> 5) * (1 << 26) + (first[i + 1] >> 6)) * 2.0**-53 for i in (0, 2)]
        assert pair == joined
        # Box and Muller's method, in doubles.
        seeded(seed)
        normal = torch.randn(2, device="dml")
        radius = math.sqrt(-2 * math.log(1 - (first[0] >> 8) * 2.0**-24))
        angle = 2 * math.pi * (first[1] >> 8) * 2.0**-24
        assert_same(normal, torch.tensor([radius * math.cos(angle), radius * math.sin(angle)]), 1e-5, 1e-6)


def philox(counter: int, seed: int) -> list[int]:
    c = [counter & 0xFFFFFFFF, counter >> 32, 0, 0]
    k = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        low, high = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(high >> 32) ^ c[1] ^ k[0], high & 0xFFFFFFFF, (low >> 32) ^ c[3] ^ k[1], low & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def test_the_stream_is_philox() -> None:
    seeded(0x1234_5678_9ABC)
    torch.rand(7, device="dml")  # two counters
    actual = torch.rand(10, device="dml").tolist()
    words = [word for counter in range(2, 5) for word in philox(counter, 0x1234_5678_9ABC)]
    assert actual == [(word >> 8) * 2.0**-24 for word in words[:10]]


@pytest.mark.smoke
def test_seeds() -> None:
    def draw() -> list[torch.Tensor]:
        return [
            torch.rand(100, device="dml"),
            torch.randn(33, device="dml"),
            torch.randint(0, 1000, (50,), device="dml"),
            torch.randperm(40, device="dml"),
            torch.empty(20, device="dml").exponential_(),
            F.dropout(torch.ones(64, device="dml"), 0.5),
            torch.bernoulli(torch.full((64,), 0.5, device="dml")),
        ]

    seeded(7)
    first = draw()
    second = draw()
    seeded(7)
    for a, b, c in zip(first, second, draw(), strict=True):
        assert torch.equal(a.cpu(), c.cpu())
        assert not torch.equal(a.cpu(), b.cpu())


def test_generators_and_states() -> None:
    generator = torch.Generator("dml").manual_seed(5)
    a = torch.rand(10, device="dml", generator=generator)
    state = generator.get_state()
    b = torch.rand(10, device="dml", generator=generator)
    generator.set_state(state)
    assert torch.equal(torch.rand(10, device="dml", generator=generator).cpu(), b.cpu())
    seeded(5)
    assert torch.equal(torch.rand(10, device="dml").cpu(), a.cpu())
    assert generator.initial_seed() == 5
    state = torch.dml.get_rng_state()
    c = torch.randn(10, device="dml")
    torch.dml.set_rng_state(state)
    assert torch.equal(torch.randn(10, device="dml").cpu(), c.cpu())
    with pytest.raises(RuntimeError):
        torch.rand(3, device="dml", generator=torch.Generator("cpu"))
    with torch.random.fork_rng(device_type="dml"):
        torch.rand(3, device="dml")


@dtypes(FLOATS)
def test_uniform(dtype: torch.dtype) -> None:
    x = torch.empty(N, dtype=dtype, device="dml").uniform_(-2, 3).cpu().double()
    assert x.min() >= -2
    assert x.max() < 3
    assert abs(x.mean() - 0.5) < 0.03
    assert abs(x.var() - 25 / 12) < 0.05
    unit = torch.rand(N, dtype=dtype, device="dml").cpu()
    assert unit.max() < 1
    assert unit.min() >= 0
    # A narrow range, whose upper end would be reached by rounding.
    narrow = torch.empty(N, dtype=dtype, device="dml").uniform_(1, 1.0078125 + 1e-9 * (dtype == torch.float64)).cpu()
    assert narrow.max() < torch.tensor(1.0078125 + 1e-9 * (dtype == torch.float64), dtype=dtype)
    with pytest.raises(RuntimeError, match="from"):
        torch.empty(3, device="dml").uniform_(1, 0)


@dtypes(FLOATS)
def test_normal_and_exponential(dtype: torch.dtype) -> None:
    x = torch.empty(N, dtype=dtype, device="dml").normal_(1, 2).cpu().double()
    assert x.isfinite().all()
    assert abs(x.mean() - 1) < 0.03
    assert abs(x.std() - 2) < 0.03
    z = (x - 1) / 2
    assert abs((z**3).mean()) < 0.05
    assert abs((z**4).mean() - 3) < 0.15
    assert abs((z.abs() < 1).double().mean() - 0.6827) < 0.01
    e = torch.empty(N, dtype=dtype, device="dml").exponential_(2).cpu().double()
    assert e.min() > 0
    assert e.isfinite().all()
    assert abs(e.mean() - 0.5) < 0.02
    assert abs(e.var() - 0.25) < 0.02


def test_integers() -> None:
    x = torch.randint(-3, 5, (N,), device="dml").cpu()
    counts = torch.bincount(x + 3, minlength=8)
    assert len(counts) == 8
    assert (counts - N / 8).abs().max() < 600
    wide = torch.randint(-(2**40), 2**41, (N,), device="dml").cpu()
    assert wide.min() >= -(2**40)
    assert wide.max() < 2**41
    assert abs(wide.double().mean() / 2**39 - 1) < 0.05
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.float32, torch.float16):
        y = torch.randint(0, 100, (1000,), dtype=dtype, device="dml").cpu()
        assert y.dtype == dtype
        assert y.min() >= 0
        assert y.max() < 100
    for dtype in (torch.uint8, torch.int8, torch.int32, torch.int64, torch.float32, torch.bool):
        y = torch.empty(1000, dtype=dtype, device="dml").random_().cpu()
        assert y.min() >= 0
        assert len(y.unique()) > (1 if dtype == torch.bool else 100)
    with pytest.raises(RuntimeError, match="from"):
        torch.empty(3, device="dml").random_(5, 5)
    with pytest.raises(RuntimeError, match="out of bounds"):
        torch.empty(3, dtype=torch.uint8, device="dml").random_(0, 300)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 17, 256, 1000, 100_003])
def test_permutations(n: int) -> None:
    p = torch.randperm(n, device="dml")
    assert p.dtype == torch.int64
    assert torch.equal(p.cpu().sort().values, torch.arange(n))
    if n > 100:
        assert not torch.equal(p.cpu(), torch.randperm(n, device="dml").cpu())
        assert (p.cpu() == torch.arange(n)).sum() < 10


def test_bernoulli() -> None:
    for dtype in (torch.float32, torch.int64, torch.bool, torch.uint8):
        x = torch.empty(N, dtype=dtype, device="dml").bernoulli_(0.3).cpu().double()
        assert abs(x.mean() - 0.3) < 0.01
        assert set(x.unique().tolist()) == {0.0, 1.0}
    p = torch.tensor([0.0, 1.0, 0.25], device="dml").repeat(N // 3)
    draws = torch.bernoulli(p).cpu().reshape(-1, 3).mean(0)
    assert draws[0] == 0
    assert draws[1] == 1
    assert abs(draws[2] - 0.25) < 0.01
    assert torch.zeros(9, device="dml").bernoulli_(0).sum() == 0
    assert torch.zeros(9, device="dml").bernoulli_(1).sum() == 9


@pytest.mark.smoke
@dtypes(FLOATS)
def test_dropout(dtype: torch.dtype) -> None:
    x = torch.ones(100, 1000, dtype=dtype, device="dml", requires_grad=True)
    y = F.dropout(x, 0.25)
    kept = (y != 0).cpu()
    assert abs(kept.double().mean() - 0.75) < 0.01
    assert abs(y.detach().cpu().double().mean() - 1) < 0.02
    y.backward(torch.full_like(y, 3))
    assert torch.equal((x.grad != 0).cpu(), kept)
    assert_same(x.grad, torch.where(kept, torch.tensor(4, dtype=dtype), torch.tensor(0, dtype=dtype)))
    assert F.dropout(x, 0.0).equal(x)
    assert F.dropout(x, 1.0).count_nonzero() == 0
    assert F.dropout(x, 0.5, training=False) is x or F.dropout(x, 0.5, training=False).equal(x)


def test_views_take_random_numbers() -> None:
    x = torch.zeros(40, 60, device="dml")
    x[::2, 1:31].normal_()
    y = x.cpu()
    assert (y[::2, 1:31] != 0).all()
    y[::2, 1:31] = 0
    assert (y == 0).all()
    torch.nn.init.kaiming_uniform_(x)
    assert torch.empty(0, device="dml").normal_().shape == (0,)
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.zeros(1, device="dml").expand(4).uniform_()


def test_other_distributions() -> None:
    x = torch.empty(N, device="dml").log_normal_(0.5, 0.25).cpu().double().log()
    assert abs(x.mean() - 0.5) < 0.01
    assert abs(x.std() - 0.25) < 0.01
    c = torch.empty(N, device="dml").cauchy_(1, 2).cpu().double()
    assert c.isfinite().all()
    assert abs(c.median() - 1) < 0.05
    assert abs((c - 1).abs().median() - 2) < 0.06
    for dtype in (torch.float32, torch.int64):
        g = torch.empty(N, dtype=dtype, device="dml").geometric_(0.3).cpu().double()
        assert g.min() == 1
        assert abs(g.mean() - 1 / 0.3) < 0.05
    mean, std = torch.linspace(-1, 1, N), torch.linspace(0.1, 2, N)
    for args in ((mean, std), (mean, 0.5), (2.0, std)):
        z = torch.normal(*(a.to("dml") if isinstance(a, torch.Tensor) else a for a in args)).cpu()
        standard = ((z - args[0]) / args[1]).double()
        assert abs(standard.mean()) < 0.02
        assert abs(standard.std() - 1) < 0.02
    assert torch.normal(mean.to("dml"), std.to("dml"), out=torch.empty(0, device="dml")).shape == (N,)
    with pytest.raises(RuntimeError, match="std"):
        torch.normal(mean.to("dml"), -1.0)
    for bad in (-0.5, float("nan")):
        given = torch.where(torch.arange(6) == 4, bad, 0.0).reshape(2, 3).t().to("dml")
        for mean in (0.0, torch.zeros(3, 2, device="dml")):
            with pytest.raises(RuntimeError, match="normal expects all elements of std"):
                torch.normal(mean, given)
                torch.dml.synchronize()


@dtypes(FLOATS)
def test_poisson(dtype: torch.dtype) -> None:
    for rate in (0.5, 4.0, 9.5, 12.0, 100.0, 1000.0):
        x = torch.poisson(torch.full((N // 4,), rate, dtype=dtype, device="dml")).cpu().double()
        assert (x == x.round()).all()
        assert x.min() >= 0
        assert abs(x.mean() - rate) < 6 * math.sqrt(rate / len(x)) + rate * torch.finfo(dtype).eps
        assert abs(x.var() / rate - 1) < 0.08
    small = torch.poisson(torch.full((N,), 3.0, dtype=dtype, device="dml")).cpu().long()
    want = torch.distributions.Poisson(3.0).log_prob(torch.arange(9.0)).exp()
    assert (small.bincount(minlength=9)[:9] / N - want).abs().max() < 0.008
    edge = torch.tensor([0.0, math.nan], dtype=dtype)
    assert_same(torch.poisson(edge.to("dml")), edge)


def test_poisson_of_large_rates() -> None:
    x = torch.poisson(torch.full((N,), 12.0, device="dml")).cpu().long()
    want = torch.distributions.Poisson(12.0).log_prob(torch.arange(30.0)).exp()
    assert (x.bincount(minlength=30)[:30] / N - want).abs().max() < 0.006
    x = torch.poisson(torch.full((N,), 1e6, device="dml")).cpu().double()
    assert abs(x.mean() - 1e6) < 20
    assert abs(x.var() / 1e6 - 1) < 0.03


@dtypes(torch.float32, torch.float64)
def test_binomial(dtype: torch.dtype) -> None:
    for count, p in ((1, 0.3), (20, 0.1), (20, 0.9), (50, 0.5), (1000, 0.02), (100000, 0.4)):
        counts = torch.full((N // 2,), float(count), dtype=dtype, device="dml")
        x = torch.binomial(counts, torch.full_like(counts, p)).cpu().double()
        spread = math.sqrt(count * p * (1 - p))
        assert (x == x.round()).all()
        assert x.min() >= 0
        assert x.max() <= count
        assert abs(x.mean() - count * p) < 6 * spread / math.sqrt(len(x))
        assert abs(x.std() / spread - 1) < 0.02
    edges = torch.tensor([[5.0, 0.0], [5.0, 1.0], [0.0, 0.5], [5.0, math.nan]], dtype=dtype).t()
    assert_same(torch.binomial(*edges.to("dml")), torch.binomial(*edges))


@dtypes(FLOATS)
def test_gamma_and_dirichlet(dtype: torch.dtype) -> None:
    for shape in (0.3, 1.0, 2.5, 30.0):
        x = torch._standard_gamma(torch.full((N // 2,), shape, dtype=dtype, device="dml")).cpu().double()
        assert x.min() >= 0
        assert abs(x.mean() - shape) < 6 * math.sqrt(shape / len(x)) + shape * torch.finfo(dtype).eps
        assert abs(x.var() / shape - 1) < 0.08
        third = ((x - shape) ** 3).mean() / shape**1.5
        assert abs(third - 2 / math.sqrt(shape)) < 0.1 + 0.5 / shape
    alpha = torch.tensor([0.5, 1.0, 3.5], dtype=dtype, device="dml").expand(N // 2, 3)
    x = torch._sample_dirichlet(alpha).cpu().double()
    assert abs(x.sum(-1) - 1).max() < 4 * torch.finfo(dtype).eps
    assert abs(x.mean(0) - torch.tensor([0.1, 0.2, 0.7])).max() < 0.01
    assert abs(x[:, 2].var() - 0.7 * 0.3 / 6) < 0.002


@dtypes(FLOATS)
def test_multinomial(dtype: torch.dtype) -> None:
    weights = torch.tensor([[0.0, 3.0, 1.0, 0.0, 4.0], [2.0, 2.0, 0.0, 0.0, 4.0]], dtype=dtype)
    want = weights.double() / weights.double().sum(1, keepdim=True)
    x = weights.to("dml").multinomial(N // 2, replacement=True)
    assert x.dtype == torch.int64
    for row, p in zip(x.cpu(), want, strict=True):
        assert (row.bincount(minlength=5) / len(row) - p).abs().max() < 0.012
    singles = weights[0].to("dml").expand(N // 2, 5).multinomial(1).cpu()
    assert singles.shape == (N // 2, 1)
    assert (singles[:, 0].bincount(minlength=5) / (N // 2) - want[0]).abs().max() < 0.012
    pairs = weights[0].to("dml").expand(N // 2, 5).multinomial(3).cpu()
    assert torch.equal(pairs.sort(1)[0], torch.tensor([1, 2, 4]).expand(N // 2, 3))
    assert (pairs[:, 0].bincount(minlength=5) / (N // 2) - want[0]).abs().max() < 0.012
    long = torch.rand(5000).to(dtype)
    chosen = long.to("dml").multinomial(5000).cpu()
    if dtype == torch.float32:
        assert torch.equal(chosen.sort()[0], torch.arange(5000))
    out = torch.empty(0, dtype=torch.int64, device="dml")
    torch.multinomial(weights.to("dml"), 2, out=out)
    assert out.shape == (2, 2)


def test_multinomial_refuses_what_is_no_weight() -> None:
    for row in ([1.0, -1.0], [1.0, math.nan], [math.inf, 1.0], [0.0, 0.0]):
        for replacement in (False, True):
            assert_same_error(lambda x, again: x.multinomial(2, again), torch.tensor([row, [1.0, 1.0]]), replacement)
    for call in (
        lambda x: x.multinomial(5),
        lambda x: x.multinomial(0),
        lambda x: x.long().multinomial(1),
        lambda x: x.reshape(1, 2, 2).multinomial(1),
        lambda x: torch.multinomial(x, 0, out=x.new_empty(2)),
    ):
        assert_same_error(call, torch.ones(4))


def test_distributions() -> None:
    """The distributions of torch.distributions whose samples have a mean close to the stated
    one.
    """
    d, shape = torch.distributions, (20_000,)

    def on(*values: float) -> list[torch.Tensor]:
        return [torch.tensor(value, device="dml") for value in values]

    weights = torch.tensor([0.1, 0.4, 0.5], device="dml")
    for distribution in (
        d.Normal(*on(1.0, 2.0)),
        d.Uniform(*on(1.0, 4.0)),
        d.Bernoulli(*on(0.3)),
        d.Binomial(10, *on(0.3)),
        d.Poisson(*on(3.0)),
        d.Gamma(*on(2.0, 3.0)),
        d.Beta(*on(2.0, 3.0)),
        d.Chi2(*on(4.0)),
        d.Dirichlet(weights * 10),
        d.Exponential(*on(2.0)),
        d.Geometric(*on(0.4)),
        d.Gumbel(*on(1.0, 2.0)),
        d.Laplace(*on(1.0, 0.5)),
        d.LogNormal(*on(0.1, 0.3)),
        d.Multinomial(7, weights),
        d.OneHotCategorical(weights),
        d.StudentT(*on(9.0)),
    ):
        x = distribution.sample(shape)
        assert x.device.type == "dml"
        x, mean = x.cpu(), distribution.mean.cpu()
        deviation = distribution.variance.cpu().sqrt()
        assert ((x.mean(0) - mean).abs() < 6 * deviation / math.sqrt(len(x))).all(), distribution
    x = d.Categorical(weights).sample(shape).cpu()
    assert (x.bincount(minlength=3) / len(x) - weights.cpu()).abs().max() < 0.02


@pytest.mark.parametrize("bad", [-1.0, -1e-40, math.nan])
def test_negative_deviations_raise(bad: float) -> None:
    std = torch.tensor([1.0, bad], device="dml")
    for mean in (0.5, torch.zeros(2, device="dml")):
        torch.normal(mean, std)
        with pytest.raises(RuntimeError, match=r"normal expects all elements of std >= 0\.0"):
            torch.dml.synchronize()
    assert torch.normal(0.0, torch.tensor([0.0, -0.0, math.inf], device="dml")).shape == (3,)


def test_negative_rates_raise() -> None:
    for function in (torch.poisson, torch._standard_gamma):
        function(torch.tensor([1.0, -1.0], device="dml"))
        with pytest.raises(RuntimeError, match="is negative"):
            torch.dml.synchronize()
    assert torch.poisson(torch.ones(3, device="dml")).shape == (3,)


def test_bernoulli_of_tensors() -> None:
    p = torch.tensor([0.25, 0.75], dtype=torch.float64, device="dml")
    for dtype in (torch.float32, torch.float64, torch.bool, torch.int64):
        x = torch.empty(N // 2, 2, dtype=dtype, device="dml").bernoulli_(p).cpu().double()
        assert (x.mean(0) - p.cpu()).abs().max() < 0.012
    assert torch.empty(9, device="dml").bernoulli_(torch.tensor(1.0)).sum() == 9
    with pytest.raises(RuntimeError, match="not implemented"):
        torch.empty(2, device="dml").bernoulli_(torch.tensor([1, 0], device="dml"))
    with pytest.raises(RuntimeError, match="broadcast shape"):
        torch.empty(2, device="dml").bernoulli_(torch.ones(2, 2, device="dml"))
    for bad in (1.5, -0.5, math.nan):
        with pytest.raises(RuntimeError, match="not between 0 and 1"):
            torch.bernoulli(torch.tensor([0.5, bad], device="dml")).cpu()


@dtypes(FLOATS)
def test_rrelu(dtype: torch.dtype) -> None:
    x = torch.linspace(-2, 2, N, dtype=torch.float64).to(dtype)
    y = x.to("dml").requires_grad_()
    z = F.rrelu(y, 0.1, 0.4, training=True)
    z.backward(torch.full_like(z, 2))
    slope = (z.detach().cpu().double() / x.double())[x < -0.1]
    bound = torch.finfo(dtype).eps
    assert slope.min() > 0.1 - bound
    assert slope.max() < 0.4 + bound
    assert abs(slope.mean() - 0.25) < 0.01
    assert torch.equal(z.detach().cpu()[x > 0], x[x > 0])
    assert_same(y.grad[x.to("dml") > 0], torch.full_like(x[x > 0], 2))
    assert_same(y.grad.double()[x < -0.1], 2 * slope, rtol=2 * bound, atol=0)
    special = torch.tensor([-1.0, math.nan, 0.0, math.inf, -math.inf], dtype=dtype)
    assert_same(F.rrelu(special.to("dml"), 0.1, 0.3), F.rrelu(special.double(), 0.1, 0.3).to(dtype))
    assert F.rrelu(special.to("dml"), 0.1, 0.3, training=True, inplace=True).cpu()[1].isnan()
    with pytest.raises(RuntimeError, match="Lower bound"):
        F.rrelu(special.to("dml"), 0.4, 0.3)


def test_normal_takes_no_place_for_integers() -> None:
    for n in (0, 3):
        assert_same_error(lambda x, out: torch.normal(x, x, out=out), torch.ones(3), torch.zeros(n).int(), words=False)


@dtypes(FLOATS)
def test_numbers_do_not_depend_on_the_address(dtype: torch.dtype) -> None:
    """A tensor whose samples are stored as vectors, and one that is not aligned for that."""
    for n in (1, 3, 4, 1023):
        for fill in (torch.Tensor.normal_, torch.Tensor.uniform_, torch.Tensor.bernoulli_):
            x, y = torch.empty(n, dtype=dtype, device="dml"), torch.empty(n + 1, dtype=dtype, device="dml")[1:]
            seeded(3)
            fill(x)
            seeded(3)
            fill(y)
            assert torch.equal(x, y)


@dtypes(FLOATS)
def test_dropout_is_the_same_in_one_kernel_and_in_two(dtype: torch.dtype) -> None:
    for n in (1, 4, 1001):
        x = torch.randn(2, n, dtype=dtype, device="dml")
        x[0, 0] = math.inf
        seeded(5)
        together = torch.native_dropout(x, 0.3, True)
        seeded(5)
        apart = torch.native_dropout(torch.cat([x, x], 1)[:, :n], 0.3, True)
        assert_same(together[0], apart[0].cpu())
        assert torch.equal(together[1], apart[1])
