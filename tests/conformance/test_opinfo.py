"""A shard of PyTorch's OpInfo database. OPINFO_SHARD=3/32 chooses another; `make opinfo` runs all
of it.
"""

from __future__ import annotations

import os
from functools import partial

from tests.opinfo import differences, page, tasks, trial, worker
from tests.support.environment import ROOT
from tests.support.shards import Shard

SHARD = Shard.parse(os.environ.get("OPINFO_SHARD", "0/32"))
PAGE = ROOT / "docs" / "reference" / "operators.md"


def test_shard() -> None:
    """Every difference from the CPU's results is explained; no operator that the page calls native
    falls back to the CPU.
    """
    chosen = tasks.select(tasks.all_tasks(), shard=SHARD)
    assert chosen
    results = list(worker.run(chosen, partial(trial.run_task, settings=trial.Settings()), jobs=2, timeout=300))
    assert {result.task for result in results} == set(chosen)
    known = differences.read(ROOT / "docs" / "data" / "operator_differences.toml", tasks.TORCH)
    assert [str(result) for result in differences.unexplained(results, known)] == []
    if page.read_torch(PAGE) == tasks.TORCH:
        marks = page.read_marks(PAGE)
        lost = [
            f"{result.task}: {page.mark(result)}: {result.message}"
            for result in results
            if marks.get(result.task) == page.NATIVE and not result.native and not result.differs
        ]
        assert lost == []
