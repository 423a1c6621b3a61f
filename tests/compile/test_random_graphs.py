"""A few random graphs; `python -m tests.compile` runs as many as one has time for."""

from __future__ import annotations

import pytest

from tests.compile.random_graphs import make, run


# Which once differed: expressions as indices, and views of them.
@pytest.mark.parametrize("number", [*range(8), 18, 23, 66, 141])
def test_a_compiled_function_is_the_function(number: int) -> None:
    case = make(number, "dml")
    difference = run(case)
    assert difference is None, f"{difference}\n{case.text()}"
