"""How OpInfo's results are judged, by hand-made cases on the CPU."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.testing._internal.common_device_type import tol, toleranceOverride
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from tests.opinfo.execution import Outcome, execute, moved, other_seeds, tensors, widened
from tests.opinfo.judging import EXACT, TOLERANCES, Rules, Tolerance, half_tolerance, is_random, named, tolerance
from tests.opinfo.results import Verdict
from tests.opinfo.tasks import Task, operators
from tests.opinfo.trial import Finding, Settings, judge_sample, run_task

CPU = torch.device("cpu")
FLOAT = Rules(CPU, TOLERANCES[torch.float32])
INTEGER = Rules(CPU, EXACT)
NAN, INFINITY = float("nan"), float("inf")


def made(*values: float, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype)


def operator(function: object, name: str = "made_up", **options: object) -> OpInfo:
    """An OpInfo with given samples."""
    return OpInfo(name, op=function, sample_inputs_func=None, dtypes={torch.float32, torch.float16}, **options)


class TestValues:
    def test_equal(self) -> None:
        assert FLOAT.difference(made(1, 2), made(1, 2)) is None

    @pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
    def test_tolerance(self, dtype: torch.dtype) -> None:
        allowed = TOLERANCES[dtype]
        rules = Rules(CPU, allowed)
        one = torch.ones(1, dtype=dtype)
        bound = allowed.absolute + allowed.relative
        assert rules.difference(one, one + 0.5 * bound) is None
        assert "output 0: " in str(rules.difference(one, one + 2 * bound))

    def test_nan_equals_nan_only(self) -> None:
        assert FLOAT.difference(made(NAN, 1), made(NAN, 1)) is None
        assert FLOAT.difference(made(NAN), made(0)) is not None
        assert FLOAT.difference(made(0), made(NAN)) is not None

    def test_infinities(self) -> None:
        assert FLOAT.difference(made(INFINITY, -INFINITY), made(INFINITY, -INFINITY)) is None
        assert FLOAT.difference(made(INFINITY), made(-INFINITY)) is not None
        assert FLOAT.difference(made(INFINITY), made(3e38)) is not None

    def test_integers_are_exact(self) -> None:
        large = made(10**9, dtype=torch.int64)
        assert INTEGER.difference(large, large) is None
        assert INTEGER.difference(large, large + 1) is not None
        assert INTEGER.difference(torch.tensor([True]), torch.tensor([False])) is not None

    def test_floats_of_integers(self) -> None:
        assert INTEGER.difference(made(1), made(1 + 1e-5)) is None
        assert INTEGER.difference(made(1), made(1 + 1e-4)) is not None
        assert INTEGER.difference(made(1, dtype=torch.complex64), made(1 + 1e-5, dtype=torch.complex64)) is None

    def test_numbers(self) -> None:
        assert FLOAT.difference(1.0, 1.0001) is None
        assert FLOAT.difference(1.0, 1.1) == "result 1.1, want 1.0"
        assert FLOAT.difference(True, False) is not None
        assert INTEGER.difference(3, 4) is not None
        assert replace(FLOAT, values=False).difference(1.0, 2.0) is None

    def test_conjugates_and_negatives_are_resolved(self) -> None:
        values = made(1 + 2j, 3 - 1j, dtype=torch.complex64)
        assert FLOAT.difference(values.conj(), values.conj().resolve_conj()) is None
        assert FLOAT.difference(values.conj().imag, values.conj().imag.resolve_neg()) is None
        assert FLOAT.difference(values.conj(), values) is not None


class TestForm:
    def test_shape(self) -> None:
        assert FLOAT.difference(torch.ones(2, 1), torch.ones(1, 2)) == "output 0 shape (1, 2), want (2, 1)"
        assert replace(FLOAT, values=False).difference(torch.ones(2), torch.ones(3)) is not None

    def test_dtype(self) -> None:
        want, got = torch.ones(1), torch.ones(1, dtype=torch.float64)
        assert FLOAT.difference(want, got) == "output 0 dtype torch.float64, want torch.float32"
        assert replace(FLOAT, values=False).difference(want, got) is not None
        assert replace(FLOAT, dtypes=False).difference(want, got) is None

    def test_device(self) -> None:
        assert FLOAT.difference(torch.ones(1), torch.ones(1, device="meta")) == "output 0 is on meta"

    def test_strides_are_open(self) -> None:
        values = torch.arange(6.0).reshape(2, 3)
        assert FLOAT.difference(values, values.t().contiguous().t()) is None

    def test_number_of_outputs(self) -> None:
        one = torch.ones(1)
        assert FLOAT.difference([one], [one, one]) == "2 output tensors, want 1"
        assert FLOAT.difference((one, one), (one, 2 * one)).startswith("output 1: ")  # type: ignore[union-attr]

    def test_first_output_only(self) -> None:
        rules = replace(FLOAT, first_output_only=True)
        assert rules.difference((made(1), made(2)), (made(1), made(3))) is None
        assert rules.difference((made(1), made(2)), (made(2), made(2))) is not None

    def test_open_values(self) -> None:
        assert replace(FLOAT, values=False).difference(made(1), made(2)) is None


class TestTies:
    def test_indices_of_equal_elements(self) -> None:
        source = made(2, 1, 1)
        want, got = (made(1, 1, 2), torch.tensor([1, 2, 0])), (made(1, 1, 2), torch.tensor([2, 1, 0]))
        assert FLOAT.difference_by_elements(source, want, got) is None

    def test_other_elements(self) -> None:
        source = made(2, 1, 1)
        want, got = (made(1, 1, 2), torch.tensor([1, 2, 0])), (made(1, 1, 2), torch.tensor([1, 0, 2]))
        assert FLOAT.difference_by_elements(source, want, got) == "the indices name other elements"

    def test_wrong_values(self) -> None:
        source, indices = made(2, 1, 1), torch.tensor([1, 2, 0])
        why = FLOAT.difference_by_elements(source, (made(1, 1, 2), indices), (made(1, 2, 1), indices))
        assert str(why).startswith("output 0: ")

    def test_values_count_where_indices_alone_are_returned(self) -> None:
        assert INTEGER.difference_by_elements(made(3, 3), torch.tensor([0, 1]), torch.tensor([1, 0])) is None
        assert INTEGER.difference_by_elements(made(3, 4), torch.tensor([0, 1]), torch.tensor([1, 0])) is not None

    def test_along_any_dimension(self) -> None:
        source = torch.tensor([[1.0, 5.0], [1.0, 5.0]])
        down = (source, torch.tensor([[0, 0], [1, 1]])), (source, torch.tensor([[1, 1], [0, 0]]))
        assert FLOAT.difference_by_elements(source, *down) is None

    def test_reduced_dimension(self) -> None:
        source = torch.tensor([[4.0, 4.0, 1.0]])
        want, got = (made(4), torch.tensor([0])), (made(4), torch.tensor([1]))
        assert FLOAT.difference_by_elements(source, want, got) is None
        assert FLOAT.difference_by_elements(source, want, (made(4), torch.tensor([2]))) is not None

    def test_nan_and_scalars(self) -> None:
        source = made(NAN, NAN, 1)
        assert INTEGER.difference_by_elements(source, torch.tensor([2, 0, 1]), torch.tensor([2, 1, 0])) is None
        assert INTEGER.difference_by_elements(made(NAN, 0), torch.tensor([0]), torch.tensor([1])) is not None
        assert INTEGER.difference_by_elements(torch.tensor(3.0), torch.tensor(0), torch.tensor(0)) is None

    def test_dtype_of_indices(self) -> None:
        why = INTEGER.difference_by_elements(made(1), torch.tensor([0]), torch.tensor([0], dtype=torch.int32))
        assert why == "output 0 dtype torch.int32, want torch.int64"

    def test_named(self) -> None:
        source = torch.tensor([[1, 2], [3, 4]])
        along_rows, along_columns = named(source, torch.tensor([[1, 0]]))
        assert along_rows is not None and along_rows.tolist() == [[3, 2]]
        assert along_columns is None  # one row of indices for two of the source
        assert named(source, torch.tensor([[2, 0], [0, 0]])) == [None, None]  # outside of the source


class TestRandom:
    def test_what_another_seed_changes(self) -> None:
        assert is_random(made(1), made(2))
        assert is_random([made(1), torch.ones(2)], [made(1), torch.ones(3)])
        assert not is_random(made(1, NAN), made(1, NAN))
        assert not is_random(torch.tensor([3]), torch.tensor([3]))
        assert is_random(torch.tensor([3]), torch.tensor([4]))

    def test_what_cannot_be_compared_is_not_random(self) -> None:
        sparse = torch.eye(2).to_sparse()
        assert not is_random(sparse, sparse)

    def test_fixed_seeds_change(self) -> None:
        def draw() -> torch.Tensor:
            torch.manual_seed(5)
            return torch.rand(4)

        first = draw()
        with other_seeds():
            assert is_random(first, draw())
        assert not is_random(first, draw())


class TestSamples:
    def judge(self, function: object, *args: object, dtype: torch.dtype = torch.float32, **options: object) -> Finding:
        rules = Rules(CPU, TOLERANCES.get(dtype, EXACT))
        return judge_sample(operator(function, **options), SampleInput(*args), dtype, rules, 0, backward=False)

    def test_right(self) -> None:
        assert self.judge(torch.sin, torch.ones(3)) == Finding(Verdict.PASS)

    def test_random_values_are_not_compared(self) -> None:
        def draw(like: torch.Tensor) -> torch.Tensor:
            return torch.rand_like(like)

        assert self.judge(draw, torch.ones(3)) == Finding(Verdict.PASS, checked=False)

    def test_wrong_on_the_second_device(self) -> None:
        runs = iter([0.0, 0.0, 1.0])  # the CPU, the CPU with another seed, the device
        finding = self.judge(lambda x: x + next(runs), torch.ones(3))
        assert finding.verdict is Verdict.FAIL and finding.message.startswith("forward output 0: ")

    def test_what_the_cpu_cannot_do_is_skipped(self) -> None:
        def refuse(x: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("no")

        assert self.judge(refuse, torch.ones(3)) == Finding(Verdict.SKIP, "cpu: RuntimeError: no")

    @pytest.mark.parametrize(
        ("error", "verdict"),
        [
            (NotImplementedError("so"), Verdict.UNIMPLEMENTED),
            (RuntimeError("'x' not implemented for 'Half'"), Verdict.UNIMPLEMENTED),
            (RuntimeError("index out of range"), Verdict.ERROR),
        ],
    )
    def test_errors(self, error: Exception, verdict: Verdict) -> None:
        runs = iter([None, None, error])

        def act(x: torch.Tensor) -> torch.Tensor:
            raised = next(runs)
            if raised is not None:
                raise raised
            return x

        assert self.judge(act, torch.ones(3)).verdict is verdict

    def test_half_may_agree_with_float32(self) -> None:
        # The CPU's error is 0.5 in half precision, so that the device's may be up to 1 from the
        # float32 result.
        def inexact(errors: list[float]) -> Finding:
            remaining = iter(errors)
            return self.judge(lambda x: x + next(remaining), torch.zeros(1).half(), dtype=torch.float16)

        assert inexact([0.5, 0.5, 0.0, 0.5]).verdict is Verdict.PASS  # equal to the CPU's
        assert inexact([0.5, 0.5, 0.0, -0.5]).verdict is Verdict.PASS  # on the other side of float32's
        assert inexact([0.5, 0.5, 0.0, 2.0]).verdict is Verdict.FAIL

    def test_half_without_a_cpu_kernel(self) -> None:
        def only_float(x: torch.Tensor, runs: list[int]) -> torch.Tensor:
            runs.append(1)
            if len(runs) == 1:
                raise RuntimeError("no half on the CPU")
            return x + 1

        for dtype, verdict in ((torch.float16, Verdict.PASS), (torch.float32, Verdict.SKIP)):
            runs: list[int] = []
            finding = self.judge(lambda x, runs=runs: only_float(x, runs), torch.zeros(1).to(dtype), dtype=dtype)
            assert finding.verdict is verdict

    def test_half_tolerance(self) -> None:
        allowed = half_tolerance(Tolerance(0.1, 0.2), made(1, 2), made(1, 2.5, dtype=torch.float16))
        assert allowed == Tolerance(1.0, 0.2)
        assert half_tolerance(Tolerance(0.1, 0.2), made(1), made(1, dtype=torch.float16)) == Tolerance(0.1, 0.2)

    def test_gradients(self) -> None:
        rules, sample = FLOAT, SampleInput(torch.ones(2, requires_grad=True))
        assert judge_sample(operator(torch.sin), sample, torch.float32, rules, 0, backward=True).verdict is Verdict.PASS
        factors = iter([1.0, 1.0, 2.0])

        class Scaled(torch.autograd.Function):
            @staticmethod
            def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
                ctx.factor = next(factors)  # type: ignore[attr-defined]
                return x.clone()

            @staticmethod
            def backward(ctx: object, gradient: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
                return gradient * ctx.factor  # type: ignore[attr-defined]

        finding = judge_sample(operator(Scaled.apply), sample, torch.float32, rules, 0, backward=True)
        assert finding.verdict is Verdict.FAIL and finding.message.startswith("backward gradient 0: output 0: ")


class TestExecution:
    def test_outcome(self) -> None:
        sample = SampleInput(torch.ones(2, requires_grad=True))
        assert execute(operator(torch.sin), sample, CPU, 0, backward=False).gradients is None
        outcome = execute(operator(torch.sin), sample, CPU, 0, backward=True)
        assert isinstance(outcome, Outcome) and outcome.gradients is not None
        assert outcome.gradients[0] is not None and outcome.gradients[0].shape == (2,)
        assert sample.input.grad is None

    def test_factories_run_on_the_device(self) -> None:
        outcome = execute(operator(lambda size: torch.zeros(size)), SampleInput(3), torch.device("meta"), 0, False)
        assert outcome.output.device.type == "meta"

    def test_moved(self) -> None:
        pair = torch.return_types.sort((torch.ones(1), torch.zeros(1, dtype=torch.int64)))
        value = [{"a": torch.ones(1, requires_grad=True)}, "cpu", "cuda:0", torch.device("cpu"), "sum", tuple(pair)]
        there = moved(value, torch.device("meta"))
        assert [tensor.device.type for tensor in tensors(there)] == ["meta"] * 3
        assert there[0]["a"].requires_grad
        assert there[1:5] == ["meta", "meta", torch.device("meta"), "sum"]

    def test_widened(self) -> None:
        value = (torch.ones(1).half(), {"x": torch.ones(1).bfloat16()}, torch.float16, torch.int64, torch.ones(1).int())
        half, named_one, *dtypes, integers = widened(value)
        assert half.dtype == named_one["x"].dtype == torch.float32
        assert dtypes == [torch.float32, torch.int64] and integers.dtype == torch.int32


def test_tolerance_is_the_largest_allowed() -> None:
    wider = operator(torch.sin, decorators=[toleranceOverride({torch.float32: tol(atol=1e-6, rtol=1e-2)})])
    assert tolerance(wider, torch.float32) == Tolerance(1e-4, 1e-2)
    assert tolerance(wider, torch.float16) == TOLERANCES[torch.float16]
    assert tolerance(wider, torch.int64) == EXACT


def test_a_task_has_its_worst_samples_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    factor = iter([0, 0, 0, 0, 0, 1, 0, 0, 0])  # three runs a sample: the second sample differs on the device

    def samples(*_: object, **__: object) -> list[SampleInput]:
        return [SampleInput(torch.ones(2)) for _ in range(3)]

    op = operator(lambda x: x + next(factor))
    op.sample_inputs_func = samples
    monkeypatch.setitem(operators(), "made_up", op)
    result = run_task(Task("made_up", "float32"), Settings(device="cpu", backward=False))
    assert result.verdict is Verdict.FAIL and result.message.startswith("sample 1: forward ")
    assert result.samples == {"pass": 2, "fail": 1}
    assert (result.unchecked, result.fallbacks) == (0, {})
