"""torch_dml.to_device."""

from __future__ import annotations

import collections
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
import torch
import torch_dml


class Point(NamedTuple):
    x: torch.Tensor
    name: str


@dataclass(frozen=True)
class Batch:
    inputs: torch.Tensor
    extra: dict[str, Any] = field(default_factory=dict)


class Tokens(collections.UserDict):  # type: ignore[type-arg]
    """Like the batches of a tokenizer."""

    def to(self, device: torch.device) -> Tokens:
        return Tokens({key: value.to(device) for key, value in self.items()})


def test_every_container_is_walked() -> None:
    t = torch.arange(3.0)
    default = collections.defaultdict(list, {"a": [t]})
    tree = {
        "list": [t, 1, None, "text", 2.5],
        "tuple": (t, (t,)),
        "named": Point(t, "p"),
        "dataclass": Batch(t, {"deep": [t]}),
        "default": default,
        "ordered": collections.OrderedDict(z=t, a=t),
        "module": torch.nn.Linear(2, 2),
        "tokens": Tokens(ids=t),
        "packed": torch.nn.utils.rnn.pack_sequence([t[:, None]]),
        "type": torch.Tensor,
    }
    found = torch_dml.to_device(tree)
    assert [type(value) for value in found.values()] == [type(value) for value in tree.values()]
    tensors = [found["list"][0], found["tuple"][0], found["tuple"][1][0], found["named"].x, found["dataclass"].inputs]
    tensors += [
        found["dataclass"].extra["deep"][0],
        found["default"]["a"][0],
        found["ordered"]["z"],
        found["tokens"]["ids"],
    ]
    tensors += [found["module"].weight, found["packed"].data]
    assert all(tensor.device.type == "dml" for tensor in tensors)
    assert found["list"][1:] == [1, None, "text", 2.5] and found["named"].name == "p"
    assert list(found["ordered"]) == ["z", "a"] and found["default"]["missing"] == [] and found["type"] is torch.Tensor
    assert t.device.type == "cpu" and default["a"][0] is t and tree["dataclass"].inputs is t  # type: ignore[attr-defined]


def test_what_is_there_twice_is_moved_once() -> None:
    t = torch.ones(2)
    inner = [t]
    found = torch_dml.to_device((t, inner, inner, {"t": t}))
    assert found[0] is found[1][0] is found[3]["t"] and found[1] is found[2]


def test_devices() -> None:
    there = torch_dml.to_device([torch.ones(2)], "dml:0", non_blocking=True)
    assert there[0].device == torch.device("dml", 0)
    assert torch_dml.to_device(there, "cpu")[0].tolist() == [1, 1]
    with pytest.raises(RuntimeError):
        torch_dml.to_device([torch.ones(2)], "nothing")
