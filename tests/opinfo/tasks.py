"""The tasks: operators and dtypes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import torch

from ..support.shards import Shard

if TYPE_CHECKING:
    from torch.testing._internal.opinfo.core import OpInfo

DTYPES = (
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
    *("uint8", "int32", "int64", "bool"),
)
# The most common dtypes, which also have separate counts.
COMMON_DTYPES = ("float16", "bfloat16", "float32", "int64", "bool")
# The running torch: "2.11".
TORCH = ".".join(torch.__version__.split(".")[:2])
HALVES = (torch.float16, torch.bfloat16)


@dataclass(frozen=True, order=True)
class Task:
    """An operator of OpInfo, by its full name (`nn.functional.rrelu`, `normal.in_place`), and a
    dtype.
    """

    operator: str
    dtype: str

    def __str__(self) -> str:
        return f"{self.operator}[{self.dtype}]"

    @property
    def torch_dtype(self) -> torch.dtype:
        """The dtype of PyTorch."""
        dtype: torch.dtype = getattr(torch, self.dtype)
        return dtype


@cache
def operators() -> dict[str, OpInfo]:
    """OpInfo's operators by full name. The first call takes seconds."""
    from torch.testing._internal.common_methods_invocations import op_db

    return {op.full_name: op for op in op_db}


def all_tasks() -> list[Task]:
    """Every task: the dtypes that CUDA has for an operator and the CPU can check, directly or in
    float32.
    """
    return [
        Task(name, dtype)
        for name, op in operators().items()
        for dtype in DTYPES
        if getattr(torch, dtype) in op.dtypesIfCUDA
        and (getattr(torch, dtype) in op.dtypes or getattr(torch, dtype) in HALVES)
    ]


def select(
    tasks: list[Task], pattern: str = "", dtypes: tuple[str, ...] = DTYPES, shard: Shard | None = None
) -> list[Task]:
    """The tasks whose operator's name matches `pattern`, with these dtypes, in this shard."""
    return [
        task
        for task in tasks
        if re.search(pattern, task.operator) and task.dtype in dtypes and (shard is None or task in shard)
    ]
