"""`make_graphed_callables`: modules and functions whose forward and backward passes are graph
replays.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from torch_dml.backend import DEVICE
from torch_dml.fallback import fallback_count

if TYPE_CHECKING:
    from torch_dml.graphs import Graph, GraphPool

_Callable = Callable[..., Any]


@dataclass
class _Captured:
    """The tensors that a callable's graphs read and write, which are the same in every replay."""

    arguments: int
    """The number of inputs that are arguments; the others are parameters, whose memory never moves."""
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    structure: Any
    """The structure (pytree) of the callable's outputs."""
    forward: Graph
    backward: Graph | None = None
    grad_outputs: tuple[Tensor | None, ...] = ()
    grad_inputs: tuple[Tensor | None, ...] = ()


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: GraphPool | None = None,
) -> Any:
    """Return callables that replay graphs of the given ones, forward and backward; one, or a tuple
    of them.

    As torch.cuda.make_graphed_callables: each callable is a module or a function of tensors with
    fixed shapes, and `sample_args` is the tuple of its arguments (a tuple of tuples for several),
    with `requires_grad` as in later calls. Calls copy their arguments into these tensors. Several
    callables share memory and have to be called in their order. A module keeps its type: its
    `forward` replays in the mode (training or evaluation) in which it was captured, and runs
    normally in the other. If operators run on the CPU in the warm-up, of which a graph can hold
    nothing, the callables are returned as they are, with a warning.
    """
    if torch.is_autocast_enabled(DEVICE) and torch.is_autocast_cache_enabled():
        raise RuntimeError("make_graphed_callables does not support the autocast cache: set `cache_enabled=False`")
    single = not isinstance(callables, tuple)
    functions: tuple[_Callable, ...] = (callables,) if single else callables
    samples: tuple[tuple[Tensor, ...], ...] = (sample_args,) if single else sample_args
    fallbacks = fallback_count()
    for function, sample in zip(functions, samples, strict=True):
        _check(function, sample)
        for _ in range(num_warmup_iters):
            _warm_up(function, sample, allow_unused_input)
    if fallback_count() > fallbacks:
        warnings.warn(
            "make_graphed_callables: some operators run on the CPU (torch_dml.fallbacks() names them), which no graph "
            "can hold; the callables run without graphs",
            stacklevel=2,
        )
        return callables
    captured: list[_Captured] = []
    for function, sample in zip(functions, samples, strict=True):
        captured.append(_capture_forward(function, sample, pool))
        pool = captured[-1].forward.pool()
    for one in reversed(captured):  # backward passes run in this order
        _capture_backward(one, pool, allow_unused_input)
    made = tuple(_replaying(function, one) for function, one in zip(functions, captured, strict=True))
    return made[0] if single else made


def _check(function: _Callable, sample: Sequence[Any]) -> None:
    if not isinstance(sample, tuple) or not all(isinstance(argument, Tensor) for argument in sample):
        raise TypeError("sample_args must be a tuple of tensors for each callable")
    if isinstance(function, nn.Module):
        hooks = (function._backward_hooks, function._forward_hooks, function._forward_pre_hooks)
        if any(len(hook) > 0 for hook in hooks):
            raise RuntimeError("modules must not have hooks when they are passed to make_graphed_callables")
        if any(buffer.requires_grad for buffer in function.buffers()):
            raise RuntimeError("buffers that require gradients are not supported by make_graphed_callables")


def _inputs(function: _Callable, sample: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return (*sample, *(function.parameters() if isinstance(function, nn.Module) else ()))


def _warm_up(function: _Callable, sample: tuple[Tensor, ...], allow_unused: bool) -> None:
    outputs, _ = pytree.tree_flatten(function(*sample))
    wanted = [tensor for tensor in _inputs(function, sample) if tensor.requires_grad]
    differentiable = [output for output in outputs if output.requires_grad]
    if wanted and differentiable:
        seeds = [torch.empty_like(output) for output in differentiable]
        torch.autograd.grad(differentiable, wanted, seeds, allow_unused=allow_unused)


def _capture_forward(function: _Callable, sample: tuple[Tensor, ...], pool: GraphPool | None) -> _Captured:
    from torch_dml.graphs import Graph, graph

    forward = Graph()
    with graph(forward, pool=pool):
        made = function(*sample)
    outputs, structure = pytree.tree_flatten(made)
    return _Captured(len(sample), _inputs(function, sample), tuple(outputs), structure, forward)


def _capture_backward(captured: _Captured, pool: GraphPool | None, allow_unused: bool) -> None:
    from torch_dml.graphs import Graph, graph

    wanted = [tensor for tensor in captured.inputs if tensor.requires_grad]
    captured.grad_outputs = tuple(
        torch.empty_like(output) if output.requires_grad else None for output in captured.outputs
    )
    captured.grad_inputs = (None,) * len(captured.inputs)
    differentiable = [output for output in captured.outputs if output.requires_grad]
    if not wanted or not differentiable:
        return
    seeds = [grad for grad in captured.grad_outputs if grad is not None]
    captured.backward = Graph()
    with graph(captured.backward, pool=pool):
        grads = iter(torch.autograd.grad(differentiable, wanted, seeds, allow_unused=allow_unused))
    captured.grad_inputs = tuple(next(grads) if tensor.requires_grad else None for tensor in captured.inputs)


def _replaying(function: _Callable, captured: _Captured) -> _Callable:
    class Replay(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Tensor) -> tuple[Tensor, ...]:
            for static, given in zip(captured.inputs[: captured.arguments], inputs, strict=False):
                if static.data_ptr() != given.data_ptr():
                    static.copy_(given)
            captured.forward.replay()
            return tuple(output.detach() for output in captured.outputs)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
            for static, given in zip(captured.grad_outputs, grads, strict=True):
                if static is None or given is None:
                    continue
                if static.data_ptr() != given.data_ptr():
                    static.copy_(given)
            if captured.backward is not None:
                captured.backward.replay()
            return tuple(None if grad is None else grad.detach() for grad in captured.grad_inputs)

    def replay(*arguments: Tensor) -> Any:
        if len(arguments) != captured.arguments:
            raise TypeError(
                f"expected {captured.arguments} arguments, as when it was captured, but got {len(arguments)}"
            )
        outputs = Replay.apply(*arguments, *captured.inputs[captured.arguments :])  # type: ignore[no-untyped-call]
        return pytree.tree_unflatten(outputs, captured.structure)

    if not isinstance(function, nn.Module):
        return replay
    module, eager, mode = function, function.forward, function.training

    def forward(*arguments: Any, **keywords: Any) -> Any:
        if module.training == mode and not keywords:
            return replay(*arguments)
        return eager(*arguments, **keywords)

    module.forward = forward
    return module
