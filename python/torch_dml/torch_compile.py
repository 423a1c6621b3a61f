"""torch.compile: its default backend, Inductor, compiles graphs of the device."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch
from torch.torch_version import TorchVersion
from torch.utils._pytree import tree_leaves

from torch_dml import device, metas
from torch_dml.backend import DEVICE
from torch_dml.on_import import when_imported


def install() -> None:
    """Let torch.compile's default backend know the device; other graphs are unaffected."""
    wrapper: Any = torch._TorchCompileInductorWrapper  # type: ignore[attr-defined]
    compile_by_inductor = wrapper.__call__

    @functools.wraps(compile_by_inductor)
    def call(self: Any, graph: torch.fx.GraphModule, inputs: list[Any], **options: Any) -> Callable[..., Any]:
        if not is_on_device(graph, inputs):
            return compile_by_inductor(self, graph, inputs, **options)  # type: ignore[no-any-return]
        from torch_dml.inductor.registration import compile_graph

        return compile_graph(graph, inputs, self.config)

    reset_inductor = wrapper.reset

    @functools.wraps(reset_inductor)
    def reset(self: Any) -> None:
        reset_inductor(self)
        if capture := sys.modules.get("torch_dml.inductor.capture"):
            capture.reset()

    wrapper.__call__ = call
    wrapper.reset = reset
    metas.install()
    when_imported("torch._dynamo.device_interface", _register_interface)
    when_imported("torch._prims.rng_prims", _repeat_random_operators)
    when_imported("torch._dynamo.variables.optimizer", _let_steps_be_counted_on_the_device)
    when_imported("torch.nn.attention.flex_attention", _admit_to_flex_attention)
    if TorchVersion(torch.__version__) < "2.12":
        when_imported("torch._subclasses.fake_tensor", _let_fake_mode_use_the_device)


def _register_interface(module: ModuleType) -> None:
    from torch_dml.inductor.devices import register_interface

    register_interface(module)


def _repeat_random_operators(module: ModuleType) -> None:
    from torch_dml.repeated_random import install

    install(module)


def is_on_device(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> bool:
    """Return whether a graph has inputs or creates tensors on the device."""
    values = [node.meta.get("example_value") for node in graph.graph.nodes]
    values += [*inputs, *graph.parameters(), *graph.buffers()]
    return any(isinstance(leaf, torch.Tensor) and leaf.device.type == DEVICE for leaf in tree_leaves(values))


def _let_steps_be_counted_on_the_device(module: ModuleType) -> None:
    """Let compiled optimizers count their steps in tensors of the device, as for CUDA, and not in
    those of the CPU, whose part of a step would be compiled by a C++ compiler.
    """
    variable = module.OptimizerVariable

    def may_count(self: Any, group: dict[str, Any]) -> bool:
        new = all(p.device.type == DEVICE and p not in self.value.state for p in group["params"])
        return new and "capturable" in group

    if hasattr(variable, "_safe_to_set_capturable"):
        asked: Callable[..., bool] = variable._safe_to_set_capturable
        variable._safe_to_set_capturable = lambda self, group: asked(self, group) or may_count(self, group)
        return
    set_others: Callable[..., None] = variable._set_capturable

    def set_capturable(self: Any, tx: Any) -> None:
        for group in self.value.param_groups:
            if may_count(self, group):
                group["capturable"] = True
        set_others(self, tx)

    variable._set_capturable = set_capturable


def _admit_to_flex_attention(module: ModuleType) -> None:
    """Let flex_attention accept tensors of the device. It has a list of devices, and runs the same
    operators on all.
    """
    validate: Callable[..., None] = module._validate_device

    @functools.wraps(validate)
    def validate_device(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> None:
        if query.device.type != DEVICE:
            validate(query, key, value)

    module._validate_device = validate_device  # type: ignore[attr-defined]


def _let_fake_mode_use_the_device(module: ModuleType) -> None:
    """Let constants of a traced function be on the device, as for CUDA, where torch only supports
    CUDA.
    """
    avoids: Callable[[Any], bool] = module.FakeTensorMode.avoid_device_init.fget
    module.FakeTensorMode.avoid_device_init = property(lambda mode: avoids(mode) and not device.is_available())
