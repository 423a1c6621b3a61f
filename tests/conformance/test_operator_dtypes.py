"""A shard of the dtypes and layouts that operators accept. ACCEPTANCE_SHARD=3/128 chooses another,
0/1 all.
"""

from __future__ import annotations

import os
from functools import partial

from tests.opinfo import worker
from tests.opinfo.acceptance import DTYPES, run_acceptance
from tests.opinfo.results import Verdict
from tests.opinfo.tasks import Task, operators
from tests.support.shards import Shard

OK = (Verdict.PASS, Verdict.SKIP)
SHARD = Shard.parse(os.environ.get("ACCEPTANCE_SHARD", "0/128"))


def test_shard() -> None:
    """The device raises the CPU's errors, and gives its results."""
    tasks = [task for name in operators() for dtype in DTYPES if (task := Task(name, dtype)) in SHARD]
    assert tasks
    results = worker.run(tasks, partial(run_acceptance, device="dml"), jobs=2, timeout=300)
    differing = [f"{result.task}: {result.message}" for result in results if result.verdict not in OK]
    assert not differing, "\n".join(differing)
