"""`python -m tests.host_reads`: calls of an operator are found on the CPU, and repeated on the
device.
"""

from __future__ import annotations

import pytest
import torch

from tests.fuzz.outcome import flat
from tests.host_reads.arguments import draw
from tests.host_reads.judging import Outcome, judged
from tests.host_reads.registry import of_engine, operators
from tests.host_reads.trial import FATAL, OnCpu, OnDevice, Task, noted


@pytest.mark.allow_fallback
@pytest.mark.parametrize("name", ["aten::choose_qparams_optimized", "aten::_reshape_from_tensor", "aten::hypot"])
def test_an_operator(name: str, device: torch.device) -> None:
    calls = OnCpu(tries=200, wanted=1).perform(Task(name, "strided")).calls
    assert [call.want.error for call in calls].count("") == 1
    result = OnDevice(str(device), late=True).perform(Task(name, "strided", calls=calls))
    assert [finding for finding in result.findings if finding.what in FATAL] == []
    assert result.fallbacks == (("aten::choose_qparams_optimized",) if "choose" in name else ())


def test_a_number_says_everything_about_a_draw() -> None:
    operator = operators()["aten::add.Tensor"]
    for number in range(5):
        (one, _), (other, _) = draw(operator, "strided", number), draw(operator, "strided", number)
        assert torch.equal(one[0], other[0]) and torch.equal(one[1], other[1])


def test_composites_are_not_the_engines() -> None:
    assert "aten::add.Tensor" in of_engine()
    assert {"aten::choose_qparams_optimized", "onnx::Reshape"} <= operators().keys() - of_engine()


def test_judgement() -> None:
    ones, nearly, twos = (Outcome((flat(torch.full((2,), x)),)) for x in (1.0, 1.001, 2.0))
    assert judged(ones, nearly, values=True) is None
    found = judged(ones, twos, values=True)
    assert found is not None and found[0] == "value"
    assert judged(ones, twos, values=False) is None
    raised = Outcome(error="TypeError")
    for want, got, kind in (
        (ones, raised, "refuses"),
        (raised, ones, "accepts"),
        (Outcome(error="x"), raised, "error"),
    ):
        found = judged(want, got, values=True)
        assert found is not None and found[0] == kind


def test_what_was_tried_last_is_read_from_what_a_process_printed() -> None:
    assert noted("the process ended with -11: [plain 3] a warning [late 40]") == ("late", 40)
    assert noted("the process ended with 1:") == ("start", 0)
