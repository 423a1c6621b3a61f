"""No operator is less accurate than the CPU, for a sample of those that `python -m tests.accuracy`
measures; and the page.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.accuracy import inputs, page
from tests.accuracy.exact import of_function
from tests.accuracy.measure import Error, Exact, by_norm, in_places
from tests.accuracy.subjects import AGGREGATES, FUNCTIONS
from tests.accuracy.trial import DTYPES, Row, Settings, measure
from tests.support.dtypes import HAS_FLOAT64, dtypes

SUBJECTS = {subject.name: subject for subject in (*FUNCTIONS, *AGGREGATES)}
# Some of each kind, none of which docs/reference/numerics.md lists as worse.
SAMPLE = [
    *("exp", "log1p", "sin", "tanh", "erf", "sqrt", "div", "pow", "fmod", "atan2", "gelu", "silu", "mish"),
    *("lgamma", "i0", "special.erfcx", "special.chebyshev_polynomial_t"),
    *("sum", "prod", "std", "vector_norm 3", "logsumexp", "rms_norm", "softmax", "log_softmax", "layer_norm"),
    *("dot", "mv", "mm", "bmm", "linear", "conv1d", "conv2d", "scaled_dot_product_attention"),
]
FEW = Settings(points=3_000, exact_points=60)
# The order in which the CPU adds depends on the processor, for which MKL chooses a kernel: by its
# vectors on AMD's, where a product's error is smaller. These are the CPU's errors on the processor
# of docs/reference/numerics.md.
CPU_OF_THE_PAGE = {("mm", torch.float32): Error(19.1, 2.03)}


@pytest.mark.parametrize("name", SAMPLE)
def test_no_worse_than_the_cpu(name: str) -> None:
    for dtype in DTYPES:
        row = measure(SUBJECTS[name], dtype, FEW)
        if elsewhere := CPU_OF_THE_PAGE.get((name, dtype)):
            row.errors["cpu"] = max(row.errors["cpu"], elsewhere, key=lambda error: error.worst)
        assert not row.is_worse, f"{dtype}: " + ", ".join(f"{device} {error}" for device, error in row.errors.items())
        # An adapter without float64 lacks kernels that would be too large with float64 in software.
        if dtype == torch.float32 or (dtype == torch.float64 and HAS_FLOAT64):
            assert set(row.errors) == {"dml", "cpu"}


@dtypes([torch.float32, torch.float64])
def test_numbers_lie_in_their_domain(dtype: torch.dtype) -> None:
    domain = inputs.Domain(usual=(0.1, 3.0), low=0.1, high=64.0, exponents=(-8, 8))
    found, again = (inputs.numbers(domain, dtype, 1_000, inputs.generator("x")) for _ in range(2))
    assert torch.equal(found, again)
    assert found.min() >= 0.1 and 32 < found.max() <= 64


def test_errors_are_counted_in_units() -> None:
    exact = Exact(torch.tensor([1.0, 1.5, 4.0, 1e-40, torch.nan, 1e39], dtype=torch.float64))
    got = torch.tensor([1 + 2**-22, 1.5, 4 - 2**-22, 0, 1, 2], dtype=torch.float32)
    assert in_places(got, exact) == Error(2.0, 2.5 / 3)
    assert in_places(torch.full((6,), torch.nan), exact).worst == torch.inf
    # A result with more digits than float64: a third of a unit above 1 + 2^-52.
    near = of_function(lambda x: 1 + x / 3, [torch.tensor([2.0**-52], dtype=torch.float64)])
    assert in_places(torch.ones(1, dtype=torch.float64), near).worst == pytest.approx(1 / 3)
    norm = by_norm(torch.tensor([3.0, 4.0 + 2**-20]), Exact(torch.tensor([3.0, 4.0], dtype=torch.float64)))
    assert norm.worst == pytest.approx(8 / (25 / 2) ** 0.5)


def test_the_page_keeps_what_is_not_the_table(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text(f"before\n{page.BEGIN}old\n{page.END}after\n")
    rows = [
        Row("good", torch.float32, {"dml": Error(0.5, 0.1), "cpu": Error(0.6, 0.2)}),
        Row("bad", torch.float32, {"dml": Error(3.0, 0.1), "cpu": Error(0.6, 0.2)}),
        Row("sum", torch.float32, {"dml": Error(1.6, 0.1), "cpu": Error(0.6, 0.2)}, sums=True),
        Row("floor", torch.float32, {"dml": Error(0.0, 0.0), "cpu": Error(0.0, 0.0)}),
    ]
    page.write(file, page.render(rows, "an adapter", FEW))
    text = file.read_text()
    assert text.startswith(f"before\n{page.BEGIN}Measured on an adapter") and text.endswith(f"{page.END}after\n")
    assert "**3.00 / 0.10**" in text and "`bad` (float32)." in text and "Exact everywhere: `floor`." in text
    assert "In 1 of 4 rows" in text
    file.write_text("nothing\n")
    with pytest.raises(ValueError, match="has no place"):
        page.write(file, "x")
