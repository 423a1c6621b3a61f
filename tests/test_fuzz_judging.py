"""The fuzzer finds planted faults, and nothing where there is none; its cases are the same each time."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
import torch

from tests.fuzz import cases, known, report, snippet
from tests.fuzz.calls import BACKWARD, DOUBLE, FORWARD, Call, Variant, execute
from tests.fuzz.cases import Case, Subject
from tests.fuzz.outcome import Outcome
from tests.fuzz.reference import Reference, ReferenceFailed
from tests.fuzz.schemas import parse
from tests.fuzz.tensors import placed
from tests.fuzz.trial import CPU_FAILED, RANDOM, SAME, SKIPPED, Finding, judge

CPU = torch.device("cpu")
NAN = float("nan")


@dataclass
class Here:
    """A reference in this process."""

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
    """The kinds of difference between the function `right` on the CPU and `wrong`, which stands for the device."""
    made = [Call(function, list(args), dict(kwargs), stage) for function in (right, wrong)]
    case = Case(0, Subject(name, lambda rng: made[0], lambda: pointwise), made[0])
    want, got = (execute(call, CPU) for call in made)
    return {difference.kind for difference in judge(case, want, got, Here(case), flushes)}  # type: ignore[arg-type]


def numbers(*values: float, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype)


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
        assert "argument: count" in found("torch.neg", "lambda x: x.neg_().clone()", numbers(1, 2))
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
        got.fallbacks = 1
        assert [one.kind for one in judge(case, want, got, Here(case))] == ["fallback"]  # type: ignore[arg-type]


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

    def test_sums_may_cancel(self) -> None:
        x = numbers(1e4, 1, -1e4, 3e-4)
        assert found("torch.sum", "lambda x: x.flip(0).sum()", x, pointwise=False) == {SAME}
        assert found("torch.sum", "lambda x: x.flip(0).sum() + 0.1", x, pointwise=False) == {"value"}

    def test_half_precision_may_be_better_than_the_cpu(self) -> None:
        x = torch.full((4096,), 0.01, dtype=torch.float16)
        assert found("lambda x: x.cumsum(0)[-1]", "lambda x: x.double().sum().half()", x, pointwise=False) == {SAME}

    def test_out_of_another_dtype(self) -> None:
        x, out = numbers(0.1, 0.7), torch.empty(2, dtype=torch.float64)
        near = "lambda x, out: torch.sin(x, out=out).mul_(1 + 2e-7)"
        assert found("torch.sin", near, x, out=out) == {SAME}


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
            except (RuntimeError, IndexError):  # Cases may be of errors.
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
    """A case that ends the process, or never ends, or is right."""
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


class TestKnown:
    finding = Finding(7, "aten::lcm.out", "int32", CPU_FAILED, "ended with SIGFPE")

    def test_explanations(self) -> None:
        known_faults = known.read()
        assert known.unexplained([self.finding], known_faults) == []
        other = Finding(8, "aten::lcm.out", "int32", "value", "2, want 3")
        assert known.unexplained([other], known_faults) == [other]
        both = Finding(9, "aten::huber_loss.out", "float32", "argument: value", "2, want 3", ("value",))
        assert known.unexplained([both], known_faults) == [both]

    def test_groups(self) -> None:
        findings = [Finding(number, "aten::add.Tensor", "float32", "value", "2, want 3") for number in range(5)]
        assert [len(members) for _, members in report.groups([*findings, self.finding])] == [1, 5]
