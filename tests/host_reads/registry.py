"""PyTorch's operators: those of the dispatcher, and those that only TorchScript has."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch_dml import engine

# Namespaces that are not called, and why.
LEFT_OUT = {
    "torch_dml": "is the engine's",
    "_dtensor": "waits for other processes",
    "c10d": "waits for other processes",
    "_c10d_functional": "waits for other processes",
    "_c10d_functional_autograd": "waits for other processes",
    "symm_mem": "waits for other processes",
    "cuda": "is of CUDA devices",
    "profiler": "changes what runs later",
    "debugprims": "reads files",
}
# Operators that are not called, and why.
LEFT_OUT_OPERATORS = {
    "aten::_foreach_copy": "counts its lists after it has indexed them",
    "aten::_grid_sampler_2d_cpu_fallback_backward": "leaves numbers unwritten; test_host_reads.py calls it",
    "aten::_sobol_engine_draw": "checks no bounds; tests/conformance/test_host_reads.py calls it",
    "aten::_sobol_engine_ff_": "checks no bounds; tests/conformance/test_host_reads.py calls it",
    "aten::_sobol_engine_initialize_state_": "checks no bounds; tests/conformance/test_host_reads.py calls it",
    "aten::_sobol_engine_scramble_": "checks no bounds; tests/conformance/test_host_reads.py calls it",
    "aten::backward": "takes a graph of gradients",
    "aten::grad": "takes a graph of gradients",
    "aten::from_file": "writes a file of any name",
    "aten::save": "writes a file of any name",
    "aten::manual_seed": "changes what runs later",
    "aten::set_grad_enabled": "changes what runs later",
    "aten::set_data": "changes what runs later",
    "prim::rpc_async": "waits for other processes",
    "prim::rpc_sync": "waits for other processes",
    "prim::rpc_remote": "waits for other processes",
}


@dataclass(frozen=True)
class Argument:
    """An argument of an overload."""

    name: str
    type: str  # in TorchScript's notation: Tensor, Optional[Tensor], List[int], number, ScalarType, ...
    keyword: bool
    default: Any
    has_default: bool


@dataclass(frozen=True)
class Operator:
    """An overload."""

    name: str  # aten::add.Tensor
    arguments: tuple[Argument, ...]

    @property
    def reaches_devices(self) -> bool:
        """Whether an argument is, or contains, a tensor, a storage or a device."""
        return any(re.search(r"Tensor|Device|Storage|\bt\b|Any", argument.type) for argument in self.arguments)

    @property
    def takes_storage(self) -> bool:
        """Whether an argument is a storage."""
        return any(argument.type == "Storage" for argument in self.arguments)

    @property
    def is_random(self) -> bool:
        """Whether results are random numbers, uninitialised memory, or counts of a tensor's
        changes.
        """
        random = torch.Tag.nondeterministic_seeded in _found(self.name)[1]
        return (
            random
            or re.search(r"::_?(new_)?empty|resize|dropout|rrelu|::_?rand|normal|_dep_token|_version", self.name)
            is not None
        )

    def call(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Call it."""
        return _found(self.name)[0](*args, **kwargs)


@cache
def _found(name: str) -> tuple[Callable[..., Any], list[torch.Tag]]:
    base, _, overload = name.partition(".")
    function, _, tags = torch._C._get_operation_overload(base, overload)
    return function, tags


def _full(name: str, overload: str) -> str:
    return f"{name}.{overload}" if overload else name


def _argument(argument: Any) -> Argument:
    there = argument.has_default_value()
    return Argument(
        argument.name, str(argument.real_type), argument.kwarg_only, argument.default_value if there else None, there
    )


@cache
def operators() -> dict[str, Operator]:
    """Every overload that may be called, by name."""
    found = {}
    for schema in torch._C._jit_get_all_schemas():
        name = _full(schema.name, schema.overload_name)
        if schema.name.partition("::")[0] not in LEFT_OUT and schema.name not in LEFT_OUT_OPERATORS:
            found[name] = Operator(name, tuple(map(_argument, schema.arguments)))
    return dict(sorted(found.items()))


@cache
def of_engine() -> frozenset[str]:
    """The overloads for which the engine has a kernel."""
    return frozenset(schema.partition("(")[0] for schema in engine.schemas())
