"""Two runs with the same seed give the same bits: every operator of OpInfo, and in float32 its
gradients.

One sample of each operator is run; with DETERMINISM_SAMPLES=0 all of them (as `--max-samples` of
`python -m tests.opinfo`).
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import pytest
import torch

from tests.opinfo import trial
from tests.opinfo.execution import execute, tensors
from tests.opinfo.tasks import operators
from tests.support.bits import bits

SAMPLES = int(os.environ.get("DETERMINISM_SAMPLES", "1"))
# Unless all samples are run, those with more elements are skipped.
MAX_ELEMENTS = 20_000
DML = torch.device("dml")
DTYPES = (torch.float32, torch.int64, torch.bool, torch.complex64)
# Excluded: results that depend on uninitialised memory or on memory outside of the tensor, and
# operators that only run with CUDA's compiler.
WITHOUT = {
    "as_strided.partial_views",
    *("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"),
    *("jiterator_unary", "jiterator_binary", "jiterator_2inputs_2outputs", "jiterator_4inputs_with_extra_args"),
    "jiterator_binary_return_by_ref",
}
# Each operator in float32, or if it does not support that in the first of its dtypes.
CASES = {
    name: (op, next(dtype for dtype in DTYPES if dtype in op.dtypes))
    for name, op in operators().items()
    if name not in WITHOUT and set(DTYPES) & op.dtypes
}


def elements(sample: Any) -> int:
    return sum(tensor.numel() for tensor in tensors((sample.input, sample.args, sample.kwargs)) if not tensor.is_nested)


def chosen(op: Any, dtype: torch.dtype, backward: bool) -> list[Any]:
    """All samples, or those with the most elements, within a limit: nothing runs in parallel in
    small tensors.
    """
    samples = trial.samples_of(op, dtype, trial.Settings(), backward)
    if not SAMPLES:
        return samples
    small = [sample for sample in samples if elements(sample) <= MAX_ELEMENTS] or [min(samples, key=elements)]
    return sorted(small, key=elements)[-SAMPLES:]


@pytest.mark.allow_fallback
@pytest.mark.parametrize("name", CASES)
def test_two_runs_give_the_same_bits(name: str) -> None:
    op, dtype = CASES[name]
    backward = dtype == torch.float32 and op.supports_autograd and dtype in op.backward_dtypes
    for sample in chosen(op, dtype, backward):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            first, second = (execute(op, sample, DML, 0, backward) for _ in range(2))
        assert bits([first.output, first.gradients]) == bits([second.output, second.gradients]), sample.summary()
