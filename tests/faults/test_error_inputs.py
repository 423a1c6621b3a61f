"""OpInfo's invalid inputs of every operator: the device raises exactly if the CPU does, with the
same type.

The messages are those that PyTorch expects, if the CPU's are.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_map

DML = torch.device("dml", 0)


# The CPU's own implementation checks differently; CUDA raises what the device raises.
NOT_AS_THE_CPU = {"narrow_copy"}


class Mover:
    """Copies CPU tensors to the device with their strides, shared memory and object identity."""

    def __init__(self) -> None:
        self.storages: dict[int, torch.UntypedStorage] = {}
        self.tensors: dict[int, torch.Tensor] = {}

    def __call__(self, value: Any) -> Any:
        if isinstance(value, torch.device | str) and str(value) == "cpu":
            return DML
        if not isinstance(value, torch.Tensor) or value.layout != torch.strided or value.device.type != "cpu":
            return value
        if id(value) not in self.tensors:
            self.tensors[id(value)] = self._tensor(value)
        return self.tensors[id(value)]

    def _tensor(self, value: torch.Tensor) -> torch.Tensor:
        storage = value.untyped_storage()
        if storage._cdata not in self.storages:
            everything = torch.empty(0, dtype=torch.uint8).set_(storage)
            self.storages[storage._cdata] = everything.to(DML).untyped_storage()
        found = torch.empty(0, dtype=value.dtype, device=DML)
        found.set_(self.storages[storage._cdata], value.storage_offset(), value.shape, value.stride())
        return found.requires_grad_(value.requires_grad)


def outcome(op: Any, input: Any, args: Any, kwargs: Any) -> tuple[str, str]:
    """Return the type and the message of the error, or empty strings."""
    try:
        op(input, *args, **kwargs)
        torch.dml.synchronize()
    except Exception as error:
        return type(error).__name__, str(error)
    return "", ""


@pytest.mark.allow_fallback
@pytest.mark.parametrize("op", [op for op in op_db if op.error_inputs_func is not None], ids=lambda op: op.full_name)
def test_wrong_inputs_raise_what_the_cpu_raises(op: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for index, wrong in enumerate(op.error_inputs("cpu")):
            sample = wrong.sample_input
            given = (sample.input, sample.args, sample.kwargs)
            moved = tree_map(Mover(), given)
            (found, words), (expected, cpu_words) = outcome(op, *moved), outcome(op, *given)
            if op.name in NOT_AS_THE_CPU:
                assert bool(found) == bool(expected)
                continue
            assert found == expected, f"{index}: {sample.summary()}"
            if re.search(wrong.error_regex, cpu_words):
                assert re.search(wrong.error_regex, words), f"{index}: {sample.summary()}"
