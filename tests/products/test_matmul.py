"""Products of matrices and vectors, compared with the CPU and float64."""

from __future__ import annotations

import itertools
import math
import re

import pytest
import torch

from tests.support.compare import assert_matches_cpu, assert_same, assert_same_outcome
from tests.support.dtypes import FLOATS, HALVES, NUMBERS, dtypes
from tests.support.environment import TORCH
from tests.support.launches import launches

LAYOUTS = ["rows", "columns", "gaps", "expanded"]


def make(shape, dtype, layout="rows"):
    if dtype.is_floating_point:
        x = torch.randn(shape, dtype=torch.float64).to(dtype)
    else:
        x = torch.randint(0 if dtype == torch.uint8 else -9, 10, shape).to(dtype)
    if layout == "columns":
        return x.mT.contiguous().mT
    if layout == "gaps":
        return torch.stack([x, x], -1).flatten(-2)[..., ::2]
    if layout == "expanded":
        return x[..., :1].expand(shape)
    return x


def bound(dtype, k):
    """The rounding of the result, and of a sum of k products of order 1."""
    eps = torch.finfo(dtype).eps
    sums = torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32).eps
    return {"rtol": eps, "atol": 8 * k * sums}


def check(function, *args, k=1):
    """Compares the function on dml with float64 (floats) or the CPU (integers)."""
    got = function(*[a.to("dml") for a in args])
    assert got.device.type == "dml"
    dtype = args[0].dtype
    if not dtype.is_floating_point:
        assert torch.equal(got.cpu(), function(*args))
        return
    expected = function(*[a.double() for a in args])
    assert got.dtype == dtype and got.shape == expected.shape
    torch.testing.assert_close(got.cpu().double(), expected, **bound(dtype, k))


@dtypes(NUMBERS)
def test_dtypes(dtype):
    check(torch.mm, make((33, 20), dtype), make((20, 24), dtype), k=20)
    check(torch.bmm, make((3, 12, 8), dtype), make((3, 8, 20), dtype), k=8)
    check(torch.mv, make((40, 33), dtype), make((33,), dtype), k=33)
    check(torch.dot, make((100,), dtype), make((100,), dtype), k=100)
    check(torch.addmm, make((24,), dtype), make((5, 16), dtype), make((16, 24), dtype), k=16)


@pytest.mark.parametrize("first", LAYOUTS)
@pytest.mark.parametrize("second", LAYOUTS)
def test_layouts(first, second):
    for m, n, k in [(17, 23, 9), (16, 24, 32)]:
        check(torch.mm, make((m, k), torch.float32, first), make((k, n), torch.float32, second), k=k)
        check(torch.bmm, make((2, m, k), torch.float32, first), make((2, k, n), torch.float32, second), k=k)


@pytest.mark.parametrize(
    "shape",
    [(1, 1, 1), (1, 1, 70000), (1, 300, 64), (300, 1, 64), (4, 200, 33), (200, 3, 40), (64, 64, 64), (65, 130, 31)],
)
def test_shapes(shape):
    m, n, k = shape
    check(torch.mm, make((m, k), torch.float32), make((k, n), torch.float32), k=k)


@pytest.mark.parametrize("offset", [1, 2, 3])
def test_unaligned_storage(offset):
    x = torch.randn(20 * 24 + offset)
    y = torch.randn(24, 16)
    got = torch.mm(x.to("dml")[offset:].view(20, 24), y.to("dml"))
    torch.testing.assert_close(got.cpu(), torch.mm(x[offset:].view(20, 24), y))


@pytest.mark.parametrize("beta", [1, 0, 0.5])
@pytest.mark.parametrize("alpha", [1, 2.5])
def test_factors(beta, alpha):
    a, b = make((6, 8), torch.float32), make((8, 12), torch.float32)
    for bias in [make(s, torch.float32) for s in [(), (12,), (1, 12), (6, 1), (6, 12)]]:
        check(lambda x, a, b: torch.addmm(x, a, b, beta=beta, alpha=alpha), bias, a, b, k=8)
    a3, b3 = make((4, 6, 8), torch.float32), make((4, 8, 12), torch.float32)
    for bias in [make(s, torch.float32) for s in [(12,), (4, 1, 12), (4, 6, 12)]]:
        check(lambda x, a, b: torch.baddbmm(x, a, b, beta=beta, alpha=alpha), bias, a3, b3, k=8)
    bias = make((6, 12), torch.float32)
    check(lambda x, a, b: torch.addbmm(x, a, b, beta=beta, alpha=alpha), bias, a3, b3, k=32)
    vector = make((8,), torch.float32)
    check(lambda x, a, v: torch.addmv(x, a, v, beta=beta, alpha=alpha), make((6,), torch.float32), a, vector, k=8)


def test_factors_of_integers_truncate():
    x, a = make((4, 4), torch.int32), make((4, 4), torch.int32)
    assert_matches_cpu(lambda x, a: torch.addmm(x, a, a, beta=0.5, alpha=2.9), x, a)


def test_a_batch_longer_than_a_launch():
    check(torch.bmm, make((70_000, 2, 3), torch.float32), make((70_000, 3, 5), torch.float32), k=3)


def test_beta_zero_ignores_nan():
    x = torch.full((2, 2), math.nan)
    assert_matches_cpu(lambda x: torch.addmm(x, torch.ones_like(x), torch.ones_like(x), beta=0), x)


@dtypes(torch.float32, torch.float64, torch.int64)
@pytest.mark.parametrize("beta", [0, 1, 2])
def test_alpha_zero_ignores_infinities(beta, dtype):
    values = [1, 2, 3] if dtype == torch.int64 else [1.0, -0.0, math.inf]
    x, matrix, row = torch.full((3, 3), values[2], dtype=dtype), torch.ones(3, 3, dtype=dtype), torch.tensor(values)
    row = row.to(dtype)
    zero = {"beta": beta, "alpha": 0}
    for function in (
        lambda b, x: torch.addmv(b, x, x[0], **zero),
        lambda b, x: (b * matrix.to(b.device)).addmm_(x, x, **zero),
        lambda b, x: torch.addmm(b, x, x, **zero),
        lambda b, x: torch.addmm(b, x, x, **zero, out=b.new_empty(3, 3)),
    ):
        assert_same_outcome(lambda b, x, function=function: (y := function(b, x), y.signbit()), row, x)
    # The addend overlaps the result with other strides.
    out = (row * matrix).to("dml")
    expected = torch.addmm(out.mT.clone(), x.to("dml"), x.to("dml"), **zero)
    assert_same(torch.addmm(out.mT, x.to("dml"), x.to("dml"), **zero, out=out), expected.cpu())


def test_dtypes_of_vectors():
    made = [torch.tensor([1, 0, 1]).to(dtype) for dtype in (torch.float32, torch.float16, torch.int64, torch.bool)]
    for self, matrix, row in itertools.product(made, repeat=3):
        # torch from 2.15 on refuses all mixed dtypes; the device accepts those that earlier
        # versions accept.
        if TORCH >= (2, 15) and not self.dtype == matrix.dtype == row.dtype:
            continue
        for n in (3, 0):
            given = self[:n], matrix.expand(3, 3)[:n, :], row
            assert_same_outcome(lambda s, m, v: torch.mv(m, v), *given)
            assert_same_outcome(lambda s, m, v: s.clone().addmv_(m, v), *given)
            if self.dtype != torch.bool:
                assert_same_outcome(torch.addmv, *given)


def test_special_values():
    a = torch.tensor([[math.inf, 1.0], [math.nan, 2.0]])
    b = torch.tensor([[1.0, 0.0], [3.0, 4.0]])
    assert_matches_cpu(torch.mm, a, b)


def test_empty():
    for m, n, k in [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)]:
        assert_matches_cpu(torch.mm, torch.randn(m, k), torch.randn(k, n))
        assert_matches_cpu(torch.bmm, torch.randn(2, m, k), torch.randn(2, k, n))
        x, a, b = torch.randn(n), torch.randn(m, k), torch.randn(k, n)
        assert_matches_cpu(lambda x, a, b: torch.addmm(x, a, b, beta=2), x, a, b)
    assert_matches_cpu(torch.bmm, torch.randn(0, 2, 3), torch.randn(0, 3, 4))
    assert_matches_cpu(torch.dot, torch.randn(0), torch.randn(0))
    assert_matches_cpu(torch.mv, torch.randn(3, 0), torch.randn(0))


def test_out():
    a, b = torch.randn(6, 8), torch.randn(8, 12)
    x, y = a.to("dml"), b.to("dml")
    for out in [torch.empty(6, 12), torch.empty(12, 6).t(), torch.empty(6, 24)[:, ::2], torch.empty(0)]:
        result = out.to("dml") if out.is_contiguous() else torch.empty_strided(out.shape, out.stride(), device="dml")
        assert torch.mm(x, y, out=result) is result
        assert_same(result, a @ b)
    result = x.new_empty(6, 12)
    torch.addmm(y[0], x, y, out=result)
    assert_same(result, torch.addmm(b[0], a, b))


def test_in_place():
    a, b, c = torch.randn(8, 8), torch.randn(8, 8), torch.randn(8, 8)
    x, y, z = a.to("dml"), b.to("dml"), c.to("dml")
    pointer = z.data_ptr()
    z.addmm_(x, y, beta=0.5)
    assert z.data_ptr() == pointer
    assert_same(z, c.clone().addmm_(a, b, beta=0.5))
    # The result overlaps an operand.
    x.addmm_(x, y)
    assert_same(x, a + a @ b)
    t = torch.randn(2, 8, 8)
    assert_same(t.to("dml").baddbmm_(t.to("dml"), t.to("dml")), torch.baddbmm(t, t, t))
    assert_same(c[0].to("dml").addmv_(y, b[1].to("dml")), torch.addmv(c[0], b, b[1]))


def test_matmul_of_every_rank():
    shapes = [((5,), (5,)), ((4, 5), (5,)), ((5,), (5, 3)), ((2, 4, 5), (5,)), ((2, 4, 5), (5, 3))]
    shapes += [((2, 4, 5), (2, 5, 3)), ((3, 1, 4, 5), (2, 5, 3)), ((4, 5), (2, 5, 3))]
    for a, b in shapes:
        assert_matches_cpu(torch.matmul, torch.randn(a), torch.randn(b))
    assert_matches_cpu(lambda a, b: torch.einsum("bij,bkj->bik", a, b), torch.randn(2, 3, 4), torch.randn(2, 5, 4))


def test_linear_and_its_gradients():
    for shape in [(5, 12), (2, 3, 12), (12,)]:
        x, w, b = torch.randn(shape), torch.randn(7, 12), torch.randn(7)
        grads = []
        for device in ("cpu", "dml"):
            leaves = [t.detach().to(device).requires_grad_() for t in (x, w, b)]
            y = torch.nn.functional.linear(*leaves)
            y.backward(torch.ones_like(y))
            grads.append([y] + [leaf.grad for leaf in leaves])
        for got, expected in zip(grads[1], grads[0], strict=True):
            assert_same(got, expected, rtol=1e-5, atol=1e-5)


def test_the_same_bits_every_time():
    a, b = torch.randn(40, 3000, device="dml"), torch.randn(3000, 24, device="dml")
    first = (a @ b).cpu()
    assert all(torch.equal(first, (a @ b).cpu()) for _ in range(3))


WRONG = [
    lambda d: torch.mm(torch.ones(2, 3, device=d), torch.ones(4, 5, device=d)),
    lambda d: torch.mm(torch.ones(2, device=d), torch.ones(4, 5, device=d)),
    lambda d: torch.mm(torch.ones(2, 3, device=d), torch.ones(3, 4, device=d, dtype=torch.float64)),
    lambda d: torch.mm(torch.ones(2, 3, device=d, dtype=torch.int8), torch.ones(3, 4, device=d, dtype=torch.int64)),
    lambda d: torch.mm(torch.ones(2, 3, device=d), torch.ones(3, 4, device=d), out=torch.ones(2, 4, device=d).double()),
    lambda d: torch.addmm(torch.ones(2, device=d), torch.ones(2, 3, device=d), torch.ones(3, 4, device=d)),
    lambda d: torch.addmm(torch.ones(4, device=d).double(), torch.ones(2, 3, device=d), torch.ones(3, 4, device=d)),
    lambda d: torch.addmm(torch.ones(4, device=d), torch.ones(3, device=d), torch.ones(3, 4, device=d)),
    lambda d: torch.ones(4, device=d).addmm_(torch.ones(2, 3, device=d), torch.ones(3, 4, device=d)),
    lambda d: torch.bmm(torch.ones(2, 3, device=d), torch.ones(2, 3, 4, device=d)),
    lambda d: torch.bmm(torch.ones(2, 3, 4, device=d), torch.ones(2, 5, 4, device=d)),
    lambda d: torch.bmm(torch.ones(2, 3, 4, device=d), torch.ones(2, 4, 4, device=d).double()),
    lambda d: torch.baddbmm(torch.ones(5, device=d), torch.ones(2, 3, 4, device=d), torch.ones(2, 4, 4, device=d)),
    lambda d: torch.baddbmm(torch.ones(4).int().to(d), torch.ones(2, 3, 4, device=d), torch.ones(2, 4, 4, device=d)),
    lambda d: torch.mv(torch.ones(2, 3, device=d), torch.ones(4, device=d)),
    lambda d: torch.mv(torch.ones(2, 3, device=d), torch.ones(3, 1, device=d)),
    lambda d: torch.addmv(torch.ones(3, device=d), torch.ones(2, 3, device=d), torch.ones(3, device=d)),
    lambda d: torch.mv(torch.ones((), device=d), torch.ones(3, device=d)),
    *(
        lambda d, f=f, a=a, b=b: f(torch.ones(2, 3, 4, device=d), torch.ones(a, device=d), torch.ones(b, device=d))
        for f in (torch.baddbmm, torch.addbmm)
        for a, b in (((), (2, 3, 4)), ((2,), (2, 3, 4)), ((2, 3, 4), ()), ((2, 3, 4), (2, 4)))
    ),
    lambda d: torch.dot(torch.ones(2, device=d), torch.ones(3, device=d)),
    lambda d: torch.dot(torch.ones(2, 1, device=d), torch.ones(2, device=d)),
    lambda d: torch.dot(torch.ones(2, device=d), torch.ones(2, device=d).double()),
    lambda d: torch.nn.functional.linear(torch.ones(2, 3, device=d), torch.ones(5, 4, device=d)),
]


@pytest.mark.parametrize("wrong", WRONG)
def test_errors_are_the_cpu_s(wrong):
    with pytest.raises(Exception) as expected:
        wrong("cpu")
    with pytest.raises(type(expected.value)) as got:
        wrong("dml")
    message, wanted = (str(error.value).split("\n")[0] for error in (got, expected))
    # Later versions of torch have other messages for some: the numbers in them have to agree.
    assert message == wanted or (
        TORCH >= (2, 15) and set(re.findall(r"\d+", message)) <= set(re.findall(r"\d+", wanted))
    )


def test_nothing_is_multiplied_in_any_dtype():
    for a, b in (((0, 2, 3), (0, 3, 4)), ((2, 2, 0), (2, 0, 4))):
        x, y = torch.ones(a), torch.ones(b, dtype=torch.float64)
        assert_same_outcome(torch.bmm, x, y, widen=False)
        assert_same_outcome(torch.baddbmm, torch.ones(a[0], 2, 4), x, y, widen=False)
    x, y = torch.ones(0, 2, 3), torch.ones(0, 3, 4, dtype=torch.float64)
    assert_same_outcome(torch.addbmm, torch.ones(2, 4, dtype=torch.float16), x, y, widen=False)
    flags = torch.ones(2, 4, dtype=torch.bool)
    with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
        torch.addmm(*(t.to("dml") for t in (flags, flags[:, :0], flags[:0])), beta=0.5)


def test_bool_is_not_multiplied():
    x = torch.ones(2, 2, dtype=torch.bool, device="dml")
    for function in (torch.mm, lambda a, b: torch.bmm(a[None], b[None]), lambda a, b: torch.mv(a, b[0])):
        with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
            function(x, x)


@pytest.mark.parametrize("gelu", [False, True])
def test_products_with_an_activation(gelu):
    operands = torch.randn(5), torch.randn(3, 4), torch.randn(4, 5)
    options = {"beta": 0.5, "alpha": 2, "use_gelu": gelu}
    assert_matches_cpu(lambda c, a, b: torch._addmm_activation(c, a, b, **options), *operands)
    out = torch.empty(0)
    assert_matches_cpu(lambda c, a, b, o: torch._addmm_activation(c, a, b, **options, out=o), *operands, out)


@pytest.mark.parametrize("gelu", [False, True])
@dtypes(FLOATS)
def test_activations_in_every_way_of_a_product(dtype, gelu):
    """Few rows and many, k divided, and empty products; infinities and NaN as in the activation
    alone.
    """
    run = lambda c, a, b, **o: torch._addmm_activation(c, a, b, use_gelu=gelu, **o)  # noqa: E731
    for m, k, n in ((1, 33, 40), (3, 7, 2), (70, 40, 66), (20, 3000, 12), (4, 0, 3)):
        a, b = torch.randn(m, k) / max(k, 1) ** 0.5, torch.randn(k, n)
        c, a, b = torch.randn(n).to(dtype), a.to(dtype), b.to(dtype)
        # The addend cancels some of the sums.
        assert_matches_cpu(run, c, a, b, terms=8)
        assert_matches_cpu(run, c, a, b.mT.contiguous().mT, beta=0, terms=8)
    assert_matches_cpu(run, c, a, b, alpha=0)
    special = torch.tensor([math.inf, -math.inf, math.nan, -0.0], dtype=dtype)
    assert_matches_cpu(run, special, torch.zeros(5, 8, dtype=dtype), torch.zeros(8, 4, dtype=dtype))


@pytest.mark.parametrize("gelu", [False, True])
def test_an_activation_is_no_launch_of_its_own(gelu):
    c, a, b = (torch.randn(s, device="dml") for s in ((48,), (64, 32), (32, 48)))
    alone = launches(lambda: torch.addmm(c, a, b))
    assert launches(lambda: torch._addmm_activation(c, a, b, use_gelu=gelu)) == alone


@dtypes(HALVES)
def test_products_in_a_wider_dtype(dtype):
    a, b, c = torch.randn(3, 40), torch.randn(40, 5), torch.randn(5)
    a, b, c = (t.to(dtype) for t in (a, b, c))
    there = [t.to("dml") for t in (a, b, c)]
    wide, product = torch.float32, a.float() @ b.float()
    added = c.float() * 0.5 + product * 2
    assert_same(torch.mm(*there[:2], out_dtype=wide), product)
    assert_same(torch.bmm(*(t[None] for t in there[:2]), out_dtype=wide), product[None])
    for addend in (there[2], there[2].float()):
        assert_same(torch.addmm(addend, *there[:2], out_dtype=wide, beta=0.5, alpha=2), added)
        batches = [t[None] for t in there[:2]]
        assert_same(torch.baddbmm(addend, *batches, out_dtype=wide, beta=0.5, alpha=2), added[None])
    out = torch.empty(0, device="dml")
    assert_same(torch.mm(*there[:2], out_dtype=wide, out=out), product)
    assert_same(torch.mm(*there[:2], out_dtype=dtype), product.to(dtype))
    with pytest.raises(RuntimeError, match="out_dtype must be the same"):
        torch.mm(*there[:2], out_dtype=torch.float64)


@pytest.mark.parametrize("sizes", [(7, 4), (2, 3, 4), (4,), (0, 4)])
def test_gradients_of_a_linear_layer(sizes):
    # The CPU has no such operator: it is composed.
    x, w = torch.randn(sizes, requires_grad=True), torch.randn(5, 4, requires_grad=True)
    b, g = torch.randn(5, requires_grad=True), torch.randn(*sizes[:-1], 5)
    expected = torch.autograd.grad(torch.nn.functional.linear(x, w, b), (x, w, b), g)
    there = [t.detach().to("dml") for t in (x, g, w)]
    assert_same(torch.ops.aten.linear_backward(*there, (True, True, True)), list(expected))
    partly = torch.ops.aten.linear_backward(*there, (False, True, False))
    assert partly[0] is None and partly[2] is None


def test_addbmm_of_no_batches_and_of_too_few_dimensions() -> None:
    """Without batches, self is multiplied by beta, whatever the dtypes of the batches."""
    none, empty = torch.ones(0, 2, 3), torch.ones(2, 2, 0)
    for self in (torch.ones(2, 4), torch.ones(4).int(), torch.ones(2, 4).half(), torch.ones(2, 4).bool()):
        for beta in (0, 1, 2, 0.5):
            for a, b in ((none, torch.ones(0, 3, 4)), (empty, torch.ones(2, 0, 4)), (none.int(), torch.ones(0, 3, 4))):
                assert_same_outcome(lambda s, a, b, beta=beta: torch.addbmm(s, a, b, beta=beta, alpha=1), self, a, b)
                assert_same_outcome(lambda s, a, b, beta=beta: torch.addbmm(s, a, b.to(s.dtype), beta=beta), self, a, b)
    for a, b in ((torch.ones(3), torch.ones(2, 3, 4)), (torch.ones(2, 3, 4), torch.ones(4, 5)), (none, torch.ones(3))):
        assert_same_outcome(torch.addbmm, torch.ones(4), a, b)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
@pytest.mark.parametrize("into", [torch.int8, torch.int32, torch.float32, torch.float64])
def test_addbmm_into_another_dtype(dtype: torch.dtype, into: torch.dtype) -> None:
    """The result is first a copy of the addend: its dtype is that of the batches, if there are
    any.
    """
    bias, out = torch.ones(2, 4, dtype=dtype), torch.full((2, 4), 7, dtype=into)
    for batches, beta in itertools.product((0, 2), (0, 1, 0.5)):
        for factors in (dtype, into):
            a, b = torch.ones(batches, 2, 3, dtype=factors), torch.ones(batches, 3, 4, dtype=factors)
            run = lambda s, a, b, out, beta=beta: torch.addbmm(s, a, b, beta=beta, alpha=1, out=out)  # noqa: E731
            assert_same_outcome(run, bias, a, b, out, widen=False)


@pytest.mark.parametrize("beta", [0, 0.0, 1, 1.0, 0.5, True])
def test_multiples_of_integers_without_a_product(beta: float) -> None:
    """Without a product the CPU computes an ordinary multiple: a fractional multiple of integers is
    refused.
    """
    for inner in (0, 1):
        x, a, b = (torch.ones(size, dtype=torch.int32) for size in ((2, 3), (2, inner), (inner, 3)))
        for function in (torch.addmm, lambda x, a, b, beta: torch.baddbmm(x[None], a[None], b[None], beta=beta)):
            assert_same_outcome(lambda x, a, b, f=function: f(x, a, b, beta=beta), x, a, b)
        assert_same_outcome(lambda x, a, b: torch.addmv(x[:, 0], a, b[:, 0], beta=beta), x, a, b)


def test_long_sums():
    """Mesa's software adapter before version 23 ends loops of more than 65,535 iterations: those of
    a product are shorter.
    """
    x = torch.randint(-1, 2, (9, 280_000)).float()
    assert_same_outcome(lambda x: x @ x.t(), x)
    assert_same_outcome(lambda x: torch.bmm(x[None, :, :270_001], x[None, :, :270_001].mT), x)
    assert_same_outcome(lambda x: x[0] @ x[1], x)


def beside_nan(x):
    """The same matrices as parts of larger ones, whose other elements are NaN."""
    larger = torch.full((*x.shape[:-2], x.shape[-2] + 9, x.shape[-1] + 9), math.nan, dtype=x.dtype).to("dml")
    part = larger[..., : x.shape[-2], : x.shape[-1]]
    part.copy_(x)
    return part


@pytest.mark.parametrize("k", [513, 518])
@dtypes([torch.float32, *HALVES])
def test_many_rows_that_begin_between_wide_loads(dtype, k):
    """They are copied first: what is between the rows is not read, in either operand."""
    m, n = 514, 520
    a, b = make((m, k), dtype), make((k, n), dtype)
    expected = a.double() @ b.double()
    left, right, turned = beside_nan(a), beside_nan(b), beside_nan(b.t().contiguous()).t()
    for x, y in ((left, right), (left, turned), (a.to("dml"), turned), (a.to("dml"), b.to("dml"))):
        torch.testing.assert_close((x @ y).cpu().double(), expected, **bound(dtype, k))
    batch = torch.bmm(torch.stack([left, left]), turned.expand(2, k, n))
    for result in batch.cpu().double():
        torch.testing.assert_close(result, expected, **bound(dtype, k))
