"""The fuzzer finds planted faults, and nothing if there is none; its cases are reproducible."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from multiprocessing import active_children

import pytest
import torch

from tests.fuzz import cases, families, known, report, snippet, work
from tests.fuzz.calls import BACKWARD, DOUBLE, FORWARD, Call, Variant, execute
from tests.fuzz.cases import Case
from tests.fuzz.judging import Difference
from tests.fuzz.outcome import Outcome
from tests.fuzz.reference import Reference, ReferenceFailed
from tests.fuzz.schemas import parse
from tests.fuzz.subjects import Subject
from tests.fuzz.tensors import placed
from tests.fuzz.trial import CPU_FAILED, RANDOM, SAME, SKIPPED, Finding, judge

CPU = torch.device("cpu")
NAN, INF = float("nan"), float("inf")


@dataclass
class Here:
    """The reference in this process."""

    case: Case

    def ask(self, number: int, variant: Variant) -> None:
        self.outcome = execute(self.case.call, CPU, variant)

    def answer(self) -> Outcome:
        return self.outcome


def found(
    right: str,
    wrong: str,
    *args: object,
    stage: str = FORWARD,
    pointwise: bool = True,
    name: str = "planted",
    flushes: bool = False,
    **kwargs: object,
) -> set[str]:
    """The kinds of difference between the function `right` on the CPU and `wrong`, which takes the
    device's place.
    """
    made = [Call(function, list(args), dict(kwargs), stage) for function in (right, wrong)]
    case = Case(0, Subject(name, lambda rng: made[0], lambda: pointwise), made[0])
    want, got = (execute(call, CPU) for call in made)
    return {difference.kind for difference in judge(case, want, got, Here(case), flushes)}  # type: ignore[arg-type]


def numbers(*values: float, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype)


class TestComplexNumbers:
    """Complex results are compared by their distances in the plane."""

    z = torch.tensor([1 + 2j, -0.25j, 3e-3 + 1e3j, 0.5 - 0.5j], dtype=torch.complex64)

    def test_near(self) -> None:
        # A part that is small compared with the other one may be off by a rounding of the larger
        # one.
        assert found("torch.clone", "lambda z: z + 3e-5", self.z[2:3]) == {SAME}
        assert found("torch.clone", "lambda z: z + 3e-5", self.z) == {"value"}
        assert found("torch.clone", "lambda z: z * (1 + 1e-7j)", self.z) == {SAME}
        assert found("torch.exp", "lambda z: torch.exp(z) * (1 + 1e-4j)", self.z[:2]) == {"value"}

    def test_real_results_of_complex_numbers_that_flush(self) -> None:
        assert found("torch.abs", "torch.abs", self.z, flushes=True) == {SAME}
        assert found("torch.angle", "lambda z: torch.angle(z) + 1e-3", self.z, flushes=True) == {"value"}

    def test_conjugates(self) -> None:
        for view in (self.z.conj(), torch._neg_view(self.z), self.z.conj()[1:3]):
            assert found("torch.clone", "lambda z: z.resolve_conj().resolve_neg().clone()", view) == {SAME}
            assert found("torch.clone", "lambda z: z.resolve_conj().resolve_neg().conj()", view) == {"value"}

    def test_sums(self) -> None:
        z = torch.complex(torch.randn(1000), torch.randn(1000))
        assert found("torch.fft.fft", "lambda z: torch.fft.fft(z) + 3e-6", z, pointwise=False) == {SAME}
        assert found("torch.fft.fft", "lambda z: torch.fft.fft(z) + 1e-2", z, pointwise=False) == {"value"}
        assert found("torch.fft.fft", "lambda z: torch.fft.ifft(z, norm='forward')", z, pointwise=False) == {"value"}

    def test_what_is_not_finite(self) -> None:
        assert found("torch.clone", "lambda z: z * float('nan')", self.z) == {"infinity"}
        assert found("lambda z: z * float('nan')", "lambda z: z * float('inf')", self.z) == {SAME}

    def test_gradients(self) -> None:
        z = self.z.clone().requires_grad_()
        wrong = "lambda z: torch.complex(z.real, 2 * z.imag - z.imag.detach())"
        assert found("lambda z: z * 1", wrong, z, stage=BACKWARD, pointwise=False) == {"gradient: value"}


class TestRandomNumbers:
    """Samples are compared by their distribution."""

    def found(self, right: str, wrong: str) -> set[str]:
        one, other = (Call(function, [], {}, seed=seed) for seed, function in ((1, right), (2, wrong)))
        case = Case(0, Subject("planted", lambda rng: one, drawn=True), one)
        want, got = (execute(call, CPU) for call in (one, other))
        return {difference.kind for difference in judge(case, want, got, Here(case))}  # type: ignore[arg-type]

    def test_same(self) -> None:
        for drawn in ("torch.randn(4096, 2)", "torch.randint(0, 3, (4096, 1))", "torch.bernoulli(torch.rand(4096, 2))"):
            assert self.found(f"lambda: {drawn}", f"lambda: {drawn}") == {SAME}

    def test_others(self) -> None:
        right = "lambda: torch.randn(4096, 2)"
        for wrong in ("1.3 * torch.randn(4096, 2)", "torch.randn(4096, 2) + 0.2", "torch.randn(4096, 2).round()"):
            assert self.found(right, f"lambda: {wrong}") == {"distribution"}
        column = "lambda: torch.stack((torch.randn(4096), torch.rand(4096)), 1)"
        assert self.found(right, column) == {"distribution"}
        assert self.found(right, "lambda: torch.randn(4096, 2).log()") == {"distribution"}


def test_sparse_results() -> None:
    i, v = torch.tensor([[0, 2, 0], [1, 1, 1]]), torch.tensor([1.0, 2.0, 3.0])
    made = "torch.sparse_coo_tensor(i, v, (3, 4))"
    assert found(f"lambda i, v: {made}.coalesce()", f"lambda i, v: {made}.coalesce()", i, v) == {SAME}
    assert "value" in found(f"lambda i, v: {made}", f"lambda i, v: {made} * 2", i, v)
    assert "shape" in found(f"lambda i, v: {made}.coalesce()", f"lambda i, v: {made}", i, v)
    rows = f"lambda i, v: {made}.coalesce().to_sparse_csr()"
    assert found(rows, rows, i, v) == {SAME}
    assert "value" in found(rows, rows.replace("coalesce()", "coalesce().mul(-1)"), i, v)


@pytest.mark.parametrize("family", families.MEMBERS)
def test_families_are_the_same_each_time(family: str) -> None:
    """A case's number determines everything; the CPU accepts most of the cases."""
    first, taken = families.NAMES.index(family) * families.SPAN, 0
    numbers = range(first, first + 24 * cases.BLOCK, cases.BLOCK + 1)
    for number in numbers:
        assert families.name_of(number) == family
        one, other = cases.make(number), cases.make(number)
        assert one.subject is other.subject
        assert snippet.program(one, "dml") == snippet.program(other, "dml")
        taken += execute(one.call, CPU).error is None
    assert taken > len(numbers) // 2


def test_interleaved_numbers() -> None:
    span, block = families.SPAN, cases.BLOCK
    numbers = families.Interleaved(["fft", "real"], 32, 3 * block, block)
    assert len(numbers) == 3 * block
    expected = [*range(2 * span + 32, 2 * span + 32 + block), *range(32, 32 + block)]
    assert numbers[: 2 * block] == expected
    assert numbers[2 * block] == 2 * span + 32 + block
    assert families.name_of(31) == "real"


class TestOrderOfWriting:
    """The results of writes to memory that elements share depend on the order; other results do
    not.
    """

    def test_shared(self) -> None:
        x = torch.arange(11.0)
        args = (x.as_strided((3, 3), (4, 1)), x.as_strided((3, 3), (1, 4)))
        assert found("lambda x, y: x.add_(y)", "lambda x, y: x.add_(y.clone())", *args) == {SAME}
        assert found("lambda x, y: x.add_(y)", "lambda x, y: x.sum()", *args) >= {"shape"}

    def test_apart(self) -> None:
        x = torch.arange(10.0)
        for args in ((x[:5], x[5:]), (x, x)):
            assert "value" in found("lambda x, y: x.add_(y)", "lambda x, y: x.add_(y).mul_(2)", *args)


class TestStridedArguments:
    """Where the CPU's result with strides is wrong, the device's is right if it equals the CPU's
    result for contiguous tensors.
    """

    wrong = "lambda x, out: out.copy_(torch.as_strided(x, x.shape, (x.shape[1], 1)) if not x.is_contiguous() else x)"

    def test_right(self) -> None:
        x, out = torch.arange(8.0).reshape(2, 2, 2)[..., 0], torch.zeros(2, 4)[:, ::2]
        assert found(self.wrong, "lambda x, out: out.copy_(x)", x, out) == {SAME}
        assert "value" in found(self.wrong, "lambda x, out: out.copy_(x + 1)", x, out)
        assert "value" in found("lambda x, out: out.copy_(x)", "lambda x, out: out.copy_(x + 1)", x, out)

    def test_elsewhere(self) -> None:
        x, out = torch.arange(8.0).reshape(2, 2, 2)[..., 0], torch.zeros(2, 4)[:, ::2]
        beside = "lambda x, out: out.copy_(x.clone()) + 0 * out.as_strided((2,), (4,), 1).fill_(7)[0]"
        assert "argument: value" in found(self.wrong, beside, x, out)
        input_too = "lambda x, out: (out.copy_(x.clone()), x.zero_())[0]"
        assert "argument: value" in found(self.wrong, input_too, x, out)


def test_storage_of_other_strides() -> None:
    one = "lambda x, y, out: out.set_(out.untyped_storage(), 0, (2, 3), (3, 1)).copy_(x + y)"
    other = one.replace("(3, 1)", "(1, 2)")
    out = torch.zeros(6)
    x = torch.arange(6.0).reshape(2, 3)
    assert found(one, other, x, x.half(), out=out) == {SAME}
    assert "value" in found(one, other.replace("x + y", "x - y"), x, x.half(), out=out)


class TestPlantedFaults:
    def test_none(self) -> None:
        for dtype in (torch.float32, torch.float16, torch.int64, torch.bool):
            assert found("torch.abs", "torch.abs", numbers(1, 2, dtype=dtype)) <= {SAME, SKIPPED}

    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=str)
    def test_wrong_value(self, dtype: torch.dtype) -> None:
        x = numbers(0.3, 0.7, 1.1, dtype=dtype)
        units = 64 * torch.finfo(dtype).eps
        assert found("torch.sin", f"lambda x: torch.sin(x) * (1 + {units})", x) == {"value"}
        assert found("torch.sin", f"lambda x: torch.sin(x) * (1 + {torch.finfo(dtype).eps / 4})", x) == {SAME}

    def test_wrong_integer(self) -> None:
        large = torch.tensor([10**9, 2])
        assert found("lambda x: x + 1", "lambda x: x + 1 + (x == 2).long()", large) == {"value"}

    def test_one_wrong_element_of_many(self) -> None:
        x = torch.randn(1000)
        assert found("torch.exp", "lambda x: torch.exp(x).index_fill(0, torch.tensor([777]), 0.5)", x) == {"value"}

    def test_missing_nan_and_infinity(self) -> None:
        assert found("torch.sqrt", "lambda x: torch.sqrt(x).nan_to_num(0.0)", numbers(-1, 4)) == {"nan"}
        assert found("torch.log", "lambda x: torch.log(x).clamp_min(-1e30)", numbers(0, 4)) == {"infinity"}

    def test_sign_of_zero(self) -> None:
        assert found("torch.ceil", "lambda x: torch.ceil(x) + 0.0", numbers(-0.5, 1)) == {"zero sign"}

    def test_flushed_subnormals(self) -> None:
        flushed = "lambda x: torch.where(x.abs() < 1e-37, 0 * x, x)"
        assert found("torch.clone", flushed, numbers(1e-40, 1)) == {"subnormal"}
        assert found("torch.clone", flushed, numbers(1e-40, -1e-40, 1), flushes=True) == {SAME}
        for dtype in (torch.float32, torch.float64, torch.bfloat16):
            small, two = torch.tensor([0.75, -0.5], dtype=dtype) * torch.finfo(dtype).tiny, torch.tensor(2.0)
            assert found("torch.mul", "lambda x, y: x * y * 0", small, two, flushes=True) == {SAME}
            assert found("torch.mul", "lambda x, y: x.abs() * 0", small, two, flushes=True) == {"value"}
            assert found("torch.mul", "lambda x, y: x * 0 + 1e-30", small, two, flushes=True) == {"value"}
            assert found("torch.mul", "lambda x, y: x * 0", small, two) == {"value"}

    def test_flushed_between(self) -> None:
        """A finite result may lose accuracy by flushed intermediate results, but must not become
        NaN.
        """
        tiny = torch.finfo(torch.float32).tiny
        x, y = numbers(tiny, 1.0), numbers(0.25, 0.5)
        right, wrong = "lambda x, y: x * y * 64", "lambda x, y: x * y * 64 * (x == 1)"
        assert found(right, wrong, x, y, flushes=True) == {SAME}
        assert found(right, wrong, x, y) == {"value"}
        assert found(right, "lambda x, y: x * y * 64 * 0", x, y, flushes=True) == {"value"}
        right, wrong = "lambda x, y: x / (x * y)", "lambda x, y: x / (x * y * (x == 1))"
        assert found(right, wrong, x, y, flushes=True) == {"infinity"}
        assert found(right, wrong, x, y, pointwise=False, flushes=True) == {SAME}
        right, wrong = "lambda x, y: x + y * 4", "lambda x, y: x + y * 4 - 0.9 * (x < 1) * x"
        assert found(right, wrong, numbers(tiny), numbers(-tiny), flushes=True) == {SAME}
        assert found(right, wrong, numbers(tiny), numbers(-tiny)) == {"value"}

    def test_flushing_but_for_exact_functions(self) -> None:
        """As for an adapter that flushes in sums and products, but not in its own logarithms and
        comparisons.
        """
        x = numbers(1e-40, 1.0).requires_grad_()
        right, wrong = "lambda x: x.log()", "lambda x: x.log() + (x != 0)"
        assert "value" in found(right, wrong, x, flushes=True)
        made = execute(Call("lambda x: x.log() * 1e-40", [x]), CPU, Variant(flushing=True, sparing=True))
        assert made.results[0].values.tolist() == [0.0, 0.0]  # type: ignore[union-attr]
        made = execute(Call("torch.log", [x]), CPU, Variant(flushing=True, sparing=True))
        assert made.results[0].values[0] > -100  # type: ignore[union-attr]
        assert torch.tensor(1e-40) * 1 != 0

    def test_floats_beyond_integers(self) -> None:
        right, wrong = "torch.cumsum", "lambda *a, **k: torch.cumsum(*a, **k) + 1"
        assert found(right, wrong, numbers(1.0, NAN), 0, dtype=torch.int32) == {SAME}
        assert found(right, wrong, numbers(1.0, 2e9), 0, dtype=torch.int32) == {"value"}
        right, wrong = "torch.cumsum", "lambda x, *a, out, **k: torch.cumsum(x.nan_to_num(), *a, out=out, **k)"
        out = torch.zeros(2, dtype=torch.uint8)
        assert found(right, wrong, numbers(1.0, -INF), 0, dtype=None, out=out) == {SAME}

    def test_sums_of_multiples(self) -> None:
        x, y = torch.randn(1000), torch.randn(1000)
        fused = "lambda x, y, alpha: (x.double() + alpha * y.double()).to(x.dtype)"
        assert found("torch.add", fused, x, y, name="aten::add.Tensor", alpha=1.7) == {SAME}
        off = "lambda x, y, alpha: torch.add(x, y, alpha=alpha * (1 + 2e-5))"
        assert found("torch.add", off, x, y, name="aten::add.Tensor", alpha=1.7) == {"value"}

    def test_terms_that_cancel(self) -> None:
        """Near a zero, the error is relative to the terms, not to the result."""
        x = 2.404825557695773 + torch.linspace(-1e-5, 1e-5, 99)
        off = "lambda x: torch.special.bessel_j0(x) + 2e-8"
        assert found("torch.special.bessel_j0", off, x, name="special.bessel_j0") == {SAME}
        assert found("torch.special.bessel_j0", off, x) == {"value"}
        off = off.replace("2e-8", "2e-5")
        assert found("torch.special.bessel_j0", off, x, name="special.bessel_j0") == {"value"}

    def test_gradients_that_cancel(self) -> None:
        x = torch.rand(5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
        right = "lambda x: x.expand(7, 5, 5) * 0.3"
        wrong = "lambda x: x.repeat(7, 1, 1) * 0.1 + x.expand(7, 5, 5) * 0.2"
        assert found(right, wrong, x, stage=BACKWARD) == {SAME}
        zero = "lambda x: x.expand(7, 5, 5) * (0.3 + 1e-12)"
        assert found(right, zero, x, stage=BACKWARD) >= {"gradient: value"}

    def test_integers_that_become_floats(self) -> None:
        x = torch.tensor([1, 2, 127])
        off = "lambda x: torch.special.bessel_y0(x.float() * (1 + 2e-7))"
        assert found("torch.special.bessel_y0", off, x, name="special.bessel_y0") == {SAME}
        wrong = "lambda x: torch.special.bessel_y0(x.float() * (1 + 1e-4))"
        assert found("torch.special.bessel_y0", wrong, x, name="special.bessel_y0") == {"value"}

    def test_wrong_strides(self) -> None:
        x = torch.randn(3, 4).t()
        assert found("torch.exp", "lambda x: torch.exp(x).contiguous()", x) == {"strides"}
        assert found("torch.exp", "lambda x: torch.exp(x).contiguous()", torch.randn(1, 4).t()) == {SAME}

    def test_wrong_dtype_and_shape(self) -> None:
        assert found("torch.exp", "lambda x: torch.exp(x).double()", numbers(1)) == {"dtype"}
        assert found("lambda x: x.sum(0, True)", "torch.sum", numbers(1, 2)) == {"shape"}
        assert found("torch.aminmax", "lambda x: (x.amin(),)", numbers(1, 2)) == {"count"}
        assert found("torch.equal", "lambda x, y: not torch.equal(x, y)", numbers(1), numbers(1)) == {"value"}

    def test_exceptions(self) -> None:
        bad = "lambda x: x.select(0, 9)"
        assert found(bad, bad, numbers(1)) == {SAME}
        assert found(bad, "torch.neg", numbers(1)) == {"accepted"}
        assert found("torch.neg", bad, numbers(1)) == {"refused"}
        assert found("lambda x: x.reshape(7)", bad, numbers(1)) == {"exception"}
        assert found("torch.bitwise_not", bad, numbers(1)) == {SKIPPED}  # no kernel on the CPU

    def test_changed_arguments(self) -> None:
        assert "argument: value" in found("torch.neg", "lambda x: x.neg_().clone()", numbers(1, 2))
        assert "argument: value" in found("lambda x: x.neg_().clone()", "torch.neg", numbers(1, 2))
        outside = "lambda x: x.as_strided((5,), (1,), 0).neg_()[1:3]"
        x = torch.arange(5.0)[1:3]
        assert "argument: value" in found("lambda x: x.neg_()", outside, x)

    def test_gradients(self) -> None:
        x = numbers(0.5, 2).requires_grad_()
        detached = "lambda x: x * x.detach()"
        assert found("lambda x: x * x", "lambda x: x * x", x, stage=DOUBLE) == {SAME}
        assert "gradient: value" in found("lambda x: x * x", detached, x, stage=BACKWARD)
        cubed = "lambda x: x ** 3 - (x - x.detach()) ** 2 * x.detach()"
        assert "second gradient: value" in found("lambda x: x ** 3", cubed, x, stage=DOUBLE)

    def test_fallbacks(self) -> None:
        call = Call("torch.neg", [numbers(1)])
        case = Case(0, Subject("planted", lambda rng: call), call)
        want, got = execute(call, CPU), execute(call, CPU)
        got.fallbacks = ("aten::neg",)
        assert [one.kind for one in judge(case, want, got, Here(case))] == ["fallback"]  # type: ignore[arg-type]
        got.fallbacks = ("aten::neg", "aten::_linalg_svd.U")
        assert [one.kind for one in judge(case, want, got, Here(case))] == ["fallback"]  # type: ignore[arg-type]
        got.fallbacks = ("aten::_linalg_svd.U",)
        assert [one.kind for one in judge(case, want, got, Here(case))] == [SKIPPED]  # type: ignore[arg-type]


class TestWhatIsOpen:
    def test_random_results(self) -> None:
        draw = "lambda x: torch.rand_like(x)"
        other = "lambda x: torch.rand_like(x).neg()"
        assert found(draw, other, torch.randn(8)) == {RANDOM}
        assert found(draw, "lambda x: torch.rand_like(x).double()", torch.randn(8)) >= {"dtype"}

    def test_ties(self) -> None:
        x = numbers(1, 1, 0, NAN, NAN)
        last = "lambda x: (x.sort().values, torch.tensor([2, 1, 0, 4, 3]))"
        wrong = "lambda x: (x.sort().values, torch.tensor([2, 1, 3, 4, 0]))"
        assert found("torch.sort", last, x, name="sort") == {SAME}
        assert found("torch.sort", last, x, name="planted") == {"value"}
        assert found("torch.sort", wrong, x, name="sort") == {"value"}

    def test_gradients_of_ties(self) -> None:
        x = numbers(2, 1, 1, -3).requires_grad_()
        other = "lambda x: x[torch.tensor([3, 2, 1, 0])]"
        doubled = "lambda x: torch.msort(2 * x - x.detach())"
        assert found("torch.msort", other, x, stage=BACKWARD, name="msort") == {SAME}
        assert found("torch.msort", doubled, x, stage=BACKWARD, name="msort") == {"gradient: value"}

    def test_signs_of_zeros_that_are_selected(self) -> None:
        x, zeros = numbers(-0.0, 1), numbers(0.0, 0.0)
        other = "lambda x, y: torch.maximum(y, x)"
        assert found("torch.maximum", other, x, zeros, name="maximum") == {SAME}
        assert found("torch.maximum", other, x, zeros) == {"zero sign"}
        assert found("torch.maximum", "torch.minimum", x, zeros, name="maximum") == {"value"}

    def test_sums_may_cancel(self) -> None:
        x = numbers(1e4, 1, -1e4, 3e-4)
        assert found("torch.sum", "lambda x: x.flip(0).sum()", x, pointwise=False) == {SAME}
        assert found("torch.sum", "lambda x: x.flip(0).sum() + 0.1", x, pointwise=False) == {"value"}

    def test_sums_near_zero_have_either_sign(self) -> None:
        x = numbers(1, -1, 3)
        assert found("lambda x: x * x.sum() * 0", "lambda x: x * 0 - 1e-9", x, pointwise=False) == {"value"}
        wrong = "lambda x: torch.stack([x[0] + x[1] - 1e-9, x[2]])"
        assert found("lambda x: torch.stack([x[0] + x[1], x[2]])", wrong, x, pointwise=False) == {SAME}
        assert found("lambda x: torch.stack([x[0] + x[1], x[2]])", wrong, x) == {"value"}

    def test_indices_out_of_range(self) -> None:
        """The CPU's type of exception depends on dimensions and layouts."""
        x = torch.ones(4, 5)
        bad = "lambda x: x.index_select({}, torch.tensor([9]))"
        assert found(bad.format(0), bad.format(1), x) == {SAME}
        assert found(bad.format(0), "lambda x: x + torch.ones(3)", x) == {"exception"}

    def test_what_cancels_has_no_sign(self) -> None:
        """A zero where the CPU has a remainder of cancelling terms may have either sign; a zero
        that no rounding changes keeps its sign.
        """
        x = numbers(0.3, 0.1)
        right, wrong = "lambda x: (x / 3 * 3 - x).abs() - 1e-9", "lambda x: torch.zeros(2)"
        assert found(right, wrong, x, pointwise=False) == {SAME}
        assert found("lambda x: x * 0", "lambda x: -x * 0", x, pointwise=False) == {"zero sign"}
        assert found("lambda x: x * 0", "lambda x: -x * 0", x, pointwise=False, name="F.conv2d") == {SAME}

    def test_float64_is_as_exact_as_float32_says(self) -> None:
        x = numbers(0.3, 0.7, dtype=torch.float64)
        off = "lambda x: torch.exp(x * 100 / 100 + 300 - 300) * {}"
        right, near, far = (off.format(factor) for factor in (1.0, 1 + 1e-14, 1 + 1e-10))
        assert found(right, near, x, pointwise=False) == {SAME}
        assert found(right, far, x, pointwise=False) == {"value"}

    def test_the_order_of_terms_decides_which_sums_overflow(self) -> None:
        large = 3e38
        both = numbers(large, large, -large, -large, large, large).reshape(2, 3).t()
        first, second = "lambda x: (x[0] + x[1]) + x[2]", "lambda x: x[0] + (x[1] + x[2])"
        assert found(first, second, both, pointwise=False) == {SAME}
        # If no result of the CPU overflows, none of the device's may.
        assert found(first, second, both[:, 1:], pointwise=False) == {"infinity"}

    def test_half_precision_may_be_better_than_the_cpu(self) -> None:
        x = torch.full((4096,), 0.01, dtype=torch.float16)
        assert found("lambda x: x.cumsum(0)[-1]", "lambda x: x.double().sum().half()", x, pointwise=False) == {SAME}

    def test_out_of_another_dtype(self) -> None:
        x, out = numbers(0.1, 0.7), torch.empty(2, dtype=torch.float64)
        near = "lambda x, out: torch.sin(x, out=out).mul_(1 + 2e-7)"
        assert found("torch.sin", near, x, out=out) == {SAME}

    def test_subnormal_halves_in_another_dtype(self) -> None:
        x = numbers(2.0, dtype=torch.float16)
        out = torch.empty(1, dtype=torch.float64)
        right, near, far = (f"lambda x, out: out.copy_(x * {factor}e-7)" for factor in (1.2, 1.5, 3.0))
        assert found(right, near, x, out=out) == {SAME}
        assert found(right, far, x, out=out) == {"value", "argument: value"}

    def test_each_kind_of_difference(self) -> None:
        """Elements that are wrong in different ways are separate findings."""
        right, wrong = numbers(1.0, NAN, INF, 0.0, 2.0), numbers(1.5, 1.0, 1.0, -0.0, 2.0)
        kinds = found("lambda x, y: x.clone()", "lambda x, y: y.clone()", right, wrong)
        assert kinds == {"nan", "infinity", "value", "zero sign"}


class TestCases:
    @pytest.mark.parametrize("number", range(0, 4000, 160))
    def test_a_number_is_always_the_same_case(self, number: int) -> None:
        first, second = cases.make(number), cases.make(number)
        assert snippet.source(first.call.args) == snippet.source(second.call.args)
        assert (first.call.function, first.call.stage) == (second.call.function, second.call.stage)

    def test_every_maker_makes_calls(self) -> None:
        names = {subject.base for subject in cases.subjects()}
        assert names >= {"add", "_foreach_add", "sum", "gather", "addmm", "_fused_adam_", "nn"}

    def test_programs_run(self, capsys: pytest.CaptureFixture[str]) -> None:
        for number in (16, 1000, 5000):
            text = snippet.program(cases.make(number), "cpu")
            try:
                exec(compile(text, f"case {number}", "exec"), {})
            except (RuntimeError, IndexError):  # Cases may raise errors.
                continue
            assert "cpu" in capsys.readouterr().out

    def test_layouts_keep_the_elements(self) -> None:
        for seed in range(200):
            x = torch.randn(2, 3, 4)
            moved = placed(random.Random(seed), x)
            assert moved.shape == x.shape
            assert 0 in moved.stride() or torch.equal(moved, x)

    def test_schemas(self) -> None:
        overload = parse(
            "aten::sum.IntList_out(Tensor self, int[1]? dim, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)"
        )
        assert [argument.type for argument in overload.arguments] == ["Tensor", "int[1]?", "bool", "Tensor"]
        assert [argument.name for argument in overload.outs] == ["out"] and not overload.in_place
        assert parse("aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)").in_place


def die(number: int) -> Case:
    """A case that ends the process, never ends, or is right."""
    function = ["torch.neg", "lambda x: __import__('os').abort()", "lambda x: __import__('time').sleep(600)"][number]
    call = Call(function, [torch.ones(2)])
    return Case(number, Subject("planted", lambda rng: call), call)


class TestReference:
    def test_an_end_costs_one_case(self) -> None:
        reference = Reference(2.0, die)
        try:
            for number, message in ((1, "ended with SIGABRT"), (2, "more than 2 s")):
                reference.ask(number, Variant())
                with pytest.raises(ReferenceFailed, match=message):
                    reference.answer()
                reference.ask(0, Variant())
                assert reference.answer().error is None
        finally:
            reference.stop()


class TestWork:
    def test_a_start_is_no_part_of_a_case(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A case has a limit of time, which on a busy machine the start alone exceeds."""
        monkeypatch.setattr(work, "_reference", None)
        one, before = work.Work("cpu"), set(active_children())
        one.prepare(0)
        assert work._reference is not None
        try:
            started = set(active_children()) - before
            assert len(started) == 1 and work._reference._ready
            assert not one.perform(0).differs
            assert set(active_children()) - before == started
        finally:
            work._reference.stop()


class TestKnown:
    finding = Finding(7, "aten::lcm.out", "int32", CPU_FAILED, "ended with SIGFPE")

    def test_explanations(self) -> None:
        known_faults = known.read()
        assert known.unexplained([self.finding], known_faults) == []
        other = Finding(8, "aten::lcm.out", "int32", "value", "2, want 3")
        assert known.unexplained([other], known_faults) == [other]
        both = Finding(
            9, "aten::huber_loss.out", "float32", "argument: value", "2, want 3", (Difference("value", "2"),)
        )
        assert known.unexplained([both], known_faults) == [both]

    def test_each_difference_is_explained(self) -> None:
        """Each difference has its own message."""
        one = known.Known("", "sin", ("nan", "gradient: nan"), message="want nan")
        other = known.Known("", "sin|cos", ("zero sign",), dtypes=("float32",))
        further = (Difference("zero sign", "0.0, want -0.0"), Difference("gradient: nan", "1, want nan"))
        case = Finding(1, "sin", "float32", "nan", "0, want nan", further)
        assert known.unexplained([case], [one, other]) == []
        for found in (
            replace(case, message="nan, want 0"),
            replace(case, dtype="float16"),
            replace(case, operator="cos"),
            replace(case, others=(Difference("gradient: nan", "nan, want 1"),)),
        ):
            assert known.unexplained([found], [one, other]) == [found]

    def test_groups(self) -> None:
        findings = [Finding(number, "aten::add.Tensor", "float32", "value", "2, want 3") for number in range(5)]
        assert [len(members) for _, members in report.groups([*findings, self.finding])] == [1, 5]
