"""Inputs of a graph, such as weights under autocast, that are rounded to 16 bits: many at a
time.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import Graph, Node

from torch_dml.backend import DEVICE
from torch_dml.inductor.types import is_narrow

prims = torch.ops.prims

# Results of a call, in bytes, so that not all of a model's weights are rounded before the first is
# used.
MOST_BYTES = 64 << 20

_library: list[torch.library.Library] = []


def install() -> None:
    """Define the operator `torch_dml::rounded`."""
    library = torch.library.Library("torch_dml", "FRAGMENT")  # type: ignore[no-untyped-call]
    library.define("rounded(Tensor[] tensors, ScalarType dtype) -> Tensor[]")
    library.impl("rounded", _rounded, "CompositeExplicitAutograd")
    torch.library.register_fake("torch_dml::rounded", _empty, lib=library)
    _library.append(library)


def _empty(tensors: list[torch.Tensor], dtype: torch.dtype) -> list[torch.Tensor]:
    return [torch.empty_like(tensor, dtype=dtype) for tensor in tensors]


def _rounded(tensors: list[torch.Tensor], dtype: torch.dtype) -> list[torch.Tensor]:
    found = _empty(tensors, dtype)
    torch._foreach_copy_(found, tensors)
    return found


def join(graph: Graph) -> None:
    """Replace roundings of a graph's inputs by a call for several."""
    for nodes in _groups(graph):
        if len(nodes) < 2:
            continue
        sources: list[Any] = [node.args[0] for node in nodes]
        dtype = nodes[0].args[1]
        with graph.inserting_before(nodes[0]):
            rounded = graph.call_function(torch.ops.torch_dml.rounded.default, (sources, dtype))
            rounded.meta["val"] = [node.meta["val"] for node in nodes]
            items = [graph.call_function(operator.getitem, (rounded, i)) for i in range(len(nodes))]
        for node, item in zip(nodes, items, strict=True):
            item.meta.update(node.meta)
            node.replace_all_uses_with(item)
            graph.erase_node(node)


def _groups(graph: Graph) -> Iterator[list[Node]]:
    """Yield roundings to one dtype, in the graph's order, as many as have `MOST_BYTES`."""
    open_groups: dict[Any, tuple[list[Node], int]] = {}
    for node in list(graph.nodes):
        if rounded_input(node) is None:
            continue
        value: torch.Tensor = node.meta["val"]
        if not all(isinstance(size, int) for size in value.shape):
            continue
        size = value.numel() * value.element_size()
        key = value.dtype, value.device
        group, bytes_so_far = open_groups.get(key, ([], 0))
        if group and bytes_so_far + size > MOST_BYTES:
            yield group
            group, bytes_so_far = [], 0
        group.append(node)
        open_groups[key] = group, bytes_so_far + size
    for group, _ in open_groups.values():
        yield group


def rounded_input(node: Node) -> Node | None:
    """Return the float32 input of a graph that a node rounds to 16 bits; None if it is none."""
    if node.target != prims.convert_element_type.default:
        return None
    source, value = node.args[0], node.meta.get("val")
    if not isinstance(source, Node) or source.op != "placeholder" or not isinstance(value, torch.Tensor):
        return None
    of: torch.Tensor = source.meta["val"]
    is_one = of.device.type == DEVICE and of.dtype == torch.float32 and is_narrow(value.dtype)
    return source if is_one else None
